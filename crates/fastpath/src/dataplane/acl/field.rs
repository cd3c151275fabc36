//! One field of a classifier: ranges of values enter, one for each rule; for a value, the set of the rules whose
//! range holds it leaves.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hint::select_unpredictable;
use std::ops::RangeInclusive;

/// Bits of a word.
const WORD: usize = u64::BITS as usize;

/// A value of a field.
pub trait Value: Copy + Ord + Debug {
    /// The least.
    const FIRST: Self;

    /// The one behind it, if there is one.
    fn next(self) -> Option<Self>;
}

impl Value for u32 {
    const FIRST: Self = 0;

    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

impl Value for u128 {
    const FIRST: Self = 0;

    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

/// How long sets are: a bit for each rule, in words, and before them a bit for each word that is not zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Words of bits of words.
    pub groups: usize,
    /// Words of bits of rules.
    words: usize,
}

impl Shape {
    /// That of so many rules.
    pub fn of(rules: usize) -> Self {
        let words = rules.div_ceil(WORD);
        Self { groups: words.div_ceil(WORD), words }
    }

    /// Words of a set.
    #[inline(always)]
    pub fn length(self) -> usize {
        self.groups + self.words
    }
}

/// Finds the set of a value by binary search among the intervals in which it is the same.
#[derive(Debug)]
pub(super) struct Field<T> {
    /// Where each interval begins, in their order; the first begins at the first value.
    starts: Box<[T]>,
    /// Where the set of each interval begins.
    places: Box<[u32]>,
    /// All sets, each once.
    sets: Box<[u64]>,
    shape: Shape,
}

impl<T: Value> Field<T> {
    /// That of rules which have these ranges, by their numbers; `shape` has room for all of them.
    pub fn new(shape: Shape, ranges: impl Iterator<Item = (usize, RangeInclusive<T>)>) -> Self {
        // At each, a rule begins or ends.
        let mut cuts: Vec<(T, usize)> = Vec::new();
        for (rule, range) in ranges {
            cuts.push((*range.start(), rule));
            cuts.extend(range.end().next().map(|after| (after, rule)));
        }
        cuts.sort_unstable();
        let mut building = Building::new(shape);
        building.begin(T::FIRST);
        for (value, rule) in cuts {
            building.begin(value);
            building.toggle(rule);
        }
        building.finish()
    }

    /// Where the sets of values begin; of several values at once, as a search waits for all that it reads.
    #[inline(always)]
    pub fn places<const COUNT: usize>(&self, values: [T; COUNT]) -> [u32; COUNT] {
        let mut at = [0; COUNT];
        let mut count = self.starts.len();
        while count > 1 {
            let half = count / 2;
            for (at, value) in at.iter_mut().zip(&values) {
                let further = *at + half;
                if let Some(start) = self.starts.get(further) {
                    *at = select_unpredictable(start <= value, further, *at);
                }
            }
            count -= half;
        }
        at.map(|at| self.places.get(at).copied().unwrap_or_default())
    }

    /// The set that begins there: [`Shape::length`] words.
    #[inline(always)]
    pub fn set(&self, place: u32) -> &[u64] {
        let place = place as usize;
        self.sets.get(place..place + self.shape.length()).unwrap_or_default()
    }

    /// Bytes that it takes.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.starts) + size_of_val(&*self.places) + size_of_val(&*self.sets)
    }
}

/// A field that is being built, from the first value on.
struct Building<T> {
    starts: Vec<T>,
    places: Vec<u32>,
    sets: Vec<u64>,
    /// Where each set is.
    known: HashMap<Vec<u64>, u32>,
    /// The set of the interval that began last.
    set: Vec<u64>,
    shape: Shape,
}

impl<T: Value> Building<T> {
    fn new(shape: Shape) -> Self {
        let (starts, places, sets) = (Vec::new(), Vec::new(), Vec::new());
        Self { starts, places, sets, known: HashMap::new(), set: vec![0; shape.length()], shape }
    }

    /// An interval begins at this value, if none does yet; the one before has its set by now.
    fn begin(&mut self, value: T) {
        if self.starts.last() != Some(&value) {
            self.place();
            self.starts.push(value);
        }
    }

    /// The interval that began last is in the range of this rule from now on, or no longer.
    fn toggle(&mut self, rule: usize) {
        let word = rule / WORD;
        let Some(bits) = self.set.get_mut(self.shape.groups + word) else { return };
        *bits ^= 1 << (rule % WORD);
        let is_empty = *bits == 0;
        let Some(group) = self.set.get_mut(word / WORD) else { return };
        let bit = 1 << (word % WORD);
        *group = if is_empty { *group & !bit } else { *group | bit };
    }

    /// Notes the set of the interval that began last; one with the set of the one before is no interval of its own.
    fn place(&mut self) {
        if self.starts.len() == self.places.len() {
            return;
        }
        let place = match self.known.get(&self.set) {
            Some(place) => *place,
            None => {
                let place = self.sets.len() as u32;
                self.sets.extend(&self.set);
                self.known.insert(self.set.clone(), place);
                place
            }
        };
        if self.places.last() == Some(&place) {
            self.starts.pop();
        } else {
            self.places.push(place);
        }
    }

    fn finish(mut self) -> Field<T> {
        self.place();
        Field {
            starts: self.starts.into(),
            places: self.places.into(),
            sets: self.sets.into(),
            shape: self.shape,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules whose range holds a value.
    fn rules_of(field: &Field<u32>, shape: Shape, value: u32) -> Vec<usize> {
        let [place] = field.places([value]);
        let set = field.set(place);
        let (groups, words) = set.split_at(shape.groups);
        for (number, word) in words.iter().enumerate() {
            assert_eq!(groups[number / WORD] >> (number % WORD) & 1 == 1, *word != 0);
        }
        (0..words.len() * WORD).filter(|rule| words[rule / WORD] >> (rule % WORD) & 1 == 1).collect()
    }

    #[test]
    fn a_value_has_the_rules_whose_range_holds_it() {
        let shape = Shape::of(5000);
        let ranges = [(0, 0..=u32::MAX), (63, 5..=9), (64, 9..=9), (4999, 10..=u32::MAX), (128, 0..=0)];
        let field = Field::new(shape, ranges.into_iter());
        for (value, rules) in [
            (0, vec![0, 128]),
            (1, vec![0]),
            (5, vec![0, 63]),
            (9, vec![0, 63, 64]),
            (10, vec![0, 4999]),
            (u32::MAX, vec![0, 4999]),
        ] {
            assert_eq!(rules_of(&field, shape, value), rules, "{value}");
        }
    }

    #[test]
    fn what_no_rule_tells_apart_is_one_interval() {
        let shape = Shape::of(3);
        let any = Field::new(shape, (0..3).map(|rule| (rule, 0..=u32::MAX)));
        assert_eq!((any.starts.len(), any.sets.len()), (1, shape.length()));
        // One rule ends where another of the same kind begins, and sets that occur again are kept once.
        let hosts = Field::new(shape, [(0, 7..=7), (1, 9u32..=9)].into_iter());
        assert_eq!((hosts.starts.len(), hosts.sets.len()), (5, 3 * shape.length()));
        let none = Field::new(Shape::of(0), std::iter::empty::<(usize, RangeInclusive<u32>)>());
        assert_eq!(none.places([0, u32::MAX]), [0, 0]);
    }
}
