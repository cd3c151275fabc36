use std::borrow::Cow;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{Resource, setrlimit};

use super::*;
use crate::fixtures::Scenario;
use crate::record::{Finding, LatencyTest};

fn record() -> Record {
    Scenario { ramp_samples: 3, ..Scenario::default() }.record()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn ids_sort_by_time_and_fit_a_file_name() {
    let started = UNIX_EPOCH + Duration::from_secs(1_637_916_683);
    assert_eq!(
        id(started, "calibrated:rate=300kpps,burst=64", "64b 1-flow/bidirectional"),
        "20211126T085123Z-calibrated-rate-300kpps-burst-64-64b-1-flow-bidirectional"
    );
    assert_eq!(file_safe("../../etc/passwd 1.5"), "etc-passwd-1.5");
    assert_eq!(file_safe("…"), "run");
    assert!(file_safe(&"x".repeat(1000)).len() <= LONGEST_ID);
}

#[test]
fn a_record_comes_back_as_it_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().join("new/runs")).unwrap();
    let mut record = record();
    let mut writer = store.create(&mut record).unwrap();
    record.elapsed_s += 1.0;
    writer.write(&record).unwrap();
    assert!(load(writer.path()).unwrap() == record);
    assert_eq!(names(store.directory()), [format!("{}.json", record.id)]);
}

#[test]
fn texts_of_a_record_steer_no_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let mut record = record();
    record.name = "\u{1b}]0;owned\u{7}".to_owned();
    record.dut.configuration.insert("\u{9b}31m".to_owned(), "one\ntwo\u{7f}".to_owned());
    let file = directory.path().join("a.json");
    fs::write(&file, serde_json::to_vec(&record).unwrap()).unwrap();
    let read = load(&file).unwrap();
    assert_eq!(read.name, "\\u{1b}]0;owned\\u{7}");
    assert_eq!(read.dut.configuration["\\u{9b}31m"], "one\ntwo\\u{7f}");
    // Nothing else is changed.
    assert!(Record { name: record.name.clone(), dut: record.dut.clone(), ..read } == record);
}

#[test]
fn a_killed_run_is_known_as_far_as_it_got() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let whole = record();
    let mut record = Record { status: Status::Running, samples: Vec::new(), ..whole.clone() };
    record.elapsed_s = 0.0;
    let mut writer = store.create(&mut record).unwrap();
    for sample in &whole.samples {
        writer.append(&Entry::Sample(Cow::Borrowed(sample))).unwrap();
    }
    // Killed in the middle of a line.
    let journal = directory.path().join(format!("{}.journal", record.id));
    let mut torn = fs::OpenOptions::new().append(true).open(&journal).unwrap();
    torn.write_all(br#"{"sample":{"at_s":1"#).unwrap();

    let found = store.load_all().unwrap();
    assert!(found.warnings.is_empty(), "{:?}", found.warnings);
    assert_eq!(found.records[0].samples, whole.samples);
    let last = whole.samples.last().unwrap();
    assert_eq!(found.records[0].elapsed_s, last.at_s + last.duration_s);

    writer.write(&whole).unwrap();
    assert!(load(writer.path()).unwrap() == whole);
    assert_eq!(names(store.directory()), [format!("{}.json", record.id)]);
}

#[test]
fn a_journal_is_made_new_and_never_through_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let mut record = Record { status: Status::Running, ..record() };
    let sample = record.samples[0].clone();
    let mut writer = store.create(&mut record).unwrap();
    let (journal, elsewhere) =
        (directory.path().join(format!("{}.journal", record.id)), directory.path().join("other"));
    fs::write(&elsewhere, "theirs").unwrap();
    std::os::unix::fs::symlink(&elsewhere, &journal).unwrap();
    let refused = writer.append(&Entry::Sample(Cow::Borrowed(&sample))).unwrap_err();
    assert!(matches!(refused, Error::Unwritable { .. }), "{refused}");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "theirs");
    fs::remove_file(&journal).unwrap();
    writer.append(&Entry::Sample(Cow::Borrowed(&sample))).unwrap();
}

