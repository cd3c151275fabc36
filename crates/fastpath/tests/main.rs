//! The router as others see it: packets, commands and peers enter; what leaves, what is counted and what is shown is
//! held against what should be. All is one program, which is built and linked once.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;
mod namespace;
mod process;
#[path = "../../memif/tests/common/raw.rs"]
mod raw;
mod reference;
mod site;

mod acl;
mod af_xdp;
mod arp;
mod daemon;
mod daemon_kernel;
mod documented;
mod fib;
mod graph;
mod hostile;
mod hostile_peer;
mod icmp6_discovery;
mod icmp6_errors;
mod icmp_error;
mod ip6;
mod kernel_routes;
mod kernel_tap;
mod l2;
mod local;
mod memif;
mod rewritten;
mod rss;
mod shortcuts;
mod states;
mod table;
mod trace;
mod vpp_words;
