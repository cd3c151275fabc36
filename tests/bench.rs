//! Bench files: planned, carried out, killed and gone on with; what cannot run does not keep the
//! rest from running.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::common::sites::Site;
use crate::common::{
    Finished, Linerate, PROGRAM, has_namespaces, linerate, machine, records, tool, wait_until,
};
use nix::sys::signal::Signal;
use results::Record;
use results::record::Status;
use serde_json::Value;

/// Two devices, one of which is a variant of the other, and one profile.
const SMALL: &str = r#"
name = "small"
title = "A small bench"
repeats = 3
[strategy]
use = "saturate"
options = ["--rate", "2kpps", "--warm-up-duration", "50ms", "--duration", "100ms", "--step", "50ms", "--drain", "50ms"]
[[duts]]
name = "plain"
dut = "calibrated:rate=1mpps"
[[duts]]
name = "variant"
extends = "plain"
commands = ["true"]
[[profiles]]
name = "64 B"
size = "64"
"#;

/// A directory with `text` as its bench file.
fn directory(text: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("b.toml"), text).unwrap();
    directory
}

/// `linerate bench b.toml` with `flags`, there.
fn bench<'a>(directory: &Path, flags: &str) -> Linerate<'a> {
    linerate(&format!("bench b.toml {flags}")).in_directory(directory)
}

/// The cell and the repeat of a record.
fn run_of(record: &Record) -> (String, String) {
    (record.labels["cell"].clone(), record.labels["repeat"].clone())
}

fn complete(records: &[Record]) -> Vec<&Record> {
    records.iter().filter(|record| record.status == Status::Complete).collect()
}

fn says(finished: &Finished, clues: &[&str]) {
    for clue in clues {
        assert!(finished.stderr.contains(clue), "no '{clue}' in: {}", finished.stderr);
    }
}

// What does not run anything needs no machine of its own.

#[test]
fn a_dry_run_prints_every_command_and_does_nothing() {
    let directory = directory(SMALL);
    let planned = bench(directory.path(), "--dry-run").on_my_machine().run().well();
    let commands: Vec<&str> =
        planned.stdout.lines().filter(|line| line.starts_with("linerate saturate ")).collect();
    assert_eq!(commands.len(), 6, "{}", planned.stdout);
    for part in [
        "--rate 2kpps",
        "--dut calibrated:rate=1mpps --profile bench --size 64 --name 'plain, 64 B, one way'",
        "--label bench=small --label 'cell=plain/64 B/one' --label repeat=3 --runs runs/small --json",
    ] {
        assert!(commands.iter().any(|command| command.contains(part)), "no '{part}' in {commands:?}");
    }
    assert!(planned.stdout.contains("6 to do, about 8 s"), "{}", planned.stdout);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "it left something");

    let some = bench(directory.path(), "--dry-run --json --only variant").on_my_machine().run().well().json();
    assert_eq!(some["runs"].as_array().unwrap().len(), 3);
    assert!(some["runs"].as_array().unwrap().iter().all(|run| run["cell"] == "variant/64 B/one"));
    let refused = bench(directory.path(), "--only nothing").on_my_machine().run();
    assert!(refused.refusal(2).contains("plain/64 B/one"));
}

#[test]
fn ports_of_dpdk_are_planned_and_without_dpdk_they_are_named_as_not_run() {
    let text = r#"
name = "user-space"
repeats = 1
[strategy]
use = "ramp"
[[duts]]
name = "testpmd"
engine = "dpdk"
dut = "testpmd:mode=macswap"
[[duts]]
name = "null"
engine = "dpdk"
port0 = "net_null0,no-rx=1"
port1 = "net_null1,no-rx=1"
[[profiles]]
name = "64 B"
"#;
    let directory = directory(text);
    let planned = bench(directory.path(), "--dry-run").on_my_machine().run().well();
    if cfg!(feature = "dpdk") {
        for words in [
            "--port0 net_null0,no-rx=1 --port1 net_null1,no-rx=1 --engine dpdk",
            "--dut testpmd:mode=macswap --engine dpdk",
        ] {
            assert!(planned.stdout.contains(words), "no '{words}' in: {}", planned.stdout);
        }
    } else {
        let clues = ["testpmd/64 B/one", "null/64 B/one", ": not run: ", "--features dpdk", "0 to do"];
        clues
            .iter()
            .for_each(|clue| assert!(planned.stdout.contains(clue), "no '{clue}' in: {}", planned.stdout));
    }
}

