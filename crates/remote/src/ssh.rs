//! A shell on another computer, over the system's `ssh`: one connection, one process on each side.
//!
//! `ssh` starts one small script there, the keeper, which reads requests from its standard input, a line
//! each, and runs them. It also keeps what is to be undone. When its input ends, because we closed it, were
//! killed or `ssh` was, it undoes all that is left, the last first, and ends. So the promise needs no
//! Linerate process to stay alive, and one handshake is all that a run costs.
//!
//! The user's configuration of `ssh`, agent and known hosts apply; nothing is ever asked for.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::quote;
use crate::shell::{Answer, Shell};

/// What runs on the device. It is a single word for any login shell, those of csh's family and fish
/// included: one line without single quotes and exclamation marks, no backslash before another. Requests
/// are a letter and a text that `printf %b` decodes: `u` remembers it, `r` runs it, `b` undoes the last.
/// What is to be undone are the positional parameters, the last first.
const KEEPER: &str = "\
    mark=$1; SSH_CONNECTION=$2; shift 2; \
    PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; LC_ALL=C; export SSH_CONNECTION PATH LC_ALL; \
    end() { trap : HUP INT TERM PIPE; \
    for text do /bin/sh -c \"$text\" linerate </dev/null >/dev/null 2>&1; done; exit 0; }; \
    trap : PIPE; trap \"end \\\"\\$@\\\"\" HUP INT TERM; \
    while IFS= read -r line; do \
    text=$(printf %b \"${line#?}\"); status=0; \
    case $line in \
    u*) set -- \"$text\" \"$@\";; \
    r*) /bin/sh -c \"$text\" linerate </dev/null || status=$?;; \
    b*) /bin/sh -c \"$1\" linerate </dev/null || status=$?; shift;; \
    *) break;; \
    esac; \
    echo; echo \"$mark $status\"; { echo; echo \"$mark $status\"; } >&2; \
    done; \
    end \"$@\"";

/// How long reaching a device may take.
const CONNECT: Duration = Duration::from_secs(30);
/// How long one script may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long the device has to undo by itself what we did not, once the connection ends.
const FAREWELL: Duration = Duration::from_secs(5);

/// The most bytes of what a script says that are kept; a device may say more.
const MOST: usize = 16 << 20;
/// What stands for the rest.
const MORE: &str = "\n(the device said more than 16 MiB: this is the beginning)";

/// What is said once the connection has ended.
const ENDED: &str = "the connection ended. What was configured should be undone there: have a look";

/// A connection.
#[derive(Debug)]
pub struct Ssh {
    host: String,
    child: Child,
    /// Until the connection is closed.
    requests: Option<ChildStdin>,
    stdout: Receiver<Piece>,
    stderr: Receiver<Piece>,
}

/// What came on one stream until a mark, or until its end.
#[derive(Debug)]
enum Piece {
    Answer(String, i32),
    End(String),
}

impl Ssh {
    /// Connects to `host`, as `ssh` takes it: a name of its configuration, `USER@HOST`, or `ssh://…`. With
    /// `sudo`, everything there runs by `sudo -n`.
    ///
    /// # Errors
    /// Why it cannot be reached, and what to do.
    pub fn connect(host: &str, sudo: bool) -> Result<Self> {
        let user = host.trim_start_matches("ssh://").split_once('@').map_or("", |(user, _)| user);
        if host.is_empty() || host.starts_with('-') || user.contains(':') {
            let reason = format!("'{host}' is no host: write [USER@]HOST, and no password");
            return Err(Error::Misuse(reason));
        }
        let mut command = Command::new("ssh");
        // What the user configured for logins by hand must not get in the way: terminals, forwarded ports,
        // commands, a connection that stays open in the background.
        for option in [
            "BatchMode=yes",
            "ConnectTimeout=10",
            "ServerAliveInterval=15",
            "ServerAliveCountMax=3",
            "LogLevel=ERROR",
            "ControlMaster=no",
            "ClearAllForwardings=yes",
            "PermitLocalCommand=no",
            "RemoteCommand=none",
        ] {
            command.args(["-o", option]);
        }
        command.args(["-T", "-a", "-x", "--", host]);
        let mark = mark();
        command.arg(format!("exec {}", started(sudo, &mark, "\"$SSH_CONNECTION\"")));
        Self::over(command, host, &mark)
    }

