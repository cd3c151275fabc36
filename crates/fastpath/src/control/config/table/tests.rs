use proptest::prelude::*;

use super::*;
use crate::control::config::{Error, Hop};

/// A router whose configuration has a table beside it.
fn config(more: &str) -> Config {
    let text = format!(
        "routes-file = \"table.txt\"\n[workers]\ncores = [1]\n\
         [[interface]]\nname = \"lan\"\ndevice = \"null\"\naddresses = [\"10.0.0.1/24\", \"2001:db8::1/64\"]\n\
         [[interface]]\nname = \"wan\"\ndevice = \"null\"\naddresses = [\"10.1.0.1/24\"]\n\
         [[interface]]\nname = \"cable\"\ndevice = \"null\"\ncross-connect = \"wan\"\n{more}"
    );
    Config::parse("x.toml", &text).unwrap()
}

fn with(table: &str) -> Result<Config, Error> {
    let mut config = config("");
    config.add_table("table.txt", table.as_bytes()).map(|()| config)
}

fn refused(table: &str) -> Vec<(usize, String)> {
    let problems = with(table).unwrap_err().problems;
    problems.into_iter().map(|problem| (problem.line, problem.reason)).collect()
}

fn hop(gateway: &str, interface: &str, weight: u16) -> Hop {
    Hop { gateway: gateway.parse().unwrap(), interface: interface.into(), weight }
}

