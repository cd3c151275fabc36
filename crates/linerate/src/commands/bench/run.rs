//! One run of a bench: the words of its command enter; how it ended leaves.
//!
//! A run is a process of our own program, so that every repeat begins afresh and the failure of one
//! is not that of the others. It dies with the bench, however that ends, and holds the bench's lock
//! on the records until it is dead: the next holder of the lock finds records that nobody writes any more.

use std::env;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::{Pid, getpid, getppid};
use results::Record;
use results::record::Status;

use testbed::stop;

/// This program, even if its file was replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";
/// In the environment of a run: the process number of its bench.
const BENCH: &str = "LINERATE_BENCH";
/// How often to look whether the user asks to stop; seldom, since cores are being measured.
const LOOK: Duration = Duration::from_millis(100);
/// How often to watch it; seldom for the same reason.
const WATCH: Duration = Duration::from_secs(2);
/// How long the runs of a bench that was killed have to die.
const PATIENCE: Duration = Duration::from_secs(3);

/// How a run ended.
#[derive(Debug)]
pub enum Ended {
    /// It came to its end.
    Complete(Box<Record>),
    /// It did not, and why.
    Failed(String),
    /// The user stopped it.
    Interrupted,
}

/// Who else may use a directory of records at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// No other bench.
    Nobody,
    /// Other shards of the same bench.
    Shards,
}

/// Takes the records in `directory` for this bench and its runs, until all of them have ended.
///
/// # Errors
/// When another bench has them, or the directory cannot be used.
pub fn lock(directory: &Path, sharing: Sharing) -> Result<File> {
    let lock = File::open(directory).with_context(|| format!("cannot open {}", directory.display()))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let locked = match sharing {
            Sharing::Nobody => lock.try_lock(),
            Sharing::Shards => lock.try_lock_shared(),
        };
        match locked {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => bail!(
                "another bench, or what one has left running, uses {}: wait for its end, or give another --runs",
                directory.display()
            ),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", directory.display()));
            }
        }
    }
}

/// Runs this program with `words` to its end; if the user asks to stop, it is asked to end. Meanwhile
/// `watch` is called now and then.
///
/// # Errors
/// When it cannot be started.
pub fn run(words: &[String], lock: &File, stop: &AtomicBool, watch: &mut dyn FnMut()) -> Result<Ended> {
    // Not pipes: what a run leaves running would hold them open.
    let [mut stdout, mut stderr] = [scratch()?, scratch()?];
    let mut command = Command::new(PROGRAM);
    command.arg0("linerate").args(words).stdin(Stdio::null());
    command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    // Ctrl-C reaches the bench alone, which passes it on once: the second would end the run at once.
    command.process_group(0);
    bind(&mut command, lock)?;
    command.env(BENCH, getpid().to_string());
    let mut child = command.spawn().context("cannot start a run")?;
    let pid = Pid::from_raw(child.id().cast_signed());
    let (ended, told) = mpsc::channel();
    thread::spawn(move || {
        // It stays a zombie, so that its id stays its own until it is waited for below.
        let _ = waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
        let _ = ended.send(());
    });
    let (mut asked, mut watched) = (false, Instant::now());
    while told.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        if !asked && stop::is_set(stop) {
            asked = true;
            kill(pid, Signal::SIGINT).context("cannot interrupt a run")?;
        }
        if watched.elapsed() >= WATCH {
            watch();
            watched = Instant::now();
        }
    }
    let status = child.wait().context("cannot wait for a run")?;
    Ok(ending(status, &text(&mut stdout)?, &text(&mut stderr)?, stop::is_set(stop)))
}

/// Binds the life of `command` to ours, and gives it `lock`, which it holds as long as it lives.
fn bind(command: &mut Command, lock: &File) -> Result<()> {
    let parent = getpid();
    let lock = lock.try_clone().context("cannot pass on the lock of the records")?;
    let bound = move || -> io::Result<()> {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        if getppid() != parent {
            // The bench died before that.
            return Err(Errno::ESRCH.into());
        }
        fcntl(&lock, FcntlArg::F_SETFD(FdFlag::empty()))?;
        Ok(())
    };
    // SAFETY: between fork and exec it only makes system calls: it takes no lock and no memory.
    unsafe { command.pre_exec(bound) };
    Ok(())
}

