//! `linerate generator`: how fast a generator sends, ours or another program: its name and the size
//! of its datagrams enter; a record of what left and what arrived leaves.
//!
//! All are measured alike: each sends by the lab's port 0, on the generating core, and the kernel
//! counts packets at that port and at the other end of the cable. In user space they send through memory
//! that a sink of ours shares and counts, or onto a port that drops all, where they alone count. What a
//! program says it sent stands beside that. [`program`] knows the generators, [`programs`] runs one,
//! [`ground`] counts, [`engine`] makes it an engine.

mod datagram;
mod engine;
mod ground;
mod iperf3;
mod own;
mod program;
mod tcpreplay;
mod testpmd;
mod trafgen;
mod user_space;
mod xdp_trafficgen;

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use ::engine::{Engine, Load};
use anyhow::{Result, bail};
use monitor::Bounds;
use results::record;
use trial::{Conditions, Observer, Outcome, Saturate, WarmUp};
use wire::human;
use wording::usage::misuse;

use crate::args::{self, Device, Output};
use crate::run::{self, Labels, Sent, Strategy, parameters};
use crate::testbed::Testbed;
use crate::{Exit, stop};
use datagram::{Datagram, Way};
use engine::{Left, ProgramEngine};
use ground::{InLab, Started};
use program::{Chosen, Launch, Program, Target, Task};

/// How long the last packets are waited for.
const DRAIN: Duration = Duration::from_millis(500);
/// What a program may take to start beside what the flags say.
const START: Duration = Duration::from_secs(1);
/// More than this share refused or lost on the way means that the far end sets the limit.
const LOSS_THRESHOLD: f64 = 0.01;
/// The packets that a program says it sent may differ by this share from those counted.
const TOLERANCE: f64 = 0.01;

#[derive(clap::Args)]
pub struct Args {
    /// Which: linerate, iperf3, trafgen, tcpreplay, testpmd-af_packet, testpmd-af_xdp or xdp-trafficgen;
    /// in user space linerate-memif, linerate-null, testpmd-memif or testpmd-null
    #[arg(long, value_name = "NAME", default_value = "linerate")]
    program: Chosen,
    /// Bytes of UDP payload in each datagram; above 1472 it leaves in fragments
    #[arg(long, value_name = "BYTES", default_value = "18")]
    datagram: Datagram,
    #[command(flatten)]
    device: Device,
    /// How long it sends before it is measured
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = args::duration)]
    warm_up_duration: Duration,
    /// How long it is measured
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = args::duration)]
    duration: Duration,
    /// How long one sample is
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = args::duration)]
    step: Duration,
    #[command(flatten)]
    output: Output,
}

pub fn main(args: &Args) -> Result<Exit> {
    let program = args.program.0;
    let device = device(args)?;
    let stop = stop::flag()?;
    let mut generator = Generator {
        saturate: saturate(args),
        frames: program.frames(args.datagram),
        datagram: args.datagram,
    };
    generator.saturate.check().map_err(|refused| misuse(refused.to_string()))?;
    let given = args.output.labels()?;

    if let Some(refusal) = refusal(args) {
        bail!(refusal);
    }
    let mut testbed = Testbed::open(&device, datagram::MTU)?;
    let core = testbed.generating_cores().first().copied().unwrap_or(0);
    testbed.prepare()?;
    generator.saturate.conditions.line_rate_bps = testbed.line_rate_bps();
    let began = Instant::now();
    let Started { launch, ground, before } = start(args, &testbed, core)?;
    let mut engine =
        ProgramEngine::start(program.name(), (ground, before), core, generator.mean_frame_size(), &stop)?;
    stop::sleep(&stop, args.warm_up_duration);

    let test = format!("{} B", args.datagram);
    let name = args.output.name.clone().unwrap_or_else(|| format!("{} {test}", program.name()));
    let labels = Labels { name, test, given };
    let mut tester = testbed.describe_tester(&["none"; 2]);
    program.name().clone_into(&mut tester.engine);
    let sent = Sent { began, profile: generator.profile(), tester, notes: Vec::new() };
    let directory = &args.output.output;
    let (mut record, mut writer) = run::conduct(&testbed, &mut engine, sent, labels, &generator, directory)?;
    let found = generator.describe_program(program, launch, engine.finish()?);
    record.notes.push(note(&found));
    record.notes.extend(generator.note_fragments());
    record.generator = Some(found);
    writer.write(&record)?;
    run::show(&record, &args.output)?;
    Ok(run::ending(&record))
}

/// The device that the program sends to.
fn device(args: &Args) -> Result<Device> {
    let program = args.program.0;
    if args.device.ports.is_some() {
        return Err(misuse(
            "generators are measured in the lab, where both ends of the cable are counted: \
                           leave --ports out",
        ));
    }
    let device = args.device.or_dut(program.far_end())?;
    if program.target() != Target::Lab {
        return match &device.dut {
            Some(dut) if dut.name() != program.far_end() => {
                Err(misuse(format!("{} has a sink of its own: leave --dut {dut} out", program.name())))
            }
            _ => Ok(user_space::testbed(device, program)),
        };
    }
    match &device.dut {
        Some(dut) if program.far_end() != "sink" && dut.name() != program.far_end() => Err(misuse(format!(
            "{} needs a far end that answers: give --dut {}, not {dut}",
            program.name(),
            program.far_end()
        ))),
        _ => Ok(device),
    }
}

