//! Soaks that are disturbed all the time: stopped programs and devices, quotas of processor time, limits of memory, clocks
//! that are set, readers that stop to read, a full disk. What was counted adds up, memory stays as it is, what was disturbed
//! is marked and nothing else, and nothing is left.
//!
//! `LINERATE_SOAK` is how many minutes all of it takes.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use results::Record;
use results::record::{Phase, Sample, Status};

use crate::common::holdings::Holdings;
use crate::common::leftovers::{MARK, Surroundings, command_of, marked};
use crate::common::namespace::{Namespace, mount_memory};
use crate::common::patience::{Core, watch};
use crate::common::{Running, has_namespaces, linerate, tool, wait_until};

/// Minutes for all soaks.
const MINUTES: f64 = 120.0;
/// From one disturbance to the next.
const PERIOD: Duration = Duration::from_secs(15);
/// How long one lasts.
const LASTING: Duration = Duration::from_secs(2);
/// What the kernel grants by default to threads that go before all others, in microseconds of each second.
const REAL_TIME: i64 = 950_000;
/// As long before and after one, intervals may or may not be marked, in seconds.
const MARGIN: f64 = 2.0;

/// The program marks an interval in which other tasks had more than this share of a core, 0 to 1.
const MARKED: f64 = 0.01;

/// Adds the seconds in a file to what the clock of the day says, as if somebody set it. Other clocks stay.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile const long *step;
__attribute__((constructor)) static void begin(void)
{
    int file = open(getenv("CLOCK_STEP"), O_RDONLY | O_CLOEXEC);
    void *there = mmap(NULL, sizeof *step, PROT_READ, MAP_SHARED, file, 0);
    step = there == MAP_FAILED ? NULL : there;
    close(file);
}
int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_REALTIME && step)
        time->tv_sec += *step;
    return result;
}
"#;

/// What may happen to a soak.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bad {
    /// The program stands still.
    StoppedProgram,
    /// The device does, where it is a process: the peer on shared memory.
    StoppedDevice,
    /// A twentieth of a core is all that the program and its device get.
    Quota,
    /// They have no memory left beyond what they use.
    Memory,
    /// The clock of the day jumps.
    Clock(i64),
    /// Who watches the run stops reading.
    Reader,
}

const ALL: [Bad; 7] = [
    Bad::StoppedProgram,
    Bad::Clock(7200),
    Bad::Quota,
    Bad::Reader,
    Bad::StoppedDevice,
    Bad::Memory,
    Bad::Clock(-86_400),
];

impl Bad {
    /// Whether frames are late, lost or not sent meanwhile.
    fn disturbs(self) -> bool {
        matches!(self, Self::StoppedProgram | Self::StoppedDevice | Self::Quota)
    }
}

/// A control group of this test alone, of one controller of version 1, or none where that is not mounted.
struct Group(PathBuf);

impl Group {
    fn new(controller: &str, pids: &[u32]) -> Option<Self> {
        let path = PathBuf::from(format!("/sys/fs/cgroup/{controller}/bad-luck-{}", std::process::id()));
        fs::create_dir_all(&path).ok()?;
        let group = Self(path);
        // Threads that go before all others have a budget of their own; without one they cannot enter.
        group.set("cpu.rt_runtime_us", REAL_TIME);
        pids.iter().all(|pid| group.set("cgroup.procs", i64::from(*pid))).then_some(group)
    }

    fn set(&self, file: &str, value: i64) -> bool {
        fs::write(self.0.join(file), value.to_string()).is_ok()
    }

    fn get(&self, file: &str) -> i64 {
        fs::read_to_string(self.0.join(file)).unwrap_or_default().trim().parse().unwrap_or_default()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// A soak while it goes on.
struct Soak<'a> {
    run: Running,
    home: &'a Namespace,
    /// The process that the device is.
    device: Option<u32>,
    /// The seconds by which the clock is wrong.
    clock: File,
    cpu: Option<Group>,
    memory: Option<Group>,
    reader: Option<Child>,
    /// What happened, and from when to when by the run's own time.
    happened: Vec<(Bad, [f64; 2])>,
}

fn signal(pid: u32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid.cast_signed()), signal);
}