/// Binds this process to the bench that started it, if one did. What is asked for before a program begins the kernel
/// forgets where the program gets rights back that the bench gave up, as root's does (prctl(2), `PR_SET_PDEATHSIG`). To be
/// called before there are other threads.
///
/// # Errors
/// The bench has ended.
pub fn end_with_bench() -> Result<()> {
    let bench = env::var(BENCH).ok().and_then(|number| number.parse().ok());
    let Some(bench) = bench.map(Pid::from_raw) else { return Ok(()) };
    // SAFETY: nothing else reads the environment meanwhile, as this is the only thread. What it starts is not the bench's.
    unsafe { env::remove_var(BENCH) };
    prctl::set_pdeathsig(Signal::SIGKILL).context("cannot end with the bench")?;
    if getppid() != bench {
        bail!("the bench has ended");
    }
    Ok(())
}

/// A file without a name.
fn scratch() -> Result<File> {
    let file =
        memfd_create(c"linerate bench", MFdFlags::MFD_CLOEXEC).context("cannot keep what a run says")?;
    Ok(File::from(file))
}

fn text(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).context("cannot read what a run said")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// How a process ended that printed `stdout` for machines and `stderr` for people.
fn ending(status: ExitStatus, stdout: &str, stderr: &str, stopped: bool) -> Ended {
    let record: Option<Record> = serde_json::from_str(stdout).ok();
    match record {
        Some(record) if record.status == Status::Complete => Ended::Complete(Box::new(record)),
        _ if stopped => Ended::Interrupted,
        Some(Record { reason: Some(reason), .. }) => Ended::Failed(reason),
        _ => Ended::Failed(last_words(stderr).unwrap_or_else(|| format!("it ended with {status}"))),
    }
}

/// The error that a program ended with.
fn last_words(stderr: &str) -> Option<String> {
    let lines = || stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines().filter_map(|line| line.strip_prefix("linerate: ")).next_back();
    error.or(lines().next_back()).map(str::to_owned)
}

/// Runs a shell command on this machine.
///
/// # Errors
/// That it fails, and what it said last.
pub fn undo(command: &str) -> Result<()> {
    let mut said = scratch()?;
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said.try_clone()?);
    let status = shell.status().with_context(|| format!("cannot start sh for '{command}'"))?;
    if status.success() {
        return Ok(());
    }
    let why = last_words(&text(&mut said)?).unwrap_or_else(|| status.to_string());
    bail!("'{command}' failed ({why}): what it should undo is still so; undo it by hand")
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use results::fixtures::Scenario;

    use super::*;

    fn of(record: Option<&Record>, stderr: &str, stopped: bool) -> Ended {
        let stdout = record.map(|record| serde_json::to_string(record).unwrap()).unwrap_or_default();
        ending(ExitStatus::from_raw(1 << 8), &stdout, stderr, stopped)
    }

    #[test]
    fn the_reason_of_a_failure_is_the_records_else_the_last_that_was_said() {
        let complete = Scenario::default().record();
        assert!(matches!(of(Some(&complete), "", true), Ended::Complete(_)), "it ended before the signal");
        let failed =
            Record { status: Status::Failed, reason: Some("nothing passes".to_owned()), ..complete.clone() };
        let reason = |ended: Ended| match ended {
            Ended::Failed(reason) => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(reason(of(Some(&failed), "linerate: else", false)), "nothing passes");
        assert_eq!(reason(of(None, "linerate: no such port\nand more\n\n", false)), "no such port");
        assert_eq!(reason(of(None, "killed by me\n", false)), "killed by me");
        assert!(reason(of(None, "", false)).contains("exit status: 1"));
        assert!(matches!(of(Some(&failed), "", true), Ended::Interrupted));
    }

    #[test]
    fn records_in_use_are_not_taken_and_free_again_when_the_lock_goes() {
        let directory = tempfile::tempdir().unwrap();
        let held = lock(directory.path(), Sharing::Nobody).unwrap();
        let refusal = lock(directory.path(), Sharing::Nobody).unwrap_err().to_string();
        assert!(refusal.contains("another bench") && refusal.contains("--runs"), "{refusal}");
        drop(held);
        lock(directory.path(), Sharing::Nobody).unwrap();
        assert!(lock(&directory.path().join("gone"), Sharing::Nobody).is_err());
    }

    #[test]
    fn an_undo_that_fails_says_so() {
        undo("true").unwrap();
        let error = undo("echo no such rule >&2; exit 3").unwrap_err().to_string();
        assert!(error.contains("no such rule") && error.contains("by hand"), "{error}");
    }
}
