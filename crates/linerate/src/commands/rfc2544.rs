//! `linerate rfc2544`: the benchmarking tests of RFC 2544 at each frame size.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use engine::xdp;
use results::Record;
use results::record::{Deviation, Status};
use testbed::Testbed;
use testbed::progress::colour;
use testbed::run::{Labels, Traffic as Sent};
use testbed::stop;
use traffic::rfc2544::{FrameSizes, Networks, Test as Traffic};
use traffic::{Directions, Genome, IpVersion};
use trial::Strategy as _;
use trial::rfc2544::{Rfc2544, Test, Timing};
use wire::{human, size};
use wording::usage::misuse;

use crate::args::{Device, Output};
use crate::live::{Live, Showing};
use crate::{Exit, run};

/// The frame sizes of RFC 2544, section 9.1, for Ethernet. RFC 5180 section 5.1.1 asks for
/// the same.
const SIZES: [u16; 7] = [64, 128, 256, 512, 1024, 1280, 1518];
/// Bytes of a frame that its MTU does not count.
const OVERHEAD: u16 = 18;

#[derive(clap::Args)]
#[command(next_help_heading = "Traffic")]
pub struct Args {
    /// Frame sizes in bytes with FCS, or IMIX genomes (RFC 6985) such as imix:aaabbg; a genome is
    /// one sequence: a=64 b=128 c=256 d=512 e=1024 f=1280 g=1518 h=2112 i=9000 j=16000, z is the
    /// MTU's [default: 64,128,256,512,1024,1280,1518; over IPv6 the least that fits for 64]
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',')]
    sizes: Vec<Size>,
    /// The MTU that the letter z of a genome stands for
    #[arg(long, value_name = "BYTES", default_value = "1500", value_parser = clap::value_parser!(u16).range(46..=9198))]
    mtu: u16,
    /// How many networks frames go to: 1 or 256, from 198.18.0.2 behind port 0 to 198.19.0.2 or
    /// 198.19.0.2 … 198.19.255.2 behind port 1 (IPv6: 2001:2:0:16::2 to 2001:2:0:48::2, …)
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = networks)]
    networks: Networks,
    /// IP version
    #[arg(long, default_value = "4")]
    ip: IpVersion,
    /// Draw ports pseudorandomly (RFC 4814), so that the device sees many flows
    #[arg(long)]
    random_ports: bool,
    /// Load both directions at once
    #[arg(long, short)]
    bidirectional: bool,
    #[command(flatten)]
    device: Device,
    /// Resets your device for the reset test; run by sh. Devices of the lab need none: their
    /// interfaces are taken down and up
    #[arg(long, value_name = "COMMAND", requires = "ports")]
    reset_command: Option<String>,
    /// The tests: throughput, latency, loss, back-to-back, recovery, reset [default: all]
    #[arg(long, value_name = "TEST,…", value_delimiter = ',', help_heading = "Measurement")]
    tests: Vec<Test>,
    /// Short trials and few repeats, in less than half a minute a size: the result does not conform
    /// to RFC 2544, and says so
    #[arg(long, help_heading = "Measurement")]
    quick: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    live: Live,
}

/// A frame size as the command line has it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Size {
    Bytes(u16),
    Imix(Genome),
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(genome) = text.strip_prefix("imix:") {
            return genome
                .parse()
                .map(Self::Imix)
                .map_err(|error: traffic::genome::GenomeError| error.to_string());
        }
        match text.parse() {
            Ok(bytes @ size::MIN..=size::MAX) => Ok(Self::Bytes(bytes)),
            _ => Err(format!(
                "'{text}' is no frame size: write {} to {} bytes (FCS included), or a mix as an RFC 6985 genome, for example imix:aaafg",
                size::MIN,
                size::MAX
            )),
        }
    }
}

fn networks(text: &str) -> Result<Networks, String> {
    match text {
        "1" => Ok(Networks::One),
        "256" => Ok(Networks::Many),
        _ => Err(format!("'{text}' networks are not what RFC 2544 section 12 asks for: write 1 or 256")),
    }
}

