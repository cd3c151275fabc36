//! Which frames came in order: sequence numbers enter one by one, a verdict on each leaves. Pure.
//!
//! The twin, for engines in user space, of what `xdp/receive.bpf.c` does in the kernel: a window of
//! bits behind the highest number seen, as in RFC 6479.

/// Numbers that are remembered.
const WINDOW: u32 = 1024;
const WORDS: usize = WINDOW as usize / 64;

/// What a frame's number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It left after all that came before it.
    InOrder,
    /// A frame that left later came first; or it is older than what is remembered.
    Reordered,
    /// It was here already.
    Duplicate,
}

/// The numbers of one stream, direction and worker that were seen lately.
#[derive(Clone, Debug, Default)]
pub struct Window {
    bits: [u64; WORDS],
    /// One more than the highest number seen.
    next: u32,
}

impl Window {
    /// How many numbers `sequence` leaves out, if it is higher than all that were seen.
    #[inline]
    pub fn ahead(&self, sequence: u32) -> u32 {
        sequence.wrapping_sub(self.next)
    }

    /// Judges the frame with number `sequence`; numbers begin at 0 and wrap.
    #[inline]
    pub fn judge(&mut self, sequence: u32) -> Order {
        let ahead = sequence.wrapping_sub(self.next).cast_signed();
        let word = sequence as usize / 64 % WORDS;
        let bit = 1 << (sequence & 63);
        if ahead >= 0 {
            if ahead == 0 {
                self.bits[word] &= !bit;
            } else {
                self.forget_up_to(sequence);
            }
            self.bits[word] |= bit;
            self.next = sequence.wrapping_add(1);
            return Order::InOrder;
        }
        // The word that the window's end falls into is partly forgotten, so it is not judged.
        if ahead < -(WINDOW.cast_signed() - 64) {
            return Order::Reordered;
        }
        if self.bits[word] & bit != 0 {
            return Order::Duplicate;
        }
        self.bits[word] |= bit;
        Order::Reordered
    }

    /// Clears the bits of the numbers from the next one up to and with `sequence`, rounded to words.
    fn forget_up_to(&mut self, sequence: u32) {
        let (mut word, last) = (self.next / 64, sequence / 64);
        self.bits[word as usize % WORDS] &= (1 << (self.next & 63)) - 1;
        for _ in 0..WORDS {
            if word == last {
                break;
            }
            word = word.wrapping_add(1) % (u32::MAX / 64 + 1);
            self.bits[word as usize % WORDS] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_stream_in_order_stays_in_order_also_where_numbers_wrap() {
        let mut window = Window::default();
        for sequence in
            (0..3000).chain(u32::MAX / 2 - 5..u32::MAX / 2).chain(u32::MAX - 2000..=u32::MAX).chain(0..5000)
        {
            assert_eq!(window.judge(sequence), Order::InOrder, "{sequence}");
            assert_eq!(window.judge(sequence), Order::Duplicate, "{sequence}");
        }
    }

    #[test]
    fn what_is_older_than_the_window_is_reordered() {
        let mut window = Window::default();
        window.judge(0);
        window.judge(5000);
        assert_eq!(window.judge(0), Order::Reordered);
        assert_eq!(window.judge(4999), Order::Reordered);
        assert_eq!(window.judge(4999), Order::Duplicate);
    }

    proptest! {
        /// Within the window every verdict is that of someone who remembers all.
        #[test]
        fn verdicts_are_those_of_a_perfect_memory(
            start in prop_oneof![Just(0u32), any::<u32>().prop_map(|start| start & 0x7fff_ffff)],
            steps in prop::collection::vec(-500i64..600, 1..400),
        ) {
            let mut window = Window { next: start, ..Window::default() };
            let mut seen = HashSet::new();
            let mut highest = i64::from(start) - 1;
            for step in steps {
                let number = (highest + step).max(i64::from(start));
                let expected = if number > highest {
                    Order::InOrder
                } else if seen.contains(&number) {
                    Order::Duplicate
                } else {
                    Order::Reordered
                };
                seen.insert(number);
                highest = highest.max(number);
                prop_assert_eq!(window.judge(number as u32), expected);
            }
        }
    }
}
