//! What comes from outside: files that a user names, and texts of devices, peers and records, enter; bounded bytes and
//! printable text leave.

pub mod file;
pub mod text;
