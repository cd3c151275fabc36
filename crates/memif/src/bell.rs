//! Wakes peers that do not poll: a worker's word that a ring has frames enters, and a thread has the kernel
//! signal the ring's event file.
//!
//! A peer shares its event file with this process, and so its flags and its counter: it can have a `write` to
//! it wait for ever. So workers never touch it. They set a flag and wake a thread, neither of which waits. The
//! thread does not write either: it has the kernel signal the file at the end of an asynchronous read of
//! nothing (`IOCB_FLAG_RESFD` of `io_submit`), which waits for nobody, and takes nothing but event files.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use nix::errno::Errno;
use nix::libc;
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::closer::Held;

/// Wakes the peer of one ring.
pub struct Chime {
    /// Whether the peer is to be woken.
    due: AtomicBool,
    event: Held,
    /// The thread that does it; none where it could not be started.
    thread: Option<Thread>,
}

impl Chime {
    /// Has the peer woken soon. Costs a flag and, where it was down, a wake-up; waits for nothing.
    pub fn ring(&self) {
        if !self.due.swap(true, Ordering::AcqRel)
            && let Some(thread) = &self.thread
        {
            thread.unpark();
        }
    }
}

impl AsFd for Chime {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// What the thread and its owner share.
#[derive(Default)]
struct Shared {
    /// Those of the present connection.
    chimes: Mutex<Vec<Arc<Chime>>>,
    stop: AtomicBool,
}

impl Shared {
    fn chimes(&self) -> MutexGuard<'_, Vec<Arc<Chime>>> {
        self.chimes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread of an interface that wakes its peers. It ends when this goes.
pub struct Bell {
    shared: Arc<Shared>,
    thread: Option<Thread>,
}

impl Bell {
    /// Starts the thread. On a kernel without asynchronous I/O nobody is woken: peers have to poll.
    pub fn new() -> Self {
        let shared = Arc::<Shared>::default();
        let of_thread = Arc::clone(&shared);
        let thread = Signals::new().ok().and_then(|signals| {
            let work = move || serve(&of_thread, &signals);
            thread::Builder::new().name("memif bell".into()).spawn(work).ok()
        });
        Self { shared, thread: thread.map(|handle| handle.thread().clone()) }
    }

    /// A chime for an event file.
    pub fn chime(&self, event: Held) -> Arc<Chime> {
        Arc::new(Chime { due: AtomicBool::new(false), event, thread: self.thread.clone() })
    }

    /// Serves these and no others from now on.
    pub fn serve(&self, chimes: Vec<Arc<Chime>>) {
        *self.shared.chimes() = chimes;
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.serve(Vec::new());
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }
}

fn serve(shared: &Shared, signals: &Signals) {
    while !shared.stop.load(Ordering::Acquire) {
        let chimes = shared.chimes().clone();
        for chime in chimes.iter().filter(|chime| chime.due.swap(false, Ordering::AcqRel)) {
            signals.signal(chime.event.as_fd());
        }
        drop(chimes);
        thread::park();
    }
}

/// Requests that may have ended before their results are taken.
const RESULTS: usize = 64;

/// What the kernel is asked: `struct iocb` of linux/aio_abi.h, for little-endian machines.
#[repr(C)]
#[derive(Default)]
struct Request {
    data: u64,
    key: u32,
    rw_flags: u32,
    opcode: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event: u32,
}

const _: () = assert!(size_of::<Request>() == 64);

/// `IOCB_CMD_PREAD`.
const READ: u16 = 0;
/// `IOCB_FLAG_RESFD`: an event file is signalled at the end.
const SIGNAL: u32 = 1;

/// Has the kernel signal event files.
struct Signals {
    context: libc::c_ulong,
    /// A file without a byte.
    nothing: File,
}

impl Signals {
    fn new() -> nix::Result<Self> {
        let nothing = File::from(memfd_create(c"memif-bell", MFdFlags::MFD_CLOEXEC)?);
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes one number, which lives until the call returns.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, RESULTS, &raw mut context) };
        Errno::result(made).map(|_| Self { context, nothing })
    }

    /// Signals an event file; what is none is passed over.
    fn signal(&self, event: BorrowedFd) {
        let number = |file: i32| u32::try_from(file).unwrap_or(u32::MAX);
        let request = Request {
            opcode: READ,
            file: number(self.nothing.as_raw_fd()),
            flags: SIGNAL,
            event: number(event.as_raw_fd()),
            ..Request::default()
        };
        let requests = [&raw const request];
        for _ in 0..2 {
            // SAFETY: one request that reads no byte, and lives until the call returns: it has ended then.
            let sent =
                unsafe { libc::syscall(libc::SYS_io_submit, self.context, 1_usize, requests.as_ptr()) };
            if sent == 1 || Errno::last() != Errno::EAGAIN {
                return;
            }
            self.forget_results();
        }
    }

    /// Makes room for further requests.
    fn forget_results(&self) {
        // `struct io_event`: four words.
        let mut results = [[0_u64; 4]; RESULTS];
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes as many results as there is room for, and reads one time.
        unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                0_usize,
                RESULTS,
                results.as_mut_ptr(),
                ptr::from_ref(&at_once),
            )
        };
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: the context is this one's, and nothing is under way.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::{Duration, Instant};

    use nix::sys::eventfd::{EfdFlags, EventFd};

    use super::*;
    use crate::closer::Closer;

    #[test]
    fn a_full_event_file_keeps_nobody_waiting() {
        let signals = Signals::new().unwrap();
        // It blocks, and has no room for one more.
        let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC).unwrap();
        event.write(u64::MAX - 1).unwrap();
        // More often than there is room for results.
        (0..10 * RESULTS).for_each(|_| signals.signal(event.as_fd()));
        assert_eq!(event.read().unwrap(), u64::MAX);
        signals.signal(event.as_fd());
        assert_eq!(event.read().unwrap(), 1);
    }

    #[test]
    fn other_files_are_passed_over() {
        let signals = Signals::new().unwrap();
        let (reader, mut writer) = std::io::pipe().unwrap();
        signals.signal(reader.as_fd());
        signals.signal(writer.as_fd());
        writer.write_all(b"x").unwrap();
    }

    #[test]
    fn what_is_rung_is_heard_and_the_thread_ends() {
        let bell = Bell::new();
        let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK).unwrap();
        let chime = bell.chime(Closer::new().hold(event.as_fd().try_clone_to_owned().unwrap()));
        bell.serve(vec![Arc::clone(&chime)]);
        let deadline = Instant::now() + Duration::from_secs(10);
        for _ in 0..100 {
            chime.ring();
            while event.read().is_err() {
                assert!(Instant::now() < deadline, "nobody rings");
                thread::yield_now();
            }
        }
        let shared = Arc::downgrade(&bell.shared);
        drop(bell);
        while shared.upgrade().is_some() {
            assert!(Instant::now() < deadline, "the thread does not end");
            thread::yield_now();
        }
    }
}
