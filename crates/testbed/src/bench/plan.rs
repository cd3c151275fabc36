//! The plan of a bench: its file and what records there are enter; cells, runs in their order, the
//! command of each, what is done already and how long the rest takes leave. Pure.

mod times;

use std::collections::BTreeMap;
use std::path::Path;

use results::Record;
use results::bench::{self, Compare, LABELS, Place};
use results::record::Status;
use stats::Random;

pub use self::times::{Basis, Expected, Times};
use super::{Bench, Configuration, Direction, Dut, Order, Profile};
use crate::target::{self, EngineName, Named, Ports};

/// A device, a profile and a direction.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'a> {
    /// The device.
    pub dut: &'a Dut,
    /// What is sent.
    pub profile: &'a Profile,
    /// Which ports send.
    pub direction: Direction,
}

/// A cell, by its place in [`Plan::cells`], and which of its repeats, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// Its place in [`Plan::cells`].
    pub cell: usize,
    /// From 1.
    pub repeat: u32,
}

/// All that a bench consists of.
#[derive(Debug)]
pub struct Plan<'a> {
    /// What it is of.
    pub bench: &'a Bench,
    /// In the order of the file.
    pub cells: Vec<Cell<'a>>,
    /// The cells that are compared with one another, by their places: the devices of each test, or the profiles of each
    /// device in each direction.
    pub groups: Vec<Vec<usize>>,
    /// In the order that they are made in.
    pub runs: Vec<Run>,
}

/// What there is of a bench already.
#[derive(Debug, Default)]
pub struct Kept<'r> {
    /// The runs that came to their end, with the first record that says so.
    pub complete: BTreeMap<Run, &'r Record>,
    /// The last record of those that did not.
    pub incomplete: BTreeMap<Run, &'r Record>,
}

impl Profile {
    fn description(&self) -> bench::Profile {
        let directions = self.directions.iter().map(ToString::to_string).collect();
        bench::Profile { name: self.name.clone(), at: self.at, directions }
    }
}

impl Cell<'_> {
    /// Its name, which its records carry.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}/{}/{}", self.dut.name, self.profile.name, self.direction)
    }

    /// What configures the device for the profile: what was done last is undone first.
    #[must_use]
    pub fn configuration(&self) -> Configuration {
        let [device, profile] = [&self.dut.configuration, &self.profile.configuration];
        Configuration {
            commands: [&device.commands[..], &profile.commands].concat(),
            undo: [&profile.undo[..], &device.undo].concat(),
            requires: [&device.requires[..], &profile.requires].concat(),
        }
    }
}

impl<'a> Plan<'a> {
    /// All runs of `bench`.
    #[must_use]
    pub fn new(bench: &'a Bench) -> Self {
        let mut cells = Vec::new();
        for profile in &bench.profiles {
            for direction in profile.directions.iter().copied() {
                cells.extend(bench.duts.iter().map(|dut| Cell { dut, profile, direction }));
            }
        }
        let groups = groups(bench.compare, &cells);
        let mut random = Random::new(bench.seed);
        let mut runs = Vec::new();
        for repeat in 1..=bench.repeats {
            // What is compared is measured close together.
            let mut groups = groups.clone();
            if bench.order == Order::Shuffled {
                shuffle(&mut groups, &mut random);
                groups.iter_mut().for_each(|cells| shuffle(cells, &mut random));
            }
            runs.extend(groups.into_iter().flatten().map(|cell| Run { cell, repeat }));
        }
        Self { bench, cells, groups, runs }
    }

    /// What `run` is called.
    #[must_use]
    pub fn name(&self, run: Run) -> String {
        format!("{}, repeat {}", self.cells[run.cell].label(), run.repeat)
    }

