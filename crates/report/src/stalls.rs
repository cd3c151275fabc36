//! What a stall search found, in words: its ranges and stalls enter; what the terminal, the page and the bundle of
//! evidence say of them leaves.

use results::record::{
    Counted, RateInterval, RateStall, Recovered, StallRange, StallRate, StallSearch, StallVerdict,
};
use wire::human::{count, pps};

use crate::evidence::bounds;
use crate::figures::plain_duration;

/// The verdict in a word.
pub fn verdict(verdict: StallVerdict) -> &'static str {
    match verdict {
        StallVerdict::Forwards => "forwards",
        StallVerdict::Stalls => "stalls",
        StallVerdict::Unknown => "unknown",
    }
}

/// What was tried, in a sentence without a full stop.
pub fn tried(found: &StallSearch) -> String {
    format!(
        "loads from {} to {} in each direction; each load of the first pass was tried {} for {}",
        pps(found.lowest_pps),
        pps(found.highest_pps),
        times(found.repeats),
        plain_duration(found.hold_s * 1e9)
    )
}

/// How often, in words.
fn times(number: usize) -> String {
    if number == 1 { "once".to_owned() } else { format!("{number} times") }
}

/// Where the range begins: the lowest load of the search, or between which loads.
pub fn begins(range: &StallRange) -> String {
    range.above_pps.map_or_else(|| pps(range.from_pps), |above| between(above, range.from_pps))
}

/// Where it ends, likewise.
pub fn ends(range: &StallRange) -> String {
    range.below_pps.map_or_else(|| pps(range.to_pps), |below| between(range.to_pps, below))
}

fn between(lower: f64, upper: f64) -> String {
    bounds(RateInterval { lower_pps: lower, upper_pps: Some(upper) })
}

/// Between which chances that of a stall in one trial lies; nothing where every trial is unknown.
pub fn chance(range: &StallRange) -> String {
    let percent = |share: f64| format!("{:.0}", share * 100.0);
    match (range.trials, range.stalled) {
        (0, _) => "-".to_owned(),
        (_, 0) => format!("≤ {} %", percent(range.chance_upper)),
        (trials, stalled) if trials == stalled => format!("≥ {} %", percent(range.chance_lower)),
        _ => format!("{}–{} %", percent(range.chance_lower), percent(range.chance_upper)),
    }
}

/// The finding in a few words: in which ranges the device stalls.
pub fn headline(found: &StallSearch) -> String {
    let stalls = |range: &&StallRange| range.verdict == StallVerdict::Stalls;
    let each: Vec<String> = found.ranges.iter().filter(stalls).map(|range| span(range, found)).collect();
    match each.as_slice() {
        [] if found.ranges.iter().all(|range| range.verdict == StallVerdict::Unknown) => {
            "unknown at every load".to_owned()
        }
        [] => "no stall".to_owned(),
        _ => format!("stalls {}", each.join(" and ")),
    }
}

fn span(range: &StallRange, found: &StallSearch) -> String {
    let is_open = |edge: f64, end: f64| (edge - end).abs() <= end * f64::EPSILON;
    let (low, high) = (is_open(range.from_pps, found.lowest_pps), is_open(range.to_pps, found.highest_pps));
    match (low, high) {
        (true, true) => "at every load".to_owned(),
        (true, false) => format!("up to {}", pps(range.to_pps)),
        (false, true) => format!("from {} on", pps(range.from_pps)),
        (false, false) => format!("from {} to {}", pps(range.from_pps), pps(range.to_pps)),
    }
}

/// Every stall with the load at which it was, in order of time.
pub fn stalls(found: &StallSearch) -> Vec<(&StallRate, &RateStall)> {
    let mut all: Vec<_> =
        found.rates.iter().flat_map(|rate| rate.stalls.iter().map(move |stall| (rate, stall))).collect();
    all.sort_by(|(_, one), (_, other)| one.trial_s.total_cmp(&other.trial_s));
    all
}

