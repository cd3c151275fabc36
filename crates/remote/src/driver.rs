//! A driver: TOML enters; parameters, checks, steps with what undoes them, and readings leave, or which
//! line is wrong and what to write instead.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use crate::error::{Error, Result};
use crate::variables;

/// The drivers that are built in: name and text.
const BUILTIN: [(&str, &str); 3] = [
    ("linux", include_str!("../../../drivers/linux.toml")),
    ("freebsd", include_str!("../../../drivers/freebsd.toml")),
    ("vpp", include_str!("../../../drivers/vpp.toml")),
];
/// The variable that holds, in `run` and `undo`, what `read` printed.
const BEFORE: &str = "before";
/// The variable that holds, in what takes stacks, for how many seconds.
pub const SECONDS: &str = "seconds";

/// How a kind of device is configured, described and counted: shell commands that run on it, in which
/// parameters are variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub title: String,
    /// Its text.
    pub text: String,
    /// Whether it came with this program.
    pub is_builtin: bool,
    /// What the user may set.
    pub parameters: Vec<Parameter>,
    pub(crate) tools: Vec<String>,
    pub(crate) functions: String,
    pub(crate) checks: Vec<Check>,
    pub(crate) steps: Vec<Step>,
    pub(crate) restart: Option<Restart>,
    pub(crate) boots: Vec<Boot>,
    pub(crate) fingerprint: Vec<Reading>,
    pub(crate) counters: Vec<Reading>,
    pub(crate) cores: Vec<Reading>,
    pub(crate) queues: Vec<Reading>,
    pub(crate) nodes: Vec<Reading>,
    pub(crate) stacks: Vec<Reading>,
}

/// What the user may set.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its name, and that of the variable that holds it.
    pub name: String,
    /// What it says.
    pub about: String,
    /// What it is unless the user sets it; the user must, where this is absent.
    pub default: Option<String>,
    /// What it can be, if not anything.
    #[serde(default)]
    pub choices: Vec<String>,
}

/// What must be so before anything is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub what: String,
    pub when: Vec<Condition>,
    pub run: String,
    pub remedy: String,
}

/// A change, and what undoes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub what: String,
    pub when: Vec<Condition>,
    /// Tells what is so before.
    pub read: String,
    pub run: String,
    /// Nothing if it is empty.
    pub undo: String,
}

/// How the device is restarted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart {
    /// Prints what is another text after each start.
    pub read: String,
    pub run: String,
}

/// A change that holds from the next start on, and what proves it then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    pub step: Step,
    pub prove: String,
}

/// What is read from the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    pub name: String,
    pub when: Vec<Condition>,
    pub run: String,
}

