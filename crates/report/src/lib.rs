//! Records and certificates enter; terminal tables and the HTML page leave.
//!
//! ```text
//! records ──► outcome (one run, directions added up) ──► comparison (tests × devices)
//!                                                             ├──► terminal
//!                                                             └──► html
//! ```

mod certificate;
mod comparison;
pub mod html;
mod outcome;
mod search;
pub mod terminal;
