//! Compiles the program by which packets take shortcuts.

fn main() {
    bpf_build::skeleton("src/device/af_xdp/shortcuts.bpf.c");
}
