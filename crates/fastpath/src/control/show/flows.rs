//! Flows that access lists keep states of: what workers count and list of them enters.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::table::{self, Column};
use crate::control::config::protocol_name;
use crate::dataplane::forwarding::Forwarding;
use crate::dataplane::states::{self, Kind, Moment, Phase, State, Tally};

/// Flows with states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flows {
    /// The worker that knows them: each its own. None where no access list has kept states yet.
    pub workers: Vec<Worker>,
    /// How many flows there are in all.
    pub total: u64,
    /// Some of them.
    pub flows: Vec<Flow>,
}

/// What a worker knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// Its name.
    pub name: String,
    /// The most flows that it can know.
    pub maximum: u32,
    /// Connections of TCP.
    pub tcp: u64,
    /// Flows of UDP.
    pub udp: u64,
    /// Echoes of ICMP and ICMPv6.
    pub icmp: u64,
    /// Flows of other protocols.
    pub other: u64,
    /// Flows that have begun since the router has.
    pub opened: u64,
    /// Those that ended since nothing came for their time.
    pub expired: u64,
    /// Those that ended since no rule permits them any more.
    pub revoked: u64,
    /// Flows that were to begin and found no room.
    pub refused: u64,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// The interface at which it began.
    pub interface: String,
    /// Its protocol, by name or number.
    pub protocol: String,
    /// The end that began: its address.
    pub source: IpAddr,
    /// Its port, or the identifier of an echo; none if the protocol has none.
    pub source_port: Option<u16>,
    /// The other end's address.
    pub destination: IpAddr,
    /// Its port; none if the protocol has none.
    pub destination_port: Option<u16>,
    /// How far a connection of TCP is: `opening`, `answered`, `established` or `closing`; `-` of all others.
    pub phase: String,
    /// Seconds until it is forgotten if nothing comes.
    pub seconds: u32,
}

/// What workers count and list, of which each can know `maximum` flows; `most` of these are shown.
#[must_use]
pub fn flows<'a>(
    workers: impl IntoIterator<Item = (String, &'a Tally, Vec<State>)>,
    maximum: u32,
    forwarding: &Forwarding,
    most: usize,
) -> Flows {
    let now = states::now();
    let (mut rows, mut flows) = (Vec::new(), Vec::new());
    for (name, tally, states) in workers {
        let known = |kind| tally.of(kind).known();
        let kinds = [Kind::Tcp, Kind::Udp, Kind::Icmp, Kind::Other];
        let [tcp, udp, icmp, other] = kinds.map(known);
        rows.push(Worker {
            name,
            maximum,
            tcp,
            udp,
            icmp,
            other,
            opened: kinds.map(|kind| tally.of(kind).opened.get()).into_iter().sum(),
            expired: tally.expired.get(),
            revoked: tally.revoked.get(),
            refused: tally.refused.get(),
        });
        flows.extend(states.iter().map(|state| flow(state, forwarding, now)));
    }
    flows.truncate(most);
    let total = rows.iter().map(Worker::known).sum();
    Flows { workers: rows, total, flows }
}

fn flow(state: &State, forwarding: &Forwarding, now: Moment) -> Flow {
    let flow = &state.flow;
    let (mut source, mut destination) = (flow.beyond(), flow.within());
    if !state.input {
        (source, destination) = (destination, source);
    }
    let port = |port: u16| (Kind::of(flow.protocol()) != Kind::Other || port != 0).then_some(port);
    let interface = forwarding.interfaces.get(usize::from(flow.interface()));
    Flow {
        interface: interface.map(|interface| interface.name.clone()).unwrap_or_default(),
        protocol: protocol_name(flow.protocol()),
        source: source.0,
        source_port: port(source.1),
        destination: destination.0,
        destination_port: port(destination.1),
        phase: phase(state.phase).to_owned(),
        seconds: (u64::from(state.remaining(now)) * 64).div_ceil(1000) as u32,
    }
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Free | Phase::Simple => "-",
        Phase::Opening => "opening",
        Phase::Answered => "answered",
        Phase::Established => "established",
        Phase::Closing => "closing",
    }
}

impl Worker {
    fn known(&self) -> u64 {
        self.tcp + self.udp + self.icmp + self.other
    }
}

impl fmt::Display for Flows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Column::{Left, Right};
        let Self { workers, total, flows } = self;
        if workers.is_empty() {
            return writeln!(formatter, "no access list keeps states");
        }
        let columns = [
            Left("Thread"),
            Right("Flows"),
            Right("Maximum"),
            Right("TCP"),
            Right("UDP"),
            Right("ICMP"),
            Right("Other"),
            Right("Opened"),
            Right("Expired"),
            Right("Revoked"),
            Right("Refused"),
        ];
        let rows = workers.iter().map(|worker| {
            let Worker { name, maximum, tcp, udp, icmp, other, opened, expired, revoked, refused } = worker;
            let numbers = [*tcp, *udp, *icmp, *other, *opened, *expired, *revoked, *refused];
            let first = [name.clone(), worker.known().to_string(), maximum.to_string()];
            first.into_iter().chain(numbers.map(|number| number.to_string())).collect()
        });
        table::write(formatter, &columns, rows)?;
        writeln!(formatter)?;
        let columns =
            [Left("Interface"), Left("Protocol"), Left("From"), Left("To"), Left("State"), Right("Seconds")];
        let rows = flows.iter().map(|flow| {
            vec![
                flow.interface.clone(),
                flow.protocol.clone(),
                end(flow.source, flow.source_port),
                end(flow.destination, flow.destination_port),
                flow.phase.clone(),
                flow.seconds.to_string(),
            ]
        });
        table::write(formatter, &columns, rows)?;
        let more = total.saturating_sub(flows.len() as u64);
        if more > 0 { writeln!(formatter, "… and {more} more") } else { Ok(()) }
    }
}

fn end(address: IpAddr, port: Option<u16>) -> String {
    port.map_or_else(|| address.to_string(), |port| format!("{address} port {port}"))
}
