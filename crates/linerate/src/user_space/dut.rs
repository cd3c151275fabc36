//! A device of ours in user space: its name and a core enter; a process that forwards between two ports in
//! shared memory leaves, and where their other ends are. It dies with us, and leaves no files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use engine::user_space::{room, socket_name};
use lab::dut::Passed;
use lab::{DutSpec, InterfaceCounters, Namespace, NapiThread};
use memif::Socket;
use nix::sched::sched_getaffinity;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use results::record::NodeRuntimes;
use wire::MacAddress;

use super::counters::Counters;
use super::fastpath::Fastpath;
use super::vpp::Vpp;
use super::{fastpath, private, testpmd, vpp};
use crate::args::misuse;
use crate::generator::process::Process;

/// How long it may take to forward, or to take commands, on a machine that others share.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where a device is started, and what it must carry.
#[derive(Clone, Debug)]
pub struct Site {
    /// The core that it forwards on.
    pub core: usize,
    /// A core that neither it nor the tester needs, for what it does beside, if there is one.
    pub spare: Option<usize>,
    /// Queues of each port.
    pub queues: usize,
    /// The longest frame, FCS included.
    pub max_frame_size: usize,
}

/// A device while it forwards. Dropping it ends it.
pub struct Dut {
    name: &'static str,
    parameters: BTreeMap<String, String>,
    /// What it is, for the record.
    configuration: BTreeMap<String, String>,
    site: Site,
    /// Where it listens for the other ends of its two ports.
    sockets: [Socket; 2],
    program: Program,
    process: Process,
}

/// What the device is.
enum Program {
    /// This program itself, which writes these.
    Twin(Counters),
    Testpmd,
    Vpp(Vpp),
    Fastpath(Fastpath),
}

impl Dut {
    /// Starts `spec` at `site`, between ports of the tester that have the addresses `tester`.
    pub fn start(spec: &DutSpec, site: &Site, tester: [MacAddress; 2]) -> Result<Self> {
        let sockets = [socket_name(), socket_name()];
        let mut parameters = spec.parameters().clone();
        let mut mode =
            |default: &str| parameters.entry("mode".to_owned()).or_insert(default.to_owned()).clone();
        let (program, words) = match spec.name() {
            testpmd::NAME => {
                let room = room(site.max_frame_size);
                let words = testpmd::words(&mode("io"), site.core, site.queues, room, &sockets);
                (Program::Testpmd, words)
            }
            vpp::NAME => (Program::Vpp(Vpp::prepare(&mode(vpp::ROUTER))?), vpp::words(site)),
            fastpath::NAME => {
                let configuration = fastpath::configuration(&mode(fastpath::ROUTER), site, tester);
                let words = fastpath::words(&configuration);
                (Program::Fastpath(Fastpath::prepare(&mode(fastpath::ROUTER))?), words)
            }
            _ if spec.rules(0).is_some() => {
                let counters = Counters::create()?;
                let words = words(spec, site, &sockets, &counters.path());
                (Program::Twin(counters), words)
            }
            name => {
                return Err(misuse(format!(
                    "{name} forwards between interfaces of the kernel: with --engine dpdk give --dut calibrated, \
                     testpmd, vpp or fastpath, or name ports with --port0 and --port1"
                )));
            }
        };
        let name = spec.name();
        let process = Process::start(program.namespace(), site.core, &words, None)
            .with_context(|| format!("cannot start the device {name}"))?;
        let configuration = BTreeMap::from([("command".to_owned(), words.join(" "))]);
        let sockets = sockets.map(Socket::Abstract);
        let mut dut = Self { name, parameters, configuration, site: site.clone(), sockets, program, process };
        dut.wait_until_ready()?;
        let pid = dut.process.id();
        match &dut.program {
            Program::Twin(_) => {}
            Program::Testpmd => testpmd::tidy_up(),
            Program::Vpp(vpp) => {
                dut.configuration.extend(vpp.configure(pid, site, tester)?);
                dut.sockets = private::sockets(pid);
            }
            Program::Fastpath(_) => dut.sockets = private::sockets(pid),
        }
        Ok(dut)
    }

