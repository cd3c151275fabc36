//! No figure of a record contradicts another: a record enters; what contradicts leaves, in words, or is
//! taken out of the record with a note that says why.

use wire::human::pps;

use crate::record::{Direction, DirectionSample, LimitedBy, Phase, Record, Sample, SelfTest};

/// By how much figures that were taken by different clocks may differ.
const TOLERANCE: f64 = 0.01;
/// What a core has in a second, in nanoseconds.
const SECOND_NS: f64 = 1e9;

/// Takes out of a finished record what its own samples contradict, and notes it.
pub fn settle(record: &mut Record) {
    crate::shared_core::correct(record);
    if let Some(cost) = record.tester.receive_cost_ns {
        let note = match too_costly(record) {
            true => {
                record.tester.receive_cost_ns = None;
                format!(
                    "tester RX overhead on the DUT core: unknown ({cost:.0} ns/frame were measured before the run, \
                     more than the core has at {})",
                    pps(received_pps(record))
                )
            }
            false => format!(
                "tester RX overhead on the DUT core: {cost:.0} ns/frame (measured at 64 B, saturated)"
            ),
        };
        record.notes.push(note);
    }
    if let Some(why) = stale_self_test(record) {
        record.tester.self_test = None;
        record.notes.push(format!(
            "{why}: both are left out, since the host was slower then; run 'linerate verify ceiling'"
        ));
    }
    for direction in record.directions.iter_mut().filter(|it| it.limited_by == LimitedBy::Tester) {
        if let Some(evidence) = &mut direction.evidence {
            evidence.limit.iter_mut().for_each(|limit| limit.upper_pps = None);
        }
    }
}

/// What of `record` contradicts what else of it; empty if nothing does.
#[must_use]
pub fn contradictions(record: &Record) -> Vec<String> {
    let mut found: Vec<String> = stale_self_test(record).into_iter().collect();
    if too_costly(record) {
        found.push("receiving costs more than the core has".to_owned());
    }
    if record.tester.receive_share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
        found.push("receiving took more of the core than all of it".to_owned());
    }
    for sample in &record.samples {
        found.extend(of_sample(sample).map(|what| format!("at {:.3} s: {what}", sample.at_s)));
    }
    found.extend(arrived_too_soon(record).map(|at_s| format!("at {at_s:.3} s: more came back than left")));
    for direction in &record.directions {
        let forgiven = record.strategy.loss_threshold;
        found.extend(of_direction(direction, forgiven).map(|what| format!("{}: {what}", direction.name)));
    }
    let searched = record.finding.search().into_iter().flat_map(|search| &search.results);
    for (goal, result) in searched {
        if result.upper_pps.is_some_and(|upper| upper < result.lower_pps) {
            found.push(format!("{goal}: the upper bound is below the lower one"));
        }
        if result.conditional_throughput_pps > result.lower_pps * (1.0 + TOLERANCE) {
            found.push(format!("{goal}: more came back than was offered"));
        }
    }
    found
}

/// The samples by whose end more had come back than had left. The tester's own frames say in which sample they left;
/// those of other generators are counted where they arrive, which may be a sample later.
fn arrived_too_soon(record: &Record) -> impl Iterator<Item = f64> {
    let counted_late = record.finding.generator().is_some();
    let mut on_the_way = vec![0; record.directions.len()];
    record.samples.iter().filter_map(move |sample| {
        let ways = sample.directions.iter().zip(&mut on_the_way);
        let early = ways.filter_map(|(it, waiting)| {
            let left = it.offered + std::mem::take(waiting);
            *waiting = left.saturating_sub(it.forwarded) * u64::from(counted_late);
            (it.forwarded > left).then_some(())
        });
        (early.count() > 0).then_some(sample.at_s)
    })
}

/// Whether receiving at the rate of this run would cost the core more than it has.
fn too_costly(record: &Record) -> bool {
    record.tester.receive_cost_ns.is_some_and(|cost| cost * received_pps(record) > SECOND_NS)
}

/// The most frames a second that the tester received in half a second or longer, directions added up.
fn received_pps(record: &Record) -> f64 {
    let held = record.directions.iter().map(|direction| direction.max_forwarded_pps);
    if record.directions.len() < 2 {
        return held.sum();
    }
    // The directions may have had their best half second at different times.
    let all = |sample: &Sample| sample.directions.iter().map(|it| it.forwarded_pps).sum::<f64>();
    record.samples.iter().map(all).fold(0.0, f64::max).min(held.sum())
}

