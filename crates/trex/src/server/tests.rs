use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use changing::Echo;
use engine::replay::Carrier;
use engine::simulated::{Device, SimulatedEngine};
use engine::{Capabilities, Counts, Engine, Error, Interval, Others, StreamTotals, Totals};
use proptest::prelude::*;
use traffic::FrameTable;
use wire::MacAddress;

use super::*;
use crate::sending::PortFacts;
use crate::stream::tests::bench;

mod changing;

type Shared = Rc<RefCell<SimulatedEngine>>;

/// An engine that the test lets time pass for.
struct Handle(Shared);

impl Engine for Handle {
    fn capabilities(&self) -> Capabilities {
        self.0.borrow().capabilities()
    }
    fn directions(&self) -> usize {
        self.0.borrow().directions()
    }
    fn begin(&mut self, load: Load) -> Result<Interval, Error> {
        self.0.borrow_mut().begin(load)
    }
    fn begin_part(&mut self, part: &engine::Part, at: Duration) -> Result<Interval, Error> {
        self.0.borrow_mut().begin_part(part, at)
    }
    fn wait(&mut self, duration: Duration) -> Result<(), Error> {
        self.0.borrow_mut().wait(duration)
    }
    fn now(&self) -> Duration {
        self.0.borrow().now()
    }
    fn counts(&mut self, interval: Interval) -> Result<Vec<Counts>, Error> {
        self.0.borrow_mut().counts(interval)
    }
    fn totals(&mut self) -> Result<Vec<Totals>, Error> {
        self.0.borrow_mut().totals()
    }
    /// Each port has one stream, whose number is the port's.
    fn streams(&mut self) -> Result<Vec<Vec<StreamTotals>>, Error> {
        let totals = self.0.borrow_mut().totals()?;
        let streams = totals.into_iter().map(|totals| {
            let (offered, forwarded) = (totals.offered, totals.forwarded);
            let stream = StreamTotals {
                offered,
                offered_bytes: 64 * offered,
                forwarded,
                forwarded_bytes: 64 * forwarded,
                missing: offered - forwarded,
                latency: totals.latency,
                ..StreamTotals::default()
            };
            vec![stream; 2]
        });
        Ok(streams.collect())
    }
}

/// A tester whose device is simulated.
pub(crate) struct Simulated {
    facts: [PortFacts; 2],
    device: Device,
    fails: bool,
    /// Held by each port that takes frames for others.
    others: Rc<()>,
    engine: Rc<RefCell<Option<Shared>>>,
}

impl Tester for Simulated {
    fn ports(&self) -> &[PortFacts; 2] {
        &self.facts
    }

    fn start(&mut self, table: &FrameTable) -> Result<Box<dyn Engine>, String> {
        if self.fails {
            return Err("the ports are gone".to_owned());
        }
        let tester = engine::simulated::Tester { directions: table.directions(), ..Default::default() };
        let engine = Rc::new(RefCell::new(SimulatedEngine::new(self.device.clone(), tester)));
        *self.engine.borrow_mut() = Some(Rc::clone(&engine));
        Ok(Box::new(Handle(engine)))
    }

    fn open(&mut self, _: usize) -> Result<Box<dyn Carrier>, String> {
        Ok(Box::new(Echo(Vec::new())))
    }

    fn can_take_others(&self) -> bool {
        true
    }

    fn take_others(&mut self, _: usize, others: Others) -> Result<Box<dyn Any>, String> {
        match others {
            Others::All => Ok(Box::new(Rc::clone(&self.others))),
            Others::Groups => Err("no multicast here".to_owned()),
        }
    }
}

/// A client, and the server that it is the client of.
pub(crate) struct Client {
    pub(crate) server: Server<Simulated>,
    engine: Rc<RefCell<Option<Shared>>>,
    pub(crate) now: Duration,
    session: u32,
    handlers: [String; 2],
}

impl Client {
    pub(crate) fn new(device: Device) -> Self {
        let engine = Rc::new(RefCell::new(None));
        let facts = [0, 1].map(|port| PortFacts {
            name: format!("port{port}"),
            driver: "simulated".to_owned(),
            source: MacAddress([2, 0, 0, 0, 0, port]),
            destination: MacAddress([2, 0, 0, 0, 1, port]),
            line_rate_bps: 1e9,
        });
        let tester =
            Simulated { facts, device, fails: false, others: Rc::default(), engine: Rc::clone(&engine) };
        let version = Version { version: "1".to_owned(), hostname: "here".to_owned() };
        let server = Server::new(tester, version, 7);
        let mut client = Self {
            server,
            engine,
            now: Duration::ZERO,
            session: 5,
            handlers: [String::new(), String::new()],
        };
        client.events();
        client
    }

