//! A value that one thread replaces and others read: a reader asks with one load whether there is a newer
//! one, and takes a lock only then.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, PoisonError};

/// Where the newest value is.
#[derive(Debug)]
pub struct Publisher<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    edition: AtomicU64,
    newest: Mutex<Arc<T>>,
}

/// A reader's access.
#[derive(Debug)]
pub struct Subscriber<T> {
    shared: Arc<Shared<T>>,
    seen: u64,
}

impl<T> Publisher<T> {
    /// Publishes the first value.
    #[must_use]
    pub fn new(first: T) -> Self {
        Self(Arc::new(Shared { edition: AtomicU64::new(1), newest: Mutex::new(Arc::new(first)) }))
    }

    /// Publishes the next value. A thread that sees what this one does afterwards finds the value.
    pub fn publish(&self, next: T) {
        *self.0.newest.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        self.0.edition.fetch_add(1, Ordering::Release);
    }

    /// For one more reader, to whom the value of now is news.
    #[must_use]
    pub fn subscribe(&self) -> Subscriber<T> {
        Subscriber { shared: Arc::clone(&self.0), seen: 0 }
    }
}

impl<T> Subscriber<T> {
    /// The newest value, if the reader has not had it.
    #[inline(always)]
    pub fn news(&mut self) -> Option<Arc<T>> {
        let edition = self.shared.edition.load(Ordering::Acquire);
        if edition == self.seen {
            return None;
        }
        self.seen = edition;
        Some(Arc::clone(&self.shared.newest.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}
