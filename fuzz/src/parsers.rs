//! Parsers of what others write: a file, a message or a request enters; what each makes of it is used as the programs use it.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use engine::Engine;
use engine::simulated::{Device, SimulatedEngine, Tester as Simulated};
use fastpath::config::{Config, changes_of, difference};
use fastpath::control::Request;
use results::Record;
use results::certificate::Certificate;
use results::fixtures::Scenario;
use traffic::capture::Writer;
use traffic::{Capture, Directions, Endpoint, Endpoints, FrameTable, Profile};
use trex::{PortFacts, Server, Tester, Version};
use wire::MacAddress;

/// The most frames that are built of a profile.
const ROWS: usize = 256;
/// Where they go.
const ENDPOINTS: Endpoints = {
    let address = MacAddress([2, 0, 0, 0, 0, 1]);
    Endpoints([Endpoint { source: address, destination: address }; 2])
};

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The files of a directory of the repository that end so.
pub fn files(directory: &str, ending: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(directory);
    let mut paths: Vec<_> = directory.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == ending));
    paths.sort();
    assert!(!paths.is_empty());
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Every frame that a profile makes fits what it says of itself.
fn frames_fit(profile: &Profile) {
    let table: FrameTable = profile.table_up_to(&ENDPOINTS, Directions::Both, ROWS);
    let largest = profile.largest_size();
    assert!((64..=9216).contains(&largest), "{largest}");
    for row in &table.rows {
        assert!(row.length + 4 <= largest && row.length >= 60, "{} of {largest}", row.length);
    }
}

/// A capture, pcap or pcapng. No more comes out than went in.
pub fn capture(file: &[u8]) {
    if let Ok(capture) = Capture::read(file) {
        let bytes: usize = capture.frames.iter().map(|frame| frame.bytes.len()).sum();
        assert!(bytes <= file.len(), "{bytes} of {}", file.len());
        let _ = (capture.duration(), capture.mean_pps(), capture.whole());
    }
    if let Ok(profile) = Profile::from_capture("fuzz", file) {
        frames_fit(&profile);
    }
}

/// Captures: the frames of the corpus in a file.
pub fn captures() -> Vec<Vec<u8>> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    for (number, frame) in (0..).zip(crate::frames::corpus()) {
        writer.frame(number * 1000, &frame).unwrap();
    }
    let pcap = writer.finish().unwrap();
    let block = |kind: u32, body: &[u8]| {
        let length = (12 + body.len()) as u32;
        [&kind.to_le_bytes()[..], &length.to_le_bytes(), body, &length.to_le_bytes()].concat()
    };
    let header =
        block(0x0a0d_0d0a, &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    let interface = block(1, &[1, 0, 0, 0, 0, 0, 4, 0]);
    let packet = block(6, &[&[0; 12][..], &60_u32.to_le_bytes(), &60_u32.to_le_bytes(), &[2; 60]].concat());
    vec![pcap, [header, interface, packet].concat()]
}

/// A profile in TOML.
pub fn profile(bytes: &[u8]) {
    if let Ok(profile) = Profile::from_toml("fuzz", &text(bytes)) {
        frames_fit(&profile);
    }
}

/// A driver of a remote device.
pub fn driver(bytes: &[u8]) {
    let _ = remote::Driver::parse("fuzz", &text(bytes), false);
}

/// What a remote device says of its counters.
pub fn remote_counters(bytes: &[u8]) {
    let _ = remote::parse_counters(&text(bytes), "fuzz");
}

/// Counters as drivers print them.
pub fn counters() -> Vec<Vec<u8>> {
    ["rx_packets 12\ntx_packets 18446744073709551615\n", "port0: 1\nport0: 2\n= x\n", "7"]
        .map(|text| text.as_bytes().to_vec())
        .into()
}

/// A configuration of fastpath. One that is taken differs in nothing from itself.
pub fn router_configuration(bytes: &[u8]) {
    if let Ok(config) = Config::parse("fuzz", &text(bytes)) {
        assert!(difference(&config, &config).is_ok_and(|changes| changes.is_empty()));
    }
}

/// Configurations: those that the documentation shows.
pub fn configurations() -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let pages = ["fastpath.md", "fastpath-access-lists.md"]
        .map(|name| std::fs::read_to_string(directory.join(name)).unwrap())
        .concat();
    let blocks = pages.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.map(|block| block.as_bytes().to_vec()).collect()
}

