//! One AF_XDP socket: an interface, a queue and settings enter; its two ends leave.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use memmap2::{MmapOptions, MmapRaw};
use nix::libc::{self, c_int, c_void, socklen_t};

use crate::config::{Config, Copying, Mode, WhyCopies};
use crate::frames::{Memory, Share};
use crate::receiver::{ReceiveCounters, Receiver};
use crate::ring::{Consumer, Layout, Producer};
use crate::sender::Sender;
use crate::wake::{SendCounters, Wake, Waking, Woken};
use crate::{Error, Interface, LONGEST, MAX_LENGTH, MAX_QUEUES};

/// Chunks for what is sent, and entries of its rings.
const SENDING: u32 = 1024;
/// Bytes that the kernel may have under way of a socket's copies: as many as its frames can need.
const SEND_BUFFER: c_int = 16 << 20;
/// What users count with a frame, and interfaces do not.
const FCS: usize = 4;
/// Socket options that the C library's crate does not name.
const SO_PREFER_BUSY_POLL: c_int = 69;
const SO_BUSY_POLL_BUDGET: c_int = 70;
/// Frames of one call that sends by copies at most, `linux/if_xdp.h` (6.17).
const XDP_MAX_TX_SKB_BUDGET: c_int = 9;
/// How long a busy poll may look for frames, in microseconds.
const BUSY_POLL_US: c_int = 20;
/// Places of a ring at most.
const MOST_PLACES: u32 = 1 << 15;

/// How long the kernel may take to free the queue of a socket that was closed.
const FREED_WITHIN: Duration = Duration::from_secs(2);

/// A socket that is bound. The kernel takes it away with this process.
#[derive(Debug)]
pub(crate) struct Bound {
    descriptor: OwnedFd,
}

/// What one socket, and the kernel at it, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Frames that the driver took.
    pub sent: u64,
    /// Frames that the driver dropped instead.
    pub send_dropped: u64,
    /// Frames that the kernel refused to look at. More than zero is a defect.
    pub send_invalid: u64,
    /// Frames that arrived.
    pub received: u64,
    /// Frames that arrived and found no room: in the receive ring, or in a buffer.
    pub receive_dropped: u64,
    /// Descriptors of the kernel's that named none of its frames. More than zero is a defect.
    pub malformed: u64,
}

/// A socket from beside; it does not keep it open.
#[derive(Clone, Debug)]
pub struct Watch {
    bound: Weak<Bound>,
    sent: Arc<SendCounters>,
    received: Arc<ReceiveCounters>,
}

/// What [`open`] leaves.
pub struct Opened {
    /// Where frames leave, if it sends.
    pub sender: Option<Sender>,
    /// Where they arrive, if it receives. They do so once a [`crate::Program`] knows of the socket.
    pub receiver: Option<Receiver>,
    /// How the kernel serves it.
    pub mode: Mode,
    /// Why it is copies, where no copies were tried first.
    pub why_copies: Option<WhyCopies>,
    /// Whether the driver works when asked to.
    pub busy_polls: bool,
    /// The same from beside.
    pub watch: Watch,
    pub(crate) bound: Arc<Bound>,
    /// The queue that it is bound to.
    pub queue: u32,
}

