//! The tester against reference devices: a plan and a seed enter; a certificate leaves, with the expected
//! values, what was measured, and the error.

mod experiment;
mod finding;
mod stand;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use results::certificate::{Certificate, Check, SCHEMA, Verdict};
use results::record::Status;

use crate::{environment, stop};
use experiment::{Experiment, Pace};
use finding::Attempts;
use stand::Host;

/// The most attempts at one experiment.
const MOST_ATTEMPTS: usize = 6;

/// How thorough a run is.
struct Plan {
    pace: Pace,
    /// How many capacities are searched for, and between which frames a second.
    capacities: usize,
    between: (u32, u32),
    /// The same in user space.
    user_space_capacities: usize,
    user_space_between: (u32, u32),
    /// How long all repeats may take together.
    repeats: Duration,
}

const QUICK: Plan = Plan {
    pace: Pace {
        load: Duration::from_millis(500),
        latency: Duration::from_millis(600),
        search: Duration::from_secs(12),
    },
    capacities: 1,
    between: (200_000, 500_000),
    user_space_capacities: 1,
    user_space_between: (1_000_000, 4_000_000),
    repeats: Duration::from_secs(8),
};

const FULL: Plan = Plan {
    pace: Pace {
        load: Duration::from_secs(5),
        latency: Duration::from_secs(2),
        search: Duration::from_secs(120),
    },
    capacities: 10,
    between: (30_000, 900_000),
    user_space_capacities: 3,
    user_space_between: (1_000_000, 8_000_000),
    repeats: Duration::from_secs(600),
};

/// Measures reference devices; `quick` is the short form. Unknown capacities are drawn from `seed`, else from the
/// clock. Says what it does on standard error.
///
/// # Errors
/// When a lab or an engine cannot be started.
pub fn certify(quick: bool, seed: Option<u64>, stop: Arc<AtomicBool>) -> Result<Certificate> {
    let (started, clock) = (SystemTime::now(), Instant::now());
    let seed = seed.unwrap_or_else(|| drawn_from(started));
    let plan = if quick { QUICK } else { FULL };
    eprintln!("the unknown capacities are drawn from seed {seed}: --seed {seed} draws them again");
    let host = Host::new(stop);
    let (checks, status) = plan.run(seed, &host)?;
    Ok(Certificate {
        schema: SCHEMA.to_owned(),
        started: results::time::rfc3339(started),
        elapsed_s: clock.elapsed().as_secs_f64(),
        status,
        command: std::env::args().collect(),
        environment: environment::read(),
        seed,
        quick,
        unwatched: host.unwatched(),
        checks,
    })
}

/// A seed that nobody chose.
fn drawn_from(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| u64::from(since.subsec_nanos()))
}

impl Plan {
    /// All experiments, each until it is decided or there is no time to repeat it.
    fn run(&self, seed: u64, host: &Host) -> Result<(Vec<Check>, Status)> {
        use Experiment::{Burst, Chance, CrossConnect, Delay, DropEvery, Order, Stall, UserSpaceLoss};
        let mut experiments = vec![CrossConnect, DropEvery, Chance, Stall, Order, Burst, Delay];
        let capacities = draw(seed, self.capacities, self.between);
        experiments.extend(capacities.into_iter().map(Experiment::Capacity));
        experiments.push(UserSpaceLoss);
        let capacities = draw(!seed, self.user_space_capacities, self.user_space_between);
        experiments.extend(capacities.into_iter().map(Experiment::UserSpaceCapacity));
        let (mut checks, mut left) = (Vec::new(), self.repeats);
        for (number, experiment) in experiments.iter().enumerate() {
            let clock = Instant::now();
            let found = self.decide(*experiment, &mut left, host);
            if stop::is_set(&host.stop) {
                return Ok((checks, Status::Interrupted));
            }
            let found = found.with_context(|| experiment.title())?;
            let (all, took) = (experiments.len(), clock.elapsed().as_secs_f64());
            eprintln!("[{}/{all}] {}: {} ({took:.1} s)", number + 1, experiment.title(), summary(&found));
            checks.extend(found);
        }
        Ok((checks, Status::Complete))
    }

    /// Attempts one experiment until all its figures are decided; repeats use up what is `left`.
    fn decide(&self, experiment: Experiment, left: &mut Duration, host: &Host) -> Result<Vec<Check>> {
        let mut figures: Vec<Attempts> = Vec::new();
        for attempt in 0..MOST_ATTEMPTS {
            let clock = Instant::now();
            let findings = experiment.attempt(&self.pace, host)?;
            figures.resize_with(findings.len(), Attempts::default);
            let undecided = figures.iter_mut().zip(findings).filter(|(figure, _)| is_undecided(figure));
            undecided.for_each(|(figure, finding)| figure.add(finding));
            let took = clock.elapsed();
            if attempt > 0 {
                *left = left.saturating_sub(took);
            }
            if stop::is_set(&host.stop) || took > *left || !figures.iter().any(is_undecided) {
                break;
            }
        }
        Ok(figures.iter().filter_map(Attempts::check).collect())
    }
}

/// As many unknown capacities, drawn evenly from `least` to `most` frames a second.
fn draw(seed: u64, capacities: usize, (least, most): (u32, u32)) -> Vec<u32> {
    let width = u64::from(most - least) + 1;
    let draw = |number: u64| least + (even(seed.wrapping_add(number)) % width) as u32;
    (0..capacities as u64).map(draw).collect()
}

fn is_undecided(figure: &Attempts) -> bool {
    figure.verdict() == Verdict::Undecided
}

/// 64 even bits of any number: `SplitMix64` (Steele, Lea and Flood, OOPSLA 2014).
fn even(number: u64) -> u64 {
    let word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// What the checks of one experiment came to.
fn summary(checks: &[Check]) -> String {
    let of = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let parts = [(Verdict::Failed, "failed"), (Verdict::Undecided, "undecided"), (Verdict::Passed, "passed")];
    let parts = parts.map(|(verdict, word)| (of(verdict), word)).into_iter().filter(|(count, _)| *count > 0);
    parts.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_capacities_again_and_another_one_others() {
        let draw = |seed| super::draw(seed, FULL.capacities, FULL.between);
        let drawn = draw(7);
        assert_eq!(drawn, draw(7));
        assert_ne!(drawn, draw(8));
        assert_eq!(drawn.len(), 10);
        assert!((0..100).flat_map(draw).all(|pps| (30_000..=900_000).contains(&pps)));
        let mean = (0..1000).flat_map(|seed| draw(seed * 10)).map(f64::from).sum::<f64>() / 10_000.0;
        assert!((mean / 465e3 - 1.0).abs() < 0.03, "{mean}");
    }
}