#[test]
fn a_killed_latency_test_has_the_loads_it_finished() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let whole = Scenario::default().latency_test();
    let found = whole.finding.latency().unwrap().clone();
    let mut record = Record { status: Status::Running, finding: Finding::Latency(None, None), ..whole };
    let mut writer = store.create(&mut record).unwrap();
    assert_eq!(load(writer.path()).unwrap().finding.latency(), None);
    for load in &found.loads {
        let common = LatencyTest { loads: Vec::new(), ..found.clone() };
        writer.append(&Entry::Latency(Cow::Borrowed(load), common)).unwrap();
    }
    assert!(found.loads.len() > 1);
    assert_eq!(load(writer.path()).unwrap().finding.latency(), Some(&found));
}

#[test]
fn a_taken_id_gets_a_number() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let mut records = [record(), record(), record()];
    for record in &mut records {
        store.create(record).unwrap();
    }
    let wanted = &records[0].id;
    assert_eq!(records[1].id, format!("{wanted}-2"));
    assert_eq!(records[2].id, format!("{wanted}-3"));
    assert_eq!(store.load_all().unwrap().records.len(), 3);
}

#[test]
fn a_record_that_json_cannot_express_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let mut record = record();
    let mut writer = store.create(&mut record).unwrap();
    let before = record.clone();
    record.samples[0].directions[0].loss_ratio = f64::NAN;
    assert!(matches!(writer.write(&record), Err(Error::NotRepresentable { .. })));
    assert!(load(writer.path()).unwrap() == before);
}

