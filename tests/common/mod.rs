//! What the end-to-end tests share: the program, run as people run it, alone on the machine while
//! it sends. Words of a command line enter; what it said and kept leaves.
#![allow(dead_code, unused_imports, clippy::unwrap_used)] // each test binary uses a part of it; a test may panic

pub mod capture;
pub mod holdings;
pub mod leftovers;
pub mod namespace;
pub mod patience;
pub mod sites;
pub mod sshd;

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use results::Record;
use results::record::Status;
use tempfile::TempDir;

use namespace::Namespace;

pub use patience::eventually;

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");
/// The repository.
pub const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// A ramp of two seconds.
pub const QUICK: &str = "--warm-up-duration 100ms --duration 500ms --hold-duration 200ms --drain 100ms";

/// How long anything may take before it counts as hanging: a run of seconds takes a minute where others have
/// nearly all of the machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// The subcommands that occupy cores.
const LOADS: [&str; 11] = [
    "ramp",
    "saturate",
    "search",
    "latency",
    "rfc2544",
    "soak",
    "stall",
    "send",
    "serve",
    "generator",
    "bench",
];

/// Whether namespaces can be made here. A test that needs them returns where this is false.
pub fn has_namespaces() -> bool {
    let tried = thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET)).join().unwrap();
    if let Err(errno) = tried {
        eprintln!("skipped: network namespaces need root ({errno})");
    }
    tried.is_ok()
}

/// Whether a program of this name is installed.
pub fn has_tool(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).chain(["/usr/sbin".into()]).any(|place| place.join(tool).exists())
}

/// The machine, while a test has it for itself. The kernel opens the lock when the process ends.
pub struct Machine {
    _lock: File,
    since: Instant,
}

impl Drop for Machine {
    /// The time stands in what the test says: tools/test names the tests that held the machine longest.
    fn drop(&mut self) {
        eprintln!("held the machine for {:.1} s", self.since.elapsed().as_secs_f64());
    }
}

/// Waits until this test has the machine for itself among all tests, in whichever process.
pub fn machine() -> Machine {
    let lock = lock_file();
    let deadline = Instant::now() + 5 * PATIENCE;
    while let Err(error) = lock.try_lock() {
        assert!(matches!(error, TryLockError::WouldBlock), "{error}");
        assert!(Instant::now() < deadline, "another test has held the machine for too long");
        thread::sleep(Duration::from_millis(5));
    }
    Machine { _lock: lock, since: Instant::now() }
}

/// Waits until no test has the machine for itself, and keeps it from those that want it so: for tests that measure no
/// time and may run side by side.
pub fn shared_machine() -> File {
    let lock = lock_file();
    let deadline = Instant::now() + 15 * PATIENCE;
    while let Err(error) = lock.try_lock_shared() {
        assert!(matches!(error, TryLockError::WouldBlock), "{error}");
        assert!(Instant::now() < deadline, "other tests have held the machine for too long");
        thread::sleep(Duration::from_millis(5));
    }
    lock
}

fn lock_file() -> File {
    let path = std::env::temp_dir().join("linerate-tests.lock");
    File::options().create(true).truncate(false).write(true).open(path).unwrap()
}

/// Waits until `condition` holds, and says whether it did in time.
pub fn wait_until(patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline {
        if condition() {
            return true;
        }
        thread::sleep(Duration::from_millis(5));
    }
    condition()
}

/// A command line of the program, not yet run.
#[derive(Clone)]
pub struct Linerate<'a> {
    words: Vec<OsString>,
    environment: Vec<(String, String)>,
    namespace: Option<&'a Namespace>,
    directory: Option<PathBuf>,
    alone: bool,
    /// Whether the kernel is to say that it has no AF_XDP sockets.
    without_af_xdp: bool,
    /// The capabilities of the ordinary user who runs it, if it is not root.
    nobody: Option<&'a [&'a str]>,
    /// How long it may take.
    patience: Duration,
}

/// The program with the words of `line`, which blanks divide.
pub fn linerate<'a>(line: &str) -> Linerate<'a> {
    let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    let alone = words.first().is_some_and(|word| LOADS.iter().any(|load| word == load))
        || words.get(1).is_some_and(|word| word == "ceiling");
    Linerate {
        words,
        environment: Vec::new(),
        namespace: None,
        directory: None,
        alone,
        without_af_xdp: false,
        nobody: None,
        patience: PATIENCE,
    }
}

impl<'a> Linerate<'a> {
    /// The same with one more word.
    pub fn arg(mut self, word: impl Into<OsString>) -> Self {
        self.words.push(word.into());
        self
    }

    /// The same with an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same in a network namespace.
    pub fn inside(self, namespace: &'a Namespace) -> Self {
        Self { namespace: Some(namespace), ..self }
    }

    /// The same in this directory, not in a fresh one.
    pub fn in_directory(self, directory: &Path) -> Self {
        Self { directory: Some(directory.to_owned()), ..self }
    }

