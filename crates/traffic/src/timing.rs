//! When the streams of a profile in TOML send: the keys of bursts and chains enter, lanes of a timeline leave.

use std::time::Duration;

use crate::error::Error;
use crate::reader::{Node, Section};
use crate::repetition::Repetition;
use crate::timeline::{ENDLESS, Lane, Mode};

/// The most frames of a burst, and the most bursts.
const MOST: u128 = u32::MAX as u128;
/// The most frames of a period: a table has room for them in both directions.
const MOST_FRAMES: usize = 1 << 18;

/// What a stream says of when it sends; a stream that says nothing sends without end.
pub(crate) struct Timing<'a> {
    mode: Mode,
    delay: Duration,
    /// The name of the stream that begins when this one has ended.
    next: Option<Node<'a>>,
    starts: bool,
    /// The stream, for messages.
    stream: Node<'a>,
    /// Whether any key of these was there.
    pub is_given: bool,
}

impl<'a> Timing<'a> {
    /// Reads the keys of `section`, which is that of `stream`.
    ///
    /// # Errors
    /// When a value is wrong, or a key needs another one.
    pub fn read(section: &mut Section<'a>, stream: Node<'a>) -> Result<Self, Error> {
        let burst = section.get("burst").map(|node| node.number(1, MOST)).transpose()?;
        let bursts = section.get("bursts").map(|node| node.number(1, MOST)).transpose()?;
        let pause = section.get("pause").map(|node| node.duration()).transpose()?;
        let delay = section.get("delay").map(|node| node.duration()).transpose()?;
        let next = section.get("next");
        let starts = section.get("starts").map(|node| node.boolean()).transpose()?;
        let of_bursts = bursts.is_some() || pause.is_some() || next.is_some();
        let mode = match burst {
            None if of_bursts => {
                return Err(
                    stream.error("bursts, pause and next are of a stream with bursts: write burst = FRAMES")
                );
            }
            None => Mode::Continuous,
            Some(frames) => {
                let once = if next.is_some() { 1 } else { ENDLESS };
                let count = bursts.map_or(once, |count| count as u64);
                if count > 1 && pause.is_none() {
                    return Err(stream.error("bursts that come again need a pause: write pause = \"1ms\""));
                }
                Mode::Bursts { frames: frames as u64, count, gap: pause.unwrap_or_default() }
            }
        };
        let is_given = burst.is_some() || delay.is_some() || starts.is_some();
        let (delay, starts) = (delay.unwrap_or_default(), starts.unwrap_or(true));
        Ok(Self { mode, delay, next, starts, stream, is_given })
    }
}

/// How streams with these names and rates (frames a second) leave; none where all send without end.
///
/// # Errors
/// When they do not repeat, or a chain names a stream that is not there.
pub(crate) fn repetition(
    timings: &[Timing<'_>],
    names: &[&str],
    rates: &[f64],
) -> Result<Option<Repetition>, Error> {
    let Some(first) = timings.iter().find(|timing| timing.is_given) else { return Ok(None) };
    if timings.iter().all(|timing| timing.mode == Mode::Continuous && timing.starts) {
        // They all send, but for a moment at the beginning.
        return Ok(None);
    }
    let lane = |(timing, pps): (&Timing<'_>, &f64)| {
        let next = timing.next.map(|node| {
            let name = node.text()?;
            let place = names.iter().position(|known| *known == name);
            place.ok_or_else(|| {
                node.error(format!("there is no stream '{name}': there are {}", names.join(", ")))
            })
        });
        Ok(Lane {
            port: 0,
            pps: *pps,
            mode: timing.mode,
            wait: u64::try_from(timing.delay.as_nanos()).unwrap_or(u64::MAX),
            next: next.transpose()?,
            turns: None,
            starts: timing.starts,
        })
    };
    let lanes = timings.iter().zip(rates).map(lane).collect::<Result<Vec<_>, Error>>()?;
    Repetition::of(&lanes, MOST_FRAMES).map(Some).map_err(|error| first.stream.error(error))
}
