//! A device that Linerate starts in user space: its name and a core enter; a process leaves that forwards
//! between two ports in shared memory, and where their other ends are, or that forwards between the
//! interfaces of a lab's device, or, as a virtual machine, at a lab's ports themselves.
//! It dies with us, and leaves no files.

mod counters;
pub mod fastpath;
pub mod forward;
mod private;
pub mod testpmd;
pub mod vm;
pub mod vpp;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use engine::user_space::{room, socket_name};
use lab::{Device, InterfaceCounters, Lab, Namespace, NapiThread, SIDES};
use memif::Socket;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use programs::Process;
use results::record::NodeRuntimes;
use scheduling::Cores;
use wire::MacAddress;
use wording::usage::misuse;

use self::counters::Counters;
use self::fastpath::Fastpath;
use self::testpmd::Testpmd;
use self::vm::Vm;
use self::vpp::Vpp;
use crate::fastpath::has_shortcuts;
use crate::{DutSpec, Passed};

/// How long it may take to forward, or to take commands, on a machine that others share.
const PATIENCE: Duration = Duration::from_secs(60);
/// The parameter that says what a device does.
const MODE: &str = "mode";
/// The parameter that gives a router a table of so many routes.
const ROUTES: &str = "routes";
/// The parameter that has it forward in a VLAN.
const VLAN: &str = "vlan";
/// How the kernel serves a device that takes frames by AF_XDP, in its configuration.
const AF_XDP: &str = "af_xdp";

/// Where a device is started, and what it must carry.
#[derive(Clone, Debug)]
pub struct Site {
    /// The core of each of its workers, of which the first is the device's.
    pub cores: Vec<usize>,
    /// Whether the tester works on one of these, too.
    pub shared: bool,
    /// A core that neither it nor the tester needs, for what it does beside, if there is one.
    pub spare: Option<usize>,
    /// Queues of each port.
    pub queues: usize,
    /// The longest frame, FCS included.
    pub max_frame_size: usize,
}

impl Site {
    /// The core that it forwards on, or its first worker.
    fn core(&self) -> usize {
        self.cores.first().copied().unwrap_or_default()
    }
}

/// A device while it forwards. Dropping it ends it.
pub struct Dut {
    name: &'static str,
    parameters: BTreeMap<String, String>,
    /// What it is, for the record.
    configuration: BTreeMap<String, String>,
    /// Of each of its workers.
    cores: Vec<usize>,
    program: Program,
    process: Process,
}

/// What a device forwards between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Interfaces of the kernel.
    Kernel,
    /// Ports of user space.
    UserSpace,
    /// Either.
    Both,
}

/// What the device `spec` forwards between.
#[must_use]
pub fn reach(spec: &DutSpec) -> Reach {
    match spec.name() {
        testpmd::NAME | vpp::NAME => Reach::UserSpace,
        fastpath::NAME => Reach::Both,
        _ if spec.rules(0).is_some() => Reach::Both,
        _ => Reach::Kernel,
    }
}

/// What the device is.
enum Program {
    /// This program itself, which writes these counters and listens at these sockets.
    Twin(Counters, [String; 2]),
    /// It listens at these sockets.
    Testpmd(Testpmd, [String; 2]),
    Vpp(Vpp),
    Fastpath(Fastpath),
    Vm(Box<Vm>),
}

impl Dut {
    /// Starts `spec` at `site`, between ports of the tester that have the addresses `tester`.
    pub fn start(spec: &DutSpec, site: &Site, tester: [MacAddress; 2]) -> Result<Self> {
        let parameters = parameters(spec);
        let mode = || parameters.get(MODE).map_or("", String::as_str);
        let sockets = [socket_name(), socket_name()];
        let (program, words) = match spec.name() {
            testpmd::NAME => {
                let testpmd = Testpmd::prepare();
                let room = room(site.max_frame_size);
                let words = testpmd.words(mode(), site.core(), site.queues, room, &sockets);
                (Program::Testpmd(testpmd, sockets), words)
            }
            vpp::NAME => {
                let words = vpp::words(site, &parameters);
                (Program::Vpp(Vpp::prepare(&parameters)?), words)
            }
            fastpath::NAME => {
                if has_shortcuts(&parameters) {
                    return Err(misuse(
                        "the kernel has shortcuts between its own interfaces alone: leave --engine out, or shortcuts=on",
                    ));
                }
                let fastpath = Fastpath::prepare(&parameters);
                let words = fastpath.words(site, tester);
                (Program::Fastpath(fastpath), words)
            }
            _ if spec.rules(0).is_some() => {
                let counters = Counters::create()?;
                let words = words(spec, site, &sockets, &counters.path());
                (Program::Twin(counters, sockets), words)
            }
            name => {
                return Err(misuse(format!(
                    "{name} forwards between interfaces of the kernel, which --engine dpdk and memif do not reach: leave \
                     --engine out, choose --dut calibrated, testpmd, vpp or fastpath, or name ports with --port0 and --port1"
                )));
            }
        };
        let mut dut = Self::launch(spec, program, &words, &site.cores)?;
        match &dut.program {
            Program::Twin(..) | Program::Fastpath(_) | Program::Vm(_) => {}
            Program::Testpmd(testpmd, _) => testpmd.tidy_up(),
            Program::Vpp(vpp) => {
                let configured = vpp.configure(dut.process.id(), site, tester);
                // Where it has ended, its last words say more than that it does not answer.
                dut.configuration.extend(configured.map_err(|error| dut.check().err().unwrap_or(error))?);
            }
        }
        Ok(dut)
    }

