//! Compiles the kernel program that gives an interface NAPI.

fn main() {
    bpf_build::skeleton("src/pass.bpf.c");
}
