//! What to send: streams, field programs and profiles become frame tables. Pure.

pub mod table;

pub use table::{FrameTable, Row};
