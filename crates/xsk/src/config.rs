//! How a socket is to be set up, and how the kernel serves it: both are plain values.

use std::io;

use nix::libc;

use crate::MAX_LENGTH;
use crate::frames::MOST_CHUNKS;

/// What the kernel keeps free before a frame that arrives.
const HEADROOM: usize = 256;

/// Whether frames may stay where they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copying {
    /// No copies where the driver can, else copies.
    #[default]
    Automatic,
    /// Copies, whatever the driver can.
    Always,
    /// No copies; refused where the driver cannot.
    Never,
}

/// How the kernel serves a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Frames stay where they are.
    ZeroCopy,
    /// The kernel copies them.
    Copy,
}

impl std::fmt::Display for Mode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::ZeroCopy => "zero copy",
            Self::Copy => "copy",
        })
    }
}

/// Why the kernel copies although it need not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyCopies {
    /// The driver cannot do without.
    NotByDriver,
    /// The driver can, and refused with this error number: as it is set up now, or for want of memory or queues.
    Refused(i32),
}

impl WhyCopies {
    /// What the kernel's answer to a bind without copies means.
    pub(crate) fn of(cause: &io::Error) -> Self {
        match cause.raw_os_error() {
            Some(number) if number != libc::EOPNOTSUPP => Self::Refused(number),
            _ => Self::NotByDriver,
        }
    }
}

/// How a socket is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The longest frame, in bytes without FCS; up to [`crate::LONGEST`]. One over [`MAX_LENGTH`] travels in pieces.
    pub longest: usize,
    /// Whether it sends.
    pub sends: bool,
    /// Whether it receives.
    pub receives: bool,
    /// Whether frames may stay where they are.
    pub copying: Copying,
    /// Whether the driver works when this process asks it to, instead of by interrupts (preferred busy polling), where
    /// the kernel has that (5.11 and later).
    pub busy_poll: bool,
    /// Frames of a busy poll at most, and of one call that sends, where the kernel lets that be chosen (6.17 and later).
    pub budget: u16,
    /// Frames for what arrives, and places of the ring of those that have: a power of two.
    pub receiving: u32,
    /// What all bytes of the frames to be sent are at first.
    pub fill: u8,
}

impl Config {
    /// Sends and receives frames of up to 1514 bytes; the kernel chooses whether it copies.
    #[must_use]
    pub fn new() -> Self {
        Self {
            longest: 1514,
            sends: true,
            receives: true,
            copying: Copying::Automatic,
            busy_poll: false,
            budget: 64,
            receiving: 2048,
            fill: 0,
        }
    }

    /// Bytes of a chunk.
    pub(crate) fn chunk_size(&self) -> usize {
        if self.longest + HEADROOM <= 2048 { 2048 } else { 4096 }
    }

    /// Whether frames may be in several pieces.
    pub(crate) fn in_pieces(&self) -> bool {
        self.longest > MAX_LENGTH
    }

    /// Chunks of a frame that is sent: a power of two.
    pub(crate) fn chunks(&self) -> usize {
        self.longest.div_ceil(self.chunk_size()).next_power_of_two().min(MOST_CHUNKS)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}
