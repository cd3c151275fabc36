//! The frames that a run sent: its record enters; a capture of the first of them leaves.

use std::str::FromStr;

use anyhow::{Context, Result};
use results::Record;
use traffic::capture::Writer;
use traffic::{Directions, Endpoint, Endpoints, Profile, Tunables};
use wire::MacAddress;

/// The first `most` frames of the profile, as a pcap file; signatures without numbers and times. A frame's destination is
/// the other port: the MAC addresses of a router are in no record.
///
/// # Errors
/// When the profile cannot be made again, as that of a capture, which no record holds.
pub fn capture(record: &Record, most: usize) -> Result<Vec<u8>> {
    let profile = profile(&record.profile)?;
    let mac = |port: usize| {
        let named = record.tester.ports.get(port).and_then(|port| MacAddress::from_str(&port.mac).ok());
        named.unwrap_or(MacAddress([2, 0, 0, 0, port as u8, 1]))
    };
    let endpoint = |port: usize| Endpoint { source: mac(port), destination: mac(1 - port) };
    let directions = if record.profile.bidirectional { Directions::Both } else { Directions::Forward };
    let table = profile.table_up_to(&Endpoints([endpoint(0), endpoint(1)]), directions, most);
    let mut capture = Writer::new(Vec::new())?;
    for index in 0..table.rows.len().min(most) {
        capture.frame(0, &table.frame(index))?;
    }
    Ok(capture.finish()?)
}

/// The profile that a record describes.
fn profile(sent: &results::record::Profile) -> Result<Profile> {
    if let Some(source) = &sent.source {
        return Profile::from_toml(&sent.name, source)
            .with_context(|| format!("cannot read the profile {} again", sent.name));
    }
    let tunable = |name: &str| sent.tunables.get(name).map(String::as_str);
    let tunables = Tunables {
        size: tunable("size").map(str::parse).transpose()?,
        vm: tunable("vm").map(str::parse).transpose()?,
        ip: tunable("ip").map(str::parse).transpose()?,
        vlan: tunable("vlan").map(str::parse).transpose()?,
    };
    Profile::builtin(&sent.name, &tunables)
        .with_context(|| format!("the profile {} cannot be made again", sent.name))
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;
    use traffic::Capture;

    use super::*;

    #[test]
    fn frames_are_those_of_the_profile_with_the_addresses_of_the_ports() {
        let mut record = Scenario::default().record();
        "bench".clone_into(&mut record.profile.name);
        record.profile.tunables =
            [("size", "128"), ("vm", "var2")].map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let file = capture(&record, 5).unwrap();
        let read = Capture::read(&file).unwrap();
        assert_eq!(read.frames.len(), 5);
        let source = MacAddress::from_str(&record.tester.ports[0].mac).unwrap();
        for frame in &read.frames {
            assert_eq!(frame.bytes.len(), 124);
            assert_eq!(frame.bytes[6..12], source.0);
        }
        "no such".clone_into(&mut record.profile.name);
        assert!(format!("{:#}", capture(&record, 5).unwrap_err()).contains("no such"));
    }
}