#[test]
fn a_bad_file_is_refused_with_its_line_before_anything_runs() {
    let refused = |text: &str, clues: &[&str]| {
        let directory = directory(text);
        let finished = bench(directory.path(), "").on_my_machine().run();
        let refusal = finished.refusal(2);
        for clue in clues {
            assert!(refusal.contains(clue), "no '{clue}' in: {refusal}");
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "it left something");
    };
    refused(&SMALL.replace("size", "sise"), &["b.toml:17: ", "`sise`", "`size`"]);
    refused(
        &SMALL.replace("dut = \"calibrated:rate=1mpps\"", "extends = \"variant\""),
        &["b.toml:13: ", "circular"],
    );
    refused(SMALL.split_once("[[profiles]]").unwrap().0, &["empty", "[[profiles]]"]);
    refused(&SMALL.replace("rate=1mpps", "rate=fast"), &["b.toml:10: ", "'fast'"]);
    refused(&SMALL.replace("\"--drain\"", "\"--drian\""), &["b.toml:7: ", "--drian"]);
    refused(&SMALL.replace("\"2kpps\"", "\"2furlongs\""), &["b.toml:7: ", "'2furlongs'"]);
    refused(&SMALL.replace("name = \"variant\"", "name = \"plain\""), &["b.toml:12: ", "'plain'"]);
    let gone = linerate("bench gone.toml").on_my_machine().run();
    assert!(gone.refusal(1).contains("gone.toml"));
    assert!(linerate("bench").on_my_machine().run().refusal(2).contains("--quick"));
    assert!(linerate("bench --quick --dry-run").on_my_machine().run().refusal(2).contains("--dry-run"));
}

