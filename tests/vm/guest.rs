//! A test machine. A kernel and kinds of cards enter; a running machine that takes commands leaves. It has two cores
//! and four cards of each kind, wired in pairs: `KIND-0` with `KIND-2`, `KIND-1` with `KIND-3`.
//!
//! Commands go to its first process (`tests/vm/init`) over virtio-serial. All waits end: what does not answer in
//! time fails the test with the end of the machine's console, and the machine dies with the test.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use machine::{Acceleration, Hardware};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use results::Record;
use tempfile::TempDir;

use super::cards::{Cable, Kind};
use super::{Kernel, initramfs, kernels, slow};
use crate::common::namespace::Namespace;

/// How long a machine may take to boot, by hardware and by emulation on a busy machine.
const BOOT: [Duration; 2] = [Duration::from_secs(12), Duration::from_secs(150)];
/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(240);
/// What a command may print.
const MOST: usize = 64 << 20;

/// Why no machine can run here; nothing where one can.
pub fn unavailable() -> Option<String> {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let look = || {
        let qemu = Command::new(machine::PROGRAM).arg("--version").stdout(Stdio::null()).status();
        if !cfg!(target_arch = "x86_64") {
            return Some("test machines are x86-64, and their programs are those of this machine".to_owned());
        }
        if qemu.is_err() {
            return Some("qemu-system-x86 is not installed (make setup installs it)".to_owned());
        }
        initramfs::check().err()
    };
    REASON.get_or_init(look).clone()
}

/// A machine that runs until this is dropped.
pub struct Guest {
    stream: BufReader<UnixStream>,
    qemu: Qemu,
}

/// What a command printed, and how it ended.
pub struct Output {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Guest {
    /// Boots `kernel` with four cards of each kind; the error says why the kernel is unavailable.
    pub fn boot(kernel: Kernel, kinds: &[Kind]) -> Result<Self, String> {
        let files = kernels::find(kernel)?;
        let image = image(&files);
        let by_hardware = by_hardware(&files, &image);
        let patience = BOOT[usize::from(!by_hardware)];
        let guest = Qemu::start(&files, &image, kinds, by_hardware).connect(patience);
        Ok(guest.unwrap_or_else(|reason| panic!("{reason}")).name_cards(kinds))
    }

