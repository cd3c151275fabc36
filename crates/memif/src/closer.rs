//! Closes what came from peers: files enter, and a thread closes them.
//!
//! Closing a file may wait for who gave it: one of a file system in user space is flushed by its daemon, a
//! socket may linger. That thread may wait; nobody else does. While too many files wait for it, no further
//! peer is heard.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// Files that may wait to be closed before no further peer is heard.
const MOST: usize = 512;

/// Has files closed by a thread, which ends with the last of its kind.
#[derive(Clone)]
pub struct Closer {
    files: Sender<OwnedFd>,
    waiting: Arc<AtomicUsize>,
}

impl Closer {
    /// Starts the thread; where there can be none, files are closed at once.
    pub fn new() -> Self {
        let (files, closed) = channel::<OwnedFd>();
        let waiting = Arc::<AtomicUsize>::default();
        let left = Arc::clone(&waiting);
        let work = move || {
            for file in closed {
                drop(file);
                left.fetch_sub(1, Ordering::Relaxed);
            }
        };
        // Without it `files` has nobody to take them.
        let _ = thread::Builder::new().name("memif closer".into()).spawn(work);
        Self { files, waiting }
    }

    /// Whether further files may come.
    pub fn keeps_up(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) < MOST
    }

    /// A file of a peer's.
    pub fn hold(&self, file: OwnedFd) -> Held {
        Held { file: ManuallyDrop::new(file), closer: self.clone() }
    }
}

/// A file of a peer's, which the thread closes.
pub struct Held {
    file: ManuallyDrop<OwnedFd>,
    closer: Closer,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.closer.waiting.fetch_add(1, Ordering::Relaxed);
        // SAFETY: nobody uses it after this.
        let file = unsafe { ManuallyDrop::take(&mut self.file) };
        if self.closer.files.send(file).is_err() {
            self.closer.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl AsFd for Held {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for Held {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read};
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn what_is_dropped_is_closed_and_the_count_says_so() {
        let closer = Closer::new();
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let held = closer.hold(theirs.into());
        assert_eq!(ours.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(held);
        let deadline = Instant::now() + Duration::from_secs(10);
        while ours.read(&mut [0]).is_err() || closer.waiting.load(Ordering::Relaxed) > 0 {
            assert!(Instant::now() < deadline, "it is not closed");
            thread::yield_now();
        }
        closer.waiting.store(MOST, Ordering::Relaxed);
        assert!(!closer.keeps_up());
    }
}