impl Soak<'_> {
    /// Where the run is, in seconds since it began.
    fn now(&self) -> f64 {
        let records = self.run.records();
        records
            .iter()
            .filter_map(|record| record.samples.last())
            .map(|last| last.at_s + last.duration_s)
            .fold(0.0, f64::max)
    }

    /// Has something happen to it; false where it cannot happen here.
    fn disturb(&mut self, bad: Bad) -> bool {
        let (from, began) = (self.now(), Instant::now());
        match bad {
            Bad::StoppedProgram => stop(self.run.pid()),
            Bad::StoppedDevice => {
                let Some(device) = self.device else { return false };
                stop(device);
            }
            Bad::Quota => {
                let Some(cpu) = &self.cpu else { return false };
                if !cpu.set("cpu.cfs_quota_us", 5_000) {
                    return false;
                }
                cpu.set("cpu.rt_runtime_us", REAL_TIME / 20);
                thread::sleep(LASTING);
                cpu.set("cpu.rt_runtime_us", REAL_TIME);
                cpu.set("cpu.cfs_quota_us", -1);
            }
            Bad::Memory => {
                let Some(memory) = &self.memory else { return false };
                // Where pages can be had back by then, the kernel takes the limit.
                memory.set("memory.limit_in_bytes", memory.get("memory.usage_in_bytes") + (1 << 20));
                thread::sleep(LASTING);
                memory.set("memory.limit_in_bytes", -1);
            }
            Bad::Clock(step) => self.clock.write_all_at(&step.to_ne_bytes(), 0).unwrap(),
            Bad::Reader => {
                let said = self.run.stderr();
                let Some(port) =
                    said.split("live: http://127.0.0.1:").nth(1).and_then(|rest| rest.split('/').next())
                else {
                    return false;
                };
                let watch = format!(
                    "exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET /samples HTTP/1.1\\r\\n\\r\\n' >&3; sleep 600"
                );
                end(self.reader.replace(self.home.command("bash").args(["-c", &watch]).spawn().unwrap()));
            }
        }
        thread::sleep(Duration::from_millis(500));
        // The record may be behind: who was kept from running wrote none.
        let until = self.now().max(from + began.elapsed().as_secs_f64());
        self.happened.push((bad, [from, until]));
        true
    }

    /// Memory of the program and its device that is in use, in KiB.
    fn memory(&self) -> u64 {
        let of = |pid: u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default()
        };
        of(self.run.pid()) + self.device.map_or(0, of)
    }
}

fn stop(pid: u32) {
    signal(pid, Signal::SIGSTOP);
    thread::sleep(LASTING);
    signal(pid, Signal::SIGCONT);
}

fn end(child: Option<Child>) {
    child.into_iter().for_each(|mut child| {
        let _ = child.kill();
        let _ = child.wait();
    });
}

/// Makes the program of [`CLOCK`] in `directory`, and the file that it reads.
fn clock(directory: &Path) -> (String, PathBuf, File) {
    let [source, library, step] = ["clock.c", "clock.so", "clock"].map(|name| directory.join(name));
    fs::write(&source, CLOCK).unwrap();
    tool(Command::new("gcc").args(["-shared", "-fPIC", "-O1", "-o"]).args([&library, &source]));
    fs::write(&step, 0_i64.to_ne_bytes()).unwrap();
    let file = File::options().write(true).open(&step).unwrap();
    (library.display().to_string(), step, file)
}

fn mean(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len().max(1) as f64
}

