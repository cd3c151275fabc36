//! Command lines that cannot be understood: what clap has to say of one enters, one line that names the
//! known words leaves.

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory, Parser};

/// The command line of this process, or how it ends: with what is wrong, or with the help asked for.
///
/// # Errors
/// The exit status: 2 if it was used wrongly.
pub fn parse<T: Parser + CommandFactory>() -> Result<T, ExitCode> {
    T::try_parse().map_err(|error| explain(&error, &T::command()))
}

fn explain(error: &clap::Error, program: &Command) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // Help that cannot be printed helps nobody.
        let _ = error.print();
        return ExitCode::from(u8::from(error.use_stderr()) * 2);
    }
    eprintln!("{}: {}", program.get_name(), in_one_line(error, program, std::env::args().skip(1)));
    ExitCode::from(2)
}

fn in_one_line(error: &clap::Error, program: &Command, words: impl Iterator<Item = String>) -> String {
    let text = error.to_string();
    let said: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let said = said.join(" ").trim_start_matches("error: ").to_owned();
    let command = innermost(program, words);
    let commands = || command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let flags = || {
        let flags = command.get_arguments().chain(program.get_arguments()).filter_map(clap::Arg::get_long);
        flags.map(|flag| format!("--{flag}")).collect()
    };
    let known: Vec<String> = match error.kind() {
        ErrorKind::InvalidSubcommand => commands(),
        ErrorKind::UnknownArgument if said.contains("'-") => flags(),
        ErrorKind::UnknownArgument => commands(),
        _ => Vec::new(),
    };
    if known.is_empty() { said } else { format!("{said}. There are: {}", known.join(", ")) }
}

/// The subcommand that the words on the command line lead to.
fn innermost(program: &Command, words: impl Iterator<Item = String>) -> &Command {
    let mut command = program;
    for word in words {
        if let Some(subcommand) = command.find_subcommand(&word) {
            command = subcommand;
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &str) -> String {
        let show = Command::new("show").subcommand(Command::new("errors")).subcommand(Command::new("fib"));
        let flag = clap::Arg::new("json").long("json").action(clap::ArgAction::SetTrue).global(true);
        let program = Command::new("ctl").arg(flag).subcommand(show).subcommand(Command::new("reload"));
        let words = || words.split(' ').map(str::to_owned);
        let error = program.clone().try_get_matches_from(std::iter::once("ctl".into()).chain(words()));
        in_one_line(&error.unwrap_err(), &program, words())
    }

    #[test]
    fn what_is_not_known_is_told_with_what_is() {
        assert_eq!(said("nothing"), "unrecognized subcommand 'nothing'. There are: show, reload");
        assert_eq!(said("--json show nothing"), "unrecognized subcommand 'nothing'. There are: errors, fib");
        assert_eq!(said("show fib --jsom"), "unexpected argument '--jsom' found. There are: --json");
    }
}
