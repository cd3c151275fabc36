//! What the tests of RFC 2544 found: the records of one device at several frame sizes enter; one
//! table for each test leaves, a row for each size.

use results::Record;
use results::record::{Irregular, LimitedBy, Rfc2544};
use wire::human::{count, pps};
use wire::size;

use super::{Table, TableCell, TableRow};
use crate::figures::{duration, percent};
use crate::outcome::throughput_limited_by;

/// A column: what it is called, and its text for one size.
type Column = (&'static str, fn(&Record, &Rfc2544) -> Option<String>);

const THROUGHPUT: [Column; 5] = [
    ("theoretical", |_, test| Some(pps(test.theoretical_pps))),
    ("throughput", |_, test| Some(pps(test.throughput?.pps))),
    ("of theoretical", |_, test| Some(percent(test.throughput?.pps / test.theoretical_pps * 100.0))),
    ("L1", |record, test| {
        let l1 = size::pps_to_l1_bps(test.throughput?.pps, record.profile.mean_frame_size);
        Some(wire::human::bps(l1))
    }),
    ("limited by", |_, test| Some(throughput_limited_by(test.throughput?.limited_by).to_owned())),
];
const LATENCY: [Column; 3] = [
    ("at", |_, test| Some(pps(test.latency.as_ref()?.load_pps))),
    ("mean", |_, test| {
        let means: Vec<_> = test.latency.as_ref()?.mean_ns.iter().map(|mean| duration(*mean)).collect();
        Some(means.join(", "))
    }),
    ("streams", |_, test| {
        let latency = test.latency.as_ref()?;
        Some(format!("{} of {:.0} s", latency.streams.len(), latency.stream_s))
    }),
];
const BACK_TO_BACK: [Column; 6] = [
    ("burst", |_, test| Some(count(back_to_back(test)?.average.round() as u64))),
    ("shortest", |_, test| Some(count(back_to_back(test)?.min))),
    ("longest", |_, test| {
        let bursts = back_to_back(test)?;
        Some(format!("{}{}", if bursts.longest_passed { "≥" } else { "" }, count(bursts.max)))
    }),
    ("repeats", |_, test| Some(count(back_to_back(test)?.bursts.len() as u64))),
    ("implied buffer", |_, test| Some(duration(back_to_back(test)?.implied_buffer_s * 1e9))),
    ("corrected buffer", |_, test| Some(duration(back_to_back(test)?.corrected_buffer_s * 1e9))),
];
const RECOVERY: [Column; 4] = [
    ("overload", |_, test| Some(pps(test.recovery.as_ref()?.overload_pps))),
    ("then", |_, test| Some(pps(test.recovery.as_ref()?.reduced_pps))),
    ("recovery", |_, test| {
        let recovery = test.recovery.as_ref()?;
        Some(recovery.average_s.map_or_else(|| "never".to_owned(), |seconds| duration(seconds * 1e9)))
    }),
    ("repeats", |_, test| Some(count(test.recovery.as_ref()?.repeats.len() as u64))),
];
const RESET: [Column; 4] = [
    ("load", |_, test| Some(pps(test.reset.as_ref()?.load_pps))),
    ("lost", |_, test| Some(count(test.reset.as_ref()?.lost))),
    ("outage", |_, test| {
        let reset = test.reset.as_ref()?;
        Some(format!("{}{}", if reset.came_back { "" } else { "≥ " }, duration(reset.outage_s * 1e9)))
    }),
    ("back after", |_, test| {
        let reset = test.reset.as_ref()?;
        if !reset.came_back {
            return Some(format!("not within {}", duration(reset.watched_s * 1e9)));
        }
        reset.back_s.map(|seconds| duration(seconds * 1e9))
    }),
];

/// One that was really measured.
fn back_to_back(test: &Rfc2544) -> Option<&results::record::BackToBack> {
    test.back_to_back.as_ref().filter(|bursts| !bursts.bursts.is_empty())
}

/// One table for each test that was run at some size.
pub fn tables(records: &[&Record]) -> Vec<Table> {
    let tables = [
        table(records, "Throughput: the highest rate without loss, each direction (§26.1)", &THROUGHPUT),
        table(records, "Latency at the throughput, each direction (§26.2)", &LATENCY),
        table(records, "Back-to-back frames (§26.4, buffer times by RFC 9004)", &BACK_TO_BACK),
        table(records, "System recovery: from the overload's end to the last frame lost (§26.5)", &RECOVERY),
        table(records, "Reset (§26.6, by RFC 6201)", &RESET),
    ];
    tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn table(records: &[&Record], caption: &str, columns: &[Column]) -> Table {
    // The second column tells whether the test was run at all.
    let row = |record: &&Record| {
        let test = record.finding.rfc2544()?;
        let cells: Vec<_> = columns.iter().map(|(_, text)| text(record, test)).collect();
        cells.get(1).is_some_and(Option::is_some).then(|| TableRow {
            name: name(record),
            nested: false,
            cells: TableCell::all(
                cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned())),
                doubtful(test),
            ),
        })
    };
    Table {
        caption: caption.to_owned(),
        head: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
        rows: records.iter().filter_map(row).collect(),
    }
}

/// The frame size; of a sequence of sizes, the mean.
fn name(record: &Record) -> String {
    format!("{} B", record.profile.mean_frame_size.round())
}

/// Whether the throughput, which the other tests rest on, is not the device's limit to the width
/// asked for.
fn doubtful(test: &Rfc2544) -> bool {
    test.throughput.is_some_and(|found| {
        found.limited_by == LimitedBy::Tester
            || found.irregular.is_some_and(|why| why != Irregular::MaxLoadIsLowerBound)
    })
}

/// What the figures must not be taken for: each once, with the sizes that it is of if not of all.
pub fn remarks(records: &[&Record]) -> Vec<String> {
    let mut remarks: Vec<String> = Vec::new();
    let tests = || records.iter().filter_map(|record| record.finding.rfc2544());
    if tests().any(|test| test.quick) {
        remarks
            .push("not conformant to RFC 2544: quick, with shorter durations and fewer repeats".to_owned());
    }
    let not_run =
        tests().flat_map(|test| &test.not_run).map(|(name, why)| format!("{name} was not run: {why}"));
    let tester =
        tests().filter(|test| test.back_to_back.as_ref().is_some_and(|bursts| bursts.tester_limited));
    let tester = tester.map(|_| {
        "the tester could not send bursts at the theoretical rate: their length is unknown".to_owned()
    });
    let irregular = records.iter().filter_map(|record| {
        let why = record.finding.rfc2544()?.throughput?.irregular?;
        Some(format!("{}, throughput: {}", name(record), crate::search::meaning(why, false)))
    });
    for remark in not_run.chain(tester).chain(irregular) {
        if !remarks.contains(&remark) {
            remarks.push(remark);
        }
    }
    remarks
}

/// In what else the tests deviate from the RFCs, each once.
pub fn notes(records: &[&Record]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for deviation in
        records.iter().filter_map(|record| record.finding.rfc2544()).flat_map(|test| &test.deviations)
    {
        if !notes.contains(&deviation.text) {
            notes.push(deviation.text.clone());
        }
    }
    notes
}
