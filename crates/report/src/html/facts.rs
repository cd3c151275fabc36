//! What a record says of how it came about, as names and values for reading.

use std::collections::BTreeMap;

use results::Record;
use results::certificate::Certificate;
use results::record::{self, LimitedBy, Port, Tester};
use wire::human::{bps, count, pps};

use crate::figures::duration;
use crate::links::Links;
use crate::nodes::in_order;
use crate::terminal::meanwhile;
use crate::workers::workers;

/// A name and its value.
pub type Fact = (String, String);

/// Names and values under a heading.
pub struct Facts {
    pub title: &'static str,
    pub pairs: Vec<Fact>,
}

/// What the tester reaches without a device, and how near a run came to that.
pub struct Limits {
    pub ceiling: String,
    /// The most that came back in one direction.
    pub reached: String,
    /// That as a share of the ceiling, in percent.
    pub share: f64,
    /// Whether a result is the tester's limit.
    pub near: bool,
    pub latency_min: String,
    /// The median, of older records the mean, and which of them it is.
    pub latency_usual: String,
    pub measured: String,
}

/// The self-test's, where the run knows of one.
pub fn tester_limits(record: &Record) -> Option<Limits> {
    let found = record.tester.self_test.as_ref()?;
    let reached = record.directions.iter().map(|direction| direction.max_forwarded_pps).fold(0.0, f64::max);
    let by_tester = |limit: LimitedBy| limit == LimitedBy::Tester;
    Some(Limits {
        ceiling: pps(found.ceiling_pps),
        reached: pps(reached),
        share: (reached / found.ceiling_pps.max(1.0) * 100.0).clamp(0.0, 100.0),
        near: record.finding.search().and_then(|search| search.limited_by).is_some_and(by_tester)
            || record.directions.iter().any(|direction| by_tester(direction.limited_by)),
        latency_min: duration(found.base_latency_min_ns as f64),
        latency_usual: match found.base_latency_p50_ns {
            Some(p50) => format!("{} in the median (p50)", duration(p50 as f64)),
            None => format!("{} on average", duration(found.base_latency_mean_ns)),
        },
        measured: found.measured.clone(),
    })
}

/// How a certificate came about.
pub fn certificate_facts(certificate: &Certificate) -> Vec<Fact> {
    let mut facts = vec![
        pair("Command", &command_line(&certificate.command)),
        pair("Started", &certificate.started),
        pair("Duration", &format!("{:.1} s", certificate.elapsed_s)),
        pair("Seed", &certificate.seed.to_string()),
    ];
    facts.extend(machine(&certificate.environment));
    facts.extend(certificate.environment.host.iter().flat_map(|host| settings(host, &Ways::of(host))));
    facts
}

/// A machine and tester, and how many runs share them.
pub struct Environment {
    pub runs: usize,
    pub pairs: Vec<Fact>,
    /// Cores, caches and settings, which are long.
    pub settings: Vec<Fact>,
}

/// Each environment that occurs, once. What each run measures anew, how long a cache line takes between cores, does not
/// make another of it.
pub fn environments<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<Environment> {
    let mut found: Vec<(Environment, Option<&record::Host>, Ways)> = Vec::new();
    for record in records {
        let mut pairs = machine(&record.environment);
        pairs.push(pair("Line rate", &format!("{} (L1, each direction)", bps(record.line_rate_bps))));
        let host = record.environment.host.as_deref();
        let settings: Vec<Fact> = host.iter().flat_map(|host| settings(host, &Ways::default())).collect();
        let ways = host.map(Ways::of).unwrap_or_default();
        match found.iter_mut().find(|(known, ..)| known.pairs == pairs && known.settings == settings) {
            Some((environment, _, known)) => {
                environment.runs += 1;
                known.join(ways);
            }
            None => found.push((Environment { runs: 1, pairs, settings }, host, ways)),
        }
    }
    let complete = |(environment, host, ways): (Environment, Option<&record::Host>, Ways)| Environment {
        settings: host.iter().flat_map(|host| settings(host, &ways)).collect(),
        ..environment
    };
    found.into_iter().map(complete).collect()
}

