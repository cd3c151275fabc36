//! The control end: clients come and go, servers are looked for, and queues are handed to the data ends.
//!
//! One thread of the owner calls [`Memif::poll`] over and over. Between two calls nothing is answered.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::bell::Bell;
use crate::closer::{Closer, Held};
use crate::config::{Config, Role};
use crate::counters::QueueStatistics;
use crate::error::{Error, Reason};
use crate::handshake::{Answer, Attachment, Client, Server, Step};
use crate::layout::{Direction, Message};
use crate::links::{Links, Memory};
use crate::queue::Shared;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::socket::{Channel, Listener};

/// How long a handshake may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a client looks for a server, and whether a data end gave its connection up is looked at.
const INTERVAL: Duration = Duration::from_millis(50);
/// Clients that may be in a handshake at once.
const VISITORS: usize = 8;

/// An interface that was opened.
pub struct Opened {
    /// Its control end.
    pub memif: Memif,
    /// The receiving ends of its queues, by index.
    pub receivers: Vec<Receiver>,
    /// The sending ends, by index.
    pub senders: Vec<Sender>,
}

/// The control end of an interface. When it goes, the peer is told, and the data ends are idle.
pub struct Memif {
    config: Config,
    receive: Vec<Arc<Shared>>,
    send: Vec<Arc<Shared>>,
    end: End,
    /// Whether there is a connection.
    connected: bool,
    /// Why the last handshake failed, so that the same is not said at each attempt.
    refusal: Option<Reason>,
    /// Wakes peers that do not poll.
    bell: Bell,
    /// Closes what comes from peers.
    closer: Closer,
}

/// What became of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// There is a peer.
    Connected(Peer),
    /// It is a peer no longer.
    Disconnected(Reason),
    /// A handshake failed; a client tries again. The same reason again and again is one event.
    Refused(Reason),
}

/// Who is at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// What it calls its interface.
    pub name: String,
    /// Queues that frames can come through.
    pub receive_queues: usize,
    /// Queues that frames can be sent through.
    pub send_queues: usize,
    /// Whether nobody can make the memory smaller. Where it is false, a peer that does so ends this
    /// process by `SIGBUS`.
    pub sealed: bool,
}

enum End {
    Server { listener: Listener, visitors: Vec<Visitor> },
    Client(Search),
}

/// A client of this server.
struct Visitor {
    channel: Channel,
    handshake: Server<Held>,
    since: Instant,
    connected: bool,
}

/// Our way to the server.
enum Search {
    /// Nobody listened; when to look again.
    Away(Instant),
    /// There is a channel.
    Found(Box<Found>),
}

struct Found {
    channel: Channel,
    handshake: Client,
    since: Instant,
    /// Until it is handed out.
    memory: Option<Memory>,
    connected: bool,
}

/// What a step of the handshake leads to.
enum Progress {
    /// Nothing yet.
    Going,
    /// A connection with an interface of that name.
    Done(String, Links),
}

impl Memif {
    /// Opens an interface: a server listens at once, a client looks for its server in [`Self::poll`].
    ///
    /// # Errors
    /// [`Error::Config`] when the protocol cannot say what is wanted, [`Error::Listen`] when the socket
    /// cannot be made.
    pub fn open(config: Config) -> Result<Opened, Error> {
        config.check()?;
        let end = match config.role {
            Role::Server => {
                let listener = Listener::new(&config.socket)
                    .map_err(|source| Error::Listen { socket: config.socket.to_string(), source })?;
                End::Server { listener, visitors: Vec::new() }
            }
            Role::Client => End::Client(Search::Away(Instant::now())),
        };
        let queues = |count| -> Vec<Arc<Shared>> { (0..count).map(|_| Arc::default()).collect() };
        let (receive, send) = (queues(config.receive_queues), queues(config.send_queues));
        Ok(Opened {
            receivers: receive.iter().map(|shared| Receiver::new(Arc::clone(shared))).collect(),
            senders: send.iter().map(|shared| Sender::new(Arc::clone(shared))).collect(),
            memif: Self {
                config,
                receive,
                send,
                end,
                connected: false,
                refusal: None,
                bell: Bell::new(),
                closer: Closer::new(),
            },
        })
    }

