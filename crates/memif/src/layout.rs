//! The layout of memif 2.0, in messages and in memory: plain values enter, bytes and offsets leave, and
//! the other way round.
//!
//! Source: the definitions of memif that VPP, libmemif and DPDK's `net_memif` share
//! (`drivers/net/memif/memif.h` of DPDK 22.11). All numbers are in the byte order of the machine.

/// The protocol's version, 2.0.
pub const VERSION: u16 = 0x0200;
/// Marks the beginning of a ring.
pub const COOKIE: u32 = 0x03E3_1F20;
/// Bytes of every message.
pub const MESSAGE: usize = 128;
/// Bytes of a name in a message, its terminating zero included.
pub const NAME: usize = 32;
/// Bytes of a secret.
pub const SECRET: usize = 24;
/// Bytes of the reason in a DISCONNECT, its terminating zero included.
pub const REASON: usize = 96;
/// The most regions of an interface.
pub const MAX_REGIONS: u16 = 256;
/// The binary logarithm of the most descriptors of a ring.
pub const MAX_LOG2_RING_SIZE: u8 = 14;

/// Bytes of a ring before its descriptors.
pub const RING_HEADER: usize = 128;
/// Bytes of a descriptor.
pub const DESCRIPTOR: usize = 16;
/// What a ring's place must be a multiple of, so that its words can be loaded whole.
pub const RING_ALIGNMENT: usize = 8;
/// Flag of a ring: who receives from it polls, and wants no interrupts.
pub const MASK_INTERRUPT: u16 = 1;
/// Flag of a descriptor: the frame goes on in the next one.
pub const NEXT: u16 = 1;

const _: () = assert!(cfg!(target_endian = "little"), "descriptors are packed for little-endian machines");

/// Which way frames go through a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server; the protocol says S2M.
    ToServer,
    /// From the server to the client; the protocol says M2S.
    ToClient,
}

/// A message of the control channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The message before is accepted.
    Ack,
    /// The server's limits.
    Hello(Hello),
    /// Which interface the client wants.
    Init(Init),
    /// A region of memory; its file comes with the message.
    AddRegion(AddRegion),
    /// A ring; its event file comes with the message.
    AddRing(AddRing),
    /// The client has said all.
    Connect(String),
    /// The server has accepted all.
    Connected(String),
    /// The end, and why.
    Disconnect(String),
}

/// The server's limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// What the server calls itself.
    pub name: String,
    /// The oldest version it speaks.
    pub min_version: u16,
    /// The newest.
    pub max_version: u16,
    /// The highest index of a region.
    pub max_region: u16,
    /// The highest index of a ring to the client.
    pub max_to_client: u16,
    /// The highest index of a ring to the server.
    pub max_to_server: u16,
    /// The binary logarithm of the most descriptors.
    pub max_log2_ring_size: u8,
}

/// Which interface the client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Init {
    /// The version it speaks.
    pub version: u16,
    /// The interface's number.
    pub id: u32,
    /// 0 for Ethernet.
    pub mode: u8,
    /// Padded with zeros.
    pub secret: [u8; SECRET],
    /// What the client calls itself.
    pub name: String,
}

/// A region of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddRegion {
    /// Its index.
    pub index: u16,
    /// Its bytes.
    pub size: u64,
}

/// A ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddRing {
    /// Its direction.
    pub direction: Direction,
    /// Its index among those of its direction.
    pub index: u16,
    /// The region that it is in.
    pub region: u16,
    /// Where in that.
    pub offset: u32,
    /// The binary logarithm of its descriptors.
    pub log2_size: u8,
}

impl Message {
    /// As it is sent.
    pub fn encode(&self) -> [u8; MESSAGE] {
        let mut writer = Writer { bytes: [0; MESSAGE], at: 0 };
        writer.put(&self.kind().to_ne_bytes());
        match self {
            Self::Ack => {}
            Self::Hello(hello) => {
                writer.text(&hello.name, NAME);
                for number in [
                    hello.min_version,
                    hello.max_version,
                    hello.max_region,
                    hello.max_to_client,
                    hello.max_to_server,
                ] {
                    writer.put(&number.to_ne_bytes());
                }
                writer.put(&[hello.max_log2_ring_size]);
            }
            Self::Init(init) => {
                writer.put(&init.version.to_ne_bytes());
                writer.put(&init.id.to_ne_bytes());
                writer.put(&[init.mode]);
                writer.put(&init.secret);
                writer.text(&init.name, NAME);
            }
            Self::AddRegion(region) => {
                writer.put(&region.index.to_ne_bytes());
                writer.put(&region.size.to_ne_bytes());
            }
            Self::AddRing(ring) => {
                writer.put(&u16::from(ring.direction == Direction::ToServer).to_ne_bytes());
                writer.put(&ring.index.to_ne_bytes());
                writer.put(&ring.region.to_ne_bytes());
                writer.put(&ring.offset.to_ne_bytes());
                writer.put(&[ring.log2_size]);
            }
            Self::Connect(name) | Self::Connected(name) => writer.text(name, NAME),
            Self::Disconnect(reason) => {
                writer.put(&0_u32.to_ne_bytes());
                writer.text(reason, REASON);
            }
        }
        writer.bytes
    }

