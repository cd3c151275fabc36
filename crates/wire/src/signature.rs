//! The signature: the last 18 bytes of every frame that Linerate sends.
//!
//! A frame's place in the test enters and leaves as bytes. 18 bytes are what a 64-byte
//! UDP/IPv4 frame has room for after its headers. All fields are big-endian:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | magic, `"Lnrt"` |
//! | 4 | 1 | stream |
//! | 5 | 1 | lane: bit 7 is the direction, bits 0–6 the worker |
//! | 6 | 2 | interval: which stretch of constant load the frame belongs to |
//! | 8 | 4 | sequence number within stream and lane |
//! | 12 | 6 | departure, nanoseconds of the monotonic clock, the low 48 bits (78 hours) |
//!
//! The interval is what makes loss exact while the load changes: the receiver counts each
//! frame under the interval in which it *left*, however long the device held it.
//! Only the magic is known when a frame table is built; the engine fills in the rest.

/// Bytes of a signature.
pub const LENGTH: usize = 18;
/// The first four bytes of a signature.
pub const MAGIC: [u8; 4] = *b"Lnrt";
/// The bits of the departure that the signature carries.
pub const DEPARTURE_MASK: u64 = (1 << 48) - 1;

/// What the signature of one frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The stream the frame belongs to.
    pub stream: u8,
    /// 0 for port 0 → port 1, 1 for the reverse.
    pub direction: u8,
    /// The worker that sent it, 0 to 127.
    pub worker: u8,
    /// The interval it left in, modulo 65,536.
    pub interval: u16,
    /// Its sequence number within stream, direction and worker.
    pub sequence: u32,
    /// When it left: nanoseconds of the monotonic clock, modulo 2^48.
    pub departure: u64,
}

impl Signature {
    /// The bytes of this signature.
    #[must_use]
    pub fn emit(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = self.stream;
        bytes[5] = (self.direction << 7) | (self.worker & 0x7f);
        bytes[6..8].copy_from_slice(&self.interval.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[12..].copy_from_slice(&self.departure.to_be_bytes()[2..]);
        bytes
    }

    /// Reads the signature at the end of `frame` (without FCS), if there is one.
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let bytes: &[u8; LENGTH] = frame.last_chunk()?;
        if bytes[..4] != MAGIC {
            return None;
        }
        let mut departure = [0; 8];
        departure[2..].copy_from_slice(&bytes[12..]);
        Some(Self {
            stream: bytes[4],
            direction: bytes[5] >> 7,
            worker: bytes[5] & 0x7f,
            interval: u16::from_be_bytes([bytes[6], bytes[7]]),
            sequence: u32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            departure: u64::from_be_bytes(departure),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_round_trips_at_the_end_of_a_frame() {
        let signature = Signature {
            stream: 3,
            direction: 1,
            worker: 5,
            interval: 0xabcd,
            sequence: 0x0102_0304,
            departure: 0x0605_0403_0201,
        };
        let mut frame = vec![0; 42];
        frame.extend(signature.emit());
        assert_eq!(Signature::parse(&frame), Some(signature));
        assert_eq!(Signature::parse(&frame[..59]), None);
        assert_eq!(Signature::parse(&frame[..10]), None);
    }
}
