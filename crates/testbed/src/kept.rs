//! Where findings about the tester are kept: a file in the user's cache directory. What is of another
//! machine, kernel or version is no finding.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use monitor::usual_of;
use results::record::SelfTest;
use serde::{Deserialize, Serialize};

use crate::environment;

/// So many runs tell what is usual.
const RUNS_KEPT: usize = 64;

/// The file.
pub struct Kept {
    path: Option<PathBuf>,
}

#[derive(Default, Serialize, Deserialize)]
struct Content {
    /// The machine and version that all findings are of.
    of: String,
    findings: BTreeMap<String, SelfTest>,
    /// Nanoseconds of a cache line's way to a core and back in the latest runs, by the cores in use and the core.
    #[serde(default)]
    handovers_of_runs: BTreeMap<String, BTreeMap<usize, VecDeque<u64>>>,
    /// What receiving costs, by all that it depends on but the distance of the cores; one for each distance that
    /// was met.
    #[serde(default)]
    receiving: BTreeMap<String, Vec<ReceiveCost>>,
}

/// What receiving takes of the device's core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receiving {
    /// Nanoseconds for one 64-byte frame.
    pub cost_ns: f64,
    /// The share of its time while the device is at its limit, 0 to 1.
    pub share: f64,
}

/// What receiving costs the core of a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReceiveCost {
    /// What it takes of the core.
    pub receiving: Receiving,
    /// How far the device's core was from the generator's then: nanoseconds of a cache line's way to and fro.
    pub distance_ns: u64,
}

impl ReceiveCost {
    /// Whether it is of the phase of the machine in which the cores are `distance_ns` apart; phases differ by a factor
    /// of two and more.
    #[must_use]
    pub fn is_of(&self, distance_ns: u64) -> bool {
        let (less, more) = (self.distance_ns.min(distance_ns), self.distance_ns.max(distance_ns));
        more <= less.saturating_add(less / 2)
    }
}

impl Kept {
    /// `$XDG_CACHE_HOME/linerate/self-test.json`, or in `~/.cache`. Without either nothing is kept.
    pub fn open() -> Self {
        let directory =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = directory("XDG_CACHE_HOME").or_else(|| Some(directory("HOME")?.join(".cache")));
        Self { path: cache.map(|cache| cache.join("linerate/self-test.json")) }
    }

    /// The finding that is kept for `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<SelfTest> {
        self.read().findings.remove(key)
    }

    /// Keeps a finding.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn put(&self, key: &str, finding: &SelfTest) -> Result<()> {
        let mut content = self.read();
        content.findings.insert(key.to_owned(), finding.clone());
        self.write(&content)
    }

    /// How long a cache line usually takes from the first of these cores to each other one and back: the time that one
    /// run in ten did not exceed. (Not the shortest ever: a hypervisor that once put two cores on the halves of a
    /// physical one would make all later runs far ones.)
    pub fn usual_handovers(&self, cores: &str) -> BTreeMap<usize, Duration> {
        let kept = self.read().handovers_of_runs.remove(cores).unwrap_or_default();
        let usual = |runs: VecDeque<u64>| usual_of(runs.into_iter().map(Duration::from_nanos).collect());
        kept.into_iter().filter_map(|(core, runs)| Some((core, usual(runs)?))).collect()
    }

    /// Keeps how long it took in a run, in nanoseconds.
    pub fn put_handovers(&self, cores: &str, of_run: &BTreeMap<usize, u64>) -> Result<()> {
        if of_run.is_empty() {
            return Ok(());
        }
        let mut content = self.read();
        let kept = content.handovers_of_runs.entry(cores.to_owned()).or_default();
        for (core, took) in of_run {
            let runs = kept.entry(*core).or_default();
            if runs.len() >= RUNS_KEPT {
                runs.pop_front();
            }
            runs.push_back(*took);
        }
        self.write(&content)
    }

    /// The cost of receiving that is kept for `key`, while the cores are `distance_ns` apart.
    #[must_use]
    pub fn receive_cost(&self, key: &str, distance_ns: u64) -> Option<Receiving> {
        let kept = self.read().receiving.remove(key)?;
        kept.iter().find(|cost| cost.is_of(distance_ns)).map(|cost| cost.receiving)
    }

    /// Keeps a cost of receiving in place of those that were found at the same distance.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn put_receive_cost(&self, key: &str, cost: ReceiveCost) -> Result<()> {
        let mut content = self.read();
        let kept = content.receiving.entry(key.to_owned()).or_default();
        kept.retain(|other| !other.is_of(cost.distance_ns));
        kept.push(cost);
        self.write(&content)
    }

    /// Forgets what was kept for `key`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn forget_receive_cost(&self, key: &str) -> Result<()> {
        let mut content = self.read();
        content.receiving.remove(key);
        self.write(&content)
    }

    fn write(&self, content: &Content) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let write = || {
            let directory = path.parent().unwrap_or(path);
            fs::create_dir_all(directory)?;
            // In one step: others may read meanwhile.
            results::whole::replace(path, &serde_json::to_vec(content)?)
        };
        write().with_context(|| format!("cannot keep the finding in {}", path.display()))
    }

    /// What is there; nothing, if that is of another machine or version, or no such file at all.
    fn read(&self) -> Content {
        let of = machine();
        let text = self.path.as_ref().and_then(|path| fs::read(path).ok()).unwrap_or_default();
        let content = serde_json::from_slice(&text).ok().filter(|content: &Content| content.of == of);
        content.unwrap_or(Content { of, ..Content::default() })
    }
}

