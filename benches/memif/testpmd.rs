//! A testpmd with one memif: a mode and a core enter, its rate leaves.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A testpmd that forwards; it ends when this does.
pub struct Testpmd {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    prefix: String,
}

impl Testpmd {
    /// Starts one on `core`; `None` where there is none to start.
    pub fn start(mode: &str, role: &str, socket: &str, core: usize) -> Option<Self> {
        let prefix = format!("memif-bench-{}-{role}", std::process::id());
        let port = format!(
            "--vdev=net_memif0,role={role},id=0,bsize=2048,rsize=10,socket={socket},socket-abstract=yes"
        );
        let mut process = Command::new("stdbuf")
            .args(["-oL", "dpdk-testpmd", "--no-huge", "--no-shconf", "-m", "256", "--no-pci"])
            .args(["--no-telemetry", "--file-prefix", &prefix])
            .args(["--lcores", &format!("0@(0-1),1@{core}"), &port, "--", "--interactive", "--auto-start"])
            .args(["--disable-link-check", "--port-topology=loop", "--total-num-mbufs=8192"])
            .arg(format!("--forward-mode={mode}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let (input, output) = (process.stdin.take()?, BufReader::new(process.stdout.take()?));
        let mut testpmd = Self { process, input, output, prefix };
        // Where stdbuf is but testpmd is not, this is its end.
        testpmd.line("Port 0: ")?;
        Some(testpmd)
    }

    /// The rest of the next line after `beginning`.
    fn line(&mut self, beginning: &str) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some((_, rest)) = line.split_once(beginning) {
                return Some(rest.trim().to_owned());
            }
        }
    }

    /// Frames that it sends in a second, measured that long.
    pub fn rate(&mut self, duration: Duration) -> f64 {
        let (first, started) = (self.sent(), Instant::now());
        thread::sleep(duration);
        (self.sent() - first) as f64 / started.elapsed().as_secs_f64()
    }

    fn sent(&mut self) -> u64 {
        self.input.write_all(b"show fwd stats all\n").unwrap();
        let counts = self.line("TX-packets: ").unwrap();
        // Then the sums of all ports.
        self.line("TX-packets: ").unwrap();
        counts.split(' ').next().unwrap().parse().unwrap()
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir(format!("/var/run/dpdk/{}", self.prefix));
    }
}
