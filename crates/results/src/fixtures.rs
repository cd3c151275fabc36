//! Hand-made records of ramps and searches, for tests: a scenario enters, the record that a ramp
//! or a search against such a device would leave comes out. Plain arithmetic, the same on every
//! call.

mod latency;
mod search;
mod soak;
mod stalls;
mod waterfall;

use std::collections::BTreeMap;

use wire::size;

use crate::record::{
    Direction, DirectionSample, Dut, Environment, Evidence, Finding, Latency, LimitedBy, LossBegan, Phase,
    Port, Profile, RateInterval, Record, SCHEMA, Sample, Stall, Status, Strategy, Tester,
};
use crate::store;
pub use search::searches;

/// Frames that wait in front of a saturated device.
const QUEUE: f64 = 1000.0;

/// A device of known behaviour and the ramp against it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The device's name.
    pub dut: &'static str,
    /// What is sent, like `64 B`.
    pub traffic: &'static str,
    /// Its mean frame size in bytes.
    pub frame_size: f64,
    /// Whether both directions are sent at once; they then share the capacity.
    pub bidirectional: bool,
    /// What the device forwards, in all directions together.
    pub capacity_pps: f64,
    /// The line rate (L1) of one direction.
    pub line_rate_bps: f64,
    /// The share of it that the ramp ends at.
    pub target: f64,
    /// Samples of one second in the ramp; 3 of warm-up and 7 of hold are added.
    pub ramp_samples: usize,
    /// What the tester cannot exceed, in one direction.
    pub tester_limit_pps: f64,
    /// The ramp's sample from which on nothing is forwarded.
    pub stalled_from: Option<usize>,
    /// The ramp's sample before which the user stopped it.
    pub interrupted_at: Option<usize>,
    /// The ramp's sample that a passing disturbance made lossy.
    pub disturbed_at: Option<usize>,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            dut: "linux-router",
            traffic: "64 B",
            frame_size: 64.0,
            bidirectional: false,
            capacity_pps: 1_100_000.0,
            line_rate_bps: 2.5e9,
            target: 1.0,
            ramp_samples: 70,
            tester_limit_pps: f64::INFINITY,
            stalled_from: None,
            interrupted_at: None,
            disturbed_at: None,
        }
    }
}

/// Two devices under the eight load tests: 1514 B, imix, 64 B and 64 B with one flow, each way.
#[must_use]
pub fn bench() -> Vec<Record> {
    let traffic =
        [("1514 B", 1514.0, 1.0), ("imix", 362.2, 1.0), ("64 B", 64.0, 1.0), ("64 B, 1 flow", 64.0, 0.74)];
    let mut records = Vec::new();
    for bidirectional in [false, true] {
        for (name, frame_size, one_flow) in traffic {
            for (dut, capacity) in [("linux-router", 1_085_000.0), ("xdp-router", 2_390_000.0)] {
                let cache_warmth = if dut == "xdp-router" { 1.0 } else { one_flow };
                let scenario = Scenario {
                    dut,
                    traffic: name,
                    frame_size,
                    bidirectional,
                    capacity_pps: capacity * cache_warmth,
                    ..Scenario::default()
                };
                records.push(scenario.record());
            }
        }
    }
    records
}

/// One record for each thing that a report must mark: a stall, a limit of the tester, an
/// interruption, a passing disturbance, a failure.
#[must_use]
pub fn oddities() -> Vec<Record> {
    let base = || Scenario { ramp_samples: 20, ..Scenario::default() };
    let stalled = Scenario { dut: "calibrated", stalled_from: Some(6), capacity_pps: 5e6, ..base() };
    let tester = Scenario { dut: "sink", tester_limit_pps: 2.2e6, capacity_pps: 9e6, ..base() };
    let interrupted = Scenario { dut: "linux-bridge", interrupted_at: Some(8), ..base() };
    let disturbed = Scenario { dut: "linux-router", disturbed_at: Some(5), ..base() };
    let mut failed = Scenario { dut: "ports", interrupted_at: Some(0), ..base() }.record();
    failed.status = Status::Failed;
    failed.reason = Some("no frame came back: no route to 48.0.0.0/8 on the device".to_owned());
    failed.samples.clear();
    failed.directions.clear();
    let mut records: Vec<_> = [stalled, tester, interrupted, disturbed].map(|s| s.record()).into();
    records[0].dut.parameters.insert("stall-after".to_owned(), "1000000".to_owned());
    records.push(failed);
    records
}

