//! What the TOML parser says of a file.

/// What the parser says of `part` of the file, as people say it.
#[must_use]
pub fn in_plain_words(message: &str, part: &str) -> String {
    let mut words = message.split_whitespace().collect::<Vec<_>>().join(" ");
    for (theirs, ours) in [
        ("expected usize", "expected a whole number without quotes"),
        ("expected u32", "expected a whole number without quotes"),
        ("expected u64", "expected a whole number without quotes"),
        ("expected f64", "expected a number without quotes"),
        ("expected a boolean", "expected true or false without quotes"),
        ("expected a string", "expected text in quotes"),
        ("expected a sequence", "expected a list, like [\"one\", \"two\"]"),
        ("expected a map", "expected a table of keys and values"),
        ("unknown field", "unknown key"),
        ("unknown variant", "unknown value"),
    ] {
        words = words.replace(theirs, ours);
    }
    if let Some(at) = words.find("expected struct ") {
        words.replace_range(at.., "expected a table of keys and values");
    }
    if let Some(key) = words.strip_prefix("missing field ") {
        words = format!("{key} is missing: write {} = …", key.trim_matches('`'));
    }
    if words == "duplicate key" {
        words = format!("`{}` is there twice: keep one", part.trim());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_parser_says_is_said_so_that_people_know_what_to_write() {
        for (theirs, part, ours) in [
            ("missing field `name`", "", "`name` is missing: write name = …"),
            ("duplicate key", " name ", "`name` is there twice: keep one"),
            ("expected a\n string", "", "expected text in quotes"),
            (
                "unknown field `x`, expected struct Entry",
                "",
                "unknown key `x`, expected a table of keys and values",
            ),
        ] {
            assert_eq!(in_plain_words(theirs, part), ours);
        }
    }
}
