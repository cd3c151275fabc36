//! A target under libFuzzer, which changes bytes so that they reach new code: `LINERATE_FUZZ_TARGET` names it. Without
//! arguments that libFuzzer knows it runs for ever; `make fuzz` gives each a time.

#![no_main]

use std::sync::LazyLock;

use fuzz::{TARGETS, Target};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("LINERATE_FUZZ_TARGET").unwrap_or_default();
    let known = || TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
    TARGETS
        .iter()
        .find(|target| target.name == name)
        .unwrap_or_else(|| panic!("'{name}' is no target: there are {}", known()))
});

libfuzzer_sys::fuzz_target!(init: begin(), |bytes: &[u8]| (TARGET.run)(bytes));

/// Before the first input.
fn begin() {
    // The tables of a router ask for huge pages; for one input alone the kernel would clear more than is ever read.
    let _ = nix::sys::prctl::set_thp_disable(true);
    seed();
}

/// Writes the target's seeds to the directory that `LINERATE_FUZZ_SEEDS` names.
fn seed() {
    let Some(directory) = std::env::var_os("LINERATE_FUZZ_SEEDS") else { return };
    for (number, seed) in (TARGET.seeds)().iter().enumerate() {
        std::fs::write(std::path::Path::new(&directory).join(format!("seed-{number}")), seed).unwrap();
    }
}
