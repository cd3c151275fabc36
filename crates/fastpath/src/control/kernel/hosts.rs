//! Addresses and neighbours of the kernel: what it tells enters, what is new of that leaves.

use std::collections::HashMap;
use std::hash::Hash;

/// Things that the kernel tells again and again, by name. Like the routes they are read as a whole from
/// time to time, and what was not seen again has gone.
pub(super) struct Known<K, V> {
    values: HashMap<K, (V, u32)>,
    reading: u32,
}

impl<K: Copy + Eq + Hash, V: Copy + PartialEq> Known<K, V> {
    pub fn new() -> Self {
        Self { values: HashMap::new(), reading: 0 }
    }

    /// All are about to be read.
    pub fn begin_reading(&mut self) {
        self.reading = self.reading.wrapping_add(1);
    }

    /// It is there; says whether that is new.
    pub fn set(&mut self, name: K, value: V) -> bool {
        self.values.insert(name, (value, self.reading)).is_none_or(|(before, _)| before != value)
    }

    /// It is not there; says whether that is new.
    pub fn unset(&mut self, name: K) -> bool {
        self.values.remove(&name).is_some()
    }

    /// All were read; gives what has gone.
    pub fn end_reading(&mut self, gone: impl FnMut(K)) {
        let reading = self.reading;
        self.values.extract_if(|_, (_, seen)| *seen != reading).map(|(name, _)| name).for_each(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_news_are_said() {
        let mut known = Known::new();
        assert!(known.set("a", 1) && !known.set("a", 1) && known.set("a", 2));
        assert!(known.set("b", 1) && known.unset("b") && !known.unset("b"));
        known.begin_reading();
        assert!(!known.set("a", 2) && known.set("c", 3));
        known.end_reading(|name| panic!("{name} is there"));
        known.begin_reading();
        let mut gone = Vec::new();
        assert!(!known.set("c", 3));
        known.end_reading(|name| gone.push(name));
        assert_eq!(gone, ["a"]);
    }
}
