//! Configures the device of a lab by the user's commands: they enter, and have run one after the other in the device's
//! namespace; what they left running leaves, and ends with the lab.
//!
//! One shell runs them all. It is the first process of a process namespace: what commands start, however it detaches
//! itself, is in that namespace, and dies with its first process, even when Linerate is killed.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lab::Namespace;
use programs::Process;

use crate::dut_command::{self, FAREWELL, LIMIT, LOOK};
use crate::stop;

/// Runs its arguments as commands, each when it reads "next", and says with which status they ended; then how many
/// processes they left running. At the next line it asks these to end, and gives them two seconds.
const SCRIPT: &str = r#"
count() {
    count=-1
    for process in /proc/[0-9]*; do [ ! -e "$process/exe" ] || count=$((count + 1)); done
}
for command; do
    read -r word && [ "$word" = next ] || break
    sh -c "$command" < /dev/null > /dev/null
    echo "$?"
done
count
echo "$count"
[ "$word" != next ] || read -r word
kill -TERM -1
for tenth in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    count
    [ "$count" -gt 0 ] || break
    sleep 0.1
done
"#;
/// How long the shell may take to count.
const COUNTING: Duration = Duration::from_secs(30);

/// What the user's commands left running in a lab. Dropping it ends that.
pub struct LeftRunning {
    shell: Process,
    /// Lines that it has said.
    heard: usize,
}

impl Drop for LeftRunning {
    fn drop(&mut self) {
        // What does not end when it is asked to is killed.
        let _ = self.shell.tell("end\n");
        let _ = self.shell.finish();
    }
}

/// Runs `commands` by `sh` in the namespace of a lab's device: `/proc/sys/net` and `/sys/class/net` are the device's there.
/// What they left running, if anything.
///
/// # Errors
/// When one fails, takes longer than ten minutes or is interrupted: which, what it said, and what to do. None runs after
/// it, and what they started is ended.
pub fn run(namespace: &Namespace, commands: &[String]) -> Result<Option<LeftRunning>> {
    run_within(namespace, commands, LIMIT)
}

fn run_within(namespace: &Namespace, commands: &[String], limit: Duration) -> Result<Option<LeftRunning>> {
    if commands.is_empty() {
        return Ok(None);
    }
    let shell = Process::start_shell(namespace, SCRIPT, commands).context("cannot run --dut-command")?;
    let mut shell = LeftRunning { shell, heard: 0 };
    for command in commands {
        shell.run(command, limit)?;
    }
    let left = shell.line(COUNTING)?.context("the shell of --dut-command does not answer")?;
    Ok((left != "0").then_some(shell))
}

impl LeftRunning {
    fn run(&mut self, command: &str, limit: Duration) -> Result<()> {
        let before = self.shell.said()?.stderr;
        self.shell.tell("next\n")?;
        let ended =
            self.line(limit).and_then(|status| status.with_context(|| dut_command::took_longer(limit)));
        let status = match ended {
            Ok(status) => status,
            Err(error) => {
                // Gently first: it may have something to put back.
                self.shell.interrupt();
                let _ = self.line(FAREWELL);
                return Err(error.context(dut_command::named(command)));
            }
        };
        if status == "0" {
            return Ok(());
        }
        let said = self.shell.said()?.stderr;
        let said = said.strip_prefix(before.as_str()).unwrap_or(&said);
        let remedy = "Try it by hand: 'linerate lab up NAME' with the same --dut, then \
                      'linerate lab exec NAME dut sh'";
        Err(dut_command::failure(command, &format!("exit status: {status}"), said, remedy))
    }

    /// The next line that the shell says; `None` if it says none within `limit`.
    fn line(&mut self, limit: Duration) -> Result<Option<String>> {
        let (stop, deadline) = (stop::flag()?, Instant::now() + limit);
        while Instant::now() < deadline {
            if let Some(line) = self.shell.lines()?.into_iter().nth(self.heard) {
                self.heard += 1;
                return Ok(Some(line));
            }
            if stop::is_set(&stop) {
                bail!("it was interrupted");
            }
            if self.shell.has_ended()? {
                bail!("its shell was ended");
            }
            thread::sleep(LOOK);
        }
        Ok(None)
    }
}
