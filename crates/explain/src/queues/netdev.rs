//! The kernel's own account of each queue: an interface's index enters; counters, and who serves
//! which queue, leave. Generic netlink, family `netdev`: queues since Linux 6.8, counters since 6.9,
//! both where the driver takes part.

use std::collections::BTreeMap;
use std::io;

use genetlink::{Answers, Family};

use super::{Counters, Place};

// The numbers of linux/netdev.h.
const QUEUE_GET: u8 = 10;
const NAPI_GET: u8 = 11;
const QSTATS_GET: u8 = 12;
const QUEUE_ID: u16 = 1;
const QUEUE_IFINDEX: u16 = 2;
const QUEUE_TYPE: u16 = 3;
const QUEUE_NAPI_ID: u16 = 4;
const NAPI_IFINDEX: u16 = 1;
const NAPI_ID: u16 = 2;
const NAPI_IRQ: u16 = 3;
const NAPI_PID: u16 = 4;
const QSTATS_IFINDEX: u16 = 1;
const QSTATS_QUEUE_TYPE: u16 = 2;
const QSTATS_QUEUE_ID: u16 = 3;
const QSTATS_SCOPE: u16 = 4;
const QSTATS_RX_PACKETS: u16 = 8;
const QSTATS_TX_PACKETS: u16 = 10;
const QSTATS_RX_HW_DROPS: u16 = 13;
const QSTATS_TX_HW_DROPS: u16 = 24;
const SCOPE_QUEUE: u32 = 1;
const TYPE_RX: u64 = 0;
const TYPE_TX: u64 = 1;

/// What serves queues: a NAPI context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Context {
    id: u64,
    /// The kernel thread it runs on, if it has one of its own.
    pub thread: Option<i32>,
    /// Its interrupt, if it has one.
    pub interrupt: Option<u32>,
}

/// The counters of each queue.
pub(super) fn counters(index: u32) -> Result<BTreeMap<Place, Counters>, String> {
    let answers = dump(QSTATS_GET, &[(QSTATS_IFINDEX, index), (QSTATS_SCOPE, SCOPE_QUEUE)])?;
    let counters = parse_counters(&answers);
    if counters.is_empty() { Err("the driver tells none".to_owned()) } else { Ok(counters) }
}

/// Each queue, with the id of its context where that is known.
type Queues = BTreeMap<Place, Option<u64>>;

/// The queues and the contexts that serve them.
pub(super) fn served_by(index: u32) -> Result<(Queues, Vec<Context>), String> {
    let queues = dump(QUEUE_GET, &[(QUEUE_IFINDEX, index)])?;
    let contexts = dump(NAPI_GET, &[(NAPI_IFINDEX, index)])?;
    Ok((parse_queues(&queues), contexts.iter().filter_map(parse_context).collect()))
}

/// The context of each queue: the one that the kernel names; or, where there are one queue and one
/// context, that one. Anything else would be a guess.
pub(super) fn assign<'a>(queues: &Queues, contexts: &'a [Context]) -> Vec<(Place, &'a Context)> {
    let receiving = queues.keys().filter(|place| matches!(place, Place::Receive(_))).count();
    let only = if let ([only], 1) = (contexts, receiving) { Some(only) } else { None };
    let context = |place: Place, id: Option<u64>| match (id, place) {
        (Some(id), _) => contexts.iter().find(|context| context.id == id),
        (None, Place::Receive(_)) => only,
        (None, _) => None,
    };
    queues.iter().filter_map(|(place, id)| Some((*place, context(*place, *id)?))).collect()
}

fn parse_counters(answers: &[Numbers]) -> BTreeMap<Place, Counters> {
    let counters = |answer: &Numbers| {
        let place = place(answer, QSTATS_QUEUE_TYPE, QSTATS_QUEUE_ID)?;
        let (packets, dropped) = match place {
            Place::Receive(_) => (QSTATS_RX_PACKETS, QSTATS_RX_HW_DROPS),
            _ => (QSTATS_TX_PACKETS, QSTATS_TX_HW_DROPS),
        };
        let packets = *answer.get(&packets)?;
        Some((place, Counters { packets, dropped: answer.get(&dropped).copied(), ..Counters::default() }))
    };
    answers.iter().filter_map(counters).collect()
}

fn parse_queues(answers: &[Numbers]) -> Queues {
    let queue =
        |answer: &Numbers| Some((place(answer, QUEUE_TYPE, QUEUE_ID)?, answer.get(&QUEUE_NAPI_ID).copied()));
    answers.iter().filter_map(queue).collect()
}

fn parse_context(answer: &Numbers) -> Option<Context> {
    let number = |kind: u16| answer.get(&kind).copied();
    Some(Context {
        id: number(NAPI_ID)?,
        thread: number(NAPI_PID).and_then(|pid| i32::try_from(pid).ok()),
        interrupt: number(NAPI_IRQ).and_then(|number| u32::try_from(number).ok()),
    })
}

