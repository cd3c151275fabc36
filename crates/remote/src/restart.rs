//! Settings that need a restart: a device enters; the device leaves after it was configured and restarted and the settings
//! were proven. When the connection ends, it restarts again, without them.
//!
//! The files that were changed for the restart are put back right after it. From then on any restart undoes everything, and
//! the shell on the device remembers to restart. So the settings stay only if Linerate is killed during the restart itself,
//! when there is no connection.

use std::thread;
use std::time::{Duration, Instant};

use crate::device::{Device, failed, read_before};
use crate::error::{Error, Result};
use crate::plan::plain;
use crate::shell::Shell;

/// How long a device may take to restart: servers test their memory.
const PATIENCE: Duration = Duration::from_mins(10);
/// How long to wait between two attempts to connect again.
const PAUSE: Duration = Duration::from_secs(1);
/// A file on the device, which says that the restart is wanted: the lost connection then undoes nothing. A restart removes it.
const FLAG: &str = "/var/run/linerate-restarts";
/// The name of the step that restarts the device at the end.
const RESTART: &str = "restart with the settings as they were";

impl<S: Shell> Device<S> {
    /// Whether its plan has settings that need a restart.
    #[must_use]
    pub fn needs_restart(&self) -> bool {
        self.plan.boots().next().is_some()
    }

    /// Makes the changes that hold from the next start on, unless all hold already, restarts the device and proves
    /// them. `connect` opens a new
    /// connection, and fails while the device is down.
    ///
    /// # Errors
    /// What failed, did not come back or did not hold.
    pub fn restart(&mut self, connect: &mut dyn FnMut() -> Result<S>) -> Result<()> {
        self.restart_within(PATIENCE, PAUSE, connect)
    }

    pub(crate) fn restart_within(
        &mut self,
        patience: Duration,
        pause: Duration,
        connect: &mut dyn FnMut() -> Result<S>,
    ) -> Result<()> {
        if !self.needs_restart() || self.prove()?.is_none() {
            return Ok(());
        }
        let undo = self.set_for_next_start()?;
        let before = self.identity()?;
        self.down()?;
        let identity = self.wait_until_up(&before, patience, pause, connect)?;
        self.restarted = Some(identity);
        // From here on any restart undoes all.
        for (what, script) in undo.iter().rev() {
            let answer = self.shell.run(script)?;
            if !answer.is_good() {
                return Err(failed(&self.shell, what, "undo", &answer));
            }
        }
        let run = self.restart_script();
        self.shell.remember(&run)?;
        self.done.push(RESTART.to_owned());
        self.prove()?.map_or(Ok(()), Err)
    }

    /// Waits until the device has restarted at the end, if it must.
    ///
    /// # Errors
    /// When it did not come back.
    pub fn wait_until_restored(&mut self, connect: &mut dyn FnMut() -> Result<S>) -> Result<()> {
        match self.restarted.take() {
            Some(before) => self.wait_until_up(&before, PATIENCE, PAUSE, connect).map(drop),
            None => Ok(()),
        }
    }

    /// Makes the changes; what undoes them leaves, with what it is for.
    fn set_for_next_start(&mut self) -> Result<Vec<(String, String)>> {
        let mut undone_by = Vec::new();
        for boot in self.plan.boots() {
            let step = &boot.step;
            let before = read_before(&mut self.shell, step)?;
            if let Some(undo) = step.undoing(&before) {
                self.shell.remember(&format!("if [ -e {FLAG} ]; then exit 0; fi\n{undo}"))?;
                self.done.push(step.what.clone());
                undone_by.push((step.what.clone(), undo));
            }
            let answer = self.shell.run(&step.doing(&before))?;
            if !answer.is_good() {
                return Err(failed(&self.shell, &step.what, &step.run, &answer));
            }
        }
        Ok(undone_by)
    }

    /// The text by which one start of the device differs from another.
    fn identity(&mut self) -> Result<String> {
        let Some(restart) = self.plan.restart() else { return Ok(String::new()) };
        let answer = self.shell.run(&plain(&restart.read))?;
        if answer.is_good() {
            Ok(answer.stdout.trim().to_owned())
        } else {
            Err(failed(&self.shell, "tell this start from others", &restart.read, &answer))
        }
    }

    /// A script that restarts the device, and ends before that.
    fn restart_script(&self) -> String {
        let run = self.plan.restart().map_or("", |restart| restart.run.as_str());
        plain(&format!(": >{FLAG}\n({{ sleep 1\n{run}\n}} >/dev/null 2>&1 &)"))
    }

    /// Begins to restart the device.
    fn down(&mut self) -> Result<()> {
        let script = self.restart_script();
        let answer = self.shell.run(&script)?;
        if !answer.is_good() {
            return Err(failed(&self.shell, "restart", &script, &answer));
        }
        // What was remembered has no effect any more.
        self.done.clear();
        Ok(())
    }

    /// Connects again until the device has started anew since `before`; what its start is told by leaves.
    fn wait_until_up(
        &mut self,
        before: &str,
        patience: Duration,
        pause: Duration,
        connect: &mut dyn FnMut() -> Result<S>,
    ) -> Result<String> {
        let deadline = Instant::now() + patience;
        let mut reason = "it never went down".to_owned();
        while Instant::now() < deadline {
            thread::sleep(pause);
            match connect() {
                Ok(shell) => {
                    self.shell = shell;
                    match self.shell.begin_with(&self.plan.preamble()).and_then(|()| self.identity()) {
                        Ok(identity) if identity != before => return Ok(identity),
                        Ok(_) => {}
                        Err(error) => reason = error.to_string(),
                    }
                }
                Err(error) => reason = error.to_string(),
            }
        }
        let host = self.shell.host().to_owned();
        let reason =
            format!("it did not come back from a restart within {patience:?} ({reason}): have a look at it");
        Err(Error::Lost { host, reason })
    }

