//! An interface in a line for people: its facts enter, text leaves.

use results::record::PortFacts;

/// The facts in a line, for people.
#[must_use]
pub fn describe(facts: &PortFacts) -> String {
    let mut parts = vec![facts.driver.clone().unwrap_or_else(|| "unknown driver".to_owned())];
    parts.extend(facts.driver_version.iter().map(|version| format!("version {version}")));
    parts.extend(facts.speed_mbps.map(|speed| format!("{speed} Mb/s")));
    parts.push(format!("MTU {}", facts.mtu));
    if let Some(queues) = facts.queues {
        let count = |own: u32| own + queues.combined;
        parts.push(format!("queues {} in, {} out", count(queues.receive), count(queues.transmit)));
    }
    parts.extend(facts.rings.map(|rings| format!("rings {} in, {} out", rings.receive, rings.transmit)));
    parts.push(match &facts.xdp_features {
        None => "XDP features unknown before Linux 6.3".to_owned(),
        Some(features) if features.is_empty() => "no XDP".to_owned(),
        Some(features) => {
            let names: Vec<_> = features.iter().map(|feature| feature.name()).collect();
            format!("XDP {}", names.join(" "))
        }
    });
    parts.extend(facts.node.map(|node| format!("NUMA node {node}")));
    if !facts.interrupts.is_empty() {
        let mut cores: Vec<usize> = facts.interrupts.iter().flat_map(|it| &it.cores).copied().collect();
        cores.sort_unstable();
        cores.dedup();
        let cores: Vec<String> = cores.iter().map(ToString::to_string).collect();
        parts.push(format!("{} interrupts, served by cores {}", facts.interrupts.len(), cores.join(" ")));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use results::record::{PortInterrupt, Queues, XdpFeature};

    use super::*;

    #[test]
    fn facts_are_told_in_a_line() {
        let interrupt = |cores: &[usize]| PortInterrupt { cores: cores.to_vec(), ..PortInterrupt::default() };
        let facts = PortFacts {
            driver: Some("igb".to_owned()),
            driver_version: Some("6.12.9".to_owned()),
            speed_mbps: Some(1000),
            mtu: 1500,
            queues: Some(Queues { combined: 4, ..Queues::default() }),
            xdp_features: Some([XdpFeature::Basic, XdpFeature::Redirect].into()),
            node: Some(1),
            interrupts: vec![interrupt(&[3, 2]), interrupt(&[3])],
            ..PortFacts::default()
        };
        let told = "igb, version 6.12.9, 1000 Mb/s, MTU 1500, queues 4 in, 4 out, XDP basic redirect, NUMA node 1, \
                    2 interrupts, served by cores 2 3";
        assert_eq!(describe(&facts), told);
        let nothing = "unknown driver, MTU 0, XDP features unknown before Linux 6.3";
        assert_eq!(describe(&PortFacts::default()), nothing);
    }
}
