//! How a network card would spread a profile over its receive queues: a frame table enters; how many frames each queue
//! takes leaves.
//!
//! It is what cards do by default (receive-side scaling): the Toeplitz hash of the addresses and, of TCP and UDP, of
//! the ports; its low seven bits choose an entry of the indirection table, which names the queues in turn, as after
//! `ethtool -X DEVICE equal N`. A tunnel by GRE or ESP has no ports, so that it is one flow whatever is in it; PPPoE is
//! no IP to a card, and goes to the first queue.

use std::net::IpAddr;

use wire::toeplitz::{INDIRECTION, KEY, MICROSOFT, SYMMETRIC, Toeplitz};

use crate::show::Flow;
use crate::table::FrameTable;

/// The key of the hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RssKey {
    /// Microsoft's, which most cards come with.
    #[default]
    Microsoft,
    /// The one that repeats after 16 bits: both directions of a flow take the same queue.
    Symmetric,
}

/// What is hashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RssFields {
    /// Addresses, and the ports of TCP and UDP.
    #[default]
    Ports,
    /// Addresses alone, as many cards do with UDP until `ethtool -N DEVICE rx-flow-hash udp4 sdfn`.
    Addresses,
}

/// How frames are spread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Frames of the table, by queue.
    pub frames: Vec<u64>,
}

impl RssKey {
    fn bytes(self) -> &'static [u8; KEY] {
        match self {
            Self::Microsoft => &MICROSOFT,
            Self::Symmetric => &SYMMETRIC,
        }
    }
}

impl Spread {
    /// The share of all frames that the busiest queue takes, 0 to 1.
    #[must_use]
    pub fn busiest(&self) -> f64 {
        let all: u64 = self.frames.iter().sum();
        let most = self.frames.iter().copied().max().unwrap_or(0);
        if all == 0 { 0.0 } else { most as f64 / all as f64 }
    }

    /// How many times the load of one queue all of them bear at most before the busiest loses frames; from 1 up to the
    /// number of queues.
    #[must_use]
    pub fn worth(&self) -> f64 {
        match self.busiest() {
            0.0 => 0.0,
            busiest => 1.0 / busiest,
        }
    }

    /// What a reader wants to know: a line for each queue, and what all of them are worth.
    #[must_use]
    pub fn show(&self) -> String {
        let all = self.frames.iter().sum::<u64>().max(1);
        let line = |(queue, frames): (usize, &u64)| {
            format!("queue {queue}: {:.1} % of the frames\n", *frames as f64 / all as f64 * 100.0)
        };
        let lines: String = self.frames.iter().enumerate().map(line).collect();
        let (queues, worth) = (self.frames.len(), self.worth());
        let used = self.frames.iter().filter(|frames| **frames > 0).count();
        format!(
            "{lines}{used} of {queues} queues take frames; together they bear at most {worth:.2} times the load of one\n"
        )
    }
}

impl FrameTable {
    /// How a card with so many `queues` (at least 1, at most 128) spreads the frames of `direction` (0 or 1).
    #[must_use]
    pub fn spread(&self, direction: u8, queues: usize, key: RssKey, fields: RssFields) -> Spread {
        let toeplitz = Toeplitz::new(key.bytes());
        let mut spread = Spread { frames: vec![0; queues.clamp(1, INDIRECTION)] };
        for (index, _) in self.rows.iter().enumerate().filter(|(_, row)| row.direction == direction) {
            let start = index * self.header_length;
            let header = self.headers.get(start..start + self.header_length).unwrap_or_default();
            let hash = Flow::seen_by_card(header).map_or(0, |flow| hash(&toeplitz, &flow, fields));
            let queue = hash as usize % INDIRECTION % spread.frames.len();
            spread.frames.iter_mut().skip(queue).take(1).for_each(|frames| *frames += 1);
        }
        spread
    }
}

fn hash(toeplitz: &Toeplitz, flow: &Flow, fields: RssFields) -> u32 {
    let mut input = Vec::with_capacity(wire::toeplitz::INPUT);
    for address in [flow.source, flow.destination] {
        match address {
            IpAddr::V4(address) => input.extend(address.octets()),
            IpAddr::V6(address) => input.extend(address.octets()),
        }
    }
    if let Some((source, destination)) = flow.ports.filter(|_| fields == RssFields::Ports) {
        input.extend([source, destination].map(u16::to_be_bytes).as_flattened());
    }
    toeplitz.hash(&input)
}

