//! Text for shells: any text enters; one word, or one line, that a shell turns back into it leaves.

/// `text` as one word of a POSIX shell, whatever is in it.
pub fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,%@".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// `text` as one line that `printf %b` prints as it was.
pub fn line(text: &str) -> String {
    text.replace('\\', r"\\").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// What would do harm or be changed if it were not quoted.
    const NASTY: [&str; 9] = [
        "",
        "two words",
        "it's",
        "$(touch /tmp/owned)`id`",
        "a;b|c&d>e<f*?[x]~!#",
        "\\n \\\\ \\0101 \\c \\",
        "\"double\" 'single'",
        "line one\nline 'two'\n\nline $four",
        "täb\tand -n",
    ];

    #[test]
    fn a_shell_takes_a_quoted_word_as_it_was() {
        for text in NASTY {
            let script = format!("printf %s {}", word(text));
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text, "{script}");
        }
        assert_eq!(word("100.65.1.1/24"), "100.65.1.1/24");
    }

    #[test]
    fn printf_turns_a_line_back_into_the_text() {
        for text in NASTY {
            let line = line(text);
            assert!(!line.contains('\n'));
            let output = Command::new("sh").args(["-c", "printf %b \"$1\"", "sh", &line]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text, "{line}");
        }
    }
}