    /// Gives the cards their names, which drivers hand out in any order.
    fn name_cards(mut self, kinds: &[Kind]) -> Self {
        let cards =
            kinds.iter().enumerate().flat_map(|(at, kind)| (0..4).map(move |number| (at, kind, number)));
        let names: String = cards
            .map(|(at, kind, number)| format!("{}) name={}-{number};;\n", mac(at, number), kind.name))
            .collect();
        self.run(&format!(
            "for path in /sys/class/net/*; do
                 read -r address <$path/address
                 case $address in
                     {names}
                     *) continue;;
                 esac
                 ip link set ${{path##*/}} name $name
             done
             sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1"
        ));
        self
    }

    /// Runs the lines of `script`, to the first that fails.
    pub fn attempt(&mut self, script: &str) -> Output {
        self.exchange(script).unwrap_or_else(|error| {
            panic!("the machine did not answer ({error}) to: {script}\n{}", self.qemu.last_words())
        })
    }

    /// The same, and they must end well; returns what they printed.
    pub fn run(&mut self, script: &str) -> String {
        let output = self.attempt(script);
        assert_eq!(output.status, 0, "{script}: {}{}", output.stdout, output.stderr);
        output.stdout
    }

    /// Runs the program under test.
    pub fn linerate(&mut self, line: &str) -> Output {
        self.attempt(&format!("linerate {line}"))
    }

    fn exchange(&mut self, script: &str) -> io::Result<Output> {
        self.qemu.deadline = Instant::now() + PATIENCE;
        self.stream.get_mut().write_all(format!("{}\n{script}", script.len()).as_bytes())?;
        let mut answer = String::new();
        read_line(&mut self.stream, &mut answer, self.qemu.deadline)?;
        let numbers: Vec<usize> = answer.split_whitespace().flat_map(str::parse).collect();
        let &[status, stdout, stderr] = numbers.as_slice() else {
            return Err(io::Error::other(format!("it answered: {answer}")));
        };
        let stdout = self.text(stdout)?;
        let stderr = self.text(stderr)?;
        Ok(Output { status: status as i32, stdout, stderr })
    }

    fn text(&mut self, length: usize) -> io::Result<String> {
        if length > MOST {
            return Err(io::Error::other(format!("it printed {length} bytes")));
        }
        let mut bytes = vec![0; length];
        let mut filled = 0;
        while filled < length {
            match self.stream.read(&mut bytes[filled..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(error) => retry(error, self.qemu.deadline)?,
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Output {
    /// The same, if it ended well.
    pub fn well(self) -> Self {
        assert_eq!(self.status, 0, "{}{}", self.stdout, self.stderr);
        self
    }

    /// The record on standard output.
    pub fn record(&self) -> Record {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("no record ({error}): {}\n{}", self.stdout, self.stderr))
    }

    /// The JSON on standard output.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("no JSON ({error}): {}\n{}", self.stdout, self.stderr))
    }
}

/// Whether machines run by KVM, which only a trial tells: where a stock kernel cannot run under it, nothing says so,
/// and the machine hangs.
fn by_hardware(files: &kernels::Files, image: &Path) -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let found = Qemu::start(files, image, &[], true).connect(BOOT[0]);
        match &found {
            Ok(_) => eprintln!("machines run by KVM"),
            Err(_) => eprintln!("KVM does not start a machine here: machines are emulated"),
        }
        found.is_ok()
    })
}

/// Whether `kernel` runs by KVM here; the error says why it is unavailable.
pub fn runs_by_hardware(kernel: Kernel) -> Result<bool, String> {
    let files = kernels::find(kernel)?;
    Ok(by_hardware(&files, &image(&files)))
}

/// The address of card `number` of the kind at `at`.
fn mac(at: usize, number: usize) -> String {
    format!("52:54:00:00:{at:02x}:{number:02x}")
}

/// The process of a machine.
struct Qemu {
    process: Child,
    directory: TempDir,
    deadline: Instant,
    /// Has the bridges between its cards.
    _bridges: Option<Namespace>,
}

impl Qemu {
    fn start(files: &kernels::Files, image: &Path, kinds: &[Kind], by_hardware: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let mut command = Command::new(machine::PROGRAM);
        let acceleration = if by_hardware { Acceleration::Kvm } else { Acceleration::Emulation };
        command.args(Hardware { acceleration, cpus: 2, memory: 1280 }.words());
        let drivers: Vec<&str> = kinds.iter().map(|kind| kind.driver).collect();
        let parameters = format!("console=ttyS0 panic=-1 quiet drivers={}", drivers.join(","));
        command.args(machine::boot(&files.image, &image.display().to_string(), &parameters));
        command.args(["-serial", &format!("file:{}", path("console"))]);
        command.args(["-chardev", &format!("socket,id=agent,server=on,wait=off,path={}", path("agent"))]);
        command.args(["-device", "virtio-serial-pci", "-device", "virtserialport,chardev=agent"]);
        for (at, kind) in kinds.iter().enumerate() {
            if kind.cable == Cable::Slow {
                slow::connect(directory.path(), kind.name).unwrap();
            }
            add_cards(&mut command, directory.path(), at, kind);
        }
        let bridges = bridges(kinds);
        bridges.iter().for_each(|bridges| bridges.enter(&mut command));
        let said = File::create(path("qemu")).unwrap();
        command.stdin(Stdio::null()).stdout(said.try_clone().unwrap()).stderr(said);
        // SAFETY: between fork and exec the closure only makes a system call.
        unsafe { command.pre_exec(|| set_pdeathsig(Signal::SIGKILL).map_err(io::Error::from)) };
        let process = command.spawn().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
        Self { process, directory, deadline: Instant::now(), _bridges: bridges }
    }