    /// The words of the command of `run` after the program's name; its record is kept in `directory`.
    #[must_use]
    pub fn command(&self, run: Run, directory: &Path) -> Vec<String> {
        let Cell { dut, profile, direction } = self.cells[run.cell];
        let strategy = &self.bench.strategy;
        let mut words = vec![strategy.subcommand.to_string()];
        words.extend(strategy.options.iter().chain(&dut.options).cloned());
        let mut flag = |name: &str, value: &str| words.extend([name.to_owned(), value.to_owned()]);
        let mut remote = None;
        match &dut.place {
            target::Place::Lab(spec) | target::Place::Started(spec) => flag("--dut", &spec.to_string()),
            target::Place::Ports(Ports { names: [zero, one], gateways, remote: driven, .. }) => {
                flag("--ports", &format!("{zero},{one}"));
                gateways.iter().for_each(|[zero, one]| flag("--gateways", &format!("{zero},{one}")));
                remote = driven.as_ref();
            }
            target::Place::Named(Named { ports: [zero, one], .. }) => {
                flag("--port0", zero);
                flag("--port1", one);
            }
            // A bench file names none: its engines have no addresses.
            target::Place::Testers(_) => {}
        }
        if dut.engine != EngineName::Auto {
            flag("--engine", dut.engine.name());
        }
        if let Some(remote) = remote {
            flag("--dut-host", &remote.host);
            flag("--dut-driver", &remote.driver);
            remote.options.iter().for_each(|(name, value)| flag("--dut-option", &format!("{name}={value}")));
        }
        profile.flags.iter().for_each(|(name, value)| flag(name, value));
        let configuration = self.cells[run.cell].configuration();
        configuration.commands.iter().for_each(|command| flag("--dut-command", command));
        dut.denies.iter().for_each(|source| flag("--dut-denies", &source.to_string()));
        flag("--name", &format!("{}, {}, {}", dut.name, profile.name, direction.words()));
        let values = [self.bench.name.clone(), self.cells[run.cell].label(), run.repeat.to_string()];
        for (key, value) in LABELS.into_iter().zip(values) {
            flag("--label", &format!("{key}={value}"));
        }
        flag("--runs", &directory.display().to_string());
        words.push("--json".to_owned());
        words.extend(remote.filter(|remote| remote.sudo).map(|_| "--dut-sudo".to_owned()));
        if direction == Direction::Both {
            words.insert(1, "--bidirectional".to_owned());
        }
        words
    }

    /// The bench as it is kept beside its records; `command` carries it out.
    #[must_use]
    pub fn description(&self, command: Vec<String>) -> bench::Bench {
        let Bench { name, title, article_figure, source, repeats, baseline, axis, .. } = self.bench;
        bench::Bench {
            schema: bench::SCHEMA.to_owned(),
            name: name.clone(),
            title: title.clone(),
            article_figure: article_figure.clone(),
            command,
            source: source.clone(),
            repeats: *repeats,
            order: self.order(),
            compare: self.bench.compare,
            baseline: baseline.clone(),
            axis: axis.clone(),
            duts: self
                .bench
                .duts
                .iter()
                .map(|dut| bench::Dut { name: dut.name.clone(), at: dut.at })
                .collect(),
            profiles: self.bench.profiles.iter().map(Profile::description).collect(),
        }
    }

    /// In which order runs are made, in words.
    #[must_use]
    pub fn order(&self) -> String {
        match self.bench.order {
            Order::Shuffled => format!("shuffled by seed {}", self.bench.seed),
            Order::Interleaved => "round by round".to_owned(),
        }
    }

    /// Which run `record` is of, if it is of this bench.
    fn run_of(&self, record: &Record) -> Option<Run> {
        let place = Place::of(record).filter(|place| place.bench == self.bench.name)?;
        let is_cell = |cell: &Cell| {
            let direction = cell.direction.to_string();
            (cell.dut.name.as_str(), cell.profile.name.as_str(), direction.as_str())
                == (place.dut, place.profile, place.direction)
        };
        let cell = self.cells.iter().position(is_cell)?;
        (1..=self.bench.repeats).contains(&place.repeat).then_some(Run { cell, repeat: place.repeat })
    }

