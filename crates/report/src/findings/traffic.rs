//! What the way of the frames explains: a record enters, sentences leave.

use results::Record;
use results::record::{Count, InterfaceQueues, LimitedBy, QueueUse, RemoteCore};
use wire::human::{count, pps};

/// A share of what it would be if all had the same, below which a queue or core did nothing worth naming.
const IDLE: f64 = 0.05;
/// Of what all queues or cores did, one did so many times its share.
const UNEVEN: f64 = 1.2;
/// One core with this share of the soft interrupts has them alone.
const ALONE: f64 = 0.9;
/// A core that is busier than this has hardly anything left.
const FULL: f64 = 0.9;
/// With fewer packets, shares say nothing.
const FEW: u64 = 1000;
/// Lost frames below this share of those that were offered are not worth a finding of their own.
const SMALL: f64 = 1e-6;
/// Softirqs by which Linux takes packets in.
const RECEIVE: &str = "NET_RX";

/// A direction for people.
fn way(name: &str) -> String {
    name.replace("->", "→")
}

/// Directions in which the tester was the limit. A stall search looks for no limit.
pub fn limited_by_tester(record: &Record) -> Vec<String> {
    if record.finding.stall_search().is_some() {
        return Vec::new();
    }
    let ceiling = record.tester.self_test.as_ref().map(|found| found.ceiling_pps);
    let limited = record.directions.iter().filter(|direction| direction.limited_by == LimitedBy::Tester);
    limited
        .map(|direction| {
            let beside = ceiling.map_or_else(String::new, |ceiling| {
                format!(" (with a cable in place of the device it reaches {})", pps(ceiling))
            });
            format!(
                "{}: the tester, not the device, set the limit: {} came back at most{beside}, so the device may forward more; use \
                 more cores to generate (--cores), or larger frames",
                way(&direction.name),
                pps(direction.max_forwarded_pps)
            )
        })
        .collect()
}

/// Pause frames that a port took during the run.
pub fn pause_frames(record: &Record) -> Vec<String> {
    let ports = record.tester.ports.iter().filter_map(|port| Some((&port.name, port.facts.as_ref()?.pause?)));
    let paused = ports
        .filter_map(|(name, pause)| Some((name, pause.frames_received_meanwhile?)))
        .filter(|(_, n)| *n > 0);
    let tester = paused.map(|(name, frames)| {
        format!(
            "port {name} took {} pause frames during the run: the other end held the tester back, so what was offered is \
             the device's wish and not the load asked for ('ethtool -A {name} rx off' makes the port ignore them)",
            count(frames)
        )
    });
    let remote = record.dut.remote.iter().flat_map(|remote| &remote.counters);
    let is_pause = |name: &str| ["pause", "xoff"].iter().any(|word| name.to_ascii_lowercase().contains(word));
    let device = remote.filter(|(name, _)| is_pause(name)).filter_map(|(name, counted)| {
        let frames = counted.meanwhile().filter(|frames| *frames > 0)?;
        Some(format!("the device counted {} of '{name}': flow control shaped the load", count(frames)))
    });
    tester.chain(device).collect()
}

/// One way through a set of queues.
struct Way<'a> {
    what: &'a str,
    queues: Vec<&'a QueueUse>,
}

/// The receive queues and the send queues of an interface, where there are several.
fn ways(interface: &InterfaceQueues) -> Vec<Way<'_>> {
    let of = |what: &'static str, prefix: &str| {
        let queues: Vec<&QueueUse> =
            interface.queues.iter().filter(|queue| queue.place.starts_with(prefix)).collect();
        (queues.len() > 1 && queues.iter().any(|queue| queue.pps > 0.0)).then_some(Way { what, queues })
    };
    [of("receive", "rx"), of("send", "tx")].into_iter().flatten().collect()
}

