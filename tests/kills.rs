//! `kill -9` at random moments, of every strategy and engine: command lines enter. After each kill nothing of the program is
//! left in the kernel, among processes and on disk but records, and every one of these can be read.
//!
//! `LINERATE_KILLS` says how many are killed. A failure names its seed, and `LINERATE_KILLS_SEED` repeats it.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;
use results::Record;
use results::record::Status;
use stats::Random;
use tempfile::TempDir;

use crate::common::holdings::Holdings;
use crate::common::leftovers::{MARK, Surroundings, marked};
use crate::common::sites::Site;
use crate::common::{QUICK, has_namespaces, has_tool, linerate, records, shared_machine};

/// How many are killed in `make test`: some lines of the table, others in each run.
const FEW: usize = 8;
/// How many are killed in `make test-long`.
const MANY: usize = 1000;
/// Setting up takes some 200 ms, and several times as long on a busy machine.
const SETTING_UP: Duration = Duration::from_millis(600);
/// By then every line measures.
const MEASURING: Duration = Duration::from_secs(4);
/// Every line lasts longer than [`MEASURING`] by far. `PORTS` are interfaces of the namespace, with a router beyond.
const LINES: [&str; 46] = [
    // The kernel engine in a lab, by strategy.
    "ramp --dut linux-router --rate 2kpps --step 100ms --duration 60s",
    "ramp --dut linux-bridge --rate 2kpps --step 100ms --duration 60s --bidirectional --live 127.0.0.1:0",
    "ramp --dut linux-router:gro=off,jail=on --rate 2kpps --duration 60s --ip 6",
    "saturate --dut xdp-router --rate 2kpps --duration 60s",
    "saturate --dut linux-router --rate 2kpps --duration 60s --dut-command setsid${IFS}sleep${IFS}300&",
    "saturate --dut linux-router:queues=2 --rate 2kpps --duration 60s --flows var2",
    "saturate --dut fastpath --rate 2kpps --duration 60s",
    "search --dut calibrated:rate=20kpps --time-limit 60s --warm-up-duration 200ms",
    "latency --dut delayed --of 20kpps --loads 1kpps,10%,20%,30% --duration 15s --warm-up-duration 200ms",
    "rfc2544 --dut xdp-xconnect --sizes 64,128 --line-rate 20mbps",
    "soak --dut linux-router --rate 1kpps --duration 60s --warm-up-duration 200ms",
    "stall --dut calibrated --lowest 1kpps --highest 20kpps --hold-duration 2s --repeats 9",
    "send --dut calibrated:rate=10kpps --rate 2kpps",
    "send --dut sink --rate max --duration 60s",
    "serve --dut calibrated --rpc-port 0 --publish-port 0",
    "bench --quick --dut calibrated:rate=10kpps --line-rate 10mbps --duration 600ms --search 2s",
    "bench --quick --dut xdp-xconnect --line-rate 10mbps",
    "bench BENCH --runs runs/matrix",
    "verify --quick",
    "explain cost --dut linux-router --duration 30s",
    "explain flamegraph --dut linux-router --rate 2kpps --duration 60s",
    "lab up doomed --dut linux-bridge --foreground",
    "lab up doomed --dut fastpath --foreground",
    // Interfaces.
    "ramp PORTS --rate 2kpps --step 100ms --duration 60s",
    "send --ports eth1,eth2 --rate 1kpps --bidirectional",
    "serve PORTS --rpc-port 0 --publish-port 0",
    "count eth2 --duration 60s",
    // AF_XDP.
    "ramp --engine af_xdp PORTS --rate 2kpps --step 100ms --duration 60s",
    "saturate --engine af_xdp --dut calibrated:drop-every=10 --rate 2kpps --duration 60s --bidirectional",
    "soak --engine af_xdp PORTS --rate 1kpps --duration 60s",
    "send --engine af_xdp --ports eth1,eth2 --rate 1kpps",
    "count eth2 --engine af_xdp --duration 60s",
    // Shared memory.
    "saturate --engine memif --dut fastpath --rate 2kpps --duration 60s",
    "search --engine memif --dut calibrated:rate=20kpps --time-limit 60s --warm-up-duration 200ms",
    "soak --engine memif --dut fastpath:mode=bridge --rate 1kpps --duration 60s",
    "latency --engine memif --dut fastpath:mode=xconnect --of 20kpps --loads 10%,20%,30% --duration 20s",
    "rfc2544 --engine memif --dut calibrated --sizes 64,128 --line-rate 20mbps",
    "ramp --engine memif --dut testpmd:mode=macswap --rate 2kpps --step 100ms --duration 60s",
    "send --engine memif --dut fastpath --rate 2kpps",
    // DPDK.
    "saturate --engine dpdk --dut testpmd --rate 2kpps --duration 60s",
    "soak --engine dpdk --dut fastpath --rate 1kpps --duration 60s",
    "stall --engine dpdk --dut calibrated --lowest 1kpps --highest 20kpps --hold-duration 2s --repeats 9",
    "send --engine dpdk --port0 net_null0 --port1 net_null1 --rate 2kpps",
    // Generators.
    "generator --program linerate --duration 60s --cores 0",
    "generator --program iperf3 --duration 60s --cores 0",
    "generator --program trafgen --duration 60s --cores 0",
];
const PORTS: &str = "--ports eth1,eth2 --gateways 100.65.1.1,100.65.2.1";
/// A bench of a minute.
const BENCH: &str = r#"
name = "killed"
title = "A bench that is killed"
repeats = 40
[strategy]
use = "saturate"
options = ["--rate", "2kpps", "--warm-up-duration", "50ms", "--duration", "100ms", "--step", "50ms", "--drain", "50ms"]
[[duts]]
name = "router"
dut = "linux-router"
[[duts]]
name = "fastpath"
dut = "fastpath"
[[profiles]]
name = "64 B"
size = "64"
"#;
/// What lines need that contain the first, if it is not part of this build.
const NEEDS: [(&str, &str); 4] =
    [("testpmd", "dpdk-testpmd"), ("iperf3", "iperf3"), ("trafgen", "trafgen"), ("flamegraph", "perf")];

