//! A shell on the serial console of a virtual machine: a stream to it and a login enter; a [`Shell`](crate::Shell) leaves.
//!
//! Somebody who logs in by hand would do the same: wait for a prompt, log in, start the [`keeper`](crate::keeper). The terminal is
//! set to pass everything on as it is. All waits end, and of what the machine says a bounded part is kept.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::dialogue::{Login, Next, next};
use crate::error::{Error, Result};
use crate::keeper::{self, Keeper, Streams, mark};
use crate::shell::Kept;

/// How long a console must be quiet before its last line is taken for a shell's first prompt.
const QUIET: Duration = Duration::from_millis(600);
/// How long one look at a console takes at most.
const LOOK: Duration = Duration::from_millis(50);
/// How long a console may be silent before a line break asks it for a prompt.
const SILENCE: Duration = Duration::from_secs(3);
/// How long a shell may take for its next prompt, on a host that others share.
const PROMPT: Duration = Duration::from_secs(30);
/// What is kept of what a console has shown: its end.
const KEPT: usize = 16 << 10;
/// The longest line that is typed at a prompt: editors of small shells take no more than 512 bytes.
const TYPED: usize = 200;
/// The longest line of a request. Consoles lose what comes faster than they read, beyond some kilobytes.
const LINE: usize = 1024;
/// The lines of a console that a message quotes.
const QUOTED: usize = 6;

/// A shell on a console.
#[derive(Debug)]
pub struct Console {
    stream: UnixStream,
    keeper: Keeper,
}

impl Console {
    /// Logs in at the console of `host` behind `stream` within `patience`, while `is_alive` holds.
    ///
    /// # Errors
    /// Why there is no shell, with the last lines that the console has shown, and what to do.
    pub fn open(
        stream: UnixStream,
        host: &str,
        login: &Login,
        patience: Duration,
        is_alive: &dyn Fn() -> bool,
    ) -> Result<Self> {
        let mut typist =
            Typist { stream, host, login, is_alive, shown: String::new(), shown_before: String::new() };
        typist.wait_for_shell(patience)?;
        // Those of csh's family understand this, too; what follows is for sh.
        typist.command("exec /bin/sh -i")?;
        let script = keeper::script(Streams::Together);
        typist.command("k=")?;
        let characters: Vec<char> = script.chars().collect();
        for part in characters.chunks(TYPED) {
            typist.command(&format!("k=$k'{}'", part.iter().collect::<String>()))?;
        }
        let mark = mark();
        // The shell that reads this line may read what follows it, too, before it is the keeper.
        typist
            .send(&format!("exec /bin/sh -c \"stty raw -echo; echo ready \\$1; $k\" linerate {mark} ''\n"))?;
        typist.wait_for(&format!("ready {mark}\n"))?;
        typist.into_console(&mark)
    }
}

impl Kept for Console {
    fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    fn keeper_mut(&mut self) -> &mut Keeper {
        &mut self.keeper
    }
}

impl Drop for Console {
    /// Ends the thread that reads.
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Types at a console until there is a shell.
struct Typist<'a> {
    stream: UnixStream,
    host: &'a str,
    login: &'a Login,
    is_alive: &'a dyn Fn() -> bool,
    /// What the console has shown since the last line was typed.
    shown: String,
    /// What it had shown before, for messages.
    shown_before: String,
}

