//! The page of a run that goes on: its files leave, which a server gives to browsers by these names.

/// Its markup.
pub const PAGE: &str = include_str!("../templates/live.html");
/// Its script, `live.js`, bundled by the build script. It asks for `samples`.
pub const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/live.js"));
/// Its style, `live.css`, bundled by the build script.
pub const STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/live.css"));
