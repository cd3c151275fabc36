//! Compiles the devices under test that are kernel programs, and those that the monitor reads with.

fn main() {
    for device in ["calibrated", "pass", "sink", "xdp_router", "xdp_xconnect"] {
        bpf_build::skeleton(&format!("src/dut/{device}.bpf.c"));
    }
    for reader in ["kernel_threads", "steal"] {
        bpf_build::skeleton(&format!("src/monitor/{reader}.bpf.c"));
    }
}
