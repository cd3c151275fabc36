//! Small models of what fastpath's threads share, run in every order in which two threads may go on (loom): the very
//! sources of the epochs, of publication and of the ring between workers, with loom's atomics instead of the standard
//! library's. Each model has a twin that does one thing wrong, of which loom must find the order that shows it: so the
//! models can fail. `make loom` runs them.

#![allow(dead_code, clippy::unwrap_used)] // the sources have more than the models use; a test may panic

use loom::model::Builder;

/// In the place of `src/sync.rs`.
mod sync {
    pub use loom::sync::{Arc, Mutex, MutexGuard, atomic};
    pub use std::sync::PoisonError;
}

#[path = "../src/publish.rs"]
mod publish;

#[path = "../src/fib/epoch.rs"]
mod epoch;

#[path = "../src/fib/pool.rs"]
mod pool;

#[path = "../src/dataplane/handoff/positions.rs"]
mod positions;

/// Runs `model` in every order with so many changes of threads that are not asked for: more find nothing new in models
/// as small as these, and take minutes.
fn every_order(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

mod fib {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicUsize, Ordering};
    use loom::thread;

    use super::epoch::Epochs;
    use super::pool::Pool;

    /// A table of one entry, which leads to one of two nodes.
    struct Table {
        entry: AtomicUsize,
        nodes: [UnsafeCell<u32>; 2],
        epochs: Epochs,
    }

    /// A reader makes `passes`, while the writer puts another node in the place of the first one and then uses that
    /// again, as soon as its pool gives it; at once if it is `hasty`.
    fn model(passes: usize, hasty: bool) {
        let table = Arc::new(Table {
            entry: AtomicUsize::new(0),
            nodes: [UnsafeCell::new(10), UnsafeCell::new(0)],
            epochs: Epochs::default(),
        });
        let mut pool = Pool::new(2);
        assert_eq!(pool.take(&table.epochs), Some(0));
        let slot = table.epochs.register();
        let reader = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let mut last = 0;
                for _ in 0..passes {
                    table.epochs.enter(&slot);
                    let node = table.entry.load(Ordering::Acquire);
                    // SAFETY: loom watches who else is at this node.
                    let found = table.nodes[node].with(|value| unsafe { *value });
                    assert!(found == 10 || found == 11, "a node that is not filled, or used again: {found}");
                    assert!(found >= last, "an older route after a newer one");
                    last = found;
                    slot.leave();
                }
            })
        };
        let next = pool.take(&table.epochs).unwrap();
        // SAFETY: no entry leads to it yet.
        table.nodes[next as usize].with_mut(|value| unsafe { *value = 11 });
        table.entry.store(next as usize, Ordering::Release);
        pool.retire(0, &table.epochs);
        let again = if hasty { Some(0) } else { pool.take(&table.epochs) };
        if let Some(again) = again {
            assert_eq!(again, 0);
            // SAFETY: loom watches who else is at this node.
            table.nodes[0].with_mut(|value| unsafe { *value = 99 });
        }
        reader.join().unwrap();
    }

    #[test]
    fn a_node_is_used_again_only_when_no_pass_can_be_at_it() {
        super::every_order(|| model(1, false));
        super::every_order(|| model(2, false));
    }

    #[test]
    #[should_panic]
    fn a_writer_that_does_not_wait_for_passes_is_caught() {
        super::every_order(|| model(1, true));
    }
}

mod publication {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicBool, Ordering};
    use loom::thread;

    use super::publish::Publisher;

    /// One thread publishes and then says so; a thread that hears this finds the value.
    fn model(said: Ordering, heard: Ordering) {
        let publisher = Publisher::new(1);
        let mut subscriber = publisher.subscribe();
        let flag = Arc::new(AtomicBool::new(false));
        let reader = {
            let flag = Arc::clone(&flag);
            thread::spawn(move || {
                let first = subscriber.news().map(|value| *value);
                let was_said = flag.load(heard);
                let second = subscriber.news().map(|value| *value);
                assert!(first.is_some(), "the value of now is news");
                let newest = second.or(first).unwrap();
                assert!(newest >= first.unwrap(), "an older value after a newer one");
                assert!(!was_said || newest == 2, "it was said, and the value is not there");
            })
        };
        publisher.publish(2);
        flag.store(true, said);
        reader.join().unwrap();
    }

    #[test]
    fn who_hears_that_a_value_was_published_finds_it() {
        super::every_order(|| model(Ordering::Release, Ordering::Acquire));
    }

    #[test]
    #[should_panic(expected = "it was said")]
    fn without_release_and_acquire_the_value_may_not_be_found() {
        super::every_order(|| model(Ordering::Relaxed, Ordering::Relaxed));
    }
}

mod ring {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::positions::{Positions, Reading, Writing};

    /// Lines of the ring, and numbers that go through it.
    const SIZE: usize = 2;
    const NUMBERS: u32 = 3;

    struct Ring {
        lines: [UnsafeCell<u32>; SIZE],
        positions: Positions,
    }

    /// Numbers go from one thread to another through a ring that holds fewer. A `hasty` receiver releases lines before
    /// it has read them.
    fn model(hasty: bool) {
        let lines = [UnsafeCell::new(0), UnsafeCell::new(0)];
        let ring = Arc::new(Ring { lines, positions: Positions::default() });
        let receiver = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                let mut at = Reading::default();
                let mut expected = 1;
                while expected <= NUMBERS {
                    let published = at.published(&ring.positions);
                    if published == at.lent {
                        thread::yield_now();
                        continue;
                    }
                    let first = at.lent;
                    at.lent = published;
                    if hasty {
                        at.release(&ring.positions);
                    }
                    for line in first..published {
                        // SAFETY: loom watches who else is at this line.
                        let number = ring.lines[line % SIZE].with(|number| unsafe { *number });
                        assert_eq!(number, expected);
                        expected += 1;
                    }
                    at.release(&ring.positions);
                }
            })
        };
        let mut at = Writing::default();
        for number in 1..=NUMBERS {
            while !at.has_room(&ring.positions, 1, SIZE) {
                thread::yield_now();
            }
            // SAFETY: loom watches who else is at this line.
            ring.lines[at.written % SIZE].with_mut(|line| unsafe { *line = number });
            at.written += 1;
            at.publish(&ring.positions);
        }
        receiver.join().unwrap();
    }

    #[test]
    fn numbers_come_in_their_order_and_no_line_is_at_both_ends() {
        super::every_order(|| model(false));
    }

    #[test]
    #[should_panic]
    fn a_receiver_that_releases_too_soon_is_caught() {
        super::every_order(|| model(true));
    }
}