#[cfg(test)]
mod tests {
    use wire::MacAddress;

    use super::*;
    use crate::{Directions, Endpoint, Endpoints, Profile};

    const ENDPOINTS: Endpoints = {
        let endpoint = Endpoint { source: MacAddress([2; 6]), destination: MacAddress([4; 6]) };
        Endpoints([endpoint, endpoint])
    };

    fn table(stream: &str) -> FrameTable {
        let profile = Profile::from_toml("test.toml", &format!("[[stream]]\n{stream}")).unwrap();
        profile.table(&ENDPOINTS, Directions::Both)
    }

    const MANY: &str = "[stream.ipv4]\nsource = { increment = [\"16.0.0.1\", \"16.0.3.232\"] }\ndestination = \"48.0.0.1\"\n";

    #[test]
    fn the_published_vector_takes_the_queue_of_its_hash() {
        let known = table(
            "[stream.ipv4]\nsource = \"66.9.149.187\"\ndestination = \"161.142.100.80\"\n[stream.udp]\nsource = 2794\n\
             destination = 1766",
        );
        for (fields, hash) in [(RssFields::Ports, 0x51cc_c178_usize), (RssFields::Addresses, 0x323e_8fc2)] {
            let spread = known.spread(0, 16, RssKey::Microsoft, fields);
            assert_eq!(spread.frames[hash % 128 % 16], 1, "{spread:?}");
            assert_eq!((spread.busiest(), spread.worth()), (1.0, 1.0));
        }
    }

    #[test]
    fn many_flows_are_spread_over_all_queues_and_one_flow_is_not() {
        let many = table(&format!("{MANY}[stream.udp]"));
        for key in [RssKey::Microsoft, RssKey::Symmetric] {
            let spread = many.spread(0, 4, key, RssFields::Ports);
            assert_eq!(spread.frames.iter().sum::<u64>(), 1000);
            assert!(spread.worth() > 3.0 && spread.worth() <= 4.0, "{key:?}: {spread:?}");
        }
        let alone = many.spread(0, 1, RssKey::Microsoft, RssFields::Ports);
        assert_eq!((alone.frames.as_slice(), alone.worth()), (&[1000][..], 1.0));
        let text = many.spread(0, 4, RssKey::Microsoft, RssFields::Ports).show();
        assert!(text.starts_with("queue 0: ") && text.contains("4 of 4 queues take frames"), "{text}");
    }

    #[test]
    fn tunnels_are_one_flow_whatever_is_in_them() {
        let inside = "source = { increment = [\"10.0.0.1\", \"10.0.3.232\"] }\ndestination = \"10.9.0.1\"";
        let ends = "[stream.ipv4]\nsource = \"16.0.0.1\"\ndestination = \"48.0.0.1\"\n";
        let esp = "[stream.esp]\nsequence = { increment = [1, 1000] }";
        for stream in [
            format!("size = 88\n{ends}[stream.gre]\n{inside}"),
            format!("{ends}{esp}"),
            format!("size = 72\npppoe = 1\n{MANY}[stream.udp]"),
        ] {
            let spread = table(&stream).spread(0, 8, RssKey::Microsoft, RssFields::Ports);
            assert_eq!(spread.busiest(), 1.0, "{stream}: {spread:?}");
        }
    }

    #[test]
    fn under_the_symmetric_key_a_flow_that_swaps_its_ports_too_would_take_one_queue_both_ways() {
        let [there, back] = [("66.9.149.187", 5, "161.142.100.80", 7), ("161.142.100.80", 7, "66.9.149.187", 5)].map(
            |(source, from, destination, to)| {
                table(&format!(
                    "[stream.ipv4]\nsource = \"{source}\"\ndestination = \"{destination}\"\n[stream.udp]\nsource = {from}\n\
                     destination = {to}"
                ))
                .spread(0, 64, RssKey::Symmetric, RssFields::Ports)
            },
        );
        assert_eq!(there, back);
    }
}
