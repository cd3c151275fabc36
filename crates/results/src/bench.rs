//! What a bench is: the matrix that a bench file asks for, as it is kept beside its records, and the
//! place in it that each record's labels name.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::record::Record;

/// The schema that [`Bench`] is written as.
pub const SCHEMA: &str = "linerate/bench/1";
/// Its file among the records.
pub const FILE: &str = "bench.json";
/// The labels that a record of a bench carries: the bench, the cell and which of its repeats it is.
pub const LABELS: [&str; 3] = ["bench", "cell", "repeat"];

/// A matrix of runs: each device with each profile in each of its directions, repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bench {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Its name, which its records carry.
    pub name: String,
    /// For people.
    pub title: String,
    /// Which table or figure of an article it follows, in words.
    #[serde(default, alias = "seed_figure", skip_serializing_if = "Option::is_none")]
    pub article_figure: Option<String>,
    /// The command that carries it out.
    pub command: Vec<String>,
    /// The text of its file.
    pub source: String,
    /// How often each cell is run; 0 if that is not known.
    pub repeats: u32,
    /// In which order, in words.
    pub order: String,
    /// Whether devices or profiles are compared.
    #[serde(default, skip_serializing_if = "Compare::is_devices")]
    pub compare: Compare,
    /// The device or the profile that the others are compared with, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// What the numbers of devices or profiles count, if they have numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axis: Option<Axis>,
    /// In the order of the file.
    pub duts: Vec<Dut>,
    /// In the order of the file.
    pub profiles: Vec<Profile>,
}

/// What the repeats of a bench are compared by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    /// The devices in each test.
    #[default]
    Devices,
    /// The profiles of each device in each direction.
    Profiles,
}

impl Compare {
    fn is_devices(&self) -> bool {
        *self == Self::Devices
    }
}

/// What configurations differ by in number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// What is counted, like `rules`.
    pub name: String,
    /// Whether figures would grow with it in the best case, as with cores.
    #[serde(default)]
    pub linear: bool,
}

/// A device in one configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dut {
    /// Its name.
    pub name: String,
    /// Its place on the axis, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Its place on the axis, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
    /// `one` or `both`, or each.
    pub directions: Vec<String>,
}

/// Where a record stands in its bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'r> {
    /// The bench's name.
    pub bench: &'r str,
    /// The device's name.
    pub dut: &'r str,
    /// The profile's name.
    pub profile: &'r str,
    /// `one` or `both`.
    pub direction: &'r str,
    /// From 1.
    pub repeat: u32,
}

impl<'r> Place<'r> {
    /// What the labels of `record` say; `None` if it is of no bench.
    #[must_use]
    pub fn of(record: &'r Record) -> Option<Self> {
        let [bench, cell, repeat] = LABELS.map(|key| record.labels.get(key));
        let mut parts = cell?.split('/');
        let (dut, profile, direction) = (parts.next()?, parts.next()?, parts.next()?);
        let repeat = repeat?.parse().ok()?;
        parts.next().is_none().then_some(Self { bench: bench?, dut, profile, direction, repeat })
    }
}

impl Bench {
    /// Every bench that `records` belong to, as far as their labels tell: those that are `described`,
    /// and of others what occurs, in the order that it occurs in, without a baseline.
    #[must_use]
    pub fn all(described: Vec<Self>, records: &[Record]) -> Vec<Self> {
        let mut benches: Vec<Self> = Vec::new();
        for bench in described {
            if benches.iter().all(|known| known.name != bench.name) {
                benches.push(bench);
            }
        }
        let described = benches.len();
        for place in records.iter().filter_map(Place::of) {
            let known = benches.iter().position(|bench| bench.name == place.bench);
            let at = known.unwrap_or_else(|| {
                benches.push(Self::unknown(place.bench));
                benches.len() - 1
            });
            if let Some(bench) = benches.get_mut(at).filter(|_| at >= described) {
                bench.admit(place);
            }
        }
        benches
    }

