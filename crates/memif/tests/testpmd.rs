//! Our ends with DPDK's `net_memif`, as `dpdk-testpmd` has it, which sends every frame back.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use std::fs;
use std::io::ErrorKind;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{configs, connected, event, open, receive_all, send_all};
use memif::{Config, Event, Opened, Reason, Role, Socket};

const QUEUES: u16 = 2;

/// Each testpmd wants a core, so that one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whose memory frames are in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Memory {
    /// The driver's, sealed, that frames are copied to and from.
    Rings,
    /// The client's own.
    Clients,
}

/// A testpmd; it ends with the test.
struct Testpmd {
    process: Child,
    prefix: String,
}

impl Testpmd {
    /// Starts one at the other end; `None` where there is none to start.
    fn start(ours: &Config, memory: Memory) -> Option<Self> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("memif-test-{}-{number}", std::process::id());
        let role = if ours.role == Role::Server { "client" } else { "server" };
        let (name, is_abstract) = match &ours.socket {
            Socket::Abstract(name) => (name.clone(), "yes"),
            Socket::Path(path) => (path.display().to_string(), "no"),
        };
        let zero_copy = if memory == Memory::Clients { "yes" } else { "no" };
        let port = format!(
            "--vdev=net_memif0,role={role},id=0,bsize=2048,rsize=9,secret=s3cret,socket={name},socket-abstract={is_abstract},zero-copy={zero_copy}"
        );
        let process = Command::new("dpdk-testpmd")
            .args([
                "--no-huge",
                "--single-file-segments",
                "--no-shconf",
                "-m",
                "256",
                "--no-pci",
                "--no-telemetry",
            ])
            .args(["--file-prefix", &prefix, "--lcores", "0@(0-1),1@(0-1)", &port, "--"])
            .args(["--interactive", "--auto-start", "--disable-link-check", "--port-topology=loop"])
            // It would throw away what arrives before it forwards.
            .arg("--no-flush-rx")
            .args([format!("--rxq={QUEUES}"), format!("--txq={QUEUES}"), "--total-num-mbufs=8192".into()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match process {
            Ok(process) => Some(Self { process, prefix }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                println!("skipped: no dpdk-testpmd here");
                None
            }
            Err(error) => panic!("dpdk-testpmd does not start: {error}"),
        }
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir(format!("/var/run/dpdk/{}", self.prefix));
    }
}

/// Sends frames to it and has them back, as often as it is started, and killed in between.
fn exchange(ours: &Config, memory: Memory, starts: u64) {
    let _alone = alone();
    let Opened { mut memif, mut receivers, mut senders } = open(ours);
    for _ in 0..starts {
        let Some(testpmd) = Testpmd::start(ours, memory) else { return };
        let peer = connected(&mut memif);
        assert_eq!((peer.receive_queues, peer.send_queues), (2, 2));
        assert_eq!(peer.sealed, memory == Memory::Rings);
        for first in (0..1000).step_by(50) {
            for queue in 0..usize::from(QUEUES) {
                send_all(&mut senders[queue], first..first + 50, 1500);
                receive_all(&mut receivers[queue], first..first + 50, 1500);
            }
        }
        drop(testpmd);
        assert_eq!(event(&mut memif), Event::Disconnected(Reason::Gone));
    }
    for counts in memif.received() {
        assert_eq!((counts.frames, counts.malformed, counts.chained), (1000 * starts, 0, 0));
    }
}

fn config(role: usize) -> Config {
    let config = configs()[role].clone();
    Config { secret: "s3cret".into(), receive_queues: QUEUES, send_queues: QUEUES, ..config }
}

#[test]
fn testpmd_as_client_sends_frames_back() {
    exchange(&config(0), Memory::Rings, 2);
}

#[test]
fn testpmd_as_server_sends_frames_back() {
    exchange(&config(1), Memory::Rings, 2);
}

#[test]
fn testpmd_may_share_its_own_memory() {
    exchange(&Config { unsealed: true, ..config(0) }, Memory::Clients, 1);
}

#[test]
fn testpmd_finds_us_at_a_file() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let socket = Socket::Path(directory.path().join("memif"));
    let ours = Config { socket, ..config(0) };
    let mut end = open(&ours);
    let Some(_testpmd) = Testpmd::start(&ours, Memory::Rings) else { return };
    connected(&mut end.memif);
    send_all(&mut end.senders[0], 0..50, 1500);
    receive_all(&mut end.receivers[0], 0..50, 1500);
    drop(end);
    assert!(fs::read_dir(directory.path()).unwrap().next().is_none(), "our socket stays behind");
}
