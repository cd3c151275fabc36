//! What the machine's cores explain: a record enters, sentences leave.

use std::collections::BTreeMap;

use results::Record;
use results::record::{Host, Topology};

/// A device's clocks may be this much more than the counter's, since both are read at slightly different moments.
const TOLERANCE: f64 = 1.05;
/// Governors that hold a core at its highest frequency.
const FAST: [&str; 1] = ["performance"];

/// The cores that the run used, with what they did.
fn used(record: &Record) -> Vec<(&'static str, usize)> {
    let tester = &record.tester;
    let generators = tester.cores.iter().map(|core| ("generator", *core));
    let receivers = tester.receive_core.iter().chain(&tester.receive_cores).map(|core| ("receiver", *core));
    let dut = &record.dut;
    // The device's core is on another computer, so its number says nothing of the cores here.
    let own = dut.cores.iter().chain(dut.core.iter().filter(|_| dut.cores.is_empty()));
    let device = own.filter(|_| dut.remote.is_none()).map(|core| ("device", *core));
    generators.chain(receivers).chain(device).collect()
}

fn topology(record: &Record) -> Option<&Topology> {
    record.environment.host.as_ref().map(|host| &host.topology)
}

/// Work that shares a physical core.
pub fn siblings(record: &Record) -> Vec<String> {
    let Some(topology) = topology(record) else { return Vec::new() };
    let used = used(record);
    let pairs =
        used.iter().enumerate().flat_map(|(at, one)| used.iter().skip(at + 1).map(move |other| (one, other)));
    let beside = pairs.filter(|((_, one), (_, other))| topology.are_siblings(*one, *other));
    let mut told: Vec<String> = beside
        .map(|((role, one), (other_role, other))| {
            format!(
                "{role} (core {one}) and {other_role} (core {other}) are threads of one physical core: together they do \
                 less than two cores, so the rates are lower than on cores of their own"
            )
        })
        .collect();
    told.dedup();
    told
}

/// Cores of the tester that are on another NUMA node than its ports.
pub fn far_from_cards(record: &Record) -> Vec<String> {
    let Some(topology) = topology(record) else { return Vec::new() };
    let ports = record.tester.ports.iter().filter_map(|port| Some((&port.name, port.facts.as_ref()?.node?)));
    let mut told = Vec::new();
    for (name, node) in ports {
        let tester = used(record).into_iter().filter(|(role, _)| *role != "device");
        let far: Vec<String> = tester
            .filter(|(_, core)| topology.node(*core).is_some_and(|its| its != node))
            .map(|(role, core)| format!("{role} (core {core})"))
            .collect();
        if !far.is_empty() {
            told.push(format!(
                "{} {} not on NUMA node {node}, where port {name} is: frames cross between nodes",
                far.join(", "),
                if far.len() == 1 { "is" } else { "are" }
            ));
        }
    }
    told
}

/// Ports whose interrupts are served where frames are generated.
pub fn interrupts_beside_generators(record: &Record) -> Vec<String> {
    let mut told = Vec::new();
    for port in &record.tester.ports {
        let interrupts = port.facts.iter().flat_map(|facts| &facts.interrupts);
        let beside = interrupts
            .filter(|it| matches!(it.cores.as_slice(), [core] if record.tester.cores.contains(core)));
        let names: Vec<String> =
            beside.filter_map(|it| Some(format!("{} on core {}", it.name, it.cores.first()?))).collect();
        if !names.is_empty() {
            told.push(format!(
                "interrupts of {} are served on cores that generate ({}): receiving and sending take time from each other; \
                 write other cores to /proc/irq/NUMBER/smp_affinity_list, and stop irqbalance",
                port.name,
                names.join(", ")
            ));
        }
    }
    told
}