impl Typist<'_> {
    /// Answers what the console asks until a shell waits for a command.
    fn wait_for_shell(&mut self, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        self.stream.set_read_timeout(Some(LOOK)).map_err(|error| self.no_shell(error.to_string()))?;
        self.stream.set_write_timeout(Some(PROMPT)).map_err(|error| self.no_shell(error.to_string()))?;
        let mut heard = Instant::now();
        while Instant::now() < deadline {
            if self.hear()? {
                heard = Instant::now();
            }
            match next(&self.shown, self.login, heard.elapsed() > QUIET) {
                Next::Shell => return Ok(()),
                Next::Type(line) => self.send(&format!("{line}\n"))?,
                Next::GiveUp { said, remedy } => {
                    return Err(Error::NoShell {
                        host: self.host.to_owned(),
                        said,
                        remedy: remedy.to_owned(),
                    });
                }
                Next::Wait if heard.elapsed() > SILENCE => {
                    heard = Instant::now();
                    self.send("\n")?;
                }
                Next::Wait => {}
            }
        }
        Err(self.no_shell(format!("no prompt within {patience:?}")))
    }

    /// Types a command that prints nothing, and waits for the next prompt.
    fn command(&mut self, command: &str) -> Result<()> {
        self.send(&format!("{command}\n"))?;
        let deadline = Instant::now() + PROMPT;
        while Instant::now() < deadline {
            let came = self.hear()?;
            // The line that was typed is shown first, and may end like a prompt.
            let answered = self.shown.trim_start().contains('\n') || !self.shown.contains(command);
            if answered && next(&self.shown, self.login, !came) == Next::Shell {
                return Ok(());
            }
        }
        Err(self.no_shell(format!("no prompt within {PROMPT:?} after a command")))
    }

    /// Waits until `text` has been shown.
    fn wait_for(&mut self, text: &str) -> Result<()> {
        let deadline = Instant::now() + PROMPT;
        while Instant::now() < deadline {
            self.hear()?;
            if self.shown.contains(text) {
                return Ok(());
            }
        }
        Err(self.no_shell(format!("the script that runs commands there did not start within {PROMPT:?}")))
    }

    /// Types `text`, after which all that is shown is new.
    fn send(&mut self, text: &str) -> Result<()> {
        let shown = std::mem::take(&mut self.shown);
        self.shown_before.push_str(&shown);
        keep_end(&mut self.shown_before);
        self.stream.write_all(text.as_bytes()).map_err(|error| self.no_shell(error.to_string()))
    }

    /// Reads what comes in a moment; whether anything came.
    fn hear(&mut self) -> Result<bool> {
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(self.no_shell("the machine has ended".to_owned())),
            Ok(count) => {
                self.shown.push_str(&String::from_utf8_lossy(bytes.get(..count).unwrap_or_default()));
                keep_end(&mut self.shown);
                Ok(true)
            }
            Err(error) if is_nothing(&error) && (self.is_alive)() => Ok(false),
            Err(error) if is_nothing(&error) => Err(self.no_shell("the machine has ended".to_owned())),
            Err(error) => Err(self.no_shell(error.to_string())),
        }
    }

    /// The console, once the keeper answers.
    fn into_console(self, mark: &str) -> Result<Console> {
        let failed = |error: io::Error| self.no_shell(error.to_string());
        self.stream.set_read_timeout(None).map_err(failed)?;
        let requests = self.stream.try_clone().map_err(failed)?;
        let answers = self.stream.try_clone().map_err(failed)?;
        let keeper = Keeper::new(self.host, mark, Box::new(requests), answers, None, Some(LINE));
        let mut console = Console { stream: self.stream, keeper };
        match console.keeper.ask("r", "true", PROMPT) {
            Ok(answer) if answer.is_good() => Ok(console),
            Ok(answer) => Err(Error::NoShell {
                host: self.host.to_owned(),
                said: answer.said(),
                remedy: "It must have stty and a POSIX shell".to_owned(),
            }),
            Err(error) => Err(error),
        }
    }

    /// That there is no shell, with the last lines that were shown.
    fn no_shell(&self, reason: String) -> Error {
        let text = format!("{}{}", self.shown_before, self.shown);
        let text = foreign::text::printable(&text).into_owned();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines.get(lines.len().saturating_sub(QUOTED)..).unwrap_or_default().join("; ");
        let said = match last.as_str() {
            "" => format!("{reason}, and it has shown nothing"),
            last => format!("{reason}; it has shown: {last}"),
        };
        let remedy =
            "Boot the image by hand with '-serial stdio': a login prompt must appear there".to_owned();
        Error::NoShell { host: self.host.to_owned(), said, remedy }
    }
}

/// Whether a read found nothing yet.
fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Keeps the end of what grows.
fn keep_end(text: &mut String) {
    if text.len() > 2 * KEPT {
        let from =
            (text.len() - KEPT..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        text.drain(..from);
    }
}

#[cfg(test)]
mod tests;
