//! When what was taken out may be used again: passes of readers enter, the oldest that may still be on
//! leaves. (Epoch-based reclamation: Fraser, Practical lock-freedom, 2004.)
//!
//! The writer takes something out of the table, then [`Epochs::advance`]s and notes the epoch that ended,
//! *t*. It may use the thing again once [`Epochs::oldest`] is above *t*. Why no reader then holds it:
//!
//! - A reader shows the epoch that it read, runs a sequentially consistent fence, and only then looks into
//!   the table. The writer stores into the table, runs such a fence, and only then looks at what readers
//!   show. Whichever fence is first: if the reader's, the writer sees what it shows; if the writer's, the
//!   reader sees that the thing is gone.
//! - A reader that shows an epoch above *t* read it from the `advance` that followed the removal
//!   (`Release`, `Acquire`), so that it sees that the thing is gone.
//! - What a reader shows it stores with `Release` and the writer loads with `Acquire`: all that it did in
//!   earlier passes has happened before the writer goes on.

use crate::sync::atomic::{AtomicU64, Ordering, fence};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a reader shows between passes: later than every epoch.
const IDLE: u64 = u64::MAX;

/// What one reader shows, away from what others write.
#[repr(align(128))]
pub(super) struct Slot(AtomicU64);

impl Slot {
    /// The pass has ended.
    pub fn leave(&self) {
        self.0.store(IDLE, Ordering::Release);
    }
}

/// The epoch, and what every reader shows.
#[derive(Default)]
pub(super) struct Epochs {
    now: AtomicU64,
    /// Locked when readers come and go and by the writer, never in a pass.
    slots: Mutex<Vec<Arc<Slot>>>,
}

impl Epochs {
    /// A slot for one more reader.
    pub fn register(&self) -> Arc<Slot> {
        let slot = Arc::new(Slot(AtomicU64::new(IDLE)));
        self.slots().push(Arc::clone(&slot));
        slot
    }

    /// The reader of `slot` is gone.
    pub fn forget(&self, slot: &Arc<Slot>) {
        self.slots().retain(|other| !Arc::ptr_eq(other, slot));
    }

    /// A pass begins.
    #[inline]
    pub fn enter(&self, slot: &Slot) {
        slot.0.store(self.now.load(Ordering::Acquire), Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Ends the present epoch, and returns it: passes of later ones see what was stored before.
    pub fn advance(&self) -> u64 {
        self.now.fetch_add(1, Ordering::AcqRel)
    }

    /// The earliest epoch of a pass that may be on; later than every epoch when there is none.
    pub fn oldest(&self) -> u64 {
        fence(Ordering::SeqCst);
        self.slots().iter().map(|slot| slot.0.load(Ordering::Acquire)).min().unwrap_or(IDLE)
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_pass_counts() {
        let epochs = Epochs::default();
        assert_eq!(epochs.oldest(), IDLE);
        let (one, two) = (epochs.register(), epochs.register());
        assert_eq!(epochs.oldest(), IDLE);
        epochs.enter(&one);
        let ended = epochs.advance();
        assert_eq!(epochs.oldest(), ended);
        epochs.enter(&two);
        assert_eq!(epochs.oldest(), ended);
        one.leave();
        assert_eq!(epochs.oldest(), ended + 1);
        epochs.forget(&two);
        assert_eq!(epochs.oldest(), IDLE);
    }
}
