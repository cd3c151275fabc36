//! How fast frames are built and handed to queues: what fills them and what empties them enter, what went
//! through leaves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use traffic::FrameTable;

use super::stream::{send_burst, swallow};
use super::{Member, Receive, Transmit};
use crate::Error;
use crate::build_rate::{Built, join, on_each, pin};
use crate::xdp::precedence;

/// Builds the frames of `table` on each of `cores` in one of `queues`, for `duration`, and counts what each
/// took.
///
/// # Errors
/// As [`crate::build_rate::in_memory`].
pub(crate) fn send(
    table: &FrameTable,
    cores: &[usize],
    duration: Duration,
    queues: Vec<impl Transmit>,
    member: &(impl Member + Sync),
) -> Result<Vec<Built>, Error> {
    on_each(table, cores, duration, queues, |mut queue, mut builder| {
        let pass = member.enter()?;
        Ok(move || {
            let _pass = &pass;
            send_burst(&mut builder, &mut queue)
        })
    })
}

/// As [`send`], while each of `sinks` empties one of `far`, their other ends. Says what came through for each
/// core that received.
///
/// # Errors
/// As [`send`], and when there are fewer sinks than cores.
pub(crate) fn send_to_sinks(
    table: &FrameTable,
    cores: &[usize],
    sinks: &[usize],
    duration: Duration,
    (near, far): (Vec<impl Transmit>, Vec<impl Receive>),
    member: &(impl Member + Sync),
) -> Result<Vec<Built>, Error> {
    if sinks.len() < cores.len() {
        return Err(Error::Refused(format!(
            "{} cores that send need as many that receive, and there are {}: use fewer cores",
            cores.len(),
            sinks.len()
        )));
    }
    let others = thread::available_parallelism().is_ok_and(|online| online.get() > 2 * cores.len());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = &stop;
        let sink = |(queue, core): (_, &usize)| {
            let core = *core;
            scope.spawn(move || sink(queue, member, core, others, stop))
        };
        let sinks = far.into_iter().zip(sinks).map(sink).collect();
        let sent = send(table, cores, duration, near, member);
        stop.store(true, Ordering::Relaxed);
        let received = join(sinks);
        sent.and(received)
    })
}

/// As [`send`], each core emptying its queue's other end, one of `far`, in turns with building. Says what came
/// through.
///
/// # Errors
/// As [`send`].
pub(crate) fn send_in_turns(
    table: &FrameTable,
    cores: &[usize],
    duration: Duration,
    (near, far): (Vec<impl Transmit>, Vec<impl Receive>),
    member: &(impl Member + Sync),
) -> Result<Vec<Built>, Error> {
    let pairs = near.into_iter().zip(far).collect();
    on_each(table, cores, duration, pairs, |(mut near, mut far), mut builder| {
        let pass = member.enter()?;
        Ok(move || {
            let _pass = &pass;
            send_burst(&mut builder, &mut near)?;
            Ok(swallow(&mut far))
        })
    })
}

/// Receives and drops frames until told to stop. The time counts from the first frame to the last.
fn sink(
    mut queue: impl Receive,
    member: &impl Member,
    core: usize,
    others: bool,
    stop: &AtomicBool,
) -> Result<Built, Error> {
    pin(core)?;
    let _pass = member.enter()?;
    let _turns = precedence::in_turns(others)?;
    let mut frames = 0;
    let mut first = None;
    let mut last = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let received = swallow(&mut queue);
        if received > 0 {
            last = Instant::now();
            // The first burst's frames arrived before the clock began.
            match first {
                None => first = Some(last),
                Some(_) => frames += received as u64,
            }
        }
    }
    Ok(Built { frames, seconds: first.map_or(0.0, |first| (last - first).as_secs_f64()) })
}
