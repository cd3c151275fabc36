//! One field of a classifier: ranges of values enter, one for each rule; for a value, what was noted of the set of the
//! rules whose range holds it leaves.

use std::fmt::Debug;
use std::hint::select_unpredictable;
use std::mem;
use std::ops::{Add, RangeInclusive};

/// Bits of a word.
pub(super) const WORD: usize = u64::BITS as usize;

/// A value of a field.
pub trait Value: Copy + Ord + Debug + Add<Output = Self> {
    /// The least.
    const FIRST: Self;

    /// The one behind it, if there is one.
    fn next(self) -> Option<Self>;

    /// How far it is behind another one; the least value where it is not.
    fn minus(self, other: Self) -> Self;

    /// Its bits but for the `shift` lowest ones; `usize::MAX` where an index has no room for them.
    fn slot(self, shift: u32) -> usize;

    /// The least value with this [`Self::slot`].
    fn of_slot(slot: usize, shift: u32) -> Self;
}

impl Value for u32 {
    const FIRST: Self = 0;

    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self.saturating_sub(other)
    }

    #[inline(always)]
    fn slot(self, shift: u32) -> usize {
        (self >> shift) as usize
    }

    fn of_slot(slot: usize, shift: u32) -> Self {
        (slot as Self) << shift
    }
}

impl Value for u128 {
    const FIRST: Self = 0;

    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self.saturating_sub(other)
    }

    #[inline(always)]
    fn slot(self, shift: u32) -> usize {
        usize::try_from(self >> shift).unwrap_or(usize::MAX)
    }

    fn of_slot(slot: usize, shift: u32) -> Self {
        (slot as Self) << shift
    }
}

/// Whether a range holds all values.
pub(super) fn is_whole<T: Value>(range: &RangeInclusive<T>) -> bool {
    *range.start() == T::FIRST && range.end().next().is_none()
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

/// A set of rules.
#[derive(Debug)]
pub(super) struct Set {
    words: Vec<u64>,
    shape: Shape,
}

impl Set {
    /// That without any rule.
    pub fn empty(shape: Shape) -> Self {
        Self { words: vec![0; shape.length()], shape }
    }

    /// All its words, as [`Shape`] says.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The first 64 rules.
    pub fn first_word(&self) -> u64 {
        self.words.get(self.shape.groups).copied().unwrap_or_default()
    }

    /// The number of the first rule.
    pub fn first(&self) -> Option<usize> {
        let (groups, words) = self.words.split_at_checked(self.shape.groups)?;
        let lowest = |words: &[u64]| {
            let number = words.iter().position(|word| *word != 0)?;
            Some((number, words.get(number)?.trailing_zeros() as usize))
        };
        let (group, bit) = lowest(groups)?;
        let word = group * WORD + bit;
        Some(word * WORD + words.get(word)?.trailing_zeros() as usize)
    }

    /// Has a rule that it had not, or has it no longer.
    pub fn toggle(&mut self, rule: usize) {
        let word = rule / WORD;
        let Some(bits) = self.words.get_mut(self.shape.groups + word) else { return };
        *bits ^= 1 << (rule % WORD);
        let is_empty = *bits == 0;
        let Some(group) = self.words.get_mut(word / WORD) else { return };
        let bit = 1 << (word % WORD);
        *group = if is_empty { *group & !bit } else { *group | bit };
    }
}

/// Finds in which interval a value is, and so what was noted of the rules that hold it: a table of equal parts of the values
/// between the first border and the last one says where a binary search begins.
#[derive(Debug)]
pub(super) struct Intervals<T, N> {
    table: Table<T>,
    /// Where each interval begins, in their order; the first begins at the first value.
    starts: Box<[T]>,
    /// What was noted of each.
    notes: Box<[N]>,
}

impl<T: Value, N: Copy + Default + PartialEq> Intervals<T, N> {
    /// Those of rules which have these ranges, by their numbers; `shape` has room for all of them. `note` says what is
    /// noted of a set; intervals of which the same is noted are one.
    pub fn new(
        shape: Shape,
        ranges: impl Iterator<Item = (usize, RangeInclusive<T>)>,
        mut note: impl FnMut(&Set) -> N,
    ) -> Self {
        // At each, a rule begins or ends.
        let mut cuts: Vec<(T, usize)> = Vec::new();
        for (rule, range) in ranges {
            cuts.push((*range.start(), rule));
            cuts.extend(range.end().next().map(|after| (after, rule)));
        }
        cuts.sort_unstable();
        let mut set = Set::empty(shape);
        let (mut starts, mut notes) = (Vec::new(), Vec::new());
        let mut end = |start: T, set: &Set| {
            let noted = note(set);
            if notes.last() != Some(&noted) {
                starts.push(start);
                notes.push(noted);
            }
        };
        let mut begun = T::FIRST;
        for (value, rule) in cuts {
            if value != begun {
                end(mem::replace(&mut begun, value), &set);
            }
            set.toggle(rule);
        }
        end(begun, &set);
        Self { table: Table::new(&starts), starts: starts.into(), notes: notes.into() }
    }

    /// What was noted of the rules that hold values; of several values at once, as a search waits for all that it
    /// reads.
    #[inline(always)]
    pub fn find<const COUNT: usize>(&self, values: [T; COUNT]) -> [N; COUNT] {
        let mut at = values.map(|value| self.table.begin(value));
        let mut count = self.table.window;
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
        at.map(|at| self.notes.get(at).copied().unwrap_or_default())
    }

    /// Bytes that they take.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.table.begins) + size_of_val(&*self.starts) + size_of_val(&*self.notes)
    }
}