/// The lines that can run here.
fn lines() -> Vec<&'static str> {
    let missing = |line: &str| {
        let tool = NEEDS.iter().find(|(part, tool)| line.contains(part) && !has_tool(tool));
        let dpdk = line.contains("--engine dpdk") && !cfg!(feature = "dpdk");
        tool.map(|(_, tool)| *tool).or(dpdk.then_some("the feature dpdk"))
    };
    let gone: BTreeSet<&str> = LINES.iter().filter_map(|line| missing(line)).collect();
    if !gone.is_empty() {
        eprintln!("skipped: the lines that need {}", Vec::from_iter(gone).join(", "));
    }
    LINES.into_iter().filter(|line| missing(line).is_none()).collect()
}

/// Where lines run: two interfaces with a router beyond, and a record that has come to its end.
struct Scene {
    site: Site,
    /// What the program keeps for the next time.
    cache: TempDir,
    finished: PathBuf,
    _records: TempDir,
    before: Surroundings,
}

impl Scene {
    fn new() -> Self {
        let site = Site::router();
        let kept = tempfile::tempdir().unwrap();
        linerate(&format!("ramp --dut xdp-xconnect --rate 2kpps {QUICK}"))
            .in_directory(kept.path())
            .run()
            .well();
        let finished = files(&kept.path().join("runs")).pop();
        let before = Surroundings::of(&site.tester, None);
        Self {
            site,
            cache: tempfile::tempdir().unwrap(),
            finished: finished.unwrap(),
            _records: kept,
            before,
        }
    }

