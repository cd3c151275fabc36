//! Streams with bursts and chains for a load test: the streams of both ports enter, a table of one period leaves, with
//! the times of its frames.

use traffic::FrameTable;
use traffic::repetition::Repetition;
use traffic::timeline::{ENDLESS, Lane, Mode};

use crate::plan::{self, MOST_ROWS, MOST_STREAMS, Part};
use crate::rpc::Failure;

/// The table of `parts`, whose streams repeat, and what the reader of a result should know.
///
/// # Errors
/// When they do not repeat, when ports do not send alike, or when a frame is one that cannot be sent.
pub fn table(parts: &[Part<'_>]) -> Result<(FrameTable, String), Failure> {
    let streams = plan::lanes(parts);
    let rates: Vec<f64> = streams.iter().map(|(part, stream)| stream.rates(part.line_rate_bps).pps).collect();
    let refused = |error: String| Err(Failure::execute(error));
    if streams.len() > MOST_STREAMS {
        return refused(format!("{} streams: at most {MOST_STREAMS} can be sent", streams.len()));
    }
    if let Some(rate) = rates.iter().find(|rate| !(1e-3..=1e9).contains(*rate)) {
        return refused(format!("{rate} packets/s of a stream cannot be sent: at least 0.001, at most 1e9"));
    }
    let timed = plan::timed(&streams, &rates).into_iter().map(without_end).collect::<Vec<_>>();
    let repetition = match Repetition::of(&timed, MOST_ROWS as usize) {
        Ok(repetition) => repetition,
        Err(error) => return refused(error.to_string()),
    };
    let turns = repetition.frames(timed.len());
    let of = |port| {
        timed.iter().zip(&turns).filter(|(lane, _)| lane.port == port).map(|(_, turns)| turns).sum::<u64>()
    };
    let by_port: Vec<u64> = parts.iter().map(|part| of(part.port)).collect();
    if by_port.windows(2).any(|two| two[0] != two[1]) {
        return refused(format!(
            "port 0 sends {} frames in a period of its bursts, and port 1 {}: a load test sends the same load both \
             ways; leave --bidirectional out, or give both ports as many",
            by_port[0], by_port[1]
        ));
    }
    let mut lanes = plan::sent_lanes(parts);
    let (rows, period) = plan::rows(&lanes, &turns, 1);
    let mut builder = plan::builder(&lanes)?;
    for turn in repetition.turns.iter().cycle().take(rows as usize) {
        let Some(lane) = lanes.get_mut(usize::from(*turn)) else { continue };
        lane.push_to(&mut builder)?;
    }
    let times = repetition.of_rows(rows as usize, 1);
    Ok((FrameTable { times, ..builder.finish(period) }, repetition.note()))
}

/// Several bursts that no stream follows come again for as long as the load test takes.
fn without_end(lane: Lane) -> Lane {
    match lane.mode {
        Mode::Bursts { frames, count: 2.., gap } if lane.next.is_none() => {
            Lane { mode: Mode::Bursts { frames, count: ENDLESS, gap }, ..lane }
        }
        _ => lane,
    }
}
