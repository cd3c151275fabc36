//! What each core took in: the texts of `/proc/net/softnet_stat` and `/proc/softirqs` enter, a
//! core's counters leave.
//!
//! The kernel counts here what its stack received, of all interfaces; what an XDP program
//! redirected or dropped is not in it.

use std::collections::BTreeMap;
use std::fs;

use super::{Counters, Place};

const SOFTNET: &str = "/proc/net/softnet_stat";
const SOFTIRQS: &str = "/proc/softirqs";

/// The counters of each core.
pub(super) fn counters() -> Result<BTreeMap<Place, Counters>, String> {
    let text = fs::read_to_string(SOFTNET)
        .map_err(|cause| format!("cannot read {SOFTNET}: {cause}. Is /proc mounted?"))?;
    let mut counters = parse_softnet(&text);
    let softirqs = parse_softirqs(&fs::read_to_string(SOFTIRQS).unwrap_or_default());
    for (core, count) in softirqs {
        if let Some(counters) = counters.get_mut(&Place::Core(core)) {
            counters.soft_interrupts = Some(count);
        }
    }
    if counters.is_empty() { Err(format!("{SOFTNET} tells of no core")) } else { Ok(counters) }
}

/// Hexadecimal columns: packets, dropped for want of room, squeezed, …; the 13th is the core since
/// Linux 5.10. Before, lines are the cores that are online, in order.
fn parse_softnet(text: &str) -> BTreeMap<Place, Counters> {
    let parse = |(at, line): (usize, &str)| {
        let columns = line.split_ascii_whitespace().map_while(|word| u64::from_str_radix(word, 16).ok());
        let columns: Vec<u64> = columns.collect();
        let [packets, dropped, squeezed] = *columns.first_chunk()?;
        let core = columns.get(12).copied().unwrap_or(at as u64);
        let counters =
            Counters { packets, dropped: Some(dropped), squeezed: Some(squeezed), soft_interrupts: None };
        Some((Place::Core(u32::try_from(core).ok()?), counters))
    };
    text.lines().enumerate().filter_map(parse).collect()
}

/// The line `NET_RX: n n …` below a head that names the cores: `CPU0 CPU1 …`.
fn parse_softirqs(text: &str) -> BTreeMap<u32, u64> {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default().split_ascii_whitespace();
    let cores = head.filter_map(|word| word.strip_prefix("CPU")?.parse().ok());
    let counts = lines.find_map(|line| line.trim_start().strip_prefix("NET_RX:")).unwrap_or_default();
    cores.zip(counts.split_ascii_whitespace().map_while(|word| word.parse().ok())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOFTNET_TEXT: &str = "\
0000a3f1 00000000 00000002 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
01b2c3d4 00000010 0000001f 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000003 00000000 00000000
";
    const SOFTIRQS_TEXT: &str = "                    CPU0       CPU3       \n          HI:          1          0\n      NET_TX:         11         12\n      NET_RX:     904511    1204512\n";

    #[test]
    fn a_core_s_line_names_it() {
        let found = parse_softnet(SOFTNET_TEXT);
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [Place::Core(0), Place::Core(3)]);
        let last = found[&Place::Core(3)];
        assert_eq!((last.packets, last.dropped, last.squeezed), (0x01b2_c3d4, Some(16), Some(31)));
        // Older kernels have fewer columns.
        let old = parse_softnet("00000001 0 0 0 0 0 0 0 0 0 0\n00000002 0 0 0 0 0 0 0 0 0 0\n");
        assert_eq!(old[&Place::Core(1)].packets, 2);
        assert!(parse_softnet("no numbers\n1 2\n").is_empty());
    }

    #[test]
    fn soft_interrupts_are_those_that_receive() {
        assert_eq!(parse_softirqs(SOFTIRQS_TEXT), [(0, 904_511), (3, 1_204_512)].into());
        assert!(parse_softirqs("").is_empty());
    }

    #[test]
    fn this_machine_tells() {
        let counters = counters().unwrap();
        assert!(counters.values().all(|counters| counters.soft_interrupts.is_some()));
    }
}
