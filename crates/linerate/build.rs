//! Puts into `linerate --version` which commit is built: as the environment says (`LINERATE_COMMIT`), or the file
//! COMMIT of a source archive, or git. Without any of them the number stands alone.

use std::process::Command;
use std::{env, fs};

/// A file of the repository that `git archive` puts the commit into.
const ARCHIVED: &str = "../../COMMIT";

fn main() {
    println!("cargo:rerun-if-env-changed=LINERATE_COMMIT");
    println!("cargo:rerun-if-changed={ARCHIVED}");
    let given = env::var("LINERATE_COMMIT").ok();
    let commit = given.filter(|commit| !commit.is_empty()).or_else(archived).or_else(checked_out);
    let number = env!("CARGO_PKG_VERSION");
    let version = commit.map_or_else(|| number.to_owned(), |commit| format!("{number} ({commit})"));
    println!("cargo:rustc-env=LINERATE_VERSION={version}");
}

fn archived() -> Option<String> {
    let text = fs::read_to_string(ARCHIVED).ok()?;
    let text = text.trim();
    (!text.is_empty() && !text.starts_with('$')).then(|| text.to_owned())
}

fn checked_out() -> Option<String> {
    // It changes with each commit and each checkout.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if fs::exists(&log).unwrap_or(false) {
        println!("cargo:rerun-if-changed={log}");
    }
    git(&["log", "-1", "--format=%h %cs"])
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
