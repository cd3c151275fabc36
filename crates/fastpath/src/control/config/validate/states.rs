//! How states of flows are kept: an entry enters; settings leave, with a note of what cannot be.

use std::ops::RangeInclusive;

use toml::Spanned;

use crate::control::config::document::{AccessListEntry, Problems, StatesEntry};
use crate::control::config::{Attachment, Config, Interface, Role};
use crate::dataplane::acl::Action;
use crate::dataplane::states::{Settings, Timeouts};

/// Of a worker: with 84 bytes each these take 1.3 GB.
const MAXIMUM: RangeInclusive<u32> = 1..=16_000_000;
/// Seconds.
const TIMEOUT: RangeInclusive<u32> = 1..=1_000_000;

/// The settings; as usual where nothing is said.
pub(super) fn settings(entry: Option<&StatesEntry>, problems: &mut Problems) -> Settings {
    let usual = Settings::default();
    let Some(entry) = entry else { return usual };
    let mut number = |written: &Option<Spanned<u32>>, usual: u32, range: RangeInclusive<u32>, what: &str| {
        let Some(written) = written else { return usual };
        let number = *written.get_ref();
        if !range.contains(&number) {
            let reason = format!("{what} of {number}: write {} to {}", range.start(), range.end());
            problems.add(written.span().start, reason);
        }
        number
    };
    let maximum = number(&entry.maximum, usual.maximum, MAXIMUM, "a maximum of states");
    let mut timeout = |written, usual| number(written, usual, TIMEOUT, "a time in seconds");
    let timeouts = Timeouts {
        tcp_opening: timeout(&entry.tcp_opening, usual.timeouts.tcp_opening),
        tcp_established: timeout(&entry.tcp_established, usual.timeouts.tcp_established),
        tcp_closing: timeout(&entry.tcp_closing, usual.timeouts.tcp_closing),
        udp: timeout(&entry.udp, usual.timeouts.udp),
        icmp: timeout(&entry.icmp, usual.timeouts.icmp),
    };
    Settings { maximum, timeouts }
}

/// Notes lists that keep states where both directions of a flow may come to two workers, of which each knows its own
/// states alone.
pub(super) fn check_workers(config: &Config, lists: &[AccessListEntry], problems: &mut Problems) {
    let workers = config.workers.cores.len();
    if workers < 2 {
        return;
    }
    let routes = |device: &&Interface| {
        let is_on_it = |other: &&Interface| {
            other.name == device.name
                || matches!(&other.attachment, Attachment::Vlan { parent, .. } if *parent == device.name)
        };
        config.interfaces.iter().filter(is_on_it).any(|one| one.role == Role::Router)
    };
    let devices = config.interfaces.iter().filter(|one| matches!(one.attachment, Attachment::Device(_)));
    let without: Vec<&str> =
        devices.filter(routes).filter(|device| !device.rss).map(|device| device.name.as_str()).collect();
    if without.is_empty() {
        return;
    }
    for list in lists.iter().filter(|list| list.rules.iter().any(|rule| rule.action == Action::KeepState)) {
        let reason = format!(
            "{} keeps states, of which each of the {workers} workers knows its own alone: write rss = true at {}, so \
             that both directions of a flow come to one, or name one core",
            list.name.get_ref(),
            without.join(" and ")
        );
        problems.add(list.name.span().start, reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::config::{Change, difference};

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse("x.toml", text).map_err(|error| error.to_string())
    }

    /// A router of two interfaces on so many cores, of which the second has a list with a rule of this action.
    fn text(cores: &str, action: &str, more: &str) -> String {
        format!(
            "[workers]\ncores = [{cores}]\n[[interface]]\nname = \"lan\"\ndevice = \"null\"\n\
             [[interface]]\nname = \"wan\"\ndevice = \"null\"\naccess-list-out = \"out\"\n\
             [[access-list]]\nname = \"out\"\nrules = [{{ action = \"{action}\" }}]\n{more}"
        )
    }

    #[test]
    fn settings_are_as_written_and_otherwise_as_usual() {
        let config = parse(&text("1", "keep-state", "[states]\nmaximum = 10\nudp = 7\n")).unwrap();
        let usual = Settings::default();
        let timeouts = Timeouts { udp: 7, ..usual.timeouts };
        assert_eq!(config.states, Settings { maximum: 10, timeouts });
        assert_eq!(config.access_lists["out"][0].action, Action::KeepState);
        assert_eq!(parse(&text("1", "permit", "")).unwrap().states, usual);
        for (written, clue) in [
            ("maximum = 0", "x.toml:14: a maximum of states of 0: write 1 to 16000000"),
            ("maximum = 16000001", "write 1 to 16000000"),
            ("icmp = 0", "x.toml:14: a time in seconds of 0: write 1 to 1000000"),
            ("tcp-opening = 1000001", "write 1 to 1000000"),
            ("tcp = 5", "unknown key `tcp`, expected one of `maximum`, `tcp-opening`"),
        ] {
            let said = parse(&text("1", "permit", &format!("[states]\n{written}\n"))).unwrap_err();
            assert!(said.contains(clue) && said.lines().count() == 1, "{written}: {said}");
        }
    }

    #[test]
    fn several_workers_need_both_directions_of_a_flow_at_one() {
        let spread = |text: String| text.replace("device = \"null\"\n", "device = \"null\"\nrss = true\n");
        for (fits, text) in [
            (true, text("1", "keep-state", "")),
            (true, text("1, 2", "permit", "")),
            (true, spread(text("1, 2", "keep-state", ""))),
            (false, text("1, 2", "keep-state", "")),
            (
                false,
                text("1, 2", "keep-state", "").replacen(
                    "device = \"null\"\n",
                    "device = \"null\"\nrss = true\n",
                    1,
                ),
            ),
            // A bridge looks at no flows, but a VLAN of one of its ports does.
            (
                true,
                spread(text("1, 2", "keep-state", ""))
                    + "[[interface]]\nname = \"p\"\ndevice = \"null\"\nbridge = \"b\"\n",
            ),
            (
                false,
                spread(text("1, 2", "keep-state", ""))
                    + "[[interface]]\nname = \"p\"\ndevice = \"null\"\nbridge = \"b\"\n[[interface.vlan]]\nid = 7\n",
            ),
        ] {
            let parsed = parse(&text);
            assert_eq!(parsed.is_ok(), fits, "{text}\n{parsed:?}");
            if let Err(said) = parsed {
                assert!(said.contains("out keeps states, of which each of the 2 workers"), "{said}");
                assert!(said.contains("write rss = true at") && said.contains("or name one core"), "{said}");
            }
        }
        let said = parse(&text("1, 2", "keep-state", "")).unwrap_err();
        assert!(said.starts_with("x.toml:11: ") && said.contains("rss = true at lan and wan,"), "{said}");
    }

    #[test]
    fn timeouts_change_while_the_router_runs_and_the_maximum_does_not() {
        let of = |states: &str| parse(&text("1", "keep-state", &format!("[states]\n{states}\n"))).unwrap();
        let (old, new) = (of("udp = 60"), of("udp = 61"));
        assert_eq!(difference(&old, &new).unwrap(), [Change::Timeouts(new.states.timeouts)]);
        let refused = difference(&old, &of("udp = 60\nmaximum = 5")).unwrap_err();
        assert_eq!(
            refused[0].to_string(),
            "the maximum of states, whose memory is taken at once, cannot change while the router runs: restart it, or \
             leave that as it is"
        );
    }
}
