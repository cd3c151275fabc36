//! Compiles the generator and the receiver.

fn main() {
    bpf_build::skeleton("src/xdp/generate.bpf.c");
    bpf_build::skeleton("src/xdp/receive.bpf.c");
}
