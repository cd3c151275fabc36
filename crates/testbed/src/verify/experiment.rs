//! What is compared with the truth: a device that knows it enters, what one attempt found leaves.

use std::time::Duration;

use anyhow::Result;
use engine::Load;
use results::certificate::Unit;
use results::record::GoalResult;
use traffic::Directions;
use trial::rfc2544::{Rfc2544, Test, Timing};
use trial::{Conditions, Goal, Outcome, Search};
use wire::size;
use wording::usage::in_one_line;

use super::finding::{BEYOND, Finding, Sight};
use super::stand::{Host, LINE_RATE, Stand};

/// The size of the frames that are sent.
const FRAME_SIZE: f64 = 64.0;
/// How far off a capacity may be, as a share.
const CAPACITY_BOUND: f64 = 0.005;
/// Frames that may wait in front of a device in user space.
const USER_SPACE_QUEUE: u64 = 1024;
/// How far above the truth a passed load may be, as a share: by default a search makes trials so long
/// that the device's queue hides no more.
const HIDDEN: f64 = CAPACITY_BOUND / 2.0;
/// How far off a latency may be: so long, or such a share.
const DELAY_BOUND: (f64, f64) = (5_000.0, 0.02);
/// How far off the longest burst may be: the test's resolution, and what a core that stands still for
/// 0.2 ms costs, since the frames that waited then come at once. That is 1 % in all.
const BURST_RESOLUTION: f64 = 0.005;
const BURST_PAUSE_S: f64 = 0.0002;
/// Standard deviations that a loss by chance may be off: one in two million is further off.
const DEVIATIONS: f64 = 5.0;

/// How long is measured.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Loads whose frames are counted.
    pub load: Duration,
    /// A latency.
    pub latency: Duration,
    /// A search for a capacity, at most.
    pub search: Duration,
}

/// One device, and what is measured of it.
#[derive(Clone, Copy, Debug)]
pub enum Experiment {
    /// What should leave leaves, and all of it returns through a cross connect.
    CrossConnect,
    /// Every tenth frame is lost.
    DropEvery,
    /// Frames are lost by chance.
    Chance,
    /// After some frames nothing returns any more.
    Stall,
    /// Frames change their order, and come twice.
    Order,
    /// A burst fills a queue of known depth.
    Burst,
    /// Frames are held for known times.
    Delay,
    /// A capacity in frames a second that the search does not know.
    Capacity(u32),
    /// In user space, every tenth frame is lost, and the device counts as we do.
    UserSpaceLoss,
    /// The same as `Capacity`, in user space.
    UserSpaceCapacity(u32),
}

impl Experiment {
    /// What is measured, in a few words.
    pub fn title(self) -> String {
        match self {
            Self::CrossConnect => "a plain cross connect".to_owned(),
            Self::DropEvery => "every tenth frame lost".to_owned(),
            Self::Chance => "frames lost by chance".to_owned(),
            Self::Stall => "a stall".to_owned(),
            Self::Order => "order and duplicates".to_owned(),
            Self::Burst => "the longest burst".to_owned(),
            Self::Delay => "added delays".to_owned(),
            Self::Capacity(_) => "a capacity by search".to_owned(),
            Self::UserSpaceLoss => "every tenth frame lost, in user space".to_owned(),
            Self::UserSpaceCapacity(_) => "a capacity by search, in user space".to_owned(),
        }
    }

    /// Measures once: always the same figures, in the same order.
    ///
    /// # Errors
    /// When the lab or the engine cannot be started, or the user asked to stop.
    pub fn attempt(self, pace: &Pace, host: &Host) -> Result<Vec<Finding>> {
        match self {
            Self::CrossConnect => cross_connect(pace, host),
            Self::DropEvery => drop_every(pace, host),
            Self::Chance => chance(pace, host),
            Self::Stall => stall(host),
            Self::Order => order(pace, host),
            Self::Burst => burst(host),
            Self::Delay => delay(pace, host),
            Self::Capacity(pps) => capacity(pps, pace, host),
            Self::UserSpaceLoss => user_space_loss(pace, host),
            Self::UserSpaceCapacity(pps) => user_space_capacity(pps, pace, host),
        }
    }
}

