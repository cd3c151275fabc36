//! Frames that another program describes byte by byte: they enter one after the other, made fit to be counted
//! as those of a capture are; a frame table leaves.
//!
//! Headers stay as they are, but for lengths and checksums, which are set right for a payload of the filling
//! byte with the signature at its end.

use wire::{signature, size};

use crate::capture::Captured;
use crate::capture::recording::{Layers, Template};
use crate::frame::fill_slot;
use crate::table::{Apart, FrameTable, Row};

/// Why a frame cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RawError {
    /// Not IP, or cut off within its headers.
    #[error("the packet is not IPv4 or IPv6, or ends within its headers")]
    NotIp,
    /// More headers than an engine copies.
    #[error("the packet has {0} bytes of headers: at most {max}", max = FrameTable::MAX_HEADER)]
    LongHeaders(usize),
    /// No room for the signature.
    #[error(
        "packets of {length} bytes do not hold {headers} bytes of headers and the signature: \
         the smallest that fits has {smallest} (FCS not counted)"
    )]
    TooShort {
        /// Its bytes without FCS.
        length: usize,
        /// Those of its headers.
        headers: usize,
        /// The smallest that fits.
        smallest: usize,
    },
    /// Longer than any frame.
    #[error("packets of {0} bytes are too long: the longest has {max} (FCS not counted)", max = size::MAX - size::FCS)]
    TooLong(usize),
}

/// Bytes of the headers of `frame`, Ethernet to layer 4.
///
/// # Errors
/// When it is not IP, or they are too long.
pub fn headers(frame: &[u8]) -> Result<usize, RawError> {
    let layers = Layers::parse(frame).ok_or(RawError::NotIp)?;
    if layers.end <= FrameTable::MAX_HEADER { Ok(layers.end) } else { Err(RawError::LongHeaders(layers.end)) }
}

/// A frame table that grows by one frame after the other.
#[derive(Clone, Debug)]
pub struct Builder {
    table: FrameTable,
    /// Bytes of the longest headers.
    longest: usize,
}

impl Builder {
    /// An empty table for frames whose headers have up to `longest` bytes, and whose payloads are of `fill`.
    ///
    /// # Errors
    /// When headers are too long.
    pub fn new(longest: usize, fill: u8) -> Result<Self, RawError> {
        if longest > FrameTable::MAX_HEADER {
            return Err(RawError::LongHeaders(longest));
        }
        let header_length = longest.next_multiple_of(8);
        let table = FrameTable {
            rows: Vec::new(),
            headers: Vec::new(),
            header_length,
            fill,
            period: 0,
            times: Vec::new(),
            apart: Apart::default(),
        };
        Ok(Self { table, longest })
    }

    /// Bytes that the shortest frame with `headers` bytes of headers has, without FCS.
    #[must_use]
    pub fn smallest(&self, headers: usize) -> usize {
        // An engine copies whole 8 bytes: the last 8 of the longest headers must begin in every frame.
        (headers + signature::LENGTH)
            .max(usize::from(size::MIN - size::FCS))
            .max((self.table.header_length + 1).saturating_sub(8))
    }

    /// Adds a frame of `length` bytes without FCS that begins as `frame` does.
    ///
    /// # Errors
    /// When it cannot be sent; the table is as before.
    pub fn push(&mut self, frame: &[u8], length: usize, stream: u8, direction: u8) -> Result<(), RawError> {
        let layers = Layers::parse(frame).ok_or(RawError::NotIp)?;
        let headers = layers.end;
        if headers > self.longest {
            return Err(RawError::LongHeaders(headers));
        }
        let smallest = self.smallest(headers);
        if length < smallest {
            return Err(RawError::TooShort { length, headers, smallest });
        }
        if length > usize::from(size::MAX - size::FCS) {
            return Err(RawError::TooLong(length));
        }
        let bytes = frame.get(..headers).unwrap_or(frame).to_vec();
        let template = Template::new(&Captured { time: 0, bytes, length }, layers, smallest);
        let mut bytes = template.headers.clone();
        let checksum = template.finish(&mut bytes, self.table.fill);
        let start = self.table.headers.len();
        self.table.headers.resize(start + self.table.header_length, self.table.fill);
        if let Some(slot) = self.table.headers.get_mut(start..) {
            fill_slot(slot, &bytes, length);
        }
        self.table.rows.push(Row { length: template.length, stream, direction, checksum });
        Ok(())
    }

    /// The table, whose frames repeat after `period`.
    #[must_use]
    pub fn finish(self, period: u64) -> FrameTable {
        FrameTable { period, ..self.table }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Directions, Endpoint, Endpoints, Profile, Tunables};
    use wire::MacAddress;

    fn table() -> FrameTable {
        let endpoint = Endpoint { source: MacAddress::default(), destination: MacAddress::default() };
        let profile = Profile::builtin("bench", &Tunables::default()).unwrap();
        profile.table(&Endpoints([endpoint; 2]), Directions::Both)
    }

    #[test]
    fn frames_of_a_profile_make_the_same_table_again() {
        let table = table();
        let longest = headers(&table.frame(0)).unwrap();
        let mut builder = Builder::new(longest, table.fill).unwrap();
        for (index, row) in table.rows.iter().enumerate() {
            let frame = table.frame(index);
            builder.push(&frame, frame.len(), row.stream, row.direction).unwrap();
        }
        assert_eq!(builder.finish(table.period), table);
    }

    #[test]
    fn lengths_and_checksums_are_set_right() {
        let right = table().frame(0);
        let mut wrong = right.clone();
        wrong[16..18].copy_from_slice(&[0, 1]);
        wrong[24..26].copy_from_slice(&[1, 1]);
        let mut builder = Builder::new(42, b'x').unwrap();
        builder.push(&wrong, wrong.len(), 0, 0).unwrap();
        assert_eq!(builder.finish(1).frame(0), right);
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        let frame = table().frame(0);
        let mut builder = Builder::new(42, b'x').unwrap();
        assert_eq!(builder.push(&[0; 60], 60, 0, 0), Err(RawError::NotIp));
        assert!(matches!(builder.push(&frame, 59, 0, 0), Err(RawError::TooShort { smallest: 60, .. })));
        assert_eq!(builder.push(&frame, 9213, 0, 0), Err(RawError::TooLong(9213)));
        assert_eq!(headers(&frame[..30]), Err(RawError::NotIp));
        assert!(Builder::new(97, b'x').is_err());
        assert!(builder.finish(1).rows.is_empty());
    }
}
