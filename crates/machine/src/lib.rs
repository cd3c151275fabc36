//! Virtual machines under QEMU. A kernel, cards and a size enter; QEMU's command line, and the file system in memory
//! that a guest boots from, leave. QEMU is started elsewhere: here nothing runs but small tools (`ldd`, `xz`).

pub mod archive;
mod guest;
mod kernel;
mod modules;
mod qemu;

pub use archive::Archive;
pub use guest::{Card, DEFAULT_PROGRAMS, router};
pub use kernel::Kernel;
pub use qemu::{Acceleration, Hardware, PROGRAM, boot, card};