/// Opens a socket at queue `queue` of `interface`. The calling thread is in the interface's network namespace.
///
/// # Errors
/// Why that is impossible, with the remedy.
pub fn open(interface: &Interface, queue: u32, config: &Config) -> Result<Opened, Error> {
    check(config, queue)?;
    let receiving = config.receiving;
    let bound = Bound { descriptor: socket()? };
    let memory = Arc::new(Memory::new(SENDING + receiving, config.chunk_size(), config.fill)?);
    bound.register(&memory)?;
    // Both rings of the memory must be there, whatever is done.
    bound.set(libc::SOL_XDP, libc::XDP_UMEM_FILL_RING, &receiving)?;
    bound.set(libc::SOL_XDP, libc::XDP_UMEM_COMPLETION_RING, &SENDING)?;
    if config.sends {
        bound.set(libc::SOL_XDP, libc::XDP_TX_RING, &SENDING)?;
    }
    if config.receives {
        bound.set(libc::SOL_XDP, libc::XDP_RX_RING, &receiving)?;
    }
    let offsets: libc::xdp_mmap_offsets = bound.get(libc::XDP_MMAP_OFFSETS)?;
    let mut fill = bound.producer(libc::XDP_UMEM_PGOFF_FILL_RING, &offsets.fr, receiving, 1)?;
    let completion = bound.consumer(libc::XDP_UMEM_PGOFF_COMPLETION_RING, &offsets.cr, SENDING, 1)?;
    let transmit = config
        .sends
        .then(|| bound.producer(libc::XDP_PGOFF_TX_RING as u64, &offsets.tx, SENDING, 2))
        .transpose()?;
    let receive = config
        .receives
        .then(|| bound.consumer(libc::XDP_PGOFF_RX_RING as u64, &offsets.rx, receiving, 2))
        .transpose()?;
    // More than the system's limit only with CAP_NET_ADMIN; a smaller one only makes frames wait.
    let _ = bound.set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER);
    let busy_polls = config.busy_poll && bound.prefer_busy_polling(config.budget);
    // Without it the kernel's own number holds, which is 32.
    let _ = bound.set(libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &c_int::from(config.budget));
    // The driver may want frames to receive in when it is bound.
    let bound = Arc::new(bound);
    let wake: Arc<dyn Wake> = Arc::clone(&bound) as Arc<dyn Wake>;
    let mut share = Share::new(&memory, SENDING, receiving, 1);
    let receiver = match receive {
        Some(receive) => Some(Receiver::new(Arc::clone(&wake), share, receive, fill, busy_polls)),
        None => {
            // A driver without copies keeps what arrives at the queue there, also what is not for the socket, and uses
            // these frames over and over: without any it would drop all.
            share.fill(&mut fill);
            None
        }
    };
    let why_copies = bound.bind(interface, queue, config)?;
    let mode = bound.mode()?;
    let sender = transmit.map(|transmit| {
        let chunks = config.chunks();
        let share = Share::new(&memory, 0, SENDING / chunks as u32, chunks);
        Sender::new(
            wake,
            share,
            transmit,
            completion,
            Waking { copies: mode == Mode::Copy, polls: busy_polls },
        )
    });
    let watch = Watch {
        bound: Arc::downgrade(&bound),
        sent: sender.as_ref().map(Sender::counters).unwrap_or_default(),
        received: receiver.as_ref().map(Receiver::counters).unwrap_or_default(),
    };
    Ok(Opened { sender, receiver, mode, why_copies, busy_polls, watch, bound, queue })
}

fn check(config: &Config, queue: u32) -> Result<(), Error> {
    if config.longest > LONGEST {
        return Err(Error::Config(format!(
            "frames of {} bytes are too large: AF_XDP sockets are used for up to {} bytes, FCS included; choose a \
             smaller --size",
            config.longest + FCS,
            LONGEST + FCS
        )));
    }
    if config.in_pieces() && !has_large_frames() {
        return Err(Error::NoLargeFrames { length: config.longest + FCS, most: MAX_LENGTH + FCS });
    }
    if !config.sends && !config.receives {
        return Err(Error::Config("a socket that neither sends nor receives is of no use".into()));
    }
    if !config.receiving.is_power_of_two() || config.receiving > MOST_PLACES {
        return Err(Error::Config(format!(
            "a ring of {} frames cannot be: choose a power of two up to {MOST_PLACES}",
            config.receiving
        )));
    }
    if queue >= MAX_QUEUES {
        return Err(Error::Config(format!("queue {queue} is too high: {MAX_QUEUES} queues can be used")));
    }
    Ok(())
}

/// Whether this kernel knows frames in several pieces (Linux 6.6). It does not depend on interfaces where the kernel
/// copies; where it does not copy, the driver must know them, too, or the kernel copies after all.
#[must_use]
pub fn has_large_frames() -> bool {
    let Ok(descriptor) = socket() else { return false };
    // There is no interface 0: the kernel says that once it has understood what is wanted.
    let result = bind_to(&descriptor, 0, 0, libc::XDP_COPY | libc::XDP_USE_SG);
    result.is_err_and(|cause| cause.raw_os_error() == Some(libc::ENODEV))
}

