//! Samples of one core, by the kernel's own profiler `perf`: a core enters; what `perf script` prints
//! of it leaves. Nothing is kept in the file system, and a recording ends when this process does.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cycles::Cycles;

/// Samples a second: a prime number, so that they do not keep step with what the core does.
pub const FREQUENCY_HZ: u32 = 997;
/// Pages of the buffer between the kernel and `perf`: seconds of samples, should `perf` have to wait
/// for a core.
const BUFFER_PAGES: &str = "1024";
/// How long `perf` may take to begin and to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// `perf`, and what it can count here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profiler {
    /// What its samples are of: `cycles`, or `cpu-clock`, which is time.
    pub event: &'static str,
    /// Why it is not `cycles`.
    pub why: Option<String>,
}

impl Profiler {
    /// Looks for `perf`, and for a cycle counter.
    ///
    /// # Errors
    /// When there is none, with the remedy.
    pub fn find() -> Result<Self, String> {
        let mut version = Command::new("perf");
        version.arg("--version").stdin(Stdio::null());
        run(&mut version)?;
        Ok(match Cycles::of(&[0]) {
            Ok(_) => Self { event: "cycles", why: None },
            Err(reason) => Self { event: "cpu-clock", why: Some(reason) },
        })
    }

    /// Prepares to sample `core`, for `at_most` that long. Nothing is sampled yet.
    ///
    /// # Errors
    /// When `perf` cannot be started, with the remedy.
    pub fn record(&self, core: usize, at_most: Duration) -> Result<Recording, String> {
        let file = || tempfile::tempfile().map_err(|cause| format!("cannot make a temporary file: {cause}"));
        let (samples, said) = (file()?, file()?);
        let seconds = at_most.saturating_add(PATIENCE).as_secs().to_string();
        let copy = |file: &File| file.try_clone().map_err(|cause| format!("cannot share a file: {cause}"));
        let child = Command::new("perf")
            .args(["record", "--event", self.event, "--freq", &FREQUENCY_HZ.to_string()])
            .args([
                "--cpu",
                &core.to_string(),
                "--call-graph",
                "fp",
                "--mmap-pages",
                BUFFER_PAGES,
                "--no-bpf-event",
            ])
            // Told over its standard input when to begin and when to pause, which it confirms on its standard output. It
            // ends when its input does.
            .args(["--delay", "-1", "--control", "fd:0,1", "--no-buildid", "--output", &path_of(&samples)])
            .args(["--", "sleep", &seconds])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(copy(&said)?)
            .spawn()
            .map_err(|cause| missing(&cause))?;
        let mut recording = Recording { child, samples, said };
        recording.wait_until_ready()?;
        Ok(recording)
    }
}

/// Samples that are being taken. They end when this is dropped.
#[derive(Debug)]
pub struct Recording {
    child: Child,
    samples: File,
    said: File,
}

/// What was sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Samples {
    /// Every sample, as `perf script` prints it.
    pub script: String,
    /// What `perf` says of samples that it lost.
    pub lost: Option<String>,
}

impl Recording {
    /// Waits until `perf` takes commands. A load that begins before that may leave it no time to start. If `perf` has ended
    /// instead, [`Recording::end`] says why.
    fn wait_until_ready(&mut self) -> Result<(), String> {
        self.tell("disable\n");
        let deadline = Instant::now() + PATIENCE;
        while !self.has_ended() && !self.has_confirmed() {
            if Instant::now() > deadline {
                return Err(format!(
                    "'perf record' did not start within {PATIENCE:?}: try again on a quieter machine"
                ));
            }
        }
        Ok(())
    }

    /// Whether `perf` confirms a command within a moment.
    fn has_confirmed(&self) -> bool {
        let Some(output) = &self.child.stdout else { return false };
        let mut wanted = [PollFd::new(output.as_fd(), PollFlags::POLLIN)];
        poll(&mut wanted, PollTimeout::from(10_u8)).is_ok()
            && wanted[0].revents().is_some_and(|found| found.contains(PollFlags::POLLIN))
    }

    /// Samples from now on.
    pub fn begin(&mut self) {
        self.tell("enable\n");
    }

    /// Samples no more from now on.
    pub fn pause(&mut self) {
        self.tell("disable\n");
    }

