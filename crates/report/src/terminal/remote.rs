//! What a device that is another computer counted itself: those of its counters that moved.

use results::record::{Count, Remote};
use wire::human::count;

use super::Look;
use super::columns::{Align, Columns, Text};

/// A row for each counter that moved, and how many did not; nothing if the device counts nothing.
pub fn table(remote: &Remote, colour: bool) -> String {
    if remote.counters.is_empty() {
        return String::new();
    }
    let moved = remote.counters.iter().filter(|(_, count)| count.before != count.after);
    let mut columns = Columns::new([Align::Right]);
    columns.row(Text::new(&format!("  counted by {}", remote.host), Look::Faint), []);
    let mut rows = 0;
    for (name, counted) in moved {
        let look = if is_loss(name) { Look::Warning } else { Look::Plain };
        columns.row(Text::new(&format!("  {name}"), look), [Text::new(&meanwhile(*counted), look)]);
        rows += 1;
    }
    let still = format!("  {} others did not move\n", remote.counters.len() - rows);
    columns.render(colour) + &Look::Faint.paint(&still, colour)
}

/// What was counted meanwhile, in words.
pub fn meanwhile(counted: Count) -> String {
    counted.meanwhile().map_or_else(|| "set back meanwhile".to_owned(), count)
}

/// Whether what it counts was lost.
fn is_loss(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["drop", "discard", "miss", "error", "no_buf"].iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn counters_that_moved_are_shown_and_the_others_counted() {
        let counted = |name: &str, before, after| (name.to_owned(), Count { before, after });
        let remote = Remote {
            host: "root@dut".to_owned(),
            driver: "linux".to_owned(),
            source: None,
            options: BTreeMap::new(),
            counters: BTreeMap::from([
                counted("port0 received", 10, 1_000_010),
                counted("port0 receive dropped", 0, 7),
                counted("port0 sent", 5, 5),
                counted("softnet processed", 9, 3),
            ]),
            cores: Vec::new(),
        };
        let text = table(&remote, false);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            lines,
            [
                vec!["counted", "by", "root@dut"],
                vec!["port0", "receive", "dropped", "7"],
                vec!["port0", "received", "1,000,000"],
                vec!["softnet", "processed", "set", "back", "meanwhile"],
                vec!["1", "others", "did", "not", "move"]
            ]
        );
        assert_eq!(table(&Remote { counters: BTreeMap::new(), ..remote }, false), "");
    }
}