/// Binds a socket to a queue of the interface of this index, with `flags`.
fn bind_to(descriptor: &OwnedFd, index: u32, queue: u32, flags: u16) -> io::Result<()> {
    // SAFETY: the struct holds only numbers, for which zero is valid.
    let mut address: libc::sockaddr_xdp = unsafe { mem::zeroed() };
    address.sxdp_family = libc::AF_XDP as u16;
    address.sxdp_flags = flags;
    address.sxdp_ifindex = index;
    address.sxdp_queue_id = queue;
    let length = mem::size_of_val(&address) as socklen_t;
    // SAFETY: the socket is open, and the address has `length` bytes.
    let result = unsafe { libc::bind(descriptor.as_raw_fd(), (&raw const address).cast(), length) };
    if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn socket() -> Result<OwnedFd, Error> {
    // SAFETY: it takes no pointers.
    let descriptor = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if descriptor >= 0 {
        // SAFETY: the descriptor is open, and nobody else's.
        return Ok(unsafe { OwnedFd::from_raw_fd(descriptor) });
    }
    let error = io::Error::last_os_error();
    Err(match error.raw_os_error() {
        Some(libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT) => Error::NoSockets(error),
        _ => Error::of("making an AF_XDP socket", error),
    })
}

impl Bound {
    fn register(&self, memory: &Memory) -> Result<(), Error> {
        // SAFETY: the struct holds only numbers, for which zero is valid.
        let mut region: libc::xdp_umem_reg = unsafe { mem::zeroed() };
        region.addr = memory.start() as u64;
        region.len = memory.len() as u64;
        region.chunk_size = memory.chunk_size() as u32;
        self.set(libc::SOL_XDP, libc::XDP_UMEM_REG, &region).map_err(|error| match error {
            Error::Failed { source, .. } if source.raw_os_error() == Some(libc::ENOBUFS) => {
                Error::Memory { bytes: memory.len(), source }
            }
            other => other,
        })
    }

    /// Has the driver work when this process asks it to. Says whether the kernel does so; if not, nothing changed.
    fn prefer_busy_polling(&self, budget: u16) -> bool {
        let set = |option, value: c_int| self.set(libc::SOL_SOCKET, option, &value);
        let is_on = set(SO_PREFER_BUSY_POLL, 1)
            .and_then(|()| set(libc::SO_BUSY_POLL, BUSY_POLL_US))
            .and_then(|()| set(SO_BUSY_POLL_BUDGET, c_int::from(budget)))
            .is_ok();
        if !is_on {
            let _ = set(SO_PREFER_BUSY_POLL, 0);
            let _ = set(libc::SO_BUSY_POLL, 0);
        }
        is_on
    }

    fn set<T>(&self, level: c_int, option: c_int, value: &T) -> Result<(), Error> {
        let value: *const c_void = (&raw const *value).cast();
        // SAFETY: the socket is open, and `value` has so many bytes.
        let result =
            unsafe { libc::setsockopt(self.raw(), level, option, value, mem::size_of::<T>() as socklen_t) };
        if result < 0 {
            Err(Error::last(format!("setting up an AF_XDP socket (option {option})")))
        } else {
            Ok(())
        }
    }

    /// An option of AF_XDP that is a struct of numbers.
    fn get<T: Copy>(&self, option: c_int) -> Result<T, Error> {
        let mut value = mem::MaybeUninit::<T>::zeroed();
        let mut length = mem::size_of::<T>() as socklen_t;
        // SAFETY: the socket is open, and `value` has as many bytes as `length` says.
        let result = unsafe {
            libc::getsockopt(self.raw(), libc::SOL_XDP, option, value.as_mut_ptr().cast(), &raw mut length)
        };
        if result < 0 {
            return Err(Error::last(format!("asking an AF_XDP socket (option {option})")));
        }
        // SAFETY: it was zeroed, which is valid for structs of numbers, and perhaps filled by the kernel.
        Ok(unsafe { value.assume_init() })
    }

    /// Maps the ring at `offset`, whose entries have `words` words of 8 bytes.
    fn map(
        &self,
        offset: u64,
        at: &libc::xdp_ring_offset,
        size: u32,
        words: usize,
    ) -> Result<(MmapRaw, Layout), Error> {
        let layout = Layout {
            producer: at.producer as usize,
            consumer: at.consumer as usize,
            flags: at.flags as usize,
            entries: at.desc as usize,
        };
        let length = layout.entries + size as usize * words * 8;
        let memory = MmapOptions::new()
            .offset(offset)
            .len(length)
            .populate()
            .map_raw(&self.descriptor)
            .map_err(|source| Error::of("mapping a ring of an AF_XDP socket", source))?;
        Ok((memory, layout))
    }

    fn producer(
        &self,
        offset: u64,
        at: &libc::xdp_ring_offset,
        size: u32,
        words: usize,
    ) -> Result<Producer, Error> {
        let (memory, layout) = self.map(offset, at, size, words)?;
        Producer::new(memory, layout, size, words).ok_or_else(misplaced)
    }

    fn consumer(
        &self,
        offset: u64,
        at: &libc::xdp_ring_offset,
        size: u32,
        words: usize,
    ) -> Result<Consumer, Error> {
        let (memory, layout) = self.map(offset, at, size, words)?;
        Consumer::new(memory, layout, size, words).ok_or_else(misplaced)
    }

    /// Binds it: without copies first where that is not chosen, and says why it copies then. The kernel frees the
    /// queue of a socket that was closed a moment later, so that a busy queue is tried again for [`FREED_WITHIN`].
    fn bind(&self, interface: &Interface, queue: u32, config: &Config) -> Result<Option<WhyCopies>, Error> {
        let deadline = Instant::now() + FREED_WITHIN;
        let pieces = if config.in_pieces() { libc::XDP_USE_SG } else { 0 };
        let bind = |choice| self.bind_until(interface, queue, choice | pieces, deadline);
        let failed = |cause| Error::of_bind(interface.name(), queue, cause);
        match config.copying {
            Copying::Always => bind(libc::XDP_COPY).map(|()| None).map_err(failed),
            Copying::Never => bind(libc::XDP_ZEROCOPY).map(|()| None).map_err(failed),
            Copying::Automatic => match bind(libc::XDP_ZEROCOPY) {
                Ok(()) => Ok(None),
                Err(cause) => bind(libc::XDP_COPY).map(|()| Some(WhyCopies::of(&cause))).map_err(failed),
            },
        }
    }

    /// Binds it with `choice`, and again until `deadline` while the queue is busy.
    fn bind_until(
        &self,
        interface: &Interface,
        queue: u32,
        choice: u16,
        deadline: Instant,
    ) -> io::Result<()> {
        loop {
            let flags = choice | libc::XDP_USE_NEED_WAKEUP;
            match bind_to(&self.descriptor, interface.index(), queue, flags) {
                Err(cause) if cause.raw_os_error() == Some(libc::EBUSY) && Instant::now() <= deadline => {
                    thread::sleep(Duration::from_millis(10));
                }
                result => return result,
            }
        }
    }

    fn mode(&self) -> Result<Mode, Error> {
        let options: libc::xdp_options = self.get(libc::XDP_OPTIONS)?;
        Ok(if options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0 { Mode::ZeroCopy } else { Mode::Copy })
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

fn misplaced() -> Error {
    Error::Config("the kernel describes a ring outside its memory; this is a defect".into())
}

impl Wake for Bound {
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.descriptor.as_fd())
    }

    fn wake_to_send(&self) -> Woken {
        // SAFETY: the socket is open; no data is handed over.
        let sent =
            unsafe { libc::sendto(self.raw(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0) };
        if sent >= 0 {
            return Woken::Done;
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::EBUSY) => Woken::Dropped,
            Some(libc::ENETDOWN) => Woken::Down,
            Some(libc::ENXIO | libc::ENODEV | libc::EBADF) => Woken::Gone,
            _ => Woken::Again,
        }
    }

    fn wake_to_receive(&self) {
        let nothing = std::ptr::null_mut();
        // SAFETY: the socket is open; no data is asked for.
        unsafe {
            libc::recvfrom(
                self.raw(),
                nothing,
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
    }
}

impl Watch {
    /// What was counted; `None` once both ends of the socket are gone.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn read(&self) -> Result<Option<Statistics>, Error> {
        let Some(bound) = self.bound.upgrade() else { return Ok(None) };
        let kernel: libc::xdp_statistics = bound.get(libc::XDP_STATISTICS)?;
        let recalled = self.sent.recalled.load(Ordering::Relaxed);
        Ok(Some(Statistics {
            sent: self.sent.sent.load(Ordering::Relaxed),
            send_dropped: self.sent.dropped.load(Ordering::Relaxed),
            send_invalid: kernel.tx_invalid_descs.saturating_sub(recalled),
            received: self.received.received.load(Ordering::Relaxed),
            receive_dropped: kernel.rx_dropped + kernel.rx_ring_full,
            malformed: self.received.malformed.load(Ordering::Relaxed) + kernel.rx_invalid_descs,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_without_the_means_is_told_from_one_that_refuses() {
        let why = |number| WhyCopies::of(&io::Error::from_raw_os_error(number));
        assert_eq!(why(libc::EOPNOTSUPP), WhyCopies::NotByDriver);
        assert_eq!(why(libc::EINVAL), WhyCopies::Refused(libc::EINVAL));
    }

    #[test]
    fn what_cannot_be_is_refused_before_the_kernel_is_asked() {
        let refusal = |config: Config, queue| check(&config, queue).unwrap_err().to_string();
        let config = Config::new();
        assert!(check(&Config { longest: MAX_LENGTH, ..config }, 0).is_ok());
        let large = Config { longest: MAX_LENGTH + 1, ..config };
        if has_large_frames() {
            assert!(check(&large, 0).is_ok());
        } else {
            assert!(refusal(large, 0).contains("up to 3844 bytes"));
        }
        assert!(refusal(Config { longest: LONGEST + 1, ..config }, 0).contains("up to 9216 bytes"));
        assert!(refusal(Config { sends: false, receives: false, ..config }, 0).contains("neither"));
        assert!(refusal(config, 64).contains("64 queues"));
        assert!(refusal(Config { receiving: 1000, ..config }, 0).contains("a power of two"));
        assert_eq!(Config { longest: 1792, ..config }.chunk_size(), 2048);
        assert_eq!(Config { longest: 1793, ..config }.chunk_size(), 4096);
        let chunks = |longest| Config { longest, ..config }.chunks();
        assert_eq!([60, 1793, MAX_LENGTH, MAX_LENGTH + 1, 4097, LONGEST].map(chunks), [1, 1, 1, 1, 2, 4]);
    }
}