/// Queues of one way of which one took far more than the others.
pub fn uneven_queues(record: &Record) -> Vec<String> {
    let mut told = Vec::new();
    for interface in &record.queues {
        for Way { what, queues } in ways(interface) {
            let of_all = queues.len() as f64;
            let Some(busiest) = queues.iter().max_by(|one, other| one.share.total_cmp(&other.share)) else {
                continue;
            };
            if busiest.share * of_all >= UNEVEN {
                told.push(format!(
                    "{}: {} took {:.0} % of what its {} {what} queues did ({}): the core behind it is full first; more \
                     flows, or another hash (ethtool -X), spread them",
                    interface.interface,
                    busiest.place,
                    busiest.share * 100.0,
                    queues.len(),
                    pps(busiest.pps)
                ));
            }
        }
    }
    told
}

/// Queues that took hardly anything.
pub fn unused_queues(record: &Record) -> Vec<String> {
    let mut told = Vec::new();
    for interface in &record.queues {
        for Way { what, queues } in ways(interface) {
            let share = IDLE / queues.len() as f64;
            let idle: Vec<&str> =
                queues.iter().filter(|queue| queue.share < share).map(|queue| queue.place.as_str()).collect();
            if !idle.is_empty() {
                told.push(unused(&interface.interface, what, &idle, queues.len()));
            }
        }
    }
    told
}

fn unused(interface: &str, what: &str, idle: &[&str], all: usize) -> String {
    format!(
        "{interface}: {} of {all} {what} queues took hardly any frames ({}): the cores behind them had nothing to do; more \
         flows spread frames",
        idle.len(),
        idle.join(", ")
    )
}

/// What each core of the device counted under this name, the most first; nothing where fewer than two count it.
fn by_core<'a>(cores: &'a [RemoteCore], name: &str) -> Vec<(usize, u64)> {
    let counted = |core: &'a RemoteCore| {
        Some((core.core, core.counters.get(name).copied().and_then(Count::meanwhile)?))
    };
    let mut all: Vec<(usize, u64)> = cores.iter().filter_map(counted).collect();
    all.sort_by_key(|(_, packets)| std::cmp::Reverse(*packets));
    if all.len() < 2 { Vec::new() } else { all }
}

/// One core that takes in what several could.
pub fn crowded_core(record: &Record) -> Vec<String> {
    let Some(remote) = &record.dut.remote else { return Vec::new() };
    let cores = by_core(&remote.cores, RECEIVE);
    let all: u64 = cores.iter().map(|(_, times)| times).sum();
    match cores.first() {
        Some((core, times)) if all >= FEW && *times as f64 >= all as f64 * ALONE => vec![format!(
            "core {core} of the device had {:.0} % of the soft interrupts for received packets ({} of {}), and it has {} \
             cores: one core forwards for all; more receive queues, their interrupts on several cores, or more flows \
             spread them",
            *times as f64 / all as f64 * 100.0,
            count(*times),
            count(all),
            cores.len()
        )],
        _ => Vec::new(),
    }
}

/// Cores of the device that are full while others have little to do.
pub fn idle_cores(record: &Record) -> Vec<String> {
    let Some(remote) = &record.dut.remote else { return Vec::new() };
    let share = |core: &RemoteCore| {
        let of = |name: &str| core.counters.get(name).copied().and_then(Count::meanwhile);
        let (busy, idle) = (of("busy")?, of("idle")?);
        let all = busy.checked_add(idle).filter(|all| *all > 0)?;
        Some((core.core, busy as f64 / all as f64))
    };
    let shares: Vec<(usize, f64)> = remote.cores.iter().filter_map(share).collect();
    let list = |cores: Vec<usize>| cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let full: Vec<usize> = shares.iter().filter(|(_, busy)| *busy >= FULL).map(|(core, _)| *core).collect();
    let idle: Vec<usize> =
        shares.iter().filter(|(_, busy)| *busy < 1.0 - FULL).map(|(core, _)| *core).collect();
    if full.is_empty() || idle.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "of {} cores of the device, {} {} busy for more than {:.0} % of the run (core {}) and {} for less than {:.0} % (core \
         {}): the work is not spread over all",
        shares.len(),
        full.len(),
        if full.len() == 1 { "was" } else { "were" },
        FULL * 100.0,
        list(full),
        idle.len(),
        (1.0 - FULL) * 100.0,
        list(idle)
    )]
}