pub fn main(args: &Args) -> Result<Exit> {
    args.output.labels()?;
    let traffic = args.traffic()?;
    let profiles = traffic.iter().map(|test| test.profile().map_err(|error| misuse(error.to_string())));
    let profiles: Vec<traffic::Profile> = profiles.collect::<Result<_>>()?;
    let stop = stop::flag()?;
    let largest = profiles.iter().map(traffic::Profile::largest_size).max().unwrap_or(size::MIN);
    let showing = args.live.start()?;
    let mut testbed = Testbed::open(&args.output.metered(args.device.target()?), usize::from(largest))?;
    testbed.show_on(showing.as_ref().map(Showing::board));
    testbed.reset_by(args.reset_command.clone());
    let deviations = args.deviations(&testbed);
    let directions = args.directions();
    let strategies: Vec<Rfc2544> = profiles
        .iter()
        .map(|profile| {
            let mean = profile.table(&testbed.endpoints(), directions).mean_frame_size();
            args.strategy(mean, testbed.line_rate_bps(), deviations.clone())
        })
        .collect::<Result<_>>()?;
    args.announce(&strategies);
    testbed.prepare()?;

    let mut records = Vec::new();
    for (number, (profile, strategy)) in profiles.iter().zip(&strategies).enumerate() {
        if stop::is_set(&stop) {
            break;
        }
        let record = one(args, &mut testbed, profile, strategy, &stop)?;
        eprintln!("[{}/{}] {}", number + 1, profiles.len(), summary(&record));
        records.push(record);
    }
    eprintln!("\n{}", report::terminal::rfc2544(&records, colour()));
    eprintln!("records: {}", args.output.runs.display());
    if args.output.json {
        println!("{}", serde_json::to_string_pretty(&records)?);
    }
    let complete = records.len() == profiles.len();
    let complete = complete && records.iter().all(|record| record.status == Status::Complete);
    Ok(if complete { Exit::Done } else { Exit::Failed })
}

/// All tests at one size.
fn one(
    args: &Args,
    testbed: &mut Testbed,
    profile: &traffic::Profile,
    strategy: &Rfc2544,
    stop: &Arc<AtomicBool>,
) -> Result<Record> {
    let test = args.label(profile);
    let name = match &args.output.name {
        Some(name) => format!("{name} {}", size_label(profile)),
        None => format!("{} {test}", testbed.dut_name()),
    };
    let labels = Labels { name, test, given: args.output.labels()? };
    let sent = Sent::new(testbed, profile, args.directions());
    testbed::run::run(testbed, &sent, labels, strategy, &args.output.runs, stop)
}

/// A finished size in one line.
fn summary(record: &Record) -> String {
    let throughput = record.finding.rfc2544().and_then(|found| found.throughput);
    let found = match (throughput, &record.reason) {
        (_, Some(reason)) => reason.clone(),
        (Some(throughput), None) => format!("throughput {}", human::pps(throughput.pps)),
        (None, None) => "done".to_owned(),
    };
    format!("{}: {found} ({:.0} s)", record.name, record.elapsed_s)
}

fn size_label(profile: &traffic::Profile) -> String {
    let size = profile.tunables().get("size").map_or("", String::as_str);
    if size.bytes().all(|byte| byte.is_ascii_digit()) { format!("{size} B") } else { size.to_owned() }
}

impl Args {
    fn directions(&self) -> Directions {
        if self.bidirectional { Directions::Both } else { Directions::Forward }
    }

    /// What to send at each size.
    fn traffic(&self) -> Result<Vec<Traffic>> {
        let smallest = Traffic::smallest(self.ip);
        let sizes = if self.sizes.is_empty() {
            SIZES.map(|size| Size::Bytes(size.max(smallest))).to_vec()
        } else {
            self.sizes.clone()
        };
        sizes.into_iter().map(|size| self.traffic_of(size)).collect()
    }

    fn traffic_of(&self, size: Size) -> Result<Traffic> {
        let mtu_size = self.mtu + OVERHEAD;
        let sizes = match size {
            Size::Bytes(bytes) => FrameSizes::One(bytes),
            Size::Imix(genome) => {
                if let Some((letter, size)) = genome.too_large(mtu_size, xdp::MAX_FRAME) {
                    return Err(misuse(format!(
                        "letter {letter} of imix:{genome} is a frame of {size} bytes: the xdp engine sends at most {} bytes; leave the letter out",
                        xdp::MAX_FRAME
                    )));
                }
                FrameSizes::Imix(genome, mtu_size)
            }
        };
        let Self { networks, ip, random_ports, .. } = *self;
        Ok(Traffic { sizes, networks, ip, random_ports })
    }

    fn strategy(&self, frame_size: f64, line_rate_bps: f64, deviations: Vec<Deviation>) -> Result<Rfc2544> {
        let tests = if self.tests.is_empty() { Test::ALL.to_vec() } else { self.tests.clone() };
        let theoretical_pps = size::l1_bps_to_pps(line_rate_bps, frame_size);
        let strategy = Rfc2544 {
            tests: tests.into_iter().collect(),
            timing: if self.quick { Timing::quick() } else { Timing::standard() },
            frame_size,
            line_rate_bps,
            min_pps: (theoretical_pps / 1000.0).clamp(10.0, 1000.0),
            deviations,
        };
        run::check(&strategy)?;
        Ok(strategy)
    }