    /// Whether there is a connection.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.connected
    }

    /// What the receiving queues have counted, by index.
    #[must_use]
    pub fn received(&self) -> Vec<QueueStatistics> {
        self.receive.iter().map(|shared| shared.counters.read()).collect()
    }

    /// What the sending queues have counted, by index.
    #[must_use]
    pub fn sent(&self) -> Vec<QueueStatistics> {
        self.send.iter().map(|shared| shared.counters.read()).collect()
    }

    /// Has frames received of at most so many bytes, without FCS; longer ones are skipped and counted. At first
    /// it is [`crate::LONGEST_FRAME`].
    pub fn set_longest_frame(&self, bytes: u32) {
        self.receive.iter().for_each(|shared| shared.set_longest(bytes));
    }

    /// Answers peers until something has become of a connection, or until `timeout` is over.
    ///
    /// # Errors
    /// [`Error::Wait`] when the kernel does not let us wait. What peers do wrong is an event.
    pub fn poll(&mut self, timeout: Duration) -> Result<Option<Event>, Error> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(event) = self.step() {
                return Ok(Some(event));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.wait(left.min(INTERVAL))?;
        }
    }

    fn wait(&self, timeout: Duration) -> Result<(), Error> {
        let files: Vec<BorrowedFd> = match &self.end {
            End::Server { listener, visitors } => {
                let channels = visitors.iter().map(|visitor| visitor.channel.as_fd());
                let may_come = visitors.len() < VISITORS && self.closer.keeps_up();
                let listener = may_come.then(|| listener.as_fd());
                listener.into_iter().chain(channels).collect()
            }
            End::Client(Search::Found(found)) => vec![found.channel.as_fd()],
            End::Client(Search::Away(_)) => Vec::new(),
        };
        let mut files: Vec<PollFd> =
            files.into_iter().map(|file| PollFd::new(file, PollFlags::POLLIN)).collect();
        // Never to be busy for what is left of a millisecond.
        let timeout = PollTimeout::try_from(timeout + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX);
        match poll(&mut files, timeout) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(Error::Wait(error.into())),
        }
    }

    /// Does all that can be done without waiting, up to the first event.
    fn step(&mut self) -> Option<Event> {
        let broken = self.receive.iter().chain(&self.send).any(|shared| shared.is_broken());
        let (outcome, was_connected) = match &mut self.end {
            End::Server { listener, visitors } => {
                if visitors.len() < VISITORS && self.closer.keeps_up() {
                    let channel = listener.accept(&self.closer);
                    visitors.extend(channel.and_then(|channel| Visitor::new(channel, &self.config)));
                }
                serve(visitors, broken, (self.config.unsealed, &self.bell))
            }
            End::Client(search) => search.step(&self.config, broken, (&self.bell, &self.closer)),
        }?;
        match outcome {
            Ok((name, links)) => Some(Event::Connected(self.connect(name, links))),
            Err(reason) if was_connected => {
                self.disconnect();
                Some(Event::Disconnected(reason))
            }
            Err(reason) if self.refusal.as_ref() == Some(&reason) => None,
            Err(reason) => {
                self.refusal = Some(reason.clone());
                Some(Event::Refused(reason))
            }
        }
    }

    fn connect(&mut self, name: String, links: Links) -> Peer {
        self.bell.serve(links.chimes());
        let Links { links, sealed } = links;
        let mut peer = Peer { name, receive_queues: 0, send_queues: 0, sealed };
        for (direction, index, link) in links {
            let receives = (direction == Direction::ToServer) == (self.config.role == Role::Server);
            let (queues, count) = if receives {
                (&self.receive, &mut peer.receive_queues)
            } else {
                (&self.send, &mut peer.send_queues)
            };
            if let Some(shared) = queues.get(usize::from(index)) {
                shared.set(Some(link));
                *count += 1;
            }
        }
        self.connected = true;
        self.refusal = None;
        peer
    }

    fn disconnect(&mut self) {
        self.connected = false;
        self.bell.serve(Vec::new());
        self.receive.iter().chain(&self.send).for_each(|shared| shared.set(None));
    }
}

impl Drop for Memif {
    fn drop(&mut self) {
        let goodbye = Message::Disconnect("closed".into());
        match &self.end {
            End::Server { visitors, .. } => {
                visitors.iter().for_each(|visitor| drop(visitor.channel.send(&goodbye, None)));
            }
            End::Client(Search::Found(found)) => drop(found.channel.send(&goodbye, None)),
            End::Client(Search::Away(_)) => {}
        }
        self.disconnect();
    }
}

/// What became of a channel, and whether it was connected before.
type Outcome = (Result<(String, Links), Reason>, bool);

/// Tells a peer why it is refused, unless it was the one who went.
fn say_why(channel: &Channel, reason: &Reason) {
    let text = match reason {
        Reason::Refused(text) => (*text).to_owned(),
        Reason::System(text) => text.clone(),
        Reason::Gone | Reason::Said(_) => return,
    };
    // Who does not listen is not told.
    let _ = channel.send(&Message::Disconnect(text), None);
}

