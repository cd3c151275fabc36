//! Profiles of TRex: a Python file enters and is run in TRex's own library; a profile leaves.
//!
//! It is the user's own code and runs with the user's rights, in a process of its own, for a bounded time and with
//! bounded output.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lab::{Check, Level};
use programs::bounded;
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

/// Whether profiles of TRex can be run here, for `doctor`.
#[must_use]
pub fn check() -> Check {
    let check =
        |level, found: String, remedy: Option<String>| Check { name: "TRex profiles", level, found, remedy };
    match python() {
        Ok(python) if has_library(&python) => {
            check(Level::Good, format!("{} has TRex's library", python.display()), None)
        }
        Ok(python) => check(
            Level::Degraded,
            format!("{} does not have TRex's library: --profile X.py is unavailable", python.display()),
            Some("linerate doctor --fix installs it from PyPI into a virtual environment".to_owned()),
        ),
        Err(error) => check(Level::Degraded, format!("{error:#}"), None),
    }
}

/// Makes a virtual environment with the library, and says what it did.
///
/// # Errors
/// When Python, its module `venv` or the network is missing.
pub fn install() -> Result<String> {
    let place = environment()?;
    let python = place.join("bin/python3");
    if has_library(&python) {
        return Ok(format!("TRex's library is in {} already: nothing changed", place.display()));
    }
    make(Path::new("python3"), &["-m", "venv", &place.to_string_lossy()], "install python3-venv")?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", LIBRARY];
    make(&python, &pip, "it comes from PyPI: is there a network?")?;
    Ok(format!("installed TRex's library ({LIBRARY}) in {}; 'rm -r' of it undoes that", place.display()))
}

fn make(program: &Path, arguments: &[&str], remedy: &str) -> Result<()> {
    let mut command = Command::new(program);
    let output = command.args(arguments).output();
    let output = output.with_context(|| format!("cannot run {}: {remedy}", program.display()))?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let line = said.trim().lines().last().unwrap_or("it did not say why").to_owned();
        bail!("{} {} failed: {line}; {remedy}", program.display(), arguments.join(" "));
    }
    Ok(())
}

/// The profile that the Python file makes.
///
/// # Errors
/// When the library is missing, or the profile fails, takes too long, or makes what cannot be sent.
pub fn read(file: &str, directions: Directions) -> Result<Profile> {
    let source = foreign::file::read_text(Path::new(file), foreign::file::LONGEST_TEXT)
        .with_context(|| format!("cannot read the profile {file}"))?;
    let python = python()?;
    if !has_library(&python) {
        bail!(
            "{file} is a profile of TRex, and {} does not have TRex's library, which runs it: \
             `linerate doctor --fix` installs it, or set {PYTHON} to a Python that has it",
            python.display()
        );
    }
    let ports: &[&str] = if directions == Directions::Both { &["0", "1"] } else { &["0"] };
    let answer = run(&python, file, ports)?;
    let lists: Vec<Vec<Value>> =
        serde_json::from_slice(&answer).with_context(|| format!("{file} made no streams"))?;
    let (Some(forward), reverse) = (lists.first(), lists.get(1)) else { bail!("{file} made no streams") };
    let name = Path::new(file).file_stem().map_or(file.into(), |stem| stem.to_string_lossy());
    trex::profile(&name, &source, forward, reverse.map(Vec::as_slice))
        .map_err(|failure| misuse(format!("{file}: {}", failure.reason)))
}

/// What the script prints of `file`.
fn run(python: &Path, file: &str, ports: &[&str]) -> Result<Vec<u8>> {
    let name = format!("the profile {file}");
    let mut command = Command::new(python);
    command.arg("-").arg(std::path::absolute(file)?).args(ports);
    let answer = bounded::run(&name, command, SCRIPT.as_bytes(), TIME_LIMIT, MOST_OUTPUT)?;
    if answer.status.success() {
        return Ok(answer.output);
    }
    Err(misuse(format!("{name} failed: {}", in_one_line(&answer.complaints))))
}

/// What Python complains of, and where.
fn in_one_line(complaints: &str) -> String {
    let lines = || complaints.lines().map(str::trim).filter(|line| !line.is_empty());
    let what = lines().next_back().unwrap_or("it did not say why");
    let place = lines().rfind(|line| line.starts_with("File ")).unwrap_or_default();
    if place.is_empty() { what.to_owned() } else { format!("{what} ({place})") }
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
    fn the_failure_of_a_profile_is_told_in_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let broken = fake(directory.path(), "echo NameError: x >&2; exit 1");
        let error = run(&broken, "x.py", &["0"]).unwrap_err().to_string();
        assert_eq!(error, "the profile x.py failed: NameError: x");
        let traceback = "Traceback:\n  File \"a.py\", line 2, in f\n    x\nNameError: x\n";
        assert_eq!(in_one_line(traceback), "NameError: x (File \"a.py\", line 2, in f)");
        let works = fake(directory.path(), "echo \"[[$3]]\"");
        assert_eq!(run(&works, "x.py", &["0"]).unwrap(), b"[[0]]\n");
    }
}
