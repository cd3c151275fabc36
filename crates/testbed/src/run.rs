//! One run: a testbed, a profile and a strategy enter; a record, on disk as it grows, leaves.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use engine::{Engine, Load};
use lab::InterfaceCounters;
use live::{About, Watched};
use monitor::Bounds;
use monitor::CoreMeter;
use monitor::gauges::Watch;
use remote::Counted;
use results::record::{
    self, DeviceCounted, Finding, GoalResult, LatencyTest, LoadLatency, NodeRuntimes, Phase, Record, Sample,
    Status, Trial,
};
use results::store::{self, Entry, Store, Writer};
use traffic::{Directions, FrameTable, Profile};
use trial::{Bursts, Noise, Observer, ObserverError, Strategy, Surroundings};
use wire::human;

use crate::Testbed;
use crate::control::Control;
use crate::machine::Machine;
use crate::progress::Progress;
use crate::queue_use;
use crate::remote_device::{self, RemoteDevice};
use crate::{cross_check, environment, proof, receive_limit, self_test};

/// What a run is called.
pub struct Labels {
    /// What reports call it.
    pub name: String,
    /// What reports compare it under.
    pub test: String,
    /// What else the user wants it to be found by.
    pub given: BTreeMap<String, String>,
}

impl Labels {
    /// Labels from a profile, unless the user gave a name, and those that the user gave.
    pub fn new(
        dut: &str,
        profile: &Profile,
        bidirectional: bool,
        name: Option<&str>,
        given: BTreeMap<String, String>,
    ) -> Self {
        let mut test = profile.name().to_owned();
        for (key, value) in profile.tunables() {
            test += &match key.as_str() {
                "size" if value.bytes().all(|byte| byte.is_ascii_digit()) => format!(" {value} B"),
                "vm" if value == "none" => ", 1 flow".to_owned(),
                "ip" if value == "4" => continue,
                "ip" => format!(" IPv{value}"),
                "vlan" => format!(" vlan {value}"),
                _ => format!(" {value}"),
            };
        }
        if bidirectional {
            test += " bidirectional";
        }
        let name = name.map_or_else(|| format!("{dut} {test}"), str::to_owned);
        Self { name, test, given }
    }
}

/// What is sent on a testbed.
pub struct Traffic<'a> {
    /// As it was asked for.
    pub profile: &'a Profile,
    /// The directions that are loaded.
    pub directions: Directions,
    /// The same as frames between the testbed's ports.
    pub table: FrameTable,
}

impl<'a> Traffic<'a> {
    /// `profile` between the ports of `testbed`.
    #[must_use]
    pub fn new(testbed: &Testbed, profile: &'a Profile, directions: Directions) -> Self {
        Self { profile, directions, table: profile.table(&testbed.endpoints(), directions) }
    }
}

