//! A drawing of who sends through whom, and on which core: records enter; each arrangement that occurs leaves,
//! in the texts and places of an SVG.

use results::Record;
use results::record::Status;
use wire::human::bps;

use crate::evidence;

/// Longest texts in a box, in letters.
const IN_BOX: usize = 15;
const IN_CHIP: usize = 22;

/// One arrangement.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// The names of the ports.
    pub ports: [String; 2],
    /// What carries frames between port and device, like `veth`.
    pub link: String,
    /// The devices that stood there.
    pub devices: Vec<String>,
    /// The cores that generated.
    pub generator: String,
    /// What generated.
    pub engine: String,
    /// The device's core, if that is known.
    pub device_core: Option<usize>,
    /// The core that received, if that is known.
    pub receive_core: Option<usize>,
    /// Whether frames left both ports in some runs.
    pub bidirectional: bool,
    /// The line rate of each direction.
    pub line_rate: String,
    /// Runs of this arrangement.
    pub runs: usize,
}

impl Topology {
    /// All that occur, the most frequent first.
    pub fn all(records: &[Record]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for record in records {
            if record.finding.generator().is_some_and(|found| !found.across) {
                continue;
            }
            let found = Self::of(record);
            match all.iter_mut().find(|other| other.is_like(&found)) {
                Some(other) => other.add(found),
                None => all.push(found),
            }
        }
        all.sort_by_key(|topology| std::cmp::Reverse(topology.runs));
        all
    }

    fn of(record: &Record) -> Self {
        let tester = &record.tester;
        let port =
            |at: usize| tester.ports.get(at).map_or_else(|| format!("port {at}"), |it| it.name.clone());
        let driver = tester.ports.first().and_then(|port| port.driver.clone());
        let cores = tester.cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Self {
            ports: [port(0), port(1)],
            link: driver.unwrap_or_default(),
            devices: vec![record.device()],
            generator: cores,
            engine: tester.engine.clone(),
            device_core: record.dut.core,
            receive_core: tester.receive_core,
            bidirectional: record.profile.bidirectional,
            line_rate: bps(record.line_rate_bps),
            runs: 1,
        }
    }

    /// Whether only the devices differ.
    fn is_like(&self, other: &Self) -> bool {
        let same = |it: &Self| Self { devices: Vec::new(), bidirectional: false, runs: 0, ..it.clone() };
        same(self) == same(other)
    }

    fn add(&mut self, other: Self) {
        for device in other.devices {
            if !self.devices.contains(&device) {
                self.devices.push(device);
            }
        }
        self.bidirectional |= other.bidirectional;
        self.runs += 1;
    }

    /// What stands in the device's box below its title.
    pub fn device_lines(&self) -> Vec<String> {
        match self.devices.as_slice() {
            few if few.len() <= 2 => few.iter().map(|name| shortened(name, IN_BOX)).collect(),
            many => vec![format!("one of {}", many.len())],
        }
    }

    /// The port's name, if it says more than that it is the port.
    pub fn port_line(&self, at: usize) -> String {
        self.ports.get(at).map_or_else(String::new, |name| shortened(name, IN_BOX))
    }

    /// What generates, and where.
    pub fn generator_line(&self) -> String {
        let plural = if self.generator.contains(',') { "cores" } else { "core" };
        shortened(&format!("{plural} {}", self.generator), IN_CHIP)
    }

    /// Whether the receiver works on the device's core.
    pub fn shares_core(&self) -> bool {
        self.device_core.is_some() && self.device_core == self.receive_core
    }

    /// The arrangement in words, for those who do not see it.
    pub fn words(&self) -> String {
        let device = self.devices.join(" or ");
        let core = |core: Option<usize>| core.map_or_else(String::new, |core| format!(" on core {core}"));
        format!(
            "{} to {device} to {}; generator ({}) on {}, device{}, receiver{}",
            self.ports[0],
            self.ports[1],
            self.engine,
            self.generator_line(),
            core(self.device_core),
            core(self.receive_core),
        )
    }
}

/// `text`, cut where it is longer than `most` letters.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).collect::<String>() + "…"
}

/// Why each line rate is what it is, and how far the load rose.
pub fn line_rate_notes(records: &[Record]) -> Vec<String> {
    let mut rates: Vec<f64> = records.iter().map(|record| record.line_rate_bps).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    rates.into_iter().map(|rate| line_rate_note(rate, records)).collect()
}

fn line_rate_note(rate: f64, records: &[Record]) -> String {
    let of = || records.iter().filter(|record| record.line_rate_bps.total_cmp(&rate).is_eq());
    let is_virtual = |record: &Record| {
        let ports = &record.tester.ports;
        !ports.is_empty() && ports.iter().all(|port| port.driver.as_deref() == Some("veth"))
    };
    let why = if of().all(is_virtual) {
        " The lab's links are virtual and have no speed of their own. This one was chosen (--line-rate) so that \
         large frames reach it and small frames show the device's limit."
    } else {
        ""
    };
    let risen = of().filter(|record| record.status == Status::Complete && evidence::rises(record));
    let shares: Vec<f64> = risen.filter_map(top_share).collect();
    let rose = shares.iter().copied().reduce(f64::max).map_or_else(String::new, |most| {
        let least = shares.iter().copied().fold(most, f64::min);
        let from = if most - least < 0.005 { String::new() } else { format!("{:.0} to ", least * 100.0) };
        let clocks = if most < 0.999 {
            ": a real link at 100 % loses frames merely because the clocks at its ends differ"
        } else {
            ""
        };
        format!(" The load rose to {from}{:.0} % of it in each direction (--rate){clocks}.", most * 100.0)
    });
    format!("Line rate: {} each way, with the preamble and gap of each frame (L1).{why}{rose}", bps(rate))
}

/// The highest load that was asked for, as a share of line rate.
fn top_share(record: &Record) -> Option<f64> {
    let directions = record.samples.iter().flat_map(|sample| &sample.directions);
    let highest = directions.map(|direction| direction.intended_pps).reduce(f64::max)?;
    Some(wire::size::pps_to_l1_bps(highest, record.profile.mean_frame_size) / record.line_rate_bps)
}

#[cfg(test)]
mod tests {
    use results::fixtures::{Scenario, bench};

    use super::*;

    #[test]
    fn runs_of_one_arrangement_share_a_drawing() {
        let mut records = bench();
        let found = Topology::all(&records);
        assert_eq!((found.len(), found[0].runs, found[0].bidirectional), (1, 16, true));
        assert_eq!(found[0].device_lines(), ["linux-router", "xdp-router"]);
        assert!(found[0].shares_core());
        assert_eq!(
            found[0].words(),
            "lr-port0 to linux-router or xdp-router to lr-port1; generator (xdp) on core 0, device on core 1, \
             receiver on core 1"
        );
        records[3].tester.receive_core = Some(2);
        assert_eq!(Topology::all(&records).len(), 2);
    }

    #[test]
    fn the_line_rate_says_what_it_is() {
        let record = Scenario { target: 0.97, ..Scenario::default() }.record();
        let [note] = line_rate_notes(&[record.clone(), record.clone()]).try_into().unwrap();
        assert!(note.starts_with("Line rate: 2.50 Gbps each way"), "{note}");
        assert!(note.contains("virtual") && note.contains("97 % of it in each direction"), "{note}");
        let mut real = record;
        real.tester.ports[0].driver = Some("ixgbe".to_owned());
        assert!(!line_rate_notes(&[real])[0].contains("virtual"));
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(shortened("enp129s0f0np0v12", 15), "enp129s0f0np0v…");
        assert_eq!(shortened("eth1", 15), "eth1");
    }
}
