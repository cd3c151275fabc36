//! A profile: a named set of streams for each direction. Streams enter, frame tables leave.

use std::collections::BTreeMap;
use std::path::Path;

use crate::capture::{Capture, Recording};
use crate::error::Error;
use crate::frame::{Directions, Endpoints};
use crate::prepared::Prepared;
use crate::repetition::Repetition;
use crate::schedule;
use crate::stream::{BothWays, IpVersion, MAX_STREAMS, Network, Stream, StreamError};
use crate::table::FrameTable;

/// The byte that fills payloads unless a profile says otherwise: TRex's `x`.
pub const FILL: u8 = b'x';

/// A named set of streams, known to be possible.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    name: String,
    description: String,
    tunables: BTreeMap<String, String>,
    /// Empty where there is a recording.
    streams: BothWays,
    recording: Option<Recording>,
    prepared: Option<Prepared>,
    /// How its streams leave where they have bursts.
    repetition: Option<Repetition>,
    fill: u8,
    base_pps: Option<f64>,
    source: Option<String>,
    notes: Vec<String>,
}

impl Profile {
    /// A profile of `streams`, which are those of port 0 → port 1 and those of the reverse:
    /// the same number, with the same weights.
    ///
    /// # Errors
    /// When there are none or too many, or a stream's frames are impossible.
    pub fn new(name: impl Into<String>, streams: BothWays) -> Result<Self, Error> {
        let [forward, reverse] = &streams;
        if forward.is_empty() || forward.len() > MAX_STREAMS {
            return Err(Error::Streams(forward.len()));
        }
        if !forward.iter().map(|stream| stream.weight).eq(reverse.iter().map(|stream| stream.weight)) {
            return Err(Error::Conflict(
                "both directions need the same number of streams, with the same weights",
            ));
        }
        let all: Vec<&Stream> = streams.iter().flatten().collect();
        check(&all).map_err(|(stream, error)| Error::Stream { stream: stream.name.clone(), error })?;
        Ok(Self {
            name: name.into(),
            description: String::new(),
            tunables: BTreeMap::new(),
            streams,
            recording: None,
            prepared: None,
            repetition: None,
            fill: FILL,
            base_pps: None,
            source: None,
            notes: Vec::new(),
        })
    }

    /// The frames of a capture, made fit to be counted, as in [`Recording`]. `origin` is the file's name,
    /// `file` its bytes.
    ///
    /// # Errors
    /// [`Error::Capture`] when it is no capture, or has no frame that can be counted.
    pub fn from_capture(origin: &str, file: &[u8]) -> Result<Self, Error> {
        let refused = |error| Error::Capture { origin: origin.to_owned(), error };
        let capture = Capture::read(file).map_err(refused)?;
        let (recording, notes) = Recording::new(&capture).map_err(refused)?;
        let name = Path::new(origin).file_stem().map_or(origin.into(), |stem| stem.to_string_lossy());
        Ok(Self {
            name: name.into_owned(),
            description: format!("{} frames of a capture", capture.frames.len()),
            tunables: BTreeMap::new(),
            streams: [Vec::new(), Vec::new()],
            recording: Some(recording),
            prepared: None,
            repetition: None,
            fill: FILL,
            base_pps: capture.mean_pps(),
            source: Some(format!("a capture of {} bytes, FNV-1a {:016x}", file.len(), fnv1a(file))),
            notes,
        })
    }

    /// The frames of another program's profile, whose text is `source`: all of port 0 → port 1, and, if there are
    /// any, all of both directions. Addresses of Ethernet are replaced by those of the ports.
    ///
    /// # Errors
    /// When there are no frames.
    pub fn from_tables(
        name: impl Into<String>,
        source: impl Into<String>,
        forward: FrameTable,
        both: Option<FrameTable>,
    ) -> Result<Self, Error> {
        if forward.rows.is_empty() || both.as_ref().is_some_and(|both| both.rows.is_empty()) {
            return Err(Error::Streams(0));
        }
        Ok(Self {
            name: name.into(),
            description: "a profile of another program".to_owned(),
            tunables: BTreeMap::new(),
            streams: [Vec::new(), Vec::new()],
            recording: None,
            fill: forward.fill,
            prepared: Some(Prepared::new(forward, both)),
            repetition: None,
            base_pps: None,
            source: Some(source.into()),
            notes: Vec::new(),
        })
    }

    /// Whether it has frames for `directions`.
    #[must_use]
    pub fn has(&self, directions: Directions) -> bool {
        self.prepared.as_ref().is_none_or(|prepared| prepared.has(directions))
    }

    /// The same with another description.
    #[must_use]
    pub fn with_description(self, description: impl Into<String>) -> Self {
        Self { description: description.into(), ..self }
    }

    /// The same with another byte to fill payloads.
    #[must_use]
    pub fn with_fill(self, fill: u8) -> Self {
        Self { fill, ..self }
    }

    /// The same with these tunables, already applied to the streams.
    #[must_use]
    pub fn with_tunables(self, tunables: BTreeMap<String, String>) -> Self {
        Self { tunables, ..self }
    }

    /// The same with notes for its reader.
    #[must_use]
    pub fn with_notes(self, notes: Vec<String>) -> Self {
        Self { notes, ..self }
    }

    /// The same, read from `source`, which asks for `base_pps` if it states rates.
    #[must_use]
    pub(crate) fn with_source(self, source: String, base_pps: Option<f64>) -> Self {
        Self { source: Some(source), base_pps, ..self }
    }