#[test]
fn files_that_are_no_records_are_named_with_their_cause() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let mut record = record();
    store.create(&mut record).unwrap();
    let whole = serde_json::to_string(&record).unwrap();
    let files = [
        ("array.json", "[1, 2]", "is no record"),
        ("empty.json", "", "ends in the middle"),
        ("foreign.json", r#"{"vars": {}, "stats": {}}"#, "is no record"),
        ("malformed.json", r#"{"schema": "linerate/run/1", "id": 7}"#, "says it is linerate/run/1"),
        ("newer.json", r#"{"schema": "linerate/run/2"}"#, "has schema linerate/run/2"),
        ("text.json", "Loadtest | pfSense", "is not JSON"),
        ("truncated.json", &whole[..whole.len() / 2], "ends in the middle"),
    ];
    for (name, content, _) in files {
        fs::write(directory.path().join(name), content).unwrap();
    }
    fs::write(directory.path().join(".linerate-dead.tmp"), &whole[..9]).unwrap();
    let loaded = store.load_all().unwrap();
    assert!(loaded.records == [record]);
    assert_eq!(loaded.warnings.len(), files.len());
    for ((name, _, cause), warning) in files.iter().zip(&loaded.warnings) {
        let message = warning.to_string();
        assert!(message.contains(name) && message.contains(cause), "{message}");
    }
    assert!(matches!(load_all(&directory.path().join("missing")), Err(Error::Unreadable { .. })));
}

#[test]
fn a_certificate_lies_beside_records_and_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let mut run = record();
    Store::open(directory.path()).unwrap().create(&mut run).unwrap();
    let environment = serde_json::to_string(&run.environment).unwrap();
    let certificate = format!(
        r#"{{"schema": "linerate/certificate/1", "started": "2026-11-21T08:51:23Z", "elapsed_s": 40.0,
            "status": "complete", "command": [], "environment": {environment}, "seed": 7, "quick": true,
            "checks": []}}"#
    );
    let file = directory.path().join("certificate.json");
    fs::write(&file, &certificate).unwrap();
    let loaded = load_all(directory.path()).unwrap();
    assert!(loaded.records == [run] && loaded.warnings.is_empty());
    assert_eq!(loaded.certificates.iter().map(|found| found.seed).collect::<Vec<_>>(), [7]);
    assert!(matches!(load(&file), Err(Error::Foreign { .. })));
    fs::write(&file, certificate.replace("7,", r#""seven","#)).unwrap();
    let error = read(&file).unwrap_err().to_string();
    assert!(error.contains("says it is linerate/certificate/1"), "{error}");
}

#[test]
fn a_bench_lies_beside_its_records() {
    let directory = tempfile::tempdir().unwrap();
    let mut run = record();
    for (key, value) in crate::bench::LABELS.into_iter().zip(["rules", "none/64 B/one", "1"]) {
        run.labels.insert(key.to_owned(), value.to_owned());
    }
    Store::open(directory.path()).unwrap().create(&mut run).unwrap();
    let [mut bench] = Bench::all(Vec::new(), &[run]).try_into().unwrap();
    keep_bench(directory.path(), &bench).unwrap();
    bench.baseline = Some("none".to_owned());
    bench.axis = Some(bench::Axis { name: "rules".to_owned(), linear: true });
    keep_bench(directory.path(), &bench).unwrap();
    let loaded = load_all(directory.path()).unwrap();
    assert_eq!((loaded.benches, loaded.records.len(), loaded.warnings.len()), (vec![bench], 1, 0));
    assert!(matches!(load(&Bench::path(directory.path())), Err(Error::Foreign { .. })));
    assert_eq!(names(directory.path()).len(), 2, "a temporary file is left");
}

/// Runs in a thread of its own mount namespace, on a file system of 64 kB.
#[test]
fn a_full_disk_keeps_the_record_as_it_was() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: mounting a small file system needs root");
        return;
    }
    let on_small_disk = || {
        let directory = tempfile::tempdir().unwrap();
        if let Err(error) = unshare(CloneFlags::CLONE_NEWNS) {
            eprintln!("skipped: no mount namespace of our own ({error})");
            return;
        }
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, private, None::<&str>).unwrap();
        let (kind, size) = (Some("tmpfs"), Some("size=64k"));
        mount(kind, directory.path(), kind, MsFlags::empty(), size).unwrap();

        let store = Store::open(directory.path()).unwrap();
        let mut record = record();
        let mut writer = store.create(&mut record).unwrap();
        let before = record.clone();
        record.notes = vec!["x".repeat(100_000)];
        let error = writer.write(&record).unwrap_err();
        assert!(matches!(error, Error::DiskFull { .. }), "{error}");
        assert!(error.to_string().contains("Free some space"), "{error}");
        assert!(load(writer.path()).unwrap() == before);
        assert_eq!(names(directory.path()), [format!("{}.json", record.id)]);
        writer.write(&before).unwrap();
        nix::mount::umount(directory.path()).unwrap();
    };
    std::thread::spawn(on_small_disk).join().unwrap();
}

/// Where the writer that is to be killed writes to.
const KILLED_WRITER: &str = "LINERATE_TEST_KILLED_WRITER";

/// No test by itself: what [`a_killed_writer_leaves_a_whole_record`] starts and kills.
#[test]
#[ignore = "started by another test"]
fn write_until_killed() {
    let Some(directory) = std::env::var_os(KILLED_WRITER) else { return };
    let mut record = record();
    let mut writer = Store::open(directory).unwrap().create(&mut record).unwrap();
    loop {
        record.elapsed_s += 1.0;
        record.notes.push("x".repeat(1000));
        record.notes.truncate(200);
        writer.write(&record).unwrap();
    }
}

fn writer_of(directory: &Path) -> Command {
    let mut writer = Command::new(std::env::current_exe().unwrap());
    writer.args(["--exact", "store::tests::write_until_killed", "--ignored"]);
    writer.env(KILLED_WRITER, directory).stdout(Stdio::null());
    writer
}