/// Runs `strategy` with `traffic` on `testbed`, and keeps its record in `directory`.
///
/// # Errors
/// When the engine does not start or the record cannot be written. A run that fails or is
/// interrupted after that has a record that says so.
pub fn run(
    testbed: &mut Testbed,
    traffic: &Traffic,
    labels: Labels,
    strategy: &dyn Strategy,
    directory: &Path,
    stop: &Arc<AtomicBool>,
) -> Result<Record> {
    let began = Instant::now();
    let Traffic { profile, directions, ref table } = *traffic;
    let memory_before = lab::tracked::memory();
    let filter = proof::of(testbed, profile, directions, stop)?;
    let own_limits = self_test::of(testbed, profile, directions);
    // Before threads of the engine take their cores: counting a million flows takes a moment.
    let described = describe(profile, table, directions);
    let (mut engine, modes) = testbed.start_any_engine(table, stop)?;
    testbed.tell_modes(&modes);
    let mut sent = Sent {
        began,
        profile: described,
        tester: testbed.describe_tester(&modes),
        bounds: Bounds::default(),
        notes: profile.notes().iter().cloned().chain(table.note()).collect(),
    };
    match own_limits {
        Ok(found) => sent.tester.self_test = Some(found),
        Err(unknown) => sent.notes.push(unknown),
    }
    let questions = testbed.questions();
    let (before, passed_before) = (testbed.interface_counters(), testbed.passed());
    let switch = testbed.switch().map(|switch| (switch, switch.counters()));
    let (queues_before, nodes_before) = (queue_use::before(testbed), testbed.nodes());
    let nodes_read = Instant::now();
    let (mut record, mut writer) = conduct(testbed, &mut *engine, sent, labels, strategy, directory)?;
    record.dut.filter = filter;
    record.dut.states = testbed.states(memory_before);
    record.notes.extend(record.dut.filter.as_ref().map(proof::in_words));
    record.notes.extend(record.dut.states.as_ref().map(in_words));
    record.tester.ports.iter_mut().for_each(count_pauses);
    let shared = testbed.is_in_user_space();
    match before.and_then(|before| counted_since(testbed, &before, &record.directions)) {
        Ok(mut meanwhile) => {
            meanwhile.extend(record.dut.remote.iter().flat_map(|remote| remote_device::interfaces(remote)));
            record.cross_check = cross_check::follow(&meanwhile, &record.directions, shared);
            if let Some((then, now)) = passed_before.zip(testbed.passed()) {
                let passed = [now[0].since(&then[0]), now[1].since(&then[1])];
                cross_check::by_rule(&mut record.cross_check, &passed, &record.directions);
            }
            if let Some((switch, before)) = switch {
                switch.testify(before, &mut record);
            }
            record.notes.extend(record.cross_check.iter().filter_map(cross_check::note));
            cross_check::mark(&mut record);
            if shared {
                receive_limit::mark(&mut record, &meanwhile);
            }
        }
        Err(error) => {
            record.notes.push(format!("Linerate's counters are not checked against the interfaces': {error}"))
        }
    }
    match nodes_before.and_then(|before| Ok(record::Node::since(&before, testbed.nodes()?))) {
        Ok(nodes) => {
            record.nodes_s = (!nodes.is_empty()).then(|| nodes_read.elapsed().as_secs_f64());
            record.nodes = nodes;
            record.notes.extend(beside_nodes(&record));
        }
        Err(error) => record.notes.push(format!("what the device's nodes did is not known: {error}")),
    }
    record.queues.extend(queues_before.iter().flat_map(|before| queue_use::after(testbed, before)));
    if let Some(reason) = record.reason.as_mut().filter(|_| record.status == Status::Failed) {
        for question in questions.iter().flat_map(unanswered) {
            *reason += &format!("; {question}");
        }
    }
    drop(engine);
    record.notes.extend(testbed.tester_notes());
    self_test::judge(&mut record, testbed, profile, directions);
    results::consistency::settle(&mut record);
    if testbed.receive_cost_ns().is_some() && record.tester.receive_cost_ns.is_none() {
        testbed.forget_receive_cost();
    }
    writer.write(&record)?;
    Ok(record)
}

/// Adds the pause frames that came during the run, where the driver counts them.
fn count_pauses(port: &mut record::Port) {
    let Some(pause) = port.facts.as_mut().and_then(|facts| facts.pause.as_mut()) else { return };
    let now = ports::read(&port.name).ok().and_then(|facts| facts.pause?.frames_received);
    pause.frames_received_meanwhile =
        pause.frames_received.zip(now).and_then(|(then, now)| now.checked_sub(then));
}

/// What the interfaces counted since `before`, as soon as all of them say so.
fn counted_since(
    testbed: &Testbed,
    before: &[InterfaceCounters],
    directions: &[record::Direction],
) -> Result<Vec<InterfaceCounters>> {
    let shared = testbed.is_in_user_space();
    let read = || {
        let after = testbed.interface_counters()?;
        Ok(after.iter().zip(before).map(|(now, then)| now.since(then)).collect::<Vec<_>>())
    };
    cross_check::settled(cross_check::REFRESH, read, |meanwhile| {
        cross_check::follow(meanwhile, directions, shared).iter().all(|check| check.agrees)
    })
}

/// What a device tracked, for people.
fn in_words(states: &record::States) -> String {
    let count = human::count;
    let full = if states.count >= states.limit {
        ": the table is full, and drops what begins further ones"
    } else {
        ""
    };
    let buckets =
        states.buckets.map_or(String::new(), |buckets| format!(", found by {} buckets", count(buckets)));
    let memory = states.bytes.filter(|bytes| *bytes > 0).map_or(String::new(), |bytes| {
        let each = bytes as f64 / states.count.max(1) as f64;
        format!("; their objects take {:.1} MB, {each:.0} bytes each", bytes as f64 / 1e6)
    });
    format!(
        "the device tracked {} connections when the run ended, of {} at most{full}{buckets}{memory}",
        count(states.count),
        count(states.limit)
    )
}

