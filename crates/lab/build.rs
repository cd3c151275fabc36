//! Compiles the devices under test that are kernel programs, and the one that the monitor watches with.

fn main() {
    for device in ["calibrated", "pass", "sink", "xdp_router", "xdp_xconnect"] {
        bpf_build::skeleton(&format!("src/dut/{device}.bpf.c"));
    }
    bpf_build::skeleton("src/monitor/interruptions.bpf.c");
}
