//! A device that a plan is carried out on: a shell on it and a plan enter; a checked, described and
//! configured device leaves, which is undone step by step.

use std::collections::BTreeMap;

use crate::counters::{self, Counted, Counters};
use crate::driver::Step;
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::shell::Shell;

/// The most of one fingerprint that is kept, in bytes.
const MOST: usize = 8 << 10;

/// A device under test. When it is dropped without [`undo`](Self::undo), the device undoes itself what was
/// done to it, as the shell promises.
#[derive(Debug)]
pub struct Device<S> {
    pub(crate) shell: S,
    pub(crate) plan: Plan,
    /// What the steps are for that the shell remembers how to undo.
    pub(crate) done: Vec<String>,
    /// What its start is told from others by, once it was restarted and is to be restarted at the end.
    pub(crate) restarted: Option<String>,
}

impl<S: Shell> Device<S> {
    /// The device behind `shell`, found to be what the driver is for. Nothing is changed.
    ///
    /// # Errors
    /// What is not as it must be, with the remedy.
    pub fn check(mut shell: S, plan: Plan) -> Result<Self> {
        shell.begin_with(&plan.preamble())?;
        for (check, remedy) in plan.checks() {
            let answer = shell.run(&check.text)?;
            if !answer.is_good() {
                let said = answer.said();
                let said = if answer.stderr.trim().is_empty() && answer.stdout.trim().is_empty() {
                    String::new()
                } else {
                    format!(" ({said})")
                };
                let (host, what, remedy) = (shell.host().to_owned(), check.what, remedy.to_owned());
                return Err(Error::Unfit { host, what, said, remedy });
            }
        }
        Ok(Self { shell, plan, done: Vec::new(), restarted: None })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The device's name.
    pub fn host(&self) -> &str {
        self.shell.host()
    }

    /// Configures the device: what undoes a step is remembered before the step is done.
    ///
    /// # Errors
    /// The step that failed, after which none is done. What was done until then is undone, as ever.
    pub fn apply(&mut self) -> Result<()> {
        for step in self.plan.steps() {
            let before = read_before(&mut self.shell, step)?;
            if let Some(undo) = step.undoing(&before) {
                self.shell.remember(&undo)?;
                self.done.push(step.what.clone());
            }
            let answer = self.shell.run(&step.doing(&before))?;
            if !answer.is_good() {
                // Half done, perhaps: what undoes it may fail, which is no news.
                if self.done.last() == Some(&step.what) {
                    self.done.pop();
                    self.shell.undo()?;
                }
                return Err(failed(&self.shell, &step.what, &step.run, &answer));
            }
        }
        Ok(())
    }

    /// Runs a command of the user, which nothing undoes.
    ///
    /// # Errors
    /// That it failed, or that the connection is lost.
    pub fn run(&mut self, what: &str, command: &str) -> Result<()> {
        let answer = self.shell.run(command)?;
        if answer.is_good() { Ok(()) } else { Err(failed(&self.shell, what, command, &answer)) }
    }

    /// What the device is, by name. What it does not tell is there too, with the reason.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn fingerprint(&mut self) -> Result<BTreeMap<String, String>> {
        let mut found = BTreeMap::new();
        for reading in self.plan.fingerprint() {
            let answer = self.shell.run(&reading.text)?;
            let text = match answer.is_good() {
                true => shortened(answer.stdout.trim()),
                false => format!("unknown: {}", answer.said()),
            };
            if !text.is_empty() {
                found.insert(reading.what, text);
            }
        }
        Ok(found)
    }

