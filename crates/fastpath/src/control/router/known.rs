//! The table of neighbours: those that are set by hand or learned enter, and so many of each interface stay.
//!
//! Anybody on a link can make up neighbours. So an interface has a quota, and who asked for nothing makes place
//! first: those that nobody asked for go before those that answered a question (RFC 6583, 7.1), the oldest first.
//! Where all interfaces together have too many, the one with the most gives way.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use wire::MacAddress;

/// The most neighbours that are learned.
pub(super) const MOST: usize = 1 << 16;
/// The most that are learned at one interface.
pub(super) const QUOTA: usize = MOST / 4;

/// An interface, and an address there.
pub(super) type Place = (u16, IpAddr);

/// What is known of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Neighbour {
    pub mac: MacAddress,
    /// Whether it said so itself, and may say otherwise.
    pub learned: bool,
    /// Whether it answered a question.
    pub asked_for: bool,
    /// When it last said something, by the router's clock.
    pub heard: Duration,
    /// How often it was asked since.
    pub probes: u32,
}

/// A neighbour, and when it came.
struct Entry {
    neighbour: Neighbour,
    number: u64,
}

/// The learned ones of an interface, the oldest first; those that went or changed sides stand there still.
#[derive(Default)]
struct Share {
    learned: usize,
    asked_for: VecDeque<(u64, IpAddr)>,
    others: VecDeque<(u64, IpAddr)>,
}

/// Whether one more may be learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// There is room.
    Free,
    /// When this one goes.
    Instead(Place),
    /// There is none.
    Full,
}

/// All neighbours.
#[derive(Default)]
pub(super) struct Known {
    entries: HashMap<Place, Entry>,
    shares: HashMap<u16, Share>,
    learned: usize,
    /// Of the next one that comes.
    number: u64,
}

impl Known {
    pub fn get(&self, place: &Place) -> Option<&Neighbour> {
        self.entries.get(place).map(|entry| &entry.neighbour)
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&Place, &Neighbour)> {
        self.entries.iter().map(|(place, entry)| (place, &entry.neighbour))
    }

    /// Notes that one was asked whether it is still there.
    pub fn probed(&mut self, place: &Place) {
        if let Some(entry) = self.entries.get_mut(place) {
            entry.neighbour.probes += 1;
        }
    }

    /// Notes one, and returns what was known of it.
    pub fn insert(&mut self, place: Place, neighbour: Neighbour) -> Option<Neighbour> {
        let before = self.entries.get(&place).map(|entry| (entry.neighbour, entry.number));
        let stays = before.filter(|(before, _)| {
            (before.learned, before.asked_for) == (neighbour.learned, neighbour.asked_for)
        });
        let number = stays.map_or(self.number, |(_, number)| number);
        if stays.is_none() {
            self.number += 1;
            before.iter().for_each(|(before, _)| self.count(place.0, before, false));
            self.count(place.0, &neighbour, true);
            if neighbour.learned {
                self.enqueue(place, neighbour.asked_for, number);
            }
        }
        self.entries.insert(place, Entry { neighbour, number });
        before.map(|(before, _)| before)
    }

    /// Forgets one, and returns what was known of it.
    pub fn remove(&mut self, place: &Place) -> Option<Neighbour> {
        let neighbour = self.entries.remove(place)?.neighbour;
        self.count(place.0, &neighbour, false);
        Some(neighbour)
    }

    /// Whether one more may be learned at an interface, which was asked for or not.
    pub fn room(&mut self, interface: u16, asked_for: bool) -> Room {
        let of = |known: &Self, number| known.shares.get(&number).map_or(0, |share| share.learned);
        let own = of(self, interface);
        if own < QUOTA && self.learned < MOST {
            return Room::Free;
        }
        let largest = self.shares.iter().max_by_key(|(_, share)| share.learned).map(|(number, _)| *number);
        let from = match largest {
            Some(largest) if own < QUOTA && of(self, largest) > own => largest,
            _ => interface,
        };
        let victim = self.oldest(from, false);
        let victim =
            victim.or_else(|| if asked_for || from != interface { self.oldest(from, true) } else { None });
        victim.map_or(Room::Full, |address| Room::Instead((from, address)))
    }

