//! Errors for people: whatever went wrong enters, one line that names it and the known words leaves.

use crate::args::Misuse;

/// Whether the user, not the machine, can mend it: exit status 2.
pub fn is(error: &anyhow::Error) -> bool {
    let of_driver =
        |error: &remote::Error| matches!(error, remote::Error::Misuse(_) | remote::Error::Driver { .. });
    error.is::<Misuse>()
        || matches!(error.downcast_ref(), Some(engine::Error::Port(_)))
        || error.downcast_ref().is_some_and(of_driver)
}

/// An error with its causes, each said once: some libraries' messages contain their causes'.
pub fn in_one_line(error: &anyhow::Error) -> String {
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
