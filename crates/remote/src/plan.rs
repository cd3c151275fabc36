//! What a driver does with the user's options: both enter; the scripts that run on the device leave.
//!
//! A parameter becomes a variable of the shell, assigned in front of all scripts as one quoted word:
//! whatever the user writes, it stays a value and never becomes a command.

use crate::driver::{Boot, Condition, Driver, Restart, SECONDS, Step, names};
use crate::error::{Error, Result};
use crate::quote;

/// A driver with a value for each of its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    driver: Driver,
    values: Vec<(String, String)>,
}

/// A script and what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    pub what: String,
    pub text: String,
}

impl Plan {
    /// `driver` with `options`; what they do not say is as the driver has it.
    ///
    /// # Errors
    /// Misuse: an option that the driver does not know, that is there twice, is none of its choices, or is
    /// missing.
    pub fn new(driver: Driver, options: &[(String, String)]) -> Result<Self> {
        let known = names(&driver.parameters);
        for (at, (name, _)) in options.iter().enumerate() {
            if !driver.has(name) {
                let reason = format!("the driver {} has no option '{name}': it has {known}", driver.name);
                return Err(Error::Misuse(reason));
            }
            if options.iter().take(at).any(|(before, _)| before == name) {
                return Err(Error::Misuse(format!("the option '{name}' is there twice: keep one")));
            }
        }
        let value = |parameter: &crate::Parameter| {
            let given = options.iter().find(|(name, _)| *name == parameter.name).map(|(_, value)| value);
            let needed = |value: &&String| parameter.default.is_some() || !value.is_empty();
            let Some(value) = given.filter(needed).or(parameter.default.as_ref()) else {
                return Err(Error::Misuse(format!(
                    "the driver {} must know '{}', {}: give --dut-option {}=…",
                    driver.name, parameter.name, parameter.about, parameter.name
                )));
            };
            if !parameter.choices.is_empty() && !parameter.choices.contains(value) {
                let choices = parameter.choices.join(", ");
                let reason = format!("'{value}' is no {}: it is one of {choices}", parameter.name);
                return Err(Error::Misuse(reason));
            }
            Ok((parameter.name.clone(), value.clone()))
        };
        let values = driver.parameters.iter().map(value).collect::<Result<_>>()?;
        Ok(Self { driver, values })
    }