/// Why a channel ends that did nothing wrong in its messages.
fn verdict(since: Instant, connected: bool, broken: bool) -> Result<(), Reason> {
    match connected {
        true if broken => Err(Reason::Refused("a ring's index is impossible")),
        false if since.elapsed() > PATIENCE => Err(Reason::Refused("the handshake takes too long")),
        _ => Ok(()),
    }
}

/// Answers clients, up to the first of which something has become.
fn serve(visitors: &mut Vec<Visitor>, broken: bool, how: (bool, &Bell)) -> Option<Outcome> {
    let mut at = 0;
    while let Some(visitor) = visitors.get(at) {
        let free = !visitors.iter().any(|other| other.handshake.claims());
        let was_connected = visitor.connected;
        match visitors[at].step(free, broken, how) {
            Ok(Progress::Going) => at += 1,
            Ok(Progress::Done(name, links)) => return Some((Ok((name, links)), false)),
            Err(reason) => {
                let visitor = visitors.remove(at);
                say_why(&visitor.channel, &reason);
                // Who only looks whether somebody listens is no event.
                if was_connected || visitor.handshake.claims() || reason != Reason::Gone {
                    return Some((Err(reason), was_connected));
                }
            }
        }
    }
    None
}

impl Visitor {
    /// Says hello; `None` where the client has gone already.
    fn new(channel: Channel, config: &Config) -> Option<Self> {
        let handshake = Server::new(config);
        channel.send(&handshake.hello(), None).ok()?;
        Some(Self { channel, handshake, since: Instant::now(), connected: false })
    }

    fn step(
        &mut self,
        free: bool,
        broken: bool,
        (unsealed, bell): (bool, &Bell),
    ) -> Result<Progress, Reason> {
        verdict(self.since, self.connected, broken)?;
        while let Some((message, file)) = self.channel.receive()? {
            match self.handshake.receive(message, file, free)? {
                Answer::Send(message) => self.channel.send(&message, None)?,
                Answer::Accept(offer, message) => {
                    let name = offer.name.clone();
                    let links = Links::accept(offer, unsealed, bell)?;
                    self.channel.send(&message, None)?;
                    self.connected = true;
                    return Ok(Progress::Done(name, links));
                }
            }
        }
        Ok(Progress::Going)
    }
}

impl Search {
    /// Looks for the server, or answers it.
    fn step(&mut self, config: &Config, broken: bool, wakers: (&Bell, &Closer)) -> Option<Outcome> {
        if let Self::Away(again) = self {
            let now = Instant::now();
            if now < *again {
                return None;
            }
            let Ok(channel) = Channel::connect(&config.socket, wakers.1) else {
                *again = now + INTERVAL;
                return None;
            };
            let (handshake, memory) = (Client::new(config), None);
            *self = Self::Found(Box::new(Found { channel, handshake, since: now, memory, connected: false }));
        }
        let Self::Found(found) = self else { return None };
        let was_connected = found.connected;
        match found.step(broken, config.fill, wakers) {
            Ok(Progress::Going) => None,
            Ok(Progress::Done(name, links)) => Some((Ok((name, links)), false)),
            Err(reason) => {
                say_why(&found.channel, &reason);
                *self = Self::Away(Instant::now() + INTERVAL);
                Some((Err(reason), was_connected))
            }
        }
    }
}

impl Found {
    fn step(&mut self, broken: bool, fill: u8, wakers: (&Bell, &Closer)) -> Result<Progress, Reason> {
        verdict(self.since, self.connected, broken)?;
        while let Some((message, _)) = self.channel.receive()? {
            match self.handshake.receive(message)? {
                Step::Plan(plan, message) => {
                    self.memory = Some(Memory::new(&plan, fill, wakers)?);
                    self.channel.send(&message, None)?;
                }
                Step::Send(message, attachment) => {
                    let memory = self.memory.as_ref();
                    let file = match attachment {
                        Attachment::Nothing => None,
                        Attachment::Region => memory.map(Memory::file),
                        Attachment::Ring(direction, index) => {
                            memory.and_then(|memory| memory.event(direction, index))
                        }
                    };
                    self.channel.send(&message, file)?;
                }
                Step::Connected(name) => {
                    let memory = self.memory.take().ok_or(Reason::Refused("unexpected message"))?;
                    self.connected = true;
                    return Ok(Progress::Done(name, memory.into_links()));
                }
            }
        }
        Ok(Progress::Going)
    }
}
