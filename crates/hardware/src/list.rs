//! Lists of cores as the kernel writes them: `0-3,8` enters, numbers leave.

/// More cores than these no kernel has (`CONFIG_NR_CPUS` is 8192 at most).
const MOST: usize = 8192;

/// The numbers in `text`, in their order. What is no number, or beyond what a kernel can have, is left out.
#[must_use]
pub fn parse(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse().ok().filter(|number| *number < MOST);
        number(first).zip(number(last)).map(|(first, last)| first..=last)
    };
    text.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_read() {
        assert_eq!(parse("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(parse("5"), [5]);
        for nothing in ["", "\n", "(null)", "3-1", "-1", "0-99999999", "a-b"] {
            assert_eq!(parse(nothing), [0; 0], "{nothing:?}");
        }
    }
}