    /// What `records` hold of this bench.
    #[must_use]
    pub fn kept<'r>(&self, records: &'r [Record]) -> Kept<'r> {
        let mut kept = Kept::default();
        for record in records {
            let Some(run) = self.run_of(record) else { continue };
            if record.status == Status::Complete {
                kept.complete.entry(run).or_insert(record);
            } else {
                kept.incomplete.insert(run, record);
            }
        }
        kept.incomplete.retain(|run, _| !kept.complete.contains_key(run));
        kept
    }

    /// The runs of the `chosen` cells that are not `done`, in their order.
    #[must_use]
    pub fn missing(&self, done: &BTreeMap<Run, &Record>, chosen: &[bool]) -> Vec<Run> {
        let is_missing = |run: &Run| chosen[run.cell] && !done.contains_key(run);
        self.runs.iter().copied().filter(is_missing).collect()
    }

    /// The first record that this bench, as it is now, would not have made: its command was another.
    #[must_use]
    pub fn outdated<'r>(&self, kept: &Kept<'r>) -> Option<(Run, &'r Record)> {
        let differs = |(run, record): &(&Run, &&'r Record)| {
            let now = self.command(**run, Path::new(""));
            substance(record.command.iter().skip(1)) != substance(now.iter())
        };
        kept.complete.iter().find(differs).map(|(run, record)| (*run, *record))
    }
}

/// The cells that are compared with one another, in the order of the first of each group.
fn groups(compare: Compare, cells: &[Cell]) -> Vec<Vec<usize>> {
    let key = |cell: &Cell| match compare {
        Compare::Devices => (cell.profile.name.clone(), cell.direction),
        Compare::Profiles => (cell.dut.name.clone(), cell.direction),
    };
    let mut groups: Vec<((String, Direction), Vec<usize>)> = Vec::new();
    for (at, cell) in cells.iter().enumerate() {
        let key = key(cell);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(at),
            None => groups.push((key, vec![at])),
        }
    }
    groups.into_iter().map(|(_, cells)| cells).collect()
}

/// Fisher and Yates, as Durstenfeld has it.
fn shuffle<T>(items: &mut [T], random: &mut Random) {
    (1..items.len()).rev().for_each(|last| items.swap(last, random.below(last + 1)));
}

