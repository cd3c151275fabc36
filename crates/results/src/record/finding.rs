//! What a strategy found: the strategy's name and the fields of a record enter; one [`Finding`] leaves,
//! and the same fields again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    Cost, Generator, GoalResult, LatencyTest, LimitedBy, LoadLatency, Rfc2544, Search, Soak, StallSearch,
    Trial,
};

/// What a run found, by its strategy. Samples and the verdict on each direction are in the record itself.
///
/// Where a variant holds an `Option`, `None` is of a run that has found nothing yet: it goes on, or it ended
/// early.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(from = "Fields", into = "Fields")]
pub enum Finding {
    /// A load that rose, and what a search after it found, if there was one.
    Ramp(Option<Search>),
    /// A constant load: its samples are all that it found.
    Saturate,
    /// What a search found.
    Search(Search),
    /// What a latency test found, and the search before it, if there was one.
    Latency(Option<LatencyTest>, Option<Search>),
    /// What the tests of RFC 2544 found, and the search for the throughput, if there was one.
    Rfc2544(Option<Box<Rfc2544>>, Option<Search>),
    /// What a soak found.
    Soak(Option<Soak>),
    /// At which rates the device stalls.
    Stall(Option<Box<StallSearch>>),
    /// What generated: the generator was measured, not the device.
    Generator(Option<Box<Generator>>),
    /// What a forwarded frame cost the device.
    Cost(Option<Cost>),
    /// A strategy that this version does not know: samples and verdicts are all that can be read.
    #[default]
    Other,
}

/// A finding as a record has it in JSON: fields beside the others.
#[derive(Clone, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Fields {
    /// What a search found, by goal, like `ndr` and `pdr`: all directions added up.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    results: BTreeMap<String, GoalResult>,
    /// Whether disturbed trials widened a result of a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    disturbed: Option<bool>,
    /// What limited a search, all directions together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limited_by: Option<LimitedBy>,
    /// Every trial of a search, in order of time: its results can be recomputed from them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    trials: Vec<Trial>,
    /// What a latency test found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency: Option<LatencyTest>,
    /// What the tests of RFC 2544 found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rfc2544: Option<Box<Rfc2544>>,
    /// What a soak found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    soak: Option<Soak>,
    /// What generated, where that is what was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    generator: Option<Box<Generator>>,
    /// What a forwarded frame cost the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
    /// At which rates the device stalls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stall_search: Option<Box<StallSearch>>,
}

static NO_RESULTS: BTreeMap<String, GoalResult> = BTreeMap::new();

impl Finding {
    /// What a run of the strategy of this name has found before it found anything.
    #[must_use]
    pub fn nothing_yet(strategy: &str) -> Self {
        match strategy {
            "ramp" => Self::Ramp(None),
            "saturate" => Self::Saturate,
            "search" => Self::Search(Search::default()),
            "latency" => Self::Latency(None, None),
            "rfc2544" => Self::Rfc2544(None, None),
            "soak" => Self::Soak(None),
            "stall" => Self::Stall(None),
            "generator" => Self::Generator(None),
            "cost" => Self::Cost(None),
            _ => Self::Other,
        }
    }

    /// The same, of the strategy that a record names: its fields tell nothing where nothing was found, and
    /// nothing of the strategy where they are a search's.
    #[must_use]
    pub(super) fn of_strategy(self, strategy: &str) -> Self {
        match (self, Self::nothing_yet(strategy)) {
            (Self::Other, named) => named,
            (Self::Search(search), Self::Ramp(_)) => Self::Ramp(Some(search)),
            (Self::Search(search), Self::Latency(..)) => Self::Latency(None, Some(search)),
            (Self::Search(search), Self::Rfc2544(..)) => Self::Rfc2544(None, Some(search)),
            (found, _) => found,
        }
    }

