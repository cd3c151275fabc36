//! DPDK's testpmd as the device, on core 0, in ordinary memory, as `linerate --dut testpmd` starts it.

use std::io::Read;
use std::process::{Child, Command, Stdio};

/// testpmd while it forwards.
pub struct Testpmd(Child);

/// Starts it in `mode` between the two `sockets`, and waits until it listens.
pub fn start(mode: &str, sockets: &[String; 2]) -> Testpmd {
    let port = |number: usize| {
        format!("--vdev=net_memif{number},role=server,id=0,socket={},socket-abstract=yes", sockets[number])
    };
    let mut child = Command::new("stdbuf")
        .args(["-oL", "dpdk-testpmd", "--no-huge", "--no-shconf", "-m", "256", "--no-pci", "--no-telemetry"])
        .args(["--file-prefix", &format!("forwarding-{}", std::process::id()), "--lcores", "0@0,1@0"])
        .args([port(0), port(1), "--".into(), "--interactive".into(), format!("--forward-mode={mode}")])
        .args(["--auto-start", "--disable-link-check", "--total-num-mbufs=8192"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("dpdk-testpmd: Debian's dpdk-dev has it");
    let mut output = child.stdout.take().unwrap();
    let (mut said, mut byte) = (String::new(), [0]);
    while !said.ends_with("testpmd> ") {
        output.read_exact(&mut byte).expect("testpmd ended");
        said.push(char::from(byte[0]));
    }
    // What it says later is not read, and little; a closed pipe would end it.
    std::mem::forget(output);
    Testpmd(child)
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
