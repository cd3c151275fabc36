//! fastpath as the device, between two memifs or between the interfaces of a lab's device: a mode enters; its
//! configuration and what it counts leave. It is a process of this program.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use anyhow::{Context, Result, bail};
use engine::user_space::room;
use fastpath::client::Client;
use fastpath::control::log::Log;
use fastpath::control::{Answer, Request, Show};
use lab::{InterfaceCounters, Namespace, SIDES, Side};
use results::record::{NodeRuntime, NodeRuntimes};
use wire::MacAddress;

use super::private::{self, DIRECTORY, outside, socket};
use super::{ACL, MODE, Site};
use crate::workers::Spread;

/// What `--dut` calls it.
pub const NAME: &str = "fastpath";
/// What it is unless asked for something else.
pub(super) const ROUTER: &str = "router";
/// The name of its access list.
const LIST: &str = "rules";
/// Where it listens for questions, in its directory.
const CONTROL: &str = "fastpath.sock";
/// How the kernel serves AF_XDP where frames stay where the interfaces have them.
pub(super) const ZERO_COPY: &str = "zero-copy";
/// Bytes of a frame that an MTU does not count, FCS included.
const OVERHEAD: usize = wire::size::ETHERNET as usize;
/// How long it is listened to at a time, until it runs.
const MOMENT: Duration = Duration::from_secs(5);
/// How long the router waits at its end for what it logs to be written.
const FAREWELL: Duration = Duration::from_millis(500);
/// The smallest MTU that it gets: a link's usual one.
const LEAST_MTU: usize = 1500;

/// The router's process: writes `configuration`, with an access list of `rules` if there are any, to a file of its own
/// and follows it.
///
/// # Errors
/// When it cannot be followed.
pub fn run(configuration: &str, rules: Option<usize>) -> Result<()> {
    let file = PathBuf::from(DIRECTORY).join("fastpath.toml");
    let list = rules.map(access_list).unwrap_or_default();
    fs::write(&file, configuration.to_owned() + &list)
        .with_context(|| format!("cannot write {}", file.display()))?;
    // The reader of standard error may have gone, or stand still.
    let log = Log::start(io::stderr(), "");
    let ended = fastpath::daemon::run(&file, &|text| log.say(text));
    log.end(FAREWELL);
    ended
}

/// fastpath, which may run.
pub(super) struct Fastpath {
    namespace: Namespace,
    task: Task,
    ports: Ports,
}

/// What it is to do.
struct Task {
    mode: String,
    /// Rules of an access list that match nothing, before one that permits all; they are for the process to write, as
    /// its command line has no room for thousands.
    rules: Option<usize>,
    /// How packets come to its workers.
    spread: Spread,
}

impl Task {
    /// What the parameters of the device say.
    fn of(parameters: &BTreeMap<String, String>) -> Self {
        let mode = parameters.get(MODE).cloned().unwrap_or_default();
        let rules = parameters.get(ACL).and_then(|rules| rules.parse().ok());
        Self { mode, rules, spread: Spread::of(parameters) }
    }
}

/// What it sends and receives by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ports {
    /// Memory that it shares with the tester.
    Memif,
    /// The interfaces of the lab's device.
    AfXdp,
}

impl Fastpath {
    /// A place for it between two memifs, where it will do as `parameters` say.
    ///
    /// # Errors
    /// When namespaces cannot be made.
    pub fn prepare(parameters: &BTreeMap<String, String>) -> Result<Self> {
        Ok(Self { namespace: private::create()?, task: Task::of(parameters), ports: Ports::Memif })
    }

    /// A place for it between the interfaces of a lab's device, which is in `namespace`.
    ///
    /// # Errors
    /// When there is no room for its files.
    pub fn prepare_in(namespace: &Namespace, parameters: &BTreeMap<String, String>) -> Result<Self> {
        namespace.make_private(DIRECTORY)?;
        Ok(Self { namespace: namespace.try_clone()?, task: Task::of(parameters), ports: Ports::AfXdp })
    }

    /// Where it is to be started.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Its addresses at port 0 and port 1, where frames are addressed to it.
    pub fn next_hops(&self) -> Option<[MacAddress; 2]> {
        (self.task.mode == ROUTER).then_some(SIDES.map(|side| side.interface_mac))
    }

    /// Whether the process `pid` forwards.
    pub fn is_ready(&self, pid: u32) -> bool {
        answers(outside(pid, CONTROL).as_ref(), MOMENT)
    }