/// Threads of the device whose nodes claim more clocks than there were.
pub fn impossible_clocks(record: &Record) -> Vec<String> {
    let Some((seconds, rate)) = record.nodes_s.filter(|seconds| *seconds > 0.0).zip(counter_hz(record))
    else {
        return Vec::new();
    };
    let mut threads: BTreeMap<&str, f64> = BTreeMap::new();
    for node in &record.nodes {
        let spent = node.meanwhile().map_or(0.0, |did| did.spent());
        *threads.entry(&node.thread).or_default() += spent / seconds;
    }
    let impossible = threads.into_iter().filter(|(_, hz)| *hz > rate * TOLERANCE);
    impossible
        .map(|(thread, hz)| {
            format!(
                "{thread}: clocks × packets of its nodes come to {:.2} GHz, and the processor's counter runs at {:.2} GHz: \
                 the device counted some of them twice or over another time, so its clocks a packet are not to be trusted",
                hz / 1e9,
                rate / 1e9
            )
        })
        .collect()
}

/// The rate of the device's time stamp counter: measured where the device is on this machine, else what the name of
/// its processor says.
fn counter_hz(record: &Record) -> Option<f64> {
    match &record.dut.remote {
        None => record
            .environment
            .host
            .as_ref()
            .and_then(|host| host.tsc_hz)
            .or_else(|| nominal_hz(&record.environment.cpu)),
        Some(_) => {
            let mut told = record.dut.configuration.iter();
            told.find(|(name, _)| name.to_ascii_lowercase().contains("cpu"))
                .and_then(|(_, text)| nominal_hz(text))
        }
    }
}

/// What a processor's name says of its frequency, like `2.20GHz` in `Intel(R) Atom(TM) CPU C3758 @ 2.20GHz`.
fn nominal_hz(name: &str) -> Option<f64> {
    let (before, _) = name.split_once("GHz")?;
    let number = before.trim_end().rsplit(|c: char| !c.is_ascii_digit() && c != '.').next()?;
    number.parse::<f64>().ok().filter(|ghz| *ghz > 0.0).map(|ghz| ghz * 1e9)
}

