//! One server and its two ports: what is known of them leaves; streams, starts and stops enter; counters leave.

use std::time::Duration;

use serde_json::{Value, json};

use super::apart::Reading;
use super::client::{Client, TesterError};

/// The first two ports are used.
const PORTS: usize = 2;
/// What calls name their owner.
const USER: &str = "linerate";
/// Who built a server that is one of Linerate's.
const LINERATE: &str = "linerate";
/// The streams of clients that name no profile.
const PROFILE: &str = "_";
/// The most calls of a batch.
const MOST_CALLS: usize = 32;
/// How long counters must not have changed: `linerate serve` counts as frames come …
const QUIET_OF_LINERATE: Duration = Duration::from_millis(50);
/// … and TRex reads its cards' counters about once a second.
const QUIET_OF_TREX: Duration = Duration::from_millis(1_200);

/// A server that has been connected to.
pub struct Server {
    client: Client,
    version: VersionOf,
    ports: [PortOf; PORTS],
    session: u32,
    /// What calls to each port must carry, once it is ours.
    handlers: [Option<String>; PORTS],
}

/// What a server says that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionOf {
    /// Its version.
    pub version: String,
    /// Its machine's name.
    pub hostname: String,
    /// Whether it is `linerate serve`.
    pub is_linerate: bool,
}

/// What a server says of a port.
#[derive(Clone, Debug, PartialEq)]
pub struct PortOf {
    /// Its name.
    pub name: String,
    /// Its driver.
    pub driver: String,
    /// Its address.
    pub mac: String,
    /// Its speed, where the server says it, in bits a second.
    pub speed_bps: Option<f64>,
}

/// What a port has counted since its server began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames that left.
    pub sent: u64,
    /// Bytes of those.
    pub sent_bytes: u64,
    /// Frames that were due and did not leave; 0 where the server does not tell.
    pub unsent: u64,
    /// Frames that came.
    pub received: u64,
    /// Bytes of those.
    pub received_bytes: u64,
}

impl Server {
    /// Connects. `session` tells this client from others.
    ///
    /// # Errors
    /// When nobody answers, or it is no TRex stateless server with two ports.
    pub fn connect(mut client: Client, session: u32) -> Result<Self, TesterError> {
        client.connect()?;
        let version = client.call("get_version", json!({}))?;
        let info = client.call("get_system_info", json!({}))?;
        let text = |value: &Value, key: &str| {
            let text = value.get(key).and_then(Value::as_str).unwrap_or("unknown");
            text.chars().filter(|it| !it.is_control()).take(128).collect::<String>()
        };
        let found = info.get("ports").and_then(Value::as_array).map_or(0, Vec::len);
        if found < PORTS {
            return Err(client.error(format!(
                "it has {found} ports, and two are needed: start the server with a pair of ports"
            )));
        }
        let mut ports = Vec::new();
        for number in 0..PORTS {
            let port = &info["ports"][number];
            let status = client
                .call("get_port_status", json!({"port_id": number, "profile_id": "*", "block": false}))?;
            let speed = status.pointer("/attr/speed").and_then(Value::as_f64).filter(|gbps| *gbps > 0.0);
            let name = text(port, "description");
            ports.push(PortOf {
                name: format!("{} {number} ({name})", client.server()),
                driver: text(port, "driver"),
                mac: text(port, "hw_mac"),
                speed_bps: speed.map(|gbps| gbps * 1e9),
            });
        }
        let version = VersionOf {
            version: text(&version, "version"),
            hostname: text(&info, "hostname"),
            is_linerate: version.get("built_by").and_then(Value::as_str) == Some(LINERATE),
        };
        let ports = ports.try_into().map_err(|_| client.error("it has not two ports"))?;
        Ok(Self { client, version, ports, session, handlers: [None, None] })
    }

    /// What users call it.
    pub fn name(&self) -> &str {
        self.client.server()
    }

    /// What it says that it is.
    pub fn version(&self) -> &VersionOf {
        &self.version
    }

    /// Its ports.
    pub fn ports(&self) -> &[PortOf; 2] {
        &self.ports
    }

    /// How long counters must not have changed to be final.
    pub fn quiet(&self) -> Duration {
        if self.version.is_linerate { QUIET_OF_LINERATE } else { QUIET_OF_TREX }
    }

    /// An error of this server.
    pub fn error(&self, reason: impl Into<String>) -> TesterError {
        self.client.error(reason)
    }

    /// Takes both ports, and stops what they may send.
    ///
    /// # Errors
    /// When a port belongs to somebody else.
    pub fn take(&mut self) -> Result<(), TesterError> {
        for port in 0..PORTS {
            let request = json!({"port_id": port, "user": USER, "session_id": self.session, "force": false});
            let handler = self.client.call("acquire", request).map_err(|error| {
                self.error(format!(
                    "{}; a port that a client left behind is freed by 'acquire --force' in trex-console, or by \
                     linerate serve after a minute",
                    error.reason
                ))
            })?;
            let handler = handler.as_str().map(str::to_owned);
            self.handlers[port] =
                Some(handler.ok_or_else(|| self.client.error("the answer to acquire is no text"))?);
            self.client.call("stop_traffic", self.of(port))?;
        }
        Ok(())
    }

