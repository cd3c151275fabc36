//! The handshake of both roles: messages enter, answers leave. No input or output here; the files that
//! come with messages are of any type.
//!
//! ```text
//! client              server
//!        ◄── HELLO
//! INIT   ──►          ◄── ACK
//! ADD_REGION, ADD_RING, each ──► ◄── ACK
//! CONNECT ──►         ◄── CONNECTED
//! ```

use std::collections::VecDeque;
use std::mem;

use crate::config::{Config, Role};
use crate::error::Reason;
use crate::layout::{
    AddRegion, AddRing, Direction, Hello, Init, MAX_REGIONS, Message, Plan, SECRET, VERSION,
};

/// What this end calls itself.
const PROGRAM: &str = concat!("linerate ", env!("CARGO_PKG_VERSION"));
/// Ethernet frames, not packets.
const ETHERNET: u8 = 0;

const fn refused<T>(reason: &'static str) -> Result<T, Reason> {
    Err(Reason::Refused(reason))
}

/// The server's side of one control channel; `F` is a file.
pub struct Server<F> {
    config: Config,
    stage: Stage,
    regions: Vec<(u64, F)>,
    rings: Vec<(AddRing, F)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It said hello.
    Hello,
    /// The client has the interface.
    Claimed,
    /// The client has offered all.
    Connected,
}

/// What a client brings.
pub struct Offer<F> {
    /// What it calls its interface.
    pub name: String,
    /// Its regions: bytes and file of each.
    pub regions: Vec<(u64, F)>,
    /// Its rings and their event files.
    pub rings: Vec<(AddRing, F)>,
}

/// What a server does next.
pub enum Answer<F> {
    /// Answer.
    Send(Message),
    /// Map what is offered, and send the message when that succeeds.
    Accept(Offer<F>, Message),
}

impl<F> Server<F> {
    pub fn new(config: &Config) -> Self {
        Self { config: config.clone(), stage: Stage::Hello, regions: Vec::new(), rings: Vec::new() }
    }

    /// What is sent first.
    pub fn hello(&self) -> Message {
        Message::Hello(Hello {
            name: PROGRAM.into(),
            min_version: VERSION,
            max_version: VERSION,
            max_region: MAX_REGIONS - 1,
            max_to_client: self.config.send_queues - 1,
            max_to_server: self.config.receive_queues - 1,
            max_log2_ring_size: self.config.log2_ring_size(),
        })
    }

    /// Whether this client has the interface, or is about to.
    pub fn claims(&self) -> bool {
        self.stage != Stage::Hello
    }

    /// Takes a message; `free` says that no other client has the interface.
    ///
    /// # Errors
    /// Why the client is refused or has gone.
    pub fn receive(&mut self, message: Message, file: Option<F>, free: bool) -> Result<Answer<F>, Reason> {
        match (self.stage, message) {
            (_, Message::Disconnect(reason)) => return Err(Reason::Said(reason)),
            (Stage::Hello, Message::Init(init)) => self.init(&init, free)?,
            (Stage::Claimed, Message::AddRegion(region)) => self.region(region, file)?,
            (Stage::Claimed, Message::AddRing(ring)) => self.ring(ring, file)?,
            (Stage::Claimed, Message::Connect(name)) => {
                self.stage = Stage::Connected;
                let (regions, rings) = (mem::take(&mut self.regions), mem::take(&mut self.rings));
                let message = Message::Connected(self.config.name.clone());
                return Ok(Answer::Accept(Offer { name, regions, rings }, message));
            }
            _ => return refused("unexpected message"),
        }
        Ok(Answer::Send(Message::Ack))
    }

    fn init(&mut self, init: &Init, free: bool) -> Result<(), Reason> {
        let secret = self.config.secret();
        match init {
            _ if init.version != VERSION => refused("incompatible memif version"),
            _ if init.id != self.config.id => refused("interface ID not found"),
            _ if init.mode != ETHERNET => refused("only the Ethernet mode is supported"),
            _ if secret != [0; SECRET] && init.secret != secret => refused("incorrect secret"),
            _ if !free => refused("already connected"),
            _ => {
                self.stage = Stage::Claimed;
                Ok(())
            }
        }
    }

    fn region(&mut self, region: AddRegion, file: Option<F>) -> Result<(), Reason> {
        let Some(file) = file else { return refused("missing region file") };
        if region.index >= MAX_REGIONS || usize::from(region.index) != self.regions.len() {
            return refused("invalid region index");
        }
        let sizes = self.regions.iter().map(|(size, _)| *size);
        if sizes.fold(region.size, u64::saturating_add) > self.config.most_memory() {
            return refused("its regions are too large in all");
        }
        self.regions.push((region.size, file));
        Ok(())
    }

