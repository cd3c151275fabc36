//! What goes over the wire: headers, checksums, the hash that spreads flows, and the arithmetic of frame sizes and rates.
//!
//! Plain values enter, bytes and numbers leave; nothing here does I/O.
//! Each header has one module of one shape: `LENGTH`, a struct of its fields, `emit` and `parse`.

pub mod arp;
pub mod checksum;
pub mod esp;
pub mod ethernet;
pub mod gre;
pub mod human;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
pub mod mac;
pub mod neighbour;
pub mod pppoe;
pub mod rate;
pub mod signature;
pub mod size;
pub mod tcp;
pub mod toeplitz;
pub mod udp;
pub mod vlan;

pub use mac::MacAddress;
pub use rate::Rate;