#[test]
fn lines_of_ip_route_are_the_routes_of_the_configuration() {
    let config = with(
        "# What `ip -oneline route` prints.\n\
         default via 10.1.0.2 dev wan proto dhcp src 10.1.0.1 metric 100 \n\
         10.0.0.0/24 dev lan proto kernel scope link src 10.0.0.1 \n\n\
         10.2.0.0/16 nhid 12 via 10.0.0.9 proto bgp  # the gateway is on lan's network\n\
         \t10.3.0.1 via 10.9.9.9 dev lan onlink\r\n\
         10.4.0.0/16 proto bird metric 32 \\\tnexthop via 10.1.0.2 dev wan weight 3 \\\tnexthop via 10.0.0.9 dev lan weight 1 \n\
         blackhole 10.5.0.0/16 dev lo metric 1024\n\
         default via fe80::1 dev wan metric 1024 pref medium\n\
         2001:db8:1::/48 via inet6 2001:db8::9",
    )
    .unwrap();
    let via = |prefix: &str| match config.routes.get(prefix.parse().unwrap()) {
        Some(Route::Via(hops)) => hops.clone(),
        other => panic!("{prefix}: {other:?}"),
    };
    assert_eq!(config.routes.len(), 7);
    assert_eq!(via("0.0.0.0/0"), [hop("10.1.0.2", "wan", 1)]);
    assert_eq!(via("10.2.0.0/16"), [hop("10.0.0.9", "lan", 1)]);
    assert_eq!(via("10.3.0.1/32"), [hop("10.9.9.9", "lan", 1)]);
    assert_eq!(via("10.4.0.0/16"), [hop("10.1.0.2", "wan", 3), hop("10.0.0.9", "lan", 1)]);
    assert_eq!(config.routes.get("10.5.0.0/16".parse().unwrap()), Some(&Route::Drop));
    assert_eq!(via("::/0"), [hop("fe80::1", "wan", 1)]);
    assert_eq!(via("2001:db8:1::/48"), [hop("2001:db8::9", "lan", 1)]);
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_what_to_write() {
    for (line, clue) in [
        ("10.2.0.1/16 via 10.1.0.2", "is 10.2.0.0/16 meant?"),
        ("10.2.0.0/33 via 10.1.0.2", "addresses have 32"),
        ("here via 10.1.0.2", "'here' is no destination"),
        ("10.2.0.0/16", "no gateway is named"),
        ("10.2.0.0/16 dev lan scope link", "no gateway is named"),
        ("10.2.0.0/16 via", "nothing stands after 'via'"),
        ("10.2.0.0/16 via nowhere", "'nowhere' is no address"),
        ("10.2.0.0/16 via 10.9.0.2", "or dev … in a table"),
        ("10.2.0.0/16 via 10.1.0.2 dev dmz", "there is no interface 'dmz'"),
        ("10.2.0.0/16 via 10.1.0.2 dev cable", "cable does not route"),
        ("10.2.0.0/16 via 224.0.0.1 dev lan", "no host's address"),
        ("10.2.0.0/16 via 2001:db8::9", "of the other version of IP"),
        ("10.2.0.0/16 nexthop via 10.1.0.2 nexthop via 2001:db8::9", "gateways of both versions"),
        ("10.2.0.0/16 nexthop via 10.1.0.2 weight 200 nexthop via 10.1.0.3 weight 57", "weights of 257"),
        ("10.2.0.0/16 nexthop via 10.1.0.2 nexthop dev lan weight 1", "a nexthop without a gateway"),
        ("10.2.0.0/16 nexthop", "a nexthop without a gateway"),
        ("10.2.0.0/16 weight 2 via 10.1.0.2", "stands before its gateway"),
        ("10.2.0.0/16 via 10.1.0.2 weight many", "write a whole number"),
        ("10.2.0.0/16 via 10.1.0.2 tos 4", "unknown word 'tos'"),
        ("unreachable 10.2.0.0/16", "write blackhole"),
        ("blackhole", "no prefix is named"),
        ("blackhole 10.2.0.0/16 via 10.1.0.2", "unknown word 'via'"),
        ("\tnexthop via 10.1.0.2 dev wan weight 1", "each route in one line"),
        ("10.0.0.0/24 via 10.1.0.2", "the network of lan"),
        ("127.0.0.0/8 via 10.1.0.2", "nobody may send to"),
        ("11.0.0.0/8 via 10.1.0.3", "has a route in line 1, too"),
    ] {
        let said = refused(&format!("11.0.0.0/8 via 10.1.0.2\n\n{line}\n12.0.0.0/8 via 10.1.0.2\n"));
        assert!(said.len() == 1 && said[0].0 == 3 && said[0].1.contains(clue), "{line}: {said:?}");
    }
    let mut config = config("[[route]]\nprefix = \"11.0.0.0/8\"\ndrop = true\n");
    let error = config.add_table("t", &b"11.0.0.0/8 via 10.1.0.2"[..]).unwrap_err();
    assert!(error.to_string().starts_with("t:1: 11.0.0.0/8 has a [[route]] in the configuration"), "{error}");
    assert_eq!(config.routes.len(), 1);
}

#[test]
fn a_table_that_is_none_is_refused_at_once() {
    let endless = std::io::repeat(b'x');
    let mut config = config("");
    let error = config.add_table("t", std::io::BufReader::new(endless)).unwrap_err();
    assert!(error.to_string().contains("t:1: a line of more than 16384 bytes"), "{error}");
    let late = "\n".repeat(699_999) + "11.0.0.0/8 by 10.1.0.2";
    let said = refused(&late);
    assert!(said.len() == 1 && said[0].0 == 700_000 && said[0].1.contains("unknown word 'by'"), "{said:?}");
    let said = refused(&format!("11.0.0.0/8 \u{1b}[31m{} 1", "x".repeat(9000)));
    assert!(said[0].1.starts_with("unknown word '?[31mxxx") && said[0].1.len() == 300, "{said:?}");
    let lines = std::iter::repeat_n("nonsense\n", 1_000_000).collect::<String>();
    let said = refused(&lines);
    assert_eq!((said.len(), said[100].0), (101, 101));
    assert!(said[100].1.contains("so many mistakes"), "{}", said[100].1);
    assert!(refused("\0\u{1}\u{fffd}")[0].1.contains("no gateway is named"));
    let error = config.add_table("t", &[0xff, 0xfe, b'\n'][..]).unwrap_err();
    assert!(error.to_string().contains("t:1: it is no text"), "{error}");
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_fail(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = config("").add_table("t", &bytes[..]);
    }

    #[test]
    fn no_words_make_the_reader_fail(words in proptest::collection::vec(
        prop_oneof!["via", "dev", "nexthop", "weight", "proto", "kernel", "10\\.1\\.0\\.2", "lan", "default",
            "10\\.2\\.0\\.0/16", "\\\\", "blackhole", "2", "\n", "inet6"], 0..12))
    {
        let _ = with(&words.join(" "));
    }

    #[test]
    fn the_order_of_lines_does_not_matter(numbers in proptest::collection::btree_set(any::<u16>(), 0..50), seed in any::<u64>()) {
        let line = |number: &u16| format!("20.{}.{}.0/24 via 10.1.0.{}\n", number >> 8, number & 255, 2 + number % 7);
        let lines: Vec<String> = numbers.iter().map(line).collect();
        let mut mixed = lines.clone();
        mixed.sort_by_key(|line| line.bytes().fold(seed, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)));
        let (one, other) = (with(&lines.concat()).unwrap(), with(&mixed.concat()).unwrap());
        prop_assert_eq!(one.routes.len(), lines.len());
        prop_assert_eq!(one.routes, other.routes);
    }
}
