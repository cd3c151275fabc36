//! The files that `ministat` reads: text enters, the numbers of one column leave.
//!
//! A line's words are divided by any number of delimiters. A word that begins with `#` begins a
//! comment, and lines without the column are passed over.

/// A word that is not a number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: '{word}' is not a number")]
pub struct Malformed {
    /// The line, from 1.
    pub line: usize,
    /// The word.
    pub word: String,
}

/// The numbers in `column` of `text`, counted from 1, where any of the characters of `delimiters`
/// divide words.
///
/// # Errors
/// [`Malformed`] for a word that is no finite number.
pub fn column(text: &str, column: usize, delimiters: &str) -> Result<Vec<f64>, Malformed> {
    let mut values = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let words = line.trim_end().split(|c| delimiters.contains(c)).filter(|word| !word.is_empty());
        let mut words = words.take_while(|word| !word.starts_with('#'));
        let Some(word) = column.checked_sub(1).and_then(|before| words.nth(before)) else { continue };
        match word.trim().parse::<f64>() {
            Ok(value) if value.is_finite() => values.push(value),
            _ => return Err(Malformed { line: at + 1, word: word.to_owned() }),
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLANKS: &str = " \t";

    #[test]
    fn columns_are_divided_by_any_number_of_delimiters() {
        let text = "1 2\t 3\n\n# 4\n 5  6 # 7\n8 #\n9e3 1e1 0\r\n";
        assert_eq!(column(text, 1, BLANKS), Ok(vec![1.0, 5.0, 8.0, 9000.0]));
        assert_eq!(column(text, 2, BLANKS), Ok(vec![2.0, 6.0, 10.0]));
        assert_eq!(column(text, 3, BLANKS), Ok(vec![3.0, 0.0]));
        assert_eq!(column("1;;2,3\n", 3, ";,"), Ok(vec![3.0]));
        assert_eq!(column(text, 0, BLANKS), Ok(vec![]));
    }

    #[test]
    fn what_is_no_number_is_named() {
        let malformed = |word: &str| Err(Malformed { line: 2, word: word.to_owned() });
        assert_eq!(column("1\n2x\n", 1, BLANKS), malformed("2x"));
        assert_eq!(column("1\nNaN\n", 1, BLANKS), malformed("NaN"));
        assert_eq!(column("1\ninf\n", 1, BLANKS), malformed("inf"));
    }
}
