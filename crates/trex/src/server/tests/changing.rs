//! Streams that begin and end, a load that is steered, and service mode.

use super::*;

/// A port at which everything that is sent arrives, too.
pub struct Echo(pub Vec<Vec<u8>>);

impl Carrier for Echo {
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, Error> {
        self.0.extend(frames.iter().map(|frame| frame.to_vec()));
        Ok(frames.len())
    }
    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        self.0.drain(..).for_each(|frame| each(&frame));
        Ok(())
    }
    fn missed(&self) -> Result<u64, Error> {
        Ok(0)
    }
}

#[test]
fn a_burst_has_its_frames_and_its_end_is_told() {
    let mut client = Client::owner(Device::default());
    client.add(0, 1, &burst(777));
    client.start(0, &json!({"type": "raw", "op": "abs", "value": 1.0}), -1.0).unwrap();
    client.pass(seconds(0.5));
    assert_eq!(client.state(0), "TX");
    assert!(client.on(0, "pause_traffic", json!({})).unwrap_err().contains("bursts"));
    client.pass(seconds(1.0));
    assert_eq!((client.state(0).as_str(), &client.stats(0)["opackets"]), ("STREAMS", &json!(777)));
    let events = client.events();
    assert!(
        events.contains(&(Kind::Finished as u64)) && events.contains(&(Kind::PortDone as u64)),
        "{events:?}"
    );

    let mut several = bench();
    several["mode"] = json!({"type": "multi_burst", "pkts_per_burst": 10, "count": 5, "ibg": 50_000.0,
        "rate": {"type": "pps", "value": 1000.0}});
    client.on(0, "remove_all_streams", json!({})).unwrap();
    client.add(0, 1, &several);
    client.start(0, &json!({"type": "raw", "value": 1}), -1.0).unwrap();
    client.pass(seconds(1.0));
    assert_eq!((client.state(0).as_str(), &client.stats(0)["opackets"]), ("STREAMS", &json!(777 + 50)));
}

/// A stream that another may follow: so many packets at 1,000 a second.
fn link(frames: u64, next: i64, starts: bool) -> Value {
    let mut stream = burst(frames);
    (stream["next_stream_id"], stream["self_start"]) = (json!(next), json!(starts));
    stream
}

#[test]
fn chains_and_bursts_beside_a_stream_without_end_are_sent() {
    let mut client = Client::owner(Device::default());
    // As in burst_3st_loop_x_times.py: three in a row, twice.
    let mut last = link(300, 1, false);
    last["action_count"] = json!(2);
    for (id, stream) in [(1, link(100, 2, true)), (2, link(200, 3, false)), (3, last)] {
        client.add(0, id, &stream);
    }
    let rates = client.on(0, "validate", json!({})).unwrap();
    assert_eq!(
        (&rates["rate"]["max_pps"], &rates["graph"]["expected_duration"]),
        (&json!(1_000.0), &json!(1.2e6))
    );
    client.start(0, &json!({"type": "raw", "value": 1}), -1.0).unwrap();
    client.pass(seconds(0.6));
    let sent = client.stats(0)["opackets"].as_u64().unwrap();
    assert!((500..600).contains(&sent) && client.state(0) == "TX", "{sent}");
    client.pass(seconds(0.8));
    assert_eq!((client.state(0).as_str(), &client.stats(0)["opackets"]), ("STREAMS", &json!(1_200)));
    assert!(client.events().contains(&(Kind::Finished as u64)));

    // A port of bursts ends; the other, whose stream has no end, goes on.
    client.on(0, "remove_all_streams", json!({})).unwrap();
    let mut several = bench();
    several["isg"] = json!(100_000.0);
    several["mode"] = json!({"type": "multi_burst", "pkts_per_burst": 10, "count": 5, "ibg": 50_000.0,
        "rate": {"type": "pps", "value": 1000.0}});
    client.add(0, 1, &several);
    client.add(1, 1, &bench());
    let before = [0, 1].map(|port| client.stats(port)["opackets"].as_u64().unwrap());
    client.start(0, &json!({"type": "raw", "value": 1}), -1.0).unwrap();
    client.start(1, &pps(200.0), -1.0).unwrap();
    client.pass(seconds(2.0));
    assert_eq!((client.state(0).as_str(), client.state(1).as_str()), ("STREAMS", "TX"));
    // The simulated device does not tell ports apart.
    let sent: u64 = (0..2).map(|port| client.stats(port)["opackets"].as_u64().unwrap() - before[port]).sum();
    assert!((430..=450).contains(&sent), "{sent}");
    client.on(1, "stop_traffic", json!({})).unwrap();
    client.pass(seconds(1.0));
    let stopped = client.stats(0);
    client.pass(seconds(1.0));
    assert_eq!(client.stats(0)["opackets"], stopped["opackets"]);
    assert_eq!((&stopped["oerrors"], client.state(1).as_str()), (&json!(0), "STREAMS"));
}