    /// What the device has counted so far. What it does not tell is not there.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn counters(&mut self) -> Result<Counted> {
        let scripts = [
            self.plan.counters().collect(),
            self.plan.cores().collect(),
            self.plan.queues().collect::<Vec<_>>(),
        ];
        let [counters, cores, queues] = scripts.map(|scripts| {
            let mut found = Counters::new();
            for reading in scripts {
                let answer = self.shell.run(&reading.text)?;
                if answer.is_good() {
                    found.extend(counters::parse(&answer.stdout, &reading.what));
                }
            }
            Ok(found)
        });
        Ok(Counted { counters: counters?, cores: counters::by_core(&cores?), queues: queues? })
    }

    /// What the nodes of the device's graph have done so far, as its driver prints it; empty where it prints nothing.
    ///
    /// # Errors
    /// What failed, or that the connection is lost.
    pub fn nodes(&mut self) -> Result<String> {
        let mut text = String::new();
        for reading in self.plan.nodes() {
            let answer = self.shell.run(&reading.text)?;
            if !answer.is_good() {
                let command = reading.text.lines().last().unwrap_or_default();
                return Err(failed(&self.shell, &reading.what, command, &answer));
            }
            text += &answer.stdout;
        }
        Ok(text)
    }

    /// Leaves what was done as it is: the device goes as a whole.
    pub fn forget(&mut self) {
        self.done.clear();
    }

    /// Undoes what was done, the last step first; all of them, even if one fails. What could not be undone
    /// leaves, in words.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn undo(&mut self) -> Result<Vec<String>> {
        let mut failures = Vec::new();
        while let Some(what) = self.done.pop() {
            // Without a connection the device does the rest itself.
            let answer = self.shell.undo().inspect_err(|_| self.done.clear())?;
            if !answer.is_good() {
                failures.push(format!(
                    "{}: '{what}' could not be undone ({}): undo it by hand",
                    self.shell.host(),
                    answer.said()
                ));
            }
        }
        Ok(failures)
    }
}

/// What a step reads before it changes anything; nothing where it reads nothing.
pub(crate) fn read_before(shell: &mut impl Shell, step: &Step) -> Result<String> {
    let Some(script) = step.reading() else { return Ok(String::new()) };
    let answer = shell.run(&script)?;
    if answer.is_good() {
        Ok(answer.stdout.trim_end().to_owned())
    } else {
        Err(failed(shell, &step.what, &step.read, &answer))
    }
}

