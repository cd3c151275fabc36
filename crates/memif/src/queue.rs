//! What a queue's data end and the control end share: connections enter at one side, and leave at the
//! other when the worker has time for them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::bell::Chime;
use crate::config::{LONGEST_FRAME, Role};
use crate::counters::Counters;
use crate::ring::{Buffers, Index, Ring};

/// A queue of one connection.
pub struct Link {
    /// Its ring.
    pub ring: Ring,
    /// Its buffers.
    pub buffers: Buffers,
    /// What wakes a receiver that does not poll.
    pub chime: Arc<Chime>,
    /// Our role in the connection.
    pub role: Role,
}

impl Link {
    /// The index that we write.
    #[inline]
    pub fn ours(&self) -> Index {
        match self.role {
            Role::Client => Index::Head,
            Role::Server => Index::Tail,
        }
    }

    /// The index that the peer writes.
    #[inline]
    pub fn theirs(&self) -> Index {
        match self.role {
            Role::Client => Index::Tail,
            Role::Server => Index::Head,
        }
    }
}

/// What a queue's data end and the control end share.
pub struct Shared {
    /// Grows with every change of `link`.
    generation: AtomicU64,
    /// Bytes of the longest frame that is received.
    longest: AtomicU32,
    link: Mutex<Option<Arc<Link>>>,
    /// The generation that the data end gave up; there is none before the first.
    given_up: AtomicU64,
    /// What is counted.
    pub counters: Counters,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            generation: AtomicU64::new(0),
            longest: AtomicU32::new(LONGEST_FRAME),
            link: Mutex::default(),
            given_up: AtomicU64::new(0),
            counters: Counters::default(),
        }
    }
}

impl Shared {
    /// Bytes of the longest frame that is received.
    #[inline]
    pub fn longest(&self) -> u32 {
        self.longest.load(Ordering::Relaxed)
    }

    /// Sets [`Self::longest`].
    pub fn set_longest(&self, bytes: u32) {
        self.longest.store(bytes, Ordering::Relaxed);
    }

    /// Hands a connection's queue to the data end, or takes it away.
    pub fn set(&self, link: Option<Arc<Link>>) {
        let mut place = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        *place = link;
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Whether the data end has given the present connection up.
    pub fn is_broken(&self) -> bool {
        let given_up = self.given_up.load(Ordering::Relaxed);
        given_up > 0 && given_up == self.generation.load(Ordering::Relaxed)
    }
}

/// A data end's view of its queue.
pub struct Attached {
    pub shared: Arc<Shared>,
    generation: u64,
    link: Option<Arc<Link>>,
}

impl Attached {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, generation: 0, link: None }
    }

    /// Whether there is another connection than the one this end has, or none.
    #[inline]
    pub fn is_stale(&self) -> bool {
        self.shared.generation.load(Ordering::Acquire) != self.generation
    }

    /// Lets the old connection go and takes the present one.
    #[cold]
    pub fn renew(&mut self) {
        let place = self.shared.link.lock().unwrap_or_else(PoisonError::into_inner);
        self.generation = self.shared.generation.load(Ordering::Acquire);
        self.link.clone_from(&place);
    }

    /// The connection.
    #[inline]
    pub fn link(&self) -> Option<&Link> {
        self.link.as_deref()
    }

    /// Gives the connection up: its peer has written what cannot be.
    #[cold]
    pub fn give_up(&mut self) {
        self.shared.given_up.store(self.generation, Ordering::Relaxed);
        self.link = None;
    }
}
