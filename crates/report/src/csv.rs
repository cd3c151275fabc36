//! Comma-separated values for spreadsheets: records enter; one line for each run leaves, with its place in
//! its bench, its labels and its figure, or one for each node of a device that is a graph of nodes (RFC 4180,
//! decimal points, units beside figures).

use std::collections::BTreeSet;

use results::Record;
use results::bench::{LABELS, Place};
use results::record::{Node, NodeRuntime};

use crate::links::Links;
use crate::metric::Metric;
use crate::nodes::in_order;
use crate::outcome::status;

/// What every line has; the other labels that occur follow, as `label_NAME`.
const HEAD: [&str; 19] = [
    "id",
    "started",
    "status",
    "bench",
    "device",
    "profile",
    "direction",
    "repeat",
    "test",
    "strategy",
    "metric",
    "value",
    "unit",
    "resolution",
    "doubts",
    "imix_bps",
    "mean_frame_size",
    "line_rate_bps",
    "elapsed_s",
];

/// What every line of a node has.
const NODE_HEAD: [&str; 16] = [
    "id",
    "bench",
    "device",
    "profile",
    "direction",
    "repeat",
    "test",
    "dut",
    "forwarded_pps",
    "seconds",
    "thread",
    "node",
    "calls",
    "packets",
    "packets_per_call",
    "clocks_per_packet",
];

/// The nodes of `records`' devices, thread by thread in the order in which packets pass them. `seconds` is the
/// time in which they did it; a node that was given no packets has its clocks a call.
///
/// # Errors
/// As [`runs`].
pub fn nodes(records: &[Record]) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(NODE_HEAD)?;
    for record in records {
        let mut nodes: Vec<&Node> = record.nodes.iter().collect();
        nodes.sort_by(|one, other| in_order(one).cmp(&in_order(other)));
        for (node, did) in nodes.into_iter().filter_map(|node| Some((node, node.meanwhile()?))) {
            writer.write_record(node_line(record, node, did))?;
        }
    }
    text(writer)
}

fn node_line(record: &Record, node: &Node, did: NodeRuntime) -> [String; NODE_HEAD.len()] {
    let place = Place::of(record);
    let named = |part: fn(&Place) -> String| place.as_ref().map(part).unwrap_or_default();
    let forwarded = Metric::MaxForwarded.read(record).ok().map(|reading| reading.value.to_string());
    [
        record.id.clone(),
        named(|place| place.bench.to_owned()),
        record.device(),
        place.map_or_else(|| record.profile.name.clone(), |place| place.profile.to_owned()),
        if record.profile.bidirectional { "both" } else { "one" }.to_owned(),
        named(|place| place.repeat.to_string()),
        record.test.clone(),
        record.dut.label(),
        forwarded.unwrap_or_default(),
        record.nodes_s.map(|seconds| seconds.to_string()).unwrap_or_default(),
        node.thread.clone(),
        node.name.clone(),
        did.calls.to_string(),
        did.vectors.to_string(),
        did.vectors_per_call().to_string(),
        did.clocks.to_string(),
    ]
}

