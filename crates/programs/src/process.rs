//! A foreign program that runs in a lab, on one core: its command enters; what it said when it
//! ended leaves. It dies with us, however we end, and so does all that it starts.
//!
//! It is the first process of a process namespace of its own, since some programs leave their work
//! to children, which nobody would end. Without the right to make one, which a lab needs anyway, a program outside
//! of labs runs all the same: it dies with us too, and its children when we end in order.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use lab::Namespace;
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::sys::stat::stat;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use scheduling::Cores;

/// The word of a command that stands for the program's input file.
pub const INPUT: &str = "INPUT";
/// How long a program has to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(5);

/// A program that runs. Dropping it kills it.
pub struct Process {
    child: Child,
    stdout: File,
    stderr: File,
    /// Held open for the program, which opens it by name.
    _input: Option<File>,
    /// The thread that started the program, with which it would die, lives as long as this.
    _keeper: Sender<()>,
}

/// What a program printed.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// On standard output.
    pub stdout: String,
    /// On standard error.
    pub stderr: String,
}

impl Said {
    /// The last line that has words, for people.
    pub fn last_words(&self) -> Option<&str> {
        let last = |text| str::lines(text).map(str::trim).rfind(|line| !line.is_empty());
        last(&self.stderr).or_else(|| last(&self.stdout))
    }
}

impl Process {
    /// Starts `words` in `namespace`, or where we are, on `cores`, with `input` in the file that
    /// [`INPUT`] stands for.
    pub fn start(
        namespace: Option<&Namespace>,
        cores: &[usize],
        words: &[String],
        input: Option<&[u8]>,
    ) -> Result<Self> {
        let (program, arguments) = words.split_first().context("a command without words")?;
        let input = input.map(input_file).transpose()?;
        let path = input.as_ref().map(|file| format!("/proc/self/fd/{}", file.as_raw_fd()));
        let mut command = Command::new(program);
        command.args(arguments.iter().map(|word| match &path {
            Some(path) if word == INPUT => path,
            _ => word,
        }));
        bind(&mut command)?;
        confine(&mut command);
        namespace.map(|namespace| namespace.contain(&mut command)).transpose()?;
        place(&mut command, cores)?;
        Self::launch(command, namespace.is_some(), input)
    }

