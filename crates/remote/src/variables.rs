//! Which variables a shell text uses: text enters, their names leave. It finds slips of the hand in
//! drivers before anything runs; it is no shell.

use std::collections::BTreeSet;

/// The names of small letters that `text` expands (`$name`, `${name…}`), outside of comments and
/// single quotes, and does not set itself by `name=`, `for name` or `read name`.
pub fn used(text: &str) -> BTreeSet<String> {
    let mut found = expanded(text);
    found.retain(|name| !sets(text, name));
    found
}

/// Whether it may be the name of a parameter.
pub fn is_name(text: &str) -> bool {
    let is_kept = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    text.bytes().next().is_some_and(|first| first.is_ascii_lowercase()) && text.bytes().all(is_kept)
}

fn expanded(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut rest = text;
    let mut in_double = false;
    let mut before = '\n';
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '\\' => rest = after(rest, 1),
            '"' => in_double = !in_double,
            '\'' if !in_double => rest = rest.split_once('\'').map_or("", |(_, rest)| rest),
            '#' if !in_double && before.is_whitespace() => {
                rest = rest.find('\n').map_or("", |end| after(rest, end));
            }
            '$' => {
                let name = rest.strip_prefix('{').unwrap_or(rest);
                let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                let name = name.get(..end.unwrap_or(name.len())).unwrap_or_default();
                if is_name(name) {
                    found.insert(name.to_owned());
                }
            }
            _ => {}
        }
        before = c;
    }
    found
}

fn after(text: &str, bytes: usize) -> &str {
    text.get(bytes..).unwrap_or_default()
}

fn sets(text: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        let behind = after(text, at + name.len());
        let is_whole = !before.ends_with(is_word) && !behind.starts_with(is_word);
        let words: Vec<&str> = before.lines().next_back().unwrap_or_default().split_whitespace().collect();
        let is_read = words.iter().rev().take_while(|word| **word != "do").any(|word| *word == "read")
            && words.last().is_some_and(|word| !word.contains(['$', ';', '|', '"']));
        let is_assigned = behind.starts_with('=') && !before.ends_with(['$', '{', '-']);
        let is_loop = words.last().is_some_and(|word| word.trim_start_matches(['$', '(', ';']) == "for");
        is_whole && (is_assigned || is_loop || is_read)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        used(text).into_iter().collect()
    }

    #[test]
    fn what_is_expanded_is_found() {
        assert_eq!(names(r#"ip link set "$port0" up; echo ${mode%x} $1 $? $HOME ${UID}"#), ["mode", "port0"]);
        assert_eq!(names("echo \"it's $one\" and \\$two"), ["one"]);
    }

    #[test]
    fn what_a_shell_does_not_expand_is_not() {
        assert!(names("awk '{ print $col[\"x\"] }' # $comment it's\ntrue").is_empty());
        assert!(names("echo a#b\\\"$HOME").is_empty());
    }

    #[test]
    fn what_the_text_sets_itself_is_not() {
        assert!(names("for i in a b; do echo $i; done; x=1; echo $x").is_empty());
        assert!(names("ls | while read -r key value; do echo $key $value; done").is_empty());
        assert!(names("for i in $(for j in a; do echo $j; done); do echo $i; done").is_empty());
        assert_eq!(names("xy=1; echo $x"), ["x"]);
        assert_eq!(names("echo --x=$x"), ["x"]);
    }
}
