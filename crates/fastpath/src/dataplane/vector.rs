//! The packets of a pass: frames that a device lends enter, and what nodes find out about each stands
//! beside it, in arrays by its index, so that a node reads only what it needs.

use std::ops;
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

/// One value for each packet of a pass.
///
/// The index of a packet is below [`PACKETS`], a power of two. Its low bits are taken all the same, which costs no
/// branch: so no index is beyond the end.
pub(crate) struct Column<T>([T; PACKETS]);

const _: () = assert!(PACKETS.is_power_of_two());

impl<T: Copy> Column<T> {
    /// The same for each packet.
    fn of(value: T) -> Self {
        Self([value; PACKETS])
    }
}

impl<T> ops::Index<Index> for Column<T> {
    type Output = T;

    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "the remainder is an index")]
    fn index(&self, packet: Index) -> &T {
        debug_assert!(usize::from(packet) < PACKETS);
        &self.0[usize::from(packet) % PACKETS]
    }
}

impl<T> ops::IndexMut<Index> for Column<T> {
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "the remainder is an index")]
    fn index_mut(&mut self, packet: Index) -> &mut T {
        debug_assert!(usize::from(packet) < PACKETS);
        &mut self.0[usize::from(packet) % PACKETS]
    }
}

/// As many numbers, of packets for example, as a pass has packets at most.
pub(crate) struct List {
    items: [u16; PACKETS],
    count: usize,
}

impl List {
    /// None.
    pub const EMPTY: Self = Self { items: [0; PACKETS], count: 0 };

    /// Those that it has.
    #[inline(always)]
    pub fn items(&self) -> &[u16] {
        self.items.get(..self.count).unwrap_or_default()
    }

    /// Adds one, if `wanted` and there is room. Whether it is wanted costs no branch.
    #[inline(always)]
    pub fn push_if(&mut self, item: u16, wanted: bool) {
        if let Some(place) = self.items.get_mut(self.count) {
            *place = item;
            self.count += usize::from(wanted);
        }
    }

    /// Adds one, if there is room; says whether there was.
    #[inline(always)]
    pub fn push(&mut self, item: u16) -> bool {
        let room = self.count < PACKETS;
        self.push_if(item, true);
        room
    }

    /// Adds all, if there is room for all.
    #[inline(always)]
    pub fn extend(&mut self, items: &[u16]) {
        let end = self.count + items.len();
        if let Some(places) = self.items.get_mut(self.count..end) {
            places.copy_from_slice(items);
            self.count = end;
        }
    }

    /// Has the numbers below `count` and no others, as far as there is room.
    #[inline(always)]
    pub fn number(&mut self, count: usize) {
        self.count = count.min(PACKETS);
        for (number, place) in self.items.iter_mut().take(self.count).enumerate() {
            *place = number as u16;
        }
    }

    /// Has none any more.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.count = 0;
    }
}

/// The packets of a pass. Every packet has an index below [`PACKETS`].
pub struct Packets {
    frames: Column<Frame>,
    /// Where the network header begins, from the start of the frame.
    network: Column<u8>,
    /// The interface that it arrived at.
    pub(crate) arrived: Column<u16>,
    /// The interface that it leaves by, where that is settled.
    pub(crate) output: Column<u16>,
    /// The adjacency that it goes to, where that is settled.
    pub(crate) adjacency: Column<u32>,
    /// Why it is dropped.
    pub(crate) reason: Column<Reason>,
    count: usize,
    made: Box<[[u8; MADE]]>,
    makes: usize,
}

impl Packets {
    /// No packets.
    #[must_use]
    pub fn new() -> Box<Self> {
        Box::new(Self {
            frames: Column::of(Frame::NONE),
            network: Column::of(0),
            arrived: Column::of(0),
            output: Column::of(0),
            adjacency: Column::of(0),
            reason: Column::of(Reason::OutputDown),
            count: 0,
            made: vec![[0; MADE]; VECTOR].into_boxed_slice(),
            makes: 0,
        })
    }

    /// Where a device puts the frames that it lends; [`Self::begin`] says how many there are.
    #[must_use]
    #[inline(always)]
    pub fn lent(&mut self) -> &mut [Frame] {
        self.frames.0.get_mut(..VECTOR).unwrap_or_default()
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
        if self.count == PACKETS {
            return None;
        }
        let buffer = self.made.get_mut(self.makes)?;
        buffer.get_mut(..length)?.fill(0);
        let index = self.count as Index;
        self.frames[index] =
            Frame { data: buffer.as_mut_ptr(), length: length as u32, capacity: MADE as u32 };
        self.network[index] = 0;
        self.arrived[index] = interface;
        self.makes += 1;
        self.count += 1;
        Some(index)
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
        let (from, to) = (index, self.count as Index);
        self.frames[to] = self.frames[from];
        self.network[to] = self.network[from];
        self.arrived[to] = self.arrived[from];
        self.count += 1;
        Some(to)
    }

    /// As [`Self::share`], with bytes of its own.
    pub fn copy(&mut self, index: Index) -> Option<Index> {
        let copy = self.make(self.frame(index).len(), self.arrived[index])?;
        let from = self.frame(index);
        self.bytes_mut(copy).copy_from_slice(from.bytes());
        self.network[copy] = self.network[index];
        Some(copy)
    }

    /// The frame of a packet.
    #[must_use]
    #[inline(always)]
    pub fn frame(&self, index: Index) -> Frame {
        self.frames[index]
    }

    /// The bytes of a packet from its Ethernet header on.
    #[must_use]
    #[inline(always)]
    pub fn bytes(&self, index: Index) -> &[u8] {
        self.frames[index].bytes()
    }

    /// As [`Self::bytes`], to be rewritten.
    #[inline(always)]
    pub fn bytes_mut(&mut self, index: Index) -> &mut [u8] {
        self.frames[index].bytes_mut()
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
        usize::from(self.network[index])
    }

    /// Notes where the network header of a packet begins.
    #[inline(always)]
    pub fn set_network(&mut self, index: Index, offset: u8) {
        self.network[index] = offset;
    }

    /// Makes a frame `length` bytes long, as far as its memory goes; says whether it is. What is new was
    /// there before.
    pub fn resize(&mut self, index: Index, length: usize) -> bool {
        let frame = &mut self.frames[index];
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
        let frame = &mut self.frames[index];
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
            let frame = &mut self.frames[index];
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
        self.network[index] = header as u8;
        true
    }

    /// Has the first cache line of a packet fetched.
    #[inline(always)]
    pub fn prefetch(&self, index: Index) {
        prefetch::to_read(self.frames[index].data);
    }

    /// Notes at which interface a packet arrived, and where its network header begins.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, index: Index, interface: u16, network: u8) {
        self.arrived[index] = interface;
        self.network[index] = network;
    }

    /// Notes why a packet goes no further, and says where it goes.
    #[cold]
    pub(crate) fn drop(&mut self, index: Index, reason: Reason) -> Node {
        self.reason[index] = reason;
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