/// Soaks by `line` for `time` while one thing after another happens to it.
fn soak(line: &str, device: Option<&str>, time: Duration) {
    let home = Namespace::new();
    let before = Surroundings::of(&home, None);
    let mark = format!("soak-{}-{}", std::process::id(), line.len());
    let directory = tempfile::tempdir().unwrap();
    let (library, step, clock) = clock(directory.path());
    let run = linerate(&format!(
        "soak {line} --rate 1kpps --duration {}s --live 127.0.0.1:0 --json",
        time.as_secs()
    ))
    .inside(&home)
    .in_directory(directory.path())
    .env(MARK, &mark)
    .env("LD_PRELOAD", &library)
    .env("CLOCK_STEP", step.to_str().unwrap())
    .on_my_machine()
    .booting_machines()
    .start();
    let is_soaking =
        |record: &Record| record.samples.iter().filter(|sample| sample.phase == Phase::Hold).count() > 20;
    assert!(wait_until(Duration::from_secs(60), || run.records().iter().any(is_soaking)), "{}", run.stderr());
    let began = Instant::now();
    let processes = marked(&mark);
    let device = device.and_then(|name| {
        processes.iter().copied().find(|pid| *pid != run.pid() && command_of(*pid).contains(name))
    });
    let [cpu, memory] = ["cpu", "memory"].map(|controller| Group::new(controller, &processes));
    let holdings = Holdings::of_all(&processes, &home);
    let pid = run.pid();
    let mut soak = Soak { run, home: &home, device, clock, cpu, memory, reader: None, happened: Vec::new() };

    let (mut used, mut next, mut missing) = (Vec::new(), ALL.into_iter().cycle(), Vec::new());
    while began.elapsed() + PERIOD + 2 * LASTING < time {
        let quiet = Instant::now();
        while quiet.elapsed() < PERIOD {
            used.push(soak.memory());
            thread::sleep(Duration::from_secs(1));
        }
        let bad = next.next().unwrap();
        if !soak.disturb(bad) && !missing.contains(&bad) {
            missing.push(bad);
        }
    }
    let Soak { run, happened, reader, cpu, memory, .. } = soak;
    let finished = run.finish().well();
    end(reader);
    drop((cpu, memory));
    before.left_by(&mark, pid, &home, &holdings).unwrap();
    if !missing.is_empty() {
        eprintln!("skipped: here cannot happen {missing:?}");
    }

    // It checks that no figures contradict each other.
    let record = finished.record();
    assert_eq!(record.status, Status::Complete);
    assert!((record.finding.soak().unwrap().duration_s / time.as_secs_f64() - 1.0).abs() < 0.05);
    let (first, last) = (mean(&used[..used.len() / 4]), mean(&used[used.len() - used.len() / 4..]));
    let samples = record.samples.len();
    eprintln!("memory: {first:.0} KiB in the first quarter, {last:.0} in the last, {samples} samples");
    // A sample is kept, and bounded in number.
    assert!(last < 1.02 * first + 2.0 * samples as f64 + 1024.0, "{first} KiB became {last}");
    verdict_is_right(&record, &happened);
}

/// Whether something is said of an interval that others may have done.
fn is_marked(sample: &Sample) -> bool {
    sample.disturbed.is_some() || sample.directions.iter().any(|direction| direction.unsent > 0)
}

/// How many intervals have each mark, whatever its figures are.
fn marks(samples: &[&&Sample]) -> BTreeMap<String, usize> {
    let mut marks = BTreeMap::new();
    for sample in samples {
        let words =
            sample.disturbed.as_deref().unwrap_or_default().split("; ").filter(|words| !words.is_empty());
        let without_figures = words.map(|words| words.replace(|letter: char| letter.is_ascii_digit(), "#"));
        let unsent = sample.directions.iter().any(|direction| direction.unsent > 0);
        for mark in without_figures.chain(unsent.then(|| "unsent frames".to_owned())) {
            *marks.entry(mark).or_default() += 1;
        }
    }
    marks
}

