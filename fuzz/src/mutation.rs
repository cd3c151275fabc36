//! Seeds changed as a script says: seeds and the bytes of a script enter; bytes leave that a parser gets further with
//! than with any bytes at all.

/// Words that parsers of text know, and numbers at the edges of what they take.
const WORDS: [&str; 24] = [
    "0",
    "1",
    "-1",
    "255",
    "65535",
    "65536",
    "4294967296",
    "18446744073709551615",
    "1e308",
    "NaN",
    "null",
    "true",
    "\"\"",
    "[]",
    "{}",
    "[[",
    "]]",
    "=",
    ",",
    "\n",
    "\"",
    "0.0.0.0/0",
    "::/0",
    "64",
];

/// One of `seeds`, changed as `script` says.
#[must_use]
pub fn mutated(seeds: &[Vec<u8>], script: &[u8]) -> Vec<u8> {
    let mut script = script.iter().copied();
    let mut next = || script.next();
    let Some(mut bytes) =
        next().and_then(|which| seeds.get(usize::from(which) % seeds.len().max(1)).cloned())
    else {
        return Vec::new();
    };
    while let Some(step) = next() {
        let mut number = || u16::from_le_bytes([next().unwrap_or(0), next().unwrap_or(0)]);
        let at = usize::from(number()) % (bytes.len() + 1);
        let until = bytes.len().min(at + usize::from(step / 8));
        match step % 8 {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..until)),
            2 => bytes.extend_from_within(at..until),
            3 => {
                let part = bytes[at..until].to_vec();
                bytes.splice(at..at, part);
            }
            4 | 5 => {
                let word = WORDS[usize::from(number()) % WORDS.len()];
                let end = if step % 8 == 4 { at } else { until };
                bytes.splice(at..end, word.bytes());
            }
            6 => bytes[at..until].fill(number() as u8),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << (number() % 8);
                }
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_without_steps_changes_nothing() {
        let seeds = [b"one".to_vec(), b"two".to_vec()];
        assert_eq!(
            (mutated(&seeds, &[1]), mutated(&seeds, &[]), mutated(&[], &[0])),
            (b"two".to_vec(), vec![], vec![])
        );
        assert_eq!(mutated(&seeds, &[0, 0, 1, 0]), b"o");
        assert_eq!(mutated(&seeds, &[0, 4, 1, 0, 3, 0]), b"o255ne");
    }
}
