//! A device of ours in user space: its name and a core enter; a process that forwards between two ports in
//! shared memory leaves, and where their other ends are. It dies with us, and leaves no files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use engine::dpdk::{room, socket_name};
use lab::dut::Passed;
use lab::{DutSpec, InterfaceCounters, NapiThread};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::counters::Counters;
use super::testpmd;
use crate::args::misuse;
use crate::generator::process::Process;

/// How long it may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// A device while it forwards. Dropping it ends it.
pub struct Dut {
    name: &'static str,
    parameters: BTreeMap<String, String>,
    core: usize,
    command: String,
    sockets: [String; 2],
    max_frame_size: usize,
    counters: Option<Counters>,
    process: Process,
}

impl Dut {
    /// Starts `spec` on `core`, with so many queues a port; frames of up to `max_frame_size` bytes, FCS
    /// included, fit.
    pub fn start(spec: &DutSpec, core: usize, queues: usize, max_frame_size: usize) -> Result<Self> {
        let sockets = [socket_name(), socket_name()];
        let mut parameters = spec.parameters().clone();
        let (words, counters) = match spec.name() {
            testpmd::NAME => {
                let mode = parameters.entry("mode".to_owned()).or_insert_with(|| "io".to_owned());
                (testpmd::words(mode, core, queues, room(max_frame_size), &sockets), None)
            }
            _ if spec.rules(0).is_some() => {
                let counters = Counters::create()?;
                (words(spec, [core, queues, max_frame_size], &sockets, &counters.path()), Some(counters))
            }
            name => {
                return Err(misuse(format!(
                    "{name} forwards between interfaces of the kernel: with --engine dpdk give --dut calibrated \
                     or --dut testpmd, or name ports with --port0 and --port1"
                )));
            }
        };
        let name = spec.name();
        let process = Process::start(None, core, &words, None)
            .with_context(|| format!("cannot start the device {name}"))?;
        let command = words.join(" ");
        let mut dut = Self { name, parameters, core, command, sockets, max_frame_size, counters, process };
        dut.wait_until_ready()?;
        testpmd::tidy_up();
        Ok(dut)
    }

    /// Waits until it forwards: before that it turns away who connects.
    fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let ready = match &self.counters {
                Some(counters) => counters.is_ready(),
                None => testpmd::is_ready(&self.process.said()?),
            };
            if ready {
                return Ok(());
            }
            if self.process.has_ended()? || Instant::now() > deadline {
                let said = self.process.said()?;
                let (name, reason) = (self.name, said.last_words().unwrap_or("it says nothing"));
                let remedy = if self.counters.is_none() { testpmd::REMEDY } else { "" };
                bail!("the device {name} does not start: {reason}{remedy}");
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

    /// Its command line.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// What it counted at its two ports since it started.
    pub fn counters(&self) -> Result<[InterfaceCounters; 2]> {
        let Some([zero, one]) = self.counted() else { return testpmd::ask(&self.process) };
        let port = |number, entered: Passed, left: Passed| InterfaceCounters {
            name: format!("{}'s port {number}", self.name),
            received: entered.frames,
            receive_dropped: 0,
            sent: left.forwarded,
            send_dropped: left.refused,
        };
        Ok([port(0, zero, one), port(1, one, zero)])
    }

    /// What became of the frames that it took, if it knows: entered at port 0, entered at port 1.
    pub fn counted(&self) -> Option<[Passed; 2]> {
        self.counters.as_ref().map(Counters::get)
    }

    /// Its threads, whose work is ours.
    pub fn threads(&self) -> Vec<NapiThread> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process.id())).into_iter().flatten().flatten();
        let ids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
        let thread = |pid| NapiThread { interface: self.name.to_owned(), pid, core: Some(self.core) };
        ids.map(thread).collect()
    }

    /// Holds it up until the result is dropped.
    pub fn pause(&self) -> Paused {
        let process = Pid::from_raw(self.process.id().cast_signed());
        let _ = kill(process, Signal::SIGSTOP);
        Paused(process)
    }

    /// The devices that are the other ends of its two ports.
    pub fn other_ends(&self) -> [String; 2] {
        let room = room(self.max_frame_size);
        let end = |number: usize| {
            let socket = &self.sockets[number];
            format!(
                "net_memif{number},role=client,id=0,bsize={room},rsize=10,socket={socket},socket-abstract=yes"
            )
        };
        [end(0), end(1)]
    }
}

/// A device that is held up.
pub struct Paused(Pid);

impl Drop for Paused {
    fn drop(&mut self) {
        let _ = kill(self.0, Signal::SIGCONT);
    }
}

/// The device that listens at `socket`, for port `number`.
pub fn server(number: usize, socket: &str) -> String {
    format!("net_memif{number},role=server,id=0,socket={socket},socket-abstract=yes")
}

/// The command line of a device that is this program itself; its core, its queues and the longest frame.
fn words(spec: &DutSpec, numbers: [usize; 3], [zero, one]: &[String; 2], counters: &Path) -> Vec<String> {
    let counters = counters.display().to_string();
    let [core, queues, size] = numbers.map(|number| number.to_string());
    let spec = spec.to_string();
    ["/proc/self/exe", "user-space-device", &spec, "--core", &core, "--queues", &queues]
        .into_iter()
        .chain(["--max-frame-size", &size, "--sockets", zero, one, "--counters", &counters])
        .map(str::to_owned)
        .collect()
}
