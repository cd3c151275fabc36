//! The stations of a bridge (the filtering database of IEEE 802.1Q, 8.8): source addresses and the
//! interfaces that they were seen at enter, the interface of a destination leaves.
//!
//! The table has a fixed size. A station is one word: 48 bits of address, 16 of its interface; a word of 0
//! is a free place. Where a station may be is settled by its address: two lines of eight places. When it was
//! last seen stands in a second array, by the same place. Workers learn and look up, the router forgets;
//! nobody waits, and nothing is locked. Why races are harmless:
//!
//! - A word is loaded and stored whole: no reader sees an address with another's interface.
//! - Places are taken, changed and given up by comparing and exchanging the whole word. The second worker
//!   changes nothing: two workers cannot take one place, and a station that moved meanwhile is not forgotten.
//! - A worker that loses the race for a place leaves the station to be learned with its next frame; until
//!   then frames to it are flooded, as they were before.
//! - Two workers may learn one station in two places, if a place is given up between. Lookups find the first
//!   one, which is the one that is refreshed; the other is forgotten when its time is up.
//! - When a station was seen is stored beside its word, not with it. The router may read the time of a place
//!   just before a worker refreshes it, or before the worker that took it has stored any. Then it forgets a
//!   station too early, which is learned again with its next frame.
//! - The number of stations, in all and at an interface, may exceed the limit by one for each worker that
//!   learned at once.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use wire::MacAddress;

use super::Settings;
use crate::dataplane::counters::INTERFACES;
use crate::dataplane::seeded::Seeded;

/// Places in a line, which is one of the cache's.
const LINE: usize = 8;

/// One interface may not have the last eighth of a table: the others learn stations, too, while somebody makes
/// up addresses at it.
const RESERVED: u32 = 8;

/// What became of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// It was known there, or another worker is just learning it.
    Known,
    /// It is new.
    New,
    /// It was known at another interface.
    Moved,
    /// There is no room for it.
    Full,
}

/// A station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station {
    /// Its address.
    pub mac: MacAddress,
    /// Where it is.
    pub interface: u16,
    /// How long it has said nothing, to the second.
    pub silent: Duration,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Line([AtomicU64; LINE]);

/// The table.
#[derive(Debug)]
pub struct Stations {
    settings: Settings,
    /// An even number of lines, a power of two.
    lines: Box<[Line]>,
    /// By place: when it was last seen, in seconds of the router's clock.
    seen: Box<[[AtomicU32; LINE]]>,
    /// Seconds of the router's clock.
    now: AtomicU32,
    known: AtomicU32,
    /// How many are known at each interface.
    known_at: Box<[AtomicU32]>,
    seeded: Seeded,
}

impl Stations {
    /// One without stations, when it is `now` by the router's clock. It has twice the places that it may use, so that lines are seldom full before
    /// the table is.
    #[must_use]
    pub fn new(settings: Settings, now: Duration) -> Self {
        let lines = (settings.stations as usize * 2).div_ceil(LINE).next_power_of_two().max(2);
        Self {
            settings,
            lines: (0..lines).map(|_| Line::default()).collect(),
            seen: (0..lines).map(|_| Default::default()).collect(),
            now: AtomicU32::new(now.as_secs() as u32),
            known: AtomicU32::new(0),
            known_at: (0..INTERFACES).map(|_| AtomicU32::new(0)).collect(),
            seeded: Seeded::new(),
        }
    }

    /// How it was set.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// How many stations are known.
    #[must_use]
    pub fn known(&self) -> usize {
        self.known.load(Relaxed) as usize
    }

    /// Notes that `mac` sends from `interface`. Group addresses send nothing, nor does 0 (802.1Q, 8.7).
    #[inline]
    pub fn learn(&self, mac: MacAddress, interface: u16) -> Learned {
        if mac.0[0] & 1 == 1 || mac.0 == [0; 6] {
            return Learned::Known;
        }
        let word = word(mac, interface);
        let first = self.line(mac);
        for at in [first, first ^ 1] {
            for (place, held) in self.words(at).iter().enumerate() {
                let known = held.load(Relaxed);
                if known >> 16 != word >> 16 {
                    continue;
                }
                self.refresh(at, place);
                if known == word {
                    return Learned::Known;
                }
                let moved = held.compare_exchange(known, word, Relaxed, Relaxed).is_ok();
                if moved {
                    self.count(known, -1);
                    self.count(word, 1);
                }
                return if moved { Learned::Moved } else { Learned::Known };
            }
        }
        self.insert(word, first)
    }