/// The least and the most nanoseconds that a cache line took to each core and back, in several runs.
#[derive(Default)]
struct Ways(BTreeMap<usize, (u64, u64)>);

impl Ways {
    fn of(host: &record::Host) -> Self {
        Self(host.core_to_core_ns.iter().map(|(core, ns)| (*core, (*ns, *ns))).collect())
    }

    fn join(&mut self, others: Self) {
        for (core, (least, most)) in others.0 {
            let known = self.0.entry(core).or_insert((least, most));
            *known = (known.0.min(least), known.1.max(most));
        }
    }

    fn in_words(&self) -> Option<String> {
        let way = |(core, (least, most)): (&usize, &(u64, u64))| match least == most {
            true => format!("{least} ns to core {core} and back"),
            false => format!("{least} to {most} ns to core {core} and back"),
        };
        let ways: Vec<String> = self.0.iter().map(way).collect();
        (!ways.is_empty()).then(|| ways.join(", "))
    }
}

fn pair(name: &str, value: &str) -> Fact {
    (name.to_owned(), value.to_owned())
}

fn machine(environment: &record::Environment) -> Vec<Fact> {
    let cores = if environment.cores == 1 { "core" } else { "cores" };
    let mut pairs = vec![
        pair("Processor", &format!("{}, {} {cores}", environment.cpu, environment.cores)),
        pair("Memory", &format!("{:.1} GiB", environment.memory_bytes as f64 / f64::from(1 << 30))),
    ];
    pairs.extend(environment.hypervisor.iter().map(|name| pair("Hypervisor", name)));
    pairs.push(pair("System", &environment.os));
    pairs.push(pair("Kernel", &environment.kernel));
    pairs.push(pair("Linerate", &environment.linerate));
    pairs
}

/// What the kernel's word for hardware threads means.
fn hardware_threads(word: &str) -> &str {
    match word {
        "notsupported" => "not supported by this processor",
        "notimplemented" => "unknown to this kernel",
        "forceoff" => "off until reboot",
        other => other,
    }
}

/// How the cores are arranged and set, and how far they were from each other.
fn settings(host: &record::Host, ways: &Ways) -> Vec<Fact> {
    let cache = |cache: &record::Cache| {
        let record::Cache { level, kind, kib, count, cores } = cache;
        let shared = if *cores == 1 {
            "one for each core".to_owned()
        } else {
            format!("each shared by {cores} cores")
        };
        format!("{count} × {kib} KiB L{level} {}, {shared}", kind.to_lowercase())
    };
    let caches: Vec<String> = host.topology.caches.iter().map(cache).collect();
    let mut pairs = vec![pair("Cores", &host.topology.in_words())];
    pairs.extend(host.topology.smt.iter().map(|smt| pair("SMT", hardware_threads(smt))));
    pairs.extend((!caches.is_empty()).then(|| pair("Caches", &caches.join("; "))));
    pairs.extend(ways.in_words().map(|ways| pair("Core-to-core latency", &ways)));
    let governors: Vec<&str> = host.governors.iter().map(String::as_str).collect();
    pairs.extend((!governors.is_empty()).then(|| pair("Frequency governor", &governors.join(", "))));
    pairs.extend(host.max_hz.map(|hz| pair("Highest frequency", &format!("{:.2} GHz", hz / 1e9))));
    pairs.extend(host.microcode.iter().map(|revision| pair("Microcode", revision)));
    pairs.extend(host.command_line.iter().map(|line| pair("Kernel command line", line)));
    let mitigations: Vec<String> =
        host.mitigations.iter().map(|(name, what)| format!("{name}: {what}")).collect();
    pairs.extend((!mitigations.is_empty()).then(|| pair("Mitigations", &mitigations.join("; "))));
    pairs
}

