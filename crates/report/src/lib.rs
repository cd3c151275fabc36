//! Records and certificates enter; terminal tables, the HTML page, Markdown and CSV leave.
//!
//! ```text
//! records ──► outcome (one run, directions added up) ──► comparison (tests × devices) ──┬──► terminal
//!    └──────► metric (one figure of a run) ──► bench (repeats, and what they prove) ────┼──► html
//!    words ──► groups ──► numbers, records ──► sets (what repeats prove) ──► terminal, json
//!             of a bench on several machines: setups (what it proves on each) ──► terminal, json
//!             of one run: evidence (the interval of its headline, in words), overload (what is still forwarded)
//!             and: findings (what stands out, and why it matters), energy (what a packet takes)
//!             figures as all of them write them: figures
//!             of a comparison: lead (the sentence that a report begins with)
//!             of one run, for others: bundle (an archive); of a stall search: stalls (its ranges in words)
//!             of both: links (what a rate is worth as bandwidth) ───────────────────────┼──► markdown
//!                      nodes (what a packet costs each node of a device's graph) ───────┴──► csv
//!                      workers (how packets are spread over a device's threads)
//!             of a bench over workers: scaling (the law that its figures follow)
//! ```

pub mod bench;
pub mod bundle;
mod certificate;
mod comparison;
pub mod csv;
mod energy;
mod evidence;
mod figures;
pub mod findings;
pub mod groups;
pub mod html;
pub mod json;
pub mod judgement;
mod lead;
pub mod links;
pub mod live;
pub mod markdown;
pub mod metric;
pub mod nodes;
mod outcome;
mod overload;
mod scaling;
mod search;
pub mod sets;
pub mod setups;
mod shared_core;
mod stalls;
pub mod terminal;
mod waterfall;
mod workers;

pub use evidence::{bounds, is_clearer, may_have_changed, second_searches};
