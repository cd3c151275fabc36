use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::dataplane::acl::{Action, Addresses, Carried, Rule};
use crate::dataplane::flow::member::{ACK, Asker, FIN, RST, SYN};

/// Half of all moments, and a few: what is stored wraps.
const START: Moment = u32::MAX - 200;

fn no_filters() -> Filters {
    Filters::default()
}

/// A packet of UDP of the flow of this number.
fn udp(number: u32) -> Member {
    Member {
        part: Part::Begins,
        is_ip6: false,
        protocol: 17,
        flags: 0,
        asker: Asker::None,
        source: u128::from(number),
        destination: 9,
        source_port: 1000,
        destination_port: 53,
    }
}

fn state(number: u32, terms: &Terms) -> State {
    State::first(Flow::of(&udp(number), 0, true), 0, (false, 1, 0), terms)
}

#[derive(Clone, Debug)]
enum Step {
    Begin(u32),
    Find(u32),
    Refresh(u32),
    Pass(u32),
    Look(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let flow = 0..40u32;
    prop_oneof![
        4 => flow.clone().prop_map(Step::Begin),
        4 => flow.clone().prop_map(Step::Find),
        2 => flow.prop_map(Step::Refresh),
        1 => (1..8u32).prop_map(Step::Pass),
        2 => any::<u8>().prop_map(Step::Look),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// As a map of flows with the moments at which they are over, of which there are 25 at most.
    #[test]
    fn a_table_is_as_a_map_with_times(steps in prop::collection::vec(step(), 0..400)) {
        const MAXIMUM: u32 = 25;
        let (filters, timeouts) = (no_filters(), Timeouts { udp: 1, ..Timeouts::default() });
        let life = timeouts.lives().of(17, Phase::Simple);
        let mut table = Table::new(MAXIMUM).unwrap();
        let mut map: HashMap<u32, Moment> = HashMap::new();
        let mut now = START;
        for step in steps {
            let terms = Terms::new(&filters, &timeouts, now);
            let find = |table: &Table, number| {
                let flow = Flow::of(&udp(number), 0, true);
                let hash = table.hash(&flow);
                table.find(&flow, hash, table.guess(hash))
            };
            match step {
                Step::Begin(number) if !map.contains_key(&number) => {
                    let state = state(number, &terms);
                    let hash = table.hash(&state.flow);
                    let has_room = map.len() < MAXIMUM as usize;
                    prop_assert_eq!(table.insert(state, hash), has_room);
                    if has_room {
                        map.insert(number, now.wrapping_add(life));
                    }
                }
                Step::Begin(number) | Step::Find(number) => {
                    prop_assert_eq!(find(&table, number).is_some(), map.contains_key(&number));
                }
                Step::Refresh(number) => {
                    if let Some(slot) = find(&table, number) {
                        table.get_mut(slot).unwrap().note(0, true, &terms);
                        map.insert(number, now.wrapping_add(life));
                    }
                }
                Step::Pass(more) => now = now.wrapping_add(more),
                Step::Look(count) => {
                    for _ in 0..count {
                        let slot = table.advance();
                        if table.get(slot).is_some_and(|state| state.phase != Phase::Free && state.is_over(now)) {
                            table.remove(slot);
                        }
                    }
                    let is_over = |expires: &Moment| now.wrapping_sub(*expires).cast_signed() >= 0;
                    if u32::from(count) >= MAXIMUM {
                        map.retain(|_, expires| !is_over(expires));
                    } else {
                        map.retain(|number, expires| !is_over(expires) || find(&table, *number).is_some());
                    }
                }
            }
            prop_assert_eq!(table.known() as usize, map.len());
            for number in 0..40 {
                let found = find(&table, number).map(|slot| table.get(slot).unwrap().expires);
                prop_assert_eq!(found, map.get(&number).copied());
            }
        }
        let mut listed: Vec<_> = table.some(100, 100).map(|state| state.flow).collect();
        let mut flows: Vec<_> = map.keys().map(|number| Flow::of(&udp(*number), 0, true)).collect();
        listed.sort_unstable_by_key(|flow| *flow.words());
        flows.sort_unstable_by_key(|flow| *flow.words());
        prop_assert_eq!(listed, flows);
    }
}

#[test]
fn a_table_holds_as_many_states_as_it_is_made_for_and_no_more() {
    let (filters, timeouts) = (no_filters(), Timeouts::default());
    let terms = Terms::new(&filters, &timeouts, 0);
    for maximum in [0, 1, 1000, 100_000] {
        let mut table = Table::new(maximum).unwrap();
        let inserted = (0..maximum + 10).filter(|&number| {
            let state = state(number, &terms);
            let hash = table.hash(&state.flow);
            table.insert(state, hash)
        });
        let inserted = inserted.count() as u32;
        // One line in a million is full before the table is.
        assert!(inserted <= maximum && inserted + 1 >= maximum, "{inserted} of {maximum}");
        assert_eq!((table.known(), table.maximum()), (inserted, maximum));
        let most = maximum as usize * (64 + 32) + 64;
        assert!(table.memory() <= most, "{} bytes", table.memory());
        while table.known() > 0 {
            let slot = table.advance();
            table.remove(slot);
        }
        assert_eq!(table.some(10, usize::MAX).count(), 0);
    }
}

#[test]
fn a_timeout_is_not_over_before_its_seconds_are() {
    let timeouts = Timeouts { udp: 1, icmp: 2, tcp_established: 1_000_000, ..Timeouts::default() };
    assert_eq!(timeouts.lives().of(17, Phase::Simple), 16);
    assert_eq!((timeouts.lives().of(1, Phase::Simple), timeouts.lives().of(58, Phase::Simple)), (32, 32));
    assert_eq!(timeouts.lives().of(6, Phase::Established), 15_625_000);
    assert_eq!(timeouts.lives().of(132, Phase::Simple), 16);
}

#[test]
fn a_connection_is_established_by_three_packets_and_closed_by_one() {
    let after = |packets: &[(u8, bool)]| {
        packets.iter().fold(Phase::Opening, |phase, &(flags, of_beginner)| phase.after(flags, of_beginner))
    };
    let (answer, acknowledged) = ((SYN | ACK, false), (ACK, true));
    assert_eq!(after(&[(SYN, true), acknowledged, (SYN, false)]), Phase::Opening, "nobody has answered");
    assert_eq!(after(&[answer, answer]), Phase::Answered);
    assert_eq!(after(&[answer, (SYN | ACK, true)]), Phase::Answered);
    assert_eq!(after(&[answer, acknowledged, (ACK, false), (ACK | 8, true)]), Phase::Established);
    for last in [(FIN | ACK, true), (FIN | ACK, false), (RST, true), (RST | ACK, false)] {
        assert_eq!(after(&[answer, acknowledged, last, (ACK, true)]), Phase::Closing);
        assert_eq!(after(&[last, answer, acknowledged]), Phase::Closing);
    }
}

/// A packet between one of two hosts beyond an interface and one of two within.
#[derive(Clone, Copy, Debug)]
struct Packet {
    arrives: bool,
    beyond: u8,
    within: u8,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Udp,
    Tcp(u8),
    Ask,
    Answer,
    /// An error about a packet of UDP.
    Error,
    Other,
}

fn packet() -> impl Strategy<Value = Packet> {
    let flags = prop::sample::select(vec![SYN, SYN | ACK, ACK, FIN | ACK, RST]);
    let what = prop_oneof![
        2 => Just(What::Udp),
        4 => flags.prop_map(What::Tcp),
        1 => Just(What::Ask),
        1 => Just(What::Answer),
        1 => Just(What::Error),
        1 => Just(What::Other),
    ];
    (any::<bool>(), 0..2u8, 2..4u8, what).prop_map(|(arrives, beyond, within, what)| Packet {
        arrives,
        beyond,
        within,
        what,
    })
}

impl Packet {
    fn protocol(self) -> u8 {
        match self.what {
            What::Udp => 17,
            What::Tcp(_) => 6,
            What::Ask | What::Answer | What::Error => 1,
            What::Other => 47,
        }
    }

    fn member(self) -> Member {
        let (part, asker, flags, protocol) = match self.what {
            What::Udp => (Part::Begins, Asker::None, 0, 17),
            What::Tcp(SYN) => (Part::Begins, Asker::None, SYN, 6),
            What::Tcp(flags) => (Part::Continues, Asker::None, flags, 6),
            What::Ask => (Part::Begins, Asker::Source, 0, 1),
            What::Answer => (Part::Continues, Asker::Destination, 0, 1),
            What::Error => (Part::Related, Asker::None, 0, 17),
            What::Other => (Part::Begins, Asker::None, 0, 47),
        };
        let (source, destination) = self.ends();
        Member {
            part,
            protocol,
            flags,
            asker,
            source: u128::from(source),
            destination: u128::from(destination),
            source_port: 7,
            destination_port: 7,
            ..udp(0)
        }
    }

    fn ends(self) -> (u8, u8) {
        if self.arrives { (self.beyond, self.within) } else { (self.within, self.beyond) }
    }

    /// The flow that it is of, in a word of its own: hosts, protocol, and who asks.
    fn flow(self) -> (u8, u8, u8, bool) {
        let asks = match self.what {
            What::Ask => self.arrives,
            What::Answer => !self.arrives,
            _ => false,
        };
        let protocol = if matches!(self.what, What::Error) { 17 } else { self.protocol() };
        (self.beyond, self.within, protocol, asks)
    }
}

/// A rule: what becomes of packets of a protocol from a host, or of any.
type Said = (Action, Option<u8>, Option<u8>);

fn rules() -> impl Strategy<Value = Option<Vec<Said>>> {
    let action =
        prop::sample::select(vec![Action::Permit, Action::KeepState, Action::KeepState, Action::Deny]);
    let protocol = prop::option::of(prop::sample::select(vec![1, 6, 17, 47]));
    prop::option::weighted(0.8, prop::collection::vec((action, protocol, prop::option::of(0..4u8)), 0..5))
}

fn list(said: &[Said]) -> Arc<AccessList> {
    let rule = |&(action, protocol, source): &Said| {
        let any = crate::fib::Prefix::new(0, 0).unwrap();
        let host = |host: u8| crate::fib::Prefix::new(u32::from(host), 32).unwrap();
        let addresses =
            source.map_or(Addresses::Any, |source| Addresses::Ip4 { source: host(source), destination: any });
        Rule { action, addresses, carried: protocol.map_or(Carried::Any, Carried::Protocol) }
    };
    AccessList::new("list", said.iter().map(rule).collect())
}

/// What becomes of a packet by a walk over rules.
fn walk(said: &[Said], protocol: u8, source: u8) -> Action {
    let matches = |rule: &&Said| {
        rule.1.is_none_or(|wanted| wanted == protocol) && rule.2.is_none_or(|wanted| wanted == source)
    };
    said.iter().find(matches).map_or(Action::Deny, |rule| rule.0)
}

/// What is known of a flow by a model: whether it began beyond, when it is over, and the phase of TCP.
#[derive(Clone, Copy)]
struct Known {
    input: bool,
    expires: Moment,
    phase: Phase,
}

#[derive(Default)]
struct Model(HashMap<(u8, u8, u8, bool), Known>);

impl Model {
    /// Whether a packet passes, by the lists for what arrives and what leaves.
    fn passes(
        &mut self,
        packet: Packet,
        lists: [Option<&[Said]>; 2],
        now: Moment,
        timeouts: &Timeouts,
    ) -> bool {
        let (flow, member) = (packet.flow(), packet.member());
        let list = |input: bool| lists[usize::from(!input)];
        if let Some(known) = self.0.get_mut(&flow) {
            let beginner = if known.input { packet.beyond } else { packet.within };
            let over = now.wrapping_sub(known.expires).cast_signed() >= 0;
            let anew = member.part == Part::Begins && known.phase == Phase::Closing;
            let permitted =
                list(known.input).map(|said| walk(said, flow.2, beginner)) == Some(Action::KeepState);
            if over || (!anew && !permitted) {
                self.0.remove(&flow);
            } else if !anew {
                if member.part != Part::Related {
                    if flow.2 == 6 {
                        known.phase = known.phase.after(member.flags, packet.arrives == known.input);
                    }
                    known.expires = now.wrapping_add(timeouts.lives().of(flow.2, known.phase));
                }
                return true;
            }
        }
        let Some(said) = list(packet.arrives) else { return true };
        match walk(said, packet.protocol(), packet.ends().0) {
            Action::Permit => true,
            Action::Deny => false,
            Action::KeepState if member.part == Part::Begins => {
                let phase = if flow.2 == 6 { Phase::Opening } else { Phase::Simple };
                let expires = now.wrapping_add(timeouts.lives().of(flow.2, phase));
                self.0.insert(flow, Known { input: packet.arrives, expires, phase });
                true
            }
            Action::KeepState => member.part != Part::Continues,
        }
    }
}

/// Whether a packet passes by states and lists, as the nodes have it.
fn passes(states: &mut States, packet: Packet, terms: &Terms) -> bool {
    states.look_for(1, (0, !packet.arrives), |_| packet.member());
    if states.pass(0, packet.arrives, terms).is_some() {
        return true;
    }
    let Some(list) = terms.filters.of(packet.arrives) else { return true };
    let mut member = packet.member();
    if member.part == Part::Related {
        (member.protocol, member.source_port) = (1, 0);
    }
    let first = Flow::of(&member, 0, !packet.arrives).first(packet.arrives);
    let Some(rule) = list.rule_of(&first) else { return false };
    match list.action(rule) {
        Some(Action::KeepState) => states.begin(0, (packet.arrives, list, rule), terms).is_ok(),
        action => action == Some(Action::Permit),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Time passes, lists are replaced, and states are aged in between.
    #[test]
    fn states_are_as_a_walk_over_rules_with_a_model_of_states(
        lists in prop::collection::vec((rules(), rules()), 1..3),
        steps in prop::collection::vec((packet(), 0..30u32, 0..40usize, any::<bool>()), 1..150),
    ) {
        let timeouts =
            Timeouts { tcp_opening: 2, tcp_established: 12, tcp_closing: 4, udp: 3, icmp: 1 };
        let mailbox = Arc::<Mailbox>::default();
        mailbox.give(Table::new(1000).unwrap());
        let mut states = States::take(&mailbox).unwrap();
        let mut model = Model::default();
        let made: Vec<_> = lists
            .iter()
            .map(|(input, output)| Filters {
                input: input.as_deref().map(list),
                output: output.as_deref().map(list),
            })
            .collect();
        let mut now = START;
        let many = steps.len();
        for (at, (packet, pause, age, looks)) in steps.into_iter().enumerate() {
            now = now.wrapping_add(pause);
            let which = at * lists.len() / many;
            let (input, output) = &lists[which];
            let terms = Terms::new(&made[which], &timeouts, now);
            let expected = model.passes(packet, [input.as_deref(), output.as_deref()], now, &timeouts);
            prop_assert_eq!(passes(&mut states, packet, &terms), expected, "{:?} at {}", packet, at);
            if looks {
                let forwarding = forwarding(made[which].clone());
                (0..age).for_each(|_| states.age(&forwarding, now));
            }
        }
        let tally = &mailbox.tally;
        let kinds = [Kind::Tcp, Kind::Udp, Kind::Icmp, Kind::Other];
        let known: u64 = kinds.iter().map(|kind| tally.of(*kind).known()).sum();
        let ended: u64 = kinds.iter().map(|kind| tally.of(*kind).ended.get()).sum();
        prop_assert_eq!(known, u64::from(states.table.known()));
        prop_assert_eq!(ended, tally.expired.get() + tally.revoked.get() + tally.closed.get());
        // In the end all have had their time.
        let forwarding = forwarding(Filters::default());
        (0..1000).for_each(|_| states.age(&forwarding, now));
        prop_assert_eq!(states.table.known(), 0);
    }
}

/// One interface with these lists.
fn forwarding(filters: Filters) -> Forwarding {
    let mac = wire::MacAddress([2, 0, 0, 0, 0, 1]);
    let interface = crate::dataplane::forwarding::Interface {
        name: "lan".into(),
        device: 0,
        vlan: None,
        mac,
        mtu: 1500,
        up: true,
        role: crate::dataplane::forwarding::Role::Router,
        addresses: Vec::new(),
        kernel: None,
        filters,
    };
    Forwarding { interfaces: vec![interface], ..Forwarding::default() }
}
