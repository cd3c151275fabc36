//! The keeper, a small script that runs on the device: it reads requests, a line each, runs them, and keeps what is to
//! be undone. When its input ends, however it ends, it undoes all that is left, the last first.
//!
//! A request enters here and goes to the keeper; what the keeper printed until its mark leaves as an [`Answer`].

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::quote;
use crate::shell::Answer;

/// What runs on the device. It is a single word for any login shell, those of csh's family and fish
/// included: one line without single quotes and exclamation marks, no backslash before another. Requests
/// are a letter and a text that `printf %b` decodes: `u` remembers it, `r` runs it, `b` undoes the last, `d` defines what all
/// begin with from then on; `p` is the beginning of the text of the next request.
/// What is to be undone are the positional parameters, the last first.
const SCRIPT: &str = "\
    mark=$1; SSH_CONNECTION=$2; shift 2; more=; head=; \
    PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; LC_ALL=C; export SSH_CONNECTION PATH LC_ALL; \
    START \
    end() { trap : HUP INT TERM PIPE; \
    for text do /bin/sh -c \"$head$text\" linerate </dev/null >/dev/null 2>&1; done; exit 0; }; \
    trap : PIPE; trap \"end \\\"\\$@\\\"\" HUP INT TERM; \
    while IFS= read -r line; do \
    more=$more${line#?}; status=0; \
    case $line in p*) TELL continue;; esac; \
    text=$(printf %b \"$more\"); more=; \
    case $line in \
    u*) set -- \"$text\" \"$@\";; \
    r*) RUN;; \
    d*) head=$text;; \
    b*) text=$1; RUN; shift;; \
    *) break;; \
    esac; \
    TELL \
    done; \
    end \"$@\"";

/// The part of the script that runs a text and tells how it ended, where standard output and standard error reach us apart. It has
/// no shell functions: after one was called, dash does not heed signals while it reads.
const APART: [(&str, &str); 3] = [
    ("START", ""),
    ("RUN", "/bin/sh -c \"$head$text\" linerate </dev/null || status=$?"),
    ("TELL", "echo; echo \"$mark $status\"; { echo; echo \"$mark $status\"; } >&2;"),
];

/// The same for a single stream: first standard output up to its mark, then standard error up to its own.
const TOGETHER: [(&str, &str); 3] = [
    ("START", "exec 3>&1;"),
    ("RUN", "said=$(/bin/sh -c \"$head$text\" linerate 2>&1 >&3 3>&- </dev/null) || status=$?"),
    ("TELL", "echo; echo \"$mark $status\"; printf %s \"$said\"; said=; echo; echo \"$mark $status\";"),
];

/// How long one script may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// The most bytes of what a script says that are kept; a device may say more.
pub const MOST: usize = 16 << 20;
/// What an answer that was cut ends with.
pub const MORE: &str = "\n(the device said more than 16 MiB: this is the beginning)";

/// What is said once the connection has ended.
const ENDED: &str = "the connection ended. What was configured should be undone there: have a look";

/// How standard output and standard error of the keeper reach us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// Each by itself, as over ssh.
    Apart,
    /// One after the other, as over a console.
    Together,
}

/// The script for a keeper whose output reaches us like this.
pub fn script(streams: Streams) -> String {
    let parts = match streams {
        Streams::Apart => APART,
        Streams::Together => TOGETHER,
    };
    parts.iter().fold(SCRIPT.to_owned(), |script, (name, part)| script.replace(name, part))
}

/// A word that no command prints by chance.
pub fn mark() -> String {
    format!("linerate-{:016x}", RandomState::new().build_hasher().finish())
}

/// What came on one stream until a mark, or until its end.
#[derive(Debug)]
enum Piece {
    Answer(String, i32),
    End(String),
}

/// A keeper that runs.
pub struct Keeper {
    host: String,
    /// Until the connection is closed.
    requests: Option<Box<dyn Write + Send>>,
    /// The most bytes of a line, where there is a bound.
    line: Option<usize>,
    stdout: Receiver<Piece>,
    /// Standard error, where it has a stream of its own.
    stderr: Option<Receiver<Piece>>,
}

impl Keeper {
    /// The keeper of `host`, which takes requests by `requests`, answers by `stdout` with `mark`, and says what is for people
    /// by `stderr`, or by `stdout` where that is `None`. A request is divided into lines of up to `line` bytes, if given.
    pub fn new(
        host: &str,
        mark: &str,
        requests: Box<dyn Write + Send>,
        stdout: impl Read + Send + 'static,
        stderr: Option<Box<dyn Read + Send>>,
        line: Option<usize>,
    ) -> Self {
        let stderr = stderr.map(|stream| pieces(stream, mark));
        Self { host: host.to_owned(), requests: Some(requests), line, stdout: pieces(stdout, mark), stderr }
    }

    /// The device's name.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Takes no more requests: the keeper undoes what is left.
    pub fn close(&mut self) {
        self.requests = None;
    }

    /// Where requests are written, once answers are no longer read.
    #[cfg(test)]
    pub fn abandon(&mut self) -> Box<dyn Write + Send> {
        (self.stdout, self.stderr) = (mpsc::channel().1, None);
        self.requests.take().unwrap()
    }

    /// Runs `script`, after what all begin with.
    ///
    /// # Errors
    /// As of [`ask`](Self::ask).
    pub fn run(&mut self, script: &str) -> Result<Answer> {
        self.ask("r", &format!("\n{script}"), PATIENCE)
    }

