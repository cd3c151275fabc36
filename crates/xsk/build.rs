//! Compiles the program that hands frames to the sockets.

fn main() {
    bpf_build::skeleton("src/redirect.bpf.c");
}
