//! Errors of use, and errors for people: what went wrong enters, one line that names it leaves.

use std::fmt;

use anyhow::Error;

/// The command was used wrongly: exit status 2.
#[derive(Debug)]
pub struct UsageError(pub String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// An error for wrong use.
pub fn misuse(text: impl Into<String>) -> Error {
    Error::new(UsageError(text.into()))
}

/// An error with its causes, each said once: some libraries' messages contain their causes'.
#[must_use]
pub fn in_one_line(error: &Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if line.is_empty() {
            line = cause;
        } else if !line.contains(&cause) {
            line += &format!(": {cause}");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let error = || anyhow::anyhow!("no space");
        assert_eq!(in_one_line(&error().context("cannot write a: no space")), "cannot write a: no space");
        assert_eq!(
            in_one_line(&Err::<(), _>(error()).context("cannot write a").unwrap_err()),
            "cannot write a: no space"
        );
    }
}
