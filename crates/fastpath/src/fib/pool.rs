//! Numbers of nodes or groups: taken, retired, and taken again when no pass can still find them.

use std::collections::VecDeque;

use super::epoch::Epochs;

/// Numbers below a capacity, those that were used before first.
pub(super) struct Pool {
    capacity: u32,
    /// The lowest that was never taken.
    fresh: u32,
    free: Vec<u32>,
    /// With the epoch that ended when they were taken out, earliest first.
    retired: VecDeque<(u64, u32)>,
}

impl Pool {
    pub fn new(capacity: u32) -> Self {
        Self { capacity, fresh: 0, free: Vec::new(), retired: VecDeque::new() }
    }

    /// One that nobody uses; `None` when there is none.
    pub fn take(&mut self, epochs: &Epochs) -> Option<u32> {
        if self.free.is_empty() && !self.retired.is_empty() {
            let oldest = epochs.oldest();
            while let Some((_, number)) = self.retired.pop_front_if(|(epoch, _)| *epoch < oldest) {
                self.free.push(number);
            }
        }
        if let Some(number) = self.free.pop() {
            return Some(number);
        }
        (self.fresh < self.capacity).then(|| {
            self.fresh += 1;
            self.fresh - 1
        })
    }

    /// Readers that look from now on do not find `number`.
    pub fn retire(&mut self, number: u32, epochs: &Epochs) {
        self.retired.push_back((epochs.advance(), number));
    }

    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// How many were ever taken.
    pub fn touched(&self) -> usize {
        self.fresh as usize
    }

    pub fn retired(&self) -> usize {
        self.retired.len()
    }

    /// How many are taken now.
    pub fn used(&self) -> usize {
        self.touched() - self.free.len() - self.retired.len()
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn what_a_pass_may_find_is_not_taken_again() {
        let (epochs, mut pool) = (Epochs::default(), Pool::new(2));
        assert_eq!((pool.take(&epochs), pool.take(&epochs), pool.take(&epochs)), (Some(0), Some(1), None));
        let reader = epochs.register();
        epochs.enter(&reader);
        pool.retire(1, &epochs);
        assert_eq!((pool.take(&epochs), pool.used(), pool.retired()), (None, 1, 1));
        reader.leave();
        assert_eq!((pool.take(&epochs), pool.used(), pool.retired()), (Some(1), 2, 0));
        epochs.enter(&reader);
        pool.retire(0, &epochs);
        epochs.enter(&reader);
        assert_eq!(pool.take(&epochs), Some(0));
    }
}