    /// Starts a shell in `namespace` that runs `script` with `arguments` (`$1` and so on) for the user: it keeps all
    /// rights, and its `/proc` shows what it starts and nothing else.
    ///
    /// # Errors
    /// When it cannot be started, or its `/proc` not be mounted.
    pub fn start_shell(namespace: &Namespace, script: &str, arguments: &[String]) -> Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).args(arguments);
        bind(&mut command)?;
        namespace.contain(&mut command)?;
        show_own_processes(&mut command);
        Self::launch(command, true, None)
    }

    fn launch(mut command: Command, in_namespace: bool, input: Option<File>) -> Result<Self> {
        let [stdout, stderr] = [scratch(MFdFlags::MFD_CLOEXEC)?, scratch(MFdFlags::MFD_CLOEXEC)?];
        // Some programs end when they have read all there is.
        command.stdin(Stdio::piped()).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
        // Ctrl-C reaches us alone, who end the program in our own time.
        command.process_group(0);
        let program = command.get_program().to_string_lossy().into_owned();
        let (child, keeper) =
            spawn(command, in_namespace).with_context(|| format!("cannot start {program}"))?;
        Ok(Self { child, stdout, stderr, _input: input, _keeper: keeper })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it ended by itself.
    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait().context("cannot wait for a program")?.is_some())
    }

    /// Whether it has ended, however.
    pub fn is_over(&self) -> bool {
        let process = Id::Pid(Pid::from_raw(self.child.id().cast_signed()));
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        // An error says that it was waited for.
        !matches!(waitid(process, look), Ok(WaitStatus::StillAlive))
    }

    /// Asks it to end.
    pub fn interrupt(&self) {
        // To its children too, of which some programs do not tell each other. It may be dead already.
        let _ = kill(Pid::from_raw(-self.child.id().cast_signed()), Signal::SIGINT);
    }

    /// Waits for its end, ends it if that does not come, and says what it printed.
    pub fn finish(&mut self) -> Result<Said> {
        let deadline = Instant::now() + PATIENCE;
        while !self.has_ended()? {
            if Instant::now() >= deadline {
                self.kill();
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.said()
    }

    /// What it has printed so far.
    pub fn said(&self) -> Result<Said> {
        Ok(Said { stdout: text_of(&self.stdout)?, stderr: text_of(&self.stderr)? })
    }

    /// The lines that it has printed so far on standard output.
    pub fn lines(&self) -> Result<Vec<String>> {
        Ok(text_of(&self.stdout)?.lines().map(str::to_owned).collect())
    }

    /// Writes `text` to its standard input.
    pub fn tell(&self, text: &str) -> Result<()> {
        let mut input = self.child.stdin.as_ref().context("it has no input")?;
        input.write_all(text.as_bytes()).context("it does not listen any more")
    }

    fn kill(&mut self) {
        // With the first process of a namespace die all others there; without a namespace they are of its group. Once
        // it was waited for, its number may be another's.
        if !self.is_over() {
            let _ = kill(Pid::from_raw(-self.child.id().cast_signed()), Signal::SIGKILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts `command` as the first process of a process namespace; unless `alone` it may also do without one. The
/// thread that does so ends when the sender is dropped.
fn spawn(mut command: Command, alone: bool) -> Result<(Child, Sender<()>)> {
    let (started, result) = mpsc::channel();
    let (keeper, dropped) = mpsc::channel::<()>();
    thread::Builder::new().name("keeper".to_owned()).spawn(move || {
        let child = isolate(alone).and_then(|()| Ok(command.spawn()?));
        let _ = started.send(child);
        let _ = dropped.recv();
    })?;
    let child = result.recv().map_err(|_| anyhow!("the thread that should start it ended"))??;
    Ok((child, keeper))
}

/// Makes what the calling thread starts next the first process of a process namespace. Where that is not allowed, it is
/// an error only if it `must` be.
fn isolate(must: bool) -> Result<()> {
    let Err(errno) = unshare(CloneFlags::CLONE_NEWPID) else { return Ok(()) };
    let remedy = match errno {
        Errno::EPERM if must => "Run it as root (sudo), or with CAP_SYS_ADMIN",
        Errno::EPERM => return Ok(()),
        _ => "See 'sysctl user.max_pid_namespaces'; a container may forbid them",
    };
    bail!("cannot create a process namespace (unshare): {}. {remedy}", errno.desc())
}

/// What a program has written into `file` so far. Not from where the file stands: it goes on writing there.
fn text_of(file: &File) -> Result<String> {
    let length = file.metadata().context("cannot look at what it said")?.len();
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact_at(&mut bytes, 0).context("cannot read what it said")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Binds the life of `command` to that of the thread that starts it.
fn bind(command: &mut Command) -> Result<()> {
    // In its own process namespace it cannot ask for its parent. A process that dies has no program.
    let us = CString::new(format!("/proc/{}/exe", std::process::id()))?;
    let bound = move || -> io::Result<()> {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        // Where we ignore it (`nohup linerate … &`), the program would too, and could not be asked to end.
        // SAFETY: the default action runs none of our code.
        unsafe { signal(Signal::SIGINT, SigHandler::SigDfl) }?;
        // We may have died before that. access(2) would ask without the capabilities that looking into us takes.
        stat(us.as_c_str())?;
        Ok(())
    };
    // SAFETY: between fork and exec it only makes system calls, with a string made before: it takes
    // no lock and no memory.
    unsafe { command.pre_exec(bound) };
    Ok(())
}

/// Gives `command` no more rights than we have: it needs none, and can be looked into only as long as it has none.
fn confine(command: &mut Command) {
    // SAFETY: between fork and exec it only makes a system call.
    unsafe { command.pre_exec(|| Ok(prctl::set_no_new_privs()?)) };
}

/// Gives `command` a `/proc` of its process namespace, which nobody else sees.
fn show_own_processes(command: &mut Command) {
    let shown = || -> io::Result<()> {
        lab::own_mounts()?;
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        Ok(mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>)?)
    };
    // SAFETY: between fork and exec it only makes system calls, with strings that are part of the program: it takes no
    // lock and no memory.
    unsafe { command.pre_exec(shown) };
}

/// Makes `command` run on `cores`.
fn place(command: &mut Command, cores: &[usize]) -> Result<()> {
    let cores =
        Cores::of(cores).with_context(|| format!("there is none or not all of the cores {cores:?}"))?;
    let placed = move || Ok(cores.keep(Pid::from_raw(0))?);
    // SAFETY: between fork and exec it only makes a system call.
    unsafe { command.pre_exec(placed) };
    Ok(())
}

/// A file without a name that holds `bytes`; children inherit it, and open it by its number.
fn input_file(bytes: &[u8]) -> Result<File> {
    let mut file = scratch(MFdFlags::empty())?;
    file.write_all(bytes).context("cannot write a program's input")?;
    Ok(file)
}

/// A file without a name.
fn scratch(flags: MFdFlags) -> Result<File> {
    Ok(File::from(memfd_create(c"linerate generator", flags).context("cannot make a file in memory")?))
}

#[cfg(test)]
mod tests {
    use lab::placement::online;

    use super::*;

    fn start(script: &str, input: Option<&[u8]>) -> Process {
        let namespace = Namespace::create().unwrap();
        let words = ["sh", "-c", script, "sh", INPUT].map(str::to_owned);
        Process::start(Some(&namespace), &online().unwrap()[..1], &words, input).unwrap()
    }

    fn has_namespaces() -> bool {
        let root = nix::unistd::geteuid().is_root();
        if !root {
            eprintln!("skipped: network namespaces need root");
        }
        root
    }

    #[test]
    fn a_program_reads_its_input_is_asked_to_end_and_says_what_it_did() {
        if !has_namespaces() {
            return;
        }
        // Not `wait`: a signal just before it is heeded only when the child has ended.
        let script = "trap 'echo bye >&2; exit' INT; cat $1; while :; do sleep 0.01; done";
        let mut process = start(script, Some(b"input\n"));
        while process.said().unwrap().stdout.is_empty() {
            thread::sleep(Duration::from_millis(5));
        }
        assert!(!process.is_over() && !process.has_ended().unwrap());
        let asked = Instant::now();
        process.interrupt();
        let said = process.finish().unwrap();
        assert!(asked.elapsed() < PATIENCE);
        assert!(process.is_over());
        assert_eq!((said.stdout.as_str(), said.stderr.as_str()), ("input\n", "bye\n"));
        assert_eq!(said.last_words(), Some("bye"));
    }

    #[test]
    fn with_a_program_end_its_children() {
        if !has_namespaces() {
            return;
        }
        let process = start("sleep 61 & wait", None);
        let children = || {
            std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", process.id())).unwrap_or_default()
        };
        while children().is_empty() {
            thread::sleep(Duration::from_millis(5));
        }
        let child = children().trim().to_owned();
        drop(process);
        let deadline = Instant::now() + PATIENCE;
        while std::path::Path::new(&format!("/proc/{child}/exe")).exists() {
            assert!(Instant::now() < deadline, "process {child} lives on");
            thread::sleep(Duration::from_millis(5));
        }
    }
}