    /// The same over any program that passes its input and output on to the keeper.
    fn over(mut command: Command, host: &str, mark: &str) -> Result<Self> {
        // Ctrl-C is ours alone: the connection must outlive it, to undo.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| Error::Unreachable {
            host: host.to_owned(),
            said: format!("ssh cannot be started ({error})"),
            remedy: "Install it (Debian: apt install openssh-client)".to_owned(),
        })?;
        let requests = child.stdin.take();
        let stdout = pieces(child.stdout.take(), mark);
        let stderr = pieces(child.stderr.take(), mark);
        let mut ssh = Self { host: host.to_owned(), child, requests, stdout, stderr };
        // The first answer also carries what login shells say, which nobody asked for.
        match ssh.ask("r", "true", CONNECT) {
            Ok(answer) if answer.is_good() => Ok(ssh),
            Ok(answer) => Err(ssh.unreachable(&answer.said())),
            Err(Error::Lost { reason, .. }) => Err(ssh.unreachable(&reason)),
            Err(error) => Err(error),
        }
    }

    fn unreachable(&self, said: &str) -> Error {
        Error::Unreachable {
            host: self.host.clone(),
            said: said.to_owned(),
            remedy: remedy(&self.host, said),
        }
    }

    fn lost(&self, reason: impl Into<String>) -> Error {
        Error::Lost { host: self.host.clone(), reason: reason.into() }
    }

    /// Sends a request, and waits for what comes.
    fn ask(&mut self, kind: &str, text: &str, patience: Duration) -> Result<Answer> {
        let request = format!("{kind}{}\n", quote::line(text));
        let deadline = Instant::now() + patience;
        let sent = self
            .requests
            .as_mut()
            .map(|requests| requests.write_all(request.as_bytes()).and_then(|()| requests.flush()));
        // Where it could not be sent, the streams say why.
        let unsent = !matches!(sent, Some(Ok(())));
        let stdout = self.receive(&self.stdout, deadline, patience)?;
        let stderr = self.receive(&self.stderr, deadline, patience)?;
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
}

impl Shell for Ssh {
    fn run(&mut self, script: &str) -> Result<Answer> {
        self.ask("r", script, PATIENCE)
    }

    fn remember(&mut self, script: &str) -> Result<()> {
        self.ask("u", script, PATIENCE).map(drop)
    }

    fn undo(&mut self) -> Result<Answer> {
        self.ask("b", "", PATIENCE)
    }

    fn host(&self) -> &str {
        &self.host
    }
}

impl Drop for Ssh {
    /// Closes the connection, and gives the device a moment to undo what was not undone.
    fn drop(&mut self) {
        self.requests = None;
        let deadline = Instant::now() + FAREWELL;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        // The keeper does not need us.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command line that starts the keeper, for a shell.
fn started(sudo: bool, mark: &str, connection: &str) -> String {
    let sudo = if sudo { "sudo -n " } else { "" };
    format!("{sudo}/bin/sh -c '{KEEPER}' linerate {mark} {connection}")
}

/// A word that nothing else prints.
fn mark() -> String {
    format!("linerate-{:016x}", RandomState::new().build_hasher().finish())
}

/// What comes on `stream`, divided at lines of `mark` and a number.
fn pieces(stream: Option<impl Read + Send + 'static>, mark: &str) -> Receiver<Piece> {
    let (sender, receiver) = mpsc::channel();
    let mark = format!("{mark} ");
    if let Some(stream) = stream {
        thread::spawn(move || divide(BufReader::new(stream), &mark, &sender));
    }
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

/// What to do when ssh says this.
fn remedy(host: &str, said: &str) -> String {
    let known: [(&str, &str); 9] = [
        ("Host key verification failed", "Log in once by hand (ssh HOST), and see whether its key is right"),
        (
            "Permission denied",
            "Make 'ssh -o BatchMode=yes HOST true' work first: a key there (ssh-copy-id HOST), \
          and here an agent if the key has a passphrase",
        ),
        (
            "Too many authentication failures",
            "Name the key for it in ~/.ssh/config (IdentityFile, IdentitiesOnly)",
        ),
        ("Could not resolve", "Check the name, or give the address"),
        ("refused", "Start its ssh server (sshd), or check address and port"),
        ("timed out", "Check that it is on, its address, and the firewalls between"),
        ("No route", "Check its address and the routes to it"),
        ("unreachable", "Check its address and the routes to it"),
        ("a password is required", "Let sudo run there without a password (NOPASSWD), or log in as root"),
    ];
    let found = known.iter().find(|(sign, _)| said.contains(sign)).map(|(_, remedy)| *remedy);
    found.unwrap_or("Try it by hand: 'ssh -o BatchMode=yes HOST true' must work").replace("HOST", host)
}

#[cfg(test)]
mod tests;
