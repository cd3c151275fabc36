//! A run as it goes on: samples enter; what a page draws and what Prometheus reads leaves.
//!
//! [`Board`] keeps the last samples and sums. [`Watched`] is the observer that fills it, before the one that keeps the
//! record: both get the same samples. [`Server`] shows it to browsers, [`Screen`] on the terminal, each on a thread of its own. Where a load can be changed, a wish
//! goes the other way: from the page to the board, and on to what sends. Nobody who looks makes the run
//! wait: where the board is being read, a sample is put there with the next one.

mod http;
mod metrics;
mod steering;
mod terminal;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use results::record::{Node, NodeRuntimes, Phase, Sample};
use serde::Serialize;
use trial::{Observer, ObserverError, Surroundings};

pub use http::{File, Server};
pub use steering::Steering;
pub use terminal::Screen;

/// The page shows the samples of so many seconds at most.
const SHOWN_S: f64 = 600.0;
/// And no more than these: ten minutes of 200 ms.
const SHOWN: usize = 3_000;
/// Bytes of a frame on the line beside it.
const L1_OVERHEAD: f64 = 20.0;
/// More nodes than these are not kept.
const NODES: usize = 512;

/// What is known of a run when it begins.
#[derive(Clone, Debug, Default, Serialize)]
pub struct About {
    /// What reports call it.
    pub name: String,
    /// The strategy, like `ramp`.
    pub strategy: String,
    /// The device.
    pub dut: String,
    /// A sample may lose this share of its frames.
    pub loss_threshold: f64,
    /// L1, in bits a second.
    pub line_rate_bps: f64,
    /// In bytes, with FCS.
    pub mean_frame_size: f64,
    /// How long the run takes at most, in seconds; 0 where it ends by itself.
    pub planned_s: f64,
}

/// What one direction has done since the board was made.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    offered: u64,
    forwarded: u64,
    unsent: u64,
    latency_s: f64,
    /// Frames whose latency is in that.
    timed: u64,
}

#[derive(Debug, Default)]
struct Shown {
    about: About,
    /// How many runs have begun.
    run: u64,
    running: bool,
    /// In a word.
    phase: &'static str,
    /// The number of the next sample, from the beginning of the board.
    next: u64,
    samples: VecDeque<Arc<Sample>>,
    sums: Vec<Sums>,
    disturbed: u64,
    /// Clocks a packet, by thread and node.
    nodes: BTreeMap<(String, String), f64>,
    /// The load, where a person may change it.
    steering: Option<Steering>,
    /// What a person wants of it, until that is done.
    wish: Option<Steering>,
}

/// What is shown. Its clones are the same board.
#[derive(Clone, Debug, Default)]
pub struct Board(Arc<Mutex<Shown>>);

impl Board {
    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run begins.
    pub fn begin(&self, about: About) {
        let mut shown = self.lock();
        let (run, next) = (shown.run + 1, shown.next);
        shown.samples.clear();
        shown.nodes.clear();
        *shown = Shown { about, run, running: true, phase: "starts", next, ..std::mem::take(&mut *shown) };
    }

    /// It has ended.
    pub fn end(&self) {
        let mut shown = self.lock();
        (shown.running, shown.phase) = (false, "ended");
        (shown.steering, shown.wish) = (None, None);
    }

    /// Shows the load as one that a person may change, and takes what somebody wants of it, if anything new. Nobody
    /// may change it where `now` is none. Where the board is being read, the next call does this.
    pub fn steer(&self, now: Option<Steering>) -> Option<Steering> {
        let mut shown = match self.0.try_lock() {
            Ok(shown) => shown,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let wish = shown.wish.take().filter(|_| now.is_some());
        shown.steering = wish.or(now);
        wish
    }

    /// Somebody wants this load. It is shown at once, and taken up before the next sample.
    ///
    /// # Errors
    /// Why the load cannot be changed to this, or not now.
    pub fn wish(&self, wish: Steering) -> Result<(), &'static str> {
        wish.check()?;
        let mut shown = self.lock();
        if shown.steering.is_none() {
            return Err("the load cannot be changed now: only a constant rate can, while it is sent");
        }
        (shown.steering, shown.wish) = (Some(wish), Some(wish));
        Ok(())
    }

