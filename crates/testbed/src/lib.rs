//! Where a run takes place, and the run: a [`Target`](target::Target) enters, a [`Testbed`] leaves; a profile and a
//! strategy enter, a record leaves.

pub mod bench;
pub mod control;
pub mod core_profile;
pub mod cost;
pub mod counting;
pub mod cross_check;
pub mod dpdk_host;
mod dut_command;
pub mod environment;
pub mod frames;
pub mod inspection;
mod kept;
mod lab_commands;
pub mod machine;
pub mod port;
pub mod progress;
mod proof;
pub mod queue_use;
pub mod quick;
mod real;
mod receive_cost;
mod receive_limit;
pub mod remote_device;
mod remote_stacks;
mod reset_command;
pub mod run;
pub mod self_test;
pub mod sending;
pub mod stop;
mod switch;
pub mod target;
mod testbed;
mod testers;
pub mod trex_profile;
pub mod user_space;
pub mod verify;

pub use testbed::Testbed;