    #[cold]
    fn insert(&self, word: u64, first: usize) -> Learned {
        let most = self.settings.stations;
        let at_interface = self.known_at.get(usize::from(word as u16));
        if self.known.load(Relaxed) >= most
            || at_interface.is_some_and(|known| known.load(Relaxed) >= most - most / RESERVED)
        {
            return Learned::Full;
        }
        for at in [first, first ^ 1] {
            for (place, held) in self.words(at).iter().enumerate() {
                if held.load(Relaxed) != 0 {
                    continue;
                }
                if held.compare_exchange(0, word, Relaxed, Relaxed).is_err() {
                    return Learned::Known;
                }
                self.known.fetch_add(1, Relaxed);
                self.count(word, 1);
                self.refresh(at, place);
                return Learned::New;
            }
        }
        Learned::Full
    }

    /// Where `mac` is.
    #[inline]
    #[must_use]
    pub fn find(&self, mac: MacAddress) -> Option<u16> {
        let wanted = word(mac, 0) >> 16;
        let first = self.line(mac);
        let line = |at: usize| {
            let mut held = self.words(at).iter().map(|held| held.load(Relaxed));
            held.find(|known| known >> 16 == wanted && *known != 0).map(|known| known as u16)
        };
        line(first).or_else(|| line(first ^ 1))
    }

    /// It is `now` by the router's clock: forgets stations that have been silent for too long.
    pub fn tick(&self, now: Duration) {
        let now = now.as_secs() as u32;
        self.now.store(now, Relaxed);
        self.retain(|station| station.silent <= self.settings.ageing);
    }

    /// Forgets the stations of which `keep` is not true.
    pub fn retain(&self, keep: impl Fn(&Station) -> bool) {
        self.each(|station, held, word| {
            if !keep(&station) && held.compare_exchange(word, 0, Relaxed, Relaxed).is_ok() {
                self.known.fetch_sub(1, Relaxed);
                self.count(word, -1);
            }
        });
    }

    /// All stations, in no order.
    #[must_use]
    pub fn list(&self) -> Vec<Station> {
        let mut stations = Vec::with_capacity(self.known());
        self.each(|station, _, _| stations.push(station));
        stations
    }

    fn each(&self, mut act: impl FnMut(Station, &AtomicU64, u64)) {
        let now = self.now.load(Relaxed);
        for (line, seen) in self.lines.iter().zip(&self.seen) {
            for (held, seen) in line.0.iter().zip(seen) {
                let word = held.load(Relaxed);
                if word == 0 {
                    continue;
                }
                let [a, b, c, d, e, f, ..] = word.to_be_bytes();
                // A worker that has just refreshed it may be ahead of a tick that is on.
                let silent = Duration::from_secs(u64::from(now.saturating_sub(seen.load(Relaxed))));
                let station = Station { mac: MacAddress([a, b, c, d, e, f]), interface: word as u16, silent };
                act(station, held, word);
            }
        }
    }

    /// The words of a line.
    #[inline]
    fn words(&self, at: usize) -> &[AtomicU64] {
        self.lines.get(at).map_or(&[], |line| &line.0)
    }

    /// Notes when a station was seen; nothing is stored, and no other worker's cache disturbed, where that
    /// is known.
    #[inline]
    fn refresh(&self, at: usize, place: usize) {
        let now = self.now.load(Relaxed);
        let Some(seen) = self.seen.get(at).and_then(|line| line.get(place)) else { return };
        if seen.load(Relaxed) != now {
            seen.store(now, Relaxed);
        }
    }

    /// Notes that the interface of a station has one more, or one less.
    #[cold]
    fn count(&self, word: u64, more: i32) {
        if let Some(known) = self.known_at.get(usize::from(word as u16)) {
            known.fetch_add(more.cast_unsigned(), Relaxed);
        }
    }

    /// The first line of an address, which nobody outside can foresee.
    #[inline]
    fn line(&self, mac: MacAddress) -> usize {
        self.seeded.of(word(mac, 0) >> 16) as usize & (self.lines.len() - 1)
    }
}