    fn ring(&mut self, ring: AddRing, file: Option<F>) -> Result<(), Reason> {
        let Some(file) = file else { return refused("missing interrupt file") };
        let queues = match ring.direction {
            Direction::ToServer => self.config.receive_queues,
            Direction::ToClient => self.config.send_queues,
        };
        let known =
            |(other, _): &(AddRing, F)| (other.direction, other.index) == (ring.direction, ring.index);
        if ring.index >= queues || self.rings.iter().any(known) {
            return refused("invalid ring index");
        }
        if ring.log2_size > self.config.log2_ring_size() {
            return refused("the ring is too large");
        }
        self.rings.push((ring, file));
        Ok(())
    }
}

/// The client's side of its control channel.
pub struct Client {
    config: Config,
    progress: Progress,
}

enum Progress {
    /// The server has not said hello.
    Silent,
    /// What is still to be sent, one for each ACK.
    Offering(VecDeque<(Message, Attachment)>),
    /// The server has accepted all.
    Connected,
}

/// The file that goes with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// None.
    Nothing,
    /// The memory's.
    Region,
    /// A ring's.
    Ring(Direction, u16),
}

/// What a client does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Make the memory of this plan, then send the message.
    Plan(Plan, Message),
    /// Send this.
    Send(Message, Attachment),
    /// Use the connection with the interface of this name.
    Connected(String),
}

impl Client {
    pub fn new(config: &Config) -> Self {
        debug_assert_eq!(config.role, Role::Client);
        Self { config: config.clone(), progress: Progress::Silent }
    }

    /// Takes a message.
    ///
    /// # Errors
    /// Why the server is refused or has gone.
    pub fn receive(&mut self, message: Message) -> Result<Step, Reason> {
        match (&mut self.progress, message) {
            (_, Message::Disconnect(reason)) => Err(Reason::Said(reason)),
            (Progress::Silent, Message::Hello(hello)) => self.hello(&hello),
            (Progress::Offering(rest), Message::Ack) => match rest.pop_front() {
                Some((message, attachment)) => Ok(Step::Send(message, attachment)),
                None => refused("unexpected message"),
            },
            (Progress::Offering(rest), Message::Connected(name)) if rest.is_empty() => {
                self.progress = Progress::Connected;
                Ok(Step::Connected(name))
            }
            _ => refused("unexpected message"),
        }
    }