    /// As it came; `None` for a kind that the protocol does not have.
    pub fn decode(bytes: &[u8; MESSAGE]) -> Option<Self> {
        let mut reader = Reader { bytes, at: 0 };
        Some(match reader.u16() {
            1 => Self::Ack,
            2 => Self::Hello(Hello {
                name: reader.text(NAME),
                min_version: reader.u16(),
                max_version: reader.u16(),
                max_region: reader.u16(),
                max_to_client: reader.u16(),
                max_to_server: reader.u16(),
                max_log2_ring_size: reader.u8(),
            }),
            3 => Self::Init(Init {
                version: reader.u16(),
                id: u32::from_ne_bytes(reader.take()),
                mode: reader.u8(),
                secret: reader.take(),
                name: reader.text(NAME),
            }),
            4 => Self::AddRegion(AddRegion { index: reader.u16(), size: u64::from_ne_bytes(reader.take()) }),
            5 => Self::AddRing(AddRing {
                direction: if reader.u16() & 1 == 1 { Direction::ToServer } else { Direction::ToClient },
                index: reader.u16(),
                region: reader.u16(),
                offset: u32::from_ne_bytes(reader.take()),
                log2_size: reader.u8(),
            }),
            6 => Self::Connect(reader.text(NAME)),
            7 => Self::Connected(reader.text(NAME)),
            8 => {
                let _code: [u8; 4] = reader.take();
                Self::Disconnect(reader.text(REASON))
            }
            _ => return None,
        })
    }

    fn kind(&self) -> u16 {
        match self {
            Self::Ack => 1,
            Self::Hello(_) => 2,
            Self::Init(_) => 3,
            Self::AddRegion(_) => 4,
            Self::AddRing(_) => 5,
            Self::Connect(_) => 6,
            Self::Connected(_) => 7,
            Self::Disconnect(_) => 8,
        }
    }
}

struct Writer {
    bytes: [u8; MESSAGE],
    at: usize,
}

impl Writer {
    fn put(&mut self, field: &[u8]) {
        self.bytes[self.at..][..field.len()].copy_from_slice(field);
        self.at += field.len();
    }

    /// Text, cut so that a zero ends it.
    fn text(&mut self, text: &str, room: usize) {
        let length = text.len().min(room - 1);
        self.bytes[self.at..][..length].copy_from_slice(&text.as_bytes()[..length]);
        self.at += room;
    }
}

struct Reader<'a> {
    bytes: &'a [u8; MESSAGE],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let field = std::array::from_fn(|at| self.bytes[self.at + at]);
        self.at += N;
        field
    }

    fn u8(&mut self) -> u8 {
        self.take::<1>()[0]
    }

    fn u16(&mut self) -> u16 {
        u16::from_ne_bytes(self.take())
    }

    fn text(&mut self, room: usize) -> String {
        let field = &self.bytes[self.at..][..room];
        self.at += room;
        let length = field.iter().position(|byte| *byte == 0).unwrap_or(room);
        printable(&String::from_utf8_lossy(&field[..length]))
    }
}

/// A peer's text as it may stand in a log or on a terminal: what controls one is written out.
fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\'' | '"' | '\\' => printable.push(character),
            _ => printable.extend(character.escape_debug()),
        }
    }
    printable
}

/// The first word of a descriptor, of two: flags, region and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// [`NEXT`], or nothing.
    pub flags: u16,
    /// The region that the buffer is in.
    pub region: u16,
    /// Bytes of the frame, or of the buffer.
    pub length: u32,
}

impl Descriptor {
    /// As it stands in memory.
    #[inline]
    pub fn pack(self) -> u64 {
        u64::from(self.flags) | u64::from(self.region) << 16 | u64::from(self.length) << 32
    }

    /// From a word in memory.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // its parts are cut out
    pub fn unpack(word: u64) -> Self {
        Self { flags: word as u16, region: (word >> 16) as u16, length: (word >> 32) as u32 }
    }
}

/// How a client lays its one region out: all rings, then all buffers.
///
/// The distance between buffers is an odd number of cache lines, so that the beginnings of frames, which
/// are what a router reads, spread over all sets of a cache. At 2048 bytes they would share two of 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Rings to the server.
    pub to_server: u16,
    /// Rings to the client.
    pub to_client: u16,
    /// The binary logarithm of the descriptors of each.
    pub log2_size: u8,
    /// Bytes of a buffer.
    pub buffer_size: u32,
}

const LINE: usize = 64;

impl Plan {
    /// Bytes from one ring to the next.
    fn ring_bytes(&self) -> usize {
        (RING_HEADER + (DESCRIPTOR << self.log2_size)).next_multiple_of(RING_HEADER)
    }

    /// Where the ring `index` of `direction` is.
    pub fn ring(&self, direction: Direction, index: u16) -> usize {
        self.number(direction, index) * self.ring_bytes()
    }