/// What a router is to be whose table or commands are tried.
static CONFIG: LazyLock<Config> = LazyLock::new(|| {
    let text = "[workers]\ncores = [0]\n[[interface]]\nname = \"lan\"\ndevice = \"null\"\naddresses = [\"10.0.0.1/24\"]\n";
    Config::parse("fuzz", text).unwrap()
});

/// A table of routes beside it.
pub fn router_table(bytes: &[u8]) {
    let _ = CONFIG.clone().add_table("fuzz", bytes);
}

/// Tables in the words of `ip route`.
pub fn tables() -> Vec<Vec<u8>> {
    let lines = "10.1.0.0/16 via 10.0.0.2\n2001:db8::/32 dev lan\nblackhole 10.2.0.0/16\n\
                 10.3.0.0/16 nhid 7 proto bgp metric 20\n\tnexthop via 10.0.0.2 dev lan weight 3\n\tnexthop via 10.0.0.3 dev lan\n";
    vec![lines.as_bytes().to_vec(), b"default via 10.0.0.2 dev lan proto static metric 100 onlink\n".to_vec()]
}

/// A request to its control socket.
pub fn router_request(bytes: &[u8]) {
    if let Ok(Request::Set(set)) = serde_json::from_slice::<Request>(bytes) {
        let _ = changes_of(&CONFIG, &set);
    }
}

