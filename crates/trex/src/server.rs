//! The server: messages and the time enter, replies leave; between them, ports send what they are told.

use std::time::Duration;

use engine::Load;
use serde_json::{Value, json};

use crate::commands::{self, Call, Needs};
use crate::course::Course;
use crate::events::{Events, Kind};
use crate::framing;
use crate::plan::{self, Part, Schedule};
use crate::port::{Port, State};
use crate::rpc::{self, Failure, Parameters};
use crate::sending::{Sending, Tester};
use crate::service::Service;
use crate::statistics::{Counters, Rates};

/// Orders that follow each other this soon become one change of what is sent: clients tell one port after the
/// other.
const TOGETHER: Duration = Duration::from_millis(20);
/// How often the engine is asked whether all goes well.
const LOOK: Duration = Duration::from_millis(100);
/// An owner that is not heard of for so long is gone.
const SILENCE: Duration = Duration::from_secs(60);

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its version.
    pub version: String,
    /// The machine's name.
    pub hostname: String,
}

/// Two ports that TRex's clients drive.
pub struct Server<T> {
    pub(crate) tester: T,
    pub(crate) version: Version,
    pub(crate) ports: [Port; 2],
    pub(crate) events: Events,
    pub(crate) sending: Sending,
    pub(crate) service: Service,
    pub(crate) rates: Rates,
    /// What calls must carry.
    pub(crate) api: String,
    /// Since when what is sent is not what was ordered.
    changed: Option<Duration>,
    /// Streams that begin and end.
    course: Option<Course>,
    looked: Duration,
    random: u64,
}

impl<T: Tester> Server<T> {
    /// A server of `tester`'s ports; `seed` makes its handles hard to guess.
    #[must_use]
    pub fn new(tester: T, version: Version, seed: u64) -> Self {
        let ports = tester.ports().clone().map(Port::new);
        let mut server = Self {
            tester,
            version,
            ports,
            events: Events::default(),
            sending: Sending::default(),
            service: Service::default(),
            rates: Rates::default(),
            api: String::new(),
            changed: None,
            course: None,
            looked: Duration::ZERO,
            random: seed,
        };
        server.api = server.handle_name();
        server
    }

    /// The reply to `message`, which came at `now`: a time that never goes back.
    pub fn handle(&mut self, message: &[u8], now: Duration) -> Vec<u8> {
        let (text, packed) = match framing::open(message) {
            Ok(opened) => opened,
            Err(error) => return rpc::refuse(Failure::parse(error.to_string())),
        };
        let reply = rpc::answer(&text, |method, parameters| self.call(method, &parameters, now));
        let reply = reply.unwrap_or_else(rpc::refuse);
        if packed { framing::pack(&reply) } else { reply }
    }

    fn call(&mut self, method: &str, parameters: &Parameters<'_>, now: Duration) -> Result<Value, Failure> {
        let (needs, run) = commands::find::<T>(method).ok_or_else(|| Failure::method(method))?;
        if needs == Needs::Nothing {
            return run(self, Call { parameters, port: 0, now });
        }
        if parameters.text("api_h")? != self.api {
            return Err(Failure::execute("API verification failed: API handler provided mismatch"));
        }
        if needs == Needs::Api {
            return run(self, Call { parameters, port: 0, now });
        }
        let port = self.port_number(parameters)?;
        if needs == Needs::Owner {
            let handler = parameters.text("handler")?;
            let owner = self.ports[port].owner.as_mut().filter(|owner| owner.handler == handler);
            let owner = owner.ok_or_else(|| {
                Failure::execute("port is not owned by you or your current executing session")
            })?;
            owner.heard = now;
        }
        run(self, Call { parameters, port, now })
    }

    fn port_number(&self, parameters: &Parameters<'_>) -> Result<usize, Failure> {
        let port = parameters.number("port_id", u64::MAX)?;
        if port < self.ports.len() as u64 {
            Ok(port as usize)
        } else {
            Err(Failure::execute("invalid port id - should be between 0 and 1"))
        }
    }

    /// Does what is due at `now`; says when it wants to be called again at the latest.
    pub fn tick(&mut self, now: Duration) -> Duration {
        if self.changed.is_some_and(|changed| now >= changed + TOGETHER) {
            self.apply(now);
        }
        if now >= self.looked + LOOK {
            self.looked = now;
            if let Err(reason) = self.sending.check() {
                self.sending.abandon();
                self.fail(&reason);
            }
            self.forget_the_silent(now);
        }
        if self.rates.is_due(now)
            && let Ok(counters) = self.sending.counters()
        {
            self.rates.follow(now, counters);
            if !self.sending.groups.is_empty()
                && let Ok(totals) = self.sending.group_totals()
            {
                self.sending.groups.follow(now, &totals);
            }
        }
        self.go_on(now);
        self.serve_ports(now);
        self.end_what_is_over(now);
        self.next_deadline(now)
    }