/// A stall in a sentence without a full stop.
pub fn sentence(rate: &StallRate, seen: &RateStall) -> String {
    format!(
        "{}: {} stalled {} and {} frames after the load began: {}; {}",
        pps(rate.pps),
        seen.direction.replace("->", "→"),
        plain_duration(seen.after_s * 1e9),
        count(seen.after_frames),
        counted(&seen.stall.counters.during),
        recovery(seen)
    )
}

/// What made the device forward again.
pub fn recovery(seen: &RateStall) -> String {
    let after = seen.recovery_s.map_or_else(String::new, |seconds| {
        format!(", seen {} after the trial", plain_duration(seconds * 1e9))
    });
    match seen.recovery {
        Recovered::DuringTrial => "it forwarded again during the trial".to_owned(),
        Recovered::ByItself => format!("it forwarded again by itself{after}"),
        Recovered::ByReset => format!("it forwarded again after a reset{after}"),
        Recovered::No => "it did not forward again".to_owned(),
    }
}

/// Counters in words.
fn counted(during: &Counted) -> String {
    let tester = format!("{} offered, {} came back", count(during.offered), count(during.forwarded));
    during.device.map_or_else(
        || tester.clone(),
        |device| {
            let (received, forwarded) = (count(device.received), count(device.forwarded));
            format!("{tester}, the device received {received} and sent on {forwarded}")
        },
    )
}

/// The verdict at each of `width` loads, equal factors apart, by the nearest load that was tried.
pub fn strip(found: &StallSearch, width: usize) -> Vec<StallVerdict> {
    let factor = found.highest_pps / found.lowest_pps;
    let at = |place: usize| found.lowest_pps * factor.powf((place as f64 + 0.5) / width as f64);
    let distance = |rate: &StallRate, pps: f64| (rate.pps / pps).ln().abs();
    let nearest = |pps: f64| {
        found.rates.iter().min_by(|one, other| distance(one, pps).total_cmp(&distance(other, pps)))
    };
    (0..width).map(|place| nearest(at(place)).map_or(StallVerdict::Unknown, |rate| rate.verdict)).collect()
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;

    use super::*;

    fn found() -> StallSearch {
        Scenario::default().stall_search().finding.stall_search().unwrap().clone()
    }

    #[test]
    fn the_headline_names_the_ranges_that_stall() {
        let mut search = found();
        assert_eq!(headline(&search), "stalls from 1.95 kpps to 10.00 kpps");
        search.ranges[1].from_pps = 100.0;
        assert_eq!(headline(&search), "stalls up to 10.00 kpps");
        search.ranges[1].to_pps = 1e6;
        assert_eq!(headline(&search), "stalls at every load");
        search.ranges.retain(|range| range.verdict != StallVerdict::Stalls);
        assert_eq!(headline(&search), "no stall");
        search.ranges.retain(|range| range.verdict == StallVerdict::Unknown);
        assert_eq!(headline(&search), "unknown at every load");
    }

    #[test]
    fn a_strip_shows_what_the_nearest_load_did() {
        let strip = strip(&found(), 40);
        let stalls = strip.iter().filter(|verdict| **verdict == StallVerdict::Stalls).count();
        assert_eq!((strip[0], strip[39]), (StallVerdict::Forwards, StallVerdict::Unknown));
        assert!((7..=9).contains(&stalls), "{stalls} of 40 for 0.9 of 4 decades");
        assert!(strip.chunk_by(|one, next| one == next).count() == 4);
    }

    #[test]
    fn stalls_are_told_in_order_of_time() {
        let search = found();
        let all = super::stalls(&search);
        assert_eq!(all.len(), 3);
        assert!(all.windows(2).all(|pair| pair[0].1.trial_s <= pair[1].1.trial_s));
        let text = sentence(all[0].0, all[0].1);
        assert!(
            text.starts_with("1.95 kpps: 0→1 stalled 2.5 s and 4,875 frames after the load began: "),
            "{text}"
        );
        assert!(text.ends_with("it forwarded again after a reset, seen 700.0 ms after the trial"), "{text}");
    }
}
