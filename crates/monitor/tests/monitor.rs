//! The monitor on the machine as it is, which may have more to do meanwhile.

#![allow(clippy::unwrap_used)] // a test may panic

use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lab::placement::online;
use monitor::{Bounds, CoreClock, Disturbance, Monitor};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

/// These tests keep cores busy, and one's work is the other's disturbance.
static ALONE: Mutex<()> = Mutex::new(());

/// A monitor of `cores`; `None`, with the reason printed, where the machine does not allow one.
fn monitor(cores: &[usize]) -> Option<(Monitor, MutexGuard<'static, ()>)> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    match Monitor::start(cores, &[]) {
        Ok(monitor) => Some((monitor, alone)),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// Leaves the thread (0: this one) or process a single core.
fn pin(pid: u32, core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core).unwrap();
    sched_setaffinity(Pid::from_raw(pid.cast_signed()), &cores).unwrap();
}

#[test]
fn a_stretch_is_told_of_on_every_core_watched() {
    let cores = online().unwrap();
    let Some((monitor, _alone)) = monitor(&cores) else { return };
    let mut mark = monitor.mark();
    thread::sleep(Duration::from_millis(250));
    let ended = Instant::now();
    let conditions = monitor.renew(&mut mark);
    assert!(conditions.duration >= Duration::from_millis(250), "{conditions:?}");
    assert_eq!(conditions.cores.iter().map(|core| core.core).collect::<Vec<_>>(), cores);
    assert!(conditions.cores.iter().all(|core| core.speed_index.is_some()), "{conditions:?}");
    // The next stretch begins where this one ended, though it has no probe of its own.
    let next = monitor.since(&mark);
    assert!(next.duration <= ended.elapsed(), "{next:?}");
    assert!(next.cores.iter().all(|core| core.speed_index.is_some()), "{next:?}");
}

/// Another process, which keeps `core` busy until it is dropped (and for some 20 s at most).
struct Burner(Child);

impl Burner {
    fn start(core: usize) -> Self {
        let burn = "i=0; while [ $i -lt 20000000 ]; do i=$((i+1)); done";
        let child = Command::new("sh").args(["-c", burn]).spawn().unwrap();
        pin(child.id(), core);
        Self(child)
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn work_of_others_is_claimed_where_it_is_done() {
    let [quiet, .., burned] = *online().unwrap() else {
        eprintln!("skipped: there is only one core");
        return;
    };
    let Some((monitor, _alone)) = monitor(&[quiet, burned]) else { return };
    let burner = Burner::start(burned);
    let mut clock = CoreClock::new(quiet).unwrap();
    let mark = monitor.mark();
    thread::sleep(Duration::from_millis(1500));
    let conditions = monitor.since(&mark);
    let busy = clock.sample().unwrap().busy;
    drop(burner);

    let other_work = |core: usize| {
        let found = conditions.cores.iter().find(|conditions| conditions.core == core);
        found.and_then(|found| found.other_work).unwrap().ratio()
    };
    // The machine may have more to do, but the core has no time for less.
    assert!(other_work(burned) > 0.9, "{conditions:?}");
    let claimed = conditions.disturbances(&Bounds::default());
    let on_burned =
        |found: &Disturbance| matches!(found, Disturbance::OtherWork { core, .. } if *core == burned);
    assert!(claimed.iter().any(on_burned), "{claimed:?}");
    // Of the core left alone, no more than another way of counting finds.
    assert!(other_work(quiet) < busy + 0.05, "claimed {} of {busy}", other_work(quiet));
}

#[test]
fn our_own_work_is_no_disturbance() {
    let [core, ..] = *online().unwrap() else { return };
    let Some((monitor, _alone)) = monitor(&[core]) else { return };
    let stop = AtomicBool::new(false);
    let (conditions, ran) = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            pin(0, core);
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap())
        });
        let mark = monitor.mark();
        thread::sleep(Duration::from_millis(1500));
        let conditions = monitor.since(&mark);
        stop.store(true, Ordering::Relaxed);
        (conditions, worker.join().unwrap())
    });
    // What others had of the core, our thread had not.
    let of_others = 1.0 - ran.as_secs_f64() / conditions.duration.as_secs_f64();
    let claimed = conditions.cores[0].other_work.unwrap().ratio();
    assert!(claimed < of_others + 0.05, "claimed {claimed} of {of_others}");
}