fn place(answer: &Numbers, kind: u16, number: u16) -> Option<Place> {
    let number = u32::try_from(*answer.get(&number)?).ok()?;
    match *answer.get(&kind)? {
        TYPE_RX => Some(Place::Receive(number)),
        TYPE_TX => Some(Place::Send(number)),
        _ => None,
    }
}

/// The attributes of one object by kind, those that are numbers.
type Numbers = BTreeMap<u16, u64>;

/// Every object that `command` tells of, in the network namespace of the calling thread, asked for
/// with these attributes.
fn dump(command: u8, attributes: &[(u16, u32)]) -> Result<Vec<Numbers>, String> {
    let attribute = |(kind, value): &(u16, u32)| genetlink::attribute(*kind, &value.to_ne_bytes());
    let attributes = attributes.iter().map(attribute).collect::<Vec<_>>().concat();
    let answers = Family::open("netdev").and_then(|it| it.request(command, Answers::Each, &attributes));
    let answers = answers.map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => "this kernel has no netdev-genl, which Linux 6.3 brought".to_owned(),
        io::ErrorKind::Unsupported => "this kernel does not tell them".to_owned(),
        _ => cause.to_string(),
    })?;
    let numbers = |answer: &Vec<u8>| -> Numbers {
        let number = |(kind, value)| Some((kind, genetlink::number(value)?));
        genetlink::attributes(answer).filter_map(number).collect()
    };
    Ok(answers.iter().map(numbers).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer<const N: usize>(numbers: [(u16, u64); N]) -> Numbers {
        numbers.into()
    }

    #[test]
    fn counters_are_those_of_their_queue() {
        let answers = [
            answer([
                (QSTATS_IFINDEX, 2),
                (QSTATS_QUEUE_TYPE, 0),
                (QSTATS_QUEUE_ID, 1),
                (QSTATS_RX_PACKETS, 500),
                (QSTATS_RX_HW_DROPS, 3),
            ]),
            answer([(QSTATS_QUEUE_TYPE, 1), (QSTATS_QUEUE_ID, 0), (QSTATS_TX_PACKETS, 70)]),
            answer([(QSTATS_QUEUE_TYPE, 1), (QSTATS_QUEUE_ID, 1)]), // counts no packets
            answer([(QSTATS_QUEUE_TYPE, 9), (QSTATS_QUEUE_ID, 1), (QSTATS_RX_PACKETS, 1)]),
        ];
        let found = parse_counters(&answers);
        assert_eq!(found.len(), 2);
        assert_eq!(found[&Place::Receive(1)].packets, 500);
        assert_eq!(found[&Place::Receive(1)].dropped, Some(3));
        assert_eq!(found[&Place::Send(0)], Counters { packets: 70, ..Counters::default() });
    }

    #[test]
    fn a_queue_s_context_is_known_or_the_only_one() {
        let context = |id, thread| Context { id, thread: Some(thread), interrupt: None };
        let two = [context(8193, 70), context(8194, 71)];
        let queues = [
            answer([(QUEUE_TYPE, 0), (QUEUE_ID, 0), (QUEUE_NAPI_ID, 8194)]),
            answer([(QUEUE_TYPE, 0), (QUEUE_ID, 1)]),
            answer([(QUEUE_TYPE, 1), (QUEUE_ID, 0)]),
        ];
        let queues = parse_queues(&queues);
        assert_eq!(assign(&queues, &two), [(Place::Receive(0), &two[1])]);
        let single = parse_queues(&[answer([(QUEUE_TYPE, 0), (QUEUE_ID, 0)])]);
        assert_eq!(assign(&single, &two), []);
        assert_eq!(assign(&single, &two[..1]), [(Place::Receive(0), &two[0])]);
    }

    #[test]
    fn a_context_has_a_thread_or_an_interrupt() {
        let found = parse_context(&answer([(NAPI_IFINDEX, 2), (NAPI_ID, 8193), (NAPI_IRQ, 24)]));
        assert_eq!(found, Some(Context { id: 8193, thread: None, interrupt: Some(24) }));
        let found = parse_context(&answer([(NAPI_ID, 8193), (NAPI_PID, 4711)]));
        assert_eq!(found.unwrap().thread, Some(4711));
        assert_eq!(parse_context(&answer([(NAPI_PID, 4711)])), None);
    }

    #[test]
    fn the_kernel_answers_or_says_why_not() {
        let lo = nix::net::if_::if_nametoindex("lo").unwrap();
        let refused = counters(lo).unwrap_err();
        assert!(!refused.is_empty() && !refused.contains("Err("), "{refused}");
        assert!(counters(u32::MAX / 2).is_err());
    }
}
