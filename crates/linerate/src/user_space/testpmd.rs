//! testpmd as the device: a mode and a core enter; a process that forwards between two ports in shared
//! memory leaves, and where their other ends are. It dies with us, and leaves no files.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use engine::dpdk::socket_name;

use crate::generator::process::Process;

/// How long it may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);
/// What it says when it forwards.
const READY: &str = "Press enter to exit";
/// In front of a frame in its buffer.
const HEADROOM: usize = 128;

/// testpmd while it forwards. Dropping it ends it.
pub struct Testpmd {
    mode: String,
    command: String,
    sockets: [String; 2],
    /// Bytes of a buffer that holds every frame.
    room: usize,
    _process: Process,
}

impl Testpmd {
    /// Starts it on `core`; frames of up to `max_frame_size` bytes, FCS included, fit.
    pub fn start(mode: &str, core: usize, max_frame_size: usize) -> Result<Self> {
        let sockets = [socket_name(), socket_name()];
        let room = max_frame_size.next_multiple_of(64).max(2048);
        let prefix = format!("linerate-{}-dut", std::process::id());
        let words = words(mode, core, room, &prefix, &sockets);
        let mut process = Process::start(None, core, &words, None).context("cannot start testpmd")?;
        wait_until_ready(&mut process)?;
        // Empty, and of no use to it: whatever ends it then leaves nothing.
        let _ = fs::remove_dir(Path::new("/var/run/dpdk").join(prefix));
        Ok(Self { mode: mode.to_owned(), command: words.join(" "), sockets, room, _process: process })
    }

    /// What it does with frames.
    pub fn mode(&self) -> &str {
        &self.mode
    }

    /// Its command line.
    pub fn command(&self) -> &str {
        &self.command
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
fn words(mode: &str, core: usize, room: usize, prefix: &str, sockets: &[String; 2]) -> Vec<String> {
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
        &format!("--forward-mode={mode}"),
        "--auto-start",
        "--disable-link-check",
        "--total-num-mbufs=8192",
        &format!("--mbuf-size={}", room + HEADROOM),
    ]
    .map(str::to_owned)
    .into()
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
        let line = words("macswap", 3, 2048, "prefix", &sockets).join(" ");
        for part in
            ["--forward-mode=macswap", "0@3,1@3", "socket=/a,", "socket=/b,", "--mbuf-size=2176", "--no-pci"]
        {
            assert!(line.contains(part), "no {part} in {line}");
        }
    }
}
