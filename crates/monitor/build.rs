//! Compiles the kernel program that watches the cores change threads.

fn main() {
    bpf_build::skeleton("src/interruptions.bpf.c");
}