    /// Puts these streams of each port in the place of what was there.
    ///
    /// # Errors
    /// When one is refused.
    pub fn set_streams(&mut self, streams: &[Vec<Value>]) -> Result<(), TesterError> {
        for port in 0..PORTS {
            self.client.call("remove_all_streams", self.of(port))?;
        }
        for (port, streams) in streams.iter().enumerate() {
            let calls: Vec<Value> = streams
                .iter()
                .zip(1..)
                .map(|(stream, id)| self.with(port, json!({"stream_id": id, "stream": stream})))
                .collect();
            for calls in calls.chunks(MOST_CALLS) {
                self.client.ask(calls.iter().map(|call| ("add_stream", call.clone())).collect())?;
                self.client.answer()?;
            }
        }
        Ok(())
    }

    /// What calls that change a port carry.
    fn of(&self, port: usize) -> Value {
        json!({"port_id": port, "handler": self.handlers.get(port), "profile_id": PROFILE})
    }

    fn with(&self, port: usize, more: Value) -> Value {
        let mut call = self.of(port);
        if let (Some(call), Value::Object(more)) = (call.as_object_mut(), more) {
            call.extend(more);
        }
        call
    }

    /// Tells the first `directions` ports to send `multiplier` of their streams for `duration`, or until their bursts
    /// are over.
    ///
    /// # Errors
    /// When it cannot be told.
    pub fn ask_to_start(
        &mut self,
        directions: usize,
        multiplier: &Value,
        duration: Option<Duration>,
    ) -> Result<(), TesterError> {
        let seconds = duration.map_or(-1.0, |duration| duration.as_secs_f64());
        let call = |port| {
            let more = json!({
                "mul": multiplier, "duration": seconds, "force": false, "core_mask": u64::MAX,
            });
            ("start_traffic", self.with(port, more))
        };
        let calls = (0..directions.min(PORTS)).map(call).collect();
        self.client.ask(calls)
    }

    /// When it started, by its own clock in seconds, where it says so.
    ///
    /// # Errors
    /// When it refuses, or does not answer.
    pub fn started(&mut self) -> Result<Option<f64>, TesterError> {
        let answers = self.client.answer()?;
        Ok(answers.first().and_then(|answer| answer.get("ts")?.as_f64()))
    }

    /// Stops both ports.
    ///
    /// # Errors
    /// When it refuses, or does not answer.
    pub fn stop(&mut self) -> Result<(), TesterError> {
        self.client.ask((0..PORTS).map(|port| ("stop_traffic", self.of(port))).collect())?;
        self.client.answer().map(drop)
    }

    /// Whether a port sends.
    ///
    /// # Errors
    /// When it does not say so.
    pub fn is_sending(&mut self) -> Result<bool, TesterError> {
        let call = |port| ("get_port_status", json!({"port_id": port, "profile_id": "*", "block": false}));
        self.client.ask((0..PORTS).map(call).collect())?;
        let mut sending = false;
        for status in self.client.answer()? {
            match status.get("state").and_then(Value::as_str) {
                Some("IDLE" | "STREAMS") => {}
                Some("TX" | "PAUSE" | "PCAP_TX") => sending = true,
                _ => return Err(self.error("a port is in a state that the protocol does not have")),
            }
            if status.get("owner").and_then(Value::as_str) != Some(USER) {
                return Err(self.error("somebody else has taken a port: what was sent since is not known"));
            }
        }
        Ok(sending)
    }

    /// Shows that this client lives: `linerate serve` stops the traffic of one that is silent for a minute.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn show_life(&mut self) -> Result<(), TesterError> {
        self.client.call("get_async_events", json!({"session_id": self.session, "user": USER})).map(drop)
    }

    /// Asks for both ports' counters.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub fn ask_for_counters(&mut self) -> Result<(), TesterError> {
        self.client.ask((0..PORTS).map(|port| ("get_port_stats", json!({"port_id": port}))).collect())
    }

    /// Both ports' counters.
    ///
    /// # Errors
    /// When it does not answer, or one is missing.
    pub fn counters(&mut self) -> Result<[PortCounters; PORTS], TesterError> {
        let answers = self.client.answer()?;
        let mut counters = [PortCounters::default(); PORTS];
        for (counters, answer) in counters.iter_mut().zip(&answers) {
            let number = |key: &str| {
                let missing =
                    || self.client.error(format!("the statistics of a port have no number '{key}'"));
                answer.get(key).and_then(Value::as_u64).ok_or_else(missing)
            };
            *counters = PortCounters {
                sent: number("opackets")?,
                sent_bytes: number("obytes")?,
                unsent: answer.get("oerrors").and_then(Value::as_u64).unwrap_or(0),
                received: number("ipackets")?,
                received_bytes: number("ibytes")?,
            };
        }
        Ok(counters)
    }

    /// Reads its clock; `None` where it does not tell the time. `now` is this machine's.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn clock(&mut self, now: impl Fn() -> Duration) -> Result<Option<Reading>, TesterError> {
        let asked = now();
        let answer = self.client.call("ping", json!({}))?;
        let ts = answer.get("ts").and_then(Value::as_f64);
        Ok(ts.and_then(|ts| Reading::new(ts, asked, now())))
    }

    /// Stops, clears and frees both ports, as far as that goes.
    pub fn leave(&mut self) {
        if self.handlers.iter().all(Option::is_none) {
            return;
        }
        self.client.hurry();
        let ports = (0..PORTS).filter(|port| self.handlers[*port].is_some());
        let calls = ports.flat_map(|port| {
            ["stop_traffic", "remove_all_streams", "release"].map(|method| (method, self.of(port)))
        });
        let calls: Vec<(&str, Value)> = calls.collect();
        // Nothing can be done about a server that does not answer: what it sends ends with the load's time.
        let _ = self.client.ask(calls).and_then(|()| self.client.answer());
        self.handlers = [None, None];
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.leave();
    }
}
