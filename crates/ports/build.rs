//! Compiles the programs that a port needs for a trial.

fn main() {
    bpf_build::skeleton("src/port.bpf.c");
}
