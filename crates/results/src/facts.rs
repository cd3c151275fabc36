//! What a figure depends on beside what is compared: records enter; what they differ in leaves.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::{Host, Port, Record};

/// What is known of one record, by name.
pub type Facts = BTreeMap<String, String>;

/// What was done and sent. Figures that differ in it are not figures of the same thing.
#[must_use]
pub fn measurement(record: &Record) -> Facts {
    let strategy = &record.strategy;
    let mut facts = named([
        ("strategy", strategy.name.clone()),
        ("profile", record.profile.name.clone()),
        ("bidirectional", record.profile.bidirectional.to_string()),
        ("line rate", wire::human::bps(record.line_rate_bps)),
    ]);
    facts.extend(prefixed("", &strategy.parameters));
    facts.extend(prefixed("profile ", &record.profile.tunables));
    facts.extend(record.profile.source.clone().map(|text| ("profile text".to_owned(), text)));
    facts
}

/// What it was done to, with, and where: what is compared may be among it.
#[must_use]
pub fn configuration(record: &Record) -> Facts {
    let (tester, environment) = (&record.tester, &record.environment);
    let ports = |value: fn(&Port) -> String| tester.ports.iter().map(value).collect::<Vec<_>>().join(", ");
    let mut facts = named([
        ("device", record.dut.label()),
        ("device's core", record.dut.core.map_or_else(|| "unknown".to_owned(), |core| core.to_string())),
        ("engine", tester.engine.clone()),
        ("tester's cores", format!("{:?}", tester.cores)),
        ("tester's receiving core", format!("{:?}", tester.receive_core)),
        ("tester's receiving cores", format!("{:?}", tester.receive_cores)),
        ("drivers", ports(|port| port.driver.clone().unwrap_or_else(|| "unknown".to_owned()))),
        ("XDP", ports(|port| port.xdp_mode.clone())),
        ("linerate", environment.linerate.clone()),
        ("kernel", environment.kernel.clone()),
        ("system", environment.os.clone()),
        ("CPU", environment.cpu.clone()),
        ("cores", environment.cores.to_string()),
        ("memory", environment.memory_bytes.to_string()),
        ("hypervisor", environment.hypervisor.clone().unwrap_or_else(|| "none".to_owned())),
    ]);
    facts.extend(settings(environment.host.as_deref()));
    facts.extend(prefixed("device's ", &record.dut.configuration));
    let generator = record.finding.generator();
    facts.extend(generator.map(|it| ("generator".to_owned(), format!("{} {}", it.program, it.version))));
    facts
}

/// How the cores of a machine are arranged and set, `unknown` where the record does not tell.
fn settings(host: Option<&Host>) -> Facts {
    let unknown = || "unknown".to_owned();
    let list = |entries: Vec<String>| if entries.is_empty() { unknown() } else { entries.join(", ") };
    let told = |value: fn(&Host) -> Option<String>| host.and_then(value).unwrap_or_else(unknown);
    named([
        ("arrangement of the cores", told(|host| Some(host.topology.in_words()))),
        ("SMT", told(|host| host.topology.smt.clone())),
        ("governor", list(host.iter().flat_map(|host| host.governors.iter().cloned()).collect())),
        ("microcode", told(|host| host.microcode.clone())),
        ("kernel command line", told(|host| host.command_line.clone())),
        (
            "mitigations",
            list(
                host.iter()
                    .flat_map(|host| &host.mitigations)
                    .map(|(name, what)| format!("{name}: {what}"))
                    .collect(),
            ),
        ),
    ])
}

/// Values of one fact that are named.
const NAMED: usize = 3;

/// Each fact that is not the same everywhere, with what it is where: `kernel (6.1 in a, 6.18 in b)`.
pub fn differences<'a>(of: impl Iterator<Item = (&'a str, Facts)>) -> Vec<String> {
    let all: Vec<(&str, Facts)> = of.collect();
    let names: BTreeSet<&String> = all.iter().flat_map(|(_, facts)| facts.keys()).collect();
    let difference = |name: &String| {
        let mut values: Vec<(&str, &str)> = Vec::new();
        for (place, facts) in &all {
            let value = facts.get(name).map_or("not set", String::as_str);
            if values.iter().all(|(known, _)| *known != value) {
                values.push((value, place));
            }
        }
        let mut told: Vec<String> = values
            .iter()
            .take(NAMED)
            .map(|(value, place)| format!("{} in {place}", shortened(value)))
            .collect();
        if values.len() > NAMED {
            told.push(format!("{} other values", values.len() - NAMED));
        }
        (values.len() > 1).then(|| format!("{name} ({})", told.join(", ")))
    };
    names.into_iter().filter_map(difference).collect()
}

/// The first line, and that there are more.
fn shortened(value: &str) -> String {
    match value.split_once('\n') {
        Some((first, _)) => format!("{first} …"),
        None => value.to_owned(),
    }
}

fn named<const N: usize>(pairs: [(&str, String); N]) -> Facts {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn prefixed<'a>(prefix: &'a str, facts: &'a Facts) -> impl Iterator<Item = (String, String)> + 'a {
    facts.iter().map(move |(name, value)| (format!("{prefix}{name}"), value.clone()))
}

#[cfg(test)]
mod tests {
    use crate::fixtures::Scenario;

    use super::*;

    #[test]
    fn what_differs_is_named_with_its_values() {
        let one = Scenario::default().record();
        let mut other = Scenario { dut: "xdp-router", traffic: "imix", ..Scenario::default() }.record();
        other.environment.kernel = "6.99".to_owned();
        other.dut.configuration.insert("gro".to_owned(), "maybe".to_owned());
        let records = || [("a", &one), ("b", &other)].into_iter();
        let found = differences(records().map(|(place, record)| (place, configuration(record))));
        let all = found.join("; ");
        for clue in ["device (linux-router in a, xdp-router in b)", "6.99 in b)", "maybe in b)"] {
            assert!(all.contains(clue), "no '{clue}' in {all}");
        }
        assert_eq!(found.len(), 3, "{all}");
        assert!(!differences(records().map(|(place, record)| (place, measurement(record)))).is_empty());
        assert!(differences([("a", measurement(&one)), ("b", measurement(&one))].into_iter()).is_empty());
    }
}
