//! memif: packet interfaces in shared memory, protocol 2.0, both ends, as VPP, libmemif and DPDK's
//! `net_memif` have them.
//!
//! ```text
//! Memif::poll ◄── control channel (handshake, regions, rings) ──► the peer
//!      │ connections
//!      ▼
//! Receiver ◄── ring ── the peer        one of each for every queue,
//! Sender   ──► ring ──► the peer       each owned by one thread
//! ```
//!
//! [`Memif::open`] makes an interface: its control end [`Memif`], which a thread of the owner drives by
//! [`Memif::poll`], and its data ends, which worker threads own for as long as they like. Connections come
//! and go without the workers' doing: a data end notices by one load for each call, and without a
//! connection it has no frames and no room. Nothing waits for anything.
//!
//! - A [`Receiver`] lends frames where they lie: they may be rewritten in place, and lengthened up to their
//!   capacity, until they are given back.
//! - A [`Sender`] copies bursts of frames into its ring, or lends the ring's buffers to who builds frames.
//!   Each burst is published by one store. A frame that is longer than a buffer is refused and counted;
//!   it is never spread over several buffers. Received frames that are, are skipped and counted.
//! - Receivers poll. Peers that want interrupts get them.
//!
//! ```
//! # use std::time::Duration;
//! # use memif::{Config, Event, Frame, Memif, Opened, Role, Socket};
//! # fn main() -> Result<(), memif::Error> {
//! # let name = format!("/memif-example-{}", std::process::id());
//! # let there = Socket::Abstract(name.clone());
//! # let mut peer = Memif::open(Config::new(Role::Client, there))?;
//! let socket = Socket::Abstract(name);
//! let Opened { mut memif, mut receivers, mut senders } = Memif::open(Config::new(Role::Server, socket))?;
//!
//! // A thread of its own, as long as there is anything to do:
//! # while !(memif.is_connected() && peer.memif.is_connected()) {
//! if let Some(event) = memif.poll(Duration::from_millis(100))? {
//!     println!("{event:?}");
//! }
//! # peer.memif.poll(Duration::from_millis(1))?;
//! # }
//!
//! // A worker, over and over: what came goes back, changed where it lies.
//! let mut frames = [Frame::NONE; 256];
//! # peer.senders[0].send(&[&[7; 60][..]]);
//! let count = receivers[0].receive(&mut frames);
//! for frame in &frames[..count] {
//!     // SAFETY: it is lent until the release below, and nobody else uses it.
//!     let bytes = unsafe { frame.bytes() };
//!     bytes[0] ^= 1;
//! }
//! // SAFETY: as above.
//! let sent = unsafe { senders[0].send_frames(&frames[..count]) };
//! receivers[0].release();
//! # assert_eq!((count, sent), (1, 1));
//! # Ok(())
//! # }
//! ```
//!
//! # Memory that another process can write
//! The client brings the memory; both processes map it for reading and writing. For the language, a byte
//! that changes without a store of this program is no memory at all; these are the grounds on which we use
//! it:
//! - *Rings* (indices, flags, descriptors) are only ever touched as atomics. Each is read once and checked
//!   before it is used, so that whatever a peer writes, whenever, no byte outside its regions is touched.
//! - *Frames* belong to one side at a time, by the protocol. They are handed out as addresses
//!   ([`Frame`]), not as references, and copied through addresses: here nothing reads what is in them. A peer
//!   that writes to a frame which it has handed over changes that frame under its reader. Where a slice lies on
//!   the frame then ([`Frame::bytes`]), that is undefined behaviour by the letter of the language; what
//!   compilers make of it is that a field may differ each time it is read. So who makes a slice of a frame whose
//!   peer is not trusted checks a field wherever it leads to a place, each time anew, and has no unsafe code
//!   rest on what is in it; who wants the letter copies the frame by its address first.
//! - *Mappings* live as long as a data end uses them, whatever the peer does. A region whose file is
//!   smaller than announced is refused, and so is one that could shrink: what we create is sealed, and what a
//!   peer brings is sealed by us where its kind of file allows it (`memfd`). With [`Config::unsealed`] other
//!   files are taken, such as huge pages of DPDK with `zero-copy=yes` or of VPP: their peer can take the memory
//!   away, and touching it then ends this process by `SIGBUS`; [`Peer::sealed`] tells.
//!
//! # Peers that mean harm
//! No call here waits for a peer. Event files are signalled by the kernel, on a thread of the interface's own;
//! files that came from a peer are closed by another one, as closing may wait for their owner. A frame is no
//! longer than [`Memif::set_longest_frame`] allows, all regions together are bounded, and texts of peers are
//! printable.

mod bell;
mod closer;
mod config;
mod control;
mod counters;
mod error;
mod frame;
mod handshake;
mod layout;
mod links;
mod queue;
mod receiver;
mod region;
mod ring;
mod sender;
mod socket;

pub use crate::config::{Config, LONGEST_FRAME, Role, Socket};
pub use crate::control::{Event, Memif, Opened, Peer};
pub use crate::counters::QueueStatistics;
pub use crate::error::{Error, Reason};
pub use crate::frame::Frame;
pub use crate::receiver::Receiver;
pub use crate::sender::Sender;
pub use crate::socket::lock_directory;
