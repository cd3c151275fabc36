//! What arrived: frames with their times enter, a capture of bounded size leaves.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use engine::live::monotonic;
use traffic::capture::Writer;

/// Most bytes of frames that are written.
const MOST_BYTES: u64 = 1 << 30;

/// A capture that is being written.
pub struct Kept {
    writer: Writer<BufWriter<File>>,
    /// What makes nanoseconds since 1970 of the monotonic clock's.
    offset: u64,
    room: u64,
    bytes: u64,
    written: u64,
    left_out: u64,
}

impl Kept {
    /// Begins the file, for no more than `frames` frames.
    pub fn create(file: &Path, frames: u64) -> Result<Self> {
        let cannot =
            || format!("cannot write {}: name a file in a directory that you may write to", file.display());
        let out = File::create(file).with_context(cannot)?;
        let writer = Writer::new(BufWriter::with_capacity(1 << 20, out)).with_context(cannot)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let offset = now.saturating_sub(monotonic()?);
        Ok(Self { writer, offset, room: frames, bytes: 0, written: 0, left_out: 0 })
    }

    /// Adds a frame that arrived at `time` of the monotonic clock, if there is room.
    pub fn take(&mut self, time: u64, frame: &[u8]) -> io::Result<()> {
        if self.written >= self.room || self.bytes + frame.len() as u64 > MOST_BYTES {
            self.left_out += 1;
            return Ok(());
        }
        self.written += 1;
        self.bytes += frame.len() as u64;
        self.writer.frame(self.offset + time, frame)
    }

    /// Ends the file; says how many frames are in it, and how many there was no room for.
    pub fn finish(self) -> Result<(u64, u64)> {
        self.writer.finish().context("cannot write the last frames that arrived: is the disk full?")?;
        Ok((self.written, self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use traffic::Capture;

    use super::*;

    #[test]
    fn no_more_is_written_than_there_is_room_for() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("got.pcap");
        let mut kept = Kept::create(&file, 2).unwrap();
        for number in 0..5 {
            kept.take(1000 * number, &[number as u8; 60]).unwrap();
        }
        assert_eq!(kept.finish().unwrap(), (2, 3));
        let capture = Capture::read(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(
            capture.frames.iter().map(|frame| (frame.time, frame.bytes[0])).collect::<Vec<_>>(),
            [(0, 0), (1000, 1)]
        );
        let error = Kept::create(&directory.path().join("none/got.pcap"), 2).err().unwrap();
        assert!(format!("{error:#}").contains("No such file"), "{error:#}");
    }
}