    /// Waits until the machine is up; the error has what it said last.
    fn connect(mut self, patience: Duration) -> Result<Guest, String> {
        self.deadline = Instant::now() + patience;
        match self.greet() {
            Ok(stream) => Ok(Guest { stream, qemu: self }),
            Err(error) => Err(format!("the machine did not boot ({error}): {}", self.last_words())),
        }
    }

    fn greet(&mut self) -> io::Result<BufReader<UnixStream>> {
        let stream = loop {
            if let Some(status) = self.process.try_wait()? {
                return Err(io::Error::other(format!("qemu ended: {status}")));
            }
            match UnixStream::connect(self.directory.path().join("agent")) {
                Ok(stream) => break stream,
                Err(error) if Instant::now() > self.deadline => return Err(error),
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        };
        stream.set_read_timeout(Some(Duration::from_millis(500)))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut stream = BufReader::new(stream);
        let mut greeting = String::new();
        read_line(&mut stream, &mut greeting, self.deadline)?;
        if greeting.trim() == "ready" { Ok(stream) } else { Err(io::Error::other(greeting)) }
    }

    /// The end of what QEMU and the machine's console said.
    fn last_words(&self) -> String {
        let read = |name| fs::read(self.directory.path().join(name)).unwrap_or_default();
        let text = String::from_utf8_lossy(&[read("qemu"), read("console")].concat()).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(25)..].join("\n")
    }
}

/// Adds the four cards of the kind at `at`.
fn add_cards(command: &mut Command, directory: &Path, at: usize, kind: &Kind) {
    let Kind { name, device, .. } = kind;
    for number in 0..4 {
        let id = format!("{name}-{number}");
        let end = match kind.cable {
            Cable::Hub => format!("hubport,hubid={}", 2 * at + number % 2 + 1),
            Cable::Bridge { queues } => {
                let queues = if queues > 1 { format!(",queues={queues}") } else { String::new() };
                format!("tap,ifname={id},script=no,downscript=no,vhost=off{queues}")
            }
            Cable::Slow => {
                format!("stream,server=off,addr.type=unix,addr.path={}", slow::path(directory, &id).display())
            }
        };
        command.args(machine::card(&id, &end, device, &mac(at, number)));
    }
}

/// A namespace with the bridges and taps between cards of such `kinds`, where there are such.
fn bridges(kinds: &[Kind]) -> Option<Namespace> {
    let mut script = String::new();
    for Kind { name, cable, .. } in kinds {
        let Cable::Bridge { queues } = cable else { continue };
        let queues = if *queues > 1 { "multi_queue" } else { "" };
        script += &format!(
            "for n in 0 1 2 3; do
                 bridge={name}b$((n % 2))
                 [ -e /sys/class/net/$bridge ] || ip link add $bridge up type bridge mcast_snooping 0
                 ip tuntap add dev {name}-$n mode tap vnet_hdr {queues}
                 ip link set {name}-$n master $bridge up
             done\n"
        );
    }
    (!script.is_empty()).then(|| {
        let namespace = Namespace::new();
        namespace.run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1");
        namespace.run(&script);
        namespace
    })
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads a line, until `deadline` at most.
fn read_line(stream: &mut BufReader<UnixStream>, line: &mut String, deadline: Instant) -> io::Result<()> {
    loop {
        match stream.read_line(line) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => return Ok(()),
            Err(error) => retry(error, deadline)?,
        }
    }
}

/// Whether to go on reading after `error`: only until `deadline`, and only where nothing came yet.
fn retry(error: io::Error, deadline: Instant) -> io::Result<()> {
    let nothing =
        matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted);
    if nothing && Instant::now() < deadline { Ok(()) } else { Err(error) }
}

/// The file system for `kernel`, with the program as it is now; it is written once a process.
fn image(kernel: &kernels::Files) -> PathBuf {
    static WRITTEN: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
    let file = kernels::directory().join(format!("{}.cpio", kernel.version));
    let mut written = WRITTEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !written.contains(&kernel.version) {
        initramfs::write(kernel, &file)
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
        written.push(kernel.version.clone());
    }
    file
}
