//! TRex's library, which runs TRex's profiles: whether it is there, and how it gets there.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use lab::{Check, Level};
use testbed::trex_profile::{LIBRARY, environment, has_library, python};

/// Whether profiles of TRex can be run.
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
pub fn install() -> Result<String> {
    let place = environment()?;
    let python = place.join("bin/python3");
    if has_library(&python) {
        return Ok(format!("TRex's library is in {} already: nothing changed", place.display()));
    }
    run(Path::new("python3"), &["-m", "venv", &place.to_string_lossy()], "install python3-venv")?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", LIBRARY];
    run(&python, &pip, "it comes from PyPI: is there a network?")?;
    Ok(format!("installed TRex's library ({LIBRARY}) in {}; 'rm -r' of it undoes that", place.display()))
}

fn run(program: &Path, arguments: &[&str], remedy: &str) -> Result<()> {
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
