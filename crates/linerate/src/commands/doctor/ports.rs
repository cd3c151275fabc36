//! Interfaces as the tester's ports: their names enter, what they are and can and what stands in the way leaves,
//! line by line.

use lab::{Destination, Level, open_port};
use ports::{PortFacts, Sending, Severity};
use wire::MacAddress;

use super::Line;

/// What was found at the interface `name`.
pub fn look_at(name: &str) -> Vec<Line> {
    let facts = match ports::read(name) {
        Ok(facts) => facts,
        Err(error) => return vec![line(name, Level::Missing, error.to_string(), None)],
    };
    let mut lines = vec![line(name, Level::Good, describe(&facts), None)];
    lines.extend(ports::findings(&facts).into_iter().map(|finding| {
        let level = match finding.severity {
            Severity::Refuse => Level::Missing,
            Severity::Warn => Level::Degraded,
        };
        line(name, level, finding.cause, Some(finding.remedy))
    }));
    lines.push(engine(&facts));
    lines
}

fn line(name: &str, level: Level, found: String, remedy: Option<String>) -> Line {
    Line { name: name.to_owned(), level, found, remedy }
}

/// By which engine the interface can send. What has to be tried is tried only where a test would be allowed.
fn engine(facts: &PortFacts) -> Line {
    let name = format!("{} engine", facts.name);
    let tried = match Sending::of(facts) {
        Sending::Yes | Sending::No { .. } => ports::can_send(facts, MacAddress::default()),
        Sending::WithProgram | Sending::Unknown => {
            match open_port(&facts.name, Destination::Mac(MacAddress::default()), 0) {
                Ok(port) => ports::can_send(facts, port.mac),
                Err(refusal) => {
                    let remedy = Some("Mend this, then ask again".to_owned());
                    return line(&name, Level::Degraded, format!("not tried: {refusal}"), remedy);
                }
            }
        }
    };
    match tried {
        Err(error) => line(&name, Level::Degraded, error.to_string(), None),
        Ok(verdict) => match verdict.sending {
            Sending::No { cause, remedy } => {
                line(&name, Level::Degraded, format!("not xdp: {cause}"), Some(remedy))
            }
            _ if verdict.needs_program => line(
                &name,
                Level::Good,
                format!("xdp, with a program at the port ({})", verdict.because),
                None,
            ),
            _ => line(&name, Level::Good, format!("xdp ({})", verdict.because), None),
        },
    }
}

/// The facts in a line.
fn describe(facts: &PortFacts) -> String {
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
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::record::{Queues, XdpFeature};

    #[test]
    fn facts_are_told_in_a_line() {
        let facts = PortFacts {
            driver: Some("igb".to_owned()),
            driver_version: Some("6.12.9".to_owned()),
            speed_mbps: Some(1000),
            mtu: 1500,
            queues: Some(Queues { combined: 4, ..Queues::default() }),
            xdp_features: Some([XdpFeature::Basic, XdpFeature::Redirect].into()),
            ..PortFacts::default()
        };
        let told = "igb, version 6.12.9, 1000 Mb/s, MTU 1500, queues 4 in, 4 out, XDP basic redirect";
        assert_eq!(describe(&facts), told);
        let nothing = "unknown driver, MTU 0, XDP features unknown before Linux 6.3";
        assert_eq!(describe(&PortFacts::default()), nothing);
    }

    #[test]
    fn an_interface_that_is_not_there_is_missing() {
        let lines = look_at("no-such");
        assert_eq!((lines.len(), lines[0].level), (1, Level::Missing));
    }
}
