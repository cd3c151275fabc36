//! Folded stacks: text of `perf script`, or lines like `thread;outer;inner 12`, enter; samples by
//! stack leave. Pure.

use std::collections::BTreeMap;
use std::fmt;
use std::iter;

use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};

/// Frames that show that an idle thread was interrupted by work.
const WORK: [&str; 4] = ["asm_", "irq_exit", "softirq", "el1_interrupt"];
/// What the kernel calls the thread that runs when no other does.
const IDLE: &str = "swapper";
/// How functions of the kernel end while stacks are folded.
const OF_KERNEL: &str = "_[k]";
/// The most samples that a profile may have: sums stay exact in every step of drawing it.
const MOST: u64 = 1 << 40;

/// Samples by stack: the name of the thread, then functions from the outermost inwards, with `;`
/// between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded(BTreeMap<String, u64>);

impl Folded {
    /// The stacks in what `perf script` printed.
    ///
    /// # Errors
    /// When that is not what it prints.
    pub fn of_perf_script(text: &str) -> Result<Self, String> {
        Self::fold(text, |_| true)
    }

    /// The same of a core on which the `threads` of a device work, named as in `/proc/PID/comm`. Of other threads only
    /// what they do in the kernel is kept: it may be the device's work, as in an interrupt, and their own functions,
    /// perhaps dozens below each other, are not.
    ///
    /// # Errors
    /// As [`Folded::of_perf_script`].
    pub fn of_device(text: &str, threads: &[String]) -> Result<Self, String> {
        let names: Vec<String> = threads.iter().map(|name| thread_name(name)).collect();
        Self::fold(text, |thread| names.iter().any(|name| name == thread))
    }

    /// The stacks of threads, of which those that `are_whole` keep functions outside the kernel.
    fn fold(text: &str, are_whole: impl Fn(&str) -> bool) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut options = Options::default();
        options.nthreads = 1;
        options.annotate_kernel = true;
        let mut folder = Folder::from(options);
        if folder.is_applicable(text) != Some(true) {
            let begin = text.lines().next().unwrap_or_default();
            return Err(format!("'perf script' printed no stacks but '{begin}'"));
        }
        let mut lines = Vec::new();
        folder
            .collapse(text.as_bytes(), &mut lines)
            .map_err(|cause| format!("what 'perf script' printed cannot be folded: {cause}"))?;
        let found = Self::parse(&String::from_utf8_lossy(&lines))?;
        let mut folded = Self::default();
        for (stack, count) in found.0 {
            let (thread, frames) = stack.split_once(';').unwrap_or((&stack, ""));
            let thread = thread_name(thread);
            let whole = are_whole(&thread);
            let frames = frames.split(';').filter(|frame| !frame.is_empty());
            let kept = frames.filter_map(|frame| frame.strip_suffix(OF_KERNEL).or(whole.then_some(frame)));
            let stack = iter::once(thread.as_str()).chain(kept).collect::<Vec<_>>().join(";");
            *folded.0.entry(stack).or_default() += count;
        }
        Ok(folded)
    }

    /// Reads lines of folded stacks.
    ///
    /// # Errors
    /// The line that is none, and why.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut folded = Self::default();
        let mut sum = 0_u64;
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            let (stack, count) = line.trim().rsplit_once(' ').unwrap_or_default();
            let count = count.parse().ok().filter(|_| !stack.trim().is_empty());
            let count: u64 = count.ok_or_else(|| {
                format!("line {number} is no folded stack, which is written 'thread;outer;inner SAMPLES'")
            })?;
            sum = sum.saturating_add(count);
            if sum > MOST {
                return Err(format!("line {number}: more samples than any profile has"));
            }
            // Threads may have any name; a drawing cannot show control characters.
            *folded.0.entry(stack.trim().replace(char::is_control, "?")).or_default() += count;
        }
        Ok(folded)
    }

    /// All samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.0.values().sum()
    }

    /// The stacks in which the core worked, and the samples in which it idled.
    #[must_use]
    pub fn without_idle(self) -> (Self, u64) {
        let (idle, busy): (BTreeMap<_, _>, _) = self.0.into_iter().partition(|(stack, _)| is_idle(stack));
        (Self(busy), idle.values().sum())
    }

    /// The share of the samples that threads of these names take, 0 to 1. Names are as in
    /// `/proc/PID/comm`.
    #[must_use]
    pub fn share_of(&self, threads: &[String]) -> f64 {
        let names: Vec<String> = threads.iter().map(|name| thread_name(name)).collect();
        let of = |(stack, _): &(&String, &u64)| {
            stack.split(';').next().is_some_and(|thread| names.iter().any(|name| name == thread))
        };
        let theirs: u64 = self.0.iter().filter(of).map(|(_, count)| count).sum();
        theirs as f64 / self.samples().max(1) as f64
    }

    /// The share of the samples in stacks that `other` has not, 0 to 1.
    #[must_use]
    pub fn share_without(&self, other: &Self) -> f64 {
        let alone = self.0.iter().filter(|(stack, _)| !other.0.contains_key(*stack));
        alone.map(|(_, count)| count).sum::<u64>() as f64 / self.samples().max(1) as f64
    }

    /// The lines of both with the samples of each, those of `self` scaled as if it had as many as
    /// `after`: what a differential flame graph is drawn from.
    pub(super) fn beside(&self, after: &Self) -> Vec<String> {
        let scale = after.samples() as f64 / self.samples().max(1) as f64;
        let stacks: std::collections::BTreeSet<&String> = self.0.keys().chain(after.0.keys()).collect();
        let count = |folded: &Self, stack: &String| folded.0.get(stack).copied().unwrap_or_default();
        let line = |stack: &String| {
            format!("{stack} {:.0} {}", count(self, stack) as f64 * scale, count(after, stack))
        };
        stacks.into_iter().map(line).collect()
    }
}

