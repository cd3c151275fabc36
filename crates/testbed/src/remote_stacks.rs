//! Where a device that is another computer works: a device with a driver enters; folded stacks that its profiler took there
//! while a load held leave.
//!
//! The driver's commands run over a connection of their own, beside the one that configures and counts.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use explain::flame::Folded;
use remote::{Plan, Shell, Ssh};
use wording::usage::misuse;

/// The shortest and the longest time that a device is sampled: what it then says must fit the time that one answer has.
const BOUNDS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// Samples that a device takes of itself. It takes none if this is dropped before they begin.
#[derive(Debug)]
pub struct RemoteStacks {
    begin: Sender<()>,
    taken: JoinHandle<Result<Folded>>,
    has_begun: bool,
}

impl RemoteStacks {
    /// Connects to `host` as `sudo` says, to sample by the driver of `plan` for that long.
    ///
    /// # Errors
    /// That the driver does not tell where a device works, or that the device cannot be reached.
    pub fn prepare((host, sudo): &(String, bool), plan: &Plan, duration: Duration) -> Result<Self> {
        let [shortest, longest] = BOUNDS;
        if !(shortest..=longest).contains(&duration) {
            return Err(misuse(format!(
                "a device that is another computer is sampled for {shortest:?} to {longest:?}: give another --duration"
            )));
        }
        let scripts = plan.stacks(duration.as_secs());
        if scripts.is_empty() {
            return Err(misuse(format!(
                "the driver {} does not say how stacks are taken: add [[stacks]] to it, or take them there and give \
                 --stacks FILE",
                plan.driver().name
            )));
        }
        let mut shell = Ssh::connect(host, *sudo)?;
        shell.begin_with(&plan.preamble())?;
        let (begin, told) = mpsc::channel();
        let taken =
            thread::Builder::new().name("stacks".to_owned()).spawn(move || take(shell, &scripts, &told));
        Ok(Self { begin, taken: taken.context("cannot start a thread")?, has_begun: false })
    }

    /// Samples from now on, for as long as was said.
    pub fn begin(&mut self) {
        self.has_begun = true;
        // If it has ended already, `end` finds out why.
        let _ = self.begin.send(());
    }

    /// Whether it has ended by itself before it began.
    pub fn has_failed(&self) -> bool {
        !self.has_begun && self.taken.is_finished()
    }

    /// Waits for its end, and returns what was sampled.
    ///
    /// # Errors
    /// What failed there, or that the connection is lost.
    pub fn end(self) -> Result<Folded> {
        drop(self.begin);
        self.taken.join().map_err(|_| anyhow!("the thread that takes stacks has ended"))?
    }
}

fn take(mut shell: Ssh, scripts: &[(String, String)], told: &Receiver<()>) -> Result<Folded> {
    if told.recv().is_err() {
        bail!("the load ended before stacks were taken");
    }
    let mut text = String::new();
    for (what, script) in scripts {
        let answer = shell.run(script)?;
        if !answer.is_good() {
            bail!("{}: '{what}' took no stacks: {}", shell.host(), answer.said());
        }
        text += &answer.stdout;
    }
    let folded = Folded::parse(&text).or_else(|reason| Folded::of_perf_script(&text).map_err(|_| reason));
    folded.map_err(|reason| anyhow!("{}: what its driver printed is not stacks: {reason}", shell.host()))
}
