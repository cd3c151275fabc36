//! What to send: streams, field programs and profiles become frame tables. Pure.
//!
//! ```text
//! builtin (name, tunables) ─┐
//!                           ├─► Profile: streams of fields ──► schedule, frame ──► FrameTable
//! document (TOML text) ─────┤     (bursts and chains: timeline, repetition)            ▲
//! capture (pcap, pcapng) ───┴─► Recording: headers as captured ────────────────────────┤
//! frames that another program describes ─► raw::Builder ────────────────────────────────┘
//!                                  FrameTable ──► show, and spread (what queues of a card take)
//! ```

pub mod builtin;
pub mod capture;
pub mod error;
pub mod field;
pub mod frame;
pub mod genome;
pub mod profile;
pub mod raw;
pub mod repetition;
pub mod rfc2544;
pub mod show;
pub mod spread;
pub mod stream;
pub mod table;
pub mod timeline;
pub mod tunable;

mod document;
mod prepared;
mod probes;
mod program;
mod reader;
mod schedule;
mod timing;

pub use capture::Capture;
pub use error::Error;
pub use frame::{Directions, Endpoint, Endpoints};
pub use genome::Genome;
pub use profile::Profile;
pub use stream::{IpVersion, Stream};
pub use table::{Apart, FrameTable, Row, finish};
pub use tunable::Tunables;
