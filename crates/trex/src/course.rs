//! Streams that begin and end, as time goes by: a timeline enters, its stretches are announced to the engine ahead of
//! their time.

use std::time::Duration;

use traffic::timeline::{Stretch, Timeline};

use crate::sending::Sending;

/// The first stretch begins so long after it is announced: threads of an engine that was just made may not run yet.
const LEAD: Duration = Duration::from_millis(50);
/// How long ahead of its time a stretch is announced: a server may be late by as much. What is announced is sent even
/// if all is stopped meanwhile, up to the next stretch.
const AHEAD: Duration = Duration::from_millis(200);

/// The last frames may leave so much later than they are due.
const LATE: Duration = Duration::from_millis(15);

/// A timeline that is being sent.
#[derive(Debug)]
pub struct Course {
    timeline: Timeline,
    /// The stretch that is announced next.
    next: Option<Stretch>,
    /// When it began by the server's clock, and by the engine's.
    began: [Duration; 2],
}

impl Course {
    /// A timeline that begins soon: `now` is the time by the server's clock, `engine` by the engine's.
    pub fn new(mut timeline: Timeline, now: Duration, engine: Duration) -> Self {
        let next = timeline.next();
        Self { timeline, next, began: [now.saturating_add(LEAD), engine.saturating_add(LEAD)] }
    }

    /// Announces what begins soon.
    pub fn announce(&mut self, sending: &mut Sending, now: Duration) -> Result<(), String> {
        let [server, engine] = self.began;
        while let Some(next) = self.next.take_if(|next| since(server, next.start) <= now + AHEAD) {
            sending.begin_stretch(&next, since(engine, next.start))?;
            self.next = self.timeline.next();
        }
        Ok(())
    }

    /// When after `now` it wants to announce again, or a port has sent all.
    pub fn next(&self, now: Duration) -> Option<Duration> {
        let next = self.next.iter().map(|next| since(self.began[0], next.start).saturating_sub(AHEAD));
        let ends = [0, 1].into_iter().filter_map(|port| self.ended(port));
        next.chain(ends.filter(|end| *end > now)).min()
    }

    /// When a port has sent all, by the server's clock, if that is known by now.
    pub fn ended(&self, port: usize) -> Option<Duration> {
        Some(since(self.began[0], self.timeline.ended(port)?) + LATE)
    }
}

fn since(began: Duration, nanoseconds: u64) -> Duration {
    began.saturating_add(Duration::from_nanos(nanoseconds))
}