    /// Starts `line`, kills it after `delay` and looks what is left. Every second one stands still while what it holds is
    /// noted, so that nothing comes in between.
    fn kill(&self, line: &str, delay: Duration, stands_still: bool, mark: &str) -> Result<(), String> {
        let _machine = shared_machine();
        let home = &self.site.tester;
        let directory = tempfile::tempdir().unwrap();
        let [runs, temporary] = ["runs", "tmp"].map(|name| directory.path().join(name));
        [&runs, &temporary].iter().for_each(|path| fs::create_dir(path).unwrap());
        let kept = runs.join(self.finished.file_name().unwrap());
        fs::copy(&self.finished, &kept).unwrap();
        let bench = directory.path().join("bench.toml");
        fs::write(&bench, BENCH).unwrap();
        let words = line.replace("PORTS", PORTS).replace("BENCH", "bench.toml");
        let run = linerate(&words)
            .inside(home)
            .in_directory(directory.path())
            .env("TMPDIR", temporary.to_str().unwrap())
            .env("XDG_CACHE_HOME", self.cache.path().to_str().unwrap())
            .env(MARK, mark)
            .on_my_machine()
            .start();
        thread::sleep(delay);
        if stands_still {
            run.signal(Signal::SIGSTOP);
        }
        let pid = run.pid();
        let holdings = Holdings::of_all(&marked(mark), home);
        run.signal(Signal::SIGKILL);
        let finished = run.finish();
        if let Some(code) = finished.status.code() {
            return Err(format!("it had ended with {code} before: {}", finished.stderr));
        }

        self.before.left_by(mark, pid, home, &holdings)?;
        // The lines of verify are experiments, which have no records: its certificate holds them all.
        let runs =
            finished.stderr.lines().filter(|line| line.starts_with('[') && !line.starts_with("[again"));
        self.records_are_whole(directory.path(), if words == "verify --quick" { 0 } else { runs.count() })
    }

    /// The record that was finished before is as it was, every other can be read, the `said` runs that were said to have
    /// ended have theirs, and there is nothing else.
    fn records_are_whole(&self, directory: &Path, said: usize) -> Result<(), String> {
        let expected = |file: &PathBuf| {
            let name = file.file_name().unwrap().to_string_lossy();
            name.ends_with(".json") || name.ends_with(".journal") || name == "bench.toml"
        };
        let (files, mut others): (Vec<_>, Vec<_>) = files(directory).into_iter().partition(expected);
        others.extend(fs::read_dir(directory.join("tmp")).unwrap().flatten().map(|entry| entry.path()));
        if !others.is_empty() {
            return Err(format!("files are left: {others:?}"));
        }
        let kept = directory.join("runs").join(self.finished.file_name().unwrap());
        if fs::read(&kept).ok() != fs::read(&self.finished).ok() {
            return Err("the record of an earlier run has changed".to_owned());
        }
        let places: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
        let records: Vec<Record> =
            places.into_iter().filter(|place| *place != directory).flat_map(records).collect();
        let ended = records.iter().filter(|record| record.status != Status::Running).count() - 1;
        if ended < said { Err(format!("{said} runs had ended, {ended} records have")) } else { Ok(()) }
    }
}

/// All files below `directory`.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable)
        .ok()
        .map(|value| value.parse().unwrap_or_else(|_| panic!("{variable}={value} is no number")))
}

/// Kills `usual` lines, or as many as `LINERATE_KILLS` says, in the order of the table from a random one on.
fn kill_lines(usual: usize) {
    if !has_namespaces() {
        return;
    }
    let scene = Scene::new();
    let lines = lines();
    let kills = number("LINERATE_KILLS").map_or(usual, |kills| kills as usize);
    let now = || u64::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos());
    let seed = number("LINERATE_KILLS_SEED").unwrap_or_else(now);
    let mut random = Random::new(seed);
    let first = random.below(lines.len());
    let mut failures = Vec::new();
    for round in 0..kills {
        let line = lines[(first + round) % lines.len()];
        let span = if random.below(2) == 0 { SETTING_UP } else { MEASURING };
        let delay = span.mul_f64(random.uniform());
        let stands_still = random.below(2) == 0;
        let mark = format!("{}-{round}", std::process::id());
        let killed = catch_unwind(AssertUnwindSafe(|| scene.kill(line, delay, stands_still, &mark)));
        if let Err(reason) = killed.unwrap_or_else(|_| Err("see above".to_owned())) {
            let how = if stands_still { "stopped and killed" } else { "killed" };
            let failure =
                format!("kill {round} with seed {seed}: linerate {line}, {how} after {delay:?}: {reason}");
            eprintln!("{failure}");
            failures.push(failure);
        }
        if (round + 1) % 50 == 0 {
            eprintln!("{} kills, {} failures", round + 1, failures.len());
        }
    }
    assert!(failures.is_empty(), "{} of {kills}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn killed_at_a_random_moment_a_command_leaves_its_records_and_nothing_else() {
    kill_lines(FEW);
}

#[test]
#[ignore = "takes an hour: make test-long"]
fn killed_a_thousand_times_commands_leave_their_records_and_nothing_else() {
    kill_lines(MANY);
}
