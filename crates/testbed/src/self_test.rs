//! What the tester reaches without a device, with a cable between its ports.
//! Results near that are its own limit, and say so.
//!
//! The lab has such a cable, so load tests test themselves; between real interfaces somebody
//! must plug it in first. Either way the finding is kept (`kept`) until the machine or the version
//! changes.

mod measure;

use anyhow::Result;
use results::consistency;
use results::record::{LimitedBy, Record, Search, SelfTest};
use traffic::{Directions, Profile};
use wire::human;

use crate::Testbed;
use crate::kept::Kept;
use crate::stop;

/// A result within this share of the ceiling may be the tester's limit.
const NEAR: f64 = 0.95;

/// All that a finding depends on but the machine, in words.
fn key(testbed: &Testbed, profile: &Profile, directions: Directions) -> String {
    let ports: Vec<String> = match (testbed.lab(), testbed.user_space()) {
        (Some(_), _) => vec!["lab".to_owned()],
        (_, Some(user_space)) => vec![user_space.kind_of_ports()],
        (None, None) => {
            let ports = testbed.ports().iter();
            ports.map(|port| format!("{} {}", port.name, port.mac)).collect()
        }
    };
    let engine = testbed.engine();
    let what = (profile.name(), profile.tunables(), profile.source(), directions);
    format!("{engine} {what:?} {ports:?} on {}", testbed.cores_in_words())
}

/// Measures the tester, and keeps what was found.
pub fn measure_and_keep(testbed: &Testbed, profile: &Profile, directions: Directions) -> Result<SelfTest> {
    let found = measure::measure(testbed, profile, directions, &stop::flag()?)?;
    Kept::open().put(&key(testbed, profile, directions), &found)?;
    Ok(found)
}

/// What is known of the tester for this run: what was kept, else in the lab what is measured now.
/// Without either, why not.
pub fn of(testbed: &Testbed, profile: &Profile, directions: Directions) -> Result<SelfTest, String> {
    if testbed.has_testers() {
        return Err(
            "the testers' own ceiling is not known: run 'linerate verify ceiling' where they are".to_owned()
        );
    }
    let (kept, key) = (Kept::open(), key(testbed, profile, directions));
    if let Some(found) = kept.get(&key) {
        return Ok(found);
    }
    if !testbed.has_cable() {
        let [zero, one] = testbed.ports().each_ref().map(|port| &port.name);
        let flags = match testbed.user_space() {
            Some(_) => format!("--engine {} and these --port0 and --port1", testbed.engine()),
            None => format!("--engine {} --ports {zero},{one}", testbed.engine()),
        };
        return Err(format!(
            "the tester's own ceiling is not known: connect {zero} and {one} by a cable and run \
             'linerate verify ceiling' with {flags} and this profile"
        ));
    }
    again(testbed, profile, directions)
}

/// What is measured now, whatever is kept.
fn again(testbed: &Testbed, profile: &Profile, directions: Directions) -> Result<SelfTest, String> {
    let unknown = |error: anyhow::Error| format!("the tester's own ceiling is not known: {error:#}");
    let stop = stop::flag().map_err(unknown)?;
    let found = measure::measure(testbed, profile, directions, &stop).map_err(unknown)?;
    // Without a place to keep it, the next run measures it again.
    let _ = Kept::open().put(&key(testbed, profile, directions), &found);
    Ok(found)
}

/// Marks what comes near the tester's ceiling. Before that, in the lab, the ceiling is measured
/// anew: it may be of a time when the machine was slower. So it is where the run was faster or prompter
/// than the tester alone.
pub fn judge(record: &mut Record, testbed: &Testbed, profile: &Profile, directions: Directions) {
    if !mark(&mut record.clone()) && consistency::stale_self_test(record).is_none() {
        return;
    }
    if testbed.has_cable()
        && let Ok(found) = again(testbed, profile, directions)
    {
        record.tester.self_test = Some(found);
    }
    mark(record);
}

/// Marks the results that are near the ceiling in the record, and says whether there are any.
fn mark(record: &mut Record) -> bool {
    let Some(ceiling) = record.tester.self_test.as_ref().map(|found| found.ceiling_pps) else { return false };
    let is_near = |pps: f64, limit: LimitedBy| pps >= ceiling * NEAR && limit != LimitedBy::LineRate;
    let count = record.directions.len().max(1) as f64;
    let mut any = false;
    let mut set = |limit: &mut LimitedBy, near: bool| {
        if near {
            (*limit, any) = (LimitedBy::Tester, true);
        }
    };
    for direction in &mut record.directions {
        let near = is_near(direction.max_forwarded_pps, direction.limited_by);
        set(&mut direction.limited_by, near);
        for result in direction.results.values_mut() {
            let near = is_near(result.pps, result.limited_by);
            set(&mut result.limited_by, near);
        }
    }
    if let Some(Search { results, limited_by, .. }) = record.finding.search_mut() {
        for result in results.values_mut() {
            let near = is_near(result.pps / count, result.limited_by);
            set(&mut result.limited_by, near);
            if near && let Some(limit) = limited_by {
                *limit = LimitedBy::Tester;
            }
        }
    }
    if any {
        record.notes.push(format!(
            "near the tester's own ceiling of {} in each direction, measured without a device: the device may do more",
            human::pps(ceiling)
        ));
    }
    any
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;

    use super::*;

    fn record(ceiling_pps: f64) -> Record {
        let mut record = Scenario::default().record();
        record.tester.self_test = Some(SelfTest {
            measured: "2026-01-01T00:00:00Z".to_owned(),
            ceiling_pps,
            base_latency_min_ns: 3_000,
            base_latency_mean_ns: 9_000.0,
            base_latency_p50_ns: None,
        });
        record
    }

    #[test]
    fn what_comes_near_the_ceiling_is_the_tester_s_limit() {
        let forwarded = record(0.0).directions[0].max_forwarded_pps;
        let mut near = record(forwarded * 1.01);
        assert!(mark(&mut near));
        assert_eq!(near.directions[0].limited_by, LimitedBy::Tester);
        assert!(near.notes.last().unwrap().contains("the tester's own ceiling"), "{:?}", near.notes);

        let mut far = record(forwarded * 2.0);
        let before = far.clone();
        assert!(!mark(&mut far));
        assert!(far == before);
    }

    #[test]
    fn what_is_not_known_marks_nothing() {
        let mut record = record(1.0);
        record.tester.self_test = None;
        assert!(!mark(&mut record));
    }
}