    fn next_deadline(&self, now: Duration) -> Duration {
        let ends = self.ports.iter().filter_map(|port| match port.state {
            State::Sending(order) | State::Paused(order) => Some(order.began? + order.length?),
            State::Stopped => None,
        });
        let course = self.course.iter().filter_map(|course| course.next(now));
        let changed = self.changed.iter().map(|changed| *changed + TOGETHER);
        ends.chain(course)
            .chain(changed)
            .chain(self.service.next(now))
            .fold(now + LOOK, Duration::min)
            .max(now)
    }

    /// What both ports had sent and received when the server last looked, twice a second, and when that was.
    pub fn counters(&self) -> Option<(Duration, [Counters; 2])> {
        self.rates.last()
    }

    /// Whether clients are to be woken: the caller then publishes [`Server::WAKE`].
    pub fn take_wake(&mut self) -> bool {
        self.events.take_wake()
    }

    /// What wakes clients.
    pub const WAKE: &'static [u8] = b"{}";

    /// Ends all traffic, because of `cause`.
    pub fn stop(&mut self, cause: &str) {
        self.events.tell(Kind::ServerStopped, &json!({"cause": cause}));
        self.ports.iter_mut().for_each(|port| port.state = State::Stopped);
        self.course = None;
        if self.sending.begin(Load::Idle).is_err() {
            self.sending.abandon();
        }
    }

    /// What is ordered has changed: it is sent as soon as no other port can be meant, too.
    pub(crate) fn change(&mut self, now: Duration) {
        self.changed.get_or_insert(now);
    }

    /// The tester, when the server has ended.
    pub fn into_tester(mut self) -> T {
        self.sending.abandon();
        self.tester
    }

