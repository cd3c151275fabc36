//! Filters of captures: the words of a BPF filter that clients use enter, whether a packet passes leaves.

/// The most bytes of a filter.
const LONGEST: usize = 256;
/// How deep brackets stand in each other at most.
const DEEPEST: usize = 8;

/// What passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Everything.
    All,
    /// Frames of this EtherType.
    EtherType(u16),
    /// IPv4 or IPv6 with this protocol.
    Protocol(u8),
    /// Frames with a tag, and, after `and`, what is behind it.
    Tagged,
    Not(Box<Filter>),
    And(Box<Filter>, Box<Filter>),
    Or(Box<Filter>, Box<Filter>),
}

impl Filter {
    /// Reads a filter of the words `arp`, `ip`, `ip6`, `icmp`, `icmp6`, `udp`, `tcp` and `vlan`, joined by `and`, `or`,
    /// `not` and brackets.
    ///
    /// # Errors
    /// The word that is not known.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::All);
        }
        if text.len() > LONGEST {
            return Err(format!("filters have at most {LONGEST} bytes"));
        }
        let spaced = text.replace('(', " ( ").replace(')', " ) ");
        let mut words = spaced.split_whitespace().peekable();
        let filter = either(&mut words, 0)?;
        match words.next() {
            None => Ok(filter),
            Some(word) => Err(unknown(word)),
        }
    }

    /// Whether `frame` passes.
    pub fn passes(&self, frame: &[u8]) -> bool {
        self.passes_at(frame, 12).0
    }

    /// The same of what begins with the EtherType at `at`; where it begins for what stands behind `vlan and`.
    fn passes_at(&self, frame: &[u8], at: usize) -> (bool, usize) {
        let number = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
        let is = |wanted: bool| (wanted, at);
        match self {
            Self::All => is(true),
            Self::EtherType(wanted) => is(number(at) == Some(*wanted)),
            Self::Protocol(wanted) => is(match number(at) {
                Some(0x0800) => frame.get(at + 2 + 9) == Some(wanted),
                Some(0x86dd) => frame.get(at + 2 + 6) == Some(wanted),
                _ => false,
            }),
            Self::Tagged => match number(at) {
                Some(0x8100 | 0x88a8 | 0x9100) => (true, at + 4),
                _ => is(false),
            },
            Self::Not(filter) => is(!filter.passes_at(frame, at).0),
            Self::And(one, two) => match one.passes_at(frame, at) {
                (true, behind) => two.passes_at(frame, behind),
                (false, _) => is(false),
            },
            Self::Or(one, two) => is(one.passes_at(frame, at).0 || two.passes_at(frame, at).0),
        }
    }
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn either(words: &mut Words<'_>, depth: usize) -> Result<Filter, String> {
    let mut filter = both(words, depth)?;
    while words.next_if(|word| matches!(*word, "or" | "||")).is_some() {
        filter = Filter::Or(Box::new(filter), Box::new(both(words, depth)?));
    }
    Ok(filter)
}

fn both(words: &mut Words<'_>, depth: usize) -> Result<Filter, String> {
    let mut filter = one(words, depth)?;
    while words.next_if(|word| matches!(*word, "and" | "&&")).is_some() {
        filter = Filter::And(Box::new(filter), Box::new(one(words, depth)?));
    }
    Ok(filter)
}

fn one(words: &mut Words<'_>, depth: usize) -> Result<Filter, String> {
    if depth > DEEPEST {
        return Err(format!("brackets stand in each other more than {DEEPEST} times"));
    }
    Ok(match words.next().ok_or("the filter ends too early")? {
        "arp" => Filter::EtherType(0x0806),
        "ip" => Filter::EtherType(0x0800),
        "ip6" => Filter::EtherType(0x86dd),
        "icmp" => Filter::And(Box::new(Filter::EtherType(0x0800)), Box::new(Filter::Protocol(1))),
        "icmp6" => Filter::And(Box::new(Filter::EtherType(0x86dd)), Box::new(Filter::Protocol(58))),
        "udp" => Filter::Protocol(17),
        "tcp" => Filter::Protocol(6),
        "vlan" => Filter::Tagged,
        "not" | "!" => Filter::Not(Box::new(one(words, depth + 1)?)),
        "(" => {
            let filter = either(words, depth + 1)?;
            match words.next() {
                Some(")") => filter,
                _ => return Err("a bracket is not closed".to_owned()),
            }
        }
        word => return Err(unknown(word)),
    })
}

fn unknown(word: &str) -> String {
    let word: String = word.chars().take(32).collect();
    format!(
        "'{word}' in a filter is not supported: only arp, ip, ip6, icmp, icmp6, udp, tcp and vlan, with and, or, not and \
         brackets"
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(rest: &[u8]) -> Vec<u8> {
        [[2; 12].as_slice(), rest, &[0; 40]].concat()
    }

    #[test]
    fn the_filter_that_resolves_addresses_passes_arp_with_and_without_tags() {
        let filter = Filter::read("arp or (vlan and arp) or (vlan and arp)").unwrap();
        assert!(filter.passes(&frame(&[8, 6])));
        assert!(filter.passes(&frame(&[0x81, 0, 0, 7, 8, 6])));
        assert!(!filter.passes(&frame(&[8, 0])) && !filter.passes(&frame(&[0x81, 0, 0, 7, 8, 0])));
        assert!(!filter.passes(&[]));
        assert!(Filter::read("").unwrap().passes(&frame(&[8, 0])));
    }

    #[test]
    fn words_are_joined_as_in_bpf() {
        let udp = frame(&[8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17]);
        for (text, passes) in [
            ("udp", true),
            ("tcp", false),
            ("icmp or udp", true),
            ("ip and not tcp", true),
            ("not (ip or arp)", false),
            ("ip6 or arp and ip", false),
        ] {
            assert_eq!(Filter::read(text).unwrap().passes(&udp), passes, "{text}");
        }
        for text in ["udp port 53", "arp or", "(arp", "arp)", "arp arp", "not", &"(".repeat(100)] {
            assert!(Filter::read(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_causes_a_panic(text in "[a-z() !&|]{0,80}", frame: Vec<u8>) {
            if let Ok(filter) = Filter::read(&text) {
                let _ = filter.passes(&frame);
            }
        }
    }
}