    /// The same whose streams leave as `repetition` says, with a note of how close frames are in bursts.
    #[must_use]
    pub(crate) fn with_repetition(mut self, repetition: Option<Repetition>) -> Self {
        self.notes.extend(repetition.iter().map(Repetition::note));
        Self { repetition, ..self }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is, in a line; may be empty.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Its tunables by name, as they were applied.
    #[must_use]
    pub fn tunables(&self) -> &BTreeMap<String, String> {
        &self.tunables
    }

    /// The streams of both directions: port 0 → port 1, and the reverse; none of a capture.
    #[must_use]
    pub fn streams(&self) -> &BothWays {
        &self.streams
    }

    /// The byte that fills payloads.
    #[must_use]
    pub fn fill(&self) -> u8 {
        self.fill
    }

    /// Frames a second and direction that its rates add up to, if it states rates. They scale
    /// together: only their proportions stay when a strategy sets the load.
    #[must_use]
    pub fn base_pps(&self) -> Option<f64> {
        self.base_pps
    }

    /// The sum of its streams' weights.
    #[must_use]
    pub fn total_weight(&self) -> u64 {
        let [forward, _] = &self.streams;
        forward.iter().fold(0, |sum, stream| sum.saturating_add(stream.weight))
    }

    /// The text it was read from, if it is not built in; of a capture what identifies it.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// What its reader should know, such as sizes that were raised.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether any stream is of this IP version.
    #[must_use]
    pub fn uses(&self, version: IpVersion) -> bool {
        if let Some(recording) = &self.recording {
            return recording.uses(version);
        }
        if let Some(prepared) = &self.prepared {
            return prepared.uses(version);
        }
        self.streams.iter().flatten().any(|stream| match stream.network {
            Network::V4(_) => version == IpVersion::V4,
            Network::V6(_) => version == IpVersion::V6,
        })
    }

    /// The largest frame size, FCS included: what an engine and an MTU must allow.
    #[must_use]
    pub fn largest_size(&self) -> u16 {
        if let Some(recording) = &self.recording {
            return recording.largest_size();
        }
        if let Some(prepared) = &self.prepared {
            return prepared.largest_size();
        }
        let largest = self.streams.iter().flatten().map(|stream| stream.size.max()).max();
        largest.and_then(|size| u16::try_from(size).ok()).unwrap_or(u16::MAX)
    }

    /// All its frames in the order of departure, streams interleaved smoothly by weight; a bounded
    /// sample when there are too many.
    #[must_use]
    pub fn table(&self, endpoints: &Endpoints, directions: Directions) -> FrameTable {
        self.table_up_to(endpoints, directions, FrameTable::MAX_ROWS)
    }

    /// The same, of at most `max_rows` rows (but of one for each direction at least).
    #[must_use]
    pub fn table_up_to(&self, endpoints: &Endpoints, directions: Directions, max_rows: usize) -> FrameTable {
        let max_rows = max_rows.min(FrameTable::MAX_ROWS);
        match (&self.recording, &self.prepared) {
            (Some(recording), _) => recording.table(endpoints, directions, self.fill, max_rows),
            (None, Some(prepared)) => prepared.table(endpoints, directions, max_rows),
            (None, None) => {
                let streams = (&self.streams, self.repetition.as_ref(), self.fill);
                schedule::table(streams, endpoints, directions, max_rows)
            }
        }
    }
}

/// The hash of Fowler, Noll and Vo, in 64 bits: the same for the same bytes everywhere.
fn fnv1a(bytes: &[u8]) -> u64 {
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// Whether the frames of all `streams` are possible, each and together; else which is not, and why.
pub(crate) fn check<'a>(streams: &[&'a Stream]) -> Result<(), (&'a Stream, StreamError)> {
    for stream in streams {
        stream.check().map_err(|error| (*stream, error))?;
    }
    let longest = streams.iter().max_by_key(|stream| stream.header_length());
    let shortest = streams.iter().min_by_key(|stream| stream.size.min());
    let (Some(longest), Some(shortest)) = (longest, shortest) else { return Ok(()) };
    // An engine copies whole 8 bytes: the last 8 of the longest headers must begin in every frame.
    let smallest = longest.header_length().next_multiple_of(8) - 7 + usize::from(wire::size::FCS);
    if shortest.size.min() < smallest as u128 {
        let error = StreamError::ShorterThanHeaders {
            size: shortest.size.min(),
            headers: longest.header_length(),
            other: longest.name.clone(),
            smallest,
        };
        return Err((*shortest, error));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::tests::udp;

    #[test]
    fn captures_are_told_apart() {
        assert_eq!([fnv1a(b""), fnv1a(b"foobar")], [0xcbf2_9ce4_8422_2325, 0x8594_4171_f739_67e8]);
    }

    #[test]
    fn impossible_profiles_are_refused() {
        let refused =
            |forward: Vec<Stream>, reverse| Profile::new("x", [forward, reverse]).unwrap_err().to_string();
        insta::assert_snapshot!(refused(vec![], vec![]), @"a profile has 1 to 256 streams, not 0");
        insta::assert_snapshot!(
            refused(vec![udp(64)], vec![Stream { weight: 2, ..udp(64) }]),
            @"both directions need the same number of streams, with the same weights"
        );
        insta::assert_snapshot!(
            refused(vec![udp(64)], vec![udp(60)]),
            @"stream 'udp': frames of 60 bytes do not hold IPv4 and UDP and the signature: the smallest that fits is 64"
        );
    }
}
