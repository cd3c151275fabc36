//! Cables that carry few frames a second and lose none. Frames of two cards, each after a number of four bytes with
//! its length, enter by two sockets of QEMU's; each leaves by the other. What QEMU cannot write waits in its card's
//! transmit queue.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Between two frames.
const PAUSE: Duration = Duration::from_millis(2);
/// The longest frame that QEMU sends.
const LONGEST: usize = 128 << 10;

/// Where the card `id` connects.
pub fn path(directory: &Path, id: &str) -> PathBuf {
    directory.join(format!("card-{id}"))
}

/// Connects `NAME-0` with `NAME-2` and `NAME-1` with `NAME-3`, as soon as they come, until QEMU ends.
pub fn connect(directory: &Path, name: &str) -> io::Result<()> {
    for number in 0..2 {
        let one = UnixListener::bind(path(directory, &format!("{name}-{number}")))?;
        let other = UnixListener::bind(path(directory, &format!("{name}-{}", number + 2)))?;
        thread::spawn(move || {
            let (one, other) = (one.accept()?.0, other.accept()?.0);
            let back = (other.try_clone()?, one.try_clone()?);
            thread::spawn(move || carry(back.0, back.1));
            carry(one, other)
        });
    }
    Ok(())
}

/// Carries frames until an end is gone.
fn carry(from: UnixStream, to: UnixStream) -> io::Result<()> {
    let (mut from, mut to) = (BufReader::new(from), BufWriter::new(to));
    let mut next = Instant::now();
    loop {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let mut frame = vec![0; (u32::from_be_bytes(length) as usize).min(LONGEST)];
        from.read_exact(&mut frame)?;
        thread::sleep(next.saturating_duration_since(Instant::now()));
        next = Instant::now() + PAUSE;
        to.write_all(&length)?;
        to.write_all(&frame)?;
        to.flush()?;
    }
}
