//! `linerate compare` on files: numbers as ministat reads them, and records of a store.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use crate::common::{Finished, PROGRAM, linerate};
use results::bench::LABELS;
use results::fixtures::Scenario;
use results::record::{LimitedBy, Record, Status};
use results::store::Store;
use tempfile::TempDir;

/// Packets a second with hyper-threading on and off, from "Tuning FreeBSD for routing and
/// firewalling" (O. Cochard-Labbé): what its block and the values' sums leave possible.
const THREADED: [f64; 5] = [4_500_078.0, 4_632_222.0, 4_648_451.0, 4_724_896.0, 4_735_822.0];
const SINGLE: [f64; 5] = [5_765_684.0, 5_780_396.0, 5_783_115.0, 5_794_597.0, 5_801_231.5];

/// A directory with these files of numbers.
fn numbers(files: &[(&str, &[f64])]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, values) in files {
        let lines: String = values.iter().map(|value| format!("{value}\n")).collect();
        fs::write(directory.path().join(name), lines).unwrap();
    }
    directory
}

fn here(directory: &Path, line: &str) -> Finished {
    linerate(&format!("compare {line}")).in_directory(directory).run()
}

/// Searches of a device of this capacity, one a file in `directory`; `change` may alter each.
fn searches(directory: &Path, capacities: &[f64], change: impl Fn(&mut Record)) {
    let store = Store::open(directory).unwrap();
    for capacity_pps in capacities {
        let mut record = Scenario { capacity_pps: *capacity_pps, ..Scenario::default() }.search();
        change(&mut record);
        store.create(&mut record).unwrap();
    }
}

/// Six capacities around `base`, 1 % apart.
fn around(base: f64) -> [f64; 6] {
    [0.99, 0.995, 1.0, 1.003, 1.006, 1.01].map(|factor| base * factor)
}

#[test]
fn files_of_numbers_give_the_block_and_a_verdict_in_words() {
    let files = numbers(&[("on", &THREADED), ("off", &SINGLE)]);
    let finished = here(files.path(), "on off").well();
    for clue in [
        "x on\n+ off\n+-----",
        "    N           Min           Max        Median           Avg        Stddev\n",
        "Difference at 95.0% confidence\n\t1.13671e+06 +/- 98524.2\n\t24.4544% +/- 2.62824%\n",
        "(Student's t, pooled s = 67554.4)\n",
        "values, against on, at 95 % confidence\n  off: faster: +24.5 %, between +2",
        "Mann and Whitney",
        "bootstrap",
    ] {
        assert!(finished.stdout.contains(clue), "no '{clue}' in: {}", finished.stdout);
    }
    assert!(!finished.stdout.contains('\x1b'), "colour without a terminal");
    assert!(!finished.stdout.contains("disagree"), "{}", finished.stdout);
    let times = here(files.path(), "on off --less-is-better").well();
    assert!(times.stdout.contains("off: slower: +24."), "{}", times.stdout);
}

#[test]
fn ministat_prints_the_same_as_debians() {
    let files = numbers(&[("on", &THREADED), ("off", &SINGLE)]);
    fs::write(files.path().join("columns"), "# name, pps\na,1e3\nb,1010\nc,995\nd,1001\n").unwrap();
    let pairs = [
        ("-c 99 on off", "-c 99 on off"),
        ("-s -w 60 on off", "-s -w 60 on off"),
        ("-A -q on off", ""),
        ("-n off on", "-n off on"),
        ("-d , -C 2 columns", "-d, -C2 columns"),
    ];
    for (ours, theirs) in pairs {
        let block = here(files.path(), &format!("--ministat=classic {ours}")).well();
        assert_eq!(block.stderr, "");
        if theirs.is_empty() {
            assert!(block.stdout.starts_with("x   5"), "{}", block.stdout);
            continue;
        }
        match Command::new("ministat").args(theirs.split(' ')).current_dir(files.path()).output() {
            Ok(output) => assert_eq!(block.stdout, String::from_utf8(output.stdout).unwrap(), "{ours}"),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                eprintln!("skipped: ministat is not installed");
                return;
            }
            Err(error) => panic!("{error}"),
        }
    }
    // FreeBSD's differs in the error of the percentage.
    let [classic, current] = ["--ministat=classic", "--ministat"]
        .map(|flag| here(files.path(), &format!("{flag} on off")).well().stdout);
    let differing: Vec<(&str, &str)> =
        classic.lines().zip(current.lines()).filter(|(one, other)| one != other).collect();
    let [(classic, current)] = differing.as_slice() else { panic!("{differing:?}") };
    assert!(classic.contains("% +/- ") && current.contains("% +/- "), "{classic} {current}");
}