/// Where the search of a value begins among the intervals.
#[derive(Debug)]
struct Table<T> {
    /// The last value of the first interval: no border is at or before it.
    low: T,
    /// How far the last border is behind it.
    span: T,
    /// A part has so many values as a number of so many bits.
    shift: u32,
    /// Of each part, the interval that its search begins at.
    begins: Box<[u32]>,
    /// Among how many intervals from there on every value is found.
    window: usize,
}

impl<T: Value> Table<T> {
    /// That of intervals which start there; it has at most twice as many parts.
    fn new(starts: &[T]) -> Self {
        let low = starts.get(1).map_or(T::FIRST, |border| border.minus(T::of_slot(1, 0)));
        let span = starts.last().map_or(T::FIRST, |border| border.minus(low));
        let most = starts.len().next_power_of_two();
        let shift = (0..u32::MAX).find(|&shift| span.slot(shift) < most).unwrap_or_default();
        let intervals = |part: usize| {
            let first = low + T::of_slot(part, shift);
            let begin = starts.partition_point(|start| *start <= first);
            let end = starts.partition_point(|start| start.minus(low).slot(shift) <= part);
            (begin.saturating_sub(1), end)
        };
        let parts = span.slot(shift) + 1;
        let window = (0..parts).map(intervals).map(|(begin, end)| end - begin).max().unwrap_or(1);
        // Every window ends with the last interval at most.
        let begin = |(begin, _): (usize, usize)| begin.min(starts.len().saturating_sub(window)) as u32;
        Self { low, span, shift, begins: (0..parts).map(intervals).map(begin).collect(), window }
    }

    #[inline(always)]
    fn begin(&self, value: T) -> usize {
        let part = value.minus(self.low).min(self.span).slot(self.shift);
        self.begins.get(part).map_or(0, |begin| *begin as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules of a set.
    fn rules_of(set: &Set) -> Vec<usize> {
        let (groups, words) = set.words().split_at(set.shape.groups);
        for (number, word) in words.iter().enumerate() {
            assert_eq!(groups[number / WORD] >> (number % WORD) & 1 == 1, *word != 0);
        }
        (0..words.len() * WORD).filter(|rule| words[rule / WORD] >> (rule % WORD) & 1 == 1).collect()
    }

    #[test]
    fn a_value_has_the_rules_whose_range_holds_it() {
        let ranges = [(0, 0..=u32::MAX), (63, 5..=9), (64, 9..=9), (4999, 10..=u32::MAX), (128, 0..=0)];
        let mut sets = Vec::new();
        let field = Intervals::new(Shape::of(5000), ranges.into_iter(), |set| {
            assert_eq!(set.first(), rules_of(set).first().copied());
            sets.push(rules_of(set));
            sets.len() - 1
        });
        for (value, rules) in [
            (0, vec![0, 128]),
            (1, vec![0]),
            (5, vec![0, 63]),
            (9, vec![0, 63, 64]),
            (10, vec![0, 4999]),
            (u32::MAX, vec![0, 4999]),
        ] {
            assert_eq!(sets[field.find([value])[0]], rules, "{value}");
        }
    }

    #[test]
    fn a_set_has_a_first_rule_wherever_its_word_is() {
        let mut set = Set::empty(Shape::of(10_000));
        assert_eq!(set.first(), None);
        for rule in [9999, 4096, 4095, 64, 63, 0] {
            set.toggle(rule);
            assert_eq!(set.first(), Some(rule));
        }
        assert_eq!(set.first_word(), 1 << 63 | 1);
        set.toggle(0);
        assert_eq!(set.first(), Some(63));
    }

    #[test]
    fn intervals_of_which_the_same_is_noted_are_one() {
        let of = |ranges: &[RangeInclusive<u32>]| {
            let note = |set: &Set| set.first_word();
            Intervals::new(Shape::of(3), ranges.iter().cloned().enumerate(), note).starts
        };
        assert_eq!(*of(&[0..=u32::MAX, 0..=u32::MAX]), [0]);
        assert_eq!(*of(&[7..=7, 9..=9]), [0, 7, 8, 9, 10]);
        // One rule ends where another begins.
        assert_eq!(*of(&[0..=6, 7..=u32::MAX]), [0, 7]);
        assert_eq!(*of(&[]), [0]);
        assert!(is_whole(&(0..=u32::MAX)) && !is_whole(&(0..=u32::MAX - 1)) && !is_whole(&(1..=u32::MAX)));
    }

    /// Borders that are near each other, far from each other, and at both ends of the values.
    #[test]
    fn a_table_narrows_the_search_to_a_window_with_the_interval() {
        let check = |starts: &[u128], window: usize| {
            let table = Table::new(starts);
            assert_eq!(table.window, window, "{starts:?}");
            assert!(table.begins.len() <= starts.len().next_power_of_two());
            let near = starts.iter().flat_map(|&start| [start, start.minus(1), start.saturating_add(1)]);
            for value in near.chain([u128::MAX, u128::MAX / 2]) {
                let interval = starts.partition_point(|start| *start <= value) - 1;
                let begin = table.begin(value);
                assert!((begin..begin + window).contains(&interval), "{value} {starts:?}");
                assert!(begin + window <= starts.len());
            }
        };
        check(&[0], 1);
        check(&[0, 1], 1);
        check(&[0, u128::MAX], 1);
        check(&(0..1000).collect::<Vec<_>>(), 1);
        check(&[&[0][..], &(1 << 90..(1 << 90) + 500).collect::<Vec<_>>()].concat(), 1);
        // All but one are near each other.
        check(&[0, 1, 2, 3, 4, 1 << 127], 5);
    }
}