    /// Bytes from one buffer to the next.
    pub fn stride(&self) -> usize {
        (self.buffer_size as usize).next_multiple_of(LINE) | LINE
    }

    /// Where the first buffer of a ring is.
    pub fn buffers(&self, direction: Direction, index: u16) -> usize {
        self.rings() * self.ring_bytes() + ((self.number(direction, index) * self.stride()) << self.log2_size)
    }

    /// Bytes of the whole region.
    pub fn size(&self) -> usize {
        self.rings() * (self.ring_bytes() + (self.stride() << self.log2_size))
    }

    fn rings(&self) -> usize {
        usize::from(self.to_server) + usize::from(self.to_client)
    }

    fn number(&self, direction: Direction, index: u16) -> usize {
        match direction {
            Direction::ToServer => usize::from(index),
            Direction::ToClient => usize::from(self.to_server) + usize::from(index),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_have_their_fields_where_the_protocol_has_them() {
        let init = Message::Init(Init {
            version: VERSION,
            id: 0x0403_0201,
            mode: 0,
            secret: *b"secret\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            name: "name".into(),
        })
        .encode();
        assert_eq!(init[..9], [3, 0, 0, 2, 1, 2, 3, 4, 0]);
        assert_eq!((&init[9..15], &init[33..38]), (&b"secret"[..], &b"name\0"[..]));
        let ring =
            AddRing { direction: Direction::ToServer, index: 2, region: 3, offset: 0x1000, log2_size: 10 };
        assert_eq!(Message::AddRing(ring).encode()[..13], [5, 0, 1, 0, 2, 0, 3, 0, 0, 0x10, 0, 0, 10]);
        let region = Message::AddRegion(AddRegion { index: 1, size: 0x2000 }).encode();
        assert_eq!(region[..12], [4, 0, 1, 0, 0, 0x20, 0, 0, 0, 0, 0, 0]);
    }

    fn hello() -> impl Strategy<Value = Message> {
        ("[a-z]{0,31}", any::<[u16; 5]>(), any::<u8>()).prop_map(
            |(name, [min, max, region, client, server], log2)| {
                Message::Hello(Hello {
                    name,
                    min_version: min,
                    max_version: max,
                    max_region: region,
                    max_to_client: client,
                    max_to_server: server,
                    max_log2_ring_size: log2,
                })
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(hello in hello(), reason in "[ -~]{0,95}", size: u64, index: u16) {
            let region = Message::AddRegion(AddRegion { index, size });
            for message in [hello, region, Message::Disconnect(reason.clone()), Message::Connect("if".into())] {
                prop_assert_eq!(Message::decode(&message.encode()), Some(message));
            }
        }

        #[test]
        fn no_bytes_make_decoding_panic(bytes in proptest::collection::vec(any::<u8>(), MESSAGE)) {
            let _ = Message::decode(&bytes.try_into().unwrap());
        }

        #[test]
        fn no_text_controls_a_terminal(bytes in proptest::collection::vec(any::<u8>(), MESSAGE)) {
            let mut bytes: [u8; MESSAGE] = bytes.try_into().unwrap();
            for kind in [2_u16, 3, 6, 7, 8] {
                bytes[..2].copy_from_slice(&kind.to_ne_bytes());
                let text = match Message::decode(&bytes) {
                    Some(Message::Hello(hello)) => hello.name,
                    Some(Message::Init(init)) => init.name,
                    Some(Message::Connect(text) | Message::Connected(text) | Message::Disconnect(text)) => text,
                    _ => String::new(),
                };
                prop_assert!(!text.chars().any(char::is_control), "{text:?}");
            }
        }

        #[test]
        fn long_text_is_cut(text in "\\PC{0,200}") {
            prop_assert!(Message::decode(&Message::Connect(text).encode()).is_some());
        }

        #[test]
        fn no_two_things_of_a_plan_overlap(
            to_server in 1..5_u16, to_client in 1..5_u16, log2_size in 0..8_u8, buffer_size in 64..4096_u32,
        ) {
            let plan = Plan { to_server, to_client, log2_size, buffer_size };
            let mut spans = Vec::new();
            for (direction, count) in [(Direction::ToServer, to_server), (Direction::ToClient, to_client)] {
                for index in 0..count {
                    let ring = plan.ring(direction, index);
                    prop_assert_eq!(ring % RING_ALIGNMENT, 0);
                    spans.push((ring, ring + RING_HEADER + (DESCRIPTOR << log2_size)));
                    for slot in 0..1 << log2_size {
                        let start = plan.buffers(direction, index) + slot * plan.stride();
                        spans.push((start, start + buffer_size as usize));
                    }
                }
            }
            spans.sort_unstable();
            prop_assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            prop_assert!(spans.last().is_some_and(|last| last.1 <= plan.size()));
        }

        #[test]
        fn a_descriptor_survives_packing(flags: u16, region: u16, length: u32) {
            let descriptor = Descriptor { flags, region, length };
            prop_assert_eq!(Descriptor::unpack(descriptor.pack()), descriptor);
        }
    }
}