#[test]
fn a_bench_is_told_in_a_table_a_comparison_a_page_and_its_records() {
    if !has_namespaces() {
        return;
    }
    let directory = directory(SMALL);
    let finished = bench(directory.path(), "--json").run().well();
    says(
        &finished,
        &["[6/6] ", "deviation", "plain/64 B/one", "variant: ", "against plain", "all runs are complete"],
    );
    let told = finished.json();
    let printed: Vec<Record> = serde_json::from_value(told["records"].clone()).unwrap();
    let cells = told["cells"].as_array().unwrap();
    assert_eq!((cells.len(), &told["schema"], &told["missing"]), (2, &"linerate/bench/1".into(), &0.into()));
    assert_eq!((&cells[0]["cell"], &cells[0]["comparison"]), (&"plain/64 B/one".into(), &Value::Null));
    assert_eq!(cells[1]["repeats"].as_array().unwrap().len(), 3);
    assert!(cells[1]["spread"]["median"].as_f64().unwrap() > 1000.0, "{}", cells[1]);
    assert_eq!(cells[1]["comparison"]["reference"], "plain");
    assert!(cells[1]["comparison"]["verdict"].is_string(), "{}", cells[1]);
    let runs = directory.path().join("runs/small");
    let kept = records(&runs);
    assert_eq!((printed.len(), kept.len()), (6, 6));
    assert!(fs::read_to_string(runs.join("report.html")).unwrap().contains("A small bench"));
    let variant = kept.iter().find(|record| record.labels["cell"].starts_with("variant")).unwrap();
    assert_eq!(variant.dut.configuration["command 1"], "true");

    // From its directory come the same page, and other forms, without the bench file.
    fs::remove_file(runs.join("report.html")).unwrap();
    let there = |line: &str| linerate(line).in_directory(directory.path()).on_my_machine().run();
    there("report runs/small --output again.html").well();
    let page = fs::read_to_string(directory.path().join("again.html")).unwrap();
    assert!(page.contains("against plain") && page.contains("sudo linerate bench b.toml"));
    let markdown = there("export --format markdown runs/small").well().stdout;
    for part in ["## A small bench", "| plain | ", "### 64 B, one way, against plain", "- **variant**: "] {
        assert!(markdown.contains(part), "no '{part}' in {markdown}");
    }
    let csv = there("export --format csv-runs runs/small").well().stdout;
    assert_eq!(csv.lines().filter(|line| line.contains(",small,variant,64 B,one,")).count(), 3, "{csv}");
    says(&there("report runs/small --baseline variant").well(), &["plain: ", "against variant"]);
    assert!(there("report runs/small --baseline gone").refusal(2).contains("there are: plain, variant"));

    // Again there is nothing to do; with other settings it would be another bench.
    let again = bench(directory.path(), "").run().well();
    says(&again, &["6 runs are complete, 0 to do", "all runs are complete"]);
    assert_eq!(records(&runs), kept);
    let text = SMALL.replace("2kpps", "3kpps");
    fs::write(directory.path().join("b.toml"), text).unwrap();
    let refused = bench(directory.path(), "").run();
    assert!(refused.refusal(2).contains("other settings") && refused.stderr.contains("--runs"));
    bench(directory.path(), "--runs elsewhere --only plain").run().well();
    assert_eq!(records(&directory.path().join("elsewhere")).len(), 3);
}

#[test]
fn shards_that_run_at_once_make_one_bench() {
    if !has_namespaces() {
        return;
    }
    // Each of them may wait for its cores while the other one sends.
    let patient = SMALL.replace("\"50ms\", \"--duration\"", "\"400ms\", \"--duration\"");
    assert_ne!(patient, SMALL);
    let directory = directory(&(patient + "[[profiles]]\nname = \"128 B\"\nsize = \"128\"\n"));
    let machine = machine();
    let shard = |number| bench(directory.path(), &format!("--shard {number}/3")).on_my_machine().start();
    let ends = [1, 2, 3].map(shard).map(|running| running.finish().well());
    drop(machine);
    for (end, tests) in ends.iter().zip([Some("64 B"), Some("128 B"), None]) {
        says(end, &["draws no page: linerate report", "all runs are complete"]);
        let done = end.stderr.matches("/6] ").count();
        assert_eq!(done, if tests.is_some() { 6 } else { 0 }, "{}", end.stderr);
        assert!(
            tests.is_none_or(|test| end.stderr.contains(&format!("[1/6] plain/{test}/one"))),
            "{}",
            end.stderr
        );
    }
    assert_eq!(records(&directory.path().join("runs/small")).len(), 12);
    let whole = bench(directory.path(), "").run().well();
    says(&whole, &["12 runs are complete, 0 to do", "64 B", "128 B"]);
    for wrong in ["0/3", "4/3", "three"] {
        let refused = bench(directory.path(), &format!("--shard {wrong}")).on_my_machine().run();
        assert!(refused.refusal(2).contains("is no shard"), "{}", refused.stderr);
    }
}

