//! What goes over the wire: headers, checksums, and the arithmetic of frame sizes and rates.
//!
//! Plain values enter, bytes and numbers leave; nothing here does I/O.

pub mod mac;
pub mod signature;

pub use mac::MacAddress;