/// All that is known of how `record` came about.
pub fn run_facts(record: &Record) -> Vec<Facts> {
    let mut run = vec![
        pair("record", &record.id),
        pair("command", &command_line(&record.command)),
        pair("started", &record.started),
        pair("duration", &format!("{:.1} s", record.elapsed_s)),
        pair("strategy", &record.strategy.name),
    ];
    run.extend(named(&record.strategy.parameters));
    run.push(pair("loss threshold", &format!("{} %", record.strategy.loss_threshold * 100.0)));

    let mut device = vec![pair("device", &record.dut.label())];
    match record.dut.cores.as_slice() {
        [] => device.extend(record.dut.core.map(|core| pair("core", &core.to_string()))),
        cores => device.push(pair("cores of its workers", &list(cores))),
    }
    device.extend(named(&record.dut.configuration));
    device.extend(record.dut.states.iter().flat_map(states));
    let findings = crate::findings::findings(record);
    let findings: Vec<Fact> = findings.iter().map(|finding| pair(finding.kind, &finding.text)).collect();
    let mut facts: Vec<Facts> =
        (!findings.is_empty()).then_some(Facts { title: "Findings", pairs: findings }).into_iter().collect();
    facts.extend(Links::of(record).map(|links| Facts { title: "As bandwidth", pairs: links.pairs() }));
    facts.extend([
        Facts { title: "Run", pairs: run },
        Facts { title: "Profile", pairs: profile(&record.profile) },
        Facts { title: "Device under test", pairs: device },
    ]);
    if let Some(remote) = &record.dut.remote {
        facts.push(Facts { title: "Connection to the device", pairs: reached(remote) });
        let moved = remote.counters.iter().filter(|(_, count)| count.before != count.after);
        let counted = moved.map(|(name, count)| pair(name, &meanwhile(*count)));
        facts.push(Facts { title: "DUT counters", pairs: counted.collect() });
    }
    if !record.nodes.is_empty() && record.nodes_had_most() {
        let mut nodes: Vec<&record::Node> = record.nodes.iter().collect();
        nodes.sort_by(|one, other| in_order(one).cmp(&in_order(other)));
        let pairs = nodes.into_iter().filter_map(node).collect();
        facts.push(Facts { title: "Graph nodes", pairs });
    }
    let workers = workers(&record.nodes);
    if !workers.is_empty() {
        let pairs = workers.iter().map(|worker| pair(worker.name, &worker.text())).collect();
        facts.push(Facts { title: "Workers of the device", pairs });
    }
    facts.push(Facts { title: "Tester", pairs: tester(&record.tester) });
    let gauges = crate::energy::lines(record);
    if !gauges.is_empty() {
        let pairs = gauges.iter().map(|(name, text)| pair(name, text)).collect();
        facts.push(Facts { title: "Power, frequency and temperature", pairs });
    }
    facts
}

/// The connections that a device tracked when the run ended.
fn states(states: &record::States) -> Vec<Fact> {
    let mut pairs = vec![
        pair("connections at the end", &count(states.count)),
        pair("most connections", &count(states.limit)),
    ];
    pairs.extend(states.buckets.map(|buckets| pair("buckets of connections", &count(buckets))));
    pairs.extend(states.bytes.map(|bytes| pair("memory of connections", &format!("{} bytes", count(bytes)))));
    pairs
}

/// What a node did, if it was given packets.
fn node(node: &record::Node) -> Option<Fact> {
    let did = node.meanwhile().filter(|did| did.vectors > 0)?;
    let (packets, per_call, clocks) = (count(did.vectors), did.vectors_per_call(), did.clocks);
    let told = format!("{packets} packets, {per_call:.1} a call, {clocks:.0} clocks each");
    Some(pair(&crate::nodes::label(node), &told))
}

fn reached(remote: &record::Remote) -> Vec<Fact> {
    let mut pairs = vec![pair("host", &remote.host), pair("driver", &remote.driver)];
    pairs.extend(named(&remote.options));
    pairs.extend(remote.source.iter().map(|source| pair("driver's text", source)));
    pairs
}