/// Requests of all kinds.
pub fn requests() -> Vec<Vec<u8>> {
    [
        r#"{"show":"runtime"}"#,
        r#"{"show":{"fib":{"version":"ip4","of":"10.0.0.1"}}}"#,
        r#"{"clear":"errors"}"#,
        r#"{"set":{"route":{"prefix":"10.1.0.0/16","to":{"via":[{"gateway":"10.0.0.2"}]}}}}"#,
        r#"{"reload":null}"#,
        r#"{"set":{"interface":{"name":"lan","up":false}}}"#,
        r#"{"trace":{"count":5}}"#,
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

/// A datagram of the kernel's. No message changes more than one thing.
pub fn netlink(datagram: &[u8]) {
    let changes = fastpath::kernel::changes_in(datagram);
    assert!(changes.len() <= datagram.len() / 16, "{changes:?}");
}

/// A route by a gateway, a neighbour and a link, as the kernel tells of them.
pub fn datagrams() -> Vec<Vec<u8>> {
    let message = |kind: u16, payload: &[u8]| {
        let length = (16 + payload.len()) as u32;
        [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0, 4], &[0; 8], payload].concat()
    };
    let attribute = |kind: u16, value: &[u8]| {
        [&(4 + value.len() as u16).to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat()
    };
    let route = [
        &[2, 8, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0][..],
        &attribute(1, &[10, 0, 0, 0]),
        &attribute(5, &[192, 0, 2, 1]),
        &attribute(4, &[7, 0, 0, 0]),
    ]
    .concat();
    let neighbour = [
        &[2, 0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0][..],
        &attribute(1, &[192, 0, 2, 1]),
        &attribute(2, &[2, 0, 0, 0, 0, 1, 0, 0]),
    ]
    .concat();
    let link = [0, 0, 1, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    vec![
        message(24, &route),
        message(28, &neighbour),
        message(16, &link),
        [message(24, &route), message(16, &link)].concat(),
    ]
}

/// A record of a run: what was wrong in it stays wrong, and what is shown of it is made.
pub fn record(bytes: &[u8]) {
    if let Ok(mut record) = serde_json::from_slice::<Record>(bytes) {
        let _ = results::consistency::contradictions(&record);
        let _ = results::consistency::stale_self_test(&record);
        results::consistency::settle(&mut record);
        let _ = results::export::csv::export(std::slice::from_ref(&record));
        let _ = results::export::trex_loadtest::export(&record);
        let again = serde_json::to_vec(&record).unwrap();
        // Numbers that are none become null, which is no number to the reader.
        let _ = serde_json::from_slice::<Record>(&again);
    }
}

/// Records of made-up runs.
pub fn records() -> Vec<Vec<u8>> {
    vec![serde_json::to_vec(&Scenario::default().record()).unwrap()]
}

/// A certificate of the tester.
pub fn certificate(bytes: &[u8]) {
    if let Ok(certificate) = serde_json::from_slice::<Certificate>(bytes) {
        let _ = certificate.holds();
    }
}

/// A certificate as `verify` writes it.
pub fn certificates() -> Vec<Vec<u8>> {
    vec![br#"{"schema":"linerate/certificate/1","checks":[{"name":"x","verdict":"pass"}]}"#.to_vec()]
}

/// A result of trex-loadtest.py.
pub fn imported_result(bytes: &[u8]) {
    let _ = results::import::trex_loadtest::read(&text(bytes));
}

/// One that was exported.
pub fn exported() -> Vec<Vec<u8>> {
    vec![results::export::trex_loadtest::export(&Scenario::default().record()).unwrap().into_bytes()]
}

/// Two ports whose device is simulated.
struct Ports([PortFacts; 2]);

impl Tester for Ports {
    fn ports(&self) -> &[PortFacts; 2] {
        &self.0
    }

    fn start(&mut self, table: &FrameTable) -> Result<Box<dyn Engine>, String> {
        let tester = Simulated { directions: table.directions(), ..Default::default() };
        Ok(Box::new(SimulatedEngine::new(Device::default(), tester)))
    }
}

/// Calls to `linerate serve`, a line each, packed or not: every one is answered.
pub fn trex_call(bytes: &[u8]) {
    let facts = [0, 1].map(|port| PortFacts {
        name: format!("port{port}"),
        driver: "simulated".to_owned(),
        source: MacAddress([2, 0, 0, 0, 0, port]),
        destination: MacAddress([2, 0, 0, 0, 1, port]),
        line_rate_bps: 1e9,
    });
    let version = Version { version: "fuzz".to_owned(), hostname: "fuzz".to_owned() };
    let mut server = Server::new(Ports(facts), version, 7);
    for (number, line) in (0..).zip(bytes.split(|byte| *byte == b'\n').take(64)) {
        let now = Duration::from_millis(10 * number);
        assert!(!server.handle(line, now).is_empty());
        server.tick(now);
    }
}

/// What a client says to take ports and send by them.
pub fn calls() -> Vec<Vec<u8>> {
    let call = |method: &str, parameters: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"x","method":"{method}","params":{{"api_h":"","port_id":0,"handler":"",{parameters}}}}}"#
        )
    };
    let stream = r#""stream_id":1,"profile_id":"_","stream":{"enabled":true,"self_start":true,"action_count":0,"random_seed":0,
        "flags":0,"isg":0.0,"next_stream_id":-1,"mode":{"type":"continuous","rate":{"type":"pps","value":1.0}},
        "packet":{"binary":"AgAAAAABAgAAAAACCABFAAAuAAEAAEAROr0QAAABMAAAAQQBAAwAGgAAeHh4eHh4eHh4eHh4eHh4eHh4","meta":""},
        "vm":{"instructions":[]},"flow_stats":{"enabled":false},"rx_stats":{"enabled":false}}"#;
    let lines = [
        call("api_sync_v2", r#""name":"STL","major":5,"minor":1"#),
        call("acquire", r#""user":"me","session_id":5,"force":true"#),
        call("add_stream", &stream.replace('\n', " ")),
        call("start_traffic", r#""mul":{"type":"pps","op":"abs","value":1000},"duration":1.0,"force":false"#),
        call("get_port_stats", r#""a":1"#),
    ];
    vec![lines.join("\n").into_bytes(), trex::framing::pack(lines[0].as_bytes())]
}

/// A message of a client as it stands on the wire. What it says is bounded, and comes back from its own packing.
pub fn trex_message(bytes: &[u8]) {
    if let Ok((text, _)) = trex::framing::open(bytes) {
        assert!(text.len() <= trex::framing::LARGEST, "{} bytes", text.len());
        assert_eq!(trex::framing::open(&trex::framing::pack(&text)), Ok((text, true)));
    }
}

/// Plain and packed ones, and one whose head promises more than it holds.
pub fn messages() -> Vec<Vec<u8>> {
    let packed = trex::framing::pack(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
    let mut promises = packed.clone();
    promises[4..8].copy_from_slice(&900_000_u32.to_be_bytes());
    vec![b"{\"id\":1}".to_vec(), packed, promises]
}