#[test]
fn standard_input_is_a_group() {
    let files = numbers(&[("on", &THREADED), ("off", &SINGLE)]);
    let line = format!("{PROGRAM} compare --ministat on - < off");
    let piped = Command::new("sh").args(["-c", &line]).current_dir(files.path()).output().unwrap();
    let stdout = String::from_utf8(piped.stdout).unwrap();
    assert!(stdout.starts_with("x on\n+ <stdin>\n"), "{stdout}");
}

#[test]
fn directories_of_records_are_groups_and_their_headline_is_compared() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    searches(&path.join("before"), &around(1.0e6), |_| {});
    searches(&path.join("after"), &around(1.1e6), |record| record.environment.kernel = "6.99".to_owned());
    let finished = here(path, "before after").well();
    for clue in ["ndr, frames a second, against before", "after: faster: +1", "kernel (", "6.99 in after)"] {
        assert!(finished.stdout.contains(clue), "no '{clue}' in: {}", finished.stdout);
    }
    let json = here(path, "before after --metric pdr --json").well().json();
    assert_eq!((&json["schema"], &json["metric"]), (&"linerate/compare/1".into(), &"pdr".into()));
    assert_eq!(json["comparisons"][0]["verdict"], "faster");
    let kept = results::store::load_all(&path.join("after")).unwrap().records;
    let right: Vec<f64> = kept.iter().map(|record| record.finding.results()["pdr"].pps).collect();
    let values: Vec<f64> = serde_json::from_value(json["groups"][1]["values"].clone()).unwrap();
    assert_eq!(values, right);
    assert_eq!(json["groups"][1]["runs"][0], kept[0].id.as_str());
    // A search is known to its width only.
    assert!(json["resolution"].as_f64().is_some_and(|width| width > 0.0 && width < 0.01), "{json}");
    assert!(json["ministat"].as_str().unwrap().starts_with("x before\n+ after\n"));
}

/// The records of a bench that compares IPv6 with IPv4 on one device, as one machine keeps them.
fn bench_of(directory: &Path, cost: f64) {
    let store = Store::open(directory).unwrap();
    for (profile, capacity) in [("IPv4", 1e6), ("IPv6", 1e6 * (1.0 - cost))] {
        for (repeat, capacity_pps) in (1..).zip(around(capacity)) {
            let mut record = Scenario { capacity_pps, ..Scenario::default() }.search();
            let values = ["ip".to_owned(), format!("router/{profile}/one"), format!("{repeat}")];
            record.labels = LABELS.map(str::to_owned).into_iter().zip(values).collect();
            store.create(&mut record).unwrap();
        }
    }
    let records = results::store::load_all(directory).unwrap().records;
    let mut bench = results::bench::Bench::all(Vec::new(), &records).remove(0);
    assert!(bench.compare_with("IPv4"));
    results::store::keep_bench(directory, &bench).unwrap();
}

