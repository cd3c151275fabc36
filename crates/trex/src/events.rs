//! What clients are told without asking: events enter one queue for each session, which its client empties.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

/// The most sessions that are remembered.
const MOST_SESSIONS: usize = 64;
/// The most events that wait for a client.
const MOST_EVENTS: usize = 1_000;

/// What happened, by TRex's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A port has sent all that it should.
    PortDone = 4,
    /// Somebody took a port.
    Acquired = 5,
    /// Somebody gave a port back.
    Released = 6,
    /// The streams of a port began.
    Started = 10,
    /// They were stopped.
    Stopped = 11,
    /// They pause.
    Paused = 12,
    /// They go on.
    Resumed = 13,
    /// They have all been sent.
    Finished = 14,
    /// They could not be sent.
    Failed = 17,
    /// The server ends.
    ServerStopped = 100,
}

/// The queues of all sessions.
#[derive(Debug, Default)]
pub struct Events {
    sessions: Vec<Session>,
    /// Whether clients are to be woken.
    wake: bool,
}

#[derive(Debug)]
struct Session {
    id: u32,
    next: u64,
    waiting: VecDeque<Value>,
    asked: Duration,
}

impl Events {
    /// Tells all sessions.
    pub fn tell(&mut self, kind: Kind, data: &Value) {
        self.wake = true;
        for session in &mut self.sessions {
            if session.waiting.len() >= MOST_EVENTS {
                // A client takes a gap for an error, but not a count that begins again.
                session.waiting.clear();
                session.next = 0;
            }
            let event = json!({"name": "trex-event", "type": kind as u32, "seq": session.next, "data": data});
            session.waiting.push_back(event);
            session.next += 1;
        }
    }

    /// What `session` was not told yet. One that is not known is from now on.
    pub fn take(&mut self, id: u32, now: Duration) -> Vec<Value> {
        if let Some(session) = self.sessions.iter_mut().find(|session| session.id == id) {
            session.asked = now;
            return session.waiting.drain(..).collect();
        }
        if self.sessions.len() >= MOST_SESSIONS {
            let oldest = (0..self.sessions.len()).min_by_key(|at| self.sessions[*at].asked);
            oldest.map(|at| self.sessions.swap_remove(at));
        }
        self.sessions.push(Session { id, next: 1, waiting: VecDeque::new(), asked: now });
        Vec::new()
    }

    /// Wakes clients at the next opportunity.
    pub fn wake(&mut self) {
        self.wake = true;
    }

    /// Whether clients are to be woken now.
    pub fn take_wake(&mut self) -> bool {
        std::mem::take(&mut self.wake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_gets_every_event_once_and_numbered() {
        let mut events = Events::default();
        assert!(events.take(1, Duration::ZERO).is_empty() && events.take(2, Duration::ZERO).is_empty());
        for _ in 0..3 {
            events.tell(Kind::Started, &json!({"port_id": 0}));
        }
        assert!(events.take_wake() && !events.take_wake());
        for session in [1, 2] {
            let told = events.take(session, Duration::ZERO);
            let numbers: Vec<_> = told.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
            assert_eq!(numbers, [1, 2, 3]);
            assert_eq!((&told[0]["type"], &told[0]["data"]["port_id"]), (&json!(10), &json!(0)));
            assert!(events.take(session, Duration::ZERO).is_empty());
        }
    }

    #[test]
    fn clients_that_do_not_ask_cost_bounded_memory() {
        let mut events = Events::default();
        for session in 0..1_000 {
            events.take(session, Duration::from_secs(session.into()));
        }
        assert_eq!(events.sessions.len(), MOST_SESSIONS);
        for _ in 0..MOST_EVENTS + 5 {
            events.tell(Kind::Started, &json!({}));
        }
        // A gap ends the client's process; a count from 0 does not.
        let told = events.take(999, Duration::ZERO);
        assert_eq!((told.len(), &told[0]["seq"]), (5, &json!(0)));
    }
}