    /// What the process `pid` counted at its two interfaces since it started.
    pub fn counters(&self, pid: u32) -> Result<[InterfaceCounters; 2]> {
        let shown = client(pid)?.interfaces()?.interfaces;
        let counters = |number: usize| {
            let row = shown.iter().find(|row| row.name == self.ports.interface(number));
            row.map(|row| InterfaceCounters {
                name: format!("{NAME}'s port {number}"),
                received: row.rx_packets,
                receive_dropped: row.drops,
                sent: row.tx_packets,
                send_dropped: row.tx_no_room,
            })
        };
        counters(0)
            .zip(counters(1))
            .map(|(zero, one)| [zero, one])
            .context("fastpath has lost its interfaces")
    }

    /// What the nodes of the process `pid` did since it started.
    pub fn nodes(&self, pid: u32) -> Result<NodeRuntimes> {
        let threads = client(pid)?.runtime()?.threads;
        let rows = threads.into_iter().flat_map(|thread| {
            thread.nodes.into_iter().map(move |row| {
                let (calls, vectors, suspends, clocks) = (row.calls, row.vectors, row.suspends, row.clocks);
                ((thread.name.clone(), row.name), NodeRuntime { calls, vectors, suspends, clocks })
            })
        });
        Ok(rows.collect::<BTreeMap<_, _>>())
    }

    /// The command line of its process, between the `tester`'s two addresses.
    pub fn words(&self, site: &Site, tester: [MacAddress; 2]) -> Vec<String> {
        let configuration = configuration(&self.task, self.ports, site, tester);
        let rules = self.task.rules.map(|rules| ["--rules".to_owned(), rules.to_string()]);
        let words = ["/proc/self/exe".to_owned(), "user-space-router".to_owned(), configuration];
        words.into_iter().chain(rules.into_iter().flatten()).collect()
    }

    /// How the kernel serves the process `pid` by AF_XDP, at both interfaces of the lab's device.
    ///
    /// # Errors
    /// When it does not tell.
    pub fn af_xdp_mode(&self, pid: u32) -> Result<String> {
        let Answer::Hardware(hardware) = client(pid)?.ask(&Request::Show(Show::Hardware))? else {
            bail!("fastpath does not say what drives its interfaces");
        };
        let modes = hardware.devices.into_iter().map(|device| device.copying);
        Ok(match modes.collect::<Vec<_>>().as_slice() {
            [Some(zero), Some(one)] if zero == one => zero.to_string(),
            _ => "not the same at both interfaces, or not known".to_owned(),
        })
    }
}

impl Ports {
    /// What the router calls the interface at the tester's port `number`.
    fn interface(self, number: usize) -> String {
        match self {
            Self::Memif => format!("memif{number}"),
            Self::AfXdp => SIDES[number].interface.to_owned(),
        }
    }

    /// What it sends and receives by there, from so many `queues`.
    fn device(self, number: usize, queues: usize, site: &Site) -> String {
        match self {
            Self::Memif => format!(
                "memif:socket={DIRECTORY}/{},role=server,queues={},buffer={}",
                socket(number),
                queues,
                room(site.max_frame_size),
            ),
            Self::AfXdp if queues == 1 => format!("af_xdp:{}", SIDES[number].interface),
            Self::AfXdp => format!("af_xdp:{},queues={queues}", SIDES[number].interface),
        }
    }

    /// What its worker does at `site` while no packet comes. At interfaces of the kernel it shares its core with the
    /// threads that hand it the packets and with those that set up and take down the lab. It goes before them, and
    /// leaves them the core while it has nothing to do: otherwise they would receive all the time under a load that is
    /// too high, and it would forward next to nothing.
    /// The same where a worker shares its core with the tester.
    fn idle(self, site: &Site) -> &'static str {
        match self {
            Self::Memif if !site.shared => "poll",
            Self::Memif | Self::AfXdp => "sleep",
        }
    }
}

/// Whether a router answers at `socket` within `patience`. It listens there before it has its devices, and
/// answers once it forwards.
fn answers(socket: &Path, patience: Duration) -> bool {
    Client::connect_within(socket, patience).and_then(|mut client| client.interfaces()).is_ok()
}

fn client(pid: u32) -> Result<Client> {
    Ok(Client::connect(outside(pid, CONTROL).as_ref())?)
}

