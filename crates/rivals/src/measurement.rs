//! One generator: its name and the size of its datagrams enter; a record of what left and what arrived leaves.
//!
//! All are measured alike: each sends by the lab's port 0, on the generating core, and the kernel
//! counts packets at that port and at the other end of the cable, or, across a device, at port 1 behind it. In user space they send through memory
//! that Linerate's own sink shares and counts, or onto a port that drops all, where they alone count. What a
//! program says it sent stands beside that. [`crate::known`] has the generators, [`programs`] runs one,
//! [`crate::ground`] counts, [`crate::engine`] makes it an engine.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::{Duration, Instant};

use ::engine::{Engine, Load};
use anyhow::{Result, bail};
use monitor::Bounds;
use results::record::{self, Finding};
use testbed::Testbed;
use testbed::run::{self, Labels, Sent};
use testbed::stop;
use testbed::target::Place;
use trial::strategy::parameters;
use trial::{Conditions, Failure, Observer, Outcome, Saturate, Strategy, WarmUp};
use wire::human;
use wording::usage::misuse;

use crate::across::{Across, NOTHING_COMES_OUT};
use crate::datagram::{self, Datagram, Way};
use crate::engine::{Left, ProgramEngine};
use crate::ground::{AtInterface, Started};
use crate::known::{self, Chosen};
use crate::program::{self, Launch, Program, Target, Task};
use crate::{user_space, waterfall};

/// How long the last packets are waited for.
const DRAIN: Duration = Duration::from_millis(500);
/// What a program may take to start beside what the flags say.
const START: Duration = Duration::from_secs(1);
/// More than this share refused or lost on the way means that the far end sets the limit.
const LOSS_THRESHOLD: f64 = 0.01;
/// What the last step of a waterfall is called: the kernel sends.
const LAST_STEP: &str = "xdp";
/// The packets that a program says it sent may differ by this share from those counted.
const TOLERANCE: f64 = 0.01;

/// What is measured of a generator, and how.
pub struct Measurement {
    /// The generator.
    pub program: Chosen,
    /// The UDP payload of each datagram.
    pub datagram: Datagram,
    /// Where it sends.
    pub target: testbed::target::Target,
    /// Whether it sends through the device there to port 1, instead of to it.
    pub across: bool,
    /// How long it sends before it is measured.
    pub warm_up: Duration,
    /// How long it is measured.
    pub duration: Duration,
    /// How long one sample is.
    pub step: Duration,
    /// What the record has beside it.
    pub beside: Beside,
}

/// What was measured before, and belongs into the same record.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// The steps before this one, which is the last.
    pub steps: Vec<record::WaterfallStep>,
    /// Frames that were built and not sent.
    pub built: Vec<record::BuiltFrames>,
    /// What a reader should know of them.
    pub notes: Vec<String>,
}

impl Measurement {
    /// Measures, and keeps the record in `directory`, called `name` or after the program, with the labels `given`.
    ///
    /// # Errors
    /// What keeps it from being measured, with the remedy; or when the record cannot be written.
    pub fn run(
        &self,
        name: Option<&str>,
        given: BTreeMap<String, String>,
        directory: &Path,
    ) -> Result<record::Record> {
        let target = target(self)?;
        let stop = stop::flag()?;
        let mut saturate = saturate(self);
        saturate.check().map_err(|refused| misuse(refused.to_string()))?;
        if let Some(refusal) = self.refusal() {
            bail!(refusal);
        }
        let mut testbed = Testbed::open(&target, datagram::MTU)?;
        let core = testbed.generating_cores().first().copied().unwrap_or(0);
        testbed.prepare()?;
        saturate.conditions.line_rate_bps = testbed.line_rate_bps();
        // The steps of a waterfall have their engines' names.
        let chosen =
            if self.beside.steps.is_empty() { self.program.by(testbed.engine()) } else { self.program };
        let program = chosen.0;
        let generator = Generator {
            saturate,
            frames: program.frames(self.datagram),
            datagram: self.datagram,
            across: self.across,
        };
        let began = Instant::now();
        let Started { launch, ground, before } = start(self, program, &testbed, core)?;
        let mean = generator.mean_frame_size();
        let mut engine = ProgramEngine::start(program.name(), (ground, before), core, mean, &stop)?;
        stop::sleep(&stop, self.warm_up);

        let test = format!("{} B{}", self.datagram, if self.across { " across" } else { "" });
        let name = name.map_or_else(|| format!("{} {test}", program.name()), str::to_owned);
        let labels = Labels { name, test, given };
        let mut tester = testbed.describe_tester(&["none"; 2].map(str::to_owned));
        program.name().clone_into(&mut tester.engine);
        // The program itself is other work than ours, and keeps its core to itself.
        let bounds = Bounds {
            other_work: 1.0,
            waited: 1.0,
            speed: 1.0,
            wake_delay: Duration::MAX,
            ..Bounds::default()
        };
        let sent = Sent { began, profile: generator.profile(), tester, bounds, notes: Vec::new() };
        let (mut record, mut writer) =
            run::conduct(&testbed, &mut engine, sent, labels, &generator, directory)?;
        let mut found = generator.describe_program(program, launch, engine.finish()?);
        if !self.beside.steps.is_empty() {
            found.waterfall.clone_from(&self.beside.steps);
            found.waterfall.extend(waterfall::sent_by(LAST_STEP, &record));
        }
        found.built.clone_from(&self.beside.built);
        record.notes.extend(self.beside.notes.iter().cloned());
        record.notes.push(note(&found));
        record.notes.extend(generator.note_fragments());
        if testbed.lab().is_none() && program.target() == Target::Lab && !self.across {
            record
                .notes
                .push("what arrived was not counted: all that left the port counts as forwarded".to_owned());
        }
        record.finding = Finding::Generator(Some(Box::new(found)));
        writer.write(&record)?;
        Ok(record)
    }