/// What keeps the program from being measured as `args` say: that it is not installed, does not run
/// here, or does not send such datagrams.
pub fn refusal(args: &Args) -> Option<String> {
    let online = lab::placement::online().unwrap_or_default();
    let core = args.device.cores.as_ref().unwrap_or(&online).first().copied().unwrap_or(0);
    program::refusal(args.program.0, args.datagram, core)
}

/// How long it takes by its flags.
pub fn planned(args: &Args) -> Duration {
    saturate(args).planned().saturating_add(args.warm_up_duration).saturating_add(START)
}

/// Full load without a low one first: programs have one load.
fn saturate(args: &Args) -> Saturate {
    Saturate {
        conditions: Conditions {
            warm_up: WarmUp { pps: 0.0, duration: Duration::ZERO },
            step: args.step,
            drain: DRAIN,
            loss_threshold: LOSS_THRESHOLD,
            line_rate_bps: args.device.line_rate.unwrap_or(crate::port::FALLBACK_LINE_RATE),
        },
        load: Load::Max,
        duration: args.duration,
    }
}

/// Starts the program on `core`.
fn start<'a>(args: &Args, testbed: &'a Testbed, core: usize) -> Result<Started<'a>> {
    let program = args.program.0;
    let Some(lab) = testbed.lab() else {
        let task = task(args, testbed, core, user_space::device(testbed));
        return user_space::start(program, &task, testbed);
    };
    InLab::start(program.launch(&task(args, testbed, core, String::new())), lab, core)
}

fn task<'a>(args: &Args, testbed: &'a Testbed, core: usize, device: String) -> Task<'a> {
    let [port, _] = testbed.ports();
    // In user space nobody looks at addresses: those of the lab's plan, RFC 2544's.
    let link = testbed.lab().map_or([Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 19, 0, 1)], |lab| {
        lab.first_link().map(|address| match address {
            IpAddr::V4(v4) => v4,
            IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
        })
    });
    let way = Way { source: (port.mac, link[0]), destination: (port.next_hop_mac, link[1]) };
    let longest = planned(args).saturating_add(Duration::from_secs(60));
    Task { datagram: args.datagram, port, way, core, device, seconds: longest.as_secs() }
}

/// The measurement of one generator.
struct Generator {
    saturate: Saturate,
    datagram: Datagram,
    /// The sizes of the frames that a datagram leaves in.
    frames: Vec<u16>,
}

impl Generator {
    fn mean_frame_size(&self) -> f64 {
        let sizes: Vec<(u16, u64)> = self.frames.iter().map(|size| (*size, 1)).collect();
        wire::size::mean(&sizes)
    }

    fn profile(&self) -> record::Profile {
        record::Profile {
            name: "udp".to_owned(),
            tunables: parameters([("datagram", self.datagram.to_string())]),
            bidirectional: false,
            mean_frame_size: self.mean_frame_size(),
            flows: 1,
            rows: self.frames.len() as u64,
            period: self.frames.len() as u64,
            source: None,
        }
    }

    fn describe_program(&self, program: &dyn Program, launch: Launch, left: Left) -> record::Generator {
        record::Generator {
            program: program.name().to_owned(),
            version: program::version(program),
            command: launch.words,
            input: launch.input.map(|input| input.description),
            datagram: self.datagram.payload(),
            frames: self.frames.clone(),
            said: program.said(&left.said, self.frames.len() as u64),
            left: left.left,
            refused: left.refused,
            core_busy: left.core_busy,
        }
    }

    fn note_fragments(&self) -> Option<String> {
        (self.frames.len() > 1).then(|| {
            format!(
                "rates are of packets: each datagram of {} bytes leaves in {}",
                self.datagram,
                self.frames.len()
            )
        })
    }
}

impl Strategy for Generator {
    fn describe(&self) -> record::Strategy {
        let own = [
            ("duration", format!("{:?}", self.saturate.duration)),
            ("step", format!("{:?}", self.saturate.conditions.step)),
        ];
        record::Strategy {
            name: "generator".to_owned(),
            parameters: parameters(own),
            loss_threshold: LOSS_THRESHOLD,
        }
    }

    fn planned(&self) -> Duration {
        self.saturate.planned()
    }

    fn run(&self, engine: &mut dyn Engine, observer: &mut dyn Observer) -> Outcome {
        self.saturate.run(engine, observer)
    }

    /// The program itself is other work than ours, and keeps its core to itself.
    fn bounds(&self) -> Bounds {
        Bounds { other_work: 1.0, waited: 1.0, speed: 1.0, wake_delay: Duration::MAX, ..Bounds::default() }
    }
}

/// What the program says beside what the kernel counted.
fn note(found: &record::Generator) -> String {
    let refused = match found.refused {
        0 => String::new(),
        some => format!(", and a full queue refused {}", human::count(some)),
    };
    let counted = format!("{} left its port{refused}", human::count(found.left));
    let Some(said) = found.said else {
        return format!("{} does not say how many packets it sent; {counted}", found.program);
    };
    let share = |frames: u64, by: f64| (frames as f64 * by) as u64;
    let agreed = share(found.left, 1.0 - TOLERANCE)..=share(found.left + found.refused, 1.0 + TOLERANCE);
    format!(
        "{} {} says that it sent {} packets; {counted}: {}",
        found.program,
        found.version,
        human::count(said),
        if agreed.contains(&said) { "they agree" } else { "they disagree" }
    )
}