/// Where the frames were lost that did not come back, by the counters on their way.
pub fn drops(record: &Record) -> Vec<String> {
    let mut told = Vec::new();
    for direction in &record.directions {
        let lost = direction.offered.saturating_sub(direction.forwarded);
        if (lost as f64) <= direction.offered as f64 * SMALL {
            continue;
        }
        let check = record.cross_check.iter().find(|check| check.direction == direction.name);
        let mut places: Vec<(String, u64)> = check
            .into_iter()
            .flat_map(|check| &check.points)
            .filter(|point| point.dropped > 0)
            .map(|point| (point.place.clone(), point.dropped))
            .collect();
        if places.is_empty() {
            places.extend(
                direction
                    .refused
                    .filter(|n| *n > 0)
                    .map(|n| ("full receive queue of the device".to_owned(), n)),
            );
        }
        if places.is_empty() {
            continue;
        }
        places.sort_by_key(|(_, dropped)| std::cmp::Reverse(*dropped));
        let places: Vec<String> =
            places.iter().map(|(place, dropped)| format!("{place}: {}", count(*dropped))).collect();
        told.push(format!(
            "{}: of {} lost frames the interfaces counted as dropped: {}",
            way(&direction.name),
            count(lost),
            places.join("; ")
        ));
    }
    told
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use results::fixtures::Scenario;
    use results::record::{CrossCheck, Pause, Point, PortFacts, Remote, SelfTest};

    use super::*;

    #[test]
    fn a_limit_of_the_tester_is_told_with_its_ceiling() {
        let tester = Scenario { tester_limit_pps: 2.2e6, capacity_pps: 9e6, ..Scenario::default() };
        let mut record = tester.record();
        record.tester.self_test = Some(SelfTest {
            measured: "2026-01-01T00:00:00Z".to_owned(),
            ceiling_pps: 2.3e6,
            base_latency_min_ns: 1,
            base_latency_mean_ns: 1.0,
            base_latency_p50_ns: None,
        });
        let said = limited_by_tester(&record);
        assert!(said[0].contains("2.20 Mpps") && said[0].contains("it reaches 2.30 Mpps"), "{said:?}");
        assert_eq!(limited_by_tester(&Scenario::default().record()), [""; 0]);
    }

    #[test]
    fn pause_frames_during_the_run_are_told_and_older_ones_are_not() {
        let with = |meanwhile| {
            let mut record = Scenario::default().record();
            let pause = Pause {
                frames_received: Some(9_000),
                frames_received_meanwhile: Some(meanwhile),
                ..Pause::default()
            };
            let facts = PortFacts { pause: Some(pause), ..PortFacts::default() };
            record.tester.ports[0].facts = Some(Box::new(facts));
            pause_frames(&record)
        };
        assert!(with(1_234)[0].starts_with("port lr-port0 took 1,234 pause frames during the run"));
        assert_eq!(with(0), [""; 0]);
        let mut record = remote(&[], &[]);
        let counters = &mut record.dut.remote.as_mut().unwrap().counters;
        counters.insert("port0 driver rx_xoff".to_owned(), Count { before: 1, after: 8 });
        assert_eq!(
            pause_frames(&record),
            ["the device counted 7 of 'port0 driver rx_xoff': flow control shaped the load"]
        );
    }

    fn queues(shares: &[f64]) -> Record {
        let queue = |(at, share): (usize, &f64)| QueueUse {
            place: format!("rx {at}"),
            pps: share * 1e6,
            share: *share,
            cores: Vec::new(),
            dropped_pps: None,
        };
        let mut record = Scenario::default().record();
        record.queues = vec![InterfaceQueues {
            interface: "dut0".to_owned(),
            source: "netdev-genl".to_owned(),
            queues: shares.iter().enumerate().map(queue).collect(),
            receive_imbalance: None,
            send_imbalance: None,
        }];
        record
    }

    #[test]
    fn queues_that_took_most_or_nothing_are_named() {
        let one = queues(&[0.0, 1.0, 0.0]);
        assert!(
            uneven_queues(&one)[0]
                .starts_with("dut0: rx 1 took 100 % of what its 3 receive queues did (1.00 Mpps)")
        );
        assert!(
            unused_queues(&one)[0]
                .starts_with("dut0: 2 of 3 receive queues took hardly any frames (rx 0, rx 2)")
        );
        let even = queues(&[0.33, 0.34, 0.33]);
        assert_eq!((uneven_queues(&even), unused_queues(&even)), (vec![], vec![]));
        let single = queues(&[1.0]);
        assert_eq!((uneven_queues(&single), unused_queues(&single)), (vec![], vec![]));
    }

    /// A device with these soft interrupts and times (busy, idle) of each core.
    fn remote(interrupts: &[u64], times: &[(u64, u64)]) -> Record {
        let count = |after| Count { before: 0, after };
        let core = |core: usize| {
            let mut counters = BTreeMap::new();
            counters.extend(interrupts.get(core).map(|times| (RECEIVE.to_owned(), count(*times))));
            let times = times.get(core);
            counters.extend(times.map(|(busy, _)| ("busy".to_owned(), count(*busy))));
            counters.extend(times.map(|(_, idle)| ("idle".to_owned(), count(*idle))));
            RemoteCore { core, counters }
        };
        let mut record = Scenario::default().record();
        record.dut.remote = Some(Box::new(Remote {
            host: "dut".to_owned(),
            driver: "linux".to_owned(),
            source: None,
            options: BTreeMap::from([("port0".to_owned(), "ix0".to_owned())]),
            counters: BTreeMap::new(),
            cores: (0..interrupts.len().max(times.len())).map(core).collect(),
        }));
        record
    }

    #[test]
    fn one_core_that_has_all_soft_interrupts_is_named() {
        let said = crowded_core(&remote(&[50, 9_900, 30, 20], &[]));
        assert!(said[0].starts_with("core 1 of the device had 99 % of the soft interrupts"), "{said:?}");
        assert!(said[0].contains("(9,900 of 10,000), and it has 4 cores"), "{said:?}");
        assert_eq!(crowded_core(&remote(&[5_000, 4_000, 4_500, 5_500], &[])), [""; 0]);
        assert_eq!(crowded_core(&remote(&[9_000], &[])), [""; 0], "a device of one core has no choice");
        assert_eq!(crowded_core(&remote(&[90, 1], &[])), [""; 0], "too few to say");
    }

    /// "VPP on FreeBSD, part 2": of eight threads four forward, 399 % kernel and 402 % idle.
    #[test]
    fn cores_that_have_nothing_to_do_are_named_beside_the_full_ones() {
        let half = [(99, 1), (99, 1), (99, 1), (99, 1), (1, 99), (1, 99), (0, 100), (1, 99)];
        let said = idle_cores(&remote(&[], &half));
        let start = "of 8 cores of the device, 4 were busy for more than 90 % of the run (core 0, 1, 2, 3) and 4 for less \
                     than 10 % (core 4, 5, 6, 7)";
        assert!(said[0].starts_with(start), "{said:?}");
        assert_eq!(idle_cores(&remote(&[], &[(99, 1), (95, 5)])), [""; 0]);
        assert_eq!(idle_cores(&remote(&[], &[(10, 90), (5, 95)])), [""; 0]);
    }

    #[test]
    fn drops_are_told_by_their_places() {
        let mut record = Scenario::default().record();
        let point = |place: &str, dropped| Point { place: place.to_owned(), frames: 10, dropped, ours: None };
        record.cross_check = vec![CrossCheck {
            direction: "0->1".to_owned(),
            points: vec![
                point("sent by port0", 0),
                point("received by dut0", 7_000),
                point("sent by dut1", 90_000),
            ],
            agrees: true,
        }];
        let said = drops(&record);
        assert!(said[0].ends_with("dropped: sent by dut1: 90,000; received by dut0: 7,000"), "{said:?}");
        record.cross_check[0].points.iter_mut().for_each(|point| point.dropped = 0);
        assert_eq!(drops(&record), [""; 0]);
        let sound = Scenario { capacity_pps: 1e9, ..Scenario::default() };
        assert_eq!(drops(&sound.record()), [""; 0]);
    }
}
