//! The shipped bench files: each is one, and each of its devices can be configured as it says.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::namespace::Namespace;
use crate::common::{Linerate, REPOSITORY, eventually, has_namespaces, linerate};
use toml::{Table, Value};

/// A device of a bench file, as the commands of its runs have it.
struct Device {
    name: String,
    dut: String,
    /// What sends and receives, where that is in user space.
    engine: Option<String>,
    commands: Vec<String>,
}

/// The bench files in `benchmarks/`.
fn files() -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(REPOSITORY).join("benchmarks")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    assert!(files.len() >= 10, "{files:?}");
    files
}

fn read(file: &Path) -> Table {
    let text = fs::read_to_string(file).unwrap();
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn text(table: &Table, key: &str) -> Option<String> {
    table.get(key).map(|value| value.as_str().unwrap().to_owned())
}

/// The devices of a bench file, in its order, that this machine has the tools for.
fn devices(file: &Path) -> Vec<Device> {
    let plan = linerate("bench --dry-run --json").arg(file).on_my_machine().run().well().json();
    let reasons: BTreeSet<&str> =
        plan["not_run"].as_object().unwrap().values().filter_map(serde_json::Value::as_str).collect();
    reasons.iter().for_each(|reason| eprintln!("skipped: {reason}"));
    let runs = plan["runs"].as_array().unwrap();
    let device = |entry: &Value| {
        let name = text(entry.as_table().unwrap(), "name").unwrap();
        let is_its =
            |run: &&serde_json::Value| run["cell"].as_str().unwrap().starts_with(&format!("{name}/"));
        let words = runs.iter().find(is_its)?["command"].as_array().unwrap();
        let after = |flag: &str| -> Vec<String> {
            let pairs = words.windows(2).filter(|pair| pair[0] == flag);
            pairs.map(|pair| pair[1].as_str().unwrap().to_owned()).collect()
        };
        let engine = after("--engine").pop();
        // A small table stands for a large one here, which takes seconds, and no setting of the machine is changed.
        let large = [
            "routes=100k",
            "routes=1M",
            "rules=100k",
            "rules=1M",
            ",conntrack-max=2M,conntrack-buckets=2M",
            ":netdev-budget=600",
            ":dev-weight=256",
        ];
        let small = ["routes=1k", "routes=1k", "rules=1k", "rules=1k", "", "", ""];
        let dut = after("--dut").remove(0);
        let dut = large.iter().zip(small).fold(dut, |dut, (large, small)| dut.replace(large, small));
        Some(Device { dut, engine, commands: after("--dut-command"), name })
    };
    read(file)["duts"].as_array().unwrap().iter().filter_map(device).collect()
}

impl Device {
    fn is_machine(&self) -> bool {
        self.dut.starts_with("vm")
    }

    /// What it is but for its name: devices of several files may be the same.
    fn configuration(&self) -> (String, Option<String>, Vec<String>) {
        (self.dut.clone(), self.engine.clone(), self.commands.clone())
    }
}

/// `line` on the device, as a bench runs it.
fn on<'a>(line: &str, device: &Device) -> Linerate<'a> {
    let line = linerate(line).arg("--dut").arg(&device.dut);
    let line = device.engine.iter().fold(line, |line, engine| line.arg("--engine").arg(engine));
    device.commands.iter().fold(line, |line, command| line.arg("--dut-command").arg(command))
}

#[test]
fn every_file_is_a_bench_and_says_which_figure_it_follows() {
    for file in files() {
        let bench = read(&file);
        assert_eq!(text(&bench, "name").as_deref(), file.file_stem().unwrap().to_str());
        for key in ["title", "article-figure"] {
            assert!(text(&bench, key).is_some_and(|text| !text.is_empty()), "{}: {key}", file.display());
        }
        let first = fs::read_to_string(&file).unwrap();
        assert!(first.starts_with("# ") && first.contains("What to expect"), "{}", file.display());
        linerate("bench --dry-run").arg(&file).on_my_machine().run().well();
    }
}

#[test]
fn every_device_can_be_configured_as_its_file_says() {
    if !has_namespaces() {
        return;
    }
    let home = Namespace::new();
    let mut tried = BTreeSet::new();
    for file in files() {
        // What is in user space is no lab, and virtual machines have tests of their own (vm::device).
        for device in
            devices(&file).into_iter().filter(|device| device.engine.is_none() && !device.is_machine())
        {
            // The tests of devices show what firewalls do.
            let is_shown = device.dut.contains("firewall=") && device.name != "10 rules";
            if is_shown || !tried.insert(device.configuration()) {
                continue;
            }
            let up = on("lab up tried", &device).inside(&home).run();
            assert!(up.status.success(), "{}, {}: {}", file.display(), device.name, up.stderr);
            if file.ends_with("firewall-rules.toml") && device.dut.starts_with("linux-router") {
                let list = linerate("lab exec tried dut -- nft list ruleset").inside(&home).run().well();
                let rules = list.stdout.lines().filter(|line| line.trim_end().ends_with(" drop")).count();
                let digits: String = device.name.chars().filter(char::is_ascii_digit).collect();
                // As many of IPv4 as of IPv6.
                assert_eq!(rules, 2 * digits.parse().unwrap_or(0), "{}: {}", device.name, list.stdout);
            }
            if device.dut == "linux-router:routes=1k" {
                let routes = linerate("lab exec tried dut -- ip route").inside(&home).run().well();
                let count = routes.stdout.lines().filter(|line| line.contains(" via 100.65.2.")).count();
                // Beside the table are the networks of the review and of RFC 2544.
                assert_eq!(count, 1002, "{}: {}", device.name, routes.stdout);
            }
            linerate("lab down tried").inside(&home).run().well();
        }
    }
}

/// Whether a bench file is of generators: those send by themselves, see the tests of generators.
fn measures_generators(file: &Path) -> bool {
    read(file)["strategy"]["use"].as_str() == Some("generator")
}

#[test]
fn the_last_device_of_every_file_passes_traffic() {
    if !has_namespaces() {
        return;
    }
    let brief = "saturate --rate 2kpps --warm-up-duration 100ms --duration 300ms --step 100ms --drain 100ms";
    let mut tried = BTreeSet::new();
    for file in files().iter().filter(|file| !measures_generators(file)) {
        let last = devices(file).pop().filter(|device| !device.is_machine());
        let Some(device) = last.filter(|device| tried.insert(device.configuration())) else {
            continue;
        };
        let Some(()) = eventually(|| {
            let run = on(brief, &device).arg("--json").run();
            let record = if run.status.success() { run.record() } else { return Err(run.stderr) };
            let direction = &record.directions[0];
            let (offered, forwarded) = (direction.offered, direction.forwarded);
            let what = format!("{}, {}: {forwarded} of {offered} passed", file.display(), device.name);
            if forwarded * 10 > offered * 9 { Ok(()) } else { Err(what) }
        }) else {
            return;
        };
    }
}