/// What was written.
fn text(writer: csv::Writer<Vec<u8>>) -> Result<String, csv::Error> {
    let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// `records` as one table. What is not known of a run is empty.
///
/// # Errors
/// None are known to occur: the text grows in memory and all lines have the same fields.
pub fn runs(records: &[Record]) -> Result<String, csv::Error> {
    let all = records.iter().flat_map(|record| record.labels.keys()).map(String::as_str);
    let others: BTreeSet<&str> = all.filter(|label| !LABELS.contains(label)).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    let head = HEAD.iter().map(|name| (*name).to_owned());
    writer.write_record(head.chain(others.iter().map(|label| format!("label_{label}"))))?;
    for record in records {
        let labels = others.iter().map(|label| record.labels.get(*label).cloned().unwrap_or_default());
        writer.write_record(line(record).into_iter().chain(labels))?;
    }
    text(writer)
}

fn line(record: &Record) -> [String; HEAD.len()] {
    let place = Place::of(record);
    let metric = Metric::headline(record);
    let reading = metric.read(record).ok();
    let named = |part: fn(&Place) -> String| place.as_ref().map(part).unwrap_or_default();
    let direction = if record.profile.bidirectional { "both" } else { "one" };
    let figure = |part: fn(&crate::metric::Reading) -> String| reading.as_ref().map(part).unwrap_or_default();
    [
        record.id.clone(),
        record.started.clone(),
        status(record.status).to_owned(),
        named(|place| place.bench.to_owned()),
        record.device(),
        place.map_or_else(|| record.profile.name.clone(), |place| place.profile.to_owned()),
        direction.to_owned(),
        named(|place| place.repeat.to_string()),
        record.test.clone(),
        record.strategy.name.clone(),
        metric.to_string(),
        figure(|reading| reading.value.to_string()),
        metric.unit().to_owned(),
        figure(|reading| reading.resolution.to_string()),
        figure(|reading| reading.doubts.join("; ")),
        Links::of(record).map(|links| links.imix_bps().to_string()).unwrap_or_default(),
        record.profile.mean_frame_size.to_string(),
        record.line_rate_bps.to_string(),
        record.elapsed_s.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;

    use super::*;

    #[test]
    fn every_run_has_a_line_with_its_place_and_its_labels() {
        let mut repeat = Scenario { bidirectional: true, ..Scenario::default() }.record();
        for (key, value) in
            [("bench", "rules"), ("cell", "10 rules, \"odd\"/64 B/both"), ("repeat", "2"), ("site", "a, b")]
        {
            repeat.labels.insert(key.to_owned(), value.to_owned());
        }
        let plain = Scenario { interrupted_at: Some(0), ..Scenario::default() }.record();
        let text = runs(&[repeat.clone(), plain]).unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let head = reader.headers().unwrap().clone();
        let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        let cell = |line: usize, name: &str| {
            let column = head.iter().position(|column| column == name).unwrap();
            lines[line].get(column).unwrap().to_owned()
        };
        assert_eq!(lines.len(), 2);
        assert_eq!(cell(0, "device"), "10 rules, \"odd\"");
        assert_eq!([cell(0, "bench"), cell(0, "profile"), cell(0, "direction")], ["rules", "64 B", "both"]);
        assert_eq!([cell(0, "repeat"), cell(0, "label_site")], ["2", "a, b"]);
        let value: f64 = cell(0, "value").parse().unwrap();
        assert_eq!(value, Metric::MaxForwarded.read(&repeat).unwrap().value);
        assert_eq!([cell(0, "metric"), cell(0, "unit")], ["max_forwarded", "pps"]);
        let imix_bps: f64 = cell(0, "imix_bps").parse().unwrap();
        assert_eq!(imix_bps, Links::of(&repeat).unwrap().imix_bps());
        assert_eq!([cell(1, "bench"), cell(1, "label_site"), cell(1, "status")], ["", "", "interrupted"]);
    }

    #[test]
    fn each_node_of_a_device_has_a_line() {
        let mut record = Scenario::default().record();
        assert_eq!(nodes(&[record.clone()]).unwrap().lines().count(), 1);
        let did = |vectors| NodeRuntime { calls: 10, vectors, suspends: 0, clocks: 20.5 };
        let node = |name: &str, vectors| Node {
            thread: "worker 0".to_owned(),
            name: name.to_owned(),
            before: NodeRuntime::default(),
            after: did(vectors),
        };
        (record.nodes, record.nodes_s) = (vec![node("tx", 25), node("device-input", 25)], Some(2.0));
        let text = nodes(&[record]).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with("seconds,thread,node,calls,packets,packets_per_call,clocks_per_packet"));
        assert!(lines[1].ends_with("2,worker 0,device-input,10,25,2.5,20.5"), "{text}");
        assert!(lines[2].ends_with("2,worker 0,tx,10,25,2.5,20.5"), "{text}");
    }
}
