//! What the kernel says of this process and of the processor.

use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::clock::clocks;
use crate::control::show::cpu::{self, Cpu};
use crate::control::show::threads::{Row, Stat, Threads};
use crate::control::threads::Workers;

/// A moment by two clocks, to compare them later.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub time: Instant,
    clocks: u64,
}

impl Moment {
    pub fn now() -> Self {
        Self { time: Instant::now(), clocks: clocks() }
    }

    /// How many clocks the time stamp counter has counted a second since.
    fn clocks_per_second(self) -> f64 {
        let now = Self::now();
        let seconds = (now.time - self.time).as_secs_f64();
        now.clocks.wrapping_sub(self.clocks) as f64 / seconds.max(1e-9)
    }
}

/// The processor, of which the clock was measured since `start`.
pub(super) fn cpu(start: Moment) -> Cpu {
    cpu::cpu(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default(), start.clocks_per_second())
}

/// The core and thread of each worker.
pub(super) fn placed(workers: &Workers) -> Vec<(usize, i32)> {
    workers.running.iter().map(|worker| (worker.core, worker.thread.as_raw())).collect()
}

/// The threads of this process: the main one, `workers` by core and thread, and all others.
pub(super) fn threads(workers: &[(usize, i32)]) -> Threads {
    let main = std::process::id().cast_signed();
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let mut others: Vec<i32> = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect();
    others.retain(|lwp| *lwp != main && !workers.iter().any(|(_, worker)| worker == lwp));
    others.sort_unstable();
    let workers = workers.iter().map(|(core, lwp)| ("worker", *lwp, Some(*core)));
    let others = others.into_iter().map(|lwp| ("helper", lwp, None));
    let all = std::iter::once(("main", main, None)).chain(workers).chain(others);
    let row = |(id, (kind, lwp, core))| row(id, kind, lwp, core);
    Threads { threads: all.enumerate().filter_map(row).collect() }
}

/// What the kernel says of a thread; nothing if it has just ended.
fn row(id: usize, kind: &str, lwp: i32, core: Option<usize>) -> Option<Row> {
    let text = fs::read_to_string(format!("/proc/self/task/{lwp}/stat")).ok()?;
    let stat = Stat::parse(&text)?;
    let lcore = core.unwrap_or(stat.processor);
    let topology = format!("/sys/devices/system/cpu/cpu{lcore}/topology");
    let number = |name| fs::read_to_string(Path::new(&topology).join(name)).ok()?.trim().parse().ok();
    Some(Row {
        id,
        name: stat.name,
        kind: kind.to_owned(),
        lwp,
        policy: stat.policy,
        lcore,
        core: number("core_id"),
        socket: number("physical_package_id"),
        state: stat.state,
    })
}
