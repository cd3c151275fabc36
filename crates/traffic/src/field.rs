//! Field programs: the number of a frame enters, the value of one header field leaves.
//!
//! A field steps through its values as its stream's frames go by, and its *stride* says how many
//! frames each value lasts. TRex's variables are the same in closed form: one that advances
//! with every packet has stride 1; one that advances when another wraps (`next_var`) has that
//! one's stride times its count.

/// One header field of a stream: fixed or varying.
///
/// Addresses, ports and all else are plain numbers here, big enough for an IPv6 address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    values: Values,
    /// Frames that each value lasts.
    stride: u64,
}

/// The values that a field steps through.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Values {
    Fixed(u128),
    /// `first`, `first + step`, … (or minus), `count` of them, `last` the last.
    Range {
        first: u128,
        last: u128,
        step: u128,
        count: u64,
    },
    /// Drawn from `first..=last`; the draws repeat after `count`, or never (`u64::MAX`).
    Random {
        first: u128,
        last: u128,
        seed: u64,
        count: u64,
    },
    List(Vec<u128>),
}

/// Why a field program means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// A step of zero.
    #[error("a step of 0 never advances: write 1 or more")]
    NoStep,
    /// The ends of a range are in the wrong order.
    #[error("the range is empty: {0}")]
    EmptyRange(&'static str),
    /// A list without values.
    #[error("the list is empty: write at least one value")]
    EmptyList,
    /// A random sequence that repeats after no values.
    #[error("a random sequence cannot repeat after 0 values: write 1 or more, or leave it out")]
    NoRepeat,
    /// Linked to a field that never wraps.
    #[error("it cannot advance after a field that never wraps: give that random field `repeat-after`")]
    NeverWraps,
    /// Linked to a field with another count of values.
    #[error("it has {own} values and cannot advance with a field of {other}: give both the same count")]
    OtherCount {
        /// The values of this field.
        own: u64,
        /// The values of the field it should go with.
        other: u64,
    },
}

impl Field {
    /// Always `value`.
    #[must_use]
    pub const fn fixed(value: u128) -> Self {
        Self { values: Values::Fixed(value), stride: 1 }
    }

    /// From `first` up by `step`, at most to `last`; then again.
    ///
    /// # Errors
    /// When `step` is zero or `last` is below `first`.
    pub fn increment(first: u128, last: u128, step: u128) -> Result<Self, FieldError> {
        let span = last
            .checked_sub(first)
            .ok_or(FieldError::EmptyRange("its second end is below its first; did you mean decrement?"))?;
        Self::range(first, last, span, step)
    }

    /// From `first` down by `step`, at most to `last`; then again.
    ///
    /// # Errors
    /// When `step` is zero or `last` is above `first`.
    pub fn decrement(first: u128, last: u128, step: u128) -> Result<Self, FieldError> {
        let span = first
            .checked_sub(last)
            .ok_or(FieldError::EmptyRange("its second end is above its first; did you mean increment?"))?;
        Self::range(first, last, span, step)
    }

    fn range(first: u128, last: u128, span: u128, step: u128) -> Result<Self, FieldError> {
        let steps = span.checked_div(step).ok_or(FieldError::NoStep)?;
        let count = u64::try_from(steps).map_or(u64::MAX, |steps| steps.saturating_add(1));
        let last = if first <= last { first + steps * step } else { first - steps * step };
        Ok(Self { values: Values::Range { first, last, step, count }, stride: 1 })
    }

    /// Drawn evenly from `first..=last`. The same seed gives the same draws; they repeat after
    /// `repeat_after`, or never.
    ///
    /// # Errors
    /// When `last` is below `first`, or `repeat_after` is zero.
    pub fn random(first: u128, last: u128, seed: u64, repeat_after: Option<u64>) -> Result<Self, FieldError> {
        if last < first {
            return Err(FieldError::EmptyRange("its second end is below its first"));
        }
        let count = repeat_after.unwrap_or(u64::MAX);
        if count == 0 {
            return Err(FieldError::NoRepeat);
        }
        Ok(Self { values: Values::Random { first, last, seed, count }, stride: 1 })
    }

