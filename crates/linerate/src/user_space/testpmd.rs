//! testpmd as the device: a mode and a core enter; a process that forwards between two ports in shared
//! memory leaves, and where their other ends are. It dies with us, and leaves no files.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use engine::dpdk::socket_name;
use lab::InterfaceCounters;

use crate::generator::process::Process;
use crate::generator::program::number_after;

/// How long it may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);
/// What it says when it forwards and listens.
const READY: &str = "testpmd> ";
/// What asks it for its counters.
const QUESTION: &str = "show fwd stats all\n";
/// How long its answer may take.
const ANSWER: Duration = Duration::from_secs(2);
/// In front of a frame in its buffer.
const HEADROOM: usize = 128;

/// testpmd while it forwards. Dropping it ends it.
pub struct Testpmd {
    mode: String,
    command: String,
    sockets: [String; 2],
    /// Bytes of a buffer that holds every frame.
    room: usize,
    process: Process,
}

impl Testpmd {
    /// Starts it on `core`, with so many queues a port; frames of up to `max_frame_size` bytes, FCS
    /// included, fit.
    pub fn start(mode: &str, core: usize, queues: usize, max_frame_size: usize) -> Result<Self> {
        let sockets = [socket_name(), socket_name()];
        let room = max_frame_size.next_multiple_of(64).max(2048);
        let prefix = format!("linerate-{}-dut", std::process::id());
        let words = words(mode, core, queues, room, &prefix, &sockets);
        let mut process = Process::start(None, core, &words, None).context("cannot start testpmd")?;
        wait_until_ready(&mut process)?;
        // Empty, and of no use to it: whatever ends it then leaves nothing.
        let _ = fs::remove_dir(Path::new("/var/run/dpdk").join(prefix));
        Ok(Self { mode: mode.to_owned(), command: words.join(" "), sockets, room, process })
    }

    /// What it does with frames.
    pub fn mode(&self) -> &str {
        &self.mode
    }

    /// Its command line.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// What it counted at its two ports since it started.
    pub fn counters(&self) -> Result<[InterfaceCounters; 2]> {
        let before = self.process.said()?.stdout.len();
        self.process.tell(QUESTION)?;
        let deadline = Instant::now() + ANSWER;
        loop {
            let said = self.process.said()?.stdout;
            if let Some(counters) = said.get(before..).and_then(counters) {
                return Ok(counters);
            }
            if Instant::now() > deadline {
                bail!("testpmd does not say what it counted");
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// The devices that are the other ends of its two ports.
    pub fn other_ends(&self) -> [String; 2] {
        let room = self.room;
        let end = |number: usize| {
            let socket = &self.sockets[number];
            format!(
                "net_memif{number},role=client,id=0,bsize={room},rsize=10,socket={socket},socket-abstract=yes"
            )
        };
        [end(0), end(1)]
    }
}

/// Its command line: in ordinary memory, with no cards and no files; it ends when its input does.
fn words(
    mode: &str,
    core: usize,
    queues: usize,
    room: usize,
    prefix: &str,
    sockets: &[String; 2],
) -> Vec<String> {
    let port = |number: usize| {
        format!("--vdev=net_memif{number},role=server,id=0,socket={},socket-abstract=yes", sockets[number])
    };
    [
        // By lines, so that it is heard when it is ready.
        "stdbuf",
        "-oL",
        "dpdk-testpmd",
        "--no-huge",
        "--no-shconf",
        "-m",
        "256",
        "--no-pci",
        "--no-telemetry",
        "--file-prefix",
        prefix,
        "--lcores",
        &format!("0@{core},1@{core}"),
        &port(0),
        &port(1),
        "--",
        "--interactive",
        &format!("--forward-mode={mode}"),
        "--auto-start",
        "--disable-link-check",
        &format!("--rxq={queues}"),
        &format!("--txq={queues}"),
        &format!("--total-num-mbufs={}", 8192 * queues),
        &format!("--mbuf-size={}", room + HEADROOM),
    ]
    .map(str::to_owned)
    .into()
}

/// Its counters by its answer; `None` while that is not complete.
fn counters(answer: &str) -> Option<[InterfaceCounters; 2]> {
    const HEAD: &str = "Forward statistics for port ";
    // The sums of both stand at the end.
    let (ports, sums) = answer.split_once("Accumulated forward statistics")?;
    number_after(sums, "TX-dropped:")?;
    let port = |number: u8| {
        let (_, block) = ports.split_once(&format!("{HEAD}{number}"))?;
        let block = block.split(HEAD).next()?;
        Some(InterfaceCounters {
            name: format!("testpmd's port {number}"),
            received: number_after(block, "RX-packets:")?,
            receive_dropped: number_after(block, "RX-dropped:")?,
            sent: number_after(block, "TX-packets:")?,
            send_dropped: number_after(block, "TX-dropped:")?,
        })
    };
    Some([port(0)?, port(1)?])
}

/// Waits until it forwards: before that it turns away who connects.
fn wait_until_ready(process: &mut Process) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let said = process.said()?;
        if said.stdout.contains(READY) {
            return Ok(());
        }
        if process.has_ended()? || Instant::now() > deadline {
            let reason = said.last_words().unwrap_or("it says nothing");
            bail!("testpmd does not start: {reason}; is Debian's dpdk-dev installed (`make setup`)?");
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_names_mode_core_and_both_sockets() {
        let sockets = ["/a".to_owned(), "/b".to_owned()];
        let line = words("macswap", 3, 2, 2048, "prefix", &sockets).join(" ");
        for part in
            ["--forward-mode=macswap", "0@3,1@3", "socket=/a,", "socket=/b,", "--mbuf-size=2176", "--rxq=2"]
        {
            assert!(line.contains(part), "no {part} in {line}");
        }
    }

    #[test]
    fn its_counters_are_read_once_the_answer_is_complete() {
        let answer = "testpmd> show fwd stats all\r\n
  ---------------------- Forward statistics for port 0  ----------------------
  RX-packets: 1000           RX-dropped: 7             RX-total: 1007
  TX-packets: 20             TX-dropped: 3             TX-total: 23
  ----------------------------------------------------------------------------

  ---------------------- Forward statistics for port 1  ----------------------
  RX-packets: 23             RX-dropped: 0             RX-total: 23
  TX-packets: 990            TX-dropped: 10            TX-total: 1000
  ----------------------------------------------------------------------------

  +++++++++++++++ Accumulated forward statistics for all ports+++++++++++++++
  RX-packets: 1023           RX-dropped: 7             RX-total: 1030
  TX-packets: 1010           TX-dropped: 13            TX-total: 1023
  ++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++
testpmd> ";
        let [zero, one] = counters(answer).unwrap();
        assert_eq!((zero.received, zero.receive_dropped, zero.sent, zero.send_dropped), (1000, 7, 20, 3));
        assert_eq!((one.received, one.receive_dropped, one.sent, one.send_dropped), (23, 0, 990, 10));
        assert_eq!(counters(&answer[..answer.len() / 2]), None);
    }
}