#[test]
fn the_same_bench_of_several_machines_is_shown_side_by_side() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    bench_of(&path.join("xeon"), 0.2);
    bench_of(&path.join("atom"), 0.5);
    let told = here(path, "xeon atom").well().stdout;
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].starts_with("router, one way: ndr"), "{told}");
    assert!(lines[2].starts_with("xeon") && lines[2].contains("slower: -20"), "{told}");
    assert!(lines[3].starts_with("atom") && lines[3].contains("slower: -50"), "{told}");
    let json = here(path, "xeon atom --json").well().json();
    assert_eq!(json["tables"][0]["setups"][1]["setup"], "atom");
    let refused = here(path, "xeon atom --metric pdr");
    assert!(
        refused.status.code() == Some(2) && refused.stderr.contains("hold benches"),
        "{}",
        refused.stderr
    );
}

#[test]
fn single_records_of_one_configuration_are_one_group() {
    let directory = tempfile::tempdir().unwrap();
    let runs = directory.path().join("runs");
    searches(&runs, &around(1.0e6), |_| {});
    let slower = |record: &mut Record| {
        record.dut.name = "new-router".to_owned();
        record.name = "new-router 64b".to_owned();
        record.id = format!("{}-new", record.id);
    };
    searches(&runs, &around(0.9e6), slower);
    let kept = crate::common::records(&runs);
    // As files and as ids.
    let words: Vec<String> = kept.iter().map(|record| format!("runs/{}.json", record.id)).collect();
    let ids: Vec<&str> = kept.iter().map(|record| record.id.as_str()).collect();
    assert_eq!(ids.len(), 12);
    let by_file = here(directory.path(), &words.join(" ")).well();
    let by_id = here(directory.path(), &ids.join(" ")).well();
    assert_eq!(by_file.stdout, by_id.stdout);
    assert!(by_id.stdout.contains("new-router 64b: slower: -"), "{}", by_id.stdout);
    // One value has no spread, and is not compared with itself.
    let pair = here(directory.path(), &format!("{} {}", ids[0], ids[5])).well();
    assert!(pair.stdout.contains("one value has no spread"), "{}", pair.stdout);
    assert!(pair.stdout.contains("no ministat block"), "{}", pair.stdout);
    let same = here(directory.path(), &format!("{} {}", ids[0], ids[1]));
    assert!(same.refusal(2).contains("another group"), "{}", same.stderr);
}

#[test]
fn what_was_not_measured_alike_is_not_compared_unless_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    searches(&path.join("small"), &around(1.0e6), |_| {});
    let larger = |record: &mut Record| {
        record.profile.tunables.insert("size".to_owned(), "128".to_owned());
    };
    searches(&path.join("large"), &around(1.0e6), larger);
    let refused = here(path, "small large");
    let refusal = refused.refusal(2);
    assert!(refusal.contains("profile size (") && refusal.contains("--force"), "{refusal}");
    let forced = here(path, "small large --force").well();
    assert!(forced.stdout.contains("note: the groups were not measured alike"), "{}", forced.stdout);
    // Nor are a group's own records.
    searches(&path.join("small"), &around(1.0e6)[..1], |record| record.environment.kernel = "1.0".to_owned());
    let refusal = here(path, "small small --force").well().stdout;
    assert!(refusal.contains("the records of small differ in kernel"), "{refusal}");
    assert!(here(path, "small small").refusal(2).contains("1.0 in "));
}

#[test]
fn doubtful_records_are_named_and_unfinished_ones_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    searches(&path.join("before"), &around(1.0e6), |_| {});
    let limited = |record: &mut Record| {
        record.finding.search_mut().unwrap().limits_mut().for_each(|limit| *limit = LimitedBy::Tester);
    };
    searches(&path.join("after"), &around(1.0e6), limited);
    searches(&path.join("after"), &[5e5], |record| record.status = Status::Interrupted);
    let finished = here(path, "before after --json").well();
    assert!(finished.stderr.contains("is doubtful: the tester limited it"), "{}", finished.stderr);
    assert!(finished.stderr.contains("passed over: "), "{}", finished.stderr);
    let json = finished.json();
    assert_eq!(json["groups"][1]["values"].as_array().unwrap().len(), 6);
    assert_eq!(json["groups"][1]["doubts"].as_array().unwrap().len(), 6);
}

