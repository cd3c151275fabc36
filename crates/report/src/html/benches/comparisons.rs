//! What repeats prove: judged cells enter; a table for each test (or for each device, where profiles are compared) with
//! a picture of each interval leaves.

use results::bench::Compare;
use stats::comparison::Verdict;

use super::{Look, look};
use crate::bench::{Bench, Contrast, Member};
use crate::comparison::Comparison;
use crate::judgement::{Compared, Judged, outlook, p, remarks, share, signed, verdict};

/// All devices beside the baseline in one test, or all profiles of a device.
pub struct Table<'a> {
    pub title: String,
    /// What its rows are: `Device` or `Profile`.
    pub of: &'static str,
    /// The baseline.
    pub reference: &'a str,
    /// How many comparisons p is corrected for, if it is.
    pub family: Option<usize>,
    pub rows: Vec<Row<'a>>,
    pub notes: Vec<String>,
    /// What the edges of the pictures stand for.
    pub reach: String,
    /// Where the band of what counts as equal begins, and how wide it is.
    pub band: (f64, f64),
    /// What that band is, like `±1 %`.
    pub equal: String,
}

/// One device or profile.
pub struct Row<'a> {
    pub name: &'a str,
    pub look: Look,
    pub verdict: String,
    /// `better`, `worse`, `alike` or `open`.
    pub class: &'static str,
    pub change: String,
    pub interval: String,
    pub ratio: String,
    pub ratio_interval: String,
    pub means: String,
    pub means_adjusted: String,
    pub ranks: String,
    pub signed_ranks: String,
    pub equality: String,
    pub shift: String,
    pub shift_interval: String,
    pub plot: Plot,
    pub outlook: Option<String>,
    pub remarks: Vec<String>,
    pub ministat: Option<String>,
}

/// The interval of a change below the single rounds, [`Plot::WIDTH`] pixels wide, with no change in its
/// middle.
pub struct Plot {
    /// Where the change stands.
    pub at: Option<f64>,
    /// From where to where its interval reaches.
    pub interval: Option<(f64, f64)>,
    /// Where each round stands, and what it says.
    pub rounds: Vec<(f64, String)>,
}

impl Plot {
    pub const WIDTH: f64 = 160.0;
    pub const MIDDLE: f64 = Self::WIDTH / 2.0;
    /// The furthest from the middle that something stands.
    const REACH: f64 = Self::MIDDLE - 6.0;
}

/// A table for all that is compared with the same cell.
pub fn tables<'a>(bench: &'a Bench<'a>, comparison: &Comparison) -> Vec<Table<'a>> {
    let tables = bench.contrasts().into_iter().map(|contrast| table(bench, &contrast, comparison));
    tables.filter(|table| !table.rows.is_empty()).collect()
}

fn table<'a>(bench: &'a Bench<'a>, contrast: &Contrast<'a, 'a>, comparison: &Comparison) -> Table<'a> {
    let what = bench.compared(contrast);
    // All pictures of a table have one scale, on which what counts as equal can be seen.
    let furthest = |(member, judged): (&Member, &Judged)| {
        let (low, high) = judged.comparison.interval.unwrap_or_default();
        let rounds = contrast.rounds(member).into_iter().map(|(_, change)| change);
        let all = rounds.chain([low, high, judged.comparison.change.unwrap_or_default()]);
        all.map(f64::abs).fold(0.0, f64::max)
    };
    let reach = contrast.judged().map(furthest).fold(what.equal_within * 2.0, f64::max);
    let pixels = |change: f64| Plot::MIDDLE + change / reach * Plot::REACH;
    let mut notes = Vec::new();
    if what.resolution > 0.0 {
        let off = share(what.resolution);
        notes.push(format!("The values themselves are known to {off}, which no repeats mend."));
    }
    Table {
        title: contrast.title.clone(),
        of: match bench.description.compare {
            Compare::Devices => "Device",
            Compare::Profiles => "Profile",
        },
        reference: contrast.reference.name,
        family: (what.family > 1).then_some(what.family),
        rows: contrast
            .judged()
            .map(|(member, judged)| Row {
                look: look(comparison, &member.cell.dut.name).unwrap_or_default(),
                ..row(bench, contrast, member, &what, judged, &pixels)
            })
            .collect(),
        notes,
        reach: signed(reach).trim_start_matches('+').to_owned(),
        band: (pixels(-what.equal_within), pixels(what.equal_within) - pixels(-what.equal_within)),
        equal: format!("±{}", share(what.equal_within)),
    }
}

fn row<'a>(
    bench: &Bench,
    contrast: &Contrast,
    member: &Member<'a, 'a>,
    what: &Compared,
    judged: &Judged,
    pixels: &impl Fn(f64) -> f64,
) -> Row<'a> {
    let found = &judged.comparison;
    let none = || "–".to_owned();
    let until = |(low, high): (f64, f64)| format!("{} to {}", signed(low), signed(high));
    let shift = found.shift.map_or_else(none, |(shift, _)| signed(shift));
    let shift_interval = found.shift.and_then(|(_, interval)| interval).map_or_else(String::new, until);
    Row {
        name: member.name,
        look: Look::default(),
        verdict: verdict(what, judged),
        class: match found.verdict {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Equal => "alike",
            Verdict::NotProven(_) => "open",
        },
        change: found.change.map_or_else(none, signed),
        interval: found.interval.map_or_else(String::new, until),
        ratio: judged.medians.map_or_else(none, |medians| format!("{:.4}", medians.ratio)),
        ratio_interval: judged.medians.map_or_else(String::new, |medians| {
            format!("{:.4} – {:.4}", medians.interval.0, medians.interval.1)
        }),
        means: p(found.t_p),
        means_adjusted: p(found.t_p_adjusted),
        ranks: p(found.rank_p),
        signed_ranks: found.signed_rank_p.map_or_else(none, p),
        equality: p(found.equality_p_adjusted),
        shift,
        shift_interval,
        plot: Plot {
            at: found.change.map(pixels),
            interval: found.interval.map(|(low, high)| (pixels(low), pixels(high))),
            rounds: contrast
                .rounds(member)
                .into_iter()
                .map(|(round, change)| (pixels(change), format!("round {round}: {}", signed(change))))
                .collect(),
        },
        outlook: outlook(judged),
        remarks: remarks(what, judged),
        ministat: bench.ministat(contrast, member),
    }
}