    /// The same on a kernel that says that it has no AF_XDP sockets.
    pub fn without_af_xdp(self) -> Self {
        Self { without_af_xdp: true, ..self }
    }

    /// The same, run by a user who is not root and has these capabilities, as setpriv(1) names them, and no others.
    pub fn by_nobody(self, capabilities: &'a [&'a str]) -> Self {
        Self { nobody: Some(capabilities), ..self }
    }

    /// The same where it boots machines, by emulation perhaps.
    pub fn booting_machines(self) -> Self {
        Self { patience: 5 * PATIENCE, ..self }
    }

    /// The same for a test that has taken the [`machine`] already.
    pub fn on_my_machine(self) -> Self {
        Self { alone: false, ..self }
    }

    /// Starts it; a load test only when the machine is free.
    pub fn start(&self) -> Running {
        let alone = self.alone.then(machine);
        let fresh = Arc::new(tempfile::tempdir().unwrap());
        let directory = self.directory.clone().unwrap_or_else(|| fresh.path().to_owned());
        let [stdout, stderr] = [(); 2].map(|()| tempfile::tempfile().unwrap());
        let for_all = self.nobody.map(|_| program_for_all());
        let mut command = match (self.nobody, &for_all) {
            (Some(capabilities), Some((_, program))) => nobody(program, capabilities, &directory),
            _ => Command::new(PROGRAM),
        };
        command.args(&self.words).current_dir(&directory).stdin(Stdio::null());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdout(stdout.try_clone().unwrap()).stderr(stderr.try_clone().unwrap());
        if let Some(namespace) = self.namespace {
            namespace.enter(&mut command);
        }
        if self.without_af_xdp {
            // SAFETY: it makes a system call without allocating.
            unsafe { command.pre_exec(refuse_af_xdp) };
        }
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
        let patience = self.patience;
        Running {
            child,
            stdout,
            stderr,
            directory,
            patience,
            _fresh: fresh,
            _for_all: for_all,
            _alone: alone,
        }
    }

    /// Runs it to its end.
    pub fn run(&self) -> Finished {
        self.start().finish()
    }
}

/// The number of a user who owns nothing.
const NOBODY: u32 = 65_534;

/// The program where anybody may run it, as long as the directory is there. Where it cannot be a link, another process
/// copies it: the kernel runs no program that a process has open for writing, as one that another test starts would.
fn program_for_all() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = directory.path().join("linerate");
    if fs::hard_link(PROGRAM, &program).is_err() {
        tool(Command::new("install").args(["-m", "755", PROGRAM]).arg(&program));
    }
    (directory, program)
}

/// `program` as a user without rights runs it in `directory`, which becomes that user's, with these capabilities.
fn nobody(program: &Path, capabilities: &[&str], directory: &Path) -> Command {
    chown(directory, Some(NOBODY), Some(NOBODY)).unwrap();
    let set: String =
        ["-all".to_owned()].into_iter().chain(capabilities.iter().map(|name| format!(",+{name}"))).collect();
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".to_owned()]);
    command.args([format!("--inh-caps={set}"), format!("--ambient-caps={set}")]).arg(program);
    command.env("HOME", directory).env_remove("XDG_RUNTIME_DIR").env_remove("XDG_CACHE_HOME");
    command
}

