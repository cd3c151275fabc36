//! The program from end to end: one test binary, a module for each thing that users do. Run a part of them by
//! `cargo test -p linerate --test end_to_end -- search::`.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

mod af_xdp;
mod bad_luck;
mod bench;
mod bench_files;
mod build_rate;
mod calibrated;
mod compare;
mod departures;
mod documentation;
mod explain;
mod fastpath;
mod generator;
mod generators;
mod imports;
mod interruption;
mod kills;
mod labs;
mod live;
mod load_tests;
mod misuse;
mod packages;
mod patience;
mod privileges;
mod promiscuous;
mod real_ports;
mod remote;
mod replay;
mod results;
mod rfc2544;
mod search;
mod shared_memory;
mod soak_latency;
mod stall;
mod switch;
mod testers;
mod trex;
mod trex_profiles;
mod user_space;
mod variants;
mod verify;
mod vm;
mod vpp;
mod wire_truth;