fn machine() -> String {
    let environment = environment::read();
    format!(
        "linerate {} on Linux {}, {} cores of {}, started {}",
        environment.linerate,
        environment.kernel,
        environment.cores,
        environment.cpu,
        fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_again_on_the_same_machine_only() {
        let directory = tempfile::tempdir().unwrap();
        let kept = Kept { path: Some(directory.path().join("new/self-test.json")) };
        let finding = SelfTest {
            measured: "2026-01-01T00:00:00Z".to_owned(),
            ceiling_pps: 4e6,
            base_latency_min_ns: 3_000,
            base_latency_mean_ns: 9_000.0,
            base_latency_p50_ns: Some(8_800),
        };
        assert_eq!(kept.get("a"), None);
        kept.put("a", &finding).unwrap();
        kept.put("b", &SelfTest { ceiling_pps: 5e6, ..finding.clone() }).unwrap();
        assert_eq!(kept.get("a"), Some(finding));
        assert_eq!(kept.get("c"), None);
        let cost = ReceiveCost { receiving: Receiving { cost_ns: 46.0, share: 0.1 }, distance_ns: 90 };
        kept.put_receive_cost("linux-router", cost).unwrap();
        assert_eq!(kept.receive_cost("linux-router", 90), Some(cost.receiving));

        let path = kept.path.as_ref().unwrap();
        let other = fs::read_to_string(path).unwrap().replace("Linux ", "Linux 2.");
        fs::write(path, other).unwrap();
        assert_eq!(kept.get("a"), None, "another kernel");
        assert_eq!(kept.receive_cost("linux-router", 90), None, "another kernel");
        fs::write(path, "no JSON").unwrap();
        assert_eq!(kept.get("a"), None);
    }

    #[test]
    fn what_is_usual_between_cores_is_what_one_run_in_ten_does_not_exceed() {
        let directory = tempfile::tempdir().unwrap();
        let kept = Kept { path: Some(directory.path().join("self-test.json")) };
        let way = |ns: u64| BTreeMap::from([(1, Duration::from_nanos(ns))]);
        let run = |ns: u64| kept.put_handovers("0 and 1", &BTreeMap::from([(1, ns)])).unwrap();
        assert_eq!(kept.usual_handovers("0 and 1"), BTreeMap::new());
        // A machine may begin with its cores far apart.
        run(400);
        run(90);
        assert_eq!(kept.usual_handovers("0 and 1"), way(90));
        // One run on the halves of a physical core does not make all others far.
        run(35);
        (0..9).for_each(|_| run(90));
        assert_eq!(kept.usual_handovers("0 and 1"), way(90));
        // What is long past counts no more.
        (0..RUNS_KEPT).for_each(|_| run(140));
        assert_eq!(kept.usual_handovers("0 and 1"), way(140));
        kept.put_handovers("0 and 1", &BTreeMap::new()).unwrap();
        assert_eq!(kept.read().handovers_of_runs["0 and 1"][&1].len(), RUNS_KEPT);
    }

    #[test]
    fn each_phase_of_the_machine_has_its_own_cost_of_receiving() {
        let directory = tempfile::tempdir().unwrap();
        let kept = Kept { path: Some(directory.path().join("self-test.json")) };
        let cost =
            |cost_ns, distance_ns| ReceiveCost { receiving: Receiving { cost_ns, share: 0.1 }, distance_ns };
        let found = |distance_ns| kept.receive_cost("linux-router", distance_ns).map(|found| found.cost_ns);
        kept.put_receive_cost("linux-router", cost(46.0, 85)).unwrap();
        kept.put_receive_cost("linux-router", cost(90.0, 380)).unwrap();
        assert_eq!([85, 110, 380, 700, 0].map(found), [Some(46.0), Some(46.0), Some(90.0), None, None]);
        // A later one of the same phase takes its place.
        kept.put_receive_cost("linux-router", cost(50.0, 100)).unwrap();
        assert_eq!([70, 85, 380].map(found), [Some(50.0), Some(50.0), Some(90.0)]);
        kept.forget_receive_cost("linux-router").unwrap();
        assert_eq!(found(380), None);
        assert!(cost(1.0, u64::MAX).is_of(u64::MAX));
    }
}