/// Frames that `pps` sends in `duration`.
fn frames(pps: f64, duration: Duration) -> u64 {
    (pps * duration.as_secs_f64()) as u64
}

fn cross_connect(pace: &Pace, host: &Host) -> Result<Vec<Finding>> {
    let mut stand = Stand::open("xdp-xconnect", Directions::Both, LINE_RATE, host)?;
    let sent = stand.send(Load::Rate(20_000.0), pace.load)?;
    let excuse = |off| sent.excuse(off);
    // A frame may fall to either side of an interval's beginning and end, in each direction.
    let offered = (Unit::Frames, sent.intended, sent.offered as f64);
    let lost = (Unit::Frames, 0.0, sent.lost() as f64);
    Ok(vec![
        Finding::new("frames offered, of those intended", stand.dut(), offered, 4.0, excuse),
        Finding::new("frames lost over a plain cross connect", stand.dut(), lost, 0.0, excuse),
    ])
}

fn drop_every(pace: &Pace, host: &Host) -> Result<Vec<Finding>> {
    const PPS: f64 = 20_000.0;
    let mut stand = Stand::open("calibrated:drop-every=10", Directions::Forward, LINE_RATE, host)?;
    let sent = stand.burst(PPS, frames(PPS, pace.load))?;
    let lost = (Unit::Frames, (sent.offered / 10) as f64, sent.lost() as f64);
    Ok(vec![Finding::new("frames lost, of every tenth", stand.dut(), lost, 0.0, |off| sent.excuse(off))])
}

fn chance(pace: &Pace, host: &Host) -> Result<Vec<Finding>> {
    const PPS: f64 = 50_000.0;
    const CHANCE: f64 = 0.01;
    let mut stand = Stand::open("calibrated:loss=1%", Directions::Forward, LINE_RATE, host)?;
    let sent = stand.burst(PPS, frames(PPS, pace.load))?;
    let device = stand.device()?;
    let offered = sent.offered.max(1) as f64;
    // Independent losses are binomially distributed.
    let bound = DEVIATIONS * (CHANCE * (1.0 - CHANCE) / offered).sqrt();
    let ratio = (Unit::Share, CHANCE, sent.lost() as f64 / offered);
    let lost = (Unit::Frames, device.dropped() as f64, sent.lost() as f64);
    Ok(vec![
        Finding::new("loss ratio", stand.dut(), ratio, bound, |off| sent.excuse((off - bound) * offered)),
        Finding::new("frames lost by chance", stand.dut(), lost, 0.0, |off| sent.excuse(off)),
    ])
}

fn stall(host: &Host) -> Result<Vec<Finding>> {
    const AFTER: u64 = 5_000;
    let mut stand =
        Stand::open(&format!("calibrated:stall-after={AFTER}"), Directions::Forward, LINE_RATE, host)?;
    let sent = stand.burst(20_000.0, 2 * AFTER)?;
    let forwarded = (Unit::Frames, AFTER as f64, sent.forwarded as f64);
    Ok(vec![Finding::new("frames before a stall", stand.dut(), forwarded, 0.0, |off| sent.excuse(off))])
}

fn order(pace: &Pace, host: &Host) -> Result<Vec<Finding>> {
    const PPS: f64 = 5_000.0;
    let dut = "delayed:delay=100us,reorder=1%,duplicate=0.5%";
    let mut stand = Stand::open(dut, Directions::Both, LINE_RATE, host)?;
    let sent = stand.burst(PPS, frames(PPS, pace.load))?;
    let totals = stand.totals()?;
    let device = stand.device()?;
    let excuse = |off| sent.excuse(off);
    let figures = |truth: u64, measured: u64| (Unit::Frames, truth as f64, measured as f64);
    let forwarded = figures(device.forwarded, sent.forwarded);
    let reordered = figures(device.reordered, totals.iter().map(|totals| totals.reordered).sum());
    let duplicates = figures(device.duplicated, totals.iter().map(|totals| totals.duplicates).sum());
    Ok(vec![
        Finding::new("frames returned", dut, forwarded, 0.0, excuse),
        Finding::new("frames reordered", dut, reordered, 0.0, excuse),
        Finding::new("frames duplicated", dut, duplicates, 0.0, excuse),
    ])
}