/// Has the kernel refuse AF_XDP sockets to this process, as one without them does.
fn refuse_af_xdp() -> std::io::Result<()> {
    use nix::libc::{self, sock_filter};
    let step = |code: u32, jt: u8, jf: u8, k: u32| sock_filter { code: code as u16, jt, jf, k };
    let (load, equals, give) = (
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        libc::BPF_RET,
    );
    // The number of the system call is at 0, its first argument at 16.
    let filter = [
        step(load, 0, 0, 0),
        step(equals, 0, 3, libc::SYS_socket as u32),
        step(load, 0, 0, 16),
        step(equals, 0, 1, libc::AF_XDP as u32),
        step(give, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EAFNOSUPPORT as u32),
        step(give, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the program outlives the call.
    let result = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// The program while it runs. It is killed when this is dropped.
pub struct Running {
    child: Child,
    stdout: File,
    stderr: File,
    directory: PathBuf,
    patience: Duration,
    _fresh: Arc<TempDir>,
    _for_all: Option<(TempDir, PathBuf)>,
    _alone: Option<Machine>,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// What it has said to people so far.
    pub fn stderr(&self) -> String {
        fs::read_to_string(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&self.stderr)))
            .unwrap()
    }

    /// The records that it keeps in the default directory, as they are now.
    pub fn records(&self) -> Vec<Record> {
        records(&self.directory.join("runs"))
    }

    /// Waits until its record is as `wanted`.
    pub fn wait_for_record(&mut self, wanted: impl Fn(&Record) -> bool) {
        let came = wait_until(self.patience, || {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "ended too early ({ended:?}): {}", self.stderr());
            self.records().iter().any(&wanted)
        });
        assert!(came, "the record never came to that: {}", self.stderr());
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Finished {
        let mut status = None;
        let patience = self.patience;
        wait_until(patience, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let [stdout, stderr] = [&mut self.stdout, &mut self.stderr].map(|file| {
            let mut text = String::new();
            file.rewind().unwrap();
            file.read_to_string(&mut text).unwrap();
            text
        });
        let status = status.unwrap_or_else(|| panic!("still runs after {patience:?}: {stderr}"));
        patience::hear(&stderr);
        Finished {
            status,
            stdout,
            stderr,
            directory: self.directory.clone(),
            _fresh: Arc::clone(&self._fresh),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program after its end.
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    /// Where it ran.
    pub directory: PathBuf,
    _fresh: Arc<TempDir>,
}

impl Finished {
    /// The same, if it ended well.
    pub fn well(self) -> Self {
        assert!(self.status.success(), "{}: {}", self.status, self.stderr);
        self
    }

    /// The record on standard output.
    pub fn record(&self) -> Record {
        let record = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("no record ({error}): {}\n{}", self.stdout, self.stderr));
        consistent(&record);
        record
    }

    /// The JSON on standard output.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("no JSON ({error}): {}\n{}", self.stdout, self.stderr))
    }

    /// The records that it kept in the default directory.
    pub fn records(&self) -> Vec<Record> {
        records(&self.directory.join("runs"))
    }

    /// Why it was refused: it says so in one clear line to people, nothing to machines, and ends
    /// with `code`.
    pub fn refusal(&self, code: i32) -> &str {
        assert_eq!(self.status.code(), Some(code), "{}", self.stderr);
        assert_eq!(self.stdout, "");
        assert!(!self.stderr.contains("panicked") && !self.stderr.contains("backtrace"), "{}", self.stderr);
        let lines: Vec<&str> = self.stderr.lines().filter(|line| !line.trim().is_empty()).collect();
        let [line] = lines.as_slice() else { panic!("not one line: {}", self.stderr) };
        let reason = line.strip_prefix("linerate: ").or(line.strip_prefix("error: "));
        reason.unwrap_or_else(|| panic!("not an error: {line}"))
    }
}

/// Why the program fails with the words of `line` for someone without privileges: in one line to people, nothing
/// to machines, and nothing left behind where it ran. To be asked for by root.
pub fn refusal_without_privileges(line: &str) -> String {
    refusal_without_privileges_in(None, line)
}

/// The same in `home`.
pub fn refusal_without_privileges_in(home: Option<&Namespace>, line: &str) -> String {
    let run = linerate(line).by_nobody(&[]);
    let run = if let Some(home) = home { run.inside(home) } else { run }.run();
    assert_eq!(run.status.code(), Some(1), "{line}: {}", run.stderr);
    assert!(run.stdout.is_empty(), "{line}");
    // Which engine is used may have been said before.
    let told = run.stderr.lines().filter(|told| !told.starts_with("engine: ")).count();
    assert_eq!(told, 1, "{line}: {}", run.stderr);
    assert_eq!(fs::read_dir(&run.directory).unwrap().count(), 0, "{line}: a file is left");
    run.stderr
}

/// Fails if figures of a record contradict each other. One that is being written is not settled yet.
#[track_caller]
fn consistent(record: &Record) {
    if record.status != Status::Running {
        assert_eq!(results::consistency::contradictions(record), [""; 0], "{}", record.name);
    }
}

/// All records in `directory`, none if it is not there. All that ends in `.json` must be one, and no figure of one
/// contradicts another.
pub fn records(directory: &Path) -> Vec<Record> {
    if !directory.exists() {
        return Vec::new();
    }
    let loaded = results::store::load_all(directory).unwrap();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    loaded.records.iter().for_each(consistent);
    loaded.records
}

/// A `serve` that has just been started, once it listens, and its ports for calls and for events; `None` where libzmq is
/// missing.
pub fn listening(server: Running) -> Option<(Running, [String; 2])> {
    let ready = wait_until(Duration::from_secs(60), || {
        let said = server.stderr();
        said.contains("TRex clients") || said.contains("linerate: ")
    });
    let said = server.stderr();
    assert!(ready, "the server did not start: {said}");
    if said.contains("libzmq5") {
        eprintln!("skipped: libzmq5 is not installed: run make setup");
        return None;
    }
    let port = |what: &str| {
        let rest = said.split(&format!("{what} at tcp://127.0.0.1:")).nth(1);
        let rest = rest.unwrap_or_else(|| panic!("no address: {said}"));
        rest.chars().take_while(char::is_ascii_digit).collect::<String>()
    };
    let ports = [port("calls"), port("events")];
    Some((server, ports))
}

/// Runs a tool of the system to its end, and returns what it printed.
pub fn tool(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {} {stderr}", output.status);
    String::from_utf8(output.stdout).unwrap()
}