#[test]
fn what_cannot_run_does_not_keep_the_rest_from_running() {
    if !has_namespaces() {
        return;
    }
    let more = r#"
[[duts]]
name = "broken"
extends = "plain"
commands = ["echo no such table >&2; exit 3"]
undo = ["echo undone >> undone"]
[[duts]]
name = "toolless"
extends = "plain"
requires = ["sh", "no-such-tool"]
"#;
    let text = SMALL.replace("repeats = 3", "repeats = 1") + more;
    let directory = directory(&text);
    let runs = directory.path().join("runs/small");
    let finished = bench(directory.path(), "").run();
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    says(
        &finished,
        &["broken/64 B/one, repeat 1: failed: ", "no such table", "1 failed", "2 runs are missing"],
    );
    says(&finished, &["toolless/64 B/one: not run: no-such-tool is not installed; install it"]);
    let cells = || complete(&records(&runs)).into_iter().map(run_of).collect::<BTreeSet<_>>();
    let done = ["plain/64 B/one", "variant/64 B/one"].map(|cell| (cell.to_owned(), "1".to_owned()));
    assert_eq!(cells(), BTreeSet::from(done));
    assert_eq!(fs::read_to_string(directory.path().join("undone")).unwrap(), "undone\n");

    // Mended, only what is missing is run.
    let mended = text.replace("echo no such table >&2; exit 3", "true").replace("no-such-tool", "sh");
    fs::write(directory.path().join("b.toml"), mended).unwrap();
    let finished = bench(directory.path(), "").run().well();
    says(&finished, &["2 runs are complete, 2 to do", "[2/2] "]);
    assert_eq!(cells().len(), 4);
}

#[test]
fn an_interrupted_bench_ends_at_once_keeps_its_records_and_says_how_to_go_on() {
    if !has_namespaces() {
        return;
    }
    let text = SMALL.replace("\"100ms\"", "\"30s\"");
    let directory = directory(&text);
    let runs = directory.path().join("runs/small");
    let _machine = machine();
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let run = bench(directory.path(), "").on_my_machine().start();
        let goes_on = || {
            records(&runs).iter().any(|record| record.status == Status::Running && !record.samples.is_empty())
        };
        assert!(wait_until(Duration::from_secs(20), goes_on), "{}", run.stderr());
        let second = bench(directory.path(), "").on_my_machine().run();
        assert!(second.refusal(1).contains("another bench"));
        let children = children(run.pid());
        assert_eq!(children.len(), 1);
        let asked = Instant::now();
        run.signal(signal);
        let finished = run.finish();
        assert!(asked.elapsed() < Duration::from_secs(4), "{signal}: ended after {:?}", asked.elapsed());
        assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
        says(&finished, &["interrupted: 6 runs are missing; the same command"]);
        assert!(children.iter().all(|child| !is_alive(*child)), "{signal}");
    }
    let kept = records(&runs);
    assert_eq!(kept.len(), 2);
    assert!(kept.iter().all(|record| record.status == Status::Interrupted), "{:?}", kept[0].status);
}