    /// The driver.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// The value of each parameter that is not empty.
    pub fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        let values = self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        values.filter(|(_, value)| !value.is_empty())
    }

    /// All that would change the device, and how it would be undone, as a script to read.
    #[must_use]
    pub fn listing(&self) -> String {
        let Driver { name, title, functions, .. } = &self.driver;
        let mut text = format!("# {name}: {title}\n{}", self.assignments());
        if !functions.is_empty() {
            text += &format!("{}\n", functions.trim());
        }
        for boot in self.boots() {
            text += &listed(&boot.step);
            text += &commented("prove: ", &boot.prove);
        }
        if let Some(restart) = self.restart().filter(|_| self.boots().next().is_some()) {
            text += &format!("\n# restart, now and at the end\n{}\n", restart.run);
        }
        self.steps().for_each(|step| text += &listed(step));
        text
    }

    /// The changes that are to be made that hold from the next start on.
    pub(crate) fn boots(&self) -> impl Iterator<Item = &Boot> {
        self.driver.boots.iter().filter(|boot| self.holds(&boot.step.when))
    }

    /// How the device is restarted.
    pub(crate) fn restart(&self) -> Option<&Restart> {
        self.driver.restart.as_ref()
    }

    /// What must be so before anything is changed, with the remedies.
    pub(crate) fn checks(&self) -> Vec<(Script, &str)> {
        let tools = self.driver.tools.iter().map(|tool| {
            let what = format!("{tool} is installed");
            (
                Script { what, text: format!("command -v {} >/dev/null", quote::word(tool)) },
                "Install it there",
            )
        });
        let checks = self.driver.checks.iter().filter(|check| self.holds(&check.when)).map(|check| {
            (Script { what: check.what.clone(), text: script("set -eu", &check.run) }, &*check.remedy)
        });
        // The right system first: what another one lacks is not the point.
        let mut checks: Vec<_> = checks.collect();
        let first = checks.len().min(1);
        checks.splice(first..first, tools);
        checks
    }

    /// The steps that are to be done.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.driver.steps.iter().filter(|step| self.holds(&step.when))
    }

    /// The scripts that describe the device.
    pub(crate) fn fingerprint(&self) -> impl Iterator<Item = Script> {
        self.readings(&self.driver.fingerprint)
    }

    /// The scripts that tell what the device counts.
    pub(crate) fn counters(&self) -> impl Iterator<Item = Script> {
        self.readings(&self.driver.counters)
    }

    /// The scripts that tell what each core of the device has counted.
    pub(crate) fn cores(&self) -> impl Iterator<Item = Script> {
        self.readings(&self.driver.cores)
    }

    /// The scripts that tell what the statistics of the device's queues are.
    pub(crate) fn queues(&self) -> impl Iterator<Item = Script> {
        self.readings(&self.driver.queues)
    }

    /// The scripts that tell what the nodes of the device's graph have done.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = Script> {
        self.readings(&self.driver.nodes)
    }

    /// What the scripts are called that sample where the device works for so many seconds, and the scripts, which go on nowhere
    /// that a line fails. They print folded stacks, or what `perf script` prints.
    #[must_use]
    pub fn stacks(&self, seconds: u64) -> Vec<(String, String)> {
        let stacks = self.driver.stacks.iter().filter(|stacks| self.holds(&stacks.when));
        let head = format!("set -eu\n{SECONDS}={seconds}");
        stacks.map(|stacks| (stacks.name.clone(), script(&head, &stacks.run))).collect()
    }

    fn readings<'p>(&'p self, readings: &'p [crate::driver::Reading]) -> impl Iterator<Item = Script> + 'p {
        readings
            .iter()
            .filter(|reading| self.holds(&reading.when))
            .map(|reading| Script { what: reading.name.clone(), text: script("set -u", &reading.run) })
    }

    fn holds(&self, conditions: &[Condition]) -> bool {
        conditions.iter().all(|Condition { parameter, values }| {
            let value = self.values.iter().find(|(name, _)| name == parameter).map(|(_, value)| value);
            value.is_some_and(|value| match values.as_slice() {
                [] => !value.is_empty(),
                values => values.contains(value),
            })
        })
    }

    fn assignments(&self) -> String {
        self.values.iter().map(|(name, value)| format!("{name}={}\n", quote::word(value))).collect()
    }

    /// What every script begins with: the parameters as variables, and the functions.
    #[must_use]
    pub fn preamble(&self) -> String {
        format!("{}{}\n", self.assignments(), self.driver.functions)
    }
}

/// The script of a command, which begins with the settings of the shell in `head`.
fn script(head: &str, text: &str) -> String {
    format!("{head}\n{text}")
}

/// The script of a command that knows nothing but what all begin with.
pub fn plain(command: &str) -> String {
    script("set -eu", command)
}

impl Step {
    /// The script that tells what is so before it.
    pub(crate) fn reading(&self) -> Option<String> {
        (!self.read.is_empty()).then(|| script("set -eu", &self.read))
    }

    /// The script that does it, which `reading` told `before` of.
    pub(crate) fn doing(&self, before: &str) -> String {
        script(&format!("set -eu\nbefore={}", quote::word(before)), &self.run)
    }

    /// The script that undoes it, if there is something to undo. It goes on where a line fails.
    pub(crate) fn undoing(&self, before: &str) -> Option<String> {
        let head = format!("set -u\nbefore={}", quote::word(before));
        (!self.undo.is_empty()).then(|| script(&head, &self.undo))
    }
}

/// A step as the listing has it.
fn listed(step: &Step) -> String {
    let mut text = format!("\n# {}\n", step.what);
    if !step.read.is_empty() {
        text += &format!("before=$({})\n", step.read);
    }
    text += &format!("{}\n", step.run);
    text + &commented("undo: ", &step.undo)
}

