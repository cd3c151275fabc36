//! Generators in user space: a program, ours or testpmd, that sends through memory shared with Linerate's
//! own sink, which counts, or onto a port that drops all, where it alone counts.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use engine::memif::stream;
use engine::user_space::{Stream, socket_name};
use programs::{Process, Said, number_after};
use testbed::Testbed;
use testbed::target::{EngineName, Named, Place};
use testbed::user_space::UserSpace;
use testbed::user_space::memif::{Ends, dpdk_server};
use traffic::tunable::Size;
use traffic::{Directions, FrameTable, Profile, Tunables};
use wire::size;
use wording::usage::misuse;

use super::ground::{Count, Ground, Started};
use super::program::{Program, Target, Task};
use super::testpmd::SENT;
use crate::datagram::{Datagram, MTU};

/// How long a program may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// What testpmd says when it sends, if it is not asked for anything.
const READY: &str = "Press enter to exit";
/// How long it may take to start.
const START: Duration = Duration::from_secs(10);
/// How often to look for the answer: it is there at once, and the moment matters.
const LOOK: Duration = Duration::from_micros(200);

/// What keeps `program` from being measured here, which sends in user space.
pub fn refusal(program: &dyn Program) -> Option<String> {
    if program.target() == Target::Null {
        let absent = "a port that drops all is DPDK's, which this linerate was built without: build it with \
                      --features dpdk";
        return (!cfg!(feature = "dpdk")).then(|| absent.to_owned());
    }
    let cores = lab::placement::online().unwrap_or_default().len();
    (cores < 2).then(|| "a sink in user space needs a core of its own, and there is one".to_owned())
}

/// `device` with the two ports that `program` is measured between.
pub fn testbed(target: testbed::target::Target, program: &dyn Program) -> testbed::target::Target {
    let (engine, [zero, one]) = match program.target() {
        Target::Memif => {
            let socket = socket_name();
            // Another program listens, and is there first; ours brings the memory that it builds frames in.
            let roles = if program.is_ours() { ["client", "server"] } else { ["server", "client"] };
            (EngineName::Memif, roles.map(|role| format!("memif:socket=@{socket},role={role}")))
        }
        Target::Null | Target::Lab => {
            (EngineName::Dpdk, ["net_null0,no-rx=1", "net_null1,no-rx=1"].map(str::to_owned))
        }
    };
    let place = Place::Named(Named { ports: [zero, one], next_hops: None, force: 0 });
    testbed::target::Target { place, engine, ..target }
}

/// The device of DPDK that another program sends by.
pub fn device(testbed: &Testbed) -> String {
    let devices = testbed.user_space().map(UserSpace::devices).cloned().unwrap_or_default();
    match Ends::named(devices.clone()) {
        Ok(ends) => dpdk_server(&ends.ends()[0].socket),
        Err(_) => devices.into_iter().next().unwrap_or_default(),
    }
}

/// A program, and the sink that counts what it sends.
struct InUserSpace {
    // Before the sender.
    sink: Option<Stream>,
    sender: Sender,
    /// Whether the program was told to end: it answers no more.
    told: bool,
}

enum Sender {
    Own(Stream),
    Program(Box<Process>),
}