/// The words of a command without where its record went.
fn substance<'w>(words: impl Iterator<Item = &'w String>) -> Vec<&'w str> {
    let mut after_flag = false;
    let is_kept = |word: &&str| {
        let is_value = std::mem::replace(&mut after_flag, *word == "--runs");
        !is_value && *word != "--runs"
    };
    words.map(String::as_str).filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use results::fixtures::Scenario;

    use super::*;
    use crate::bench::{Strategy, Subcommand};

    fn bench(order: Order, seed: u64) -> Bench {
        let dut = |name: &str, commands: &[&str]| Dut {
            name: name.to_owned(),
            place: target::Place::Lab("linux-router".parse().unwrap()),
            engine: EngineName::Auto,
            line: 1,
            options: if name == "none" { Vec::new() } else { vec!["--cores".to_owned(), "0".to_owned()] },
            configuration: Configuration {
                commands: commands.iter().map(|command| (*command).to_owned()).collect(),
                ..Configuration::default()
            },
            denies: if name == "none" { Vec::new() } else { vec!["10.0.0.9".parse().unwrap()] },
            at: None,
        };
        let profile = |name: &str, directions: &[Direction]| Profile {
            name: name.to_owned(),
            flags: vec![("--profile", "bench".to_owned()), ("--size", name.to_owned())],
            directions: directions.to_vec(),
            configuration: Configuration::default(),
            at: None,
        };
        Bench {
            origin: "a.toml".to_owned(),
            name: "rules".to_owned(),
            title: "Rules".to_owned(),
            article_figure: None,
            source: String::new(),
            axis: None,
            repeats: 4,
            order,
            seed,
            compare: Compare::Devices,
            baseline: Some("none".to_owned()),
            strategy: Strategy {
                subcommand: Subcommand::Ramp,
                options: vec!["--rate".to_owned(), "97%".to_owned()],
                line: 1,
            },
            duts: vec![dut("none", &[]), dut("10 rules", &["nft 'a'"])],
            profiles: vec![
                profile("64", &[Direction::One, Direction::Both]),
                profile("imix", &[Direction::One]),
            ],
        }
    }

    fn record(plan: &Plan, run: Run, status: Status) -> Record {
        let mut record = Scenario::default().record();
        record.status = status;
        record.elapsed_s = 10.0;
        record.command = vec!["linerate".to_owned()];
        record.command.extend(plan.command(run, Path::new("elsewhere")));
        let label = |key: &str, value: String| (key.to_owned(), value);
        record.labels = BTreeMap::from([
            label("bench", plan.bench.name.clone()),
            label("cell", plan.cells[run.cell].label()),
            label("repeat", run.repeat.to_string()),
        ]);
        record
    }

    #[test]
    fn every_round_has_every_cell_once_in_an_order_that_the_seed_gives() {
        let shuffled = bench(Order::Shuffled, 7);
        let plan = Plan::new(&shuffled);
        assert_eq!((plan.cells.len(), plan.runs.len()), (6, 24));
        for (round, runs) in plan.runs.chunks(6).enumerate() {
            assert!(runs.iter().all(|run| run.repeat as usize == round + 1));
            assert_eq!(runs.iter().map(|run| run.cell).collect::<BTreeSet<_>>().len(), 6);
        }
        assert_eq!(plan.runs, Plan::new(&bench(Order::Shuffled, 7)).runs);
        assert_ne!(plan.runs, Plan::new(&bench(Order::Shuffled, 8)).runs);
        let rounds: BTreeSet<Vec<usize>> =
            plan.runs.chunks(6).map(|runs| runs.iter().map(|run| run.cell).collect()).collect();
        assert!(rounds.len() > 1, "all rounds in one order: {rounds:?}");
        // The devices of a test follow each other.
        let test = |run: &Run| (&plan.cells[run.cell].profile.name, plan.cells[run.cell].direction);
        assert!(plan.runs.chunks(2).all(|pair| test(&pair[0]) == test(&pair[1])), "{:?}", plan.runs);
        let interleaved = bench(Order::Interleaved, 7);
        assert!(Plan::new(&interleaved).runs.is_sorted_by_key(|run| (run.repeat, run.cell)));
    }

    #[test]
    fn profiles_that_are_compared_are_measured_close_together() {
        let bench = Bench { compare: Compare::Profiles, ..bench(Order::Shuffled, 7) };
        let plan = Plan::new(&bench);
        // One way there are two profiles, both ways there is one.
        assert_eq!(plan.groups, [vec![0, 4], vec![1, 5], vec![2], vec![3]]);
        let device = |run: &Run| (&plan.cells[run.cell].dut.name, plan.cells[run.cell].direction);
        for round in plan.runs.chunks(6) {
            assert_eq!(round.iter().map(|run| run.cell).collect::<BTreeSet<_>>().len(), 6);
            assert_eq!(round.chunk_by(|one, next| device(one) == device(next)).count(), 4, "{round:?}");
        }
    }

    #[test]
    fn commands_of_a_profile_run_after_those_of_the_device() {
        let mut bench = bench(Order::Interleaved, 1);
        let told = |what: &str| Configuration {
            commands: vec![format!("do {what}")],
            undo: vec![format!("undo {what}")],
            requires: vec![what.to_owned()],
        };
        (bench.duts[1].configuration, bench.profiles[0].configuration) = (told("device"), told("profile"));
        let plan = Plan::new(&bench);
        let Configuration { commands, undo, requires } = plan.cells[1].configuration();
        assert_eq!(commands, ["do device", "do profile"]);
        assert_eq!(undo, ["undo profile", "undo device"]);
        assert_eq!(requires, ["device", "profile"]);
        let words = plan.command(plan.runs[1], Path::new("runs"));
        assert_eq!(words.iter().filter(|word| *word == "--dut-command").count(), 2);
    }

    #[test]
    fn the_command_says_all_of_the_run() {
        let bench = bench(Order::Interleaved, 1);
        let plan = Plan::new(&bench);
        let words = plan.command(Run { cell: 3, repeat: 2 }, Path::new("runs/rules"));
        assert_eq!(
            words.join("|"),
            "ramp|--bidirectional|--rate|97%|--cores|0|--dut|linux-router|--profile|bench|--size|64|--dut-command|\
             nft 'a'|--dut-denies|10.0.0.9|--name|10 rules, 64, both ways|--label|bench=rules|--label|cell=10 rules/64/both|\
             --label|repeat=2|--runs|runs/rules|--json"
        );
    }

    #[test]
    fn what_is_complete_is_not_missing_and_all_else_is() {
        let bench = bench(Order::Shuffled, 1);
        let plan = Plan::new(&bench);
        let (done, failed, both) = (plan.runs[0], plan.runs[5], plan.runs[9]);
        let mut foreign = record(&plan, plan.runs[1], Status::Complete);
        foreign.labels.insert("bench".to_owned(), "other".to_owned());
        let mut beyond = record(&plan, plan.runs[2], Status::Complete);
        beyond.labels.insert("repeat".to_owned(), "5".to_owned());
        let records = [
            record(&plan, done, Status::Complete),
            record(&plan, failed, Status::Failed),
            record(&plan, both, Status::Running),
            record(&plan, both, Status::Complete),
            record(&plan, both, Status::Complete),
            foreign,
            beyond,
            Scenario::default().record(),
        ];
        let kept = plan.kept(&records);
        assert_eq!(kept.complete.keys().copied().collect::<BTreeSet<_>>(), BTreeSet::from([done, both]));
        assert_eq!(kept.incomplete.keys().collect::<Vec<_>>(), [&failed]);
        let missing = plan.missing(&kept.complete, &[true; 6]);
        assert_eq!(missing.len(), 22);
        assert!(missing.contains(&failed) && !missing.contains(&done) && !missing.contains(&both));
        let some = plan.missing(&BTreeMap::new(), &[false, true, false, true, false, false]);
        assert_eq!(some.len(), 8);
        assert!(some.iter().all(|run| matches!(run.cell, 1 | 3)), "{some:?}");
        assert!(plan.missing(&BTreeMap::new(), &[false; 6]).is_empty());
    }

    #[test]
    fn records_of_other_settings_are_found_out_wherever_they_were_kept() {
        let bench = bench(Order::Shuffled, 1);
        let plan = Plan::new(&bench);
        let mut records = [record(&plan, plan.runs[0], Status::Complete)];
        assert!(plan.outdated(&plan.kept(&records)).is_none());
        let target = records[0].command.iter_mut().find(|word| *word == "97%").unwrap();
        "50%".clone_into(target);
        let (run, _) = plan.outdated(&plan.kept(&records)).unwrap();
        assert_eq!(run, plan.runs[0]);
    }

    #[test]
    fn a_run_takes_what_its_cell_took_else_what_is_planned() {
        let bench = bench(Order::Interleaved, 1);
        let plan = Plan::new(&bench);
        let [first, second] = [plan.runs[0], plan.runs[1]];
        let records = [record(&plan, first, Status::Complete)];
        let mut times = Times::new(6, &plan.kept(&records), Duration::from_secs(67));
        let again = Run { repeat: 2, ..first };
        assert_eq!(times.of(again), Expected { time: Duration::from_secs(11), basis: Basis::Measured });
        assert_eq!(times.of(second), Expected { time: Duration::from_secs(68), basis: Basis::Planned });
        assert_eq!(times.all(&[again, second]), Duration::from_secs(79));
        times.add(first, Duration::from_secs(13));
        times.add(first, Duration::from_secs(12));
        assert_eq!(times.of(again).time, Duration::from_secs(12));
        assert_eq!(Times::new(6, &Kept::default(), Duration::MAX).of(first).time, Duration::MAX);
    }
}