    /// One that owns both ports.
    fn owner(device: Device) -> Self {
        let mut client = Self::new(device);
        for port in 0..2 {
            let parameters = json!({"port_id": port, "user": "me", "session_id": 5, "force": false});
            let handler = client.call("acquire", &parameters).unwrap();
            client.handlers[port] = handler.as_str().unwrap().to_owned();
        }
        client.events();
        client
    }

    fn send(&mut self, message: &[u8]) -> Value {
        serde_json::from_slice(&framing::open(&self.server.handle(message, self.now)).unwrap().0).unwrap()
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Result<Value, String> {
        let mut parameters = parameters.clone();
        parameters["api_h"] = json!(self.server.api);
        if let Some(port) = parameters["port_id"].as_u64() {
            let handler = self.handlers.get(port as usize).cloned().unwrap_or_default();
            parameters.as_object_mut().unwrap().entry("handler").or_insert(json!(handler));
        }
        let message = json!({"jsonrpc": "2.0", "id": "x", "method": method, "params": parameters});
        let reply = self.send(&framing::pack(message.to_string().as_bytes()));
        match reply.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(reply["error"]["specific_err"].as_str().unwrap().to_owned()),
        }
    }

    fn on(&mut self, port: usize, method: &str, more: Value) -> Result<Value, String> {
        let mut parameters = more;
        parameters["port_id"] = json!(port);
        self.call(method, &parameters)
    }

    fn add(&mut self, port: usize, id: u32, stream: &Value) {
        self.on(port, "add_stream", json!({"stream_id": id, "stream": stream, "profile_id": "_"})).unwrap();
    }

    fn start(&mut self, port: usize, mul: &Value, duration: f64) -> Result<Value, String> {
        self.on(port, "start_traffic", json!({"mul": mul, "duration": duration, "force": false}))
    }

    fn events(&mut self) -> Vec<u64> {
        let reply =
            self.call("get_async_events", &json!({"session_id": self.session, "user": "sub"})).unwrap();
        let events = reply["data"].as_array().unwrap();
        events.iter().map(|event| event["type"].as_u64().unwrap()).collect()
    }

    pub(crate) fn pass(&mut self, duration: Duration) {
        const STEP: Duration = Duration::from_millis(5);
        let end = self.now + duration;
        while self.now < end {
            if let Some(engine) = self.engine.borrow().as_ref() {
                engine.borrow_mut().wait(STEP).unwrap();
            }
            self.now += STEP;
            self.server.tick(self.now);
        }
    }

    /// Takes a port from its owner.
    pub(crate) fn take_port(&mut self, port: usize) -> Result<Value, String> {
        self.call("acquire", &json!({"port_id": port, "user": "other", "session_id": 9, "force": true}))
    }

    pub(crate) fn stats(&mut self, port: usize) -> Value {
        self.on(port, "get_port_stats", json!({})).unwrap()
    }

    pub(crate) fn state(&mut self, port: usize) -> String {
        self.on(port, "get_port_status", json!({})).unwrap()["state"].as_str().unwrap().to_owned()
    }
}

