//! Fuzz targets: bytes that others write enter, and each target asserts what must hold of them, beside that nothing
//! panics. `tools/test` runs each for a moment with bytes made of [seeds](Target::seeds), `make fuzz` for long, guided by
//! which code is reached.

#![allow(clippy::unwrap_used)] // a target is a test, and a test may panic

pub mod frames;
mod guarded;
pub mod memifs;
pub mod mutation;
pub mod parsers;

/// A target.
pub struct Target {
    /// What it is called.
    pub name: &'static str,
    /// Tries these bytes.
    pub run: fn(&[u8]),
    /// Bytes to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: [Target; 15] = [
    Target { name: "frames", run: frames::run, seeds: frames::scripts },
    Target { name: "memif_server", run: memifs::server, seeds: memifs::scripts },
    Target { name: "capture", run: parsers::capture, seeds: parsers::captures },
    Target { name: "profile", run: parsers::profile, seeds: || parsers::files("profiles", "toml") },
    Target { name: "driver", run: parsers::driver, seeds: || parsers::files("drivers", "toml") },
    Target { name: "remote_counters", run: parsers::remote_counters, seeds: parsers::counters },
    Target {
        name: "router_configuration",
        run: parsers::router_configuration,
        seeds: parsers::configurations,
    },
    Target { name: "router_table", run: parsers::router_table, seeds: parsers::tables },
    Target { name: "router_request", run: parsers::router_request, seeds: parsers::requests },
    Target { name: "netlink", run: parsers::netlink, seeds: parsers::datagrams },
    Target { name: "record", run: parsers::record, seeds: parsers::records },
    Target { name: "certificate", run: parsers::certificate, seeds: parsers::certificates },
    Target { name: "imported_result", run: parsers::imported_result, seeds: parsers::exported },
    Target { name: "trex_call", run: parsers::trex_call, seeds: parsers::calls },
    Target { name: "trex_message", run: parsers::trex_message, seeds: parsers::messages },
];