    /// The parts of all ports that send, of `port` what these factors say.
    pub(crate) fn parts(&self, port: Option<(usize, [f64; 2])>) -> Vec<Part<'_>> {
        let parts = self.ports.iter().enumerate().filter_map(|(index, it)| match (port, it.state) {
            (Some((changed, factors)), _) if changed == index => Some(it.part(index, factors)),
            (_, State::Sending(order)) => Some(it.part(index, order.factors())),
            _ => None,
        });
        parts.collect()
    }

    /// Streams were added or removed: their groups are what is counted apart from now on.
    pub(crate) fn streams_changed(&mut self) {
        let streams = self.ports.iter().flat_map(|port| port.streams.values());
        let groups = streams.filter_map(|(stream, _)| stream.group);
        self.sending.groups.set(&groups.map(|group| (group.id, group.latency)).collect());
    }

    /// Whether streams that begin and end are being sent.
    pub(crate) fn in_bursts(&self) -> bool {
        self.course.is_some()
    }

    /// Sends what is ordered now.
    pub(crate) fn apply(&mut self, now: Duration) {
        self.changed = None;
        if let Err(reason) = self.send(now) {
            if self.sending.begin(Load::Idle).is_err() {
                self.sending.abandon();
            }
            self.fail(&reason);
        }
    }

    fn send(&mut self, mut now: Duration) -> Result<(), String> {
        if self.course.take().is_some() {
            // One port was stopped: the other's streams cannot go on alone.
            for index in 0..self.ports.len() {
                if matches!(self.ports[index].state, State::Sending(order) if order.began.is_some()) {
                    self.ports[index].state = State::Stopped;
                    self.tell_port(index, Kind::Stopped);
                }
            }
        }
        let parts = self.parts(None);
        if parts.is_empty() {
            self.sending.begin(Load::Idle)?;
            if self.ports.iter().all(|port| port.owner.is_none()) {
                self.sending.end()?;
            }
            return Ok(());
        }
        let (shape, schedule) = plan::schedule(&parts).map_err(|failure| failure.reason)?;
        if !self.sending.has(&shape) {
            let table = plan::table(&parts, &shape).map_err(|failure| failure.reason)?;
            let groups = plan::groups(&parts);
            // An engine starts for up to half a second, which traffic of a limited time must not lack.
            let took = self.sending.replace(&mut self.tester, shape, table, &groups)?.as_millis();
            now += Duration::from_millis(u64::try_from(took).unwrap_or(u64::MAX));
        }
        match schedule {
            Schedule::Steady(load) => self.sending.begin(load)?,
            Schedule::Changing(timeline) => {
                let mut course = Course::new(timeline, now, self.sending.now());
                course.announce(&mut self.sending, now)?;
                self.course = Some(course);
            }
        }
        for port in &mut self.ports {
            if let State::Sending(order) = &mut port.state {
                order.began.get_or_insert(now);
            }
        }
        Ok(())
    }

    /// Announces what is to be sent next; ends the ports that have sent all.
    fn go_on(&mut self, now: Duration) {
        let Some(course) = self.course.as_mut() else { return };
        if let Err(reason) = course.announce(&mut self.sending, now) {
            self.sending.abandon();
            self.fail(&reason);
            return;
        }
        let over = [0, 1].map(|port| course.ended(port).is_some_and(|end| now >= end));
        for port in self.sending_ports() {
            if over[port] {
                self.finish(port);
            }
        }
        if self.sending_ports().is_empty() {
            self.course = None;
            self.change(now);
        }
    }

    fn end_what_is_over(&mut self, now: Duration) {
        let over: Vec<usize> = (0..self.ports.len())
            .filter(|port| match self.ports[*port].state {
                State::Sending(order) | State::Paused(order) => {
                    order.began.zip(order.length).is_some_and(|(began, length)| now >= began + length)
                }
                State::Stopped => false,
            })
            .collect();
        if over.is_empty() {
            return;
        }
        // Their traffic ends before anybody hears that it did.
        over.iter().for_each(|port| self.ports[*port].state = State::Stopped);
        self.apply(now);
        over.into_iter().for_each(|port| self.finish(port));
    }

    fn sending_ports(&self) -> Vec<usize> {
        (0..self.ports.len()).filter(|port| matches!(self.ports[*port].state, State::Sending(_))).collect()
    }

    fn finish(&mut self, port: usize) {
        self.ports[port].state = State::Stopped;
        self.tell_port(port, Kind::Finished);
        self.events.tell(Kind::PortDone, &json!({"port_id": port}));
    }

    /// All traffic has failed.
    fn fail(&mut self, reason: &str) {
        self.course = None;
        for port in 0..self.ports.len() {
            if self.ports[port].state != State::Stopped {
                self.ports[port].state = State::Stopped;
                let data = json!({"port_id": port, "profile_id": "_", "reason": reason});
                self.events.tell(Kind::Failed, &data);
                // Clients that wait for the end go by this alone.
                self.tell_port(port, Kind::Finished);
            }
        }
    }

    /// Takes ports from owners that are gone.
    fn forget_the_silent(&mut self, now: Duration) {
        for port in 0..self.ports.len() {
            let owner = self.ports[port].owner.as_ref();
            if owner.is_some_and(|owner| now >= owner.heard + SILENCE) {
                self.give_up(port, now);
            }
        }
    }

    /// Frees a port: nothing is sent without an owner.
    pub(crate) fn give_up(&mut self, port: usize, now: Duration) {
        self.halt(port, now);
        self.ports[port].service = (false, false);
        self.ports[port].others = [None, None];
        self.end_service(port);
        if let Some(owner) = self.ports[port].owner.take() {
            let data = json!({"port_id": port, "who": owner.user, "session_id": owner.session});
            self.events.tell(Kind::Released, &data);
        }
        if self.ports.iter().all(|port| port.owner.is_none()) {
            self.apply(now);
        }
    }

    /// Stops a port's traffic, if there is any.
    pub(crate) fn halt(&mut self, port: usize, now: Duration) {
        if self.ports[port].state == State::Stopped {
            return;
        }
        self.ports[port].state = State::Stopped;
        self.tell_port(port, Kind::Stopped);
        if self.sending_ports().is_empty() {
            self.apply(now);
        } else {
            self.change(now);
        }
    }

    pub(crate) fn tell_port(&mut self, port: usize, kind: Kind) {
        self.events.tell(kind, &json!({"port_id": port, "profile_id": "_"}));
    }

    /// A name that nobody guesses by chance.
    pub(crate) fn handle_name(&mut self) -> String {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mut number = z ^ (z >> 31);
        let letters = (0..8).map(|_| {
            let letter = b'A' + (number % 26) as u8;
            number /= 26;
            char::from(letter)
        });
        letters.collect()
    }
}

#[cfg(test)]
pub(crate) mod tests;
