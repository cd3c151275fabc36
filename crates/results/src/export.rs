//! Exporters: a record enters, the text of another format leaves. One file per format.

pub mod csv;
pub mod trex_loadtest;
