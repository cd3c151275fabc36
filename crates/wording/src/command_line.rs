//! What clap says of a command line.

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

/// What clap has to say, in one line.
#[must_use]
pub fn said(error: &clap::Error) -> String {
    let text = error.to_string();
    let said: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    said.join(" ").trim_start_matches("error: ").to_owned()
}

/// The same, with what is known instead.
fn in_one_line(error: &clap::Error, program: &Command, words: impl Iterator<Item = String>) -> String {
    let said = said(error);
    let command = innermost(program, words);
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    let commands: Vec<String> = shown.map(|command| command.get_name().to_owned()).collect();
    let known = match error.kind() {
        ErrorKind::InvalidSubcommand => commands,
        ErrorKind::UnknownArgument if commands.is_empty() || said.contains("'-") => flags(command, program),
        ErrorKind::UnknownArgument => commands,
        _ => Vec::new(),
    };
    if known.is_empty() { said } else { format!("{said}. There are: {}", known.join(", ")) }
}

/// The flags of a command, and those of the program that all commands have.
fn flags(command: &Command, program: &Command) -> Vec<String> {
    let of_all = program.get_arguments().filter(|argument| argument.is_global_set());
    let mut flags = Vec::new();
    for flag in command.get_arguments().chain(of_all).filter_map(clap::Arg::get_long) {
        let flag = format!("--{flag}");
        if !flags.contains(&flag) {
            flags.push(flag);
        }
    }
    flags
}

/// The subcommand that the words on the command line lead to; others are flags and what belongs to them.
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

    fn words(line: &str) -> impl Iterator<Item = String> {
        line.split(' ').map(str::to_owned)
    }

    fn said_of(line: &str) -> String {
        let hidden = Command::new("secret").hide(true);
        let show = Command::new("show").subcommand(Command::new("errors")).subcommand(Command::new("fib"));
        let flag = clap::Arg::new("json").long("json").action(clap::ArgAction::SetTrue).global(true);
        let own = clap::Arg::new("file").long("file");
        let reload = Command::new("reload").arg(own);
        let program = Command::new("ctl").arg(flag).subcommands([show, reload, hidden]);
        let error = program.clone().try_get_matches_from(std::iter::once("ctl".into()).chain(words(line)));
        in_one_line(&error.unwrap_err(), &program, words(line))
    }

    #[test]
    fn what_is_not_known_is_told_with_what_is() {
        assert_eq!(said_of("nothing"), "unrecognized subcommand 'nothing'. There are: show, reload");
        assert_eq!(
            said_of("--json show nothing"),
            "unrecognized subcommand 'nothing'. There are: errors, fib"
        );
        assert_eq!(said_of("show fib --jsom"), "unexpected argument '--jsom' found. There are: --json");
        assert_eq!(said_of("reload now"), "unexpected argument 'now' found. There are: --file, --json");
    }

    #[test]
    fn the_subcommand_is_found_among_flags() {
        let program = Command::new("p").subcommand(Command::new("lab").subcommand(Command::new("up")));
        assert_eq!(innermost(&program, words("lab upp")).get_name(), "lab");
        assert_eq!(innermost(&program, words("-q lab up name")).get_name(), "up");
    }
}
