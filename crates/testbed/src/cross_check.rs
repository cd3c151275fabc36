//! Whether our counters are right: those of the kernel, or of DPDK's drivers, at the same interfaces
//! enter beside ours; the way of the frames leaves, and whether both agree.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use dut::{Passed, Rules};
use lab::InterfaceCounters;
use results::Record;
use results::record::{CrossCheck, Direction, LimitedBy, Point, Search};

/// Frames of others (ARP, ND, a ping) that may pass beside ours, whatever the load.
const OTHERS: u64 = 64;
/// How long an interface may take to say what it counted: e1000, for one, reads its card's counters every two seconds.
pub const REFRESH: Duration = Duration::from_millis(2500);
const PAUSE: Duration = Duration::from_millis(100);

/// Reads counters until they are as they `should` be, for so long at most.
///
/// # Errors
/// Those of `read`.
pub fn settled<T>(
    longest: Duration,
    mut read: impl FnMut() -> Result<T>,
    should: impl Fn(&T) -> bool,
) -> Result<T> {
    let deadline = Instant::now() + longest;
    loop {
        let counters = read()?;
        if should(&counters) || Instant::now() >= deadline {
            return Ok(counters);
        }
        thread::sleep(PAUSE.max(longest / 25));
    }
}

/// Follows the frames of each direction. `interfaces` are what they counted meanwhile: the two ports,
/// then the device's two where they are known. `shared` says that what a port sends is in the device's
/// queue at once, as in shared memory: then our counts are the device's, too.
pub fn follow(interfaces: &[InterfaceCounters], directions: &[Direction], shared: bool) -> Vec<CrossCheck> {
    let ports = interfaces.get(..2).unwrap_or_default();
    let device = interfaces.get(2..4).unwrap_or_default();
    let way = |(at, direction): (usize, &Direction)| {
        let (from, to) = (at, 1 - at.min(1));
        let arrived = arrived(directions, at);
        let refused = ports.get(from).map_or(0, |port| port.send_dropped);
        let entered = direction.offered.saturating_sub(refused);
        let mut points = Vec::new();
        points.extend(ports.get(from).map(|port| sent(port, Some(direction.offered))));
        let left = ports.get(from).is_none_or(|port| left(port, direction.offered, direction.refused));
        points.extend(device.get(from).map(|interface| received(interface, shared.then_some(entered))));
        points.extend(device.get(to).map(|interface| sent(interface, None)));
        points.extend(ports.get(to).map(|port| received(port, Some(arrived))));
        let agrees = left && points.iter().skip(1).all(agrees);
        CrossCheck { direction: direction.name.clone(), points, agrees }
    };
    directions.iter().enumerate().map(way).collect()
}

/// Adds what each rule of a device dropped that knows it, in between its two ports: what it sent must have
/// come back to the frame.
pub fn by_rule(checks: &mut [CrossCheck], passed: &[Passed; 2], directions: &[Direction]) {
    for ((check, passed), direction) in checks.iter_mut().zip(passed).zip(directions) {
        let mut left = passed.frames;
        let dropped = Rules::NAMES.iter().zip(passed.dropped).filter(|(_, dropped)| *dropped > 0);
        let points: Vec<Point> = dropped
            .map(|(rule, dropped)| {
                left = left.saturating_sub(dropped);
                Point { place: format!("sent on by its {rule}"), frames: left, dropped, ours: None }
            })
            .collect();
        let middle = check.points.len() / 2;
        check.points.splice(middle..middle, points);
        check.agrees &= direction.forwarded + direction.duplicates == passed.forwarded;
    }
}

/// What arrived at the port that the direction `at` leads to, of whomever.
fn arrived(directions: &[Direction], at: usize) -> u64 {
    let returned = directions.get(1 - at.min(1)).map_or(0, |other| other.returned);
    let of =
        |direction: &Direction| direction.forwarded + direction.duplicates + direction.foreign + returned;
    directions.get(at).map_or(0, of)
}

/// Adds what the `switch` counted that the ports are plugged into: behind port 0 and before port 1, as the frames pass it. What
/// it did not get, or did not hand on, the device did not lose.
pub fn by_switch(checks: &mut [CrossCheck], switch: &[InterfaceCounters; 2], directions: &[Direction]) {
    for (at, (check, direction)) in checks.iter_mut().zip(directions).enumerate() {
        let (from, to) = (at.min(1), 1 - at.min(1));
        let entered = direction.offered.saturating_sub(direction.refused.unwrap_or(0));
        let points =
            [received(&switch[from], Some(entered)), sent(&switch[to], Some(arrived(directions, at)))];
        check.agrees &= points.iter().all(|point| {
            let may_differ = OTHERS + point.frames / 100_000;
            let ours = point.ours.unwrap_or_default();
            point.frames.abs_diff(ours) <= may_differ && point.dropped <= may_differ
        });
        let [behind, before] = points;
        check.points.insert(check.points.len().saturating_sub(1), before);
        check.points.insert(1.min(check.points.len()), behind);
    }
}

