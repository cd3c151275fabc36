//! The router as a process: what it is started with enters, what it says leaves. It ends with the test, however
//! that ends.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long anything may take before it counts as failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The program for a configuration; what it says can be read.
pub fn fastpath(file: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fastpath"));
    command.arg(file).stderr(Stdio::piped());
    command
}

/// A router that runs.
pub struct Router {
    process: Child,
    said: BufReader<ChildStderr>,
}

impl Router {
    /// Waits until a process says that it is in control.
    pub fn started(mut process: Child) -> Self {
        let said = BufReader::new(process.stderr.take().unwrap());
        let mut router = Self { process, said };
        let line = router.line();
        assert!(line.contains("in control at"), "{line}");
        router
    }

    /// The next line that it says.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The lines that it has said and nobody has read yet.
    pub fn said_so_far(&mut self) -> Vec<String> {
        let file = self.said.get_ref();
        nix::fcntl::fcntl(file, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK)).unwrap();
        let mut lines = Vec::new();
        let mut line = String::new();
        while self.said.read_line(&mut line).is_ok_and(|length| length > 0) {
            lines.push(std::mem::take(&mut line));
        }
        let file = self.said.get_ref();
        nix::fcntl::fcntl(file, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::empty())).unwrap();
        lines
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id().cast_signed()), signal).unwrap();
    }

    /// Has it end as it should, and says what else it said.
    pub fn stop(mut self, signal: Signal) -> String {
        self.signal(signal);
        let status = self.process.wait().unwrap();
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).unwrap();
        assert!(status.success(), "{status}: {rest}");
        rest
    }
}

impl Drop for Router {
    /// Ends it without a warning.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Does something again and again until it has what is wanted.
pub fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(wanted) = attempt() {
            return wanted;
        }
        assert!(Instant::now() < deadline, "never came to that: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}