/// RFC 2544 section 26.4 against a device whose longest burst is stated: 1 + (burst - 1) L / (L - C).
fn burst(host: &Host) -> Result<Vec<Finding>> {
    const NAME: &str = "longest burst, median of five";
    let (offered, capacity, queue) = (100e3, 50e3, 2_000.0);
    let dut = format!("calibrated:rate={capacity},burst={queue}");
    let line_rate_bps = size::pps_to_l1_bps(offered, FRAME_SIZE);
    let short = Duration::from_millis(100);
    let test = Rfc2544 {
        tests: [Test::BackToBack].into(),
        timing: Timing {
            warm_up: short,
            drain: short,
            search_trial: short,
            trial: short,
            burst: short,
            bursts: 5,
            ..Timing::quick()
        },
        frame_size: FRAME_SIZE,
        line_rate_bps,
        min_pps: 1_000.0,
        deviations: Vec::new(),
    };
    let mut stand = Stand::open(&dut, Directions::Forward, line_rate_bps, host)?;
    let outcome = stand.run(&test);
    let gain = offered / (offered - capacity);
    let truth = 1.0 + (queue - 1.0) * gain;
    // What comes while a core stands still comes at once afterwards.
    let lost_to = |pause_s: f64| truth * BURST_RESOLUTION + pause_s * capacity * gain;
    let bound = lost_to(BURST_PAUSE_S);
    let found = outcome.finding.rfc2544().and_then(|found| found.back_to_back.as_ref());
    let disturbed = stand.disturbed();
    let Some(found) = found.filter(|found| !found.bursts.is_empty()) else {
        return Ok(vec![nothing(NAME, &dut, (Unit::Frames, truth, bound), &outcome, disturbed)]);
    };
    let unclear = disturbed.filter(|_| found.disturbed > 0 || found.standard_deviation > bound / 2.0);
    let mut bursts = found.bursts.clone();
    bursts.sort_unstable();
    // A single repeat in which a core was held up says nothing of the others.
    let median = bursts.get(bursts.len() / 2).copied().unwrap_or_default();
    // Most of the repeats were that short, and each may have met one of the longest pauses.
    let pause_s = stand.pauses().get(bursts.len() / 2).map_or(0.0, Duration::as_secs_f64);
    let by_pauses = |off: f64| {
        ((median as f64) < truth && off <= lost_to(pause_s)).then(|| {
            let (pause_ms, frames) = (pause_s * 1e3, lost_to(pause_s));
            format!("a core stood still for {pause_ms:.2} ms at once, more than once: up to {frames:.0} frames fewer pass")
        })
    };
    let figures = (Unit::Frames, truth, median as f64);
    let finding = Finding::new(NAME, &dut, figures, bound, |off| unclear.or_else(|| by_pauses(off)));
    Ok(vec![Finding { searched: true, ..finding }])
}

/// The same way with and without the delay: the device holds every second burst. So the base is
/// measured beside each delay, in the same lab and the same phase of the machine; bases of labs after
/// each other differ by microseconds.
fn delay(pace: &Pace, host: &Host) -> Result<Vec<Finding>> {
    const BURST: u64 = 50;
    let mut findings = Vec::new();
    for (delay, truth) in [("50us", 50e3), ("200us", 200e3), ("1ms", 1e6)] {
        let dut = format!("delayed:delay={delay},alternate={BURST}");
        let mut stand = Stand::open(&dut, Directions::Forward, LINE_RATE, host)?;
        let lowest = stand.alternate(BURST, pace.latency)?;
        let (unit, bound) = (Unit::Ns, f64::max(DELAY_BOUND.0, DELAY_BOUND.1 * truth));
        let name = format!("latency that {delay} of delay add");
        let disturbed = stand.disturbed();
        findings.push(match lowest {
            Some([base, held]) => Finding::new(name, &dut, (unit, truth, held - base), bound, |_| disturbed),
            None => {
                let why = "frames were lost, so that it is not known which the device held".to_owned();
                let sight = match disturbed {
                    Some(words) => Sight::Unclear(format!("{why}; {words}")),
                    None => Sight::Outside(why),
                };
                missing((name, dut), (unit, truth, bound), sight)
            }
        });
    }
    Ok(findings)
}

