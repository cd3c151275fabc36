//! Frames and their times enter; a pcap file leaves.

use std::io::{self, Write};

use super::ETHERNET;

/// Of a file whose fractions of a second are nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
const VERSION: [u16; 2] = [2, 4];
const SNAPLEN: u32 = 262_144;

/// Writes a capture of Ethernet frames.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
}

impl<W: Write> Writer<W> {
    /// Begins a capture.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn new(mut out: W) -> io::Result<Self> {
        let mut header = MAGIC.to_le_bytes().to_vec();
        header.extend(VERSION.map(u16::to_le_bytes).concat());
        header.extend([0, 0, SNAPLEN, u32::from(ETHERNET)].map(u32::to_le_bytes).concat());
        out.write_all(&header)?;
        Ok(Self { out })
    }

    /// Adds a frame, without FCS, that was there at `time`: nanoseconds since 1970.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn frame(&mut self, time: u64, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len() as u32;
        let (seconds, fraction) = (time / 1_000_000_000, time % 1_000_000_000);
        let header = [seconds as u32, fraction as u32, length, length].map(u32::to_le_bytes);
        self.out.write_all(header.as_flattened())?;
        self.out.write_all(bytes)
    }

    /// Ends the capture; gives back what it was written to.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}
