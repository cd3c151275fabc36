//! The packets of a pass: frames that a device lends enter, and what nodes find out about each stands
//! beside it, in arrays by its index, so that a node reads only what it needs.

use std::slice;

use crate::dataplane::counters::Reason;
use crate::dataplane::node::Node;

/// The most frames that a device lends for a pass, so that their headers stay in the core's first cache.
pub const VECTOR: usize = 256;

/// The most packets of a pass: those that were lent, and as many that nodes make.
pub const PACKETS: usize = 2 * VECTOR;

/// The longest frame that a node can make, in bytes without FCS.
pub const MADE: usize = 2048;

/// The shortest frame, in bytes without FCS: links fill what is less.
const SHORTEST: usize = 60;

/// The index of a packet in its pass.
pub type Index = u16;

/// A frame in memory that a device lends until the end of a pass, in bytes without FCS.
///
/// # Memory that another process can write
/// The memory of a memif is its peer's, too, and the peer may write to what it has handed over, against the
/// protocol and at any moment. Nodes work on it by slices all the same. By the letter of the language a byte that
/// changes under a slice is undefined behaviour, whatever is done with it; there is no slice of bytes that may
/// change, and the way by the letter, to copy each header out and in, is one copy more for each packet. What we
/// rest on instead, and what holds it:
/// - A slice's address and length are the device's word, kept here and not in the frame: they do not change.
/// - All code that works on frames is safe code, or copies them whole. Each place that is reached by what a frame
///   says is checked when it is reached (`get`, `first_chunk`), whatever an earlier node found. A value that was
///   read is a copy; by the letter compilers could read it twice, and none that we know of does so after a check.
/// - So a peer that writes harms its own frames: they are dropped, or leave as it wrote them. A pass ends, as its
///   calls of nodes are counted. Tests rewrite frames between any two nodes and all the time (`tests/rewritten.rs`).
/// - Slices are made by [`Self::bytes`] and its twin for writing alone, live within a node's work on one packet, and
///   are gone before the memory goes back to the device.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    data: *mut u8,
    length: u32,
    capacity: u32,
}

// SAFETY: the owner of the frame has its memory, as `Frame::new` demands; it may move between threads.
unsafe impl Send for Frame {}

impl Frame {
    /// No frame.
    pub const NONE: Self = Self { data: std::ptr::NonNull::dangling().as_ptr(), length: 0, capacity: 0 };

    /// The frame of `length` bytes at `data`; it may grow to `capacity` bytes.
    ///
    /// # Safety
    /// The memory can be read and written until the pass ends, no thread of this process writes to it
    /// meanwhile but through this frame and its copies, and `length` is at most `capacity`.
    #[must_use]
    #[inline(always)]
    pub unsafe fn new(data: *mut u8, length: u32, capacity: u32) -> Self {
        debug_assert!(length <= capacity);
        Self { data, length, capacity }
    }

    /// Its bytes.
    #[must_use]
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the memory is there until the pass ends, and nobody in this process writes to it meanwhile, as
        // `new` demands. Another process may: see above.
        unsafe { slice::from_raw_parts(self.data, self.length as usize) }
    }

    /// As [`Self::bytes`], to be rewritten.
    #[inline(always)]
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; frames that share their bytes are all of one `Packets`, which is borrowed alone.
        unsafe { slice::from_raw_parts_mut(self.data, self.length as usize) }
    }

    /// Where it begins.
    #[must_use]
    #[inline(always)]
    pub fn pointer(&self) -> *const u8 {
        self.data
    }

    /// How many bytes it has.
    #[must_use]
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// The packets of a pass. Every packet has an index below [`PACKETS`].
pub struct Packets {
    frames: [Frame; PACKETS],
    /// Where the network header begins, from the start of the frame.
    network: [u8; PACKETS],
    /// The interface that it arrived at.
    pub(crate) arrived: [u16; PACKETS],
    /// The interface that it leaves by, where that is settled.
    pub(crate) output: [u16; PACKETS],
    /// The adjacency that it goes to, where that is settled.
    pub(crate) adjacency: [u32; PACKETS],
    /// Why it is dropped.
    pub(crate) reason: [Reason; PACKETS],
    count: usize,
    made: Box<[u8]>,
    makes: usize,
}

impl Packets {
    /// No packets.
    #[must_use]
    pub fn new() -> Box<Self> {
        Box::new(Self {
            frames: [Frame::NONE; PACKETS],
            network: [0; PACKETS],
            arrived: [0; PACKETS],
            output: [0; PACKETS],
            adjacency: [0; PACKETS],
            reason: [Reason::ALL[0]; PACKETS],
            count: 0,
            made: vec![0; VECTOR * MADE].into_boxed_slice(),
            makes: 0,
        })
    }

    /// Where a device puts the frames that it lends; [`Self::begin`] says how many there are.
    #[must_use]
    #[inline(always)]
    pub fn lent(&mut self) -> &mut [Frame] {
        &mut self.frames[..VECTOR]
    }

    /// Begins a pass with the first `count` lent frames.
    #[inline(always)]
    pub fn begin(&mut self, count: usize) {
        self.count = count.min(VECTOR);
        self.makes = 0;
    }

    /// Forgets all packets: their memory may be given back.
    #[inline(always)]
    pub fn end(&mut self) {
        self.count = 0;
    }

    /// How many packets there are.
    #[must_use]
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A further packet, which a node made, of `length` bytes of zeros; `None` when there is no room. It
    /// counts as arrived at `interface`.
    pub fn make(&mut self, length: usize, interface: u16) -> Option<Index> {
        if self.makes == VECTOR || self.count == PACKETS || length > MADE {
            return None;
        }
        let buffer = &mut self.made[self.makes * MADE..][..MADE];
        buffer[..length].fill(0);
        let index = self.count;
        self.frames[index] =
            Frame { data: buffer.as_mut_ptr(), length: length as u32, capacity: MADE as u32 };
        self.network[index] = 0;
        self.arrived[index] = interface;
        self.makes += 1;
        self.count += 1;
        Some(index as Index)
    }