fn capacity(pps: u32, pace: &Pace, host: &Host) -> Result<Vec<Finding>> {
    let dut = format!("calibrated:rate={pps}");
    let stand = Stand::open(&dut, Directions::Forward, LINE_RATE, host)?;
    Ok(search("capacity (NDR)", stand, Goal::ndr(), pps, pace))
}

fn user_space_capacity(pps: u32, pace: &Pace, host: &Host) -> Result<Vec<Finding>> {
    const NAME: &str = "capacity in user space (NDR)";
    let dut = format!("calibrated:rate={pps}");
    let stand = match Stand::in_user_space(&dut, Directions::Forward, host) {
        Ok(stand) => stand,
        Err(error) => {
            let truth = f64::from(pps);
            return Ok(vec![without_stand(NAME, &dut, (Unit::Pps, truth, truth * CAPACITY_BOUND), &error)]);
        }
    };
    let goal = Goal { hidden_queue: USER_SPACE_QUEUE, ..Goal::ndr() };
    Ok(search(NAME, stand, goal, pps, pace))
}

fn user_space_loss(pace: &Pace, host: &Host) -> Result<Vec<Finding>> {
    const PPS: f64 = 200_000.0;
    const NAMES: [&str; 2] =
        ["frames lost in user space, of every tenth", "frames returned, of those the device sent"];
    let dut = "calibrated:drop-every=10";
    let mut stand = match Stand::in_user_space(dut, Directions::Both, host) {
        Ok(stand) => stand,
        Err(error) => {
            let missing = |name| without_stand(name, dut, (Unit::Frames, 0.0, 1.0), &error);
            return Ok(NAMES.map(missing).into());
        }
    };
    let sent = stand.burst(PPS, frames(PPS, pace.load))?;
    let device = stand.device()?;
    let figures = |truth: u64, measured: u64| (Unit::Frames, truth as f64, measured as f64);
    // Each direction has its own tenth frame.
    let lost = figures(sent.offered / 10, sent.lost());
    let forwarded = figures(device.forwarded, sent.forwarded);
    let excuse = |off| sent.excuse(off);
    Ok(vec![
        Finding::new(NAMES[0], dut, lost, 1.0, excuse),
        Finding::new(NAMES[1], dut, forwarded, 0.0, excuse),
    ])
}

/// Finds the capacity `pps` of the device on `stand` by a search for `goal`.
fn search(name: &str, mut stand: Stand, goal: Goal, pps: u32, pace: &Pace) -> Vec<Finding> {
    let conditions = Conditions { step: Duration::from_millis(100), ..stand.conditions() };
    let search = Search {
        conditions,
        goals: vec![goal],
        min_pps: 1_000.0,
        max_pps: size::l1_bps_to_pps(LINE_RATE, FRAME_SIZE),
        expected: None,
        max_duration: pace.search,
    };
    let outcome = stand.run(&search);
    let dut = stand.dut().to_owned();
    let truth = f64::from(pps);
    let bound = truth * CAPACITY_BOUND;
    let found = outcome.finding.results().values().next();
    let disturbed = stand.disturbed();
    let Some(found) = found.filter(|found| found.lower_pps > 0.0) else {
        return vec![nothing(name, &dut, (Unit::Pps, truth, bound), &outcome, disturbed)];
    };
    vec![Finding {
        name: name.to_owned(),
        dut,
        unit: Unit::Pps,
        truth,
        measured: Some(found.pps),
        interval: Some((found.lower_pps, found.upper_pps)),
        bound,
        searched: true,
        sight: judge(found, truth, disturbed),
    }]
}