impl Scenario {
    /// The record of this scenario.
    #[must_use]
    pub fn record(&self) -> Record {
        let way = if self.bidirectional { "bidirectional" } else { "unidirectional" };
        let test = format!("{} {way}", self.traffic);
        let started = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_637_916_683);
        let samples = self.samples();
        let names = if self.bidirectional { &["0->1", "1->0"][..] } else { &["0->1"] };
        Record {
            schema: SCHEMA.to_owned(),
            id: store::id(started, self.dut, &test),
            name: format!("{} {test}", self.dut),
            test,
            labels: BTreeMap::new(),
            started: crate::time::rfc3339(started),
            elapsed_s: samples.len() as f64,
            status: if self.interrupted_at.is_some() { Status::Interrupted } else { Status::Complete },
            reason: self.interrupted_at.map(|_| "stopped by Ctrl-C".to_owned()),
            command: ["linerate", "ramp", "--dut", self.dut, "--profile", "bench"].map(str::to_owned).into(),
            strategy: self.strategy(),
            profile: self.profile(),
            dut: self.device(),
            tester: tester(),
            environment: environment(),
            line_rate_bps: self.line_rate_bps,
            directions: (0..names.len()).map(|at| self.direction(names[at], at, &samples)).collect(),
            finding: Finding::Ramp(None),
            queues: Vec::new(),
            nodes: Vec::new(),
            nodes_s: None,
            gauges: None,
            switch: None,
            cross_check: Vec::new(),
            samples,
            notes: vec!["XDP runs in generic mode on no port.".to_owned()],
        }
    }

    /// Frames a second that fill one direction's line.
    fn line_rate_pps(&self) -> f64 {
        size::l1_bps_to_pps(self.line_rate_bps, self.frame_size)
    }

    fn samples(&self) -> Vec<Sample> {
        let ramp_end = self.interrupted_at.unwrap_or(self.ramp_samples);
        let hold = if self.interrupted_at.is_some() { 0 } else { 7 };
        let warm_up = (0..3).map(|at| (Phase::WarmUp, at, 1000.0));
        let top = self.line_rate_pps() * self.target;
        let ramp =
            (0..ramp_end).map(|at| (Phase::Ramp, at, top * (at + 1) as f64 / self.ramp_samples as f64));
        let hold = (0..hold).map(|at| (Phase::Hold, self.ramp_samples + at, top));
        let loads = warm_up.chain(ramp).chain(hold);
        loads.enumerate().map(|(at, (phase, step, pps))| self.sample(at, phase, step, pps)).collect()
    }

    fn sample(&self, at: usize, phase: Phase, step: usize, intended_pps: f64) -> Sample {
        let ways = if self.bidirectional { 2 } else { 1 };
        let measured = phase != Phase::WarmUp;
        let stalled = measured && self.stalled_from.is_some_and(|from| step >= from);
        let disturbed = measured && self.disturbed_at == Some(step);
        let use_of_capacity = |offered: f64| offered * f64::from(ways) / self.capacity_pps;
        let direction = |way: u32| {
            let offered = intended_pps.min(self.tester_limit_pps).round();
            let capacity = self.capacity_pps / f64::from(ways) * (1.0 + 0.008 * noise(at, way));
            let forwarded = match (stalled, disturbed) {
                (true, _) => 0.0,
                (_, true) => (offered * 0.97).round(),
                _ => offered.min(capacity).round(),
            };
            DirectionSample {
                intended_pps,
                offered_pps: offered,
                forwarded_pps: forwarded,
                offered: offered as u64,
                forwarded: forwarded as u64,
                unsent: (intended_pps - offered).max(0.0) as u64,
                untaken: BTreeMap::new(),
                loss_ratio: (offered - forwarded) / offered,
                l1_bps: size::pps_to_l1_bps(forwarded, self.frame_size),
                l2_bps: size::pps_to_l2_bps(forwarded, self.frame_size),
                undisturbed: None,
                latency: (!stalled).then(|| self.latency(use_of_capacity(offered), at, way)),
            }
        };
        let busy = use_of_capacity(intended_pps.min(self.tester_limit_pps));
        Sample {
            at_s: at as f64,
            duration_s: 1.0,
            phase,
            dut_core_busy: Some(if stalled { 0.0 } else { (0.03 + 0.96 * busy).min(1.0) }),
            disturbed: disturbed.then(|| "another task ran on core 1".to_owned()),
            noise: disturbed.then_some(0.05),
            directions: (0..ways).map(direction).collect(),
        }
    }

    /// A queue's wait rises as 1 / (1 − use), until it is full.
    fn latency(&self, use_of_capacity: f64, at: usize, way: u32) -> Latency {
        let service_ns = 1e9 / self.capacity_pps;
        let full_ns = QUEUE * service_ns;
        let wait_ns = service_ns / (1.0 - use_of_capacity).max(1.0 / QUEUE);
        let p50 = (9_000.0 + wait_ns) * (1.0 + 0.05 * noise(at + 17, way));
        let p99 = (p50 * 2.4 + wait_ns * 4.0).min(p50.max(full_ns) * 1.3);
        Latency {
            min_ns: 6_400,
            mean_ns: p50 * 1.1,
            p50_ns: p50 as u64,
            p99_ns: p99 as u64,
            max_ns: (p99 * 3.0) as u64,
        }
    }

    fn direction(&self, name: &str, way: usize, samples: &[Sample]) -> Direction {
        let threshold = self.strategy().loss_threshold;
        let measured = || samples.iter().filter(|sample| sample.phase != Phase::WarmUp);
        let of = |sample: &Sample| sample.directions[way].clone();
        let (lossy, lossless): (Vec<_>, Vec<_>) = measured().map(of).partition(|d| d.loss_ratio > threshold);
        let highest = |rates: &mut dyn Iterator<Item = f64>| rates.fold(0.0, f64::max);
        let max_rate_pps = highest(&mut lossless.iter().map(|d| d.offered_pps));
        let max_forwarded_pps = highest(&mut measured().map(|sample| of(sample).forwarded_pps));
        let l1_bps = size::pps_to_l1_bps(max_forwarded_pps, self.frame_size);
        let below = lossy.iter().filter(|d| d.offered_pps < max_rate_pps).count();
        let total =
            |count: fn(&DirectionSample) -> u64| samples.iter().map(|s| count(&s.directions[way])).sum();
        let forwarded = total(|d| d.forwarded);
        let limited_by = match () {
            () if self.interrupted_at.is_some() => LimitedBy::Unknown,
            () if self.tester_limit_pps < self.capacity_pps => LimitedBy::Tester,
            () if lossy.len() > below => LimitedBy::Dut,
            () => LimitedBy::LineRate,
        };
        Direction {
            name: name.to_owned(),
            max_rate_pps,
            unshared_rate_pps: None,
            max_forwarded_pps,
            l1_bps,
            l2_bps: size::pps_to_l2_bps(max_forwarded_pps, self.frame_size),
            line_rate_percent: l1_bps / self.line_rate_bps * 100.0,
            limited_by,
            results: BTreeMap::new(),
            stalled: self.stalled_from.map(|from| Stall { at_s: 3.0 + from as f64, after_frames: forwarded }),
            lossy_samples_below: below,
            evidence: Some(self.evidence(way, samples, max_rate_pps, limited_by)),
            offered: total(|d| d.offered),
            refused: None,
            forwarded,
            unsent: total(|d| d.unsent),
            untaken: BTreeMap::new(),
            duplicates: 0,
            reordered: 0,
            returned: 0,
            foreign: 2,
            lateness_ns: vec![(992, 900_000), (2048, 40_000), (8192, 12)],
            latency_ns: histogram(samples, way),
        }
    }

    /// Of a device that forwards what it can: the limit lies between the steps that passed and failed.
    fn evidence(&self, way: usize, samples: &[Sample], passed_pps: f64, limited_by: LimitedBy) -> Evidence {
        let threshold = self.strategy().loss_threshold;
        let measured = move || samples.iter().filter(|sample| sample.phase != Phase::WarmUp);
        let above = |it: &&Sample| {
            it.directions[way].loss_ratio > threshold && it.directions[way].offered_pps > passed_pps
        };
        let failed = measured().filter(above);
        let proved = failed.clone().filter(|sample| sample.disturbed.is_none());
        let lowest = |samples: &mut dyn Iterator<Item = &Sample>| {
            samples.map(|sample| sample.directions[way].offered_pps).reduce(f64::min)
        };
        let (seen, proved) = (lowest(&mut { failed }), lowest(&mut { proved }));
        let by_dut = limited_by == LimitedBy::Dut;
        let lost = measured().filter(|sample| sample.directions[way].loss_ratio > 0.0);
        let rate = |sample: &&Sample| sample.directions[way].offered_pps;
        let first = lost.min_by(|a, b| rate(a).total_cmp(&rate(b)));
        Evidence {
            ramp: None,
            second: None,
            limit: Some(RateInterval {
                lower_pps: passed_pps.min(self.capacity_pps),
                upper_pps: proved.filter(|_| by_dut),
            }),
            forwarded: None,
            loss_began: first.map(|sample| LossBegan {
                pps: sample.directions[way].offered_pps,
                loss_ratio: sample.directions[way].loss_ratio,
                excused: sample.disturbed.is_some(),
            }),
            samples: measured().count(),
            affected: measured().filter(|sample| sample.disturbed.is_some()).count(),
            interference_matters: by_dut && seen != proved,
        }
    }

    fn strategy(&self) -> Strategy {
        let parameters = [
            ("warm-up", "3s at 1kpps".to_owned()),
            ("target", format!("{}%", self.target * 100.0)),
            ("ramp", format!("{}s", self.ramp_samples)),
            ("hold", "7s".to_owned()),
        ];
        Strategy { name: "ramp".to_owned(), parameters: table(parameters), loss_threshold: 0.001 }
    }

    fn profile(&self) -> Profile {
        let one_flow = self.traffic.contains("1 flow");
        let size = self.traffic.split(' ').next().unwrap_or_default();
        let vm = if one_flow { "none" } else { "var2" };
        let flows = if one_flow { 1 } else { 251 };
        Profile {
            name: "bench".to_owned(),
            tunables: table([("size", size.to_owned()), ("vm", vm.to_owned())]),
            bidirectional: self.bidirectional,
            mean_frame_size: self.frame_size,
            flows,
            rows: flows,
            period: flows,
            source: None,
        }
    }

    fn device(&self) -> Dut {
        let configuration = [
            ("net.ipv4.ip_forward", "1".to_owned()),
            ("neighbours", "static".to_owned()),
            ("routes", "16.0.0.0/8 via 100.65.1.2, 48.0.0.0/8 via 100.65.2.2".to_owned()),
            ("generic-receive-offload", "off".to_owned()),
            ("threaded-napi", "core 1".to_owned()),
        ];
        Dut {
            name: self.dut.to_owned(),
            configuration: table(configuration),
            core: Some(1),
            ..Dut::default()
        }
    }
}

