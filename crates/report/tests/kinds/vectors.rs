//! A router that moves vectors of packets, at three loads, three runs of each: the figures of the Netgate 6100
//! review, and a little more in other runs.

use results::Record;
use results::bench::{Bench, Compare, Dut, LABELS, Profile};
use results::fixtures::Scenario;
use results::record::{Finding, Node, NodeRuntime};

/// Loads with their rates, packets a call of the input and of the others.
const LOADS: [(&str, f64, f64, f64); 3] = [
    ("1 kpps", 1_000.17, 0.0007, 1.0),
    ("1 Mpps", 981_830.0, 0.39, 18.57),
    ("10 Mpps", 5_014_260.0, 256.0, 256.0),
];
/// Clocks of each node, load by load.
const NODES: [(&str, [f64; 3]); 8] = [
    ("TenGigabitEthernet3/0/1-output", [607.0, 38.0, 14.1]),
    ("TenGigabitEthernet3/0/1-tx", [861.0, 144.0, 123.0]),
    ("dpdk-input", [1.51e6, 1_150.0, 79.5]),
    ("ethernet-input", [1_220.0, 139.0, 67.4]),
    ("ip4-input-no-checksum", [659.0, 82.6, 39.5]),
    ("ip4-load-balance", [450.0, 58.5, 25.4]),
    ("ip4-lookup", [563.0, 79.4, 41.2]),
    ("ip4-rewrite", [583.0, 78.6, 47.8]),
];
const SECONDS: f64 = 10.0;

/// The bench and its records.
pub fn vectors() -> (Bench, Vec<Record>) {
    let mut records = Vec::new();
    for (load, (name, rate, input, others)) in LOADS.into_iter().enumerate() {
        for repeat in 1..=3 {
            let scenario = Scenario {
                dut: "vpp",
                capacity_pps: rate,
                line_rate_bps: 1e10,
                ramp_samples: 5,
                ..Scenario::default()
            };
            let mut record = scenario.record();
            record.id = format!("{}-{name}-{repeat}", record.id);
            record.strategy.name = "saturate".to_owned();
            record.finding = Finding::Saturate;
            let values = ["vectors", &format!("VPP, {name}/64 B/one"), &repeat.to_string()];
            record.labels = LABELS
                .into_iter()
                .zip(values)
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect();
            let packets = (rate * SECONDS) as u64;
            let node = |(node, clocks): (&str, [f64; 3])| Node {
                thread: "vpp_wk_0".to_owned(),
                name: node.to_owned(),
                before: NodeRuntime::default(),
                after: NodeRuntime {
                    calls: (packets as f64 / if node == "dpdk-input" { input } else { others }) as u64,
                    vectors: packets,
                    suspends: 0,
                    clocks: clocks[load] * (0.9 + 0.05 * f64::from(repeat)),
                },
            };
            record.nodes = NODES.into_iter().map(node).collect();
            record.nodes_s = Some(SECONDS);
            records.push(record);
        }
    }
    let bench = Bench {
        schema: results::bench::SCHEMA.to_owned(),
        name: "vectors".to_owned(),
        title: "Cost by node".to_owned(),
        article_figure: None,
        command: Vec::new(),
        source: String::new(),
        repeats: 3,
        order: "interleaved".to_owned(),
        compare: Compare::Devices,
        baseline: None,
        axis: None,
        duts: LOADS.map(|(name, ..)| Dut { name: format!("VPP, {name}"), at: None }).into(),
        profiles: vec![Profile { name: "64 B".to_owned(), at: None, directions: vec!["one".to_owned()] }],
    };
    (bench, records)
}