    /// Each value of `values` in turn.
    ///
    /// # Errors
    /// When there are none.
    pub fn list(values: Vec<u128>) -> Result<Self, FieldError> {
        if values.is_empty() {
            return Err(FieldError::EmptyList);
        }
        Ok(Self { values: Values::List(values), stride: 1 })
    }

    /// The same values, advancing only when `other` wraps.
    ///
    /// # Errors
    /// When `other` never does.
    pub fn after(self, other: &Self) -> Result<Self, FieldError> {
        if other.is_endless() {
            return Err(FieldError::NeverWraps);
        }
        Ok(Self { stride: other.stride.saturating_mul(other.count()), ..self })
    }

    /// The same values, advancing when `other` does.
    ///
    /// # Errors
    /// When `other` has more or fewer values.
    pub fn with(self, other: &Self) -> Result<Self, FieldError> {
        let (own, theirs) = (self.count(), other.count());
        if own != theirs {
            return Err(FieldError::OtherCount { own, other: theirs });
        }
        Ok(Self { stride: other.stride, ..self })
    }

    /// How many values it steps through before they repeat; `u64::MAX` for never.
    #[must_use]
    pub fn count(&self) -> u64 {
        match &self.values {
            Values::Fixed(_) => 1,
            Values::Range { count, .. } | Values::Random { count, .. } => *count,
            Values::List(values) => values.len() as u64,
        }
    }

    /// Whether its values never repeat as a sequence.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        matches!(self.values, Values::Random { count: u64::MAX, .. })
    }

    /// Frames after which it repeats; `u64::MAX` for never, or for more.
    #[must_use]
    pub fn period(&self) -> u64 {
        match self.count() {
            1 => 1,
            count => count.saturating_mul(self.stride),
        }
    }

    /// How many different values it can take, at most.
    #[must_use]
    pub fn variety(&self) -> u64 {
        match self.values {
            Values::Random { first, last, count, .. } => {
                u64::try_from(last - first).map_or(u64::MAX, |span| span.saturating_add(1)).min(count)
            }
            _ => self.count(),
        }
    }

    /// Its smallest value.
    #[must_use]
    pub fn min(&self) -> u128 {
        match &self.values {
            Values::Fixed(value) => *value,
            Values::Range { first, last, .. } | Values::Random { first, last, .. } => *first.min(last),
            Values::List(values) => values.iter().copied().min().unwrap_or(0),
        }
    }

    /// Its largest value.
    #[must_use]
    pub fn max(&self) -> u128 {
        match &self.values {
            Values::Fixed(value) => *value,
            Values::Range { first, last, .. } | Values::Random { first, last, .. } => *first.max(last),
            Values::List(values) => values.iter().copied().max().unwrap_or(0),
        }
    }

    /// Its mean value.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match &self.values {
            Values::List(values) => {
                values.iter().map(|value| *value as f64).sum::<f64>() / values.len() as f64
            }
            _ => f64::midpoint(self.min() as f64, self.max() as f64),
        }
    }

    /// Its value in the stream's frame number `frame`, counted from zero.
    #[must_use]
    pub fn at(&self, frame: u64) -> u128 {
        let step_of = |count: u64| frame / self.stride % count;
        match &self.values {
            Values::Fixed(value) => *value,
            Values::Range { first, last, step, count } => {
                let distance = u128::from(step_of(*count)) * step;
                if first <= last { first + distance } else { first - distance }
            }
            Values::Random { first, last, seed, count } => first + draw(*seed, step_of(*count), last - first),
            Values::List(values) => values.get(step_of(values.len() as u64) as usize).copied().unwrap_or(0),
        }
    }
}

/// Draw number `index` from `0..=span`, evenly but for a bias below span/2^64.
fn draw(seed: u64, index: u64, span: u128) -> u128 {
    // Mixing the seed first keeps the sequences of neighbouring seeds apart.
    let high = mix(mix(seed).wrapping_add(index));
    match u64::try_from(span) {
        Ok(u64::MAX) => u128::from(high),
        Ok(span) => u128::from(high % (span + 1)),
        Err(_) => {
            let wide = (u128::from(high) << 64) | u128::from(mix(high));
            // A span of all 128 bits has one more value than fits.
            span.checked_add(1).map_or(wide, |values| wide % values)
        }
    }
}