    /// Puts `samples` there, and takes them out of `samples`, unless somebody is reading: then they are kept for the
    /// next time, no more of them than are shown.
    pub fn put(&self, samples: &mut VecDeque<Arc<Sample>>) {
        let mut shown = match self.0.try_lock() {
            Ok(shown) => shown,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                while samples.len() > SHOWN {
                    samples.pop_front();
                }
                return;
            }
        };
        samples.drain(..).for_each(|sample| shown.add(sample));
    }

    /// Changes the load by what `change` makes of it; see [`Board::wish`].
    ///
    /// # Errors
    /// As there.
    pub fn change(&self, change: impl FnOnce(Steering) -> Steering) -> Result<(), &'static str> {
        let now = self.lock().steering;
        self.wish(now.map_or(Steering { percent: 1.0, paused: false }, change))
    }

    /// What came after the first `after` samples, and what is known of the run, as the page reads it.
    fn since(&self, after: u64) -> Page {
        let shown = self.lock();
        let first = shown.next - shown.samples.len() as u64;
        let skipped = usize::try_from(after.saturating_sub(first)).unwrap_or(usize::MAX);
        Page {
            about: shown.about.clone(),
            run: shown.run,
            running: shown.running,
            phase: shown.phase,
            next: shown.next,
            samples: shown.samples.iter().skip(skipped).cloned().collect(),
            nodes: shown.nodes.iter().map(|((_, node), clocks)| (node.clone(), *clocks)).collect(),
            steering: shown.steering,
        }
    }

    /// In Prometheus's text format.
    #[must_use]
    pub fn metrics(&self) -> String {
        metrics::text(&self.lock())
    }
}

impl Shown {
    fn add(&mut self, sample: Arc<Sample>) {
        self.phase = phase_name(sample.phase);
        self.sums.resize(self.sums.len().max(sample.directions.len()), Sums::default());
        for (sums, direction) in self.sums.iter_mut().zip(&sample.directions) {
            sums.offered += direction.offered;
            sums.forwarded += direction.forwarded;
            sums.unsent += direction.unsent;
            if let Some(latency) = &direction.latency {
                sums.latency_s += latency.mean_ns / 1e9 * direction.forwarded as f64;
                sums.timed += direction.forwarded;
            }
        }
        self.disturbed += u64::from(sample.disturbed.is_some());
        let end = sample.at_s + sample.duration_s;
        self.samples.push_back(sample);
        self.next += 1;
        let is_old = |oldest: &Arc<Sample>| oldest.at_s < end - SHOWN_S;
        while self.samples.len() > SHOWN || self.samples.front().is_some_and(is_old) {
            self.samples.pop_front();
        }
    }
}

/// The answer to a page.
#[derive(Serialize)]
struct Page {
    about: About,
    run: u64,
    running: bool,
    phase: &'static str,
    next: u64,
    #[serde(serialize_with = "unshared")]
    samples: Vec<Arc<Sample>>,
    nodes: Vec<(String, f64)>,
    /// The load, where it can be changed.
    steering: Option<Steering>,
}

fn unshared<S: serde::Serializer>(samples: &[Arc<Sample>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(samples.iter().map(|sample| &**sample))
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::WarmUp => "warm-up",
        Phase::Ramp => "ramp",
        Phase::Hold => "hold",
        Phase::Trial => "trial",
    }
}

/// An observer that shows on a board what passes on its way to the next one. Nodes are read where the load is off,
/// because the device may stop for that.
pub struct Watched<'a> {
    board: &'a Board,
    next: &'a mut dyn Observer,
    waiting: VecDeque<Arc<Sample>>,
    nodes: Option<NodeRuntimes>,
    /// Frames a second at line rate, and the load that is steered.
    line_pps: f64,
    steering: Option<Steering>,
}

impl<'a> Watched<'a> {
    /// A run begins, which `next` observes, too.
    pub fn new(board: &'a Board, about: About, next: &'a mut dyn Observer) -> Self {
        let line_pps = about.line_rate_bps / 8.0 / (about.mean_frame_size + L1_OVERHEAD);
        board.begin(about);
        let nodes = next.ask(|around| around.nodes());
        Self { board, next, waiting: VecDeque::new(), nodes, line_pps, steering: None }
    }

    fn read_nodes(&mut self) {
        let Some(before) = self.nodes.take() else { return };
        self.nodes = self.next.ask(|around| around.nodes());
        let Some(after) = self.nodes.clone() else { return };
        let costs = Node::since(&before, after).into_iter().filter_map(|node| {
            let meanwhile = node.meanwhile().filter(|meanwhile| meanwhile.vectors > 0)?;
            Some(((node.thread, node.name), meanwhile.clocks))
        });
        let costs: BTreeMap<_, _> = costs.take(NODES).collect();
        if let (false, Ok(mut shown)) = (costs.is_empty(), self.board.0.try_lock()) {
            shown.nodes = costs;
        }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.waiting.drain(..).for_each(|sample| self.board.lock().add(sample));
        self.board.end();
    }
}

