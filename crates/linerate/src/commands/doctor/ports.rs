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
    let mut lines = vec![line(name, Level::Good, ports::describe(&facts), None)];
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_missing() {
        let lines = look_at("no-such");
        assert_eq!((lines.len(), lines[0].level), (1, Level::Missing));
    }
}