    /// Waits until it forwards, or takes commands: before that it turns away who connects.
    fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let ready = match &self.program {
                Program::Twin(counters) => counters.is_ready(),
                Program::Testpmd => testpmd::is_ready(&self.process.said()?),
                Program::Vpp(vpp) => vpp.is_ready(self.process.id()),
                Program::Fastpath(fastpath) => fastpath.is_ready(self.process.id()),
            };
            if ready {
                return Ok(());
            }
            if self.process.has_ended()? || Instant::now() > deadline {
                let said = self.process.said()?;
                let (name, reason) = (self.name, said.last_words().unwrap_or("it says nothing"));
                bail!("the device {name} does not start: {reason}{}", self.program.remedy());
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// What it is called.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What was set in it.
    pub fn parameters(&self) -> &BTreeMap<String, String> {
        &self.parameters
    }

    /// Its command line, and what else was made of it.
    pub fn configuration(&self) -> &BTreeMap<String, String> {
        &self.configuration
    }

    /// Its addresses at port 0 and port 1, if it is a router.
    pub fn next_hops(&self) -> Option<[MacAddress; 2]> {
        match &self.program {
            Program::Vpp(vpp) => vpp.next_hops(),
            Program::Fastpath(fastpath) => fastpath.next_hops(),
            Program::Twin(_) | Program::Testpmd => None,
        }
    }

    /// What it counted at its two ports since it started.
    pub fn counters(&self) -> Result<[InterfaceCounters; 2]> {
        let port = |number, entered: Passed, left: Passed| InterfaceCounters {
            name: format!("{}'s port {number}", self.name),
            received: entered.frames,
            receive_dropped: 0,
            sent: left.forwarded,
            send_dropped: left.refused,
        };
        match &self.program {
            Program::Twin(counters) => {
                let [zero, one] = counters.get();
                Ok([port(0, zero, one), port(1, one, zero)])
            }
            Program::Testpmd => testpmd::ask(&self.process),
            Program::Vpp(vpp) => vpp.counters(self.process.id()),
            Program::Fastpath(fastpath) => fastpath.counters(self.process.id()),
        }
    }

    /// What became of the frames that it took, if it knows: entered at port 0, entered at port 1.
    pub fn counted(&self) -> Option<[Passed; 2]> {
        match &self.program {
            Program::Twin(counters) => Some(counters.get()),
            Program::Testpmd | Program::Vpp(_) | Program::Fastpath(_) => None,
        }
    }

    /// What its nodes have done since it started, if it is a graph of them.
    pub fn nodes(&self) -> Result<NodeRuntimes> {
        match &self.program {
            Program::Vpp(vpp) => vpp.nodes(self.process.id()),
            Program::Fastpath(fastpath) => fastpath.nodes(self.process.id()),
            Program::Twin(_) | Program::Testpmd => Ok(NodeRuntimes::new()),
        }
    }

    /// Its threads on its core, whose work is ours.
    pub fn threads(&self) -> Vec<NapiThread> {
        let core = self.site.core;
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process.id())).into_iter().flatten().flatten();
        let ids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
        let is_there = |pid: &i32| {
            let cores = sched_getaffinity(Pid::from_raw(*pid));
            cores.is_ok_and(|cores| cores.is_set(core).unwrap_or(false))
        };
        let thread = |pid| NapiThread { interface: self.name.to_owned(), pid, core: Some(core) };
        ids.filter(is_there).map(thread).collect()
    }

    /// Holds it up until the result is dropped.
    pub fn pause(&self) -> Paused {
        let process = Pid::from_raw(self.process.id().cast_signed());
        let _ = kill(process, Signal::SIGSTOP);
        Paused(process)
    }

    /// Where it listens for the other ends of its two ports.
    pub fn sockets(&self) -> &[Socket; 2] {
        &self.sockets
    }
}

impl Program {
    /// Where it runs, if not where we are.
    fn namespace(&self) -> Option<&Namespace> {
        match self {
            Self::Vpp(vpp) => Some(vpp.namespace()),
            Self::Fastpath(fastpath) => Some(fastpath.namespace()),
            Self::Twin(_) | Self::Testpmd => None,
        }
    }

    /// What to do where it does not start.
    fn remedy(&self) -> String {
        match self {
            Self::Twin(_) | Self::Fastpath(_) => String::new(),
            Self::Testpmd => "; is Debian's dpdk-dev installed (`make setup`)?".to_owned(),
            Self::Vpp(_) => format!("; {}", vpp::REMEDY),
        }
    }
}

/// A device that is held up.
pub struct Paused(Pid);

impl Drop for Paused {
    fn drop(&mut self) {
        let _ = kill(self.0, Signal::SIGCONT);
    }
}

/// The command line of a device that is this program itself.
fn words(spec: &DutSpec, site: &Site, [zero, one]: &[String; 2], counters: &Path) -> Vec<String> {
    let counters = counters.display().to_string();
    let (queues, spec) = (site.queues.to_string(), spec.to_string());
    ["/proc/self/exe", "user-space-device", &spec, "--queues", &queues, "--sockets", zero, one]
        .into_iter()
        .chain(["--counters", &counters])
        .map(str::to_owned)
        .collect()
}
