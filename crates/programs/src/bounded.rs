//! A program that runs for a bounded time and prints a bounded amount: a command and its input enter; what it
//! printed leaves.

use std::io::{Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The most bytes of complaints that are kept.
const MOST_COMPLAINTS: u64 = 1 << 20;
/// How often it is looked whether the program has ended.
const LOOK: Duration = Duration::from_millis(5);

/// What a program answered.
#[derive(Debug)]
pub struct Answer {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed on standard output.
    pub output: Vec<u8>,
    /// What it printed on standard error, up to 1 MiB.
    pub complaints: String,
}

/// Runs `command` with `input` until it ends. `name` is what errors call it.
///
/// # Errors
/// When it cannot be started, runs for longer than `limit`, after which it is killed, or prints more than `most`
/// bytes.
pub fn run(name: &str, mut command: Command, input: &[u8], limit: Duration, most: u64) -> Result<Answer> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = Started(command.spawn().with_context(|| format!("cannot run {program}"))?);
    let deadline = Instant::now() + limit;
    let output = child.0.stdout.take().map(|output| collect(output, most));
    let complaints = child.0.stderr.take().map(|output| collect(output, MOST_COMPLAINTS));
    if let Some(mut pipe) = child.0.stdin.take() {
        let input = input.to_vec();
        // A program that ends early says why by its status; one that does not read must not hold us up.
        thread::spawn(move || drop(pipe.write_all(&input)));
    }
    let status = loop {
        match child.0.try_wait()? {
            Some(status) => break status,
            None if Instant::now() > deadline => bail!("{name} took longer than {limit:?} and was ended"),
            None => thread::sleep(LOOK),
        }
    };
    // What the program itself has started may hold the pipes open.
    let said = |collected: Option<Receiver<Vec<u8>>>| {
        let left = deadline.saturating_duration_since(Instant::now());
        collected.and_then(|bytes| bytes.recv_timeout(left).ok()).unwrap_or_default()
    };
    let (output, complaints) = (said(output), said(complaints));
    if output.len() as u64 > most {
        bail!("{name} printed more than {most} bytes");
    }
    Ok(Answer { status, output, complaints: String::from_utf8_lossy(&complaints).into_owned() })
}

/// A process that does not outlive this value.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads `from` to its end on another thread; of more than `most` bytes only one more is kept.
fn collect(mut from: impl Read + Send + 'static, most: u64) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = (&mut from).take(most + 1).read_to_end(&mut bytes);
        // The rest is read and forgotten, so that the program does not wait.
        let _ = std::io::copy(&mut from, &mut std::io::sink());
        let _ = sender.send(bytes);
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    fn shell(script: &str, limit: Duration, most: u64) -> Result<Answer> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run("the script", command, b"words\n", limit, most)
    }

    #[test]
    fn what_a_program_prints_and_how_it_ends_is_known() {
        let answer = shell("read word; echo $word; echo no >&2; exit 3", LONG, 100).unwrap();
        assert_eq!((answer.output.as_slice(), answer.complaints.as_str()), (&b"words\n"[..], "no\n"));
        assert_eq!(answer.status.code(), Some(3));
    }

    #[test]
    fn time_and_output_are_bounded() {
        let begun = Instant::now();
        let error = shell("exec sleep 60", Duration::from_millis(200), 100).unwrap_err().to_string();
        assert!(error.contains("the script took longer than 200ms") && begun.elapsed() < LONG, "{error}");
        let error = shell("head -c 101 /dev/zero", LONG, 100).unwrap_err().to_string();
        assert_eq!(error, "the script printed more than 100 bytes");
        // A child that holds the pipes open does not hold us up for longer.
        let answer = shell("sleep 3 & echo done", Duration::from_millis(500), 100).unwrap();
        assert!(answer.status.success() && begun.elapsed() < LONG);
        let missing = run("x", Command::new("/no/such"), b"", LONG, 1).unwrap_err();
        assert!(missing.to_string().contains("cannot run /no/such"));
    }
}
