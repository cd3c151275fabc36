//! Configures a device outside of labs by the user's commands: they enter, and have run one after the other on this
//! machine. Those in a lab are run by [`crate::lab_commands`].

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow, bail};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use crate::stop;

/// What a command that failed may say in a message: more hides the cause.
const LINES: usize = 5;
/// How long a command may take.
pub(crate) const LIMIT: Duration = Duration::from_mins(10);
/// How long a command that is told to end has for that.
pub(crate) const FAREWELL: Duration = Duration::from_secs(2);
/// How often it is looked whether a command has ended.
pub(crate) const LOOK: Duration = Duration::from_millis(5);

/// Runs `commands` by `sh` on this machine.
///
/// # Errors
/// When one cannot be started, fails, takes longer than ten minutes or is interrupted: which, what it said, and what to
/// do. None runs after it.
pub fn here(commands: &[String]) -> Result<()> {
    run_all(commands, Path::new("."))
}

fn run_all(commands: &[String], directory: &Path) -> Result<()> {
    commands.iter().try_for_each(|command| run(command, directory, LIMIT))
}

fn run(command: &str, directory: &Path, limit: Duration) -> Result<()> {
    // Not a pipe: what a command leaves running in the background would hold it open.
    let said = memfd_create(c"stderr", MFdFlags::MFD_CLOEXEC).map(File::from);
    let mut said = said.context("cannot keep what a command says: raise 'ulimit -n'")?;
    let child = Command::new("sh")
        .args(["-c", command])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said.try_clone()?)
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start sh for --dut-command '{command}'"))?;
    let status = ended(child, limit).with_context(|| named(command))?;
    if status.success() {
        return Ok(());
    }
    let mut bytes = Vec::new();
    said.rewind()?;
    said.read_to_end(&mut bytes)?;
    let remedy = "With --ports it runs on this machine: try it there by hand";
    Err(failure(command, &status.to_string(), &String::from_utf8_lossy(&bytes), remedy))
}

/// What `command` is called in a message.
pub(crate) fn named(command: &str) -> String {
    format!("--dut-command '{}'", shortened(command))
}

/// That `command` ended with `status` after it `said` something.
pub(crate) fn failure(command: &str, status: &str, said: &str, remedy: &str) -> Error {
    let said = shortened(&foreign::text::printable(said));
    anyhow!("{} failed ({status}): {said}. {remedy}", named(command))
}

/// That a command was ended after `limit`, and what to do.
pub(crate) fn took_longer(limit: Duration) -> String {
    format!(
        "it took longer than {limit:?} and was ended: let it start in the background what goes on for longer ('… &')"
    )
}

/// How the command ended by itself.
///
/// # Errors
/// When it took longer than `limit`, or the user asked to stop: it and what it started are ended.
fn ended(mut child: Child, limit: Duration) -> Result<ExitStatus> {
    let stop = stop::flag()?;
    let deadline = Instant::now() + limit;
    while !stop::is_set(&stop) && Instant::now() < deadline {
        match child.try_wait()? {
            Some(status) => return Ok(status),
            None => thread::sleep(LOOK),
        }
    }
    end(&mut child);
    if stop::is_set(&stop) {
        bail!("it was interrupted");
    }
    bail!(took_longer(limit))
}

/// Ends the command and what it started: gently first.
fn end(child: &mut Child) {
    let Ok(group) = i32::try_from(child.id()).map(Pid::from_raw) else { return };
    let deadline = Instant::now() + FAREWELL;
    // Until the command is waited for, no other group gets its number.
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    let is_running = || matches!(waitid(Id::Pid(group), look), Ok(WaitStatus::StillAlive));
    let _ = killpg(group, Signal::SIGTERM);
    while Instant::now() < deadline && is_running() {
        thread::sleep(LOOK);
    }
    let _ = killpg(group, Signal::SIGKILL);
    let _ = child.wait();
}

/// The first lines that have words, without the blanks around them.
fn shortened(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| line.contains(|c: char| c.is_alphanumeric()));
    let first: Vec<&str> = lines.by_ref().take(LINES).collect();
    match (first.as_slice(), lines.next()) {
        ([], _) => "it does not say why".to_owned(),
        (_, None) => first.join("; ").trim_end_matches('.').to_owned(),
        (_, Some(_)) => format!("{} …", first.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands<const N: usize>(lines: [&str; N]) -> Vec<String> {
        lines.map(str::to_owned).to_vec()
    }

    #[test]
    fn commands_run_in_order_up_to_the_first_that_fails() {
        let directory = tempfile::tempdir().unwrap();
        let run = |lines| run_all(&commands(lines), directory.path());
        run(["echo one > log", "echo two >> log"]).unwrap();
        run(["false", "echo three >> log"]).unwrap_err();
        assert_eq!(std::fs::read_to_string(directory.path().join("log")).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn one_that_fails_is_named_with_what_it_said_and_a_remedy() {
        let refused = |line| here(&commands([line])).unwrap_err().to_string();
        let text = refused("echo 'Error: no such rule\n  ^^^^\nadd it.' >&2; exit 3");
        assert!(text.contains("(exit status: 3): Error: no such rule; add it. With --ports"), "{text}");
        let text = refused("printf '\\033[2Jgone' >&2; exit 3");
        assert!(text.contains("(exit status: 3): \\u{1b}[2Jgone. "), "{text}");
        let text = refused("exit 4");
        assert!(text.contains("'exit 4' failed (exit status: 4): it does not say why. "), "{text}");
        assert_eq!(shortened("a\nb\nc\nd\ne\nf\n"), "a; b; c; d; e …");
    }

    #[test]
    fn a_command_that_does_not_end_is_ended_with_what_it_started() {
        let directory = tempfile::tempdir().unwrap();
        let line = "sleep 60 & echo $! > pid; wait";
        let error = run(line, directory.path(), Duration::from_millis(300)).unwrap_err();
        let said = format!("{error:#}");
        assert!(said.contains("'sleep 60 & echo $! > pid; wait': it took longer than 300ms"), "{said}");
        let pid = std::fs::read_to_string(directory.path().join("pid")).unwrap();
        // An orphan that nobody waits for yet has no command line any more.
        let line = std::fs::read(format!("/proc/{}/cmdline", pid.trim())).unwrap_or_default();
        assert!(line.is_empty(), "it goes on: {line:?}");
    }

    #[test]
    fn what_a_command_leaves_running_is_not_waited_for() {
        let began = std::time::Instant::now();
        here(&commands(["sleep 5 & true"])).unwrap();
        assert!(began.elapsed().as_secs() < 4);
    }
}
