//! How a command ends: what it found, or the error that ended it, enters; the exit status leaves.

use std::process::ExitCode;

use anyhow::Result;
use wording::usage::{UsageError, in_one_line};

/// How a command ended, when it ended without an error of its own.
pub enum Exit {
    /// It did what was asked.
    Done,
    /// It ran, but the answer is no: nothing passes, a check fails, it was interrupted.
    Failed,
}

/// The exit status of a command: 0 done, 1 failed, 2 used wrongly. An error is printed.
pub fn status(result: Result<Exit>) -> ExitCode {
    match result {
        Ok(Exit::Done) => ExitCode::SUCCESS,
        Ok(Exit::Failed) => ExitCode::from(1),
        Err(error) => {
            eprintln!("linerate: {}", in_one_line(&error));
            ExitCode::from(if is_misuse(&error) { 2 } else { 1 })
        }
    }
}

/// Whether the user, not the machine, can mend it.
pub fn is_misuse(error: &anyhow::Error) -> bool {
    let of_driver =
        |error: &remote::Error| matches!(error, remote::Error::Misuse(_) | remote::Error::Driver { .. });
    error.is::<UsageError>()
        || matches!(error.downcast_ref(), Some(engine::Error::Port(_)))
        || error.downcast_ref().is_some_and(of_driver)
}
