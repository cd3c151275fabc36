//! Texts of devices, peers and records: what is printed of them must not steer a terminal, or forge a line of a log.

use std::borrow::Cow;

/// `text` without what steers a terminal: control characters but the end of a line and the tab stand as `\u{1b}` does,
/// and a carriage return before the end of a line is left out.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\r\n", "\n");
    let mut printable = String::with_capacity(text.len());
    for character in text.chars() {
        match steers(character) {
            true => printable.extend(character.escape_debug()),
            false => printable.push(character),
        }
    }
    Cow::Owned(printable)
}

fn steers(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\t')
}

/// Whether a string of this JSON may hold what [`printable`] leaves out. Sure where it says no.
#[must_use]
pub fn json_may_steer(json: &[u8]) -> bool {
    // JSON has control characters below a blank as escapes only: \b, \f, \r, or \u and four digits.
    let is_one =
        |two: &[u8]| matches!(two, [0x7f, _] | [_, 0x7f] | [b'\\', b'b' | b'f' | b'r'] | [0xc2, 0x80..=0x9f]);
    json.windows(2).any(is_one) || json.windows(4).any(|four| four == b"\\u00")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_spelled_out_and_words_stay() {
        assert_eq!(printable("\u{1b}[2Jroot\u{9b}31m\u{7f}"), "\\u{1b}[2Jroot\\u{9b}31m\\u{7f}");
        assert_eq!(printable("one\r\ntwo\tthree\n"), "one\ntwo\tthree\n");
        assert_eq!(printable("over\rwritten"), "over\\rwritten");
        assert!(matches!(printable("größer 1 µs\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_that_holds_it_in_any_spelling_is_known() {
        for text in ["\u{1b}", "\u{7f}", "\u{9b}", "\u{8}", "\r", "\u{c}"] {
            let json = serde_json::to_vec(&serde_json::json!({ "name": format!("a{text}b") })).unwrap();
            assert!(json_may_steer(&json), "{text:?}");
        }
        assert!(json_may_steer(br#"{"name": "\u001B"}"#));
        assert!(!json_may_steer("{\"name\": \"größer\\n\\t\"}".as_bytes()));
    }
}