    /// The settings that the running device does not have; empty if it has all.
    fn prove(&mut self) -> Result<Option<Error>> {
        for boot in self.plan.boots() {
            let answer = self.shell.run(&plain(&boot.prove))?;
            if !answer.is_good() {
                return Ok(Some(Error::Unproven {
                    host: self.shell.host().to_owned(),
                    what: format!("'{}'", boot.step.what),
                    said: answer.said(),
                    remedy: "Does its boot loader read what was written? 'linerate remote plan' prints it"
                        .to_owned(),
                }));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::driver::Driver;
    use crate::plan::Plan;
    use crate::shell::Answer;

    /// A device whose setting holds from the next start on.
    #[derive(Debug, Default)]
    struct Computer {
        log: Vec<String>,
        starts: u32,
        is_down: u32,
        written: bool,
        running: bool,
        ignores: bool,
    }

    #[derive(Clone, Debug)]
    struct Connection(Rc<RefCell<Computer>>, Vec<String>);

    impl Shell for Connection {
        fn begin_with(&mut self, _: &str) -> Result<()> {
            Ok(())
        }

        fn run(&mut self, script: &str) -> Result<Answer> {
            let mut computer = self.0.borrow_mut();
            let last = script.lines().last().unwrap_or_default().to_owned();
            let mut answer = Answer::default();
            match last.as_str() {
                "set" => computer.written = true,
                "unset" => computer.written = false,
                "boots" => answer.stdout = format!("{}\n", computer.starts),
                "is-set" if !computer.running => answer.status = 1,
                _ if script.contains("reboot") => {
                    computer.starts += 1;
                    computer.is_down = 2;
                    computer.running = computer.written && !computer.ignores;
                }
                _ => {}
            }
            computer.log.push(last);
            Ok(answer)
        }

        fn remember(&mut self, script: &str) -> Result<()> {
            self.1.push(script.to_owned());
            Ok(())
        }

        fn undo(&mut self) -> Result<Answer> {
            let script = self.1.pop().unwrap();
            self.run(&script)
        }

        fn host(&self) -> &str {
            "dut"
        }
    }

    const TEXT: &str = "name = 'x'\ntitle = 'X'\n[restart]\nread = 'boots'\nrun = 'reboot'\n\
                        [[boot]]\nwhat = 'set it'\nrun = 'set'\nundo = 'unset'\nprove = 'is-set'\n";

    fn restarted(computer: &Rc<RefCell<Computer>>) -> (Device<Connection>, Result<()>) {
        let plan = Plan::new(Driver::parse("x.toml", TEXT, false).unwrap(), &[]).unwrap();
        let connection = Connection(Rc::clone(computer), Vec::new());
        let mut device = Device::check(connection, plan).unwrap();
        let mut connect = reconnect(computer);
        let result = device.restart_within(Duration::from_secs(5), Duration::from_millis(1), &mut connect);
        (device, result)
    }

    fn reconnect(computer: &Rc<RefCell<Computer>>) -> impl FnMut() -> Result<Connection> {
        let computer = Rc::clone(computer);
        move || {
            let down = computer.borrow().is_down;
            computer.borrow_mut().is_down = down.saturating_sub(1);
            let lost = || Error::Lost { host: "dut".to_owned(), reason: "refused".to_owned() };
            if down > 0 { Err(lost()) } else { Ok(Connection(Rc::clone(&computer), Vec::new())) }
        }
    }

    #[test]
    fn a_setting_is_made_proven_and_put_back_by_a_restart() {
        let computer = Rc::default();
        let (mut device, result) = restarted(&computer);
        result.unwrap();
        let Computer { written, running, starts, .. } = *computer.borrow();
        assert_eq!((written, running, starts), (false, true, 1), "what was written is put back at once");
        assert_eq!(device.undo().unwrap(), [""; 0]);
        device.wait_until_restored(&mut reconnect(&computer)).unwrap();
        let Computer { written, running, starts, .. } = *computer.borrow();
        assert_eq!((written, running, starts), (false, false, 2));
    }

    #[test]
    fn a_setting_that_does_not_hold_is_refused_and_still_put_back() {
        let computer = Rc::new(RefCell::new(Computer { ignores: true, ..Computer::default() }));
        let (mut device, result) = restarted(&computer);
        let error = result.unwrap_err().to_string();
        assert!(error.starts_with("dut: 'set it' did not hold after the restart"), "{error}");
        assert!(!computer.borrow().written);
        device.undo().unwrap();
        assert_eq!(computer.borrow().starts, 2);
    }

    #[test]
    fn what_holds_already_needs_no_restart() {
        let computer = Rc::new(RefCell::new(Computer { running: true, ..Computer::default() }));
        let (_, result) = restarted(&computer);
        result.unwrap();
        assert_eq!(
            (computer.borrow().starts, computer.borrow().log.as_slice()),
            (0, &["is-set".to_owned()][..])
        );
    }

    #[test]
    fn what_the_lost_connection_would_undo_stays_while_it_restarts() {
        let computer = Rc::default();
        let plan = Plan::new(Driver::parse("x.toml", TEXT, false).unwrap(), &[]).unwrap();
        let mut device = Device::check(Connection(Rc::clone(&computer), Vec::new()), plan).unwrap();
        device.set_for_next_start().unwrap();
        assert!(device.shell.1[0].starts_with(&format!("if [ -e {FLAG} ]")), "{:?}", device.shell.1);
    }
}
