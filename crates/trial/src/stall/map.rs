//! What is known of a device at each load: what trials showed enters; which loads to try next, and the ranges in which
//! it forwards or stalls, leave. Pure.

use results::record::{StallRange, StallRate, StallVerdict, Untold};
use stats::{Random, proportion};

/// What one trial showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// The device forwarded to the end.
    Forwards,
    /// It stopped.
    Stalls,
    /// It is unknown, and why.
    Nothing(String),
}

/// Loads in frames a second, the lowest first, each with what its trials showed.
#[derive(Clone, Debug, Default)]
pub(super) struct Map {
    rates: Vec<StallRate>,
}

impl Map {
    /// Loads from `lowest` to `highest`, equal factors apart, at least `steps` for each factor of ten.
    pub(super) fn ladder(lowest: f64, highest: f64, steps: u32) -> Self {
        let parts = ((highest / lowest).log10() * f64::from(steps)).ceil().max(0.0) as usize;
        let at = |place: usize| match place {
            0 => lowest,
            last if last == parts => highest,
            _ => lowest * (highest / lowest).powf(place as f64 / parts as f64),
        };
        Self { rates: (0..=parts).map(|place| unknown(at(place))).collect() }
    }

    /// All loads.
    pub(super) fn loads(&self) -> Vec<f64> {
        self.rates.iter().map(|rate| rate.pps).collect()
    }

    /// Trials at `pps` that tell whether the device stalls.
    pub(super) fn trials(&self, pps: f64) -> usize {
        self.rates.iter().find(|rate| rate.pps == pps).map_or(0, |rate| rate.trials)
    }

    /// Adds what a trial at `pps` showed.
    pub(super) fn add(&mut self, pps: f64, shown: Shown) {
        let at = self.rates.partition_point(|rate| rate.pps < pps);
        if self.rates.get(at).is_none_or(|rate| rate.pps > pps) {
            self.rates.insert(at, unknown(pps));
        }
        let Some(rate) = self.rates.get_mut(at) else { return };
        match shown {
            Shown::Nothing(reason) => {
                let trials = rate.untold.as_ref().map_or(0, |untold| untold.trials) + 1;
                rate.untold = Some(Untold { trials, reason });
            }
            told => {
                rate.trials += 1;
                rate.stalled += usize::from(told == Shown::Stalls);
            }
        }
        rate.verdict = match (rate.stalled, rate.trials) {
            (0, 0) => StallVerdict::Unknown,
            (0, _) => StallVerdict::Forwards,
            _ => StallVerdict::Stalls,
        };
    }

    /// The loads half-way, in factors, between neighbours of which one stalls and the other forwards, where these
    /// are further apart than the share `width` of the lower one.
    pub(super) fn middles(&self, width: f64) -> Vec<f64> {
        let pairs = self.rates.array_windows().filter(|[low, high]| {
            let told = |rate: &StallRate| rate.verdict != StallVerdict::Unknown;
            let is_edge = told(low) && told(high) && low.verdict != high.verdict;
            is_edge && high.pps > low.pps * (1.0 + width)
        });
        pairs.map(|[low, high]| (low.pps * high.pps).sqrt()).collect()
    }

    /// Everything at each load.
    pub(super) fn rates_mut(&mut self) -> &mut [StallRate] {
        &mut self.rates
    }

    /// The same, without the map.
    pub(super) fn into_rates(self) -> Vec<StallRate> {
        self.rates
    }

    /// Runs of neighbouring loads with one verdict. The chance of a stall is wrong in at most the share `error`.
    pub(super) fn ranges(&self, error: f64) -> Vec<StallRange> {
        let mut below = None;
        let mut first = 0;
        let mut ranges = Vec::new();
        for run in self.rates.chunk_by(|one, next| one.verdict == next.verdict) {
            let (Some(low), Some(high)) = (run.first(), run.last()) else { continue };
            first += run.len();
            let trials = run.iter().map(|rate| rate.trials).sum();
            let stalled = run.iter().map(|rate| rate.stalled).sum();
            let (chance_lower, chance_upper) = proportion::interval(stalled as u64, trials as u64, error);
            ranges.push(StallRange {
                verdict: low.verdict,
                from_pps: low.pps,
                to_pps: high.pps,
                above_pps: below,
                below_pps: self.rates.get(first).map(|next| next.pps),
                trials,
                stalled,
                chance_lower,
                chance_upper,
            });
            below = Some(high.pps);
        }
        ranges
    }
}

fn unknown(pps: f64) -> StallRate {
    StallRate { pps, ..StallRate::default() }
}