#[inline]
fn word(mac: MacAddress, interface: u16) -> u64 {
    let [a, b, c, d, e, f] = mac.0;
    let [g, h] = interface.to_be_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn mac(number: u32) -> MacAddress {
        let [a, b, c, d] = number.to_be_bytes();
        MacAddress([2, 0, a, b, c, d])
    }

    fn table(stations: u32) -> Stations {
        Stations::new(Settings { stations, ..Settings::default() }, Duration::ZERO)
    }

    #[test]
    fn a_station_is_found_where_it_was_last_seen() {
        let table = table(4);
        assert_eq!(table.find(mac(1)), None);
        assert_eq!(table.find(MacAddress([0; 6])), None);
        assert_eq!(table.learn(mac(1), 7), Learned::New);
        assert_eq!(table.learn(mac(1), 7), Learned::Known);
        assert_eq!(table.learn(mac(1), 0), Learned::Moved);
        assert_eq!((table.find(mac(1)), table.known()), (Some(0), 1));
        for nobody in [[0; 6], [0xff; 6], [1, 0, 0x5e, 0, 0, 1]] {
            assert_eq!(table.learn(MacAddress(nobody), 7), Learned::Known);
            assert_eq!((table.find(MacAddress(nobody)), table.known()), (None, 1));
        }
    }

    #[test]
    fn a_silent_station_is_forgotten_after_its_time() {
        let table = table(4);
        table.tick(Duration::from_secs(1000));
        table.learn(mac(1), 1);
        table.tick(Duration::from_secs(1200));
        table.learn(mac(2), 1);
        table.tick(Duration::from_secs(1300));
        assert_eq!(table.known(), 2);
        let silent: HashMap<_, _> = table.list().into_iter().map(|one| (one.mac, one.silent)).collect();
        assert_eq!((silent[&mac(1)].as_secs(), silent[&mac(2)].as_secs()), (300, 100));
        table.tick(Duration::from_secs(1301));
        assert_eq!((table.find(mac(1)), table.find(mac(2)), table.known()), (None, Some(1), 1));
        table.learn(mac(2), 1);
        table.tick(Duration::from_secs(1601));
        assert_eq!(table.find(mac(2)), Some(1));
        table.retain(|station| station.interface != 1);
        assert_eq!((table.known(), table.list()), (0, Vec::new()));
    }

    #[test]
    fn a_full_table_learns_again_when_there_is_room() {
        let table = table(100);
        for number in 0..88 {
            assert_eq!(table.learn(mac(number), 1), Learned::New, "{number}");
        }
        assert_eq!(table.learn(mac(100), 1), Learned::Full, "the rest is for others");
        for number in 88..100 {
            assert_eq!(table.learn(mac(number), 3), Learned::New, "{number}");
        }
        assert_eq!(table.learn(mac(100), 4), Learned::Full);
        assert_eq!(table.learn(mac(99), 2), Learned::Moved);
        table.retain(|station| station.interface == 2);
        assert_eq!(table.learn(mac(100), 1), Learned::New);
        assert_eq!(table.known(), 2);
    }

    #[test]
    fn workers_and_the_router_change_it_at_once() {
        let table = table(64);
        std::thread::scope(|scope| {
            for worker in 1..4u16 {
                let table = &table;
                scope.spawn(move || {
                    for round in 0..if cfg!(miri) { 100 } else { 20_000 } {
                        let number = round % 96;
                        table.learn(mac(number), worker << 8 | number as u16);
                        if let Some(found) = table.find(mac(number)) {
                            assert_eq!(found & 0xff, number as u16, "another station's interface");
                        }
                    }
                });
            }
            for second in 0..if cfg!(miri) { 10 } else { 200 } {
                table.tick(Duration::from_secs(second * 400));
            }
        });
        assert_eq!(table.known(), table.list().len());
        assert!(table.known() <= 64 + 3);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 256 }))]

        /// As a map that forgets nothing.
        #[test]
        fn as_a_plain_map(seen in prop::collection::vec((0u32..200, 0u16..4), 0..400)) {
            let table = table(512);
            let mut map = HashMap::new();
            for (number, interface) in seen {
                table.learn(mac(number), interface);
                map.insert(number, interface);
            }
            prop_assert_eq!(table.known(), map.len());
            for number in 0..200 {
                prop_assert_eq!(table.find(mac(number)), map.get(&number).copied());
            }
        }
    }
}