/// What disturbed the run is seen in its record, and what did not is not.
fn verdict_is_right(record: &Record, happened: &[(Bad, [f64; 2])]) {
    let soaked: Vec<&Sample> = record.samples.iter().filter(|sample| sample.phase == Phase::Hold).collect();
    let within = |sample: &Sample, [from, until]: [f64; 2], margin: f64| {
        sample.at_s < until + margin && sample.at_s + sample.duration_s > from - margin
    };
    let direction = &record.finding.soak().unwrap().directions[0];
    for (bad, window) in happened.iter().filter(|(bad, _)| bad.disturbs()) {
        let marked = soaked.iter().any(|sample| within(sample, *window, 0.0) && is_marked(sample));
        // A device that stands still is a stall or a loss of the device.
        let stalled = direction.stalls.iter().any(|stall| {
            stall.from_s < window[1] + MARGIN && stall.until_s.is_none_or(|until| until > window[0])
        });
        let lost =
            direction.losses.iter().any(|loss| loss.from_s < window[1] + MARGIN && loss.until_s > window[0]);
        assert!(
            marked || *bad == Bad::StoppedDevice && (stalled || lost),
            "{bad:?} at {window:?} is not seen"
        );
    }
    let is_quiet = |sample: &Sample| {
        !happened.iter().any(|(bad, window)| bad.disturbs() && within(sample, *window, MARGIN))
    };
    let quiet: Vec<_> = soaked.iter().filter(|sample| is_quiet(sample)).collect();
    let marked = quiet.iter().filter(|sample| is_marked(sample)).count();
    eprintln!("marks of quiet intervals: {:#?}", marks(&quiet));
    let lost = |sample: &Sample| sample.directions[0].offered.saturating_sub(sample.directions[0].forwarded);
    let lossy = quiet.iter().filter(|sample| !is_marked(sample) && lost(sample) > 5).count();
    eprintln!(
        "{} disturbances; of {} quiet intervals {marked} are marked, and {lossy} of the others lost frames",
        happened.len(),
        quiet.len()
    );
    assert!(quiet.len() > soaked.len() / 2, "{} of {} intervals are quiet", quiet.len(), soaked.len());
    if marked > quiet.len() / 10 || lossy > 0 {
        let worst = Core::worst(&watch(Duration::from_secs(2)));
        let is_at_rest = worst.is_at_rest() && (lossy > 0 || worst.share() <= MARKED);
        assert!(!is_at_rest, "{marked} quiet intervals are marked, {lossy} lost frames");
        eprintln!("skipped: what is said of quiet intervals, as the machine is not at rest: {worst}");
    }
}

/// Each of the soaks has this share of all minutes.
fn minutes(share: f64) -> Duration {
    let all = env::var("LINERATE_SOAK")
        .map_or(MINUTES, |minutes| minutes.parse().expect("LINERATE_SOAK is no number"));
    Duration::from_secs_f64(60.0 * all * share)
}

#[test]
#[ignore = "takes an hour: make test-long"]
fn a_soak_by_the_kernel_bears_bad_luck() {
    if has_namespaces() {
        soak("--dut linux-router", None, minutes(0.5));
    }
}

#[test]
#[ignore = "takes an hour: make test-long"]
fn a_soak_over_shared_memory_bears_bad_luck() {
    if has_namespaces() {
        soak("--engine memif --dut fastpath", Some("user-space-router"), minutes(0.5));
    }
}

#[test]
#[ignore = "takes half a minute: make test-long"]
fn a_soak_whose_disk_is_full_keeps_what_was_counted() {
    if !has_namespaces() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    mount_memory(directory.path(), "512k").unwrap();
    let mut run = linerate("soak --dut linux-router --rate 1kpps --duration 60s")
        .in_directory(directory.path())
        .on_my_machine()
        .start();
    run.wait_for_record(|record| record.samples.len() > 30);
    let samples = run.records()[0].samples.len();
    let mut filler = File::create(directory.path().join("filler")).unwrap();
    while filler.write_all(&[0; 4096]).is_ok() {}
    let finished = run.finish();
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("the disk is full"), "{}", finished.stderr);
    drop(filler);
    fs::remove_file(directory.path().join("filler")).unwrap();
    let [record] = <[Record; 1]>::try_from(finished.records()).unwrap();
    assert!(record.samples.len() >= samples, "{} of {samples} samples", record.samples.len());
    let counted: u64 =
        record.samples.iter().map(|sample| sample.directions[0].offered + sample.directions[0].unsent).sum();
    assert!(counted > 100, "{counted} frames in {} samples", record.samples.len());
}