    /// In what the traffic and the testbed deviate from the RFCs.
    fn deviations(&self, testbed: &Testbed) -> Vec<Deviation> {
        let mut found = Vec::new();
        let mut add = |name: &str, text: &str| {
            found.push(Deviation { name: name.to_owned(), text: text.to_owned() });
        };
        let smallest = Traffic::smallest(self.ip);
        if smallest > size::MIN {
            let text = format!(
                "{smallest} bytes are the least that hold the headers and the signature: no frames of 64 bytes (RFC 5180 section 5.1.1)"
            );
            add("no-smallest-size", &text);
        }
        let asked = |size: u16| self.sizes.contains(&Size::Bytes(size.max(smallest)));
        if !(self.sizes.is_empty() || SIZES.into_iter().all(asked)) {
            add("not-all-sizes", "not all frame sizes of RFC 2544 section 9.1 were asked for");
        }
        if self.networks == Networks::Many {
            add(
                "networks-in-turn",
                "destinations are in the 256 networks in turn, not at random (RFC 2544 section 12)",
            );
            if testbed.lab().is_some() {
                add(
                    "one-route",
                    "one route leads to all 256 destination networks, not one to each (RFC 2544 section 13)",
                );
            }
        }
        let asks_for = |test| self.tests.is_empty() || self.tests.contains(&test);
        if self.ip == IpVersion::V6 && asks_for(Test::BackToBack) {
            add(
                "bursts-over-ipv6",
                "back-to-back frames are no longer recommended over IPv6 (RFC 5180 section 7.4)",
            );
        }
        if self.ip == IpVersion::V6 && !self.bidirectional {
            add("one-direction", "one direction is loaded, not both at once (RFC 5180 section 5.4)");
        }
        if asks_for(Test::Reset) {
            match &self.reset_command {
                Some(command) => add(
                    "reset-by-command",
                    &format!("the reset is what '{command}' does (RFC 2544 section 26.6)"),
                ),
                None if testbed.lab().is_some() => add(
                    "reset-of-interfaces",
                    "the reset takes the device's interfaces down and up, nothing else (RFC 2544 section 26.6)",
                ),
                None => {}
            }
        }
        found
    }

    /// Says what will be done, and how long it takes at most.
    fn announce(&self, strategies: &[Rfc2544]) {
        let planned: Duration = strategies.iter().map(Rfc2544::planned).sum();
        let minutes = Duration::from_secs(planned.as_secs().next_multiple_of(60));
        eprintln!(
            "RFC 2544: {} test(s) at {} frame size(s), at most {}; line rate {}{}",
            strategies.first().map_or(0, |strategy| strategy.tests.len()),
            strategies.len(),
            humantime::format_duration(minutes),
            human::bps(strategies.first().map_or(0.0, |strategy| strategy.line_rate_bps)),
            if self.quick { "; quick, so not conformant" } else { "" }
        );
    }

    /// What reports compare a run under.
    fn label(&self, profile: &traffic::Profile) -> String {
        let size = size_label(profile);
        let mut label = format!("rfc2544 {size}");
        if size.contains('z') {
            // RFC 6985 section 4 asks for it.
            label += &format!(" MTU {}", self.mtu);
        }
        let parts = [
            (self.networks == Networks::Many, " 256 networks"),
            (self.ip == IpVersion::V6, " IPv6"),
            (self.random_ports, " random ports"),
            (self.bidirectional, " bidirectional"),
            (self.quick, " quick"),
        ];
        label.extend(parts.into_iter().filter(|(applies, _)| *applies).map(|(_, part)| part));
        label
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parse(line: &str) -> Result<Args, String> {
        let words = std::iter::once("rfc2544").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.args).map_err(|error| error.to_string())
    }

    fn sizes(line: &str) -> Vec<String> {
        parse(line).unwrap().traffic().unwrap().iter().map(|traffic| traffic.sizes.to_string()).collect()
    }

    #[test]
    fn sizes_are_those_of_the_rfcs_unless_others_are_asked_for() {
        assert_eq!(sizes(""), ["64", "128", "256", "512", "1024", "1280", "1518"]);
        assert_eq!(sizes("--ip 6"), ["84", "128", "256", "512", "1024", "1280", "1518"]);
        assert_eq!(sizes("--sizes 64,imix:aaabbz,1518"), ["64", "imix:aaabbz", "1518"]);
    }

    #[test]
    fn what_cannot_be_tested_is_refused_with_a_reason() {
        let refused = |line| parse(line).err().unwrap();
        assert!(refused("--sizes 63").contains("is no frame size"));
        assert!(refused("--sizes imix:ak").contains("'k' is no letter"));
        assert!(refused("--networks 2").contains("write 1 or 256"));
        assert!(refused("--tests speed").contains("they are throughput, latency"));
        assert!(refused("--reset-command reboot").contains("--ports"));
        let large = parse("--sizes imix:aj").unwrap().traffic().unwrap_err().to_string();
        assert!(large.contains("letter j of imix:aj is a frame of 16000 bytes"), "{large}");
    }

    #[test]
    fn labels_say_what_was_asked_for() {
        let label = |line: &str| {
            let args = parse(line).unwrap();
            args.label(&args.traffic().unwrap()[0].profile().unwrap())
        };
        assert_eq!(label("--sizes 128"), "rfc2544 128 B");
        assert_eq!(label("--sizes imix:aaz --mtu 1400"), "rfc2544 imix:aaz MTU 1400");
        assert_eq!(
            label("--quick -b --networks 256 --sizes imix:ab --ip 4"),
            "rfc2544 imix:ab 256 networks bidirectional quick"
        );
    }
}