    fn hello(&mut self, hello: &Hello) -> Result<Step, Reason> {
        if !(hello.min_version..=hello.max_version).contains(&VERSION) {
            return refused("incompatible memif version");
        }
        let plan = Plan {
            to_server: self.config.send_queues.min(hello.max_to_server.saturating_add(1)),
            to_client: self.config.receive_queues.min(hello.max_to_client.saturating_add(1)),
            log2_size: self.config.log2_ring_size().min(hello.max_log2_ring_size),
            buffer_size: self.config.buffer_size,
        };
        let region = AddRegion { index: 0, size: plan.size() as u64 };
        let ring = |direction, index| {
            #[allow(clippy::cast_possible_truncation)] // the configuration was checked: below 4 GiB
            let offset = plan.ring(direction, index) as u32;
            let ring = AddRing { direction, index, region: 0, offset, log2_size: plan.log2_size };
            (Message::AddRing(ring), Attachment::Ring(direction, index))
        };
        let rest = [(Message::AddRegion(region), Attachment::Region)]
            .into_iter()
            .chain((0..plan.to_server).map(|index| ring(Direction::ToServer, index)))
            .chain((0..plan.to_client).map(|index| ring(Direction::ToClient, index)))
            .chain([(Message::Connect(self.config.name.clone()), Attachment::Nothing)]);
        self.progress = Progress::Offering(rest.collect());
        let init = Init {
            version: VERSION,
            id: self.config.id,
            mode: ETHERNET,
            secret: self.config.secret(),
            name: PROGRAM.into(),
        };
        Ok(Step::Plan(plan, Message::Init(init)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Socket;

    fn config(role: Role) -> Config {
        Config { secret: "open".into(), ..Config::new(role, Socket::Abstract("x".into())) }
    }

    fn file(attachment: Attachment) -> Option<Attachment> {
        (attachment != Attachment::Nothing).then_some(attachment)
    }

    /// Lets both talk until they are connected or one refuses.
    fn talk(server: &Config, client: &Config) -> Result<(Plan, Offer<Attachment>), Reason> {
        let (mut server, mut client) = (Server::new(server), Client::new(client));
        let mut to_client = server.hello();
        let (mut plan, mut offer) = (None, None);
        loop {
            let (message, attachment) = match client.receive(to_client)? {
                Step::Plan(made, message) => {
                    plan = Some(made);
                    (message, Attachment::Nothing)
                }
                Step::Send(message, attachment) => (message, attachment),
                Step::Connected(name) => {
                    assert_eq!(name, "linerate");
                    return Ok((plan.unwrap(), offer.unwrap()));
                }
            };
            to_client = match server.receive(message, file(attachment), true)? {
                Answer::Send(message) => message,
                Answer::Accept(made, message) => {
                    offer = Some(made);
                    message
                }
            };
        }
    }

    #[test]
    fn a_client_brings_as_many_queues_as_both_have() {
        let server = Config { receive_queues: 4, send_queues: 2, ring_size: 256, ..config(Role::Server) };
        let client = Config { send_queues: 3, receive_queues: 8, ..config(Role::Client) };
        let (plan, offer) = talk(&server, &client).unwrap();
        assert_eq!((plan.to_server, plan.to_client, plan.log2_size), (3, 2, 8));
        assert_eq!(offer.rings.len(), 5);
        assert_eq!(offer.regions[0].0, plan.size() as u64);
        for (ring, attachment) in offer.rings {
            assert_eq!(attachment, Attachment::Ring(ring.direction, ring.index));
            assert_eq!(ring.offset as usize, plan.ring(ring.direction, ring.index));
        }
    }

    #[test]
    fn who_has_another_secret_or_number_is_refused() {
        let (server, client) = (config(Role::Server), config(Role::Client));
        let wrong = |client: Config| talk(&server, &client).err().unwrap();
        assert_eq!(
            wrong(Config { secret: "shut".into(), ..client.clone() }),
            Reason::Refused("incorrect secret")
        );
        assert_eq!(
            wrong(Config { secret: String::new(), ..client.clone() }),
            Reason::Refused("incorrect secret")
        );
        assert_eq!(wrong(Config { id: 1, ..client.clone() }), Reason::Refused("interface ID not found"));
        assert!(talk(&Config { secret: String::new(), ..server.clone() }, &client).is_ok());
    }

    /// A server that a client has claimed.
    fn claimed() -> Server<()> {
        let mut server = Server::new(&config(Role::Server));
        let mut client = Client::new(&config(Role::Client));
        let Ok(Step::Plan(_, init)) = client.receive(server.hello()) else { panic!("no plan") };
        assert!(server.receive(init, None, true).is_ok());
        server
    }

    #[test]
    fn a_server_takes_one_client() {
        let mut server: Server<()> = Server::new(&config(Role::Server));
        let mut client = Client::new(&config(Role::Client));
        let Ok(Step::Plan(_, init)) = client.receive(server.hello()) else { panic!("no plan") };
        assert_eq!(server.receive(init, None, false).err(), Some(Reason::Refused("already connected")));
    }

    #[test]
    fn what_comes_out_of_turn_or_is_impossible_is_refused() {
        let ring = AddRing { direction: Direction::ToServer, index: 0, region: 0, offset: 0, log2_size: 10 };
        let region = |index| Message::AddRegion(AddRegion { index, size: 4096 });
        for (message, file, reason) in [
            (Message::Ack, None, "unexpected message"),
            (Message::Connected(String::new()), None, "unexpected message"),
            (region(0), None, "missing region file"),
            (region(1), Some(()), "invalid region index"),
            (region(u16::MAX), Some(()), "invalid region index"),
            (Message::AddRing(ring), None, "missing interrupt file"),
            (Message::AddRing(AddRing { index: 1, ..ring }), Some(()), "invalid ring index"),
            (Message::AddRing(AddRing { log2_size: 11, ..ring }), Some(()), "the ring is too large"),
            (Message::AddRing(AddRing { log2_size: 255, ..ring }), Some(()), "the ring is too large"),
        ] {
            let answer = claimed().receive(message.clone(), file, true).err();
            assert_eq!(answer, Some(Reason::Refused(reason)), "{message:?}");
        }
        let mut server = claimed();
        let region = |index, size| Message::AddRegion(AddRegion { index, size });
        assert!(server.receive(region(0, 1 << 29), Some(()), true).is_ok());
        assert!(server.receive(region(1, 1 << 29), Some(()), true).is_ok());
        for size in [1, u64::MAX] {
            let answer = server.receive(region(2, size), Some(()), true).err();
            assert_eq!(answer, Some(Reason::Refused("its regions are too large in all")));
        }
        let mut server = claimed();
        assert!(server.receive(Message::AddRing(ring), Some(()), true).is_ok());
        let twice = server.receive(Message::AddRing(ring), Some(()), true).err();
        assert_eq!(twice, Some(Reason::Refused("invalid ring index")));
        assert!(server.receive(Message::Connect(String::new()), None, true).is_ok());
        let after = server.receive(Message::Ack, None, true).err();
        assert_eq!(after, Some(Reason::Refused("unexpected message")));
    }

    #[test]
    fn a_client_refuses_what_comes_out_of_turn() {
        let mut client = Client::new(&config(Role::Client));
        assert!(client.receive(Message::Ack).is_err());
        let hello = Server::<()>::new(&config(Role::Server)).hello();
        assert!(client.receive(hello.clone()).is_ok());
        assert!(client.receive(hello).is_err());
        assert!(client.receive(Message::Connected(String::new())).is_err());
        assert_eq!(client.receive(Message::Disconnect("no".into())), Err(Reason::Said("no".into())));
    }
}