fn pps(value: f64) -> Value {
    json!({"type": "pps", "op": "abs", "value": value})
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn burst(frames: u64) -> Value {
    let mut stream = bench();
    stream["mode"] =
        json!({"type": "single_burst", "total_pkts": frames, "rate": {"type": "pps", "value": 1000.0}});
    stream
}

#[test]
fn a_client_connects() {
    let mut client = Client::new(Device::default());
    let sync = json!({"jsonrpc": "2.0", "id": "a", "method": "api_sync_v2", "params": {"name": "STL", "major": 5, "minor": 1}});
    assert_eq!(client.send(sync.to_string().as_bytes())["result"]["api_h"], client.server.api.as_str());
    let methods = client.call("get_supported_cmds", &json!({})).unwrap();
    assert!(methods.as_array().unwrap().contains(&json!("get_profile_list")));
    assert_eq!(client.call("get_version", &json!({})).unwrap()["mode"], "STL");
    let info = client.call("get_system_info", &json!({})).unwrap();
    assert_eq!(
        (&info["ports"][1]["index"], &info["ports"][0]["hw_mac"]),
        (&json!(1), &json!("02:00:00:00:00:00"))
    );
    assert_eq!(client.state(0), "IDLE");
    for (name, major, minor) in [("ASTF", 5, 1), ("STL", 4, 1), ("STL", 5, 2)] {
        let other = json!({"name": name, "major": major, "minor": minor});
        assert!(client.call("api_sync_v2", &other).is_err());
    }
}

#[test]
fn calls_need_the_servers_handle_and_the_owners() {
    let mut client = Client::owner(Device::default());
    let wrong = json!({"jsonrpc": "2.0", "id": "a", "method": "get_system_info", "params": {"api_h": "x"}});
    let refusal = &client.send(wrong.to_string().as_bytes())["error"]["specific_err"];
    assert!(refusal.as_str().unwrap().contains("API verification failed"));
    let refusal = client.on(0, "remove_all_streams", json!({"handler": "x"})).unwrap_err();
    assert_eq!(refusal, "port is not owned by you or your current executing session");
    assert!(client.on(2, "get_port_status", json!({})).unwrap_err().contains("between 0 and 1"));
}

#[test]
fn ports_are_taken_stolen_and_given_back() {
    let mut client = Client::owner(Device::default());
    let other = |force| json!({"user": "you", "session_id": 6, "force": force});
    assert_eq!(client.on(0, "acquire", other(false)).unwrap_err(), "port is already taken by 'me'");
    let handler = client.on(0, "acquire", other(true)).unwrap();
    assert_eq!(client.events(), [Kind::Acquired as u64]);
    assert!(client.on(0, "release", json!({})).unwrap_err().contains("not owned"));
    client.on(0, "release", json!({"handler": handler})).unwrap();
    assert_eq!(client.events(), [Kind::Released as u64]);
    assert_eq!(client.on(0, "get_port_status", json!({})).unwrap()["owner"], "");
}

#[test]
fn traffic_starts_changes_pauses_and_stops() {
    let mut client = Client::owner(Device::default());
    client.add(0, 1, &bench());
    assert_eq!(client.state(0), "STREAMS");
    client.start(0, &pps(1_000.0), -1.0).unwrap();
    assert_eq!(client.state(0), "TX");
    client.pass(seconds(10.0));
    let stats = client.stats(0);
    assert!((stats["m_total_tx_pps"].as_f64().unwrap() - 1_000.0).abs() < 20.0, "{stats}");
    let sent = stats["opackets"].as_u64().unwrap();
    assert!((9_900..=10_000).contains(&sent), "{sent}");
    assert_eq!(stats["obytes"], 64 * sent);

    client.on(0, "update_traffic", json!({"mul": {"type": "pps", "op": "add", "value": 1_000.0}})).unwrap();
    client.pass(seconds(10.0));
    let more = client.stats(0)["opackets"].as_u64().unwrap() - sent;
    assert!((19_900..=20_050).contains(&more), "{more}");

    client.on(0, "pause_traffic", json!({})).unwrap();
    let paused = client.stats(0)["opackets"].clone();
    client.pass(seconds(2.0));
    assert_eq!((&client.stats(0)["opackets"], client.state(0).as_str()), (&paused, "PAUSE"));
    client.on(0, "resume_traffic", json!({})).unwrap();
    client.pass(seconds(1.0));
    client.on(0, "stop_traffic", json!({})).unwrap();
    let stopped = client.stats(0)["opackets"].as_u64().unwrap();
    assert!(stopped > paused.as_u64().unwrap() + 1_900, "{stopped}");
    client.pass(seconds(8.0));
    // All came back, and nothing was sent any more.
    assert_eq!(client.stats(1)["ipackets"], stopped);
    assert_eq!(client.stats(0)["opackets"], stopped);
    assert_eq!(
        (client.state(0).as_str(), client.stats(0)["m_total_tx_pps"].as_f64()),
        ("STREAMS", Some(0.0))
    );
    let expected = [Kind::Started, Kind::Paused, Kind::Resumed, Kind::Stopped].map(|kind| kind as u64);
    assert_eq!(client.events(), expected);
}

#[test]
fn both_ports_send_at_their_own_rates_and_losses_are_exact() {
    let mut client = Client::owner(Device { drop_every: Some(100), ..Device::default() });
    for port in 0..2 {
        client.add(port, 1, &bench());
        client.start(port, &pps(10_000.0), 2.0).unwrap();
    }
    client.pass(seconds(3.0));
    assert_eq!(client.events()[..2], [Kind::Started as u64; 2]);
    for port in 0..2 {
        let sent = client.stats(port)["opackets"].as_u64().unwrap();
        let received = client.stats(1 - port)["ipackets"].as_u64().unwrap();
        assert!((19_900..=20_100).contains(&sent), "{sent}");
        assert_eq!(received, sent - sent / 100);
        assert_eq!(client.state(port), "STREAMS");
    }
}

#[test]
fn groups_are_counted_apart_and_their_losses_are_exact() {
    let mut client = Client::owner(Device { drop_every: Some(100), ..Device::default() });
    let counted = |kind: &str, id: u32| {
        let mut stream = bench();
        stream["flow_stats"] = json!({"enabled": true, "stream_id": id, "rule_type": kind});
        stream["mode"]["rate"]["value"] = json!(1_000);
        stream
    };
    client.add(0, 1, &counted("latency", 7));
    client.add(1, 1, &counted("stats", 8));
    let other = json!({"stream_id": 2, "stream": counted("stats", 7)});
    assert!(client.on(1, "add_stream", other).unwrap_err().contains("pg_id 7"));
    let ids = client.call("get_active_pgids", &json!({})).unwrap();
    assert_eq!(ids["ids"], json!({"flow_stats": [8], "latency": [7]}));
    for port in 0..2 {
        client.start(port, &json!({"type": "raw", "value": 10}), 2.0).unwrap();
    }
    client.pass(seconds(4.0));
    let stats = client.call("get_pgid_stats", &json!({"pgids": [7, 8]})).unwrap();
    for (port, id) in [(0, "7"), (1, "8")] {
        let flow = &stats["flow_stats"][id];
        let count = |key: &str, port: usize| flow[key][port.to_string()].as_u64().unwrap();
        let sent = client.stats(port)["opackets"].as_u64().unwrap();
        assert_eq!((count("tp", port), count("tp", 1 - port)), (sent, 0));
        assert_eq!((count("rp", 1 - port), count("rp", port)), (sent - sent / 100, 0));
        assert_eq!((count("tb", port), count("rb", 1 - port)), (64 * sent, 64 * (sent - sent / 100)));
        assert!(sent > 1_000, "{sent}");
    }
    let lost = stats["flow_stats"]["7"]["tp"]["0"].as_u64().unwrap() / 100;
    assert_eq!(stats["latency"]["7"]["er"]["drp"], lost);
    assert_eq!(stats["latency"].get("8"), None);
    assert!(client.call("get_pgid_stats", &json!({"pgids": [9]})).unwrap_err().contains("pg_id 9"));
    // Counts stay until the streams go; the same number is then another group.
    let version = stats["ver_id"]["7"].clone();
    client.on(0, "remove_all_streams", json!({})).unwrap();
    client.add(0, 1, &counted("latency", 7));
    let stats = client.call("get_pgid_stats", &json!({"pgids": [7]})).unwrap();
    assert_eq!(stats["flow_stats"]["7"]["tp"]["0"], 0);
    assert_ne!(stats["ver_id"]["7"], version);
}

#[test]
fn what_cannot_be_started_is_refused() {
    let mut client = Client::owner(Device::default());
    assert!(client.start(0, &pps(5.0), -1.0).unwrap_err().contains("state: 'IDLE'"));
    client.add(0, 1, &bench());
    let percent = |value| json!({"type": "percentage", "op": "abs", "value": value});
    let refusal = client.start(0, &percent(101.0), -1.0).unwrap_err();
    assert_eq!(refusal, "Expected L1 B/W: '1.01 Gbps' exceeds port line rate: '1.00 Gbps'");
    client.start(0, &percent(100.0), -1.0).unwrap();
    assert!(client.start(0, &pps(5.0), -1.0).unwrap_err().contains("state: 'TX'"));
    let refusal = client.on(0, "add_stream", json!({"stream_id": 2, "stream": bench()})).unwrap_err();
    assert!(refusal.contains("state: 'TX'"));
    client.pass(seconds(0.2));
    client.add(1, 1, &burst(10));
    assert!(client.start(1, &pps(100_000.0), -1.0).unwrap_err().contains("start both ports together"));
    let profile = json!({"profile_id": "other", "stream_id": 1, "stream": bench()});
    assert!(client.on(1, "add_stream", profile).unwrap_err().contains("only the default profile"));
}

#[test]
fn no_traffic_goes_on_without_an_owner() {
    for dies in [false, true] {
        let mut client = Client::owner(Device::default());
        client.add(0, 1, &bench());
        client.start(0, &pps(1_000.0), -1.0).unwrap();
        client.pass(seconds(1.0));
        if dies {
            client.pass(seconds(61.0));
        } else {
            client.on(0, "release", json!({})).unwrap();
        }
        let sent = client.stats(0)["opackets"].clone();
        client.pass(seconds(5.0));
        assert_eq!((&client.stats(0)["opackets"], client.state(0).as_str()), (&sent, "STREAMS"));
        assert_eq!(client.on(0, "get_port_status", json!({})).unwrap()["owner"], "");
    }
}

#[test]
fn a_failed_start_is_told() {
    let mut client = Client::owner(Device::default());
    client.server.tester.fails = true;
    client.add(0, 1, &bench());
    client.start(0, &pps(1_000.0), -1.0).unwrap();
    client.events();
    client.pass(seconds(0.1));
    assert_eq!(client.events(), [Kind::Failed as u64, Kind::Finished as u64]);
    assert_eq!(client.state(0), "STREAMS");
}

/// Values that calls are not made for.
fn odd() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!([])),
        Just(json!([1, "x", null])),
        Just(json!({})),
        Just(json!({"type": "pps", "op": "abs", "value": 1e300})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_call_causes_a_panic(calls in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), odd(), 0..3_usize), 1..60)) {
        let mut client = Client::owner(Device::default());
        let methods = commands::names::<Simulated>();
        let fields = ["port_id", "handler", "stream_id", "stream", "mul", "duration", "force", "session_id", "user",
            "profile_id", "attr", "vlan", "enabled", "dst_mac", "src_addr", "dst_addr", "pgids", "command", "start_at_ts", "pkts", "limit", "rx", "filter", "capture_id", "pkt_limit"];
        client.add(0, 1, &bench());
        for (method, field, value, port) in calls {
            let mut parameters = json!({"port_id": port, "stream_id": 2, "stream": bench(), "user": "me",
                "session_id": 5, "force": true, "mul": pps(100.0), "duration": 1, "enabled": false});
            parameters[fields[field.index(fields.len())]] = value;
            let _ = client.call(methods[method.index(methods.len())], &parameters);
            client.pass(Duration::from_millis(30));
        }
    }

    #[test]
    fn no_stream_causes_a_panic(path in any::<prop::sample::Index>(), value in odd()) {
        let mut client = Client::owner(Device::default());
        let paths = ["/flags", "/enabled", "/self_start", "/isg", "/mode", "/mode/type", "/mode/rate", "/mode/rate/value",
            "/mode/rate/type", "/packet", "/packet/binary", "/vm", "/vm/instructions", "/vm/instructions/0",
            "/vm/instructions/0/size", "/vm/instructions/0/step", "/vm/instructions/0/min_value",
            "/vm/instructions/0/max_value", "/vm/instructions/0/init_value", "/vm/instructions/0/op",
            "/vm/instructions/1/pkt_offset", "/vm/instructions/1/add_value", "/flow_stats", "/next_stream_id", "/action_count"];
        let mut stream = bench();
        *stream.pointer_mut(paths[path.index(paths.len())]).unwrap() = value;
        if client.on(0, "add_stream", json!({"stream_id": 1, "stream": stream})).is_ok() {
            let _ = client.start(0, &pps(100.0), 1.0);
            client.pass(seconds(0.1));
            prop_assert!(client.engine.borrow().is_some() || client.state(0) == "STREAMS" || client.state(0) == "TX");
        }
    }

    #[test]
    fn no_message_causes_a_panic(bytes: Vec<u8>, text in ".{0,64}", cut in any::<prop::sample::Index>()) {
        let mut client = Client::new(Device::default());
        let call = framing::pack(br#"{"jsonrpc":"2.0","id":"x","method":"ping"}"#);
        let mut flipped = call.clone();
        flipped[cut.index(call.len())] ^= bytes.first().copied().unwrap_or(1);
        for message in [bytes.as_slice(), text.as_bytes(), &call[..cut.index(call.len())], &flipped, &framing::pack(&bytes)] {
            let reply = client.send(message);
            prop_assert!(reply.get("error").is_some() || reply.get("result").is_some(), "{reply}");
        }
    }
}