/// What the result of a search is evidence of. What it claims must be true however disturbed it
/// was; but an interval that the machine widened, though true, says too little to pass.
fn judge(found: &GoalResult, truth: f64, disturbed: Option<String>) -> Sight {
    let holds =
        found.lower_pps <= truth * (1.0 + HIDDEN) && found.upper_pps.is_none_or(|upper| upper >= truth);
    let exact = found.irregular.is_none() && (found.pps - truth).abs() <= truth * CAPACITY_BOUND;
    match (holds, exact, disturbed) {
        (false, ..) => Sight::Outside("the interval does not hold the truth".to_owned()),
        (true, true, _) => Sight::Within,
        (true, false, Some(words)) => {
            Sight::Unclear(format!("the interval holds the truth, but is wide: {words}"))
        }
        (true, false, None) => Sight::Outside("the interval is wide, though nothing disturbed it".to_owned()),
    }
}

/// What is found where nothing could be measured.
fn nothing(
    name: &str,
    dut: &str,
    (unit, truth, bound): (Unit, f64, f64),
    outcome: &Outcome,
    disturbed: Option<String>,
) -> Finding {
    let why = outcome.reason().or(outcome.notes.last().cloned()).unwrap_or_else(|| BEYOND.to_owned());
    let why = format!("nothing was measured: {why}");
    let sight = match disturbed {
        Some(words) => Sight::Unclear(format!("{why}; {words}")),
        None => Sight::Outside(why),
    };
    missing((name.to_owned(), dut.to_owned()), (unit, truth, bound), sight)
}

/// What is found where this machine has no ports or no device in user space.
fn without_stand(
    name: &str,
    dut: &str,
    (unit, truth, bound): (Unit, f64, f64),
    why: &anyhow::Error,
) -> Finding {
    let sight = Sight::Unclear(format!("nothing was measured: {}", in_one_line(why)));
    missing((name.to_owned(), dut.to_owned()), (unit, truth, bound), sight)
}

/// A finding without a figure.
fn missing((name, dut): (String, String), (unit, truth, bound): (Unit, f64, f64), sight: Sight) -> Finding {
    let (measured, interval, searched) = (None, None, false);
    Finding { name, dut, unit, truth, measured, interval, bound, searched, sight }
}

#[cfg(test)]
mod tests {
    use results::record::{Irregular, LimitedBy};

    use super::*;

    fn found(lower_pps: f64, upper_pps: Option<f64>, irregular: Option<Irregular>) -> GoalResult {
        GoalResult {
            pps: lower_pps,
            lower_pps,
            upper_pps,
            conditional_throughput_pps: lower_pps,
            irregular,
            disturbed: irregular.is_some(),
            limited_by: LimitedBy::Dut,
        }
    }

    #[test]
    fn an_interval_passes_if_it_is_narrow_and_true() {
        let noise = || Some("noise".to_owned());
        let judge =
            |lower, upper, irregular, disturbed| judge(&found(lower, upper, irregular), 100e3, disturbed);
        assert_eq!(judge(99.6e3, Some(100.1e3), None, None), Sight::Within);
        assert_eq!(judge(99.6e3, Some(100.1e3), None, noise()), Sight::Within);
        assert_eq!(judge(100.2e3, Some(100.7e3), None, None), Sight::Within, "what a queue may hide");
        let wide = Some(Irregular::Wide);
        assert!(matches!(judge(50e3, Some(200e3), wide, noise()), Sight::Unclear(_)));
        assert!(matches!(judge(50e3, None, wide, noise()), Sight::Unclear(_)));
        assert!(matches!(judge(50e3, Some(200e3), wide, None), Sight::Outside(_)));
    }

    #[test]
    fn no_noise_excuses_an_interval_that_is_not_true() {
        for (lower, upper) in [(50e3, Some(99.9e3)), (101e3, Some(101.4e3)), (101e3, None)] {
            for irregular in [None, Some(Irregular::Wide)] {
                let sight = judge(&found(lower, upper, irregular), 100e3, Some("noise".to_owned()));
                assert!(matches!(sight, Sight::Outside(_)), "{lower} {upper:?}");
            }
        }
    }
}