    /// The oldest that was learned at an interface.
    fn oldest(&mut self, interface: u16, asked_for: bool) -> Option<IpAddr> {
        let share = self.shares.get_mut(&interface)?;
        let queue = if asked_for { &mut share.asked_for } else { &mut share.others };
        while let Some((number, address)) = queue.pop_front() {
            if self.entries.get(&(interface, address)).is_some_and(|entry| entry.number == number) {
                return Some(address);
            }
        }
        None
    }

    fn enqueue(&mut self, (interface, address): Place, asked_for: bool, number: u64) {
        let entries = &self.entries;
        let share = self.shares.entry(interface).or_default();
        let queue = if asked_for { &mut share.asked_for } else { &mut share.others };
        queue.push_back((number, address));
        if queue.len() > 2 * QUOTA {
            let is_there = |number, address| {
                entries.get(&(interface, address)).is_some_and(|entry| entry.number == number)
            };
            queue.retain(|&(other, address)| other == number || is_there(other, address));
        }
    }

    fn count(&mut self, interface: u16, neighbour: &Neighbour, more: bool) {
        if !neighbour.learned {
            return;
        }
        let share = self.shares.entry(interface).or_default();
        if more {
            share.learned += 1;
            self.learned += 1;
        } else {
            share.learned = share.learned.saturating_sub(1);
            self.learned = self.learned.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn learned(asked_for: bool) -> Neighbour {
        let mac = MacAddress([2, 0, 0, 0, 0, 1]);
        Neighbour { mac, learned: true, asked_for, heard: Duration::ZERO, probes: 0 }
    }

    fn address(number: usize) -> IpAddr {
        Ipv4Addr::from_bits(number as u32).into()
    }

    /// Learns one if it may; says whether it did.
    fn learn(known: &mut Known, place: Place, asked_for: bool) -> bool {
        match known.room(place.0, asked_for) {
            Room::Full => return false,
            Room::Free => {}
            Room::Instead(victim) => {
                assert!(known.remove(&victim).is_some());
            }
        }
        known.insert(place, learned(asked_for)).is_none()
    }

    #[test]
    fn who_makes_neighbours_up_pushes_out_only_those() {
        let mut known = Known::default();
        assert!(learn(&mut known, (1, address(1)), true));
        assert!(learn(&mut known, (2, address(1)), false));
        for number in 2..3 * QUOTA {
            assert!(learn(&mut known, (1, address(number)), false), "{number}");
        }
        assert_eq!((known.learned, known.shares[&1].learned), (QUOTA + 1, QUOTA));
        assert!(known.get(&(1, address(1))).is_some(), "it answered a question");
        assert!(known.get(&(2, address(1))).is_some(), "it is of another interface");
        assert!(known.get(&(1, address(2))).is_none() && known.get(&(1, address(3 * QUOTA - 1))).is_some());
        // One that answers has room always, and one that nobody asked for has none beside those alone.
        for number in 0..QUOTA + 5 {
            assert!(learn(&mut known, (1, address(1 << 24 | number)), true));
        }
        assert!(!learn(&mut known, (1, address(9 << 24)), false));
        assert!(learn(&mut known, (1, address(9 << 24)), true));
        assert_eq!(known.shares[&1].learned, QUOTA);
    }

    #[test]
    fn an_interface_with_few_takes_from_the_one_with_the_most() {
        let mut known = Known::default();
        for number in 0..MOST {
            assert!(learn(&mut known, ((number / QUOTA) as u16, address(number)), true));
        }
        for number in 0..100 {
            assert!(learn(&mut known, (9, address(number)), false));
        }
        assert_eq!((known.learned, known.shares[&9].learned), (MOST, 100));
    }

    #[test]
    fn one_that_was_removed_or_answered_since_is_not_taken_for_an_old_one() {
        let mut known = Known::default();
        learn(&mut known, (1, address(1)), false);
        known.insert((1, address(1)), learned(true));
        learn(&mut known, (1, address(2)), false);
        known.remove(&(1, address(2)));
        learn(&mut known, (1, address(2)), false);
        assert_eq!(known.oldest(1, false), Some(address(2)));
        assert_eq!(known.oldest(1, false), None);
        assert_eq!(known.oldest(1, true), Some(address(1)));
        assert_eq!(known.learned, 2);
        let set = Neighbour { learned: false, ..learned(false) };
        known.insert((1, address(2)), set);
        assert_eq!(known.learned, 1);
        for _ in 0..10 * QUOTA {
            known.insert((1, address(3)), learned(false));
            known.remove(&(1, address(3)));
        }
        assert!(known.shares[&1].others.len() <= 2 * QUOTA);
    }
}