pub(crate) fn failed(shell: &impl Shell, what: &str, command: &str, answer: &crate::Answer) -> Error {
    Error::Failed {
        host: shell.host().to_owned(),
        what: what.to_owned(),
        command: command.lines().next().unwrap_or_default().to_owned(),
        status: answer.status,
        said: answer.said(),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().find(|(at, _)| *at >= MOST) {
        Some((end, _)) => format!("{} …", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;
    use crate::shell::Answer;

    /// A shell that notes the last line of each script, and fails those that contain a text.
    #[derive(Debug, Default)]
    struct Simulated {
        log: Vec<String>,
        remembered: Vec<String>,
        fails: &'static str,
    }

    impl Simulated {
        fn answer(&mut self, kind: &str, script: &str) -> Answer {
            let last = script.lines().last().unwrap_or_default();
            self.log.push(format!("{kind} {last}"));
            let stdout = match last {
                "tell" => "7\n".to_owned(),
                "count" => format!("drops {}\n", self.log.len()),
                "top" => "3 busy 50\n".to_owned(),
                "statistics" => "port0 rx_queue_1_packets: 60\n".to_owned(),
                _ => String::new(),
            };
            let fails = !self.fails.is_empty() && last.contains(self.fails);
            Answer { stdout, stderr: "cannot\n".repeat(usize::from(fails)), status: i32::from(fails) }
        }
    }

    impl Shell for Simulated {
        fn begin_with(&mut self, _: &str) -> Result<()> {
            Ok(())
        }

        fn run(&mut self, script: &str) -> Result<Answer> {
            Ok(self.answer("run", script))
        }

        fn remember(&mut self, script: &str) -> Result<()> {
            self.remembered.push(script.to_owned());
            Ok(())
        }

        fn undo(&mut self) -> Result<Answer> {
            let script = self.remembered.pop().unwrap();
            Ok(self.answer("undo", &script))
        }

        fn host(&self) -> &str {
            "dut"
        }
    }

    const TEXT: &str = r#"
        name = "x"
        title = "X"
        [[checks]]
        what = "it is X"
        run = "is-x"
        remedy = "Get one"
        [[apply]]
        what = "one"
        read = "tell"
        run = "do one"
        undo = "undo one from $before"
        [[apply]]
        what = "two"
        run = "do two"
        undo = "undo two"
        [[apply]]
        what = "three"
        run = "do three"
        undo = ""
        [[fingerprint]]
        name = "seven"
        run = "tell"
        [[fingerprint]]
        name = "eight"
        run = "tell eight"
        [[counters]]
        name = "c"
        run = "count"
        [[cores]]
        name = "k"
        run = "top"
        [[queues]]
        name = "q"
        run = "statistics"
        [[nodes]]
        name = "n"
        run = "show"
    "#;

    fn device(fails: &'static str) -> Result<Device<Simulated>> {
        let plan = Plan::new(Driver::parse("x.toml", TEXT, false).unwrap(), &[]).unwrap();
        Device::check(Simulated { fails, ..Simulated::default() }, plan)
    }

    #[test]
    fn what_is_done_is_undone_in_reverse() {
        let mut device = device("").unwrap();
        device.apply().unwrap();
        assert_eq!(device.undo().unwrap(), [""; 0]);
        assert_eq!(
            device.shell.log,
            [
                "run is-x",
                "run tell",
                "run do one",
                "run do two",
                "run do three",
                "undo undo two",
                "undo undo one from $before"
            ]
        );
        assert_eq!(device.undo().unwrap(), [""; 0], "nothing is undone twice");
    }

    #[test]
    fn a_step_that_fails_ends_it_and_is_undone_too() {
        // What undoes it fails as well.
        let mut device = device("two").unwrap();
        let error = device.apply().unwrap_err().to_string();
        assert!(
            error.starts_with("dut: two: 'do two' failed (exit status 1): cannot. Try it there"),
            "{error}"
        );
        assert_eq!(device.undo().unwrap(), [""; 0]);
        assert_eq!(device.shell.log[3..], ["run do two", "undo undo two", "undo undo one from $before"]);
    }

    #[test]
    fn an_undo_that_fails_is_told_and_does_not_keep_others_from_being_done() {
        let mut device = device("undo two").unwrap();
        device.apply().unwrap();
        let failures = device.undo().unwrap();
        assert_eq!(failures, ["dut: 'two' could not be undone (cannot): undo it by hand"]);
        assert_eq!(device.shell.log.last().unwrap(), "undo undo one from $before");
    }

    #[test]
    fn what_remembers_the_old_value_has_it() {
        let mut device = device("").unwrap();
        device.apply().unwrap();
        assert!(device.shell.remembered[0].contains("\nbefore=7\n"), "{:?}", device.shell.remembered);
    }

    #[test]
    fn a_device_of_another_kind_is_refused_before_anything_is_done() {
        let error = device("is-x").unwrap_err().to_string();
        assert_eq!(error, "dut: check failed: it is X (cannot). Get one");
    }

    #[test]
    fn what_it_is_and_counts_is_told_and_what_it_does_not_tell_is_named() {
        let mut device = device("tell eight").unwrap();
        let found = device.fingerprint().unwrap();
        assert_eq!((found["seven"].as_str(), found["eight"].as_str()), ("7", "unknown: cannot"));
        let counted = device.counters().unwrap();
        assert_eq!((counted.counters["drops"], counted.cores[&3]["busy"]), (4, 50));
        assert_eq!(counted.queues["port0 rx_queue_1_packets"], 60);
        assert_eq!(
            (device.nodes().unwrap().as_str(), device.shell.log.last().unwrap().as_str()),
            ("", "run show")
        );
        device.shell.fails = "show";
        assert!(device.nodes().unwrap_err().to_string().starts_with("dut: n: "));
    }
}