/// The processes that `parent` started.
fn children(parent: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    list.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

/// Whether a process runs, not only its exit status is waited for.
fn is_alive(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !matches!(status.rsplit(')').next().and_then(|rest| rest.trim().chars().next()), None | Some('Z' | 'X'))
}

/// How long all runs may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// How many records were begun in `directory`.
fn files(directory: &Path) -> usize {
    let names = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    names.filter(|path| path.extension().is_some_and(|extension| extension == "json")).count()
}

/// Cells of the shortest runs: 3 devices × 3 profiles × 2 directions. Six kills leave some of them to do.
const CELLS: usize = 18;

/// A bench of as many.
fn many_cells() -> String {
    let mut text = "name = \"killed\"\nrepeats = 1\n[strategy]\nuse = \"saturate\"\n\
                    options = [\"--rate\", \"2kpps\", \"--warm-up-duration\", \"20ms\", \"--duration\", \"50ms\", \
                    \"--step\", \"50ms\", \"--drain\", \"20ms\"]\n"
        .to_owned();
    for name in ["one", "two", "three"] {
        text += &format!("[[duts]]\nname = \"{name}\"\ndut = \"calibrated:rate=1mpps\"\n");
    }
    for size in [64, 512, 1280] {
        text += &format!(
            "[[profiles]]\nname = \"{size} B\"\nsize = \"{size}\"\ndirections = [\"one\", \"both\"]\n"
        );
    }
    text
}

#[test]
fn killed_at_random_moments_and_resumed_no_record_is_lost_and_none_is_there_twice() {
    if !has_namespaces() {
        return;
    }
    let _machine = machine();
    let directory = directory(&many_cells());
    let runs = directory.path().join("runs/killed");
    let mut random = u64::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos());
    let mut kept: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut unfinished = 0;
    for kill in 1..=6 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // At any moment of the whole, of the run after one that is complete, and of a run that has
        // its record: without the last two a slow machine would have nothing to lose.
        let (begun, within_ms) = [(0, 1200), (2, 600), (1, 30)][kill % 3];
        let delay = Duration::from_millis((random >> 33) % within_ms);
        let moment = format!("kill {kill}, {delay:?} after {begun} records began");
        let before = files(&runs);
        let run = bench(directory.path(), "").on_my_machine().start();
        assert!(wait_until(PATIENCE, || files(&runs) >= before + begun), "{moment}: {}", run.stderr());
        thread::sleep(delay);
        let children = children(run.pid());
        run.signal(Signal::SIGKILL);
        let finished = run.finish();
        assert_eq!(finished.status.code(), None, "{moment}: it had ended before: {}", finished.stderr);
        let gone = || !children.iter().any(|child| is_alive(*child));
        assert!(wait_until(Duration::from_secs(5), gone), "{moment}: a run outlived its bench");

        let now = records(&runs);
        unfinished = now.len() - complete(&now).len();
        for (name, bytes) in &kept {
            assert_eq!(fs::read(runs.join(name)).ok().as_ref(), Some(bytes), "{moment}: {name} has changed");
        }
        let names = complete(&now).into_iter().map(|record| format!("{}.json", record.id));
        kept.extend(names.map(|name| (name.clone(), fs::read(runs.join(name)).unwrap())));
        eprintln!("{moment}: {} complete, {unfinished} not", kept.len());
    }
    assert!(unfinished > 0, "no kill hit a run: the test looks at the wrong moments");
    assert!((1..CELLS).contains(&kept.len()), "{} runs were complete at the last kill", kept.len());

    let run = bench(directory.path(), "").on_my_machine().start();
    let all = unfinished + CELLS;
    assert!(wait_until(PATIENCE, || files(&runs) == all), "{}", run.stderr());
    let finished = run.finish().well();
    says(&finished, &[&format!("{} runs are complete, {} to do", kept.len(), CELLS - kept.len())]);
    let now = records(&runs);
    let complete = complete(&now);
    let cells: BTreeSet<(String, String)> = complete.iter().map(|record| run_of(record)).collect();
    assert_eq!((complete.len(), cells.len()), (CELLS, CELLS), "lost, or there twice");
    for (name, bytes) in &kept {
        assert_eq!(fs::read(runs.join(name)).ok().as_ref(), Some(bytes), "{name} has changed");
    }
    let page = fs::read_to_string(runs.join("report.html")).unwrap();
    for record in &now {
        // The whole of it: of runs that began in the same second, one's id begins with the other's.
        let told = format!("<dd>{}</dd>", record.id);
        assert_eq!(page.contains(&told), record.status == Status::Complete, "{told}");
    }
}

#[test]
fn on_a_terminal_the_curve_of_the_run_that_goes_on_is_seen() {
    if !has_namespaces() {
        return;
    }
    let text = SMALL.replace("repeats = 3", "repeats = 1").replace("\"100ms\"", "\"2s\"");
    let directory = directory(&text);
    let _machine = machine();
    // util-linux' script gives it a terminal.
    let line = format!("{PROGRAM} bench b.toml --only plain");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("TERM", "xterm");
    let seen = tool(script.current_dir(directory.path()).stdin(Stdio::null()));
    for clue in ["about ", "⠒⠒ forwarded", "0 pps", "[1/1] plain/64 B/one"] {
        assert!(seen.contains(clue), "no '{clue}' in: {seen}");
    }
    // Without one, nothing is drawn.
    let again = bench(directory.path(), "--only variant").on_my_machine().run().well();
    assert!(!again.stderr.contains('⠒'), "{}", again.stderr);
}