fn tester() -> Tester {
    let port = |name: &str, mac: &str| Port {
        name: name.to_owned(),
        driver: Some("veth".to_owned()),
        mac: mac.to_owned(),
        mtu: 9216,
        speed_bps: Some(10e9),
        xdp_mode: "native".to_owned(),
        facts: None,
    };
    Tester {
        engine: "xdp".to_owned(),
        engine_reason: None,
        cores: vec![0],
        receive_core: Some(1),
        receive_cores: Vec::new(),
        receive_cost_ns: Some(46.0),
        receive_share: None,
        ports: vec![port("lr-port0", "02:00:00:00:00:01"), port("lr-port1", "02:00:00:00:00:02")],
        self_test: None,
    }
}

fn environment() -> Environment {
    Environment {
        linerate: "0.1.0".to_owned(),
        kernel: "6.18.5".to_owned(),
        os: "Debian GNU/Linux 12 (bookworm)".to_owned(),
        cpu: "Example Processor 7 @ 2.50GHz".to_owned(),
        cores: 2,
        memory_bytes: 8 << 30,
        hypervisor: Some("kvm".to_owned()),
        host: None,
    }
}

fn table<const N: usize>(pairs: [(&str, String); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A number from −1 to 1 that looks random (the mixing of `SplitMix64`).
fn noise(at: usize, way: u32) -> f64 {
    let seed = (at as u64 * 2 + u64::from(way) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed >> 40) as f64 / f64::from(1 << 23) - 1.0
}

/// Spreads each sample's frames around its median and 99th percentile, in buckets of 1/32.
fn histogram(samples: &[Sample], way: usize) -> Vec<(u64, u64)> {
    let mut buckets = BTreeMap::new();
    for direction in samples.iter().map(|sample| &sample.directions[way]) {
        let Some(latency) = direction.latency else { continue };
        let (p50, p99) = (latency.p50_ns as f64, latency.p99_ns as f64);
        let spread = [(p50 * 0.8, 0.25), (p50, 0.4), (p50 * 1.4, 0.2), (p99 * 0.8, 0.1398)];
        let tail = [(p99, 0.01), (p99 * 1.8, 0.0002), (p99 * 3.0, 0.00001)];
        for (value, share) in spread.into_iter().chain(tail) {
            let value = value as u64;
            let step = (value.next_power_of_two() >> 6).max(1);
            *buckets.entry(value / step * step).or_insert(0) += (direction.forwarded as f64 * share) as u64;
        }
    }
    buckets.into_iter().filter(|(_, count)| *count > 0).collect()
}
