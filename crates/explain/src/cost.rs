//! What a forwarded frame costs: what was counted at each load enters, costs for the record leave.
//! Pure.

use std::time::Duration;

use results::record::{Basis, LoadCost, Node, NodeRuntime};

/// A device that is busier than this with hardly any load polls: it looks for work where there is none.
const POLLS: f64 = 0.9;
/// What is hardly any load, as a share of the highest.
const HARDLY: f64 = 0.1;

/// What was counted while one load was offered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// How long.
    pub duration: Duration,
    /// Frames that left the tester, all directions added up.
    pub offered: u64,
    /// Frames of these that came back.
    pub forwarded: u64,
    /// What the device used meanwhile.
    pub used: Used,
    /// What its nodes did meanwhile, if it is a graph of them.
    pub nodes: Vec<Node>,
    /// Seconds in which they did it.
    pub nodes_s: Option<f64>,
    /// What the machine did beside it, if that disturbed the measurement.
    pub disturbed: Option<String>,
}

/// What a device used, or has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// How long its threads ran.
    pub busy: Duration,
    /// Cycles that they took, where they are counted.
    pub cycles: Option<u64>,
    /// Energy in joules, where it is known.
    pub joules: Option<f64>,
}

impl Used {
    /// What was used since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let cycles = self.cycles.zip(earlier.cycles).map(|(now, then)| now.saturating_sub(then));
        let joules = self.joules.zip(earlier.joules).map(|(now, then)| now - then);
        Self { busy: self.busy.saturating_sub(earlier.busy), cycles, joules }
    }
}

/// The costs at the load called `name`.
#[must_use]
pub fn cost(name: &str, counted: &Counted) -> LoadCost {
    let seconds = counted.duration.as_secs_f64();
    let busy_s = counted.used.busy.as_secs_f64();
    let rate = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
    let per_frame = |amount: f64| (counted.forwarded > 0).then(|| amount / counted.forwarded as f64);
    let cycles = counted.used.cycles.map(|cycles| cycles as f64);
    LoadCost {
        name: name.to_owned(),
        duration_s: seconds,
        offered_pps: rate(counted.offered as f64),
        forwarded_pps: rate(counted.forwarded as f64),
        forwarded: counted.forwarded,
        busy_s,
        busy: rate(busy_s),
        ns_per_frame: per_frame(busy_s * 1e9),
        cycles_per_frame: cycles.and_then(per_frame),
        clock_hz: cycles.filter(|_| busy_s > 0.0).map(|cycles| cycles / busy_s),
        uj_per_frame: counted.used.joules.and_then(|joules| per_frame(joules * 1e6)),
        nodes: counted.nodes.clone(),
        nodes_s: counted.nodes_s,
        disturbed: counted.disturbed.clone(),
    }
}

/// What these costs include: by how busy the device is when it has hardly anything to do, or by how many of the
/// clocks that its nodes take at most they take then, also while others have some of its core.
#[must_use]
pub fn basis(loads: &[LoadCost]) -> Basis {
    let highest = loads.iter().map(|load| load.forwarded_pps).fold(0.0, f64::max);
    let most = loads.iter().map(clocks).fold(0.0, f64::max);
    let is_busy = |load: &LoadCost| load.busy >= POLLS || (most > 0.0 && clocks(load) >= most * POLLS);
    let polls = |load: &LoadCost| is_busy(load) && load.offered_pps < highest * HARDLY;
    if loads.iter().any(polls) { Basis::WithIdlePolling } else { Basis::WithoutIdlePolling }
}

/// Clocks a second of all nodes of a device that is a graph of them.
fn clocks(load: &LoadCost) -> f64 {
    let clocks = load.nodes.iter().filter_map(Node::meanwhile).map(NodeRuntime::spent).sum::<f64>();
    load.nodes_s.filter(|seconds| *seconds > 0.0).map_or(0.0, |seconds| clocks / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(forwarded: u64, busy_ms: u64, cycles: Option<u64>) -> Counted {
        Counted {
            duration: Duration::from_secs(30),
            offered: forwarded,
            forwarded,
            used: Used { busy: Duration::from_millis(busy_ms), cycles, joules: Some(570.0) },
            ..Counted::default()
        }
    }

    #[test]
    fn the_review_s_router_at_its_limit() {
        // 5.01426 Mpps at 437.9 cycles a packet on a core of 2.2 GHz: "2194 MHz, remarkable precision".
        let cycles = (5.01426e6 * 30.0 * 437.9_f64).round() as u64;
        let found = cost("saturation", &counted(150_427_800, 30_000, Some(cycles)));
        assert!((found.cycles_per_frame.unwrap() - 437.9).abs() < 1e-3);
        assert!((found.clock_hz.unwrap() / 2.1957e9 - 1.0).abs() < 1e-3, "{found:?}");
        assert!((found.ns_per_frame.unwrap() - 199.43).abs() < 0.01);
        // Nineteen watts for half a minute.
        assert!((found.uj_per_frame.unwrap() - 3.789).abs() < 0.001);
        assert!((found.busy - 1.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_forwarded_costs_nothing_that_can_be_told() {
        let found = cost("low", &counted(0, 0, None));
        assert_eq!((found.ns_per_frame, found.cycles_per_frame, found.clock_hz), (None, None, None));
        assert_eq!(cost("low", &Counted::default()).forwarded_pps, 0.0);
    }

    #[test]
    fn a_device_that_is_busy_with_nothing_polls() {
        let loads = |idle_ms| {
            [
                cost("low", &counted(30_000, idle_ms, None)),
                cost("saturation", &counted(30_000_000, 30_000, None)),
            ]
        };
        assert_eq!(basis(&loads(29_900)), Basis::WithIdlePolling);
        assert_eq!(basis(&loads(300)), Basis::WithoutIdlePolling);
        // A single load tells nothing of idleness.
        assert_eq!(basis(&loads(29_900)[..1]), Basis::WithoutIdlePolling);
    }

    #[test]
    fn a_device_whose_nodes_take_as_many_clocks_when_idle_polls() {
        let load = |name: &str, frames, input_clocks: f64| {
            let after = NodeRuntime { calls: 1 << 20, vectors: frames, suspends: 0, clocks: input_clocks };
            let node = Node {
                thread: "worker 0".to_owned(),
                name: "device-input".to_owned(),
                before: NodeRuntime::default(),
                after,
            };
            let counted = Counted { nodes: vec![node], nodes_s: Some(30.0), ..counted(frames, 6_000, None) };
            cost(name, &counted)
        };
        // Others had most of the core meanwhile.
        let polls = [load("low", 30_000, 2.5e6), load("saturation", 30_000_000, 2_600.0)];
        assert_eq!(basis(&polls), Basis::WithIdlePolling);
        let sleeps = [load("low", 30_000, 9e3), load("saturation", 30_000_000, 2_600.0)];
        assert_eq!(basis(&sleeps), Basis::WithoutIdlePolling);
    }

    #[test]
    fn what_is_used_is_the_difference() {
        let at = |ms, cycles, joules| Used { busy: Duration::from_millis(ms), cycles, joules };
        let used = at(700, Some(900), Some(3.0)).since(at(200, Some(400), Some(1.0)));
        assert_eq!(used, at(500, Some(500), Some(2.0)));
        assert_eq!(at(700, None, Some(3.0)).since(at(200, Some(4), None)), at(500, None, None));
    }
}