/// What makes it do its `task` by `ports`, between the `tester`'s two addresses, but for the access list.
fn configuration(task: &Task, ports: Ports, site: &Site, tester: [MacAddress; 2]) -> String {
    let Spread { queues, rss } = task.spread;
    let queues = queues.unwrap_or(site.queues);
    let mut text = format!(
        "control = {{ socket = \"{DIRECTORY}/{CONTROL}\" }}\n\
         workers = {{ cores = {:?}, idle = \"{}\", precedence = \"urgent\" }}\n",
        site.cores,
        ports.idle(site)
    );
    // Writing to a string does not fail.
    for (number, side) in SIDES.into_iter().enumerate() {
        let _ = write!(
            text,
            "\n[[interface]]\nname = \"{}\"\ndevice = \"{}\"\nmac = \"{}\"\nmtu = {}\n{}",
            ports.interface(number),
            ports.device(number, queues, site),
            side.interface_mac,
            site.max_frame_size.saturating_sub(OVERHEAD).max(LEAST_MTU),
            if rss { "rss = true\n" } else { "" },
        );
        if task.mode == ROUTER {
            let own = side.interface_addresses.into_iter().zip(side.prefixes);
            let own: Vec<_> = own.map(|(address, prefix)| format!("\"{address}/{prefix}\"")).collect();
            let _ = writeln!(text, "addresses = [{}]", own.join(", "));
            if task.rules.is_some() {
                let _ = writeln!(text, "access-list-in = \"{LIST}\"");
            }
        } else {
            let _ = writeln!(text, "cross-connect = \"{}\"", ports.interface(1 - number));
        }
    }
    if task.mode == ROUTER {
        for ((number, side), mac) in SIDES.into_iter().enumerate().zip(tester) {
            text += &beyond(&ports.interface(number), side, mac);
        }
    }
    text
}

/// An access list whose first `rules` deny hosts that nobody here has: those of the bench of nftables.
fn access_list(rules: usize) -> String {
    let deny = |at: usize| {
        let (high, low) = (at / 250, at % 250);
        format!("    {{ action = \"deny\", source = \"10.0.{high}.{low}/32\" }},\n")
    };
    let denied: String = (0..rules).map(deny).collect();
    format!("\n[[access-list]]\nname = \"{LIST}\"\nrules = [\n{denied}    {{ action = \"permit\" }},\n]\n")
}

/// The tester beyond an interface at `mac`, and the networks beyond that.
fn beyond(interface: &str, side: Side, mac: MacAddress) -> String {
    let mut text = String::new();
    for hop in side.port_addresses {
        let _ = write!(
            text,
            "\n[[neighbour]]\ninterface = \"{interface}\"\naddress = \"{hop}\"\nmac = \"{mac}\"\n"
        );
        for (network, prefix) in side.networks {
            if network.is_ipv4() == hop.is_ipv4() {
                let _ = write!(
                    text,
                    "\n[[route]]\nprefix = \"{network}/{prefix}\"\n\
                     via = [{{ gateway = \"{hop}\", interface = \"{interface}\" }}]\n"
                );
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use fastpath::control::Reply;
    use fastpath::control::server::Socket;
    use fastpath::show::interfaces::Interfaces;

    use super::*;

    #[test]
    fn it_is_not_ready_while_it_listens_and_answers_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("control");
        let moment = Duration::from_millis(10);
        assert!(!answers(&path, moment), "nobody listens");
        let socket = Socket::open(&path).unwrap();
        assert!(!answers(&path, moment), "it only listens");
        socket.serve(|_| Reply::Answer(Answer::Interfaces(Interfaces { interfaces: Vec::new() }))).unwrap();
        assert!(answers(&path, Duration::from_secs(60)));
    }

    #[test]
    fn its_configuration_is_sound_in_every_mode() {
        let tester = [MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 1, 1])];
        let site = Site { cores: vec![1, 3], shared: false, spare: None, queues: 2, max_frame_size: 9216 };
        for ports in [Ports::Memif, Ports::AfXdp] {
            let spread = Spread { queues: Some(4), rss: true };
            let task = |mode: &str, rules| Task { mode: mode.to_owned(), rules, spread };
            let router = configuration(&task(ROUTER, None), ports, &site, tester);
            let config = fastpath::config::Config::parse("router", &router).unwrap();
            assert_eq!((config.interfaces.len(), config.neighbours.len()), (2, 4), "{router}");
            assert!(router.contains("48.0.0.0/8") && router.contains("mtu = 9198"), "{router}");
            assert_eq!(config.workers.cores, [1, 3]);
            assert!(
                router.contains(if ports == Ports::Memif { "\"poll\"" } else { "\"sleep\"" }),
                "{router}"
            );
            assert!(router.contains("queues=4") && config.interfaces.iter().all(|it| it.rss), "{router}");
            for rules in [0, 1000, 9999] {
                let filtered = configuration(&task(ROUTER, Some(rules)), ports, &site, tester);
                let config =
                    fastpath::config::Config::parse("filtered", &(filtered + &access_list(rules))).unwrap();
                assert_eq!(config.access_lists[LIST].len(), rules + 1);
                assert!(config.interfaces.iter().all(|interface| interface.filters.input.is_some()));
            }
            let cable = configuration(&task("xconnect", None), ports, &site, tester);
            let config = fastpath::config::Config::parse("cable", &cable).unwrap();
            assert_eq!((config.interfaces.len(), config.routes.len()), (2, 0), "{cable}");
        }
    }
}
