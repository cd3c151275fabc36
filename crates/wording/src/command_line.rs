//! What clap says of a command line.

use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, FromArgMatches};

use crate::manual;

/// The command line of this process, which `program` describes, or how it ends: with what is wrong, or with the help or
/// the [`manual`] asked for.
///
/// # Errors
/// The exit status: 2 if it was used wrongly.
pub fn parse<T: FromArgMatches>(program: Command) -> Result<T, ExitCode> {
    if let Some(directory) = manual::asked_for(std::env::args_os()) {
        return Err(write_manual(&program, &directory));
    }
    let parsed = program.clone().try_get_matches().and_then(|mut found| T::from_arg_matches_mut(&mut found));
    parsed.map_err(|error| explain(&error, &program))
}

fn write_manual(program: &Command, directory: &Path) -> ExitCode {
    match manual::write(program, directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: cannot write to {}: {error}", program.get_name(), directory.display());
            ExitCode::FAILURE
        }
    }
}

/// What `--version` says: the number, and the commit where it is known. It is made once, and kept as long as the
/// program runs.
#[must_use]
pub fn version(number: &'static str, commit: Option<&str>) -> &'static str {
    match commit.filter(|commit| !commit.is_empty()) {
        Some(commit) => Box::leak(format!("{number} ({commit})").into_boxed_str()),
        None => number,
    }
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
    in_plain_words(said.join(" ").trim_start_matches("error: "))
}

/// What Rust's own parsers of numbers say, and what to do instead.
const NUMBERS: [(&str, &str); 5] = [
    ("invalid digit found in string", "write a whole number"),
    ("cannot parse integer from empty string", "write a whole number"),
    ("number too large to fit in target type", "write a smaller number"),
    ("number too small to fit in target type", "write a larger number"),
    ("invalid float literal", "write a number"),
];

/// `said` without the words that only programmers know: `0 is not in 1..=128` is `0 is outside of 1 to 128`.
fn in_plain_words(said: &str) -> String {
    let said = NUMBERS.iter().fold(said.to_owned(), |said, (theirs, ours)| said.replace(theirs, ours));
    let range =
        said.rsplit_once(" is not in ").and_then(|(before, range)| Some((before, range.split_once("..=")?)));
    match range {
        Some((before, (first, last))) => format!("{before} is outside of {first} to {last}"),
        None => said,
    }
}

/// The same, with what may have been meant, or what is known instead.
fn in_one_line(error: &clap::Error, program: &Command, words: impl Iterator<Item = String>) -> String {
    let said = said(error);
    let (command, path) = innermost(program, words);
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    let commands: Vec<&str> = shown.map(Command::get_name).collect();
    let text_of = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    // What clap finds similar is sometimes far away.
    let similar = text_of(ContextKind::SuggestedArg)
        .filter(|similar| text_of(ContextKind::InvalidArg).is_some_and(|typed| is_like(typed, similar)));
    match (error.kind(), similar) {
        (ErrorKind::UnknownArgument, Some(similar)) => {
            format!("{said}. A similar argument exists: '{similar}'")
        }
        (ErrorKind::MissingRequiredArgument, _) => format!("{said}; '{path} --help' explains them"),
        (ErrorKind::UnknownArgument, None) if commands.is_empty() || said.contains("'-") => {
            format!("{said}. '{path} --help' shows all")
        }
        (ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument, _) if !commands.is_empty() => {
            let typed = text_of(ContextKind::InvalidSubcommand).unwrap_or_default();
            match commands.iter().find(|command| is_like(typed, command)) {
                Some(similar) => format!("{said}. A similar command exists: '{similar}'"),
                None => format!("{said}. There are: {}", commands.join(", ")),
            }
        }
        _ => said,
    }
}

/// Whether `typed` may have been meant as `known`: one contains the other, or few letters differ.
fn is_like(typed: &str, known: &str) -> bool {
    let (typed, known) = (typed.trim_start_matches('-'), known.trim_start_matches('-'));
    let contains = typed.len() > 2 && (known.contains(typed) || typed.contains(known));
    contains || distance(typed, known) <= 1 + typed.len() / 4
}

/// How many letters have to be put in, left out or exchanged to make one word of the other (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let first: Vec<usize> = (0..=other.chars().count()).collect();
    let last = one.chars().enumerate().fold(first, |above, (at, letter)| {
        let mut row = vec![at + 1];
        for ((other, above), left_above) in other.chars().zip(above.iter().skip(1)).zip(&above) {
            let left = row.last().copied().unwrap_or_default();
            row.push((left_above + usize::from(letter != other)).min(above + 1).min(left + 1));
        }
        row
    });
    last.last().copied().unwrap_or_default()
}

