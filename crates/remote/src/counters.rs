//! Numbers that a device counts: what its commands print enters, counters by name leave.

use std::collections::BTreeMap;

/// Counters by name.
pub type Counters = BTreeMap<String, u64>;

/// All that a device has counted at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// What it counts as a whole.
    pub counters: Counters,
    /// What each core counts.
    pub cores: BTreeMap<usize, Counters>,
    /// The statistics of its ports' queues, as their drivers name them, behind `port0` or `port1`.
    pub queues: Counters,
}

/// Those of `counters` whose names begin with the number of a core, core by core.
#[must_use]
pub fn by_core(counters: &Counters) -> BTreeMap<usize, Counters> {
    let mut cores: BTreeMap<usize, Counters> = BTreeMap::new();
    for (name, value) in counters {
        let named = name.split_once(' ').and_then(|(core, name)| Some((core.parse::<usize>().ok()?, name)));
        if let Some((core, name)) = named {
            cores.entry(core).or_default().insert(name.to_owned(), *value);
        }
    }
    cores
}

/// The counters in `text`: each line that ends in a whole number is one, and the words before, without a
/// colon or equals sign at their end, are its name. Lines of one name are added up, as threads report
/// each their own. A line of nothing but a number is called `unnamed`.
#[must_use]
pub fn parse(text: &str, unnamed: &str) -> Counters {
    let mut counters = Counters::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((last, name)) = words.split_last() else { continue };
        let Ok(value) = last.parse::<u64>() else { continue };
        let name = name.join(" ");
        let name = match name.trim_end_matches([':', '=', ' ']) {
            "" => unnamed,
            name => name,
        };
        let sum = counters.entry(name.to_owned()).or_default();
        *sum = sum.saturating_add(value);
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters<const N: usize>(pairs: [(&str, u64); N]) -> Counters {
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn each_line_that_ends_in_a_number_is_a_counter() {
        let text = "port0 received 12\nrx_missed_errors: 7\n  a = 1\n\nnothing here\nnegative -3\nhalf 1.5\n";
        assert_eq!(parse(text, "x"), counters([("port0 received", 12), ("rx_missed_errors", 7), ("a", 1)]));
        assert_eq!(parse(" 42\n", "drops"), counters([("drops", 42)]));
        assert_eq!(parse("", "x"), Counters::new());
    }

    #[test]
    fn counters_of_cores_begin_with_their_numbers() {
        let found = by_core(&parse("0 busy 5\n0 NET_RX 7\n10 busy 1\nall busy 6\n3\n", "x"));
        assert_eq!(
            found,
            [(0, counters([("NET_RX", 7), ("busy", 5)])), (10, counters([("busy", 1)]))].into()
        );
    }

    #[test]
    fn lines_of_one_name_are_added_up() {
        assert_eq!(parse("null-node blackholed 1\nnull-node blackholed 4", "x").values().sum::<u64>(), 5);
        assert_eq!(parse(&format!("a {0}\na {0}", u64::MAX), "x"), counters([("a", u64::MAX)]));
    }
}
