//! Memory for frames: how many of which size enters, a pool leaves.

use std::ffi::{CString, c_void};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::environment::Dpdk;
use crate::error::{Error, errno};
use crate::shim;

/// Frames that a thread keeps at hand, of those that it freed: they are still in its processor's cache.
const CACHE: u32 = 256;

/// A pool of buffers for frames. Clones are the same pool.
#[derive(Clone, Debug)]
pub struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pool: NonNull<shim::rte_mempool>,
    count: u32,
    room: u16,
    _dpdk: Arc<Dpdk>,
}

// SAFETY: a pool of DPDK may be used by any threads at once.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Pool {
    /// A pool of `count` buffers with room for frames of `room` bytes, near the processor `socket`
    /// where that is known.
    ///
    /// # Errors
    /// [`Error::Pool`] when memory is short.
    pub fn new(dpdk: &Arc<Dpdk>, count: u32, room: u16, socket: Option<i32>) -> Result<Self, Error> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("frames{}", MADE.fetch_add(1, Ordering::Relaxed));
        let name = CString::new(name).unwrap_or_default();
        let cache = CACHE.min(count * 2 / 3);
        let socket = socket.unwrap_or(-1);
        let mut error = 0;
        // SAFETY: DPDK is started, the name outlives the call and `error` can be written.
        let pool = unsafe { shim::linerate_pool(name.as_ptr(), count, cache, room, socket, &raw mut error) };
        let pool = NonNull::new(pool).ok_or(Error::Pool { count, room, cause: errno(error) })?;
        Ok(Self(Arc::new(Inner { pool, count, room, _dpdk: Arc::clone(dpdk) })))
    }

    /// The longest frame that a buffer holds.
    #[must_use]
    pub fn room(&self) -> usize {
        usize::from(self.0.room)
    }

    /// Writes `byte` to every place of every buffer. To be called before the pool is used.
    pub fn fill(&mut self, byte: u8) {
        unsafe extern "C" fn visit(byte: *mut c_void, data: *mut c_void, room: usize) {
            // SAFETY: the context is the byte below; the buffer has `room` bytes, which nobody uses.
            unsafe { data.cast::<u8>().write_bytes(*byte.cast::<u8>(), room) };
        }
        let mut byte = byte;
        // SAFETY: the pool exists, `visit` writes within each buffer, and `byte` outlives the call.
        unsafe { shim::linerate_pool_each(self.pointer(), Some(visit), (&raw mut byte).cast()) };
    }

    pub(crate) fn pointer(&self) -> *mut shim::rte_mempool {
        self.0.pool.as_ptr()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A pool whose frames are not all at home stays until the process ends: a device may hold them.
        // SAFETY: nobody else has the pool, and the shim looks whether its frames are at home.
        unsafe { shim::linerate_pool_free(self.pool.as_ptr(), self.count) };
    }
}