    fn unknown(name: &str) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            name: name.to_owned(),
            title: name.to_owned(),
            article_figure: None,
            command: Vec::new(),
            source: String::new(),
            repeats: 0,
            order: String::new(),
            compare: Compare::default(),
            baseline: None,
            axis: None,
            duts: Vec::new(),
            profiles: Vec::new(),
        }
    }

    /// Makes room for what `place` names.
    fn admit(&mut self, place: Place) {
        if self.duts.iter().all(|dut| dut.name != place.dut) {
            self.duts.push(Dut { name: place.dut.to_owned(), at: None });
        }
        let directions = match self.profiles.iter_mut().position(|profile| profile.name == place.profile) {
            Some(at) => &mut self.profiles[at].directions,
            None => {
                let name = place.profile.to_owned();
                self.profiles.push(Profile { name, at: None, directions: Vec::new() });
                let last = self.profiles.len() - 1;
                &mut self.profiles[last].directions
            }
        };
        if directions.iter().all(|direction| direction != place.direction) {
            directions.push(place.direction.to_owned());
            // One way comes first, as in bench files.
            directions.sort_by_key(|direction| direction == "both");
        }
    }

    /// Makes the device or the profile called `name` the baseline, and compares the others like it with it. Whether
    /// there is one.
    pub fn compare_with(&mut self, name: &str) -> bool {
        let has = |compare: &Compare| match compare {
            Compare::Devices => self.duts.iter().any(|dut| dut.name == name),
            Compare::Profiles => self.profiles.iter().any(|profile| profile.name == name),
        };
        let Some(compare) = [self.compare, Compare::Devices, Compare::Profiles].into_iter().find(has) else {
            return false;
        };
        (self.compare, self.baseline) = (compare, Some(name.to_owned()));
        true
    }

    /// Whether `place` is one of this matrix.
    #[must_use]
    pub fn holds(&self, place: &Place) -> bool {
        let has_direction = |profile: &Profile| {
            profile.name == place.profile
                && profile.directions.iter().any(|direction| direction == place.direction)
        };
        self.name == place.bench
            && place.repeat >= 1
            && (self.repeats == 0 || place.repeat <= self.repeats)
            && self.duts.iter().any(|dut| dut.name == place.dut)
            && self.profiles.iter().any(has_direction)
    }

    /// Its file in `directory`.
    #[must_use]
    pub fn path(directory: &Path) -> std::path::PathBuf {
        directory.join(FILE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Scenario;

    fn record(bench: &str, cell: &str, repeat: &str) -> Record {
        let mut record = Scenario::default().record();
        let values = [bench, cell, repeat].map(str::to_owned);
        record.labels = LABELS.map(str::to_owned).into_iter().zip(values).collect();
        record
    }

    #[test]
    fn labels_say_where_a_record_stands() {
        let sound = record("rules", "10 rules/64 B/both", "3");
        let place = Place::of(&sound).unwrap();
        assert_eq!((place.bench, place.dut, place.profile), ("rules", "10 rules", "64 B"));
        assert_eq!((place.direction, place.repeat), ("both", 3));
        for (cell, repeat) in [("10 rules", "3"), ("a/b/one/more", "3"), ("a/b/one", "third")] {
            assert_eq!(Place::of(&record("rules", cell, repeat)), None);
        }
        assert_eq!(Place::of(&Scenario::default().record()), None);
    }

    #[test]
    fn what_is_not_described_is_what_occurs() {
        let records = [
            record("rules", "10 rules/64 B/both", "1"),
            record("rules", "none/64 B/one", "2"),
            record("other", "a/b/one", "1"),
            Scenario::default().record(),
        ];
        let benches = Bench::all(Vec::new(), &records);
        let names: Vec<&str> = benches.iter().map(|bench| bench.name.as_str()).collect();
        assert_eq!(names, ["rules", "other"]);
        let rules = &benches[0];
        assert_eq!(rules.duts.iter().map(|dut| dut.name.as_str()).collect::<Vec<_>>(), ["10 rules", "none"]);
        assert_eq!(rules.profiles[0].directions, ["one", "both"]);
        assert_eq!(rules.baseline, None);
        let place = Place::of(&records[0]).unwrap();
        assert!(rules.holds(&place) && !benches[1].holds(&place));

        let mut described = rules.clone();
        described.repeats = 1;
        described.baseline = Some("none".to_owned());
        let again = Bench::all(vec![described.clone(), described.clone()], &records);
        assert_eq!(again.len(), 2);
        assert_eq!(again[0], described);
        let mut asked = described.clone();
        assert!(asked.compare_with("64 B") && !asked.compare_with("gone"));
        assert_eq!((asked.compare, asked.baseline.as_deref()), (Compare::Profiles, Some("64 B")));
        assert!(asked.compare_with("none"));
        assert_eq!(asked, described);
        assert!(!again[0].holds(&Place::of(&records[1]).unwrap()), "the second of one repeat");
    }
}