/// The lines of `command` as comments, the first after `title`.
fn commented(title: &str, command: &str) -> String {
    let blank = " ".repeat(title.len());
    let line = |(at, line)| format!("# {}{line}\n", if at == 0 { title } else { &blank });
    command.lines().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        name = "x"
        title = "X"
        tools = ["ip"]
        [[parameters]]
        name = "port0"
        about = "the interface at port 0"
        [[parameters]]
        name = "mode"
        about = "what to be"
        default = "router"
        choices = ["router", "bridge"]
        [[parameters]]
        name = "mac0"
        about = "whom to send to"
        default = ""
        [[checks]]
        what = "it is X"
        run = "test -e /x"
        remedy = "Get one"
        [[apply]]
        what = "forward"
        when = ["mode=router"]
        read = "cat forward"
        run = "echo 1 > forward"
        undo = "echo $before > forward"
        [[apply]]
        what = "neighbour"
        when = ["mac0", "mode=router"]
        run = "arp $port0 $mac0"
        undo = "arp -d $port0"
        [[apply]]
        what = "bridge"
        when = ["mode=bridge"]
        run = "bridge add $port0"
        undo = ""
    "#;

    fn plan(options: &[(&str, &str)]) -> Result<Plan> {
        let options: Vec<_> =
            options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Plan::new(Driver::parse("x.toml", TEXT, false).unwrap(), &options)
    }

    fn steps(options: &[(&str, &str)]) -> Vec<String> {
        plan(options).unwrap().steps().map(|step| step.what.clone()).collect()
    }

    #[test]
    fn steps_are_those_whose_conditions_hold() {
        assert_eq!(steps(&[("port0", "a")]), ["forward"]);
        assert_eq!(steps(&[("port0", "a"), ("mac0", "02::")]), ["forward", "neighbour"]);
        assert_eq!(steps(&[("port0", "a"), ("mode", "bridge"), ("mac0", "02::")]), ["bridge"]);
    }

    #[test]
    fn options_that_cannot_be_are_refused_with_what_can() {
        let refused = |options| plan(options).unwrap_err().to_string();
        assert_eq!(
            refused(&[("prot0", "a")]),
            "the driver x has no option 'prot0': it has port0, mode, mac0"
        );
        assert_eq!(
            refused(&[]),
            "the driver x must know 'port0', the interface at port 0: give --dut-option port0=…"
        );
        assert!(refused(&[("port0", "")]).contains("must know 'port0'"));
        assert_eq!(
            refused(&[("port0", "a"), ("mode", "hub")]),
            "'hub' is no mode: it is one of router, bridge"
        );
        assert!(refused(&[("port0", "a"), ("port0", "b")]).contains("twice"));
    }

    #[test]
    fn a_value_stays_a_value() {
        let nasty = "a'; touch /tmp/owned; $(id) \"";
        let plan = plan(&[("port0", nasty)]).unwrap();
        let script = format!("{}\n{}", plan.preamble(), script("set -eu", "printf %s \"$port0\""));
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), nasty);
    }

    #[test]
    fn undo_knows_what_was_before_and_nothing_is_undone_by_nothing() {
        let plan = plan(&[("port0", "a")]).unwrap();
        let [forward, _, bridge] = plan.driver.steps.as_slice() else { panic!() };
        assert_eq!(forward.reading().unwrap(), "set -eu\ncat forward");
        assert!(forward.undoing("it's 0").unwrap().starts_with("set -u\nbefore='it'\\''s 0'\n"));
        assert_eq!(bridge.undoing(""), None);
    }

    #[test]
    fn the_listing_is_what_runs() {
        let listing = plan(&[("port0", "my port"), ("mac0", "02::")]).unwrap().listing();
        assert_eq!(
            listing,
            "# x: X\nport0='my port'\nmode=router\nmac0=02::\n\n# forward\nbefore=$(cat forward)\n\
             echo 1 > forward\n# undo: echo $before > forward\n\n# neighbour\narp $port0 $mac0\n\
             # undo: arp -d $port0\n"
        );
    }

    #[test]
    fn the_system_is_checked_before_its_tools() {
        let plan = plan(&[("port0", "a")]).unwrap();
        let checks: Vec<_> = plan.checks().into_iter().map(|(script, _)| script.what).collect();
        assert_eq!(checks, ["it is X", "ip is installed"]);
    }
}