/// Why the tester's own limits are not those of this run, if so.
#[must_use]
pub fn stale_self_test(record: &Record) -> Option<String> {
    let alone = record.tester.self_test.as_ref()?;
    let measured = || record.samples.iter().filter(|sample| sample.phase != Phase::WarmUp);
    let directions = || measured().flat_map(|sample| &sample.directions);
    // More may well have been offered: frames that nobody receives take less of the tester.
    let received = record.directions.iter().map(|it| it.max_forwarded_pps).fold(0.0, f64::max);
    if received > alone.ceiling_pps * (1.0 + TOLERANCE) {
        let (received, ceiling) = (pps(received), pps(alone.ceiling_pps));
        return Some(format!(
            "{received} came back, more than the {ceiling} that the tester received over the loopback"
        ));
    }
    let p50 = alone.base_latency_p50_ns?;
    let compares = |it: &&DirectionSample| it.forwarded > 0 && it.intended_pps <= SelfTest::LOW_PPS;
    let medians = directions().filter(compares).filter_map(|it| it.latency).map(|it| it.p50_ns);
    let lowest = medians.min().filter(|lowest| *lowest < p50)?;
    let low = pps(SelfTest::LOW_PPS);
    Some(format!(
        "at {low} or less the median latency was {lowest} ns, less than the loopback p50 of {p50} ns"
    ))
}

fn of_sample(sample: &Sample) -> impl Iterator<Item = &'static str> {
    let any = |test: &dyn Fn(&DirectionSample) -> bool| sample.directions.iter().any(test);
    let share =
        |it: &DirectionSample| it.offered.saturating_sub(it.forwarded) as f64 / it.offered.max(1) as f64;
    let found = [
        (any(&|it| (it.loss_ratio - share(it)).abs() > 1e-6), "the loss is not that of the frames"),
        (
            any(&|it| it.undisturbed.is_some_and(|clean| clean.offered > it.offered)),
            "more frames left undisturbed than left",
        ),
        (
            any(&|it| it.latency.is_some_and(|seen| seen.p50_ns > seen.p99_ns || seen.p99_ns > seen.max_ns)),
            "percentiles of the latency fall",
        ),
        (
            sample.dut_core_busy.is_some_and(|busy| !(0.0..=1.0 + 1e-9).contains(&busy)),
            "the device's core was busy for more than all the time",
        ),
    ];
    found.into_iter().filter_map(|(wrong, what)| wrong.then_some(what))
}