fn sent(counters: &InterfaceCounters, ours: Option<u64>) -> Point {
    let InterfaceCounters { name, sent, send_dropped, .. } = counters;
    Point { place: format!("sent by {name}"), frames: *sent, dropped: *send_dropped, ours }
}

fn received(counters: &InterfaceCounters, ours: Option<u64>) -> Point {
    let InterfaceCounters { name, received, receive_dropped, .. } = counters;
    Point { place: format!("received by {name}"), frames: *received, dropped: *receive_dropped, ours }
}

fn agrees(point: &Point) -> bool {
    let Some(ours) = point.ours else { return true };
    let theirs = point.came();
    ours.abs_diff(theirs) <= OTHERS + theirs / 100_000
}

/// Whether what left is what the interface says. What the device's full queue refused of it counts as
/// dropped there; where that is not known, so much may have been dropped as the interface says.
pub fn left(interface: &InterfaceCounters, offered: u64, refused: Option<u64>) -> bool {
    let near = |ours: u64, theirs: u64| ours.abs_diff(theirs) <= OTHERS + theirs / 100_000;
    match refused {
        Some(refused) => near(offered.saturating_sub(refused), interface.sent),
        None => near(offered, interface.sent + interface.send_dropped),
    }
}

/// Marks the directions whose counts disagree: what is found there is the tester's, and nothing to blame
/// a device for.
pub fn mark(record: &mut Record) {
    let wrong: Vec<bool> = record.cross_check.iter().map(|check| !check.agrees).collect();
    if !wrong.contains(&true) {
        return;
    }
    for (direction, _) in record.directions.iter_mut().zip(&wrong).filter(|(_, wrong)| **wrong) {
        direction.limited_by = LimitedBy::Tester;
        direction.results.values_mut().for_each(|result| result.limited_by = LimitedBy::Tester);
    }
    let limits = record.finding.search_mut().map(Search::limits_mut);
    limits.into_iter().flatten().for_each(|limit| *limit = LimitedBy::Tester);
}

