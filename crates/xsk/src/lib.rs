//! AF_XDP sockets: frames to and from a queue of a network interface, past the kernel's network stack.
//!
//! ```text
//! Sender   ──► transmit ring ──► the kernel or the driver ──► the line
//!          ◄── completion ring ◄──
//! Receiver ◄── receive ring ◄── Program (an XDP program at the interface) ◄── the line
//!          ──► fill ring ──►
//! ```
//!
//! [`open`] makes one socket at one queue of an [`Interface`], with frames of its own in memory that it shares
//! with the kernel. Two threads may own its two ends. Where the driver can, frames stay where they are (zero
//! copy); on any other driver the kernel copies them ([`Opened::mode`] says which).
//!
//! - A [`Sender`] lends room for up to [`BURST`] frames, and says of each what became of it: the driver took it,
//!   the driver dropped it, or it still waits.
//! - A [`Poster`] copies frames that are sent and forgotten, as a router's are; a sender becomes one.
//! - A [`Receiver`] lends frames where they arrived, until they are released.
//! - A frame over [`MAX_LENGTH`] travels in several pieces, of a page at most, where the kernel can (Linux 6.6).
//! - A [`Program`] hands frames to the sockets of an interface. It is attached by a link that the kernel takes
//!   away with this process, however that ends. Sending needs none.
//!
//! # Memory that the kernel writes
//! Indices and descriptors of rings are only ever touched as atomics. Each is checked before it is used: a
//! descriptor that names no frame which the kernel has is skipped and counted, so that no byte outside the
//! frames is touched whatever stands in a ring. A frame belongs to one side at a time.

mod attachment;
mod config;
mod error;
mod frames;
mod interface;
mod poster;
mod program;
mod receiver;
mod ring;
mod sender;
mod socket;
mod wake;

pub use crate::attachment::Attachment;
pub use crate::config::{Config, Copying, Mode, WhyCopies};
pub use crate::error::Error;
pub use crate::interface::{Interface, Membership, Others, Queues};
pub use crate::poster::{Posted, Poster};
pub use crate::program::{Program, Wanted, is_in_pieces};
pub use crate::receiver::Receiver;
pub use crate::sender::{Sender, Sent};
pub use crate::socket::{Opened, Statistics, Watch, has_large_frames, open};

/// Frames that are lent together at most.
pub const BURST: usize = 64;
/// Queues of an interface that can be used at most.
pub const MAX_QUEUES: u32 = 64;
/// The longest frame of one piece, without FCS: a page less what the kernel keeps free before what arrives.
pub const MAX_LENGTH: usize = 4096 - 256;
/// The longest frame without FCS. Beyond [`MAX_LENGTH`] it takes a kernel with frames in several pieces
/// ([`has_large_frames`]).
pub const LONGEST: usize = 9212;