impl Observer for Watched<'_> {
    fn next(&mut self) -> Option<&mut dyn Observer> {
        Some(self.next)
    }

    fn drain(&mut self, planned: Duration) {
        self.read_nodes();
        self.next.drain(planned);
    }

    fn settled(&mut self, sample: &Sample) -> Result<(), ObserverError> {
        self.waiting.push_back(Arc::new(sample.clone()));
        self.board.put(&mut self.waiting);
        self.next.settled(sample)
    }

    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl Surroundings for Watched<'_> {
    fn beyond(&mut self) -> Option<&mut dyn Surroundings> {
        self.next.surroundings()
    }

    fn steer(&mut self, pps: f64) -> f64 {
        let now = self.steering.unwrap_or(Steering { percent: pps / self.line_pps * 100.0, paused: false });
        if !now.percent.is_finite() {
            return pps;
        }
        match self.board.steer(Some(now)) {
            Some(wish) => self.steering = Some(wish),
            None if self.steering.is_none() => return pps,
            None => {}
        }
        let Steering { percent, paused } = self.steering.unwrap_or(now);
        if paused { 0.0 } else { percent / 100.0 * self.line_pps }
    }
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;

    use super::*;

    fn samples(count: usize) -> impl Iterator<Item = Sample> {
        let one = Scenario::default().record().samples.remove(0);
        (0..count).map(move |at| Sample { at_s: at as f64, duration_s: 1.0, ..one.clone() })
    }

    #[test]
    fn a_board_is_bounded_and_tells_what_is_new() {
        let (board, mut silent) = (Board::default(), trial::Silent);
        let mut watched = Watched::new(&board, About::default(), &mut silent);
        samples(5_000).for_each(|sample| watched.settled(&sample).unwrap());
        let page = board.since(0);
        assert_eq!((page.next, page.samples.len(), page.running), (5_000, 600, true));
        assert_eq!(board.since(4_998).samples.len(), 2);
        assert_eq!((board.since(5_000).samples.len(), board.since(u64::MAX).samples.len()), (0, 0));
        drop(watched);
        assert!(!board.since(0).running);
        board.begin(About::default());
        let page = board.since(0);
        assert_eq!((page.run, page.next, page.samples.len()), (2, 5_000, 0));
    }

    #[test]
    fn short_samples_are_bounded_by_their_number() {
        let (board, mut silent) = (Board::default(), trial::Silent);
        let mut watched = Watched::new(&board, About::default(), &mut silent);
        for sample in samples(SHOWN + 500) {
            watched.settled(&Sample { at_s: sample.at_s / 1e3, duration_s: 1e-3, ..sample }).unwrap();
        }
        assert_eq!(board.since(0).samples.len(), SHOWN);
    }

    #[test]
    fn a_reader_does_not_make_the_run_wait_and_no_sample_is_lost() {
        let (board, mut silent) = (Board::default(), trial::Silent);
        let mut watched = Watched::new(&board, About::default(), &mut silent);
        let reading = board.lock();
        samples(3).for_each(|sample| watched.settled(&sample).unwrap());
        drop(reading);
        assert_eq!(board.since(0).samples.len(), 0);
        samples(1).for_each(|sample| watched.settled(&sample).unwrap());
        assert_eq!(board.since(0).samples.len(), 4);
    }

    #[test]
    fn a_person_steers_what_is_offered_for_steering() {
        let (board, mut silent) = (Board::default(), trial::Silent);
        let half = Steering { percent: 50.0, paused: false };
        assert!(board.wish(half).is_err(), "nothing can be steered");
        // 64-byte frames: 1,488,095 a second at line rate.
        let about = About { line_rate_bps: 1e9, mean_frame_size: 64.0, ..About::default() };
        let mut watched = Watched::new(&board, about, &mut silent);
        assert_eq!(watched.steer(148_809.5), 148_809.5);
        assert!((board.since(0).steering.unwrap().percent - 10.0).abs() < 0.01);
        board.wish(half).unwrap();
        assert_eq!(board.since(0).steering, Some(half));
        assert!((watched.steer(148_809.5) - 744_047.6).abs() < 1.0);
        board.wish(Steering { paused: true, ..half }).unwrap();
        assert_eq!(watched.steer(148_809.5), 0.0);
        assert_eq!(watched.steer(148_809.5), 0.0);
        for percent in [0.0, -1.0, 101.0, f64::NAN] {
            assert!(board.wish(Steering { percent, paused: false }).is_err());
        }
        drop(watched);
        assert_eq!(board.since(0).steering, None);
    }

    #[test]
    fn what_a_node_costs_is_of_the_time_since_it_was_last_read() {
        struct Graph(u64);
        impl Observer for Graph {
            fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
                Some(self)
            }
        }

        impl Surroundings for Graph {
            fn nodes(&mut self) -> Option<NodeRuntimes> {
                self.0 += 1_000;
                let done = results::record::NodeRuntime {
                    calls: self.0,
                    vectors: self.0,
                    clocks: 42.0,
                    ..Default::default()
                };
                Some([(("worker".to_owned(), "ip4-lookup".to_owned()), done)].into())
            }
        }
        let (board, mut graph) = (Board::default(), Graph(0));
        let mut watched = Watched::new(&board, About::default(), &mut graph);
        watched.drain(Duration::ZERO);
        assert_eq!(board.since(0).nodes, [("ip4-lookup".to_owned(), 42.0)]);
    }
}
