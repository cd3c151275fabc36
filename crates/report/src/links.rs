//! What results are worth as bandwidth, since people buy links, not packets: a record, or a cell of a
//! bench, enters; what its rate is as simple IMIX and which links it fills leave, in the words that the
//! terminal, the page and Markdown share.

use explain::links::{Frames, Worth};
use results::Record;
use results::record::{LatencyTest, Soak};
use wire::human::{bps, pps};
use wire::size;

use crate::bench::{Bench, Cell, Test};
use crate::outcome::{Kind, Outcome};

/// What each cell of a row is, behind what the row is of.
pub const HEAD: [&str; 5] = ["rate", "as IMIX", "line rate at 64 B", "at its own size", "with IMIX"];
/// What tables of rows are.
pub const CAPTION: &str = "IMIX-equivalent bandwidth (7:4:1), and the fastest Ethernet speed this packet rate \
                           saturates (per direction)";

/// What the rate of a result is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Links {
    /// Which rate of the result it is, in words.
    rate: String,
    worth: Worth,
}

/// One cell of a bench in a table of all.
pub struct Row<'a> {
    /// The device.
    pub device: &'a str,
    /// What was sent, and which way.
    pub test: &'a Test<'a>,
    /// What stands below [`HEAD`].
    pub cells: [String; HEAD.len()],
}

impl Row<'_> {
    /// The cell's name.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.device, self.test.name())
    }
}

impl Links {
    /// What the rate that `record` found is worth, of a search that of the first goal; `None` if it found
    /// none.
    #[must_use]
    pub fn of(record: &Record) -> Option<Self> {
        Self::of_outcome(&Outcome::new(record))
    }

    /// The same of one of the things that a run found.
    pub(crate) fn of_outcome(run: &Outcome) -> Option<Self> {
        let record = run.record;
        // A cost is taken at three loads, too few to tell a rate without loss from.
        let lossless =
            run.limit_pps > 0.0 && record.finding.cost().is_none() && record.finding.generator().is_none();
        let (rate, found) = match (Kind::of(record), &run.goal) {
            (Kind::Latency, _) => latency(record.finding.latency()?, record.directions.len()),
            (Kind::Soak, _) => ("the rate that came back", soak(record.finding.soak()?)),
            // Which loads were tried says nothing of the device.
            (Kind::Stall | Kind::Waterfall, _) => return None,
            (Kind::Rfc2544 | Kind::Search, _) if !run.has_figures => return None,
            (Kind::Rfc2544, _) => ("the throughput", run.limit_pps),
            (Kind::Search, Some(goal)) => return Self::new(&format!("the {goal}"), run.limit_pps, record),
            (Kind::Curves | Kind::Search, _) if lossless => {
                ("the max rate within the loss threshold", run.limit_pps)
            }
            (Kind::Curves | Kind::Search, _) => ("the highest rate that came back", run.forwarded_pps),
        };
        Self::new(rate, found, record)
    }

    /// What the median of `cell` is worth, or, where the bench compares no rates, what the run in the middle
    /// is.
    #[must_use]
    pub fn of_cell(bench: &Bench, cell: &Cell) -> Option<Self> {
        let record = cell.median_run()?.record;
        match bench.metric.is_rate() {
            true => Self::new("the median", bench.spread(cell)?.median, record),
            false => Self::of(record),
        }
    }

    fn new(rate: &str, pps: f64, record: &Record) -> Option<Self> {
        let worth = Worth::new(pps, record.directions.len(), record.profile.mean_frame_size);
        (pps.is_finite() && pps > 0.0).then(|| Self { rate: rate.to_owned(), worth })
    }

    /// The bandwidth of as many packets of simple IMIX, in bits a second.
    #[must_use]
    pub fn imix_bps(&self) -> f64 {
        self.worth.imix_bps
    }

    /// The same, for people.
    #[must_use]
    pub fn imix(&self) -> String {
        bps(self.worth.imix_bps)
    }

    /// The cells of a row of a table.
    #[must_use]
    pub fn cells(&self) -> [String; HEAD.len()] {
        let [smallest, own, imix] = self.worth.fills.map(|(_, filled)| link(filled));
        [pps(self.worth.pps), self.imix(), smallest, own, imix]
    }

    /// All of it as names and values.
    #[must_use]
    pub fn pairs(&self) -> Vec<(String, String)> {
        let mut pairs = vec![
            (self.rate.clone(), pps(self.worth.pps)),
            ("as simple IMIX (7:4:1)".to_owned(), self.imix()),
        ];
        pairs.push(("line rate sustained".to_owned(), self.way().to_owned()));
        pairs.extend(self.fills());
        pairs
    }

    /// All of it in a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let links: Vec<String> = self.fills().map(|(frames, link)| format!("{link} {frames}")).collect();
        format!(
            "{}, {} ≈ {} of simple IMIX (7:4:1); {} it sustains line rate on: {}",
            self.rate,
            pps(self.worth.pps),
            self.imix(),
            self.way(),
            links.join(", ")
        )
    }

    /// Which links are filled by which frames, each once.
    fn fills(&self) -> impl Iterator<Item = (String, String)> {
        let fills = self.worth.fills.into_iter();
        let others = fills.filter(|(frames, _)| !matches!(frames, Frames::Own(size) if smallest(*size)));
        others.map(|(frames, filled)| (name(frames), link(filled)))
    }

    fn way(&self) -> &'static str {
        if self.worth.directions > 1 { "in both directions at once" } else { "in one direction" }
    }
}