#[test]
fn a_regression_beyond_the_bound_fails() {
    let times = |factor: f64| [100.0, 100.4, 99.7, 100.1, 99.9, 100.2].map(|value| value * factor);
    let files = numbers(&[
        ("base", &times(1.0)),
        ("same", &times(1.001)),
        ("slower", &times(0.975)),
        ("slow", &times(0.9)),
        ("few", &times(0.5)[..2]),
    ]);
    let status = |line: &str| here(files.path(), line).status.code();
    assert_eq!(status("--baseline base same"), Some(0));
    assert_eq!(status("--baseline base slower"), Some(1));
    assert_eq!(status("--baseline base slower --max-regression 3%"), Some(0));
    assert_eq!(status("--baseline base same slow --max-regression 3%"), Some(1));
    assert_eq!(status("--baseline base slow --max-regression 3% --less-is-better"), Some(0));
    // Without a baseline it is only told.
    assert_eq!(status("base slow"), Some(0));
    let json = here(files.path(), "--baseline base same slow --max-regression 3% --json").json();
    let regresses = [0, 1].map(|at| json["comparisons"][at]["regresses"].as_bool());
    assert_eq!(regresses, [Some(false), Some(true)]);
    // Two values could never fail the check.
    let few = here(files.path(), "--baseline base few");
    assert!(few.refusal(2).contains("at least 4 times"), "{}", few.stderr);
}

#[test]
fn wrong_use_is_refused_with_a_remedy() {
    let files = numbers(&[("on", &THREADED), ("off", &SINGLE), ("two", &[1.0, 2.0])]);
    fs::write(files.path().join("words"), "1\ntwo\n").unwrap();
    fs::write(files.path().join("empty"), "# nothing\n").unwrap();
    fs::create_dir(files.path().join("folder")).unwrap();
    fs::write(files.path().join("other.json"), "{\"schema\": \"other/1\"}").unwrap();
    let cases: [(&str, i32, &[&str]); 12] = [
        ("", 2, &["GROUP"]),
        ("on", 2, &["only on", "another group"]),
        ("on nowhere", 2, &["'nowhere'", "in runs", "--runs"]),
        ("on words", 2, &["words: line 2: 'two'", "--column"]),
        ("on empty", 2, &["no numbers in column 1", "--column"]),
        ("on folder", 2, &["folder has no complete records", "--runs"]),
        ("on other.json", 1, &["other.json", "no record"]),
        ("on off --confidence 96", 2, &["'96'", "99.5"]),
        ("on off --metric latency_p98", 2, &["'p98'", "p99"]),
        ("on off --max-regression 3%", 2, &["--baseline"]),
        ("on two --ministat", 2, &["two has 2 values", "at least 3"]),
        ("on off --ministat --width 1", 2, &["1 columns"]),
    ];
    for (line, code, clues) in cases {
        let finished = here(files.path(), line);
        if line.is_empty() {
            assert_eq!(finished.status.code(), Some(code), "{}", finished.stderr);
            continue;
        }
        let refusal = finished.refusal(code);
        assert!(clues.iter().all(|clue| refusal.contains(clue)), "{line}: {refusal}");
    }
    let many = "on ".repeat(8);
    assert!(here(files.path(), &format!("--ministat {many}")).refusal(2).contains("8 sets"));
}

#[test]
fn a_metric_that_a_record_lacks_is_refused_with_those_it_has() {
    let directory = tempfile::tempdir().unwrap();
    searches(&directory.path().join("runs"), &around(1.0e6), |_| {});
    let refused = here(directory.path(), "runs runs --metric throughput");
    let refusal = refused.refusal(2);
    assert!(refusal.contains("has no throughput; it has: ndr, pdr"), "{refusal}");
}