/// Holds when the parameter has one of the values, or, without values, when it has any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub parameter: String,
    pub values: Vec<String>,
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: String,
    title: String,
    #[serde(default)]
    tools: Vec<String>,
    functions: Option<Spanned<String>>,
    #[serde(default)]
    parameters: Vec<Spanned<Parameter>>,
    #[serde(default)]
    checks: Vec<CheckEntry>,
    #[serde(default)]
    apply: Vec<StepEntry>,
    restart: Option<RestartEntry>,
    #[serde(default)]
    boot: Vec<Spanned<BootEntry>>,
    #[serde(default)]
    fingerprint: Vec<ReadingEntry>,
    #[serde(default)]
    counters: Vec<ReadingEntry>,
    #[serde(default)]
    cores: Vec<ReadingEntry>,
    #[serde(default)]
    queues: Vec<ReadingEntry>,
    #[serde(default)]
    nodes: Vec<ReadingEntry>,
    #[serde(default)]
    stacks: Vec<ReadingEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckEntry {
    what: String,
    when: Option<Spanned<Vec<String>>>,
    run: Spanned<String>,
    remedy: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepEntry {
    what: String,
    when: Option<Spanned<Vec<String>>>,
    read: Option<Spanned<String>>,
    run: Spanned<String>,
    undo: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RestartEntry {
    read: Spanned<String>,
    run: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BootEntry {
    what: String,
    when: Option<Spanned<Vec<String>>>,
    read: Option<Spanned<String>>,
    run: Spanned<String>,
    undo: Spanned<String>,
    prove: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadingEntry {
    name: String,
    when: Option<Spanned<Vec<String>>>,
    run: Spanned<String>,
}

impl Driver {
    /// The drivers that are built in.
    ///
    /// # Errors
    /// None, as a test says.
    pub fn builtin() -> Result<Vec<Self>> {
        let parse = |(name, text): &(&str, &str)| Self::parse(name, text, true);
        BUILTIN.iter().map(parse).collect()
    }

    /// The built-in driver `name`, or the one in the file `name` if it ends in `.toml` or has a `/`.
    ///
    /// # Errors
    /// When there is none, or its text is wrong.
    pub fn open(name: &str) -> Result<Self> {
        if name.ends_with(".toml") || name.contains('/') {
            let text =
                foreign::file::read_text(Path::new(name), foreign::file::LONGEST_TEXT).map_err(|error| {
                    Error::Misuse(format!("cannot read the driver {name} ({error}): check its name"))
                })?;
            return Self::parse(name, &text, false);
        }
        let Some((_, text)) = BUILTIN.iter().find(|(known, _)| *known == name) else {
            let known = BUILTIN.map(|(name, _)| name).join(", ");
            return Err(Error::Misuse(format!(
                "there is no driver '{name}': known are {known}, and files that end in .toml"
            )));
        };
        Self::parse(name, text, true)
    }

    /// The driver in `text`, which is told from others by `origin`.
    ///
    /// # Errors
    /// Which line of it is wrong, why, and what to write instead.
    pub fn parse(origin: &str, text: &str, is_builtin: bool) -> Result<Self> {
        let source = Source { origin, text };
        let document: Document = toml::from_str(text).map_err(|error| {
            let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
            source.error(error.span().map_or(0, |span| span.start), message)
        })?;
        source.driver(document, is_builtin)
    }

    /// Whether it has this parameter.
    #[must_use]
    pub fn has(&self, parameter: &str) -> bool {
        self.parameters.iter().any(|known| known.name == parameter)
    }
}

/// The text that values come from.
struct Source<'a> {
    origin: &'a str,
    text: &'a str,
}

/// What commands may use.
struct Known<'a> {
    parameters: &'a [Parameter],
    functions: &'a str,
}

impl Source<'_> {
    /// An error at byte `offset` of the text.
    fn error(&self, offset: usize, reason: impl Into<String>) -> Error {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Error::Driver { origin: self.origin.to_owned(), line, reason: reason.into() }
    }

    fn driver(&self, document: Document, is_builtin: bool) -> Result<Driver> {
        let parameters = self.parameters(&document.parameters)?;
        let functions = document.functions.as_ref().map_or("", |written| written.get_ref());
        let known = Known { parameters: &parameters, functions };
        if let Some(written) = &document.functions {
            // What a function sets is not used from outside.
            self.check_variables(written, &[], &known)?;
        }
        let checks = document.checks.iter().map(|entry| {
            Ok(Check {
                what: entry.what.clone(),
                when: self.conditions(entry.when.as_ref(), &known)?,
                run: self.command(&entry.run, &[], &known)?,
                remedy: entry.remedy.clone(),
            })
        });
        let steps = document.apply.iter().map(|entry| self.step(entry, &known));
        let restart = document.restart.as_ref().map(|entry| {
            let (read, run) =
                (self.command(&entry.read, &[], &known)?, self.command(&entry.run, &[], &known)?);
            Ok(Restart { read, run })
        });
        let boots = document.boot.iter().map(|entry| {
            if document.restart.is_none() {
                let reason = "[[boot]] holds from the next start on: add [restart] with `read` and `run`";
                return Err(self.error(entry.span().start, reason));
            }
            let BootEntry { what, when, read, run, undo, prove } = entry.get_ref();
            let step = StepEntry {
                what: what.clone(),
                when: when.clone(),
                read: read.clone(),
                run: run.clone(),
                undo: undo.clone(),
            };
            Ok(Boot { step: self.step(&step, &known)?, prove: self.command(prove, &[], &known)? })
        });
        let readings_with = |entries: &[ReadingEntry], own: &[&str]| -> Result<Vec<Reading>> {
            let reading = |entry: &ReadingEntry| {
                Ok(Reading {
                    name: entry.name.clone(),
                    when: self.conditions(entry.when.as_ref(), &known)?,
                    run: self.command(&entry.run, own, &known)?,
                })
            };
            entries.iter().map(reading).collect()
        };
        let readings = |entries: &[ReadingEntry]| readings_with(entries, &[]);
        Ok(Driver {
            checks: checks.collect::<Result<_>>()?,
            steps: steps.collect::<Result<_>>()?,
            restart: restart.transpose()?,
            boots: boots.collect::<Result<_>>()?,
            fingerprint: readings(&document.fingerprint)?,
            counters: readings(&document.counters)?,
            cores: readings(&document.cores)?,
            queues: readings(&document.queues)?,
            nodes: readings(&document.nodes)?,
            stacks: readings_with(&document.stacks, &[SECONDS])?,
            functions: functions.to_owned(),
            parameters: parameters.clone(),
            name: document.name,
            title: document.title,
            text: self.text.to_owned(),
            is_builtin,
            tools: document.tools,
        })
    }

    fn parameters(&self, written: &[Spanned<Parameter>]) -> Result<Vec<Parameter>> {
        let mut names = BTreeSet::new();
        for entry in written {
            let (parameter, at) = (entry.get_ref(), entry.span().start);
            let Parameter { name, default, choices, .. } = parameter;
            if !variables::is_name(name) || [BEFORE, SECONDS].contains(&name.as_str()) {
                let reason = format!(
                    "'{name}' is no name for a parameter: write small letters, digits and _, but not {BEFORE} or {SECONDS}"
                );
                return Err(self.error(at, reason));
            }
            if !names.insert(name) {
                return Err(self.error(at, format!("there are two parameters '{name}': rename one")));
            }
            let is_choice = default.as_ref().is_none_or(|default| choices.contains(default));
            if !choices.is_empty() && !is_choice {
                let reason = format!("the default of '{name}' is none of its choices: add it to them");
                return Err(self.error(at, reason));
            }
        }
        Ok(written.iter().map(|entry| entry.get_ref().clone()).collect())
    }

    fn step(&self, entry: &StepEntry, known: &Known) -> Result<Step> {
        let own: &[&str] = if entry.read.is_some() { &[BEFORE] } else { &[] };
        let read = match &entry.read {
            Some(read) => self.command(read, &[], known)?,
            None => String::new(),
        };
        let undo = entry.undo.get_ref().trim();
        if !undo.is_empty() {
            self.command(&entry.undo, own, known)?;
        }
        Ok(Step {
            what: entry.what.clone(),
            when: self.conditions(entry.when.as_ref(), known)?,
            read,
            run: self.command(&entry.run, own, known)?,
            undo: undo.to_owned(),
        })
    }

    /// A command that is there, and uses only what is known and its `own` variables.
    fn command(&self, written: &Spanned<String>, own: &[&str], known: &Known) -> Result<String> {
        let text = written.get_ref().trim();
        if text.is_empty() {
            return Err(self.error(written.span().start, "the command is empty: write what to run"));
        }
        self.check_variables(written, own, known)?;
        Ok(text.to_owned())
    }

    fn check_variables(&self, written: &Spanned<String>, own: &[&str], known: &Known) -> Result<()> {
        let is_parameter = |name: &str| known.parameters.iter().any(|parameter| parameter.name == name);
        // Functions may leave something in variables for those that call them.
        let is_set = |name: &str| !variables::used(&format!("{}\n${name}", known.functions)).contains(name);
        let unknown = variables::used(written.get_ref())
            .into_iter()
            .find(|name| !own.contains(&name.as_str()) && !is_parameter(name) && !is_set(name));
        let Some(name) = unknown else { return Ok(()) };
        let reason = match (name.as_str(), own.is_empty()) {
            (BEFORE, true) => "$before is what `read` printed, and there is none: add one".to_owned(),
            _ => format!("${name} is no parameter: there are {}", names(known.parameters)),
        };
        Err(self.error(written.span().start, reason))
    }

    fn conditions(&self, written: Option<&Spanned<Vec<String>>>, known: &Known) -> Result<Vec<Condition>> {
        let Some(written) = written else { return Ok(Vec::new()) };
        let condition = |text: &String| {
            let (name, values) = match text.split_once('=') {
                Some((name, values)) => (name, values.split('|').map(str::to_owned).collect()),
                None => (text.as_str(), Vec::new()),
            };
            let at = written.span().start;
            let Some(parameter) = known.parameters.iter().find(|parameter| parameter.name == name) else {
                let reason = format!("there is no parameter '{name}': there are {}", names(known.parameters));
                return Err(self.error(at, reason));
            };
            let impossible = |value: &&String| !parameter.choices.contains(value);
            if let Some(value) = values.iter().find(impossible).filter(|_| !parameter.choices.is_empty()) {
                let reason = format!("'{name}' is never '{value}': it is {}", parameter.choices.join(" or "));
                return Err(self.error(at, reason));
            }
            Ok(Condition { parameter: name.to_owned(), values })
        };
        written.get_ref().iter().map(condition).collect()
    }
}

/// The names of parameters, for messages.
pub fn names(parameters: &[Parameter]) -> String {
    match parameters {
        [] => "none".to_owned(),
        parameters => {
            parameters.iter().map(|parameter| parameter.name.as_str()).collect::<Vec<_>>().join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "name = 'x'\ntitle = 'X'\n[[parameters]]\nname = 'port0'\nabout = 'a port'\n\
                        [[parameters]]\nname = 'mode'\nabout = 'b'\ndefault = 'a'\nchoices = ['a', 'b']\n";

    fn refused(text: &str) -> String {
        Driver::parse("x.toml", &format!("{HEAD}{text}"), false).unwrap_err().to_string()
    }

    #[test]
    fn the_drivers_that_are_built_in_are_sound() {
        for driver in Driver::builtin().unwrap() {
            assert_eq!(Driver::open(&driver.name).unwrap(), driver);
            for name in ["port0", "port1"] {
                assert!(driver.has(name), "{}", driver.name);
            }
            assert!(
                !driver.fingerprint.is_empty() && !driver.counters.is_empty() && !driver.checks.is_empty()
            );
            for parameter in &driver.parameters {
                assert!(!parameter.about.is_empty(), "{} {}", driver.name, parameter.name);
            }
        }
    }

    #[test]
    fn a_driver_that_is_not_there_is_told_with_those_that_are() {
        let unknown = Driver::open("openbsd").unwrap_err().to_string();
        assert_eq!(
            unknown,
            "there is no driver 'openbsd': known are linux, freebsd, vpp, and files that end in .toml"
        );
        assert!(Driver::open("none/such.toml").unwrap_err().to_string().contains("check its name"));
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        let apply = "[[apply]]\nwhat = 'up'\n";
        assert_eq!(
            refused(&format!("{apply}run = 'ip link set $prot0 up'\nundo = ''\n")),
            "x.toml:13: $prot0 is no parameter: there are port0, mode"
        );
        assert_eq!(
            refused(&format!("{apply}run = 'true'\nundo = 'echo $before'\n")),
            "x.toml:14: $before is what `read` printed, and there is none: add one"
        );
        assert_eq!(
            refused(&format!("{apply}when = ['mode=c']\nrun = 'true'\nundo = ''\n")),
            "x.toml:13: 'mode' is never 'c': it is a or b"
        );
        assert_eq!(
            refused(&format!("{apply}when = ['modes=a']\nrun = 'true'\nundo = ''\n")),
            "x.toml:13: there is no parameter 'modes': there are port0, mode"
        );
        let forgotten = refused(&format!("{apply}run = 'true'\n"));
        assert!(forgotten.starts_with("x.toml:11: ") && forgotten.contains("undo"), "{forgotten}");
        let unknown = refused("[[applies]]\nwhat = 'up'\n");
        assert!(unknown.starts_with("x.toml:11: ") && unknown.contains("applies"), "{unknown}");
        assert!(
            refused(&format!("{apply}run = ' '\nundo = ''\n")).contains("x.toml:13: the command is empty")
        );
        assert!(refused("[[parameters]]\nname = 'Mode'\nabout = ''\n").contains("no name for a parameter"));
        assert!(refused("[[parameters]]\nname = 'mode'\nabout = ''\n").contains("two parameters"));
        assert!(refused("[[fingerprint]\n").starts_with("x.toml:11: "));
    }

    #[test]
    fn settings_that_need_a_restart_need_a_way_to_restart_and_a_proof() {
        let boot = "[[boot]]\nwhat = 'x'\nrun = 'set'\nundo = 'unset'\nprove = 'is-set $mode'\n";
        assert!(refused(boot).starts_with("x.toml:11: [[boot]] holds from the next start on: add [restart]"));
        let restart = "[restart]\nread = 'boots'\nrun = 'reboot'\n";
        let driver = Driver::parse("x.toml", &format!("{HEAD}{restart}{boot}"), false).unwrap();
        assert_eq!((driver.boots.len(), driver.boots[0].prove.as_str()), (1, "is-set $mode"));
        let without = refused(&format!("{restart}{}", boot.replace("prove", "proof")));
        assert!(without.contains("proof"), "{without}");
    }

    #[test]
    fn variables_of_functions_and_of_read_may_be_used() {
        let text = format!(
            "functions = 'find() {{ found=1; }}'\n{HEAD}[[apply]]\nwhat = 'a'\nread = 'cat x'\n\
             run = 'find; echo $found $before'\nundo = 'echo $before > x'\n"
        );
        let driver = Driver::parse("x.toml", &text, false).unwrap();
        assert_eq!((driver.steps.len(), driver.steps[0].undo.as_str()), (1, "echo $before > x"));
    }
}
