//! A device under test that is another computer: what configures, describes and counts it.
//!
//! A [`Driver`] (a TOML file of shell commands) and the user's options enter and make a [`Plan`], which is
//! plain data and can be printed. A [`Device`] carries it out over a [`Shell`], which is behind [`Ssh`] or on a
//! [`Console`]: it checks, describes, configures, counts, and undoes. What was configured is undone by the
//! device itself when the connection ends, however that ends: nothing is left behind even after
//! `kill -9`.

mod console;
mod counters;
mod device;
mod dialogue;
mod driver;
mod error;
mod keeper;
mod plan;
mod quote;
mod restart;
mod shell;
mod ssh;
mod variables;

pub use console::Console;
pub use counters::{Counted, Counters, parse as parse_counters};
pub use device::Device;
pub use dialogue::Login;
pub use driver::{Driver, Parameter};
pub use error::{Error, Result};
pub use plan::Plan;
pub use shell::{Answer, Shell};
pub use ssh::Ssh;