#[test]
fn a_killed_writer_leaves_a_whole_record() {
    for run in 0..4 {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = writer_of(directory.path()).spawn().unwrap();
        let seen = || load_all(directory.path()).unwrap();
        while seen().records.first().is_none_or(|record| record.elapsed_s < 20.0) {
            assert!(writer.try_wait().unwrap().is_none(), "the writer ended by itself");
        }
        std::thread::sleep(Duration::from_millis(7 * run));
        writer.kill().unwrap();
        writer.wait().unwrap();
        let loaded = seen();
        assert_eq!((loaded.records.len(), loaded.warnings.len()), (1, 0));
    }
}

#[test]
fn a_writer_that_dies_in_the_middle_of_a_file_leaves_none_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = writer_of(directory.path());
    let limit = || {
        setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
        // The kernel ends who writes more to a file.
        Ok(setrlimit(Resource::RLIMIT_FSIZE, 100_000, 100_000)?)
    };
    // SAFETY: between fork and exec it only makes system calls.
    unsafe { writer.pre_exec(limit) };
    assert_eq!(writer.status().unwrap().signal(), Some(nix::libc::SIGXFSZ));
    let [record] = <[Record; 1]>::try_from(load_all(directory.path()).unwrap().records).unwrap();
    assert!(record.notes.len() > 10, "{}", record.notes.len());
    assert_eq!(names(directory.path()), [format!("{}.json", record.id)]);
}

#[test]
fn records_of_before_the_evidence_are_read() {
    let record = crate::fixtures::Scenario::default().record();
    let mut old = serde_json::to_value(&record).unwrap();
    for direction in old["directions"].as_array_mut().unwrap() {
        let direction = direction.as_object_mut().unwrap();
        let rate = direction.remove("max_rate_pps").unwrap();
        direction.insert("max_lossless_pps".to_owned(), rate);
        direction.remove("evidence").unwrap();
    }
    let read: Record = serde_json::from_value(old).unwrap();
    assert_eq!(read.directions[0].max_rate_pps, record.directions[0].max_rate_pps);
    assert_eq!(read.directions[0].evidence, None);
}

fn pack(content: &[u8], file: &Path) {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(content).unwrap();
    fs::write(file, packer.finish().unwrap()).unwrap();
}

#[test]
fn packed_records_are_read_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("one.json.gz");
    let one = record();
    let json = readable_json(&one, Path::new("record")).unwrap();
    pack(&json, &file);
    assert!(load(&file).unwrap() == one);
    fs::write(directory.path().join("notes.gz"), "no record").unwrap();
    assert!(load_all(directory.path()).unwrap().records == [one.clone()]);
    fs::write(directory.path().join("one.json"), &json).unwrap();
    let loaded = load_all(directory.path()).unwrap();
    assert!(loaded.records == [one] && loaded.warnings.is_empty());
}

#[test]
fn packed_files_that_hold_no_record_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    fs::write(file("plain.json.gz"), "{}").unwrap();
    pack(b"{}", &file("other.json.gz"));
    let json = readable_json(&record(), Path::new("record")).unwrap();
    pack(&json, &file("cut.json.gz"));
    let whole = fs::read(file("cut.json.gz")).unwrap();
    fs::write(file("cut.json.gz"), &whole[..whole.len() / 2]).unwrap();
    let loaded = load_all(directory.path()).unwrap();
    assert!(loaded.records.is_empty());
    let told: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert!(told[0].contains("cut.json.gz: cannot be read"), "{told:?}");
    assert!(told[1].contains("other.json.gz: is no record"), "{told:?}");
    assert!(told[2].contains("plain.json.gz: cannot be read"), "{told:?}");
}

#[test]
fn a_file_that_unpacks_to_more_than_any_record_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bomb.json.gz");
    let mut packer =
        flate2::write::GzEncoder::new(fs::File::create(&file).unwrap(), flate2::Compression::fast());
    let zeros = vec![b' '; 1 << 20];
    (0..513).for_each(|_| packer.write_all(&zeros).unwrap());
    packer.finish().unwrap();
    let said = load(&file).unwrap_err().to_string();
    assert!(said.contains("more than 512 MiB"), "{said}");
}
