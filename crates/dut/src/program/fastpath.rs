//! fastpath as the device, between two memifs or between the interfaces of a lab's device: its parameters enter; a
//! process of this program and what it counts leave.

mod configuration;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use engine::user_space::socket_name;
use fastpath::client::Client;
use fastpath::control::log::Log;
use fastpath::control::{Answer, Request, Show};
use lab::{InterfaceCounters, Namespace, SIDES};
use memif::Socket;
use nix::sys::memfd::{MFdFlags, memfd_create};
use results::record::{NodeRuntime, NodeRuntimes};
use wire::MacAddress;

use self::configuration::{Listening, Ports, Task};
use super::Site;
use super::private::{DIRECTORY, outside};

pub(super) use self::configuration::ROUTER;
pub use crate::access_list::Rules;

/// What `--dut` calls it.
pub const NAME: &str = "fastpath";
/// How the kernel serves AF_XDP where frames stay where the interfaces have them.
pub(super) const ZERO_COPY: &str = "zero-copy";
/// Where it listens for questions at the interfaces of a lab, in a directory of its own.
const CONTROL: &str = "fastpath.sock";
/// How long it is listened to at a time, until it runs.
const MOMENT: Duration = Duration::from_secs(5);
/// How long the router waits at its end for what it logs to be written.
const FAREWELL: Duration = Duration::from_millis(500);
/// The router's process: follows `configuration`, with an access list of `rules` and a table of `routes` if there are
/// any. All are files in memory without a name, which need no directory and go with the process.
///
/// # Errors
/// When they cannot be followed.
pub fn run(configuration: &str, rules: Option<Rules>, routes: Option<usize>) -> Result<()> {
    let table = routes.map(|count| Unnamed::write(&configuration::table(count))).transpose()?;
    let named = table.as_ref().map(|table| configuration::with_table(&table.path())).unwrap_or_default();
    let list = rules.map(configuration::access_list).unwrap_or_default();
    let file = Unnamed::write(&(named + configuration + &list))?;
    // The reader of standard error may have gone, or stand still.
    let log = Log::start(io::stderr(), "");
    let ended = fastpath::daemon::run(file.path().as_ref(), &|text| log.say(text));
    log.end(FAREWELL);
    ended
}

/// A file in memory without a name.
struct Unnamed(File);

impl Unnamed {
    fn write(text: &str) -> Result<Self> {
        let file =
            memfd_create(c"fastpath", MFdFlags::MFD_CLOEXEC).context("cannot make a file in memory")?;
        let mut file = File::from(file);
        file.write_all(text.as_bytes()).context("cannot write to memory")?;
        Ok(Self(file))
    }

    /// What this process can open it by, again and again, as long as this is kept.
    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }
}

/// fastpath, which may run.
pub(super) struct Fastpath {
    /// That of a lab's device, if it is to run there.
    namespace: Option<Namespace>,
    task: Task,
    ports: Ports,
    listening: Listening,
}

impl Fastpath {
    /// It between two memifs, where it will do as `parameters` say. It runs where we are and has no files, which needs no
    /// rights; it reaches no interface of the machine, since its configuration names none.
    pub fn prepare(parameters: &BTreeMap<String, String>) -> Self {
        Self::at(None, Ports::Memif, format!("@{}", socket_name()), parameters)
    }

    /// It between the interfaces of a lab's device, which is in `namespace`.
    ///
    /// # Errors
    /// When there is no room for its files.
    pub fn prepare_in(namespace: &Namespace, parameters: &BTreeMap<String, String>) -> Result<Self> {
        namespace.make_private(DIRECTORY)?;
        let control = format!("{DIRECTORY}/{CONTROL}");
        Ok(Self::at(Some(namespace.try_clone()?), Ports::AfXdp, control, parameters))
    }

    fn at(
        namespace: Option<Namespace>,
        ports: Ports,
        control: String,
        parameters: &BTreeMap<String, String>,
    ) -> Self {
        let listening = Listening { control, memifs: [socket_name(), socket_name()] };
        Self { namespace, task: Task::of(parameters), ports, listening }
    }

    /// Where it is to be started, if not where we are.
    pub fn namespace(&self) -> Option<&Namespace> {
        self.namespace.as_ref()
    }

    /// Where we find the process `pid` listening for questions.
    fn control(&self, pid: u32) -> String {
        match self.namespace {
            None => self.listening.control.clone(),
            Some(_) => outside(pid, CONTROL),
        }
    }

    /// Where it listens for the other end of each memif.
    pub fn sockets(&self) -> [Socket; 2] {
        self.listening.memifs.clone().map(Socket::Abstract)
    }

    /// Its addresses at port 0 and port 1, where frames are addressed to it.
    pub fn next_hops(&self) -> Option<[MacAddress; 2]> {
        self.task.is_router().then_some(SIDES.map(|side| side.interface_mac))
    }

    /// Whether the process `pid` forwards.
    pub fn is_ready(&self, pid: u32) -> bool {
        answers(self.control(pid).as_ref(), MOMENT)
    }

    /// What the process `pid` counted at its two interfaces since it started.
    pub fn counters(&self, pid: u32) -> Result<[InterfaceCounters; 2]> {
        let shown = self.client(pid)?.interfaces()?.interfaces;
        let counters = |number: usize| {
            let row = shown.iter().find(|row| row.name == self.task.interface(self.ports, number));
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
        let threads = self.client(pid)?.runtime()?.threads;
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
        let configuration =
            configuration::configuration(&self.task, self.ports, &self.listening, site, tester);
        let rules = self.task.rules.map(|rules| ["--rules".to_owned(), rules.to_string()]);
        let routes = self.task.routes.map(|routes| ["--routes".to_owned(), routes.to_string()]);
        let words = ["/proc/self/exe".to_owned(), "user-space-router".to_owned(), configuration];
        words.into_iter().chain([rules, routes].into_iter().flatten().flatten()).collect()
    }

    /// How the kernel serves the process `pid` by AF_XDP, at both interfaces of the lab's device.
    ///
    /// # Errors
    /// When it does not tell.
    pub fn af_xdp_mode(&self, pid: u32) -> Result<String> {
        let Answer::Hardware(hardware) = self.client(pid)?.ask(&Request::Show(Show::Hardware))? else {
            bail!("fastpath does not say what drives its interfaces");
        };
        let modes = hardware.devices.into_iter().map(|device| device.copying);
        Ok(match modes.collect::<Vec<_>>().as_slice() {
            [Some(zero), Some(one)] if zero == one => zero.to_string(),
            _ => "not the same at both interfaces, or not known".to_owned(),
        })
    }

    fn client(&self, pid: u32) -> Result<Client> {
        Ok(Client::connect(self.control(pid).as_ref())?)
    }
}

/// Whether a router answers at `socket` within `patience`. It listens there before it has its devices, and
/// answers once it forwards.
fn answers(socket: &Path, patience: Duration) -> bool {
    Client::connect_within(socket, patience).and_then(|mut client| client.interfaces()).is_ok()
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
}
