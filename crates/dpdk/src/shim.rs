//! What bindgen makes of `shim.h`.

#![allow(non_camel_case_types, missing_docs, dead_code, clippy::all, clippy::pedantic)]

include!(concat!(env!("OUT_DIR"), "/shim.rs"));