/// The same loads in an order drawn by chance (Fisher and Yates).
pub(super) fn shuffled(mut loads: Vec<f64>, random: &mut Random) -> Vec<f64> {
    for last in (1..loads.len()).rev() {
        loads.swap(last, random.below(last + 1));
    }
    loads
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(stalls: bool) -> Shown {
        if stalls { Shown::Stalls } else { Shown::Forwards }
    }

    /// Tries all of a ladder, then halves every edge down to `width`, against a device that stalls where `stalls` says.
    fn search(ladder: (f64, f64, u32), width: f64, stalls: impl Fn(f64) -> bool) -> (Map, usize) {
        let mut map = Map::ladder(ladder.0, ladder.1, ladder.2);
        let mut next = map.loads();
        let mut trials = 0;
        while !next.is_empty() {
            trials += next.len();
            next.into_iter().for_each(|pps| map.add(pps, shown(stalls(pps))));
            next = map.middles(width);
        }
        (map, trials)
    }

    #[test]
    fn a_ladder_begins_and_ends_where_it_is_told_to_with_equal_factors_between() {
        let loads = Map::ladder(100.0, 1e6, 3).loads();
        assert_eq!((loads.len(), loads[0], loads[12]), (13, 100.0, 1e6));
        let factors: Vec<f64> = loads.windows(2).map(|pair| pair[1] / pair[0]).collect();
        assert!(factors.iter().all(|factor| (factor / 10f64.powf(1.0 / 3.0) - 1.0).abs() < 1e-9));
        assert_eq!(Map::ladder(5.0, 5.0, 3).loads(), [5.0]);
        assert_eq!(Map::ladder(100.0, 150.0, 1).loads(), [100.0, 150.0]);
    }

    #[test]
    fn ranges_say_between_which_loads_their_edges_lie() {
        let (map, _) = search((100.0, 1e6, 3), 0.05, |pps| pps < 2_000.0);
        let [stalls, forwards] = map.ranges(0.05)[..] else { panic!("{:?}", map.ranges(0.05)) };
        assert_eq!((stalls.verdict, stalls.from_pps, stalls.above_pps), (StallVerdict::Stalls, 100.0, None));
        assert!(stalls.to_pps < 2_000.0 && stalls.to_pps > 1_900.0, "{stalls:?}");
        assert_eq!(stalls.below_pps, Some(forwards.from_pps));
        assert_eq!((forwards.to_pps, forwards.below_pps), (1e6, None));
        assert!(forwards.from_pps >= 2_000.0 && forwards.from_pps < 2_100.0, "{forwards:?}");
        assert_eq!((forwards.stalled, forwards.chance_lower), (0, 0.0));
        assert!(forwards.chance_upper < 0.4 && stalls.chance_lower > 0.5, "{forwards:?} {stalls:?}");
    }

    #[test]
    fn loads_without_a_result_are_unknown_and_their_edges_are_not_searched() {
        let mut map = Map::ladder(10.0, 1_000.0, 1);
        map.add(10.0, Shown::Stalls);
        map.add(100.0, Shown::Nothing("the tester was late".to_owned()));
        map.add(100.0, Shown::Nothing("again".to_owned()));
        map.add(1_000.0, Shown::Forwards);
        assert!(map.middles(0.01).is_empty());
        let verdicts: Vec<StallVerdict> = map.ranges(0.05).iter().map(|range| range.verdict).collect();
        assert_eq!(verdicts, [StallVerdict::Stalls, StallVerdict::Unknown, StallVerdict::Forwards]);
        assert_eq!(map.rates[1].untold, Some(Untold { trials: 2, reason: "again".to_owned() }));
        map.add(100.0, Shown::Forwards);
        assert_eq!(map.ranges(0.05).len(), 2);
    }

    #[test]
    fn one_stall_outweighs_all_trials_without() {
        let mut map = Map::ladder(10.0, 10.0, 1);
        (0..9).for_each(|_| map.add(10.0, Shown::Forwards));
        map.add(10.0, Shown::Stalls);
        let range = map.ranges(0.05)[0];
        assert_eq!((range.verdict, range.trials, range.stalled), (StallVerdict::Stalls, 10, 1));
        assert!(range.chance_lower < 0.01 && range.chance_upper < 0.5, "{range:?}");
    }

    proptest! {
        /// A device that stalls between two rates: what the ladder meets is found to the width, whatever it is.
        #[test]
        fn edges_that_the_ladder_meets_are_found_to_the_width(
            low in 1.0..1e7f64, factor in 1.0..1e4f64, steps in 1..6u32, width in 0.005..0.5f64,
        ) {
            let high = low * factor;
            let stalls = |pps: f64| (low..high).contains(&pps);
            let (map, trials) = search((10.0, 1e6, steps), width, stalls);
            prop_assert!(trials < 200, "{trials} trials");
            let ranges = map.ranges(0.05);
            prop_assert!(ranges.len() <= 3);
            for range in &ranges {
                prop_assert_eq!(range.verdict == StallVerdict::Stalls, stalls(range.from_pps));
                if let Some(above) = range.above_pps {
                    let edge = if stalls(range.from_pps) { low } else { high };
                    prop_assert!(above < edge && edge <= range.from_pps, "{range:?}");
                    prop_assert!(range.from_pps <= above * (1.0 + width) * (1.0 + 1e-9), "{range:?}");
                }
            }
            prop_assert_eq!((ranges[0].from_pps, ranges[ranges.len() - 1].to_pps), (10.0, 1e6));
        }

        #[test]
        fn an_order_by_chance_has_every_load_once(seed: u64, count in 0..40usize) {
            let loads: Vec<f64> = (0..count).map(|at| at as f64).collect();
            let mut again = shuffled(loads.clone(), &mut Random::new(seed));
            again.sort_by(f64::total_cmp);
            prop_assert_eq!(again, loads);
        }
    }
}