/// A governor that lets cores be slower than they can.
pub fn governor(record: &Record) -> Vec<String> {
    let Some(Host { governors, .. }) = record.environment.host.as_deref() else { return Vec::new() };
    let slow: Vec<&str> = governors.iter().map(String::as_str).filter(|name| !FAST.contains(name)).collect();
    if slow.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "the frequency governor of this machine is {}: cores may run slower than they can, and differently from run to run \
         ('cpupower frequency-set -g performance' holds them)",
        slow.join(", ")
    )]
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;
    use results::record::{Core, Node, NodeRuntime, PortFacts, PortInterrupt};

    use super::*;

    /// Four cores on two nodes, of which 0 and 2, and 1 and 3 are threads of one physical core.
    fn on_threads(generate: usize, receive: usize, device: usize) -> Record {
        let mut record = Scenario::default().record();
        let core = |number: usize| Core {
            number,
            siblings: vec![(number + 2) % 4],
            node: Some(number % 2),
            ..Core::default()
        };
        let topology = Topology { cores: (0..4).map(core).collect(), ..Topology::default() };
        record.environment.host = Some(Box::new(Host { topology, ..Host::default() }));
        record.tester.cores = vec![generate];
        record.tester.receive_core = Some(receive);
        record.dut.core = Some(device);
        record
    }

    #[test]
    fn work_on_threads_of_one_physical_core_is_named() {
        let said = siblings(&on_threads(0, 1, 2));
        assert!(
            said[0].starts_with("generator (core 0) and device (core 2) are threads of one physical core"),
            "{said:?}"
        );
        assert_eq!(said.len(), 1);
        assert_eq!(siblings(&on_threads(0, 1, 1)), [""; 0], "one core is no sibling of itself");
        assert_eq!(siblings(&Scenario::default().record()), [""; 0], "nothing is known of an old record");
    }

    #[test]
    fn cores_that_are_far_from_a_port_are_named() {
        let mut record = on_threads(0, 1, 2);
        assert_eq!(far_from_cards(&record), [""; 0], "a lab's ports are on no node");
        record.tester.ports.truncate(1);
        let facts = PortFacts { node: Some(1), ..PortFacts::default() };
        record.tester.ports[0].facts = Some(Box::new(facts));
        assert_eq!(
            far_from_cards(&record),
            ["generator (core 0) is not on NUMA node 1, where port lr-port0 is: frames cross between nodes"]
        );
    }

    #[test]
    fn interrupts_on_generating_cores_are_named() {
        let mut record = on_threads(0, 1, 2);
        let interrupt = |name: &str, cores: &[usize]| PortInterrupt {
            number: 31,
            name: name.to_owned(),
            cores: cores.to_vec(),
        };
        let mut with = |cores: &[usize]| {
            let facts =
                PortFacts { interrupts: vec![interrupt("eth1-TxRx-0", cores)], ..PortFacts::default() };
            record.tester.ports[0].facts = Some(Box::new(facts));
            interrupts_beside_generators(&record)
        };
        assert!(
            with(&[0])[0].starts_with(
                "interrupts of lr-port0 are served on cores that generate (eth1-TxRx-0 on core 0)"
            )
        );
        assert_eq!(with(&[3]), [""; 0]);
        assert_eq!(with(&[0, 1, 2, 3]), [""; 0], "any core may serve it");
    }

    /// A worker whose node spent `clocks` for each of as many packets.
    fn worker(clocks: f64, packets: u64) -> Record {
        let mut record = Scenario::default().record();
        let after = NodeRuntime { calls: 1000, vectors: packets, suspends: 0, clocks };
        record.nodes = vec![Node {
            thread: "vpp_wk_0".to_owned(),
            name: "l2-input".to_owned(),
            before: NodeRuntime::default(),
            after,
        }];
        record.nodes_s = Some(10.0);
        record
    }

    #[test]
    fn more_clocks_than_there_were_do_not_add_up() {
        // "VPP on FreeBSD, part 2": 3.27 GHz on a core of 2.2 GHz.
        let mut record = worker(449.0, 72_900_000);
        record.environment.cpu = "Intel(R) Xeon(R) Silver 4114 CPU @ 2.20GHz".to_owned();
        let said = impossible_clocks(&record);
        assert!(said[0].contains("come to 3.27 GHz") && said[0].contains("runs at 2.20 GHz"), "{said:?}");
        // What was measured counts before what a name says.
        let host = Host { tsc_hz: Some(3.3e9), ..Host::default() };
        record.environment.host = Some(Box::new(host));
        assert_eq!(impossible_clocks(&record), [""; 0]);
    }

    #[test]
    fn a_worker_that_never_sleeps_has_all_clocks_and_not_more() {
        let mut record = worker(220.0, 100_000_000);
        record.environment.cpu = "Fast CPU @ 2.20GHz".to_owned();
        assert_eq!(impossible_clocks(&record), [""; 0]);
        record.nodes_s = None;
        assert_eq!(impossible_clocks(&record), [""; 0]);
    }

    #[test]
    fn frequencies_are_read_from_names() {
        assert_eq!(nominal_hz("AMD EPYC 7B13"), None);
        assert_eq!(nominal_hz("CPU @ 2.20GHz").map(f64::round), Some(2.2e9));
        assert_eq!(nominal_hz("3 GHz").map(f64::round), Some(3e9));
        assert_eq!(nominal_hz("GHz"), None);
    }

    #[test]
    fn a_governor_that_saves_power_is_named_and_performance_is_not() {
        let with = |name: &str| {
            let mut record = Scenario::default().record();
            let host = Host { governors: [name.to_owned()].into(), ..Host::default() };
            record.environment.host = Some(Box::new(host));
            governor(&record)
        };
        assert!(with("schedutil")[0].starts_with("the frequency governor of this machine is schedutil"));
        assert_eq!(with("performance"), [""; 0]);
    }
}