    /// How many packets can still be made.
    #[must_use]
    pub fn room(&self) -> usize {
        (VECTOR - self.makes).min(PACKETS - self.count)
    }

    /// The same bytes once more: a further packet whose frame is that of `index`, for another output.
    /// `None` when there is no room. The bytes are shared: a change to one changes both.
    pub fn share(&mut self, index: Index) -> Option<Index> {
        if self.count == PACKETS {
            return None;
        }
        let (from, to) = (usize::from(index), self.count);
        self.frames[to] = self.frames[from];
        self.network[to] = self.network[from];
        self.arrived[to] = self.arrived[from];
        self.count += 1;
        Some(to as Index)
    }

    /// As [`Self::share`], with bytes of its own.
    pub fn copy(&mut self, index: Index) -> Option<Index> {
        let copy = self.make(self.frame(index).len(), self.arrived[usize::from(index)])?;
        let from = self.frame(index);
        self.bytes_mut(copy).copy_from_slice(from.bytes());
        self.network[usize::from(copy)] = self.network[usize::from(index)];
        Some(copy)
    }

    /// The frame of a packet.
    #[must_use]
    #[inline(always)]
    pub fn frame(&self, index: Index) -> Frame {
        self.frames[usize::from(index)]
    }

    /// The bytes of a packet from its Ethernet header on.
    #[must_use]
    #[inline(always)]
    pub fn bytes(&self, index: Index) -> &[u8] {
        self.frames[usize::from(index)].bytes()
    }

    /// As [`Self::bytes`], to be rewritten.
    #[inline(always)]
    pub fn bytes_mut(&mut self, index: Index) -> &mut [u8] {
        self.frames[usize::from(index)].bytes_mut()
    }

    /// The bytes of a packet from its network header on; none where that is beyond its end.
    #[must_use]
    #[inline(always)]
    pub fn packet(&self, index: Index) -> &[u8] {
        self.bytes(index).get(self.network(index)..).unwrap_or_default()
    }

    /// As [`Self::packet`], to be rewritten.
    #[inline(always)]
    pub fn packet_mut(&mut self, index: Index) -> &mut [u8] {
        let network = self.network(index);
        self.bytes_mut(index).get_mut(network..).unwrap_or_default()
    }

    /// Where the network header of a packet begins.
    #[must_use]
    #[inline(always)]
    pub fn network(&self, index: Index) -> usize {
        usize::from(self.network[usize::from(index)])
    }

    /// Notes where the network header of a packet begins.
    #[inline(always)]
    pub fn set_network(&mut self, index: Index, offset: u8) {
        self.network[usize::from(index)] = offset;
    }

    /// Makes a frame `length` bytes long, as far as its memory goes; says whether it is. What is new was
    /// there before.
    pub fn resize(&mut self, index: Index, length: usize) -> bool {
        let frame = &mut self.frames[usize::from(index)];
        let fits = length <= frame.capacity as usize;
        if fits {
            frame.length = length as u32;
        }
        fits
    }

    /// Cuts what follows a packet of `length` bytes in its frame, but for what fills a frame of the shortest
    /// length.
    pub(crate) fn trim(&mut self, index: Index, length: usize) {
        let end = (self.network(index) + length).max(SHORTEST);
        let frame = &mut self.frames[usize::from(index)];
        frame.length = frame.length.min(end as u32);
    }

    /// Cuts the frame so that its network header follows `header` bytes of link header, or moves the
    /// packet back to make room for them. Says whether there was room.
    #[inline(always)]
    pub fn make_room(&mut self, index: Index, header: usize) -> bool {
        let network = self.network(index);
        if network == header {
            return true;
        }
        self.move_network(index, network, header)
    }

    fn move_network(&mut self, index: Index, network: usize, header: usize) -> bool {
        let length = self.frame(index).len();
        if network > length {
            return false;
        }
        if network > header {
            let frame = &mut self.frames[usize::from(index)];
            let cut = network - header;
            // SAFETY: the network header is within the frame, so the cut is too.
            frame.data = unsafe { frame.data.add(cut) };
            frame.length -= cut as u32;
            frame.capacity -= cut as u32;
        } else if self.resize(index, length + header - network) {
            self.bytes_mut(index).copy_within(network..length, header);
        } else {
            return false;
        }
        self.network[usize::from(index)] = header as u8;
        true
    }

    /// Has the first cache line of a packet fetched.
    #[inline(always)]
    pub fn prefetch(&self, index: Index) {
        prefetch(self.frames[usize::from(index)].data);
    }

    /// Notes at which interface a packet arrived, and where its network header begins.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, index: Index, interface: u16, network: u8) {
        self.arrived[usize::from(index)] = interface;
        self.network[usize::from(index)] = network;
    }

    /// Notes why a packet goes no further, and says where it goes.
    #[cold]
    pub(crate) fn drop(&mut self, index: Index, reason: Reason) -> Node {
        self.reason[usize::from(index)] = reason;
        Node::ErrorDrop
    }

    /// Drops all packets of a vector.
    #[cold]
    pub(crate) fn drop_all(&mut self, vector: &[Index], reason: Reason, next: &mut [Node]) {
        for (&index, next) in vector.iter().zip(next) {
            *next = self.drop(index, reason);
        }
    }
}

/// Has the core fetch the cache line of an address, which need not exist.
#[inline(always)]
pub fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch touches nothing and faults never.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