#[test]
fn somebody_at_the_server_steers_what_clients_have_started() {
    let mut client = Client::owner(Device::default());
    assert_eq!(client.server.load(), None);
    client.add(0, 1, &bench());
    client.start(0, &json!({"type": "percentage", "value": 1}), -1.0).unwrap();
    client.pass(seconds(1.0));
    let (percent, paused) = client.server.load().unwrap();
    assert!((percent - 1.0).abs() < 1e-6 && !paused, "{percent}");
    let sent = |client: &mut Client| client.stats(0)["opackets"].as_u64().unwrap();
    let before = sent(&mut client);
    client.server.set_load(2.0, false, client.now).unwrap();
    client.pass(seconds(1.0));
    // 2 % of 1 Gb/s are 29,762 frames of 84 bytes.
    let more = sent(&mut client) - before;
    assert!((29_000..=29_800).contains(&more), "{more}");
    client.server.set_load(2.0, true, client.now).unwrap();
    client.pass(seconds(0.1));
    let paused = sent(&mut client);
    client.pass(seconds(1.0));
    assert_eq!((sent(&mut client), client.server.load().unwrap().1), (paused, true));
    client.server.set_load(1.0, false, client.now).unwrap();
    client.pass(seconds(1.0));
    assert!(sent(&mut client) > paused + 14_000);
    let told = client.events();
    assert!(told.ends_with(&[Kind::Paused as u64, Kind::Resumed as u64]), "{told:?}");
    assert!(client.server.set_load(f64::NAN, false, client.now).is_err());
    client.on(0, "stop_traffic", json!({})).unwrap();
    assert_eq!(client.server.load(), None);
}

#[test]
fn packets_are_pushed_and_captured_in_service_mode() {
    let mut client = Client::owner(Device::default());
    let start =
        json!({"command": "start", "rx": [0], "tx": [0], "limit": 100, "mode": "fixed", "filter": "arp"});
    assert!(client.call("capture", &start).unwrap_err().contains("not in service mode"));
    assert_eq!(client.call("capture", &json!({"command": "status"})), Ok(json!([])));
    client.on(0, "service", json!({"enabled": true})).unwrap();
    let unknown = json!({"command": "start", "rx": [0], "limit": 1, "filter": "udp port 67"});
    assert!(client.call("capture", &unknown).unwrap_err().contains("'port' in a filter"));
    let id = client.call("capture", &start).unwrap()["capture_id"].clone();
    // ARP, and something else; addresses are the port's where that is asked for.
    let packet = |kind: &str| json!({"binary": format!("////////AAAAAAAA{kind}"), "use_port_src_mac": true});
    let packets =
        json!({"pkts": [packet("CAYAAQ=="), packet("CAAAAQ==")], "force": true, "ipg_usec": 100_000});
    assert_eq!(client.on(0, "push_pkts", packets.clone()).unwrap()["sent"], 2);
    client.pass(seconds(0.5));
    let fetch = json!({"command": "fetch", "capture_id": id, "pkt_limit": 50, "snaplen": 0});
    let fetched = client.call("capture", &fetch).unwrap();
    let origins: Vec<_> = fetched["pkts"].as_array().unwrap().iter().map(|it| it["origin"].clone()).collect();
    assert_eq!(origins, [json!("TX"), json!("RX")]);
    assert!(
        fetched["pkts"][1]["binary"].as_str().unwrap().starts_with("////////AgAAAAAACAYAAQAA"),
        "{fetched}"
    );
    assert_eq!(
        client.call("capture", &json!({"command": "stop", "capture_id": id})).unwrap()["pkt_count"],
        0
    );
    client.call("capture", &json!({"command": "remove", "capture_id": id})).unwrap();
    // Nothing waits, and nobody listens, when the port is given back.
    client.on(0, "push_pkts", packets.clone()).unwrap();
    client.on(0, "release", json!({})).unwrap();
    assert!(client.on(0, "push_pkts", packets).unwrap_err().contains("not in service mode"));
    for nonsense in [json!({"pkts": 5}), json!({"pkts": [5]}), json!({"pkts": [{"binary": "AAAA"}]})] {
        client.on(1, "service", json!({"enabled": true})).unwrap();
        assert!(client.on(1, "push_pkts", nonsense).is_err());
    }
}

#[test]
fn a_port_takes_frames_for_others_until_it_is_released() {
    let mut client = Client::owner(Device::default());
    let kept = Rc::clone(&client.server.tester.others);
    let set =
        |client: &mut Client, attributes: Value| client.on(0, "set_port_attr", json!({"attr": attributes}));
    let told = |client: &mut Client| {
        let attributes = client.on(0, "get_port_status", json!({})).unwrap()["attr"].clone();
        [attributes["promiscuous"]["enabled"].clone(), attributes["multicast"]["enabled"].clone()]
    };
    let (on, off) = (json!({"promiscuous": {"enabled": true}}), json!({"promiscuous": {"enabled": false}}));
    for _ in 0..2 {
        set(&mut client, on.clone()).unwrap();
    }
    assert_eq!((told(&mut client), Rc::strong_count(&kept)), ([json!(true), json!(false)], 3));
    set(&mut client, off).unwrap();
    assert_eq!((told(&mut client), Rc::strong_count(&kept)), ([json!(false), json!(false)], 2));
    // Nothing is changed where anything of the call is wrong.
    let half = json!({"promiscuous": {"enabled": true}, "link_status": {"up": false}});
    assert!(set(&mut client, half).unwrap_err().contains("'link_status'"));
    assert!(set(&mut client, json!({"promiscuous": {}})).unwrap_err().contains("'promiscuous'"));
    assert_eq!(set(&mut client, json!({"multicast": {"enabled": true}})).unwrap_err(), "no multicast here");
    assert_eq!(Rc::strong_count(&kept), 2);
    set(&mut client, on).unwrap();
    client.on(0, "release", json!({})).unwrap();
    assert_eq!((told(&mut client), Rc::strong_count(&kept)), ([json!(false), json!(false)], 2));
}
