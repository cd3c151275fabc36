//! `linerate import`: what trex-loadtest.py writes becomes records that every other command takes.

use std::fs;
use std::path::Path;

use crate::common::{Finished, linerate, records};
use results::record::{LimitedBy, Status};
use serde_json::{Value, json};

/// A test of a device that forwards `capacity` frames a second of 64 bytes, in each direction, on lines of 10 Gb/s: a
/// ramp of 60 s and a hold of 10 s, with keys as Python's `time.time()` gives them.
fn loadtest(capacity: f64, profile: &str) -> String {
    let seconds = (0..70).map(|second: u32| {
        let tx = 14_880_952.0 * f64::from((second + 1).min(60)) / 60.0;
        let rx = tx.min(capacity);
        let port =
            json!({"tx_pps": tx, "rx_pps": rx, "tx_util": tx * 672.0 / 1e8, "rx_util": rx * 672.0 / 1e8});
        let stats = json!({"0": port, "1": port, "global": {"tx_pps": 2.0 * tx, "rx_pps": 2.0 * rx}});
        format!("\"{}\": {stats}", 1_637_000_000.25 + f64::from(second))
    });
    let vars = json!({"warmup_mult": "1kpps", "warmup_duration": 30, "rampup_target": "100%", "rampup_duration": 60,
        "hold_duration": 10, "profile_file": profile});
    format!("{{\"vars\": {vars}, \"stats\": {{{}}}}}", seconds.collect::<Vec<_>>().join(", "))
}

fn here(directory: &Path, line: &str) -> Finished {
    linerate(line).in_directory(directory).on_my_machine().run()
}

#[test]
fn old_load_tests_become_records_that_every_command_takes() {
    let directory = tempfile::tempdir().unwrap();
    let here = |line: &str| here(directory.path(), line);
    for (group, base) in [("kernel", 2e6), ("vpp", 6e6)] {
        for repeat in 0..3 {
            let text = loadtest(base * (1.0 + 0.002 * f64::from(repeat)), "udp_1pkt_simple_bdir.py");
            fs::write(directory.path().join(format!("{group}-{repeat}.json")), text).unwrap();
        }
        let files = [0, 1, 2].map(|repeat| format!("{group}-{repeat}.json")).join(" ");
        let said = here(&format!("import {files} --dut {group} --runs {group}")).well();
        assert_eq!(said.stdout.lines().count(), 3, "{}", said.stdout);
    }
    let imported = records(&directory.path().join("vpp"));
    assert_eq!(imported.len(), 3);
    for record in &imported {
        assert_eq!((record.status, record.line_rate_bps), (Status::Complete, 1e10));
        assert_eq!((record.dut.name.as_str(), record.samples.len()), ("vpp", 70));
        for direction in &record.directions {
            assert_eq!(direction.limited_by, LimitedBy::Dut);
            // The ramp's last step before losses.
            assert!((5.7e6..6.03e6).contains(&direction.max_rate_pps), "{}", direction.max_rate_pps);
        }
        assert!(record.notes.iter().any(|note| note.contains("not known, and not zero")));
        assert_eq!(results::consistency::contradictions(record), Vec::<String>::new());
    }
    here("report kernel vpp --output page.html").well();
    let page = fs::read_to_string(directory.path().join("page.html")).unwrap();
    assert!(page.contains("not known, and not zero") && page.contains("vpp-0"));
    let compared = here("compare kernel vpp --json").well().json();
    assert!(compared.to_string().contains("vpp"), "{compared}");
    let csv = here("export vpp --format csv").well().stdout;
    assert!(csv.lines().count() > 3 * 70 * 2, "{} lines", csv.lines().count());
    let one = format!("vpp/{}.json", imported[0].id);
    let again: Value =
        serde_json::from_str(&here(&format!("export {one} --format trex-loadtest")).well().stdout).unwrap();
    assert_eq!(again["stats"].as_object().unwrap().len(), 70);
}

#[test]
fn files_that_do_not_tell_enough_or_are_others_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    write("bench.json", &loadtest(1e6, "bench.py"));
    write("other.json", "{\"schema\": \"linerate/run/1\"}");
    write("cut.json", &loadtest(1e6, "imix.py")[..2_000]);
    let refused = |line: &str, clue: &str| {
        let finished = here(directory.path(), line);
        assert!(finished.refusal(2).contains(clue), "{line}: {}", finished.stderr);
        assert!(!directory.path().join("runs").exists(), "{line}: wrote something");
    };
    refused("import bench.json", "give --frame-size");
    refused("import other.json", "other.json: not what trex-loadtest.py writes");
    refused("import cut.json", "cut.json: not what trex-loadtest.py writes");
    refused("import bench.json --frame-size 10", "64 to 9216");
    here(directory.path(), "import bench.json --frame-size 64").well();
    assert_eq!(here(directory.path(), "import nothing.json").status.code(), Some(1));
}