    /// Whether it has ended by itself, as when it may not sample; [`Recording::end`] says why.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    fn tell(&mut self, what: &str) {
        // If it has ended already, `end` finds out why.
        let _ = self.child.stdin.as_mut().map(|stdin| stdin.write_all(what.as_bytes()));
    }

    /// Ends, and returns what was sampled.
    ///
    /// # Errors
    /// When `perf` failed, with the remedy.
    pub fn end(mut self) -> Result<Samples, String> {
        self.interrupt();
        let status = self.child.wait().map_err(|cause| format!("'perf record' is lost: {cause}"))?;
        // Once all is written, it ends by the signal that it was sent, or that it sends its `sleep`.
        let asked = [Signal::SIGINT, Signal::SIGTERM].map(|signal| Some(signal as i32));
        if !status.success() && !asked.contains(&status.signal()) {
            let mut said = String::new();
            let read = self.said.rewind().and_then(|()| self.said.read_to_string(&mut said));
            read.map_err(|cause| format!("cannot read what 'perf record' said: {cause}"))?;
            return Err(refused("perf record", &said));
        }
        let mut script = Command::new("timeout");
        script.args(["--signal=KILL", PRINTING, "perf", "script", "--no-inline"]);
        script.args(["--input", &path_of(&self.samples), "--fields", "comm,tid,cpu,time,event,ip,sym,dso"]);
        script.stdin(Stdio::null());
        let output = run(&mut script)?;
        let said = String::from_utf8_lossy(&output.stderr);
        let lost = said.lines().map(str::trim).find(|line| line.contains("lost")).map(str::to_owned);
        Ok(Samples { script: String::from_utf8_lossy(&output.stdout).into_owned(), lost })
    }

    /// Asks it to write what it has and to end; ends it if it does not.
    fn interrupt(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        if !self.has_ended() {
            let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT);
        }
        while !self.has_ended() {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.interrupt();
        let _ = self.child.wait();
    }
}

/// Where other processes find `file`, which has no name. `perf` seeks in it: what it reads and writes by
/// a pipe it sometimes waits for without end.
fn path_of(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// Whether the kernel keeps the addresses of its functions to itself, so that no sample has a name.
#[must_use]
pub fn symbols_are_hidden() -> bool {
    let Ok(file) = File::open("/proc/kallsyms") else { return true };
    let mut first = String::new();
    let read = BufReader::new(file).read_line(&mut first);
    read.is_err() || has_no_address(&first)
}

/// Whether a line of `/proc/kallsyms` is without its address.
fn has_no_address(line: &str) -> bool {
    line.split_whitespace().next().is_none_or(|address| address.bytes().all(|digit| digit == b'0'))
}

/// Ends `perf` if it takes longer than this to print what was sampled, in seconds.
const PRINTING: &str = "120";

/// Runs `perf` to its end.
fn run(perf: &mut Command) -> Result<Output, String> {
    let output = perf.output().map_err(|cause| missing(&cause))?;
    if output.status.success() {
        return Ok(output);
    }
    if output.status.signal() == Some(Signal::SIGKILL as i32) {
        return Err(format!("'perf script' did not end within {PRINTING} s: try again"));
    }
    Err(refused("perf", &String::from_utf8_lossy(&output.stderr)))
}

fn missing(cause: &io::Error) -> String {
    match cause.kind() {
        io::ErrorKind::NotFound => {
            "there is no 'perf', which takes the samples: install it, on Debian with 'apt install linux-perf'"
                .to_owned()
        }
        _ => format!("cannot run 'perf': {cause}"),
    }
}

/// Why `what` failed, from what it `said`.
fn refused(what: &str, said: &str) -> String {
    let denied = ["perf_event_paranoid", "ermission denied", "not permitted", "CAP_PERFMON"];
    if denied.iter().any(|word| said.contains(word)) {
        return format!(
            "'{what}' may not sample a core: run as root, or lower 'sysctl kernel.perf_event_paranoid' to -1"
        );
    }
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "Error:");
    let reason = lines.take(2).collect::<Vec<_>>().join(" ");
    if reason.is_empty() {
        format!(
            "'{what}' failed and does not say why: try it by hand, as in 'perf record -e cpu-clock -C 1 sleep 1'"
        )
    } else {
        format!("'{what}' failed: {reason}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_cause_and_remedy() {
        let paranoid = "Error:\nAccess to performance monitoring is limited.\nConsider perf_event_paranoid";
        assert!(refused("perf record", paranoid).contains("run as root"));
        let said = "Error:\nThe sys_perf_event_open() syscall returned with 2\n";
        assert_eq!(
            refused("perf record", said),
            "'perf record' failed: The sys_perf_event_open() syscall returned with 2"
        );
        assert!(refused("perf record", "").contains("does not say why"));
        assert!(missing(&io::ErrorKind::NotFound.into()).contains("linux-perf"));
        assert!(missing(&io::ErrorKind::PermissionDenied.into()).contains("cannot run"));
    }

    #[test]
    fn hidden_symbols_have_no_address() {
        assert!(has_no_address("0000000000000000 T _stext\n"));
        assert!(has_no_address(""));
        assert!(!has_no_address("ffffffff81000000 T _stext\n"));
    }
}