/// The cells of `bench` that have a rate, test by test.
#[must_use]
pub fn rows<'a>(bench: &'a Bench<'a>) -> Vec<Row<'a>> {
    let cells = bench.tests.iter().flat_map(|test| test.cells.iter().map(move |cell| (test, cell)));
    let row = |(test, cell): (&'a Test<'a>, &'a Cell<'a>)| {
        let mut cells = Links::of_cell(bench, cell)?.cells();
        // As in the matrix; the reasons stand beside it.
        if !cell.doubts().is_empty() {
            cells[0].push_str(" ~");
        }
        Some(Row { device: &cell.dut.name, test, cells })
    };
    cells.filter_map(row).collect()
}

/// Whether frames of `size` bytes are the smallest that there are.
fn smallest(size: f64) -> bool {
    size <= f64::from(size::MIN)
}

fn name(frames: Frames) -> String {
    match frames {
        Frames::Smallest => format!("with {}-byte frames", size::MIN),
        Frames::Own(size) => format!("with {}-byte frames", size.round()),
        Frames::Imix => "with IMIX".to_owned(),
    }
}

/// A link as it is sold: without zeros behind the point.
fn link(filled: Option<f64>) -> String {
    match filled {
        None => "less than 100 Mbps".to_owned(),
        Some(speed) if speed < 1e9 => format!("{} Mbps", speed / 1e6),
        Some(speed) => format!("{} Gbps", speed / 1e9),
    }
}

/// The load that shares refer to, else the highest that was offered: what came back of it.
fn latency(test: &LatencyTest, directions: usize) -> (&'static str, f64) {
    match test.reference_pps {
        Some(each) => ("the load that 100 % stands for", each * directions.max(1) as f64),
        None => {
            let highest = test.loads.iter().max_by(|a, b| a.load_pps.total_cmp(&b.load_pps));
            let seen = highest.into_iter().flat_map(|load| &load.directions);
            ("what came back of the highest load", seen.map(|d| d.offered_pps * (1.0 - d.loss_ratio)).sum())
        }
    }
}

/// What came back a second, directions added up.
fn soak(soak: &Soak) -> f64 {
    let came_back = soak.directions.iter().map(|direction| direction.offered.saturating_sub(direction.lost));
    came_back.sum::<u64>() as f64 / soak.duration_s
}

#[cfg(test)]
mod tests {
    use results::fixtures::{Scenario, searches};
    use results::record::Finding;

    use super::*;

    fn sentence(record: &Record) -> String {
        Links::of(record).unwrap().sentence()
    }

    #[test]
    fn the_links_are_those_that_are_sold() {
        let record = Scenario { frame_size: 1514.0, ..Scenario::default() }.record();
        let links = Links::new("the median", 1.1e6, &record).unwrap();
        assert_eq!(
            links.sentence(),
            "the median, 1.10 Mpps ≈ 3.12 Gbps of simple IMIX (7:4:1); in one direction it sustains line rate on: \
             100 Mbps with 64-byte frames, 10 Gbps with 1514-byte frames, 2.5 Gbps with IMIX"
        );
        assert_eq!(links.cells(), ["1.10 Mpps", "3.12 Gbps", "100 Mbps", "10 Gbps", "2.5 Gbps"]);
        assert!(Links::new("", 1.0, &record).unwrap().sentence().contains("less than 100 Mbps with IMIX"));
        assert_eq!(Links::new("", 0.0, &record), None);
    }

    #[test]
    fn both_directions_fill_a_link_in_both() {
        let record = Scenario { bidirectional: true, ..Scenario::default() }.record();
        let links = Links::new("the median", 7.1e6, &record).unwrap();
        assert_eq!(
            links.sentence(),
            "the median, 7.10 Mpps ≈ 20.13 Gbps of simple IMIX (7:4:1); in both directions at once it sustains line \
             rate on: 1 Gbps with 64-byte frames, 10 Gbps with IMIX"
        );
    }

    #[test]
    fn every_strategy_has_a_rate() {
        let scenario = Scenario::default();
        let ramp = scenario.record();
        let lossless: f64 = ramp.directions.iter().map(|direction| direction.max_rate_pps).sum();
        assert!(
            sentence(&ramp)
                .starts_with(&format!("the max rate within the loss threshold, {}", pps(lossless)))
        );
        let search = searches().remove(0);
        let passed = Outcome::new(&search).limit_pps;
        assert!(sentence(&search).starts_with(&format!("the ndr, {}", pps(passed))));

        let mut latency = scenario.latency_test();
        let reference = latency.finding.latency().unwrap().reference_pps.unwrap();
        let told = sentence(&latency);
        assert!(told.starts_with(&format!("the load that 100 % stands for, {}", pps(reference))), "{told}");
        let Finding::Latency(Some(test), _) = &mut latency.finding else { panic!("no latency test") };
        test.reference_pps = None;
        let highest = test.loads.iter().map(|load| load.load_pps).fold(0.0, f64::max);
        let links = Links::of(&latency).unwrap();
        assert!(links.worth.pps > 0.5 * highest && links.worth.pps <= 1.01 * highest, "{links:?}");

        let soak = scenario.eventful_soak();
        let links = Links::of(&soak).unwrap();
        let load = soak.finding.soak().unwrap().load_pps;
        assert!(links.worth.pps > 0.2 * load && links.worth.pps <= 1.01 * load, "{links:?} of {load}");
        let failed = Scenario { interrupted_at: Some(0), ..Scenario::default() }.record();
        assert_eq!(Links::of(&failed), None);
    }
}
