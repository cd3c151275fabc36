//! Errors for people: whatever went wrong enters, one line that names it and the known words leaves.

use std::process::ExitCode;

use clap::Command;
use clap::error::ErrorKind;

use crate::args::Misuse;

/// Prints what clap has to say: help as it is, an error as one line with what is known instead.
pub fn explain(error: &clap::Error, program: &Command) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // Help that cannot be printed helps nobody.
        let _ = error.print();
        return ExitCode::from(u8::from(error.use_stderr()) * 2);
    }
    let said = said(error);
    let command = innermost(program, std::env::args().skip(1));
    let known: Vec<String> = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
            shown.map(|command| command.get_name().to_owned()).collect()
        }
        ErrorKind::UnknownArgument => {
            let flags = command.get_arguments().filter_map(clap::Arg::get_long);
            flags.map(|flag| format!("--{flag}")).collect()
        }
        _ => Vec::new(),
    };
    match known.as_slice() {
        [] => eprintln!("linerate: {said}"),
        known => eprintln!("linerate: {said}. There are: {}", known.join(", ")),
    }
    ExitCode::from(2)
}

/// What clap has to say, in one line.
pub fn said(error: &clap::Error) -> String {
    let text = error.to_string();
    let said: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    said.join(" ").trim_start_matches("error: ").to_owned()
}

/// The subcommand that the words on the command line lead to.
fn innermost(program: &Command, words: impl Iterator<Item = String>) -> &Command {
    let mut command = program;
    for word in words {
        match command.find_subcommand(&word) {
            Some(subcommand) => command = subcommand,
            None if word.starts_with('-') => {}
            None => break,
        }
    }
    command
}

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

    #[test]
    fn the_subcommand_is_found_among_flags() {
        let program = Command::new("p").subcommand(Command::new("lab").subcommand(Command::new("up")));
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>().into_iter();
        assert_eq!(innermost(&program, words("lab upp")).get_name(), "lab");
        assert_eq!(innermost(&program, words("-q lab up name")).get_name(), "up");
    }
}
