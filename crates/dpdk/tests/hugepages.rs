//! DPDK without the hugepages that it is to use: in a process of its own, since DPDK starts once in each.

#![allow(clippy::unwrap_used)] // a test may panic

use std::fs;
use std::path::Path;

use dpdk::{Config, Dpdk, Memory};

#[test]
fn where_hugepages_are_missing_that_is_said_with_the_remedy_and_nothing_is_left() {
    let reserved = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("nr_hugepages")).ok();
    let sizes = fs::read_dir("/sys/kernel/mm/hugepages").into_iter().flatten().flatten();
    if sizes.filter_map(reserved).any(|pages| pages.trim() != "0") {
        eprintln!("skipped: this machine has hugepages");
        return;
    }
    let config = Config { core: 0, memory: Memory::Hugepages, cards: Vec::new() };
    let said = Dpdk::start(&config).unwrap_err().to_string();
    assert!(said.contains("linerate doctor") && said.contains("reserve hugepages"), "{said}");
    let directory = format!("/var/run/dpdk/linerate-{}", std::process::id());
    assert!(!Path::new(&directory).exists(), "{directory} is left");
}