    /// Remembers `script`.
    ///
    /// # Errors
    /// As of [`ask`](Self::ask).
    pub fn remember(&mut self, script: &str) -> Result<()> {
        self.ask("u", &format!("\n{script}"), PATIENCE).map(drop)
    }

    /// Runs what was remembered last, and forgets it.
    ///
    /// # Errors
    /// As of [`ask`](Self::ask).
    pub fn undo(&mut self) -> Result<Answer> {
        self.ask("b", "", PATIENCE)
    }

    /// Has all scripts begin with `text`, those too that are remembered.
    ///
    /// # Errors
    /// As of [`ask`](Self::ask).
    pub fn begin_with(&mut self, text: &str) -> Result<()> {
        self.ask("d", text, PATIENCE).map(drop)
    }

    /// Sends a request, and waits for what comes.
    ///
    /// # Errors
    /// [`Error::Lost`]: the connection ended, or nothing came within `patience`.
    pub fn ask(&mut self, kind: &str, text: &str, patience: Duration) -> Result<Answer> {
        let deadline = Instant::now() + patience;
        let text = quote::line(text);
        let mut rest = text.as_str();
        while let Some(most) = self.line.filter(|most| rest.len() > *most) {
            let end = (0..=most).rev().find(|at| rest.is_char_boundary(*at)).filter(|end| *end > 0);
            let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
            self.exchange(&format!("p{part}\n"), deadline, patience)?;
            rest = after;
        }
        self.exchange(&format!("{kind}{rest}\n"), deadline, patience)
    }

    /// Sends one line, and waits for the answer.
    fn exchange(&mut self, request: &str, deadline: Instant, patience: Duration) -> Result<Answer> {
        let sent = self
            .requests
            .as_mut()
            .map(|requests| requests.write_all(request.as_bytes()).and_then(|()| requests.flush()));
        // Where it could not be sent, the streams say why.
        let unsent = !matches!(sent, Some(Ok(())));
        let stdout = self.receive(&self.stdout, deadline, patience)?;
        let stderr = match (&self.stderr, &stdout) {
            (Some(stderr), _) => self.receive(stderr, deadline, patience)?,
            (None, Piece::Answer(..)) => self.receive(&self.stdout, deadline, patience)?,
            (None, Piece::End(_)) => Piece::End(String::new()),
        };
        match (stdout, stderr) {
            (Piece::Answer(stdout, status), Piece::Answer(stderr, _)) if !unsent => {
                Ok(Answer { stdout, stderr, status })
            }
            (Piece::Answer(..), Piece::Answer(..)) => Err(self.lost(ENDED)),
            (
                Piece::End(stdout) | Piece::Answer(stdout, _),
                Piece::End(stderr) | Piece::Answer(stderr, _),
            ) => {
                let said = Answer { stdout, stderr, status: 1 };
                Err(self.lost(match said.stderr.trim().is_empty() && said.stdout.trim().is_empty() {
                    true => ENDED.to_owned(),
                    false => said.said(),
                }))
            }
        }
    }

    fn receive(&self, from: &Receiver<Piece>, deadline: Instant, patience: Duration) -> Result<Piece> {
        match from.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(piece) => Ok(piece),
            Err(RecvTimeoutError::Timeout) => Err(self.lost(format!(
                "no answer within {patience:?}: look there what hangs; what was configured is undone as soon \
                 as that ends"
            ))),
            Err(RecvTimeoutError::Disconnected) => Err(self.lost(ENDED)),
        }
    }

    fn lost(&self, reason: impl Into<String>) -> Error {
        Error::Lost { host: self.host.clone(), reason: reason.into() }
    }
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").field("host", &self.host).finish_non_exhaustive()
    }
}

/// What comes on `stream`, divided at lines of `mark` and a number.
fn pieces(stream: impl Read + Send + 'static, mark: &str) -> Receiver<Piece> {
    let (sender, receiver) = mpsc::channel();
    let mark = format!("{mark} ");
    thread::spawn(move || divide(BufReader::new(stream), &mark, &sender));
    receiver
}

fn divide(mut stream: impl BufRead, mark: &str, to: &Sender<Piece>) {
    let (mut text, mut is_cut) = (Vec::new(), false);
    loop {
        let begin = text.len();
        match (&mut stream).take(MOST as u64).read_until(b'\n', &mut text) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let line = text.get(begin..).unwrap_or_default();
        let status = line
            .strip_prefix(mark.as_bytes())
            .and_then(|rest| std::str::from_utf8(rest).ok()?.trim_end().parse::<i32>().ok());
        if let Some(status) = status {
            // The line break before the mark is the keeper's.
            text.truncate(begin.saturating_sub(1));
            let piece = Piece::Answer(kept(&text, is_cut), status);
            (text, is_cut) = (Vec::new(), false);
            if to.send(piece).is_err() {
                return;
            }
        } else if is_cut || text.len() > MOST {
            text.truncate(begin.min(MOST));
            is_cut = true;
        }
    }
    // Nobody may be listening any more.
    let _ = to.send(Piece::End(kept(&text, is_cut)));
}

/// What is kept of an answer, as text that steers no terminal.
fn kept(text: &[u8], is_cut: bool) -> String {
    foreign::text::printable(&String::from_utf8_lossy(text)).into_owned() + if is_cut { MORE } else { "" }
}
