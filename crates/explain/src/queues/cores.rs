//! Where an interrupt or a thread may run: its number enters, cores leave.

use std::fs;

use nix::unistd::Pid;
use scheduling::Cores;

/// The cores that a thread may run on; none if there is no such thread.
pub(super) fn of_thread(pid: i32) -> Vec<usize> {
    Cores::of_thread(Pid::from_raw(pid)).map(|cores| cores.numbers().collect()).unwrap_or_default()
}

/// The cores that an interrupt goes to, where the kernel says so; else those that it may go to.
pub(super) fn of_interrupt(number: u32) -> Vec<usize> {
    let read = |file: &str| fs::read_to_string(format!("/proc/irq/{number}/{file}")).unwrap_or_default();
    let effective = parse(&read("effective_affinity_list"));
    if effective.is_empty() { parse(&read("smp_affinity_list")) } else { effective }
}

/// A list such as `0-2,5`.
fn parse(text: &str) -> Vec<usize> {
    /// More cores than any kernel is built for.
    const MOST: usize = 1 << 16;
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.trim().parse::<usize>().ok()?, last.trim().parse::<usize>().ok()?);
        (last < MOST).then_some(first..=last)
    };
    text.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores_are_read() {
        assert_eq!(parse("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(parse("7"), [7]);
        for text in ["", "\n", "x", "3-1", "0-99999999999", "-"] {
            assert!(parse(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn this_thread_may_run_somewhere() {
        assert!(!of_thread(0).is_empty());
        assert!(of_thread(i32::MAX).is_empty());
        assert!(of_interrupt(u32::MAX).is_empty());
    }
}
