//! Compiles the devices under test that are kernel programs.

fn main() {
    for device in ["calibrated", "firewall", "sink", "xdp_router", "xdp_xconnect"] {
        bpf_build::skeleton(&format!("src/{device}.bpf.c"));
    }
}
