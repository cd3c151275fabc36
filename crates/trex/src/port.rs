//! A port as clients see it: who owns it, its streams, and whether they are sent.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use traffic::Endpoint;

use crate::multiplier::Rates;
use crate::plan::Part;
use crate::sending::PortFacts;
use crate::stream::Stream;

/// One port.
#[derive(Debug)]
pub struct Port {
    /// What is known of it.
    pub facts: PortFacts,
    /// Whose it is.
    pub owner: Option<Owner>,
    /// Its streams as they were read, and as they came.
    pub streams: BTreeMap<u32, (Stream, Value)>,
    /// The highest number of a stream so far.
    pub newest: u32,
    /// Changes with the streams.
    pub revision: u64,
    /// Whether it sends.
    pub state: State,
    /// Whether it is in service mode, and whether filtered: only then packets are pushed and captured.
    pub service: (bool, bool),
    /// What keeps it in promiscuous mode, and what has it take all multicast.
    pub others: [Option<Box<dyn Any>>; 2],
    /// Layer 3 as clients set it: kept for them.
    pub ipv4: Value,
}

/// Who owns a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The name that it gave.
    pub user: String,
    /// Its session.
    pub session: u32,
    /// What its calls must carry.
    pub handler: String,
    /// When it was heard of last.
    pub heard: Duration,
}

/// Whether streams are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State {
    /// No.
    Stopped,
    /// Yes, or as soon as the engine is ready.
    Sending(Order),
    /// Not now.
    Paused(Order),
}

/// What is to be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Order {
    /// What the streams' rates are multiplied by.
    pub factor: f64,
    /// The same of streams whose latency is counted: 1 at the start, and then changed with the others.
    pub fixed: f64,
    /// How long, if not without end.
    pub length: Option<Duration>,
    /// When it began, once it did.
    pub began: Option<Duration>,
}

impl Order {
    /// Of streams that multipliers change, and of the others.
    pub fn factors(&self) -> [f64; 2] {
        [self.factor, self.fixed]
    }
}

impl Port {
    /// A free port without streams.
    pub fn new(facts: PortFacts) -> Self {
        Self {
            facts,
            owner: None,
            streams: BTreeMap::new(),
            newest: 0,
            revision: 0,
            state: State::Stopped,
            service: (false, false),
            others: [None, None],
            ipv4: json!({"state": "none"}),
        }
    }

    /// The state as the protocol calls it.
    pub fn state_name(&self) -> &'static str {
        match self.state {
            State::Sending(_) => "TX",
            State::Paused(_) => "PAUSE",
            State::Stopped if self.streams.is_empty() => "IDLE",
            State::Stopped => "STREAMS",
        }
    }

    /// What it sends at factor 1: of streams that multipliers change, and of the others. Of a chain that is what
    /// its fastest stream sends.
    pub fn rates(&self) -> [Rates; 2] {
        let rates = |stream: &Stream| stream.rates(self.facts.line_rate_bps);
        let fastest = |first: &'_ Stream| {
            let chain = self.chain(first).into_iter().map(rates);
            chain.fold(rates(first), |most, it| if it.bps_l1 > most.bps_l1 { it } else { most })
        };
        [false, true].map(|fixed| {
            let first =
                self.enabled_streams().filter(|stream| stream.self_start && stream.is_fixed() == fixed);
            first.fold(Rates::default(), |sum, stream| sum.plus(fastest(stream)))
        })
    }

    fn enabled_streams(&self) -> impl Iterator<Item = &Stream> {
        self.streams.values().map(|(stream, _)| stream).filter(|stream| stream.enabled)
    }

    /// `first`, and the streams that follow it, each once.
    fn chain<'a>(&'a self, first: &'a Stream) -> Vec<&'a Stream> {
        let mut chain = vec![first];
        while let Some((next, _)) = chain.last().and_then(|last| last.next) {
            match self.streams.get(&next) {
                Some((next, _)) if next.enabled && !chain.iter().any(|it| it.id == next.id) => {
                    chain.push(next)
                }
                _ => break,
            }
        }
        chain
    }

    /// The streams that send: those that begin by themselves, and those that follow them.
    fn sending_streams(&self) -> Vec<&Stream> {
        let first = self.enabled_streams().filter(|stream| stream.self_start);
        let ids: BTreeSet<u32> = first.flat_map(|first| self.chain(first)).map(|stream| stream.id).collect();
        self.enabled_streams().filter(|stream| ids.contains(&stream.id)).collect()
    }

    /// Its part of what all ports send at these factors: of streams that multipliers change, and of the others.
    pub fn part(&self, port: usize, factors: [f64; 2]) -> Part<'_> {
        Part {
            port,
            factors,
            line_rate_bps: self.facts.line_rate_bps,
            endpoint: Endpoint { source: self.facts.source, destination: self.facts.destination },
            revision: self.revision,
            streams: self.sending_streams(),
        }
    }

    /// What `get_port_status` says.
    pub fn status(&self) -> Value {
        let owner = self.owner.as_ref().map_or("", |owner| owner.user.as_str());
        let state = self.state_name();
        let [promiscuous, multicast] = &self.others;
        json!({
            "owner": owner, "state": state, "state_profile": {"_": state},
            "service": self.service.0, "service_filtered": self.service.1,
            "profile_count": 1, "max_stream_id": self.newest,
            "attr": {
                "promiscuous": {"enabled": promiscuous.is_some()}, "multicast": {"enabled": multicast.is_some()},
                "link": {"up": true},
                "speed": self.facts.line_rate_bps / 1e9, "rx_filter_mode": "hw", "vxlan_fs": [],
                "fc": {"mode": 0}, "vlan": {"tags": []},
                "layer_cfg": {
                    "ether": {"src": self.facts.source.to_string(), "dst": self.facts.destination.to_string(),
                        "state": "configured"},
                    "ipv4": self.ipv4, "ipv6": {"enabled": false},
                },
            },
            "rx_info": {"queue": {"is_active": false}, "grat_arp": {"is_active": false}},
        })
    }
}
