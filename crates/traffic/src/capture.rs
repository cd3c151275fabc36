//! Captures: the bytes of a pcap or pcapng file enter, frames with their times leave; and the other way
//! round, as pcap.
//!
//! ```text
//! file ──► Capture ──► Recording ──► FrameTable     (a profile)
//!             └──────► whole frames                 (a replay)
//! ```
//!
//! Both formats are read whatever their byte order and resolution (draft-ietf-opsawg-pcap,
//! draft-ietf-opsawg-pcapng). What a file holds beside frames of Ethernet is passed over.

mod content;
mod pcapng;
pub(crate) mod recording;
mod writer;

pub use content::key;
pub use recording::Recording;
pub use writer::Writer;

/// The link type of Ethernet.
pub const ETHERNET: u16 = 1;
/// The shortest frame that is one: two addresses and a type.
const SHORTEST: usize = 14;
/// No frame is longer, whatever captured it: libpcap's own bound.
const MAX_RECORD: usize = 262_144;
/// The longest frame that engines send, without FCS.
const LONGEST: usize = (wire::size::MAX - wire::size::FCS) as usize;
/// Most frames that are read: as many as a table has rows.
pub const MAX_FRAMES: usize = crate::FrameTable::MAX_ROWS;

/// One frame of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// When it was captured: nanoseconds since the first frame, never before the frame in front of it.
    pub time: u64,
    /// Its bytes without FCS, as far as they were captured.
    pub bytes: Vec<u8>,
    /// How many it had on the wire.
    pub length: usize,
}

impl Captured {
    /// Whether all of its bytes were captured.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.bytes.len() == self.length
    }
}

/// The frames of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// In the order of the file; at least one.
    pub frames: Vec<Captured>,
    /// What was left out of it and why, for its reader.
    pub notes: Vec<String>,
}

/// Why a file cannot be sent. Each text names cause and remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// Nothing in it.
    #[error("the capture is empty: capture some frames first (tcpdump -w FILE)")]
    Empty,
    /// Another kind of file.
    #[error("this is neither pcap nor pcapng: name a file as tcpdump -w or Wireshark writes it")]
    Unknown,
    /// A compressed file.
    #[error("this file is compressed: unpack it first (gunzip, zstd -d, unxz)")]
    Compressed,
    /// Frames of another kind of network.
    #[error(
        "the capture has frames of link type {number}{}, and only those of Ethernet (1) can be sent: \
         capture on one Ethernet interface, not on 'any'", name_of_link_type(*.number)
    )]
    LinkType {
        /// Its number.
        number: u16,
    },
    /// There is no frame that can be sent.
    #[error("the capture has no frame that can be sent{}: name another", because(.0))]
    NoFrames(Vec<String>),
    /// A length that cannot be.
    #[error("frame {frame} of the capture says that it has {length} bytes: the file is damaged")]
    Damaged {
        /// Which, from 1.
        frame: usize,
        /// Bytes.
        length: usize,
    },
}

fn because(notes: &[String]) -> String {
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) }
}

/// The link types that captures have most often beside Ethernet.
fn name_of_link_type(number: u16) -> &'static str {
    match number {
        0 => " (loopback)",
        12 | 14 | 101 | 228 | 229 => " (IP without Ethernet)",
        105 | 127 => " (wireless)",
        113 | 276 => " (Linux cooked)",
        _ => "",
    }
}

/// How the numbers of a file stand.
#[derive(Clone, Copy, Debug)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        })
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        })
    }
}

/// A frame as the file has it.
struct Record<'a> {
    /// Nanoseconds since 1970, if it has a time.
    time: Option<u64>,
    bytes: &'a [u8],
    length: usize,
}

/// What was found so far.
#[derive(Default)]
struct Found {
    capture: Vec<Captured>,
    /// The time of the first frame.
    start: Option<u64>,
    /// Frames in the file.
    seen: usize,
    short: usize,
    long: usize,
    /// Frames that have no time.
    timeless: usize,
    /// The file ends within the frame after those seen.
    is_cut: bool,
}

impl Found {
    /// Takes up the next frame of the file; says whether there is room for more.
    fn take(&mut self, record: &Record<'_>) -> bool {
        if self.capture.len() == MAX_FRAMES {
            return false;
        }
        self.seen += 1;
        let last = self.capture.last().map_or(0, |frame| frame.time);
        let time = match record.time {
            Some(time) => time.saturating_sub(*self.start.get_or_insert(time)).max(last),
            None => {
                self.timeless += 1;
                last
            }
        };
        if record.bytes.len() < SHORTEST {
            self.short += 1;
        } else if record.length > LONGEST {
            self.long += 1;
        } else {
            self.capture.push(Captured { time, bytes: record.bytes.to_vec(), length: record.length });
        }
        true
    }

