//! Programs of other people, as devices and as generators: a command enters; what the program printed leaves.

pub mod bounded;
mod process;

use std::env;
use std::path::PathBuf;

pub use process::{INPUT, Process, Said};

/// Whether `program` is installed: in `PATH`, or where the tools of administrators are.
#[must_use]
pub fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = env::split_paths(&path).collect();
    places.extend(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from));
    places.iter().any(|place| place.join(program).is_file())
}

/// The number that stands behind `label` in `text`.
#[must_use]
pub fn number_after(text: &str, label: &str) -> Option<u64> {
    let (_, rest) = text.split_once(label)?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The number that stands before `label` in `text`.
#[must_use]
pub fn number_before(text: &str, label: &str) -> Option<u64> {
    let (before, _) = text.split_once(label)?;
    before.split_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_what_stands_beside_them() {
        assert_eq!(number_after("a: 1 b:  22 x", "b:"), Some(22));
        assert_eq!(number_before("1 a\n\r  22 b", " b"), Some(22));
        assert_eq!((number_after("a: x", "a:"), number_before("x", "a")), (None, None));
    }
}