fn of_direction(direction: &Direction, forgiven: f64) -> impl Iterator<Item = &'static str> {
    let held = direction.max_rate_pps;
    let evidence = direction.evidence.unwrap_or_default();
    let limit = evidence.limit;
    let falls = |it: crate::record::RateInterval| it.upper_pps.is_some_and(|upper| upper < it.lower_pps);
    let found = [
        (direction.forwarded > direction.offered, "more came back than left"),
        (
            direction.unshared_rate_pps.is_some_and(|unshared| unshared < held),
            "the rate without the receiver is below the rate with it",
        ),
        (
            limit.is_some_and(falls) || evidence.forwarded.is_some_and(falls),
            "an upper bound is below its lower one",
        ),
        (
            limit.is_some_and(|it| held < it.lower_pps * (1.0 - TOLERANCE)),
            "the headline is below its interval",
        ),
        (
            limit.and_then(|it| it.upper_pps).is_some_and(|upper| held > upper * (1.0 + TOLERANCE)),
            "the headline is above its interval",
        ),
        (
            evidence.ramp.is_some()
                && direction.max_forwarded_pps < held * (1.0 - forgiven) * (1.0 - TOLERANCE),
            "less came back than of the headline's load",
        ),
        (evidence.affected > evidence.samples, "more samples were affected than there are"),
        (evidence.interference_matters && evidence.affected == 0, "interference mattered without any"),
        (
            direction.limited_by == LimitedBy::Tester && limit.is_some_and(|it| it.upper_pps.is_some()),
            "the tester was the limit, but the device has an upper bound",
        ),
    ];
    found.into_iter().filter_map(|(wrong, what)| wrong.then_some(what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{Scenario, bench, oddities, searches};
    use crate::record::{Finding, Generator};

    fn self_test(ceiling_pps: f64, p50_ns: Option<u64>) -> Option<SelfTest> {
        Some(SelfTest {
            measured: "2026-01-01T00:00:00Z".to_owned(),
            ceiling_pps,
            base_latency_min_ns: 3_000,
            base_latency_mean_ns: 9_000.0,
            base_latency_p50_ns: p50_ns,
        })
    }

    #[test]
    fn no_figure_of_any_fixture_contradicts_another() {
        let scenario = Scenario::default();
        let others = [scenario.latency_test(), scenario.eventful_soak(), scenario.searched_ramp()];
        for record in bench().into_iter().chain(oddities()).chain(searches()).chain(others) {
            assert_eq!(contradictions(&record), Vec::<String>::new(), "{}", record.name);
        }
    }

    #[test]
    fn a_receive_cost_beyond_the_core_is_unknown() {
        let mut record = Scenario { capacity_pps: 2.3e6, ..Scenario::default() }.record();
        record.tester.receive_cost_ns = Some(826.0);
        assert_eq!(contradictions(&record), ["receiving costs more than the core has"]);
        settle(&mut record);
        assert_eq!(record.tester.receive_cost_ns, None);
        assert!(record.notes.last().unwrap().contains("unknown (826 ns/frame"), "{:?}", record.notes);
        assert!(contradictions(&record).is_empty());
        record.tester.receive_cost_ns = Some(200.0);
        settle(&mut record);
        assert_eq!(record.tester.receive_cost_ns, Some(200.0));
    }

    #[test]
    fn limits_of_the_tester_that_the_run_exceeds_are_left_out() {
        let mut record = Scenario::default().record();
        let received = record.directions[0].max_forwarded_pps;
        assert!(record.samples.iter().any(|it| it.directions[0].offered_pps > 2.0 * received));
        record.tester.self_test = self_test(received, None);
        assert_eq!(contradictions(&record), Vec::<String>::new(), "more may be offered than is received");
        record.tester.self_test = self_test(received / 1.02, None);
        assert!(contradictions(&record)[0].contains("came back, more than"), "{:?}", contradictions(&record));
        settle(&mut record);
        assert!(record.tester.self_test.is_none() && contradictions(&record).is_empty());
        record.tester.self_test = self_test(1e7, Some(30_200));
        assert!(stale_self_test(&record).is_none(), "frames may be faster at a higher load");
        let measured = record.samples.iter_mut().find(|sample| sample.phase != Phase::WarmUp);
        measured.unwrap().directions[0].intended_pps = SelfTest::LOW_PPS;
        assert!(contradictions(&record)[0].contains("loopback p50"), "{:?}", contradictions(&record));
        settle(&mut record);
        assert!(record.tester.self_test.is_none());
        record.tester.self_test = self_test(1e7, Some(4_000));
        settle(&mut record);
        assert!(record.tester.self_test.is_some());
    }

    #[test]
    fn a_limit_of_the_tester_is_no_upper_bound_of_the_device() {
        let mut record = Scenario::default().record();
        record.directions[0].limited_by = LimitedBy::Tester;
        assert_eq!(contradictions(&record).len(), 1);
        settle(&mut record);
        assert_eq!(record.directions[0].evidence.unwrap().limit.unwrap().upper_pps, None);
    }

    #[test]
    fn only_what_another_generator_sent_may_arrive_a_sample_later() {
        let mut record = Scenario::default().record();
        record.samples[3].directions[0].forwarded -= 5;
        let direction = &mut record.samples[4].directions[0];
        direction.forwarded = direction.offered + 5;
        record.samples[3..5].iter_mut().flat_map(|it| &mut it.directions).for_each(|it| {
            it.loss_ratio = it.offered.saturating_sub(it.forwarded) as f64 / it.offered as f64;
        });
        let found = contradictions(&record);
        assert!(found.len() == 1 && found[0].ends_with("more came back than left"), "{found:?}");
        record.finding = Finding::Generator(Some(Box::new(Generator {
            program: "trafgen".to_owned(),
            version: "0.6.8".to_owned(),
            command: Vec::new(),
            input: None,
            datagram: 1500,
            frames: vec![1518, 66],
            across: false,
            said: None,
            left: 0,
            refused: 0,
            core_busy: None,
            waterfall: Vec::new(),
            built: Vec::new(),
        })));
        assert_eq!(contradictions(&record), Vec::<String>::new());
        record.samples[4].directions[0].forwarded += 1;
        assert_eq!(contradictions(&record).len(), 1);
    }

    #[test]
    fn contradictions_of_samples_and_directions_are_found() {
        let wrong = |change: &dyn Fn(&mut Record)| {
            let mut record = Scenario::default().record();
            change(&mut record);
            contradictions(&record).len()
        };
        assert_eq!(wrong(&|_| {}), 0);
        assert_eq!(wrong(&|it| it.samples[9].dut_core_busy = Some(1.92)), 1);
        assert_eq!(wrong(&|it| it.samples[9].directions[0].loss_ratio = 0.5), 1);
        assert_eq!(wrong(&|it| it.directions[0].max_rate_pps *= 2.0), 1);
        assert_eq!(wrong(&|it| it.directions[0].forwarded = u64::MAX), 1);
        assert_eq!(wrong(&|it| it.directions[0].unshared_rate_pps = Some(1.0)), 1);
        assert_eq!(wrong(&|it| it.tester.receive_share = Some(1.92)), 1);
        assert_eq!(wrong(&|it| it.directions[0].evidence.as_mut().unwrap().affected = 1_000), 1);
    }
}