/// What the device asked for and nobody answered; nothing where this machine's own addresses are not known.
fn unanswered(questions: &ports::Questions) -> Vec<ports::Question> {
    ports::own_addresses().map(|own| questions.unanswered(&own)).unwrap_or_default()
}

/// What is sent and by what, for the record.
pub struct Sent {
    /// When setting it up began.
    pub began: Instant,
    /// What was sent.
    pub profile: record::Profile,
    /// By what.
    pub tester: record::Tester,
    /// What the machine may do beside it.
    pub bounds: Bounds,
    /// What a reader should know of it.
    pub notes: Vec<String>,
}

/// Runs `strategy` on an engine that is ready. The record is on disk as it grows; what it says when
/// it is returned is to be written still.
///
/// # Errors
/// When the record cannot be written.
pub fn conduct(
    testbed: &Testbed,
    engine: &mut dyn Engine,
    sent: Sent,
    labels: Labels,
    strategy: &dyn Strategy,
    directory: &Path,
) -> Result<(Record, Writer)> {
    let started = SystemTime::now() - sent.began.elapsed();
    let mut record = Record {
        schema: record::SCHEMA.to_owned(),
        id: store::id(started, testbed.dut_name(), &labels.test),
        name: labels.name,
        test: labels.test,
        labels: labels.given,
        started: results::time::rfc3339(started),
        elapsed_s: 0.0,
        status: Status::Running,
        reason: None,
        command: std::env::args().collect(),
        strategy: strategy.describe(),
        profile: sent.profile,
        dut: testbed.describe_dut()?,
        tester: sent.tester,
        environment: environment::read(),
        line_rate_bps: testbed.line_rate_bps(),
        samples: Vec::new(),
        directions: Vec::new(),
        finding: Finding::Other,
        queues: Vec::new(),
        nodes: Vec::new(),
        nodes_s: None,
        gauges: None,
        switch: None,
        cross_check: Vec::new(),
        notes: testbed.notes(),
    };
    record.finding = Finding::nothing_yet(&record.strategy.name);
    record.notes.extend(sent.notes);
    let mut writer = Store::open(directory)?.create(&mut record)?;
    let about = About {
        name: record.name.clone(),
        strategy: record.strategy.name.clone(),
        dut: record.dut.name.clone(),
        loss_threshold: record.strategy.loss_threshold,
        line_rate_bps: record.line_rate_bps,
        mean_frame_size: record.profile.mean_frame_size,
        planned_s: strategy.planned().as_secs_f64(),
    };
    // What happens on this machine does not disturb testers elsewhere.
    let machine = (!testbed.has_testers()).then(|| Machine::watch(testbed, engine, sent.bounds));
    if let Some(Err(error)) = &machine {
        record.notes.push(format!("host interference was not monitored: {error}"));
    }
    let mut watcher = Watcher {
        testbed,
        machine: machine.and_then(Result::ok),
        progress: Progress::new(&record.name, strategy.planned()),
        meter: testbed.dut_core_meter(),
        writer: &mut writer,
    };
    let device_before = testbed.remote().map(|device| (device.counters(), Instant::now()));
    let gauges =
        (!testbed.has_testers()).then(|| Watch::start(testbed.energy(), testbed.cores_in_use())).flatten();
    let control = Control::beside(testbed.generating_cores());
    let outcome = match testbed.board() {
        Some(board) => strategy.run(engine, &mut Watched::new(board, about, &mut watcher)),
        None => strategy.run(engine, &mut watcher),
    };
    drop(control);
    record.gauges = gauges.and_then(Watch::finish).map(Box::new);
    watcher.progress.finish();
    let disturbed = watcher.machine.as_ref().and_then(Machine::note);
    if let (Some(machine), Some(host)) = (&watcher.machine, &mut record.environment.host) {
        host.core_to_core_ns = machine.core_to_core_ns();
    }
    engine.give_way();
    record.elapsed_s = sent.began.elapsed().as_secs_f64();
    record.status = outcome.status;
    record.reason = outcome.reason();
    record.samples = outcome.samples;
    record.directions = outcome.directions;
    record.finding = outcome.finding;
    record.notes.extend(outcome.notes);
    record.notes.extend(disturbed);
    if let (Some(remote), Some((before, at))) = (testbed.remote(), device_before) {
        count_remote(&mut record, before, at, remote);
    }
    Ok((record, writer))
}

