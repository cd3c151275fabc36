//! A shell on another computer, over the system's `ssh`: one connection, one process on each side.
//!
//! `ssh` starts the [`keeper`](crate::keeper) there. When its input ends, because we closed it, were
//! killed or `ssh` was, it undoes all that is left. So the promise needs no Linerate process to stay alive, and one
//! handshake is all that a run costs.
//!
//! The user's configuration of `ssh`, agent and known hosts apply; nothing is ever asked for.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::keeper::{self, Keeper, Streams, mark};
use crate::shell::Kept;

/// How long reaching a device may take.
const CONNECT: Duration = Duration::from_secs(30);
/// How long the device has to undo by itself what we did not, once the connection ends.
const FAREWELL: Duration = Duration::from_secs(5);

/// A connection.
#[derive(Debug)]
pub struct Ssh {
    child: Child,
    keeper: Keeper,
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
        let (Some(requests), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Error::Lost {
                host: host.to_owned(),
                reason: "ssh has no input or output".to_owned(),
            });
        };
        let stderr: Box<dyn Read + Send> = Box::new(stderr);
        let keeper = Keeper::new(host, mark, Box::new(requests), stdout, Some(stderr), None);
        let mut ssh = Self { child, keeper };
        // The first answer also carries what login shells say, which nobody asked for.
        match ssh.keeper.ask("r", "true", CONNECT) {
            Ok(answer) if answer.is_good() => Ok(ssh),
            Ok(answer) => Err(ssh.unreachable(&answer.said())),
            Err(Error::Lost { reason, .. }) => Err(ssh.unreachable(&reason)),
            Err(error) => Err(error),
        }
    }

    fn unreachable(&self, said: &str) -> Error {
        let host = self.keeper.host();
        Error::Unreachable { host: host.to_owned(), said: said.to_owned(), remedy: remedy(host, said) }
    }
}

impl Kept for Ssh {
    fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    fn keeper_mut(&mut self) -> &mut Keeper {
        &mut self.keeper
    }
}

impl Drop for Ssh {
    /// Closes the connection, and gives the device a moment to undo what was not undone.
    fn drop(&mut self) {
        self.keeper.close();
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
    format!("{sudo}/bin/sh -c '{}' linerate {mark} {connection}", keeper::script(Streams::Apart))
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
