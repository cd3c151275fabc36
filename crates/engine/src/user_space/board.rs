//! Where workers read what they shall do: loads are announced by one thread, and followed by many.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::live::INTERVALS;
use crate::pacing::{Announced, Mode};

/// The loads announced so far.
#[derive(Debug)]
pub struct Board {
    loads: Vec<Place>,
    /// The newest slot.
    current: AtomicU64,
    stop: AtomicBool,
}

/// One load. It is written before its slot is announced, and again only when all have left it.
#[derive(Debug, Default)]
struct Place {
    start: AtomicU64,
    gap: AtomicU64,
    gap_fraction: AtomicU64,
    frames: AtomicU64,
    first: AtomicU64,
    rows: AtomicU64,
    mode: AtomicU64,
}

impl Place {
    #[inline]
    fn mode(&self) -> Mode {
        MODES.get(self.mode.load(Ordering::Relaxed) as usize).copied().unwrap_or_default()
    }
}

const MODES: [Mode; 5] = [Mode::Idle, Mode::Max, Mode::Rate, Mode::Burst, Mode::Part];

impl Board {
    /// A board whose slot 0 is idle.
    pub fn new() -> Self {
        let loads = (0..INTERVALS).map(|_| Place::default()).collect();
        Self { loads, current: AtomicU64::new(0), stop: AtomicBool::new(false) }
    }

    /// Announces the load of `slot`, the one after the last.
    pub fn announce(&self, slot: u64, load: &Announced) {
        let place = self.place(slot);
        let mode = MODES.iter().position(|mode| *mode == load.mode).unwrap_or_default();
        place.start.store(load.start, Ordering::Relaxed);
        place.gap.store(load.gap, Ordering::Relaxed);
        place.gap_fraction.store(load.gap_fraction, Ordering::Relaxed);
        place.frames.store(load.frames, Ordering::Relaxed);
        place.first.store(load.first, Ordering::Relaxed);
        place.rows.store(load.rows, Ordering::Relaxed);
        place.mode.store(mode as u64, Ordering::Relaxed);
        self.current.store(slot, Ordering::Release);
    }

    /// The newest slot.
    #[inline]
    pub fn current(&self) -> u64 {
        self.current.load(Ordering::Acquire)
    }

    /// The load of `slot`, which is announced.
    pub fn load(&self, slot: u64) -> Announced {
        let place = self.place(slot);
        Announced {
            start: place.start.load(Ordering::Relaxed),
            gap: place.gap.load(Ordering::Relaxed),
            gap_fraction: place.gap_fraction.load(Ordering::Relaxed),
            frames: place.frames.load(Ordering::Relaxed),
            first: place.first.load(Ordering::Relaxed),
            rows: place.rows.load(Ordering::Relaxed),
            mode: place.mode(),
        }
    }

    /// Whether the newest slot has a load.
    #[inline]
    pub fn is_loaded(&self) -> bool {
        self.place(self.current()).mode() != Mode::Idle
    }

    /// Tells all workers to end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether they shall end.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn place(&self, slot: u64) -> &Place {
        &self.loads[slot as usize % INTERVALS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_announced_is_read() {
        let board = Board::new();
        assert_eq!((board.current(), board.load(0)), (0, Announced::default()));
        for (slot, mode) in (1..).zip(MODES) {
            let load = Announced { start: slot, gap: 2, gap_fraction: 3, frames: 4, first: 5, rows: 6, mode };
            board.announce(slot, &load);
            assert_eq!((board.current(), board.load(slot)), (slot, load));
            assert_eq!(board.is_loaded(), mode != Mode::Idle);
        }
    }
}