/// The subcommand that the words on the command line lead to, and what a user types to reach it; other words are
/// flags and what belongs to them.
fn innermost(program: &Command, words: impl Iterator<Item = String>) -> (&Command, String) {
    let (mut command, mut path) = (program, program.get_name().to_owned());
    for word in words {
        if let Some(subcommand) = command.find_subcommand(&word) {
            command = subcommand;
            path += &format!(" {}", subcommand.get_name());
        }
    }
    (command, path)
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
    fn words_of_rust_become_plain() {
        assert_eq!(
            in_plain_words("'--queues <N>': 0 is not in 1..=128"),
            "'--queues <N>': 0 is outside of 1 to 128"
        );
        assert_eq!(
            in_plain_words("'--cores': invalid digit found in string"),
            "'--cores': write a whole number"
        );
        assert_eq!(in_plain_words("'x' is not in the list"), "'x' is not in the list");
    }

    #[test]
    fn what_is_not_known_is_told_with_what_is() {
        assert_eq!(said_of("nothing"), "unrecognized subcommand 'nothing'. There are: show, reload");
        assert_eq!(
            said_of("--json show nothing"),
            "unrecognized subcommand 'nothing'. There are: errors, fib"
        );
        assert_eq!(
            said_of("show fib --jsom"),
            "unexpected argument '--jsom' found. A similar argument exists: '--json'"
        );
        assert_eq!(said_of("shwo"), "unrecognized subcommand 'shwo'. A similar command exists: 'show'");
        assert_eq!(said_of("reload now"), "unexpected argument 'now' found. 'ctl reload --help' shows all");
    }

    #[test]
    fn only_what_may_have_been_meant_is_similar() {
        for (typed, known) in [
            ("--gaol", "--goal"),
            ("--bidir", "--bidirectional"),
            ("rampp", "ramp"),
            ("--frame-size", "--size"),
        ] {
            assert!(is_like(typed, known), "{typed} {known}");
        }
        for (typed, known) in [("--rate", "--duration"), ("nothing", "show"), ("-x", "--xdp"), ("", "lab")] {
            assert!(!is_like(typed, known), "{typed} {known}");
        }
        assert_eq!((distance("", "abc"), distance("kitten", "sitting"), distance("ab", "ab")), (3, 3, 0));
    }

    #[test]
    fn what_is_missing_is_told_with_where_it_is_explained() {
        let groups = clap::Arg::new("group").value_name("GROUP").required(true);
        let program = Command::new("p").subcommand(Command::new("compare").arg(groups));
        let error = program.clone().try_get_matches_from(["p", "compare"]).unwrap_err();
        let said = in_one_line(&error, &program, words("compare"));
        assert!(said.ends_with("<GROUP>; 'p compare --help' explains them"), "{said}");
    }

    #[test]
    fn the_subcommand_is_found_among_flags() {
        let program = Command::new("p").subcommand(Command::new("lab").subcommand(Command::new("up")));
        assert_eq!(innermost(&program, words("lab upp")).1, "p lab");
        assert_eq!(innermost(&program, words("-q lab up name")).1, "p lab up");
    }
}
