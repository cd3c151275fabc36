//! Frames that tell whether a device filters: a profile and the sources whose packets the device must drop enter; a
//! profile of pairs of streams leaves, of which the first is the profile's own and the second is like it, but from such a
//! source.

use std::net::IpAddr;

use crate::error::Error;
use crate::field::Field;
use crate::profile::Profile;
use crate::stream::{Network, Stream};

impl Profile {
    /// For each source in `denied` of an IP version that this profile has: one of its streams, and the same from that
    /// source, in both directions. `None` where the profile has no stream of any of these versions, as a capture.
    ///
    /// # Errors
    /// None are known to occur: the streams are those of a profile.
    pub fn probes(&self, denied: &[IpAddr]) -> Result<Option<Self>, Error> {
        let pair = |direction: usize, source: IpAddr| -> Option<[Stream; 2]> {
            let is_alike = |stream: &&Stream| matches!(stream.network, Network::V4(_)) == source.is_ipv4();
            let own = self.streams()[direction].iter().find(is_alike)?;
            Some(
                [("permitted", None), ("denied", Some(source))]
                    .map(|(name, source)| probe(own, name, source)),
            )
        };
        let both = denied.iter().filter_map(|source| Some([pair(0, *source)?, pair(1, *source)?]));
        let (forward, reverse): (Vec<_>, Vec<_>) = both.map(|[forward, reverse]| (forward, reverse)).unzip();
        if forward.is_empty() {
            return Ok(None);
        }
        let streams = [forward, reverse].map(|pairs| pairs.into_iter().flatten().collect());
        Ok(Some(Self::new("probes", streams)?.with_fill(self.fill())))
    }
}

/// `own` in its largest frames, with the weight of all others; from `source`, if there is one.
fn probe(own: &Stream, name: &str, source: Option<IpAddr>) -> Stream {
    let mut stream = Stream { name: name.to_owned(), weight: 1, ..own.clone() };
    stream.size = Field::fixed(own.size.max());
    match (&mut stream.network, source) {
        (Network::V4(ip), Some(IpAddr::V4(source))) => ip.source = Field::fixed(source.to_bits().into()),
        (Network::V6(ip), Some(IpAddr::V6(source))) => ip.source = Field::fixed(source.to_bits()),
        _ => {}
    }
    stream
}

#[cfg(test)]
mod tests {
    use wire::MacAddress;

    use super::*;
    use crate::show::Flow;
    use crate::{Directions, Endpoint, Endpoints, Tunables};

    #[test]
    fn probes_are_the_profiles_frames_and_the_same_from_denied_sources() {
        let endpoint = Endpoint { source: MacAddress([2; 6]), destination: MacAddress([4; 6]) };
        let profile = Profile::builtin("bench", &Tunables::default()).unwrap();
        let denied: [IpAddr; 2] = ["10.0.0.9".parse().unwrap(), "fd00::9".parse().unwrap()];
        let probes = profile.probes(&denied).unwrap().unwrap();
        let table = probes.table(&Endpoints([endpoint; 2]), Directions::Both);
        assert_eq!(table.streams(), 2, "the profile has no IPv6");
        for (index, row) in table.rows.iter().enumerate() {
            let flow = Flow::parse(table.header(index)).unwrap();
            let own: IpAddr = if row.direction == 0 { "16.0.0.4" } else { "48.0.0.4" }.parse().unwrap();
            let other: IpAddr = if row.direction == 0 { "48.0.0.4" } else { "16.0.0.4" }.parse().unwrap();
            assert_eq!(flow.source, if row.stream == 0 { own } else { denied[0] });
            assert_eq!(flow.destination, other, "all other fields are the same");
        }
        assert!(profile.probes(&denied[1..]).unwrap().is_none());
    }
}