/// A router between two real ports, in two configurations: commands change the tester's loopback, and
/// undo changes it back.
const PORTS: &str = r#"
name = "ports"
repeats = 1
order = "interleaved"
[strategy]
use = "saturate"
options = ["--rate", "2kpps", "--warm-up-duration", "200ms", "--duration", "100ms", "--step", "50ms", "--drain", "100ms"]
[[duts]]
name = "router"
ports = "eth1,eth2"
gateways = "100.65.1.1,100.65.2.1"
commands = ["ip address add 192.0.2.1/32 dev lo", "echo one done >> log"]
undo = ["ip address del 192.0.2.1/32 dev lo", "echo one undone >> log"]
[[duts]]
name = "variant"
extends = "router"
commands = ["echo two done >> log"]
undo = ["echo two undone >> log"]
[[profiles]]
name = "64 B"
size = "64"
"#;
const DONE: &str = "one done\ntwo done\n";
const UNDONE: &str = "two undone\none undone\n";

/// Whether the address of [`PORTS`] is still there.
fn is_configured(site: &Site) -> bool {
    site.tester.run("ip address show dev lo").contains("192.0.2.1")
}

#[test]
fn between_real_ports_what_was_configured_is_undone_after_every_run() {
    if !has_namespaces() {
        return;
    }
    let site = Site::router();
    let directory = directory(PORTS);
    let log = || fs::read_to_string(directory.path().join("log")).unwrap_or_default();
    let finished = bench(directory.path(), "").inside(&site.tester).run().well();
    says(&finished, &["[2/2] variant/64 B/one", "all runs are complete"]);
    assert_eq!(log(), format!("one done\none undone\n{DONE}{UNDONE}"));
    assert!(!is_configured(&site));
    let kept = records(&directory.path().join("runs/ports"));
    assert!(kept.iter().all(|record| record.dut.name == "ports" && record.directions[0].forwarded > 0));

    // Also after one that fails: its own command, or what is measured.
    let reasons =
        [("echo two done >> log", "echo two done >> log; exit 3"), ("100.65.2.1\"", "100.65.2.99\"")];
    for (what, instead) in reasons {
        fs::write(directory.path().join("b.toml"), PORTS.replace(what, instead)).unwrap();
        fs::remove_file(directory.path().join("log")).unwrap();
        let finished = bench(directory.path(), "--only variant --runs failed").inside(&site.tester).run();
        assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
        says(&finished, &["variant/64 B/one, repeat 1: failed: ", "1 failed", "1 runs are missing"]);
        assert_eq!(log(), format!("{DONE}{UNDONE}"), "{instead}");
        assert!(!is_configured(&site), "{instead}");
    }
}

#[test]
fn what_was_configured_is_undone_after_ctrl_c() {
    if !has_namespaces() {
        return;
    }
    let site = Site::router();
    let directory = directory(&PORTS.replace("\"100ms\", \"--step\"", "\"30s\", \"--step\""));
    let runs = directory.path().join("runs/ports");
    let run = bench(directory.path(), "--only variant").inside(&site.tester).start();
    let goes_on = || records(&runs).iter().any(|record| !record.samples.is_empty());
    assert!(wait_until(Duration::from_secs(20), goes_on), "{}", run.stderr());
    assert!(is_configured(&site));
    run.signal(Signal::SIGINT);
    let finished = run.finish();
    says(&finished, &["interrupted: 1 runs are missing"]);
    assert!(!is_configured(&site));
    assert_eq!(fs::read_to_string(directory.path().join("log")).unwrap(), format!("{DONE}{UNDONE}"));
    assert_eq!(records(&runs)[0].status, Status::Interrupted);
}