    fn notes(&self, has_more: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_cut {
            notes.push(format!(
                "the capture ends within frame {}: the {} before it are whole",
                self.seen + 1,
                self.seen
            ));
        }
        if self.short > 0 {
            notes
                .push(format!("{} frames of the capture are too short to be Ethernet: left out", self.short));
        }
        if self.long > 0 {
            notes.push(format!(
                "{} frames of the capture are longer than {} bytes, the most that is sent: left out \
                 (capture with GRO off: ethtool -K IF gro off)",
                self.long,
                wire::size::MAX
            ));
        }
        if self.timeless > 0 {
            notes.push(format!("{} frames of the capture have no time", self.timeless));
        }
        if has_more {
            notes.push(format!("of the capture only the first {MAX_FRAMES} frames are used"));
        }
        notes
    }
}

impl Capture {
    /// Reads the bytes of a file. What is whole of a file that ends too early is used, and noted.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn read(file: &[u8]) -> Result<Self, CaptureError> {
        let mut found = Found::default();
        let has_more = match file.first_chunk::<4>() {
            _ if file.is_empty() => return Err(CaptureError::Empty),
            Some(magic) if pcapng::MAGIC == *magic => pcapng::read(file, &mut found)?,
            Some([0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd] | [0xfd, b'7', b'z', b'X']) => {
                return Err(CaptureError::Compressed);
            }
            Some(magic) => {
                let (order, unit) = variant(*magic).ok_or(CaptureError::Unknown)?;
                read_pcap(file, order, unit, &mut found)?
            }
            None => return Err(CaptureError::Unknown),
        };
        let notes = found.notes(has_more);
        match (found.capture.is_empty(), found.seen, found.is_cut) {
            (true, 0, false) => Err(CaptureError::Empty),
            (true, ..) => Err(CaptureError::NoFrames(notes)),
            (false, ..) => Ok(Self { frames: found.capture, notes }),
        }
    }

    /// The time from the first frame to the last, in nanoseconds.
    #[must_use]
    pub fn duration(&self) -> u64 {
        self.frames.last().map_or(0, |frame| frame.time)
    }

    /// Frames a second from the first to the last; `None` where all have one time.
    #[must_use]
    pub fn mean_pps(&self) -> Option<f64> {
        let duration = self.duration();
        (duration > 0).then(|| (self.frames.len() - 1) as f64 * 1e9 / duration as f64)
    }

    /// The same without the frames of which a part is missing, with a note if there were any.
    ///
    /// # Errors
    /// [`CaptureError::NoFrames`] when none is whole.
    pub fn whole(mut self) -> Result<Self, CaptureError> {
        let all = self.frames.len();
        self.frames.retain(Captured::is_whole);
        if self.frames.len() < all {
            self.notes.push(format!(
                "{} frames were captured in part: left out (capture whole ones: tcpdump -s 0)",
                all - self.frames.len()
            ));
        }
        if self.frames.is_empty() { Err(CaptureError::NoFrames(self.notes)) } else { Ok(self) }
    }
}

/// Byte order and nanoseconds of the unit of a pcap file's fractions of a second, by its first bytes.
fn variant(magic: [u8; 4]) -> Option<(Order, u64)> {
    let known = |number| match number {
        0xa1b2_c3d4_u32 => Some(1000),
        0xa1b2_3c4d => Some(1),
        _ => None,
    };
    known(u32::from_le_bytes(magic))
        .map(|unit| (Order::Little, unit))
        .or_else(|| known(u32::from_be_bytes(magic)).map(|unit| (Order::Big, unit)))
}

/// Bytes in front of the first record of a pcap file, and of each frame.
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// Reads a pcap file; says whether it has more frames than are read.
fn read_pcap(file: &[u8], order: Order, unit: u64, found: &mut Found) -> Result<bool, CaptureError> {
    // The upper bits may say how long the FCS is.
    let Some(link_type) = order.u32(file, 20) else {
        found.is_cut = true;
        return Ok(false);
    };
    if link_type as u16 != ETHERNET {
        return Err(CaptureError::LinkType { number: link_type as u16 });
    }
    let mut rest = file.get(FILE_HEADER..).unwrap_or_default();
    while !rest.is_empty() {
        let numbers = [0, 4, 8, 12].map(|at| order.u32(rest, at));
        let [Some(seconds), Some(fraction), Some(captured), Some(length)] = numbers else {
            found.is_cut = true;
            return Ok(false);
        };
        let (captured, length) = (captured as usize, length as usize);
        if captured > MAX_RECORD {
            return Err(CaptureError::Damaged { frame: found.seen + 1, length: captured });
        }
        let Some(bytes) = rest.get(RECORD_HEADER..RECORD_HEADER + captured) else {
            found.is_cut = true;
            return Ok(false);
        };
        let time = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * unit;
        if !found.take(&Record { time: Some(time), bytes, length: length.max(captured) }) {
            return Ok(true);
        }
        rest = rest.get(RECORD_HEADER + captured..).unwrap_or_default();
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