/// What a reader must know if they do not agree: where the frames went.
pub fn note(check: &CrossCheck) -> Option<String> {
    let point = |point: &Point| {
        let ours = point.ours.map_or(String::new(), |ours| format!(" (ours: {ours})"));
        let dropped =
            if point.dropped > 0 { format!(", {} dropped there", point.dropped) } else { String::new() };
        format!("{} {}{dropped}{ours}", point.place, point.frames)
    };
    let way: Vec<String> = check.points.iter().map(point).collect();
    (!check.agrees).then(|| {
        format!("{}: Linerate's and the interfaces' counters disagree: {}", check.direction, way.join("; "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(name: &str, received: u64, sent: u64, send_dropped: u64) -> InterfaceCounters {
        InterfaceCounters { name: name.to_owned(), received, receive_dropped: 0, sent, send_dropped }
    }

    fn direction() -> Direction {
        let mut record = results::fixtures::Scenario::default().record();
        Direction {
            offered: 1_000_000,
            forwarded: 899_000,
            duplicates: 0,
            foreign: 0,
            ..record.directions.remove(0)
        }
    }

    #[test]
    fn an_interface_that_counts_late_is_waited_for() {
        let (mut looks, mut others) = (0, 0);
        let late = || {
            looks += 1;
            Ok(if looks < 3 { 0 } else { 7 })
        };
        assert_eq!(settled(REFRESH, late, |count| *count == 7).unwrap(), 7);
        assert_eq!(looks, 3);
        let never = || {
            others += 1;
            Ok(0)
        };
        assert_eq!(settled(REFRESH, never, |count| *count == 7).unwrap(), 0);
        assert!(others > 3, "{others}");
        assert!(settled(REFRESH, || Err::<u64, _>(anyhow::anyhow!("gone")), |_| true).is_err());
    }

    #[test]
    fn frames_are_followed_from_port_to_port() {
        let way = [
            counters("port0", 3, 950_010, 50_000),
            counters("port1", 899_002, 5, 0),
            counters("dut0", 950_010, 3, 0),
            counters("dut1", 5, 899_002, 0),
        ];
        let check = follow(&way, &[direction()], false).remove(0);
        let places: Vec<_> = check.points.iter().map(|point| (point.place.as_str(), point.frames)).collect();
        assert_eq!(
            places,
            [
                ("sent by port0", 950_010),
                ("received by dut0", 950_010),
                ("sent by dut1", 899_002),
                ("received by port1", 899_002)
            ]
        );
        assert!(check.agrees, "what a full ring refuses was offered: {check:?}");
        assert_eq!(note(&check), None);
    }

    #[test]
    fn a_disagreement_is_told_with_the_way() {
        let ports = [counters("eth1", 0, 1_000_000, 0), counters("eth2", 990_000, 0, 0)];
        let check = follow(&ports, &[direction()], false).remove(0);
        assert!(!check.agrees);
        assert_eq!(
            note(&check).unwrap(),
            "0->1: Linerate's and the interfaces' counters disagree: sent by eth1 1000000 (ours: 1000000); \
             received by eth2 990000 (ours: 899000)"
        );
    }

    #[test]
    fn what_a_driver_dropped_and_was_not_counted_as_sent_is_no_disagreement() {
        let ports = [counters("eth1", 0, 1_000_000, 31_049), counters("eth2", 899_000, 0, 0)];
        let found = |refused| {
            let direction = Direction { refused, ..direction() };
            follow(&ports, &[direction], false).remove(0).agrees
        };
        assert!(found(Some(0)), "unsent frames are not offered");
        assert!(!found(None), "nothing explains what was dropped");
        assert!(!found(Some(31_049)), "the device refused nothing");
    }

    #[test]
    fn a_direction_whose_counts_disagree_is_limited_by_the_tester() {
        let mut record = results::fixtures::Scenario::default().record();
        let before = record.directions[0].limited_by;
        assert_ne!(before, LimitedBy::Tester);
        let ports = [counters("eth1", 0, 3, 0), counters("eth2", 3, 0, 0)];
        record.cross_check = follow(&ports, &[direction()], false);
        mark(&mut record);
        assert_eq!(record.directions[0].limited_by, LimitedBy::Tester);
        record.cross_check.clear();
        record.directions[0].limited_by = before;
        mark(&mut record);
        assert_eq!(record.directions[0].limited_by, before);
    }

    #[test]
    fn in_shared_memory_the_device_has_what_its_queue_did_not_refuse() {
        let way = |entered| {
            [
                counters("net_memif0", 0, 950_000, 50_000),
                counters("net_memif1", 899_000, 0, 0),
                counters("testpmd's port 0", entered, 0, 0),
                counters("testpmd's port 1", 0, 899_000, 51_000),
            ]
        };
        assert!(follow(&way(950_000), &[direction()], true)[0].agrees);
        assert!(!follow(&way(940_000), &[direction()], true)[0].agrees);
        assert!(follow(&way(940_000), &[direction()], false)[0].agrees, "a cable may lose frames");
    }

    #[test]
    fn a_device_that_counts_itself_tells_what_it_dropped_to_the_frame() {
        let passed = |forwarded| Passed {
            frames: 999_000,
            forwarded,
            dropped: [99_900, 0, 50, 0, 0],
            refused: 899_050 - forwarded,
            ..Passed::default()
        };
        let way = [
            counters("net_memif0", 0, 999_000, 1_000),
            counters("net_memif1", 899_000, 0, 0),
            counters("its port 0", 999_000, 0, 0),
            counters("its port 1", 0, 899_000, 50),
        ];
        let check = |passed: Passed| {
            let mut checks = follow(&way, &[direction()], true);
            by_rule(&mut checks, &[passed, Passed::default()], &[direction()]);
            checks.remove(0)
        };
        let found = check(passed(899_000));
        let places: Vec<_> =
            found.points.iter().map(|point| (point.place.as_str(), point.frames, point.dropped)).collect();
        assert_eq!(
            places,
            [
                ("sent by net_memif0", 999_000, 1_000),
                ("received by its port 0", 999_000, 0),
                ("sent on by its drop-every", 899_100, 99_900),
                ("sent on by its rate", 899_050, 50),
                ("sent by its port 1", 899_000, 50),
                ("received by net_memif1", 899_000, 0),
            ]
        );
        assert!(found.agrees);
        assert!(!check(passed(899_001)).agrees, "not to the frame");
    }

    #[test]
    fn a_switch_stands_between_the_ports_and_the_device_and_may_be_the_one_that_lost() {
        let ports = [counters("eth1", 0, 1_000_000, 0), counters("eth2", 899_000, 0, 0)];
        let check = |received, dropped| {
            let zero =
                InterfaceCounters { receive_dropped: dropped, ..counters("the switch's 7", received, 5, 0) };
            let mut checks = follow(&ports, &[direction()], false);
            by_switch(&mut checks, &[zero, counters("the switch's 9", 3, 899_002, 0)], &[direction()]);
            checks.remove(0)
        };
        let found = check(1_000_003, 0);
        let places: Vec<_> = found.points.iter().map(|point| point.place.as_str()).collect();
        let way =
            ["sent by eth1", "received by the switch's 7", "sent by the switch's 9", "received by eth2"];
        assert_eq!(places, way);
        assert!(found.agrees, "{found:?}");
        let lost = check(950_000, 50_000);
        let note = note(&lost).unwrap();
        assert!(
            note.contains("received by the switch's 7 950000, 50000 dropped there (ours: 1000000)"),
            "{note}"
        );
        assert!(!check(1_000_000, 70_000).agrees, "what it dropped is not the device's loss");
    }

    #[test]
    fn without_counters_nothing_disagrees() {
        assert!(follow(&[], &[direction()], false)[0].agrees);
    }
}