    /// Starts the program that the device of `lab` is, between the device's interfaces, or at the ports where these are
    /// taps; `None` where the kernel is the device. Frames of up to `max_frame_size` bytes fit.
    pub fn start_in(lab: &Lab, max_frame_size: usize) -> Result<Option<Self>> {
        let spec = &**lab.dut();
        let parameters = parameters(spec);
        if spec.name() == vm::NAME {
            let vm = Vm::prepare(lab, &parameters, max_frame_size)?;
            let (words, facts) = (vm.words()?, vm.facts());
            let mut dut =
                Self::launch(spec, Program::Vm(Box::new(vm)), &words, &lab.placement().dut_workers)?;
            dut.configuration.extend(facts);
            return Ok(Some(dut));
        }
        if spec.name() != fastpath::NAME {
            return Ok(None);
        }
        let site = Site {
            cores: lab.placement().dut_workers.clone(),
            shared: lab.placement().shares_dut_cores(),
            spare: None,
            queues: 1,
            max_frame_size,
        };
        let fastpath = Fastpath::prepare_in(lab.dut_namespace(), &parameters)?;
        let words = fastpath.words(&site, SIDES.map(|side| side.port_mac));
        let mut dut = Self::launch(spec, Program::Fastpath(fastpath), &words, &site.cores)?;
        // The kernel may have replaced the threads when the router attached its program.
        lab.pin().context("cannot keep the device off the generator's core")?;
        if let Program::Fastpath(fastpath) = &dut.program {
            let mode = fastpath.af_xdp_mode(dut.process.id())?;
            dut.configuration.insert(AF_XDP.to_owned(), mode);
        }
        Ok(Some(dut))
    }

    /// Starts `program` by `words` on `cores`, and waits until it forwards or takes commands.
    fn launch(spec: &dyn Device, program: Program, words: &[String], cores: &[usize]) -> Result<Self> {
        let name = spec.name();
        let process = Process::start(program.namespace(), cores, words, program.input())
            .with_context(|| format!("cannot start the device {name}"))?;
        let configuration = BTreeMap::from([("command".to_owned(), words.join(" "))]);
        let (parameters, cores) = (parameters(spec), cores.to_vec());
        let mut dut = Self { name, parameters, configuration, cores, program, process };
        dut.wait_until_ready()?;
        Ok(dut)
    }

    /// Waits until it forwards, or takes commands: before that it turns away who connects.
    fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let ready = match &self.program {
                Program::Twin(counters, _) => counters.is_ready(),
                Program::Testpmd(..) => testpmd::is_ready(&self.process.said()?),
                Program::Vpp(vpp) => vpp.is_ready(self.process.id()),
                Program::Fastpath(fastpath) => fastpath.is_ready(self.process.id()),
                Program::Vm(vm) => vm.is_ready(),
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

    /// What a reader of results should know of it.
    pub fn note(&self) -> Option<String> {
        if let Program::Vm(vm) = &self.program {
            return Some(vm.note(&self.cores));
        }
        let mode = self.configuration.get(AF_XDP).filter(|mode| !mode.starts_with(fastpath::ZERO_COPY))?;
        let which = if has_shortcuts(&self.parameters) {
            "each of them here that takes no shortcut in the kernel"
        } else {
            "each of them here"
        };
        Some(format!("{} takes and sends frames by AF_XDP, which copies {which} (mode: {mode})", self.name))
    }

    /// Its addresses at port 0 and port 1, if it is a router.
    pub fn next_hops(&self) -> Option<[MacAddress; 2]> {
        match &self.program {
            Program::Vpp(vpp) => vpp.next_hops(),
            Program::Fastpath(fastpath) => fastpath.next_hops(),
            Program::Twin(..) | Program::Testpmd(..) | Program::Vm(_) => None,
        }
    }

    /// The virtual machine, if it is one.
    pub fn machine(&self) -> Option<&Vm> {
        if let Program::Vm(vm) = &self.program { Some(vm) } else { None }
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
            Program::Twin(counters, _) => {
                let [zero, one] = counters.get();
                Ok([port(0, zero, one), port(1, one, zero)])
            }
            Program::Testpmd(..) => testpmd::ask(&self.process),
            Program::Vpp(vpp) => vpp.counters(self.process.id()),
            Program::Fastpath(fastpath) => fastpath.counters(self.process.id()),
            Program::Vm(_) => bail!("a virtual machine is asked over its console"),
        }
    }

