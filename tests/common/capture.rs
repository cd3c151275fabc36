//! Frames as an independent tool saw them on the wire: tcpdump captures, a small reader of its
//! files gives them to the test.

use std::fs::{self, File};
use std::process::{Child, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use wire::signature::Signature;

use super::namespace::Namespace;
use super::wait_until;

/// tcpdump on one interface.
pub struct Capture {
    tcpdump: Child,
    directory: TempDir,
}

impl Capture {
    /// Starts to capture what comes in at `interface` of `namespace`.
    pub fn start(namespace: &Namespace, interface: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let log = File::create(directory.path().join("log")).unwrap();
        let tcpdump = namespace
            .command("tcpdump")
            .args([
                "-i",
                interface,
                "-Q",
                "in",
                "-Z",
                "root",
                "--immediate-mode",
                "-U",
                "-B",
                "16384",
                "-w",
                "frames",
            ])
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let capture = Self { tcpdump, directory };
        assert!(
            wait_until(Duration::from_secs(10), || capture.log().contains("listening on")),
            "tcpdump: {}",
            capture.log()
        );
        capture
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap()
    }

    /// Ends the capture; the frames of Linerate in it, with their signatures.
    pub fn frames(mut self) -> Vec<(Vec<u8>, Signature)> {
        kill(Pid::from_raw(self.tcpdump.id() as i32), Signal::SIGINT).unwrap();
        self.tcpdump.wait().unwrap();
        let file = fs::read(self.directory.path().join("frames")).unwrap();
        let frames = parse(&file).into_iter();
        frames.filter_map(|frame| Signature::parse(&frame).map(|signature| (frame, signature))).collect()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = self.tcpdump.kill();
        let _ = self.tcpdump.wait();
    }
}

/// The frames of a pcap file of this machine's byte order: a header of 24 bytes, then for each
/// frame 16 bytes with its lengths and its bytes.
fn parse(file: &[u8]) -> Vec<Vec<u8>> {
    const MAGIC: u32 = 0xa1b2_c3d4;
    let number = |at: usize| u32::from_ne_bytes(file[at..at + 4].try_into().unwrap());
    assert_eq!(number(0), MAGIC, "not a pcap file");
    let mut frames = Vec::new();
    let mut at = 24;
    while at < file.len() {
        let (captured, length) = (number(at + 8) as usize, number(at + 12) as usize);
        assert_eq!(captured, length, "tcpdump cut a frame");
        frames.push(file[at + 16..at + 16 + captured].to_vec());
        at += 16 + captured;
    }
    frames
}
