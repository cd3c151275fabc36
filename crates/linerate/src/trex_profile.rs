//! Profiles of TRex: a Python file enters and is run in TRex's own library; a profile leaves.
//!
//! It is the user's own code and runs with the user's rights, in a process of its own, for a bounded time and with
//! bounded output.

use std::env;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use traffic::{Directions, Profile};
use wording::usage::misuse;

/// The release of TRex's library that is asked for and tested.
pub const LIBRARY: &str = "lbr-trex-client==3.4.0";
/// Names a Python that has the library, instead of the one that `doctor --fix` made.
pub const PYTHON: &str = "LINERATE_TREX_PYTHON";
/// How long a profile may take.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// The most bytes of streams.
const MOST_OUTPUT: u64 = 64 << 20;
/// The most bytes of complaints that are kept.
const MOST_COMPLAINTS: u64 = 1 << 20;
/// What runs there.
const SCRIPT: &str = include_str!("trex_profile.py");

/// Where `doctor --fix` puts the virtual environment.
///
/// # Errors
/// When there is no home directory.
pub fn environment() -> Result<PathBuf> {
    let data = env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".local/share"));
    let data = data.or_else(home).context("no home directory: set HOME or XDG_DATA_HOME")?;
    Ok(data.join("linerate/trex"))
}

/// The Python that has the library, if there is one: what was looked for otherwise.
///
/// # Errors
/// When there is no home directory.
pub fn python() -> Result<PathBuf> {
    match env::var_os(PYTHON) {
        Some(python) => Ok(PathBuf::from(python)),
        None => Ok(environment()?.join("bin/python3")),
    }
}

/// Whether this Python has the library.
pub fn has_library(python: &Path) -> bool {
    let mut command = Command::new(python);
    command.args([
        "-c",
        "import importlib.util as u; exit(not (u.find_spec('trex') or u.find_spec('lbr_trex_client')))",
    ]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The profile that the Python file makes.
///
/// # Errors
/// When the library is missing, or the profile fails, takes too long, or makes what cannot be sent.
pub fn read(file: &str, directions: Directions) -> Result<Profile> {
    let source = std::fs::read_to_string(file).with_context(|| format!("cannot read the profile {file}"))?;
    let python = python()?;
    if !has_library(&python) {
        bail!(
            "{file} is a profile of TRex, and {} does not have TRex's library, which runs it: \
             `linerate doctor --fix` installs it, or set {PYTHON} to a Python that has it",
            python.display()
        );
    }
    let ports: &[&str] = if directions == Directions::Both { &["0", "1"] } else { &["0"] };
    let answer = run(&python, file, ports, TIME_LIMIT)?;
    let lists: Vec<Vec<Value>> =
        serde_json::from_slice(&answer).with_context(|| format!("{file} made no streams"))?;
    let (Some(forward), reverse) = (lists.first(), lists.get(1)) else { bail!("{file} made no streams") };
    let name = Path::new(file).file_stem().map_or(file.into(), |stem| stem.to_string_lossy());
    trex::profile(&name, &source, forward, reverse.map(Vec::as_slice))
        .map_err(|failure| misuse(format!("{file}: {}", failure.reason)))
}

/// What the script prints of `file`.
fn run(python: &Path, file: &str, ports: &[&str], limit: Duration) -> Result<Vec<u8>> {
    let file_path = std::path::absolute(file)?;
    let mut command = Command::new(python);
    command.arg("-").arg(&file_path).args(ports);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Started(command.spawn().with_context(|| format!("cannot run {}", python.display()))?);
    if let Some(mut input) = child.0.stdin.take() {
        // A Python that ends early says why below.
        let _ = input.write_all(SCRIPT.as_bytes());
    }
    let answer = child.0.stdout.take().map(|output| collect(output, MOST_OUTPUT));
    let complaints = child.0.stderr.take().map(|output| collect(output, MOST_COMPLAINTS));
    let deadline = Instant::now() + limit;
    let status = loop {
        match child.0.try_wait()? {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                bail!("the profile {file} took longer than {limit:?} and was ended")
            }
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    // What the profile itself has started may hold the pipes open.
    let said = |collected: Option<Collected>| collected.map(|it| it.until(deadline)).unwrap_or_default();
    let (answer, complaints) = (said(answer), said(complaints));
    if answer.len() as u64 > MOST_OUTPUT {
        bail!("the profile {file} makes more than {MOST_OUTPUT} bytes of streams");
    }
    if status.success() {
        return Ok(answer);
    }
    Err(misuse(format!("the profile {file} failed: {}", in_one_line(&String::from_utf8_lossy(&complaints)))))
}

/// What Python complains of, and where.
fn in_one_line(complaints: &str) -> String {
    let lines = || complaints.lines().map(str::trim).filter(|line| !line.is_empty());
    let what = lines().next_back().unwrap_or("it did not say why");
    let place = lines().rfind(|line| line.starts_with("File ")).unwrap_or_default();
    if place.is_empty() { what.to_owned() } else { format!("{what} ({place})") }
}

/// A process that does not outlive us.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Bytes that a thread reads.
struct Collected(std::sync::mpsc::Receiver<Vec<u8>>);

impl Collected {
    fn until(&self, deadline: Instant) -> Vec<u8> {
        self.0.recv_timeout(deadline.saturating_duration_since(Instant::now())).unwrap_or_default()
    }
}

/// Reads `from` to its end on another thread; of more than `most` bytes only one more is kept.
fn collect(from: impl Read + Send + 'static, most: u64) -> Collected {
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut from = from;
        let _ = (&mut from).take(most + 1).read_to_end(&mut bytes);
        // The rest is read and forgotten, so that nobody waits.
        let _ = std::io::copy(&mut from, &mut std::io::sink());
        let _ = sender.send(bytes);
    });
    Collected(receiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell in the place of Python: it ignores what it is told and does this.
    fn fake(directory: &Path, script: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = directory.join("python3");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn a_profile_has_a_bounded_time_and_its_failure_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let limit = Duration::from_millis(200);
        let begun = Instant::now();
        let slow = fake(directory.path(), "exec sleep 60");
        let error = run(&slow, "x.py", &["0"], limit).unwrap_err().to_string();
        assert!(error.contains("took longer") && begun.elapsed() < Duration::from_secs(20), "{error}");
        let broken = fake(directory.path(), "echo NameError: x >&2; exit 1");
        let error = run(&broken, "x.py", &["0"], TIME_LIMIT).unwrap_err().to_string();
        assert_eq!(error, "the profile x.py failed: NameError: x");
        let traceback = "Traceback:\n  File \"a.py\", line 2, in f\n    x\nNameError: x\n";
        assert_eq!(in_one_line(traceback), "NameError: x (File \"a.py\", line 2, in f)");
        let works = fake(directory.path(), "echo \"[[$3]]\"");
        assert_eq!(run(&works, "x.py", &["0"], TIME_LIMIT).unwrap(), b"[[0]]\n");
    }
}
