//! Whether the tester's own receiving set a limit: what the device could not hand to it, in memory that both
//! share, enters; verdicts that name the tester leave.
//!
//! The queue that a device sends to is the tester's. A device counts what it had no room for there: the
//! device forwarded those frames, and the tester lost them.

use lab::InterfaceCounters;
use results::Record;
use results::record::{LimitedBy, Search};

/// Marks the directions in which most of what was lost found no room in the tester's queue. `interfaces` are
/// what they counted meanwhile: the two ports, then the device's two.
pub fn mark(record: &mut Record, interfaces: &[InterfaceCounters]) {
    let mut notes = Vec::new();
    for (from, direction) in record.directions.iter_mut().enumerate() {
        let Some(leaving) = interfaces.get(2 + (1 - from.min(1))) else { continue };
        let lost = direction.offered.saturating_sub(direction.forwarded);
        if leaving.send_dropped * 2 <= lost || leaving.send_dropped == 0 {
            continue;
        }
        let mut changed = false;
        let results = direction.results.values_mut().map(|result| &mut result.limited_by);
        for limit in results.chain([&mut direction.limited_by]).filter(|limit| **limit == LimitedBy::Dut) {
            (*limit, changed) = (LimitedBy::Tester, true);
        }
        if changed {
            notes.push(format!(
                "{}: {} of {lost} lost frames were forwarded, and found the tester's receive queue full: the \
                 device may do more; give the tester more cores (--receive-cores), or a lower load",
                direction.name, leaving.send_dropped
            ));
        }
    }
    if !notes.is_empty() {
        let limits = record.finding.search_mut().map(Search::limits_mut);
        for limit in limits.into_iter().flatten().filter(|limit| **limit == LimitedBy::Dut) {
            *limit = LimitedBy::Tester;
        }
    }
    record.notes.append(&mut notes);
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;

    use super::*;

    fn judged(offered: u64, forwarded: u64, no_room: u64) -> Record {
        let mut record = Scenario::default().record();
        for direction in &mut record.directions {
            (direction.offered, direction.forwarded) = (offered, forwarded);
            direction.limited_by = LimitedBy::Dut;
        }
        let counters = |send_dropped| InterfaceCounters {
            name: String::new(),
            received: 0,
            receive_dropped: 0,
            sent: 0,
            send_dropped,
        };
        mark(&mut record, &[counters(0), counters(0), counters(0), counters(no_room)]);
        record
    }

    #[test]
    fn frames_that_the_device_forwarded_and_the_tester_had_no_room_for_are_the_tester_s() {
        let record = judged(1000, 900, 80);
        assert_eq!(record.directions[0].limited_by, LimitedBy::Tester);
        let note = record.notes.last().unwrap();
        assert!(note.contains("80 of 100 lost frames") && note.contains("--receive-cores"), "{note}");
        assert_eq!(judged(1000, 900, 30).directions[0].limited_by, LimitedBy::Dut, "the device lost more");
        assert_eq!(judged(1000, 1000, 0).directions[0].limited_by, LimitedBy::Dut);
    }
}