impl fmt::Display for Folded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(stack, count)| writeln!(f, "{stack} {count}"))
    }
}

/// What a stack calls a thread: without blanks, without the number of its NAPI context, which is another in every run, and
/// without a number after a blank (`worker 0`), which would be taken for that of its process where stacks are folded.
fn thread_name(comm: &str) -> String {
    let is_number = |word: &&str| !word.is_empty() && word.bytes().all(|it| it.is_ascii_digit());
    let name = comm.trim().split(' ').take_while(|word| !is_number(word)).collect::<Vec<_>>().join("_");
    match name.rsplit_once('-') {
        Some((interface, id)) if name.starts_with("napi/") && id.bytes().all(|it| it.is_ascii_digit()) => {
            interface.to_owned()
        }
        _ => name,
    }
}

/// Whether a stack is of the idle thread, and not of an interrupt that came meanwhile.
fn is_idle(stack: &str) -> bool {
    let mut frames = stack.split(';');
    frames.next() == Some(IDLE) && !frames.any(|frame| WORK.iter().any(|work| frame.contains(work)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "\
napi/dut0-8193  4711 [001]   100.000001: cpu-clock: 
	ffffffff81000100 ip_forward+0x10 ([kernel.kallsyms])
	ffffffff81000200 __napi_poll+0x20 ([kernel.kallsyms])

napi/dut0-8193  4711 [001]   100.001001: cpu-clock: 
	ffffffff81000101 ip_forward+0x11 ([kernel.kallsyms])
	ffffffff81000200 __napi_poll+0x20 ([kernel.kallsyms])

swapper     0 [001]   100.002001: cpu-clock: 
	ffffffff81000300 default_idle+0x1 ([kernel.kallsyms])
	ffffffff81000400 do_idle+0x2 ([kernel.kallsyms])

swapper     0 [001]   100.003001: cpu-clock: 
	ffffffff81000500 net_rx_action+0x1 ([kernel.kallsyms])
	ffffffff81000600 handle_softirqs+0x1 ([kernel.kallsyms])
	ffffffff81000400 do_idle+0x2 ([kernel.kallsyms])

";

    #[test]
    fn stacks_are_folded_and_idleness_is_told_from_interrupts_in_it() {
        let folded = Folded::of_perf_script(SCRIPT).unwrap();
        assert_eq!(folded.samples(), 4);
        let (busy, idle) = folded.without_idle();
        assert_eq!(idle, 1);
        assert_eq!(
            busy.to_string(),
            "napi/dut0;__napi_poll;ip_forward 2\n\
             swapper;do_idle;handle_softirqs;net_rx_action 1\n"
        );
        let share = busy.share_of(&["napi/dut0-8201\n".to_owned(), "napi/dut1-8194".to_owned()]);
        assert!((share - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(Folded::parse(&busy.to_string()), Ok(busy));
    }

    #[test]
    fn of_threads_that_are_not_the_device_s_only_the_kernel_s_functions_are_kept() {
        let script = "\
rustc  4711 [001]   100.000001: cpu-clock: 
	ffffffff81000100 net_rx_action+0x10 ([kernel.kallsyms])
	    55d0a0001000 visit+0x20 (/usr/bin/rustc)
	    55d0a0002000 main+0x20 (/usr/bin/rustc)

worker 0  4712 [001]   100.000002: cpu-clock: 
	    55d0a0003000 route+0x20 (/usr/bin/fastpath)
	    55d0a0004000 run+0x20 (/usr/bin/fastpath)

rustc  4711 [001]   100.000003: cpu-clock: 
	    55d0a0001000 visit+0x20 (/usr/bin/rustc)
	    55d0a0002000 main+0x20 (/usr/bin/rustc)

";
        let device = Folded::of_device(script, &["worker 0\n".to_owned()]).unwrap();
        assert_eq!(device.to_string(), "rustc 1\nrustc;net_rx_action 1\nworker;run;route 1\n");
        let all = Folded::of_perf_script(script).unwrap();
        assert_eq!(
            all.to_string(),
            "rustc;main;visit 1\nrustc;main;visit;net_rx_action 1\nworker;run;route 1\n"
        );
    }

    #[test]
    fn what_is_no_profile_is_named() {
        assert_eq!(Folded::of_perf_script(" \n"), Ok(Folded::default()));
        for text in ["nonsense\n", "nonsense\n\nmore\n\n", "a 1 [001] 1.0: e:\nno stack line\n\n"] {
            assert!(Folded::of_perf_script(text).unwrap_err().contains("printed no stacks"), "{text}");
        }
        for (text, line) in [("a;b 1\na;b\n", 2), ("<svg>\n", 1), ("a -1", 1), (" 7", 1), ("a 1.5", 1)] {
            assert!(Folded::parse(text).unwrap_err().contains(&format!("line {line} ")), "{text}");
        }
        assert!(Folded::parse(&format!("a {}\nb {}", u64::MAX, u64::MAX)).is_err());
        assert_eq!(Folded::default().share_of(&[]), 0.0);
        assert_eq!(Folded::parse("a\u{1};b 2"), Folded::parse("a?;b 2"));
    }

    #[test]
    fn threads_have_the_same_name_in_every_run() {
        for (comm, name) in [
            ("napi/dut0-8193", "napi/dut0"),
            ("napi/eth-1-12", "napi/eth-1"),
            ("ksoftirqd/1", "ksoftirqd/1"),
            ("tmux: server", "tmux:_server"),
            ("worker 0", "worker"),
            ("kworker/1-8", "kworker/1-8"),
        ] {
            assert_eq!(thread_name(comm), name);
        }
    }

    #[test]
    fn two_profiles_are_set_side_by_side_by_share() {
        let before = Folded::parse("t;a 10\nt;b 30\n").unwrap();
        let after = Folded::parse("t;a 10\nt;c 10\n").unwrap();
        assert_eq!(before.beside(&after), ["t;a 5 10", "t;b 15 0", "t;c 0 10"]);
        assert_eq!((before.share_without(&after), after.share_without(&before)), (0.75, 0.5));
    }
}