/// SplitMix64's output function (Steele, Lea and Flood, 2014): any state to an even 64 bits.
fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use proptest::prelude::*;

    fn first(field: &Field, frames: u64) -> Vec<u128> {
        (0..frames).map(|frame| field.at(frame)).collect()
    }

    #[test]
    fn fields_step_and_wrap() {
        assert_eq!(first(&Field::fixed(7), 3), [7, 7, 7]);
        assert_eq!(first(&Field::increment(4, 9, 2).unwrap(), 5), [4, 6, 8, 4, 6]);
        assert_eq!(first(&Field::decrement(9, 4, 2).unwrap(), 5), [9, 7, 5, 9, 7]);
        assert_eq!(first(&Field::list(vec![3, 1, 2]).unwrap(), 4), [3, 1, 2, 3]);
        assert_eq!(
            first(&Field::increment(u128::MAX - 1, u128::MAX, 1).unwrap(), 3),
            [u128::MAX - 1, u128::MAX, u128::MAX - 1]
        );
    }

    #[test]
    fn linked_fields_advance_together_or_on_wrap() {
        let port = Field::increment(1, 3, 1).unwrap();
        let source = Field::increment(10, 11, 1).unwrap().after(&port).unwrap();
        let destination = Field::list(vec![77, 55]).unwrap().with(&source).unwrap();
        let frames: Vec<_> = (0..7).map(|k| (port.at(k), source.at(k), destination.at(k))).collect();
        assert_eq!(
            frames,
            [(1, 10, 77), (2, 10, 77), (3, 10, 77), (1, 11, 55), (2, 11, 55), (3, 11, 55), (1, 10, 77)]
        );
        assert_eq!((port.period(), source.period(), destination.period()), (3, 6, 6));
    }

    #[test]
    fn what_means_nothing_is_refused() {
        assert_eq!(Field::increment(1, 2, 0), Err(FieldError::NoStep));
        assert!(matches!(Field::increment(2, 1, 1), Err(FieldError::EmptyRange(_))));
        assert!(matches!(Field::decrement(1, 2, 1), Err(FieldError::EmptyRange(_))));
        assert!(matches!(Field::random(2, 1, 0, None), Err(FieldError::EmptyRange(_))));
        assert_eq!(Field::random(1, 2, 0, Some(0)), Err(FieldError::NoRepeat));
        assert_eq!(Field::list(vec![]), Err(FieldError::EmptyList));
        let endless = Field::random(1, 2, 0, None).unwrap();
        assert_eq!(Field::fixed(1).after(&endless), Err(FieldError::NeverWraps));
        let pair = Field::list(vec![1, 2]).unwrap();
        assert_eq!(Field::fixed(1).with(&pair), Err(FieldError::OtherCount { own: 1, other: 2 }));
    }

    #[test]
    fn random_fields_reach_their_whole_range_and_obey_their_seed() {
        let field = Field::random(4, 254, 1, None).unwrap();
        let seen: HashSet<_> = first(&field, 10_000).into_iter().collect();
        assert_eq!(seen.len(), 251);
        assert_ne!(first(&field, 20), first(&Field::random(4, 254, 2, None).unwrap(), 20));
        let repeating = Field::random(0, u128::MAX, 1, Some(3)).unwrap();
        assert_eq!(first(&repeating, 3), first(&repeating, 6)[3..]);
        assert_eq!((field.period(), field.variety(), repeating.period()), (u64::MAX, 251, 3));
    }

    prop_compose! {
        fn any_field()(a: u128, b: u128, step in 1..=u128::MAX, seed: u64, kind in 0..5, count in 1u64.., list in prop::collection::vec(any::<u128>(), 1..9)) -> Field {
            let (low, high) = (a.min(b), a.max(b));
            match kind {
                0 => Field::fixed(a),
                1 => Field::increment(low, high, step).unwrap(),
                2 => Field::decrement(high, low, step).unwrap(),
                3 => Field::random(low, high, seed, Some(count)).unwrap(),
                _ => Field::list(list).unwrap(),
            }
        }
    }

    proptest! {
        #[test]
        fn values_stay_between_min_and_max_and_repeat(field in any_field(), frame: u64) {
            let value = field.at(frame);
            prop_assert!((field.min()..=field.max()).contains(&value));
            if let Some(later) = frame.checked_add(field.period()) {
                prop_assert_eq!(field.at(later), value);
            }
        }
    }
}