    /// What keeps the program from being measured: that it is not installed, does not run here, or does not send
    /// such datagrams.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let online = lab::placement::online().unwrap_or_default();
        let core = self.target.cores.as_ref().unwrap_or(&online).first().copied().unwrap_or(0);
        known::refusal(self.program.0, self.datagram, core)
    }

    /// How long it takes.
    #[must_use]
    pub fn planned(&self) -> Duration {
        saturate(self).planned().saturating_add(self.warm_up).saturating_add(START)
    }
}

/// The device that the program sends to, or through.
fn target(wanted: &Measurement) -> Result<testbed::target::Target> {
    let (program, across) = (wanted.program.0, wanted.across);
    let in_kernel = program.target() == Target::Lab;
    let dut = match &wanted.target.place {
        Place::Lab(dut) | Place::Started(dut) => Some(dut),
        Place::Named(_) => None,
        Place::Ports(_) if in_kernel && (across || !program.needs_answer()) => {
            return Ok(wanted.target.clone());
        }
        Place::Ports(_) => {
            let remedy = if in_kernel { ", or give --across if there is a device between" } else { "" };
            return Err(misuse(format!(
                "{} is not measured at real interfaces: it has a far end of its own; leave --ports out{remedy}",
                program.name()
            )));
        }
        Place::Testers(_) => {
            return Err(misuse(
                "generators are measured in the lab or at interfaces of this host: leave the testers out",
            ));
        }
    };
    let other = dut.filter(|dut| dut.name() != program.far_end());
    match (in_kernel, dut, other) {
        (false, ..) if across => Err(misuse(format!(
            "{} sends in user space, which has no device in between: leave --across out",
            program.name()
        ))),
        (false, _, Some(dut)) => {
            Err(misuse(format!("{} has a sink of its own: leave --dut {dut} out", program.name())))
        }
        (false, _, None) => Ok(user_space::testbed(wanted.target.clone(), program)),
        (true, Some(dut), _) if across && dut.name() == NOTHING_COMES_OUT => {
            Err(misuse("nothing comes out of a sink: give another --dut, or leave --across out"))
        }
        (true, _, Some(dut)) if program.needs_answer() && !across => Err(misuse(format!(
            "{} needs a far end that answers: give --dut {}, or --across to send through {dut}",
            program.name(),
            program.far_end()
        ))),
        (true, ..) => Ok(wanted.target.clone()),
    }
}

/// Full load without a low one first: programs have one load.
fn saturate(wanted: &Measurement) -> Saturate {
    Saturate {
        conditions: Conditions {
            warm_up: WarmUp { pps: 0.0, duration: Duration::ZERO },
            step: wanted.step,
            drain: DRAIN,
            loss_threshold: LOSS_THRESHOLD,
            line_rate_bps: wanted.target.line_rate.unwrap_or(testbed::port::FALLBACK_LINE_RATE),
        },
        load: Load::Max,
        duration: wanted.duration,
    }
}

/// Starts `program` on `core`.
fn start<'a>(
    wanted: &Measurement,
    program: &'static dyn Program,
    testbed: &'a Testbed,
    core: usize,
) -> Result<Started<'a>> {
    if program.target() != Target::Lab {
        let task = task(wanted, testbed, core, user_space::device(testbed));
        return user_space::start(program, &task, testbed);
    }
    let gateways = if let Place::Ports(ports) = &wanted.target.place { ports.gateways } else { None };
    let across =
        wanted.across.then(|| Across::open(testbed, program.needs_answer(), gateways)).transpose()?;
    let mut task = task(wanted, testbed, core, String::new());
    if let Some(across) = &across {
        task.way.source.1 = across.addresses[0];
        task.way.destination.1 = across.addresses[1];
    }
    AtInterface::start(program.launch(&task), testbed, core, across)
}

fn task<'a>(wanted: &Measurement, testbed: &'a Testbed, core: usize, device: String) -> Task<'a> {
    let [port, _] = testbed.ports();
    // Elsewhere nobody looks at addresses: those of the lab's plan, RFC 2544's.
    let link = testbed.lab().map_or([Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 19, 0, 1)], |lab| {
        lab.first_link().map(|address| match address {
            IpAddr::V4(v4) => v4,
            IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
        })
    });
    let way = Way { source: (port.mac, link[0]), destination: (port.next_hop_mac, link[1]) };
    let longest = wanted.planned().saturating_add(Duration::from_secs(60));
    Task { datagram: wanted.datagram, port, way, core, device, seconds: longest.as_secs() }
}

/// The measurement of one generator.
struct Generator {
    saturate: Saturate,
    datagram: Datagram,
    /// The sizes of the frames that a datagram leaves in.
    frames: Vec<u16>,
    across: bool,
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
            across: self.across,
            left: left.left,
            refused: left.refused,
            core_busy: left.core_busy,
            waterfall: Vec::new(),
            built: Vec::new(),
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

    fn check(&self) -> Result<(), Failure> {
        self.saturate.check()
    }

    /// What was found is known once the program has ended.
    fn run(&self, engine: &mut dyn Engine, observer: &mut dyn Observer) -> Outcome {
        Outcome { finding: Finding::Generator(None), ..self.saturate.run(engine, observer) }
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
