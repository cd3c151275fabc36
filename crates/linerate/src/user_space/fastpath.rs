//! fastpath as the device: a mode enters; its configuration and what it counts leave. It is a process of this
//! program.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use engine::user_space::room;
use fastpath::client::Client;
use lab::{InterfaceCounters, Namespace, SIDES, Side};
use results::record::{NodeRuntime, NodeRuntimes};
use wire::MacAddress;

use super::dut::Site;
use super::private::{self, DIRECTORY, outside, socket};
use crate::Ending;

/// What `--dut` calls it.
pub const NAME: &str = "fastpath";
/// What it is unless asked for something else.
pub const ROUTER: &str = "router";
/// Where it listens for questions, in its directory.
const CONTROL: &str = "fastpath.sock";
/// Bytes of a frame that an MTU does not count, FCS included.
const OVERHEAD: usize = 18;
/// How long it is listened to at a time, until it runs.
const MOMENT: Duration = Duration::from_secs(5);
/// The smallest MTU that it gets: a link's usual one.
const LEAST_MTU: usize = 1500;

#[derive(clap::Args)]
pub struct Args {
    /// The configuration, as text
    configuration: String,
}

/// The router's process: writes the configuration to a file of its own and follows it.
pub fn main(args: &Args) -> Result<Ending> {
    let file = PathBuf::from(DIRECTORY).join("fastpath.toml");
    fs::write(&file, &args.configuration).with_context(|| format!("cannot write {}", file.display()))?;
    fastpath::daemon::run(&file, &|text| eprintln!("{text}"))?;
    Ok(Ending::Done)
}

/// The command line of that process.
pub fn words(configuration: &str) -> Vec<String> {
    ["/proc/self/exe", "user-space-router", configuration].map(str::to_owned).into()
}

/// fastpath, which may run.
pub struct Fastpath {
    namespace: Namespace,
    mode: String,
}

impl Fastpath {
    /// A place for it, where it will do as `mode` says.
    ///
    /// # Errors
    /// When namespaces cannot be made.
    pub fn prepare(mode: &str) -> Result<Self> {
        Ok(Self { namespace: private::create()?, mode: mode.to_owned() })
    }

    /// Where it is to be started.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Its addresses at port 0 and port 1, where frames are addressed to it.
    pub fn next_hops(&self) -> Option<[MacAddress; 2]> {
        (self.mode == ROUTER).then_some(SIDES.map(|side| side.interface_mac))
    }

    /// Whether the process `pid` forwards.
    pub fn is_ready(&self, pid: u32) -> bool {
        answers(outside(pid, CONTROL).as_ref(), MOMENT)
    }

    /// What the process `pid` counted at its two interfaces since it started.
    pub fn counters(&self, pid: u32) -> Result<[InterfaceCounters; 2]> {
        let shown = client(pid)?.interfaces()?.interfaces;
        let counters = |number: usize| {
            let row = shown.iter().find(|row| row.name == interface(number));
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
}

/// Whether a router answers at `socket` within `patience`. It listens there before it has its devices, and
/// answers once it forwards.
fn answers(socket: &Path, patience: Duration) -> bool {
    Client::connect_within(socket, patience).and_then(|mut client| client.interfaces()).is_ok()
}

fn client(pid: u32) -> Result<Client> {
    Ok(Client::connect(outside(pid, CONTROL).as_ref())?)
}

/// What makes it do as `mode` says, between the `tester`'s two addresses.
pub fn configuration(mode: &str, site: &Site, tester: [MacAddress; 2]) -> String {
    let mut text = format!(
        "control = {{ socket = \"{DIRECTORY}/{CONTROL}\" }}\n\
         workers = {{ cores = [{}], precedence = \"urgent\" }}\n",
        site.core
    );
    // Writing to a string does not fail.
    for (number, side) in SIDES.into_iter().enumerate() {
        let _ = write!(
            text,
            "\n[[interface]]\nname = \"{}\"\n\
             device = \"memif:socket={DIRECTORY}/{},role=server,queues={},buffer={}\"\n\
             mac = \"{}\"\nmtu = {}\n",
            interface(number),
            socket(number),
            site.queues,
            room(site.max_frame_size),
            side.interface_mac,
            site.max_frame_size.saturating_sub(OVERHEAD).max(LEAST_MTU),
        );
        if mode == ROUTER {
            let own = side.interface_addresses.into_iter().zip(side.prefixes);
            let own: Vec<_> = own.map(|(address, prefix)| format!("\"{address}/{prefix}\"")).collect();
            let _ = writeln!(text, "addresses = [{}]", own.join(", "));
        } else {
            let _ = writeln!(text, "cross-connect = \"{}\"", interface(1 - number));
        }
    }
    if mode == ROUTER {
        for ((number, side), mac) in SIDES.into_iter().enumerate().zip(tester) {
            text += &beyond(&interface(number), side, mac);
        }
    }
    text
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

/// What it calls the interface at the tester's port `number`.
fn interface(number: usize) -> String {
    format!("memif{number}")
}

#[cfg(test)]
mod tests {
    use fastpath::control::server::Socket;
    use fastpath::control::{Answer, Reply};
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
        let site = Site { core: 1, spare: None, queues: 2, max_frame_size: 9216 };
        let router = configuration(ROUTER, &site, tester);
        let config = fastpath::config::Config::parse("router", &router).unwrap();
        assert_eq!((config.interfaces.len(), config.neighbours.len()), (2, 4), "{router}");
        assert!(router.contains("48.0.0.0/8") && router.contains("mtu = 9198"), "{router}");
        let cable = configuration("xconnect", &site, tester);
        let config = fastpath::config::Config::parse("cable", &cable).unwrap();
        assert_eq!((config.interfaces.len(), config.routes.len()), (2, 0), "{cable}");
    }
}
