//! IMIX genomes (RFC 6985): letters enter, frame sizes in exactly that order leave.
//!
//! A genome names the sizes of frames one by one, like `aaafg`; the sequence repeats as long as
//! frames are sent, so two testers that send the same genome send the same sizes in the same order.

use std::fmt;
use std::str::FromStr;

/// The letters of RFC 6985 with their frame sizes in bytes, FCS included; `z` is the
/// largest frame that the MTU allows.
const LETTERS: [(char, u16); 10] = [
    ('a', 64),
    ('b', 128),
    ('c', 256),
    ('d', 512),
    ('e', 1024),
    ('f', 1280),
    ('g', 1518),
    ('h', 2112),
    ('i', 9000),
    ('j', 16000),
];
/// The letter of the MTU.
const MTU: char = 'z';
/// The longest genome: more than fit a line of text, and few enough for every table.
pub const MAX_LENGTH: usize = 256;

/// A sequence of frame sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Genome(String);

/// The text is no genome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenomeError {
    /// Nothing to send.
    #[error("an IMIX genome has at least one letter, as in imix:aaafg")]
    Empty,
    /// A letter that RFC 6985 does not define.
    #[error(
        "'{0}' is no letter of an IMIX genome: they are a=64 b=128 c=256 d=512 e=1024 f=1280 g=1518 h=2112 i=9000 j=16000 and z for the MTU"
    )]
    Letter(char),
    /// Longer than [`MAX_LENGTH`].
    #[error("an IMIX genome of {0} letters is too long: give at most {MAX_LENGTH}")]
    Length(usize),
}

impl Genome {
    /// The frame sizes in order, FCS included; `mtu_size` is the largest frame that the MTU
    /// allows, which the letter `z` stands for.
    #[must_use]
    pub fn sizes(&self, mtu_size: u16) -> Vec<u16> {
        self.0.chars().filter_map(|letter| size_of(letter, mtu_size)).collect()
    }

    /// The first letter whose frames are larger than `most` bytes, with their size.
    #[must_use]
    pub fn too_large(&self, mtu_size: u16, most: usize) -> Option<(char, u16)> {
        let sized = self.0.chars().filter_map(|letter| Some((letter, size_of(letter, mtu_size)?)));
        sized.into_iter().find(|(_, size)| usize::from(*size) > most)
    }
}

fn size_of(letter: char, mtu_size: u16) -> Option<u16> {
    if letter == MTU {
        return Some(mtu_size);
    }
    LETTERS.iter().find(|(name, _)| *name == letter).map(|(_, size)| *size)
}

impl FromStr for Genome {
    type Err = GenomeError;

    fn from_str(text: &str) -> Result<Self, GenomeError> {
        match text.chars().find(|letter| size_of(*letter, 0).is_none()) {
            Some(letter) => Err(GenomeError::Letter(letter)),
            None if text.is_empty() => Err(GenomeError::Empty),
            None if text.len() > MAX_LENGTH => Err(GenomeError::Length(text.len())),
            None => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Display for Genome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn letters_are_sizes_in_their_order() {
        let genome: Genome = "aagbz".parse().unwrap();
        assert_eq!(genome.sizes(9018), [64, 64, 1518, 128, 9018]);
        let all: Genome = "abcdefghijz".parse().unwrap();
        assert_eq!(all.sizes(1518), [64, 128, 256, 512, 1024, 1280, 1518, 2112, 9000, 16000, 1518]);
    }

    #[test]
    fn what_is_no_genome_is_refused_with_the_letters_that_there_are() {
        assert_eq!("".parse::<Genome>(), Err(GenomeError::Empty));
        let refused = "aaky".parse::<Genome>().unwrap_err();
        assert_eq!(refused, GenomeError::Letter('k'));
        assert!(refused.to_string().contains("g=1518"));
        assert_eq!("A".parse::<Genome>(), Err(GenomeError::Letter('A')));
        assert_eq!("a".repeat(257).parse::<Genome>(), Err(GenomeError::Length(257)));
    }

    #[test]
    fn what_an_engine_cannot_send_is_named() {
        let genome: Genome = "aghi".parse().unwrap();
        assert_eq!(genome.too_large(1518, 3000), Some(('i', 9000)));
        assert_eq!(genome.too_large(1518, 2000), Some(('h', 2112)));
        assert_eq!(genome.too_large(1518, 9000), None);
        assert_eq!("az".parse::<Genome>().unwrap().too_large(9018, 3000), Some(('z', 9018)));
    }

    proptest! {
        #[test]
        fn text_round_trips_and_nothing_panics(text in "\\PC{0,20}", genome in "[a-jz]{1,40}") {
            let _ = text.parse::<Genome>();
            let read: Genome = genome.parse().unwrap();
            prop_assert_eq!(read.sizes(1518).len(), genome.len());
            prop_assert_eq!(read.to_string(), genome);
        }
    }
}
