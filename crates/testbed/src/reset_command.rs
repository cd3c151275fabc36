//! Resets a device by the user's command: the command enters, whether it began leaves.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a command has to fail. One that goes on is at work, and is left alone: the
/// measurement goes on meanwhile.
const PATIENCE: Duration = Duration::from_millis(500);

/// Starts `command` by `sh`. What it prints goes to people.
///
/// # Errors
/// When it cannot be started, or fails at once.
pub fn start(command: &str) -> Result<(), String> {
    let failed = |why: &str| format!("the reset command '{command}' {why}: check --reset-command");
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| failed(&format!("could not be started ({error})")))?;
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(failed(&format!("failed ({status})"))),
            Ok(None) => thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(failed(&format!("cannot be waited for ({error})"))),
        }
    }
    // Nobody asks for its end any more; it must not stay a zombie.
    thread::spawn(move || child.wait());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_runs_and_one_that_fails_is_named() {
        assert_eq!(start("true"), Ok(()));
        let refused = start("exit 3").unwrap_err();
        assert!(refused.contains("'exit 3' failed") && refused.contains("--reset-command"), "{refused}");
    }

    #[test]
    fn a_command_that_takes_its_time_is_not_waited_for() {
        let began = Instant::now();
        assert_eq!(start("sleep 2"), Ok(()));
        assert!(began.elapsed() < Duration::from_secs(2));
    }
}
