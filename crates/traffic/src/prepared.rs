//! Frames that another program's profile describes: frame tables of one direction and of both enter; the same
//! tables, with the addresses of a testbed, leave.

use wire::size;

use crate::capture::recording::Layers;
use crate::frame::{Directions, Endpoint, Endpoints};
use crate::stream::IpVersion;
use crate::table::{Apart, FrameTable, MEAN_DISTANCE, Row, in_mean_distances};

/// Tables of frames that are complete but for the addresses of Ethernet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Prepared {
    forward: FrameTable,
    /// Of both directions; none where the profile has nothing to send in the reverse one.
    both: Option<FrameTable>,
}

impl Prepared {
    /// Tables that have rows.
    pub(crate) fn new(forward: FrameTable, both: Option<FrameTable>) -> Self {
        Self { forward, both }
    }

    /// Whether there are frames for `directions`.
    pub(crate) fn has(&self, directions: Directions) -> bool {
        directions == Directions::Forward || self.both.is_some()
    }

    fn tables(&self) -> impl Iterator<Item = &FrameTable> {
        [Some(&self.forward), self.both.as_ref()].into_iter().flatten()
    }

    /// The largest frame size, FCS included.
    pub(crate) fn largest_size(&self) -> u16 {
        let lengths = self.tables().flat_map(|table| &table.rows).map(|row| row.length);
        lengths.max().unwrap_or(0).saturating_add(size::FCS)
    }

    /// Whether any frame is of this IP version.
    pub(crate) fn uses(&self, version: IpVersion) -> bool {
        let of = |table: &FrameTable| {
            (0..table.rows.len())
                .any(|row| Layers::parse(&table.frame(row)).is_some_and(|layers| layers.version == version))
        };
        self.tables().any(of)
    }

    /// The first `max_rows` of its frames, at least one; those of one direction where it has no other.
    pub(crate) fn table(&self, endpoints: &Endpoints, directions: Directions, max_rows: usize) -> FrameTable {
        let table = match &self.both {
            Some(both) if directions == Directions::Both => both,
            _ => &self.forward,
        };
        let rows: Vec<Row> = table.rows.iter().take(max_rows.max(1)).copied().collect();
        let mut headers = table.headers.clone();
        headers.truncate(rows.len() * table.header_length);
        for (row, header) in rows.iter().zip(headers.chunks_exact_mut(table.header_length.max(1))) {
            let Some(Endpoint { source, destination }) = endpoints.0.get(usize::from(row.direction)) else {
                continue;
            };
            if let Some(to) = header.get_mut(..6) {
                to.copy_from_slice(&destination.0);
            }
            if let Some(from) = header.get_mut(6..12) {
                from.copy_from_slice(&source.0);
            }
        }
        let times = table.times.iter().take(rows.len()).copied().collect::<Vec<_>>();
        let end = table.times.get(rows.len()).copied().unwrap_or(rows.len() as u64 * MEAN_DISTANCE);
        let times = in_mean_distances(&times, end);
        FrameTable { rows, headers, times, apart: Apart::default(), ..table.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Profile, Tunables};
    use wire::MacAddress;

    fn endpoints(last: u8) -> Endpoints {
        let endpoint = |end| Endpoint {
            source: MacAddress([2, 0, 0, 0, last, end]),
            destination: MacAddress([2, 0, 0, 1, last, end]),
        };
        Endpoints([endpoint(0), endpoint(1)])
    }

    #[test]
    fn tables_are_the_same_with_other_addresses() {
        let tunables = Tunables { vm: Some("var2".parse().unwrap()), ..Tunables::default() };
        let profile = Profile::builtin("bench", &tunables).unwrap();
        let of = |last, directions| profile.table(&endpoints(last), directions);
        let prepared = Prepared::new(of(1, Directions::Forward), Some(of(1, Directions::Both)));
        for directions in [Directions::Forward, Directions::Both] {
            assert_eq!(prepared.table(&endpoints(2), directions, usize::MAX), of(2, directions));
        }
        let few = prepared.table(&endpoints(2), Directions::Both, 10);
        assert_eq!((few.rows.len(), few.is_complete()), (10, false));
        assert_eq!(few.frame(9), of(2, Directions::Both).frame(9));
        assert_eq!(prepared.largest_size(), 64);
        assert!(prepared.uses(IpVersion::V4) && !prepared.uses(IpVersion::V6));
        let forward = Prepared::new(of(1, Directions::Forward), None);
        assert!(forward.has(Directions::Forward) && !forward.has(Directions::Both));
    }
}