/// What to say of a device most of whose packets passed none of its nodes.
fn beside_nodes(record: &Record) -> Option<String> {
    // Of counters that were set back meanwhile nothing is known.
    let is_known = record.nodes.iter().any(|node| node.meanwhile().is_some());
    let few = is_known && !record.nodes_had_most();
    few.then(|| {
        format!(
            "{} packets passed the device's nodes, and {} came back: its kernel forwarded the others, so what a packet \
             costs each node is left out",
            human::count(record::Node::packets(&record.nodes)),
            human::count(record.forwarded())
        )
    })
}

/// Adds to the record what the device counted since `before`, which was `at` that moment.
fn count_remote(record: &mut Record, before: Result<Counted>, at: Instant, device: &RemoteDevice) {
    match before.and_then(|before| Ok((before, device.counters()?))) {
        Ok((before, after)) => {
            if let Some(remote) = &mut record.dut.remote {
                remote_device::count(remote, &before, &after);
                record.queues = queue_use::of_remote(remote, (&before, &after), at.elapsed().as_secs_f64());
            }
        }
        Err(error) => record.notes.push(format!("what the device counted is not known: {error}")),
    }
}

fn describe(profile: &Profile, table: &FrameTable, directions: Directions) -> record::Profile {
    record::Profile {
        name: profile.name().to_owned(),
        tunables: profile.tunables().clone(),
        bidirectional: directions == Directions::Both,
        mean_frame_size: table.mean_frame_size(),
        flows: table.flows(0),
        rows: table.rows.len() as u64,
        period: table.period,
        source: profile.source().map(str::to_owned),
    }
}

/// Draws progress, samples the DUT's core, and keeps on disk what comes.
struct Watcher<'a> {
    testbed: &'a Testbed,
    machine: Option<Machine>,
    progress: Progress,
    meter: Option<CoreMeter>,
    writer: &'a mut Writer,
}

impl Observer for Watcher<'_> {
    fn phase(&mut self, phase: Phase, _planned: Duration) {
        self.progress.phase(phase);
        self.meter.iter_mut().for_each(CoreMeter::restart);
    }

    fn drain(&mut self, _planned: Duration) {
        self.progress.drain();
    }

    fn sample(&mut self, _sample: &Sample) -> Result<(), ObserverError> {
        self.testbed.check_program()?;
        Ok(())
    }

    fn settled(&mut self, sample: &Sample) -> Result<(), ObserverError> {
        self.progress.sample(sample);
        self.writer.append(&Entry::Sample(Cow::Borrowed(sample)))?;
        Ok(())
    }

    fn trial(&mut self, trial: &Trial, results: &BTreeMap<String, GoalResult>) -> Result<(), ObserverError> {
        self.progress.results(results);
        self.writer.append(&Entry::Trial(Cow::Borrowed(trial), Cow::Borrowed(results)))?;
        Ok(())
    }

    fn latency(&mut self, test: &LatencyTest, measured: &LoadLatency) -> Result<(), ObserverError> {
        let common = LatencyTest { loads: Vec::new(), unseen: test.unseen.clone(), ..*test };
        self.writer.append(&Entry::Latency(Cow::Borrowed(measured), common))?;
        Ok(())
    }

    fn surroundings(&mut self) -> Option<&mut dyn Surroundings> {
        Some(self)
    }
}

impl Surroundings for Watcher<'_> {
    fn noise(&mut self, load: Load) -> Noise {
        self.machine.as_mut().map(|machine| machine.noise(load)).unwrap_or_default()
    }

    fn reset(&mut self) -> Result<(), String> {
        self.testbed.reset()
    }

    fn device_counters(&mut self) -> Option<Vec<DeviceCounted>> {
        self.testbed.device_counters()
    }

    fn lost_by_rules(&mut self) -> Option<u64> {
        Some(self.testbed.passed()?.iter().flat_map(|passed| passed.dropped).sum())
    }

    fn bursts(&mut self) -> Option<Bursts> {
        self.testbed.bursts()
    }

    fn nodes(&mut self) -> Option<NodeRuntimes> {
        // Nothing is run on another computer while frames are sent.
        let ours = self.testbed.remote().is_none().then(|| self.testbed.nodes().ok())?;
        ours.filter(|nodes| !nodes.is_empty())
    }

    fn dut_core_busy(&mut self) -> Option<f64> {
        self.meter.as_mut()?.busy()
    }
}
