//! Where a generator sends, and what is counted there: in the lab by the kernel, at both ends of a cable; at real
//! interfaces at the one that it sends by; across a device at both ports.
//!
//! In user space it is [`super::user_space`].

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lab::{InterfaceCounters, Lab, Namespace};
use programs::{Process, Said};
use testbed::Testbed;
use wording::usage::misuse;

use super::across::Across;
use super::program::Launch;

/// How long a server has to listen.
const SERVER_PATIENCE: Duration = Duration::from_secs(5);
/// How often to look; seldom, since cores are being measured.
const LOOK: Duration = Duration::from_millis(20);
/// The state of a socket that listens, in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// The packets counted so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    pub left: u64,
    /// By a full queue, instead of leaving.
    pub refused: u64,
    pub arrived: u64,
}

impl Count {
    /// What the program offered: what a full queue refuses was offered, too.
    pub fn offered(self) -> u64 {
        self.left + self.refused
    }

    pub fn since(self, earlier: Self) -> Self {
        Self {
            left: self.left.saturating_sub(earlier.left),
            refused: self.refused.saturating_sub(earlier.refused),
            arrived: self.arrived.saturating_sub(earlier.arrived),
        }
    }
}

/// A program that sends, and who counts that.
pub trait Ground {
    /// What was counted so far.
    fn count(&mut self) -> Result<Count>;

    /// To be called once it sends.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    /// Whether the program ended by itself.
    fn has_ended(&mut self) -> Result<bool>;

    /// What the program has said so far.
    fn said(&mut self) -> Result<Said>;

    /// Asks the program to end.
    fn interrupt(&mut self);

    /// Waits for its end, and says what it said.
    fn finish(&mut self) -> Result<Said>;
}

/// A program that was started.
pub struct Started<'a> {
    /// How.
    pub launch: Launch,
    pub ground: Box<dyn Ground + 'a>,
    /// What was counted before.
    pub before: Count,
}

/// A program that sends by an interface of the kernel.
pub struct AtInterface<'a> {
    testbed: &'a Testbed,
    process: Process,
    /// What must run at the far end, while it must.
    _server: Option<Process>,
    /// What it sends through, if it does: after the programs there.
    across: Option<Across>,
}

impl<'a> AtInterface<'a> {
    /// Starts the program as `launch` says on `core`, in the lab or at the first of two real interfaces.
    pub fn start(
        launch: Launch,
        testbed: &'a Testbed,
        core: usize,
        across: Option<Across>,
    ) -> Result<Started<'a>> {
        let ends = across.as_ref().and_then(Across::ends);
        let server = match (&launch.server, testbed.lab(), ends) {
            (Some(words), Some(lab), Some([_, far])) => Some(serve(far, lab.placement().receive, words)?),
            (Some(words), None, Some([_, far])) => Some(serve(far, testbed.dut_core(), words)?),
            (Some(words), Some(lab), None) => Some(serve(lab.dut_namespace(), lab.placement().dut, words)?),
            (Some(_), None, None) => {
                return Err(misuse(
                    "this generator needs a server at the far end, which only the lab has: leave --ports out, or give \
                     --across if there is a device between them",
                ));
            }
            (None, ..) => None,
        };
        let before = count(testbed, across.is_some())?;
        let input = launch.input.as_ref().map(|input| input.bytes.as_slice());
        let namespace = ends.map(|[near, _]| near).or_else(|| testbed.lab().map(Lab::tester_namespace));
        let process = Process::start(namespace, &[core], &launch.words, input)?;
        Ok(Started { launch, ground: Box::new(Self { testbed, process, _server: server, across }), before })
    }
}

/// What the kernel counted at both ends of the cable of port 0, or at both ports if a device is `across` the way. Arrivals
/// are read first, so that no packet has arrived that has not left. Where nobody counts at the far end of a real
/// interface, what left it has arrived.
fn count(testbed: &Testbed, across: bool) -> Result<Count> {
    let arrivals = if across || testbed.lab().is_some() { testbed.interface_counters()? } else { Vec::new() };
    let counters = testbed.interface_counters()?;
    let port = counters.first().context("the port has no counters")?;
    let received = |at: usize| arrivals.get(at).map(|interface: &InterfaceCounters| interface.received);
    let arrived = if across { received(1) } else { received(2) };
    Ok(Count { left: port.sent, refused: port.send_dropped, arrived: arrived.unwrap_or(port.sent) })
}

impl Ground for AtInterface<'_> {
    fn count(&mut self) -> Result<Count> {
        count(self.testbed, self.across.is_some())
    }

    fn settle(&mut self) -> Result<()> {
        // A program may use XDP on the port, and the kernel then replaces the threads that receive.
        if let Some(lab) = self.testbed.lab() {
            lab.pin()?;
        }
        Ok(())
    }

    fn has_ended(&mut self) -> Result<bool> {
        self.process.has_ended()
    }

    fn said(&mut self) -> Result<Said> {
        self.process.said()
    }

    fn interrupt(&mut self) {
        self.process.interrupt();
    }

    fn finish(&mut self) -> Result<Said> {
        self.process.finish()
    }
}

/// The last words of a program.
pub fn words_of(said: &Said) -> String {
    said.last_words().unwrap_or("it does not say why").to_owned()
}

/// Starts what must run at the far end, in `namespace` on `core`, and waits until it listens.
fn serve(namespace: &Namespace, core: usize, words: &[String]) -> Result<Process> {
    let mut server = Process::start(Some(namespace), &[core], words, None)?;
    let deadline = Instant::now() + SERVER_PATIENCE;
    let sockets =
        [4, 6].map(|version| format!("/proc/{}/net/tcp{}", server.id(), if version == 6 { "6" } else { "" }));
    let listens = |path: &String| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().any(|line| line.split_whitespace().nth(3) == Some(LISTENS))
    };
    while !sockets.iter().any(listens) {
        if server.has_ended()? || Instant::now() > deadline {
            server.interrupt();
            let said = server.finish().context("the server at the far end")?;
            bail!("'{}' does not listen at the far end: {}", words.join(" "), words_of(&said));
        }
        std::thread::sleep(LOOK);
    }
    Ok(server)
}