    /// What became of the frames that it took, if it knows: entered at port 0, entered at port 1.
    pub fn counted(&self) -> Option<[Passed; 2]> {
        match &self.program {
            Program::Twin(counters, _) => Some(counters.get()),
            Program::Testpmd(..) | Program::Vpp(_) | Program::Fastpath(_) | Program::Vm(_) => None,
        }
    }

    /// What its nodes have done since it started, if it is a graph of them.
    pub fn nodes(&self) -> Result<NodeRuntimes> {
        match &self.program {
            Program::Vpp(vpp) => vpp.nodes(self.process.id()),
            Program::Fastpath(fastpath) => fastpath.nodes(self.process.id()),
            Program::Twin(..) | Program::Testpmd(..) | Program::Vm(_) => Ok(NodeRuntimes::new()),
        }
    }

    /// Its threads on its cores, whose work is ours.
    pub fn threads(&self) -> Vec<NapiThread> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process.id())).into_iter().flatten().flatten();
        let ids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
        let thread = |pid| {
            let on = Cores::of_thread(Pid::from_raw(pid)).ok()?;
            let core = self.cores.iter().copied().find(|core| on.has(*core))?;
            Some(NapiThread { interface: self.name.to_owned(), pid, core: Some(core) })
        };
        ids.filter_map(thread).collect()
    }

    /// Holds it up until the result is dropped.
    pub fn pause(&self) -> Paused {
        let process = Pid::from_raw(self.process.id().cast_signed());
        let _ = kill(process, Signal::SIGSTOP);
        Paused(process)
    }

    /// Where it listens for the other ends of its two ports.
    pub fn sockets(&self) -> [Socket; 2] {
        match &self.program {
            Program::Twin(_, names) | Program::Testpmd(_, names) => names.clone().map(Socket::Abstract),
            Program::Vpp(_) | Program::Vm(_) => private::sockets(self.process.id()),
            Program::Fastpath(fastpath) => fastpath.sockets(),
        }
    }

    /// Why it forwards no more, once its process has ended.
    ///
    /// # Errors
    /// What it said last.
    pub fn check(&self) -> Result<()> {
        if !self.process.is_over() {
            return Ok(());
        }
        let said = self.process.said()?;
        bail!("the device {} has ended: {}", self.name, said.last_words().unwrap_or("it does not say why"))
    }
}

impl Program {
    /// Where it runs, if not where we are.
    fn namespace(&self) -> Option<&Namespace> {
        match self {
            Self::Vpp(vpp) => Some(vpp.namespace()),
            Self::Fastpath(fastpath) => fastpath.namespace(),
            Self::Vm(vm) => Some(vm.namespace()),
            Self::Testpmd(testpmd, _) => testpmd.namespace(),
            Self::Twin(..) => None,
        }
    }

    /// The bytes of the file that it reads, if there is one.
    fn input(&self) -> Option<&[u8]> {
        if let Self::Vm(vm) = self { vm.input() } else { None }
    }

    /// What to do where it does not start.
    fn remedy(&self) -> String {
        match self {
            Self::Twin(..) | Self::Fastpath(_) | Self::Vm(_) => String::new(),
            Self::Testpmd(..) => "; is Debian's dpdk-dev installed (`make setup`)?".to_owned(),
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

/// What is set in the device, and the mode that it has where none is.
fn parameters(spec: &dyn Device) -> BTreeMap<String, String> {
    let mut parameters = spec.parameters().clone();
    let mode = match spec.name() {
        testpmd::NAME => "io",
        vpp::NAME => vpp::ROUTER,
        fastpath::NAME => fastpath::ROUTER,
        _ => return parameters,
    };
    parameters.entry(MODE.to_owned()).or_insert(mode.to_owned());
    parameters
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