    /// What a search found, also where it was a part of another strategy.
    #[must_use]
    pub fn search(&self) -> Option<&Search> {
        match self {
            Self::Search(search) => Some(search),
            Self::Ramp(search) | Self::Latency(_, search) | Self::Rfc2544(_, search) => search.as_ref(),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn search_mut(&mut self) -> Option<&mut Search> {
        match self {
            Self::Search(search) => Some(search),
            Self::Ramp(search) | Self::Latency(_, search) | Self::Rfc2544(_, search) => search.as_mut(),
            _ => None,
        }
    }

    /// The results of a search by goal; none of other strategies. A ramp's verdict has what its search found.
    #[must_use]
    pub fn results(&self) -> &BTreeMap<String, GoalResult> {
        self.goals().map_or(&NO_RESULTS, |search| &search.results)
    }

    /// The trials of such a search in order of time; none of other strategies.
    #[must_use]
    pub fn trials(&self) -> &[Trial] {
        self.goals().map_or(&[], |search| &search.trials)
    }

    /// The search whose goals are what was looked for.
    fn goals(&self) -> Option<&Search> {
        self.search().filter(|_| !matches!(self, Self::Ramp(_)))
    }

    /// What a latency test found.
    #[must_use]
    pub fn latency(&self) -> Option<&LatencyTest> {
        if let Self::Latency(found, _) = self { found.as_ref() } else { None }
    }

    /// What the tests of RFC 2544 found.
    #[must_use]
    pub fn rfc2544(&self) -> Option<&Rfc2544> {
        if let Self::Rfc2544(found, _) = self { found.as_deref() } else { None }
    }

    /// What a soak found.
    #[must_use]
    pub fn soak(&self) -> Option<&Soak> {
        if let Self::Soak(found) = self { found.as_ref() } else { None }
    }

    /// At which rates the device stalls.
    #[must_use]
    pub fn stall_search(&self) -> Option<&StallSearch> {
        if let Self::Stall(found) = self { found.as_deref() } else { None }
    }

    /// The generator that was measured.
    #[must_use]
    pub fn generator(&self) -> Option<&Generator> {
        if let Self::Generator(found) = self { found.as_deref() } else { None }
    }

    /// What a forwarded frame cost the device.
    #[must_use]
    pub fn cost(&self) -> Option<&Cost> {
        if let Self::Cost(found) = self { found.as_ref() } else { None }
    }

    /// Adds a trial of a search that goes on, and its results so far.
    pub(crate) fn add_trial(&mut self, trial: Trial, results: BTreeMap<String, GoalResult>) {
        let search = match self {
            Self::Search(search) => search,
            Self::Ramp(search) | Self::Latency(_, search) | Self::Rfc2544(_, search) => {
                search.get_or_insert_default()
            }
            _ => return,
        };
        search.trials.push(trial);
        search.results = results;
    }

    /// Adds a load of a latency test that goes on; `common` is the test without loads.
    pub(crate) fn add_latency(&mut self, load: LoadLatency, common: LatencyTest) {
        if let Self::Latency(found, _) = self {
            found.get_or_insert(common).loads.push(load);
        }
    }
}

impl From<Fields> for Finding {
    fn from(fields: Fields) -> Self {
        let Fields { results, disturbed, limited_by, trials, .. } = fields;
        let search = Search { results, disturbed, limited_by, trials };
        let search = (search != Search::default()).then_some(search);
        if let Some(found) = fields.stall_search {
            return Self::Stall(Some(found));
        }
        match (fields.latency, fields.rfc2544, fields.soak, fields.generator, fields.cost) {
            (Some(found), ..) => Self::Latency(Some(found), search),
            (_, Some(found), ..) => Self::Rfc2544(Some(found), search),
            (_, _, Some(found), ..) => Self::Soak(Some(found)),
            (.., Some(found), _) => Self::Generator(Some(found)),
            (.., Some(found)) => Self::Cost(Some(found)),
            _ => search.map_or(Self::Other, Self::Search),
        }
    }
}

impl From<Finding> for Fields {
    fn from(finding: Finding) -> Self {
        let of_search = |search: Option<Search>| {
            let Search { results, disturbed, limited_by, trials } = search.unwrap_or_default();
            Self { results, disturbed, limited_by, trials, ..Self::default() }
        };
        match finding {
            Finding::Saturate | Finding::Other => Self::default(),
            Finding::Ramp(search) => of_search(search),
            Finding::Search(search) => of_search(Some(search)),
            Finding::Latency(latency, search) => Self { latency, ..of_search(search) },
            Finding::Rfc2544(rfc2544, search) => Self { rfc2544, ..of_search(search) },
            Finding::Soak(soak) => Self { soak, ..Self::default() },
            Finding::Stall(stall_search) => Self { stall_search, ..Self::default() },
            Finding::Generator(generator) => Self { generator, ..Self::default() },
            Finding::Cost(cost) => Self { cost, ..Self::default() },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use serde::Deserializer;
    use serde::de::{IgnoredAny, MapAccess, Visitor};
    use serde_json::{Value, json};

    use super::*;
    use crate::Record;
    use crate::fixtures::{Scenario, bench, oddities, searches};

    /// The fields of a finding, in the order of a record.
    const NAMES: [&str; 10] = [
        "results",
        "disturbed",
        "limited_by",
        "trials",
        "latency",
        "rfc2544",
        "soak",
        "generator",
        "cost",
        "stall_search",
    ];

    fn records() -> Vec<Record> {
        let scenario = Scenario::default();
        let others = [
            scenario.latency_test(),
            scenario.eventful_soak(),
            scenario.stall_search(),
            scenario.searched_ramp(),
        ];
        bench().into_iter().chain(oddities()).chain(searches()).chain(others).collect()
    }

    #[test]
    fn what_was_found_stands_among_the_fields_of_a_record_and_is_read_again() {
        for record in records() {
            let text = serde_json::to_string(&record).unwrap();
            let read: Record = serde_json::from_str(&text).unwrap();
            assert!(read == record, "{}", record.name);
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
            // All versions wrote them in this order.
            let keys = serde_json::from_str::<Keys>(&text).unwrap().0;
            let found = keys.iter().filter(|key| NAMES.contains(&key.as_str()));
            let places: Vec<_> = found.map(|key| NAMES.iter().position(|name| name == key)).collect();
            assert!(places.is_sorted(), "{}: {keys:?}", record.name);
            let at = |name: &str| keys.iter().position(|key| key == name);
            let first = keys.iter().position(|key| NAMES.contains(&key.as_str()));
            assert!(first.is_none_or(|first| at("directions") == Some(first - 1)), "{keys:?}");
        }
    }

    /// The keys of an object, in their order.
    struct Keys(Vec<String>);

    impl<'de> Deserialize<'de> for Keys {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Self(Vec::new()))
        }
    }

    impl<'de> Visitor<'de> for Keys {
        type Value = Self;

        fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
            while let Some((key, IgnoredAny)) = map.next_entry()? {
                self.0.push(key);
            }
            Ok(self)
        }
    }

    #[test]
    fn a_record_that_found_nothing_yet_is_still_of_its_strategy() {
        let mut record = Scenario::default().record();
        let names =
            ["ramp", "saturate", "search", "latency", "rfc2544", "soak", "stall", "generator", "cost"];
        for name in names.into_iter().chain(["else"]) {
            name.clone_into(&mut record.strategy.name);
            record.finding = Finding::nothing_yet(name);
            let value = serde_json::to_value(&record).unwrap();
            assert!(NAMES.iter().all(|name| value.get(name).is_none()), "{name}: {value}");
            let read: Record = serde_json::from_value(value).unwrap();
            assert!(read == record, "{name}: {:?}", read.finding);
        }
    }

    #[test]
    fn the_search_of_an_interrupted_test_is_read_as_a_part_of_it() {
        let search = Scenario::default().search();
        for (name, is_it) in [("latency", true), ("rfc2544", true), ("ramp", true), ("search", false)] {
            let mut value = serde_json::to_value(&search).unwrap();
            value["strategy"]["name"] = json!(name);
            let read: Record = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(!matches!(read.finding, Finding::Search(_)), is_it);
            assert_eq!(read.finding.search(), search.finding.search());
            let again: Value = serde_json::to_value(&read).unwrap();
            assert_eq!(again, value);
        }
    }
}