fn profile(profile: &record::Profile) -> Vec<Fact> {
    let mut pairs = vec![pair("profile", &profile.name)];
    pairs.extend(named(&profile.tunables));
    pairs.push(pair("mean frame size", &format!("{:.1} bytes", profile.mean_frame_size)));
    pairs.push(pair("flows", &count(profile.flows)));
    pairs.push(pair("table", &format!("{} of {} frames", count(profile.rows), count(profile.period))));
    pairs.extend(profile.source.iter().map(|source| pair("source", source)));
    pairs
}

fn tester(tester: &Tester) -> Vec<Fact> {
    let mut pairs = vec![pair("engine", &tester.engine), pair("generating cores", &list(&tester.cores))];
    pairs.extend(tester.receive_core.map(|core| pair("receiving core", &core.to_string())));
    if !tester.receive_cores.is_empty() {
        pairs.push(pair("receiving cores", &list(&tester.receive_cores)));
    }
    pairs
        .extend(tester.receive_cost_ns.map(|cost| pair("receiving costs", &format!("{cost:.0} ns a frame"))));
    for (at, port) in tester.ports.iter().enumerate() {
        pairs.push(pair(&format!("port {at}"), &port_text(port)));
    }
    pairs
}

fn list(cores: &[usize]) -> String {
    cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn port_text(port: &Port) -> String {
    let driver = port.driver.as_deref().unwrap_or("unknown driver");
    let speed = port.speed_bps.map_or_else(|| "unknown speed".to_owned(), bps);
    format!("{} ({driver}, {speed}), {}, MTU {}, XDP: {}", port.name, port.mac, port.mtu, port.xdp_mode)
}

fn named(values: &BTreeMap<String, String>) -> impl Iterator<Item = Fact> {
    values.iter().map(|(name, value)| (name.clone(), value.clone()))
}

/// `words` as a shell would take them.
#[must_use]
pub fn command_line(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,%@".contains(c);
    let quoted = words.iter().map(|word| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_tracked_is_told() {
        let mut record = results::fixtures::Scenario::default().record();
        let (limit, buckets, bytes) = (2_000_000, Some(1 << 20), Some(256_000_000));
        record.dut.states = Some(record::States { count: 1_000_000, limit, buckets, bytes });
        let facts = run_facts(&record);
        let device = facts.iter().find(|facts| facts.title == "Device under test").unwrap();
        let told = |name: &str| device.pairs.iter().find(|(known, _)| known == name).unwrap().1.clone();
        assert_eq!(told("connections at the end"), "1,000,000");
        assert_eq!(told("memory of connections"), "256,000,000 bytes");
    }

    #[test]
    fn runs_of_one_machine_are_told_together_however_far_its_cores_were_apart() {
        let record = results::fixtures::Scenario::default().record();
        let ran = |core_to_core_ns: u64, command_line: &str| {
            let host = record::Host {
                core_to_core_ns: BTreeMap::from([(1, core_to_core_ns)]),
                command_line: Some(command_line.to_owned()),
                ..record::Host::default()
            };
            let environment =
                record::Environment { host: Some(Box::new(host)), ..record.environment.clone() };
            Record { environment, ..record.clone() }
        };
        let runs = [ran(90, "quiet"), ran(80, "quiet"), ran(80, "mitigations=off"), ran(200, "quiet")];
        let found = environments(&runs);
        assert_eq!(found.iter().map(|it| it.runs).collect::<Vec<_>>(), [3, 1]);
        let way = |it: &Environment| {
            let ways = it.settings.iter().find(|(name, _)| name == "Core-to-core latency");
            ways.unwrap().1.clone()
        };
        assert_eq!(
            found.iter().map(way).collect::<Vec<_>>(),
            ["80 to 200 ns to core 1 and back", "80 ns to core 1 and back"]
        );
    }

    #[test]
    fn commands_can_be_pasted() {
        let words = ["linerate", "ramp", "--dut", "calibrated:rate=1kpps,burst=64", "-o", "my runs/it's", ""];
        assert_eq!(
            command_line(&words.map(str::to_owned)),
            r"linerate ramp --dut calibrated:rate=1kpps,burst=64 -o 'my runs/it'\''s' ''"
        );
    }
}
