//! What parsers say of what people wrote, said so that people can mend it: errors of clap and of TOML enter,
//! one line that names what is known leaves.

pub mod command_line;
pub mod manual;
pub mod toml;
pub mod usage;