/// Starts `program`.
pub fn start(program: &'static dyn Program, task: &Task, testbed: &Testbed) -> Result<Started<'static>> {
    let user_space = testbed.user_space().context("a program in user space has ports of its own")?;
    let ends = match program.target() {
        Target::Memif => Some(Ends::named(user_space.devices().clone())?),
        Target::Null | Target::Lab => None,
    };
    let ends = ends.as_ref().map(Ends::ends);
    if ends.is_some() && testbed.dut_core() == task.core {
        return Err(misuse("the sink needs a core of its own: give other --cores or --dut-core"));
    }
    let sink = || -> Result<Option<Stream>> {
        let longest = MTU + wire::ethernet::LENGTH;
        Ok(ends.map(|[_, far]| stream::sink(far, longest, testbed.dut_core())).transpose()?)
    };
    let launch = program.launch(task);
    let (sender, sink) = if program.is_ours() {
        let sink = sink()?;
        let table = table(task.datagram, testbed)?;
        let source = match ends {
            Some([near, _]) => stream::source(near, &table, task.core)?,
            None => onto_null(&user_space.devices()[0], &table, task.core)?,
        };
        (Sender::Own(source), sink)
    } else {
        let mut process = Process::start(None, &[task.core], &launch.words, None)?;
        if ends.is_some() {
            wait_until_ready(&mut process)?;
        }
        (Sender::Program(Box::new(process)), sink()?)
    };
    let ground = Box::new(InUserSpace { sender, sink, told: false });
    Ok(Started { launch, ground, before: Count::default() })
}

/// Ours, onto a port of DPDK's that drops all.
#[cfg(feature = "dpdk")]
fn onto_null(device: &str, table: &FrameTable, core: usize) -> Result<Stream> {
    let dpdk = testbed::user_space::dpdk::start(core, &[])?;
    Ok(engine::dpdk::stream::source(&dpdk, device, table, core)?)
}

/// There is none.
#[cfg(not(feature = "dpdk"))]
fn onto_null(_: &str, _: &FrameTable, _: usize) -> Result<Stream> {
    bail!("there is no port that drops all: build linerate with --features dpdk")
}

/// Waits until testpmd sends, or says why it does not.
fn wait_until_ready(process: &mut Process) -> Result<()> {
    let deadline = Instant::now() + START;
    while !process.said()?.stdout.contains(READY) {
        if process.has_ended()? || Instant::now() > deadline {
            let said = process.said()?;
            bail!("testpmd does not start: {}", said.last_words().unwrap_or("it says nothing"));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The frames that carry such datagrams, of one flow like everyone's.
fn table(datagram: Datagram, testbed: &Testbed) -> Result<FrameTable> {
    let size = datagram.frames().first().copied().unwrap_or(size::MIN);
    let tunables = Tunables { size: Some(Size::Bytes(size)), ..Tunables::default() };
    let profile = Profile::builtin("bench", &tunables).map_err(|error| misuse(error.to_string()))?;
    Ok(profile.table(&testbed.endpoints(), Directions::Forward))
}

impl Ground for InUserSpace {
    fn count(&mut self) -> Result<Count> {
        let arrived = self.sink.as_ref().map(Stream::frames);
        let left = match (&mut self.sender, arrived) {
            (Sender::Own(source), None) => source.frames(),
            // It counts a burst once it has sent it, and may have lost its core in between.
            (Sender::Own(source), Some(arrived)) => source.frames().max(arrived),
            // What is in a memory that the sink shares has left, and nothing else has.
            (Sender::Program(_), Some(arrived)) => arrived,
            (Sender::Program(process), None) if self.told => last_sent(&process.said()?),
            (Sender::Program(process), None) => ask(process)?,
        };
        Ok(Count { left, refused: 0, arrived: arrived.unwrap_or(left) })
    }

    fn has_ended(&mut self) -> Result<bool> {
        if let Some(sink) = &mut self.sink {
            sink.check()?;
        }
        match &mut self.sender {
            Sender::Own(source) => source.check().map(|()| false).map_err(Into::into),
            Sender::Program(process) => process.has_ended(),
        }
    }

    fn said(&mut self) -> Result<Said> {
        match &mut self.sender {
            Sender::Own(source) => Ok(Said { stdout: source.frames().to_string(), ..Said::default() }),
            Sender::Program(process) => process.said(),
        }
    }

    fn interrupt(&mut self) {
        match &mut self.sender {
            // It says in the end whether it failed.
            Sender::Own(_) => {}
            Sender::Program(process) => {
                match &mut self.sink {
                    // It stops before the other end goes; if it failed, that was seen when it was counted.
                    Some(sink) => drop(sink.finish()),
                    // For the last time; if it does not answer, that is seen when it is counted.
                    None if !self.told => drop(ask(process)),
                    None => {}
                }
                process.interrupt();
            }
        }
        self.told = true;
    }

    fn finish(&mut self) -> Result<Said> {
        self.told = true;
        match &mut self.sender {
            Sender::Own(source) => source.finish()?,
            Sender::Program(process) => return process.finish(),
        }
        self.said()
    }
}

/// How many packets testpmd said last that it sent.
fn last_sent(said: &Said) -> u64 {
    said.stdout.rfind(SENT).and_then(|at| number_after(&said.stdout[at..], SENT)).unwrap_or(0)
}

/// Asks testpmd how many packets it has sent so far.
fn ask(process: &mut Process) -> Result<u64> {
    let answers =
        |process: &mut Process| -> Result<usize> { Ok(process.said()?.stdout.matches(SENT).count()) };
    let before = answers(process)?;
    process.tell("show port stats 0\n")?;
    let deadline = Instant::now() + PATIENCE;
    while answers(process)? == before {
        if process.has_ended()? || Instant::now() > deadline {
            let said = process.said()?;
            bail!("testpmd does not say what it sent: {}", said.last_words().unwrap_or("it says nothing"));
        }
        thread::sleep(LOOK);
    }
    Ok(last_sent(&process.said()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_answer_counts() {
        let stdout = "  TX-packets: 7   TX-errors: 0\n  TX-packets: 99 TX-errors: 0\n";
        assert_eq!(last_sent(&Said { stdout: stdout.to_owned(), ..Said::default() }), 99);
        assert_eq!(last_sent(&Said::default()), 0);
    }
}
