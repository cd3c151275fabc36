//! Importers: the text of another program's results enters, a record leaves. One file per format.

pub mod trex_loadtest;
