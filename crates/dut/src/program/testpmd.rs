//! testpmd as the device: a mode and a core enter, its command line leaves.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use lab::{InterfaceCounters, Namespace};
use nix::unistd::geteuid;

use programs::{Process, Said, number_after};

use super::private::DIRECTORY;

/// What `--dut` calls it.
pub const NAME: &str = "testpmd";
/// The program.
pub const EXECUTABLE: &str = "dpdk-testpmd";
/// What it says when it forwards and listens.
const READY: &str = "testpmd> ";
/// What asks it for its counters.
const QUESTION: &str = "show fwd stats all\n";
/// How long its answer may take, on a machine that others share.
const ANSWER: Duration = Duration::from_secs(30);
/// In front of a frame in its buffer.
const HEADROOM: usize = 128;

/// Where it runs.
pub(super) struct Testpmd {
    /// Where the directory that it makes goes with it, however it ends; `None` without the right to mount.
    namespace: Option<Namespace>,
}

impl Testpmd {
    pub fn prepare() -> Self {
        let private = || {
            let namespace = Namespace::with_own_mounts()?;
            namespace.make_private(DIRECTORY)?;
            Ok::<_, lab::Error>(namespace)
        };
        Self { namespace: private().ok() }
    }

    pub fn namespace(&self) -> Option<&Namespace> {
        self.namespace.as_ref()
    }

    /// Its command line, see [`words`].
    pub fn words(
        &self,
        mode: &str,
        core: usize,
        queues: usize,
        room: usize,
        sockets: &[String; 2],
    ) -> Vec<String> {
        let place =
            self.namespace.iter().flat_map(|_| ["env".to_owned(), format!("RUNTIME_DIRECTORY={DIRECTORY}")]);
        place.chain(words(mode, core, queues, room, sockets)).collect()
    }

    /// Removes its directory, once it has started: empty, and of no use to it. Whatever ends it then leaves
    /// nothing.
    pub fn tidy_up(&self) {
        if self.namespace.is_some() {
            return;
        }
        let theirs = [Some("/var/run".into()), std::env::var_os("XDG_RUNTIME_DIR"), Some("/tmp".into())];
        for directory in theirs.into_iter().flatten().map(|base| Path::new(&base).join("dpdk")) {
            let is_gone = fs::remove_dir(directory.join(prefix())).is_ok();
            if is_gone && !geteuid().is_root() {
                // Who is not root has one for DPDK alone, and it stays where others of theirs use it.
                let _ = fs::remove_dir(directory);
            }
        }
    }
}

/// Its command line: in ordinary memory, with no cards and no files; it ends when its input does. Its
/// buffers have `room` bytes for a frame, its ports as many `queues`.
fn words(mode: &str, core: usize, queues: usize, room: usize, sockets: &[String; 2]) -> Vec<String> {
    let port = |number: usize| {
        let socket = &sockets[number];
        format!("--vdev=net_memif{number},role=server,id=0,socket={socket},socket-abstract=yes")
    };
    [
        // By lines, so that it is heard when it is ready; before other processes on its core.
        "stdbuf",
        "-oL",
        "nice",
        "-n",
        "-20",
        EXECUTABLE,
        "--no-huge",
        "--no-shconf",
        "-m",
        "256",
        "--no-pci",
        "--no-telemetry",
        "--file-prefix",
        &prefix(),
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

/// What the process `testpmd` counted at its two ports since it started.
pub(super) fn ask(testpmd: &Process) -> Result<[InterfaceCounters; 2]> {
    let before = testpmd.said()?.stdout.len();
    testpmd.tell(QUESTION)?;
    let deadline = Instant::now() + ANSWER;
    loop {
        let said = testpmd.said()?.stdout;
        if let Some(counters) = said.get(before..).and_then(counters) {
            return Ok(counters);
        }
        if Instant::now() > deadline {
            bail!("testpmd does not say what it counted");
        }
        thread::sleep(Duration::from_millis(2));
    }
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

/// Whether it forwards, by what it said.
pub(super) fn is_ready(said: &Said) -> bool {
    said.stdout.contains(READY)
}

fn prefix() -> String {
    format!("linerate-{}-dut", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_names_mode_core_and_both_sockets() {
        let sockets = ["/a".to_owned(), "/b".to_owned()];
        let line = words("macswap", 3, 2, 2048, &sockets).join(" ");
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
