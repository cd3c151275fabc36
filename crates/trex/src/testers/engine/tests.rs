use ::engine::simulated::Device;
use traffic::{Directions, Endpoint, Endpoints, Profile, Tunables};
use wire::MacAddress;

use super::*;
use crate::framing;
use crate::server::tests::Client as Site;
use crate::testers::{Client, Transport};

/// `linerate serve` with a simulated device.
type Shared = Rc<RefCell<Site>>;

struct To(Shared, Option<Vec<u8>>);

impl Transport for To {
    fn send(&mut self, message: &[u8]) -> Result<(), String> {
        let mut site = self.0.borrow_mut();
        let now = site.now;
        self.1 = Some(site.server.handle(message, now));
        Ok(())
    }

    fn receive(&mut self, _: Duration) -> Result<Option<Vec<u8>>, String> {
        Ok(self.1.take())
    }

    fn renew(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// The time of all servers, at which the user may want to end.
struct Virtual(Vec<Shared>, Arc<AtomicBool>, Duration);

impl Clock for Virtual {
    fn now(&self) -> Duration {
        self.0[0].borrow().now
    }

    fn sleep(&self, duration: Duration) {
        self.0.iter().for_each(|site| site.borrow_mut().pass(duration));
        if self.now() >= self.2 {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

fn table(directions: Directions) -> FrameTable {
    let endpoint = Endpoint { source: MacAddress([2; 6]), destination: MacAddress([4; 6]) };
    let profile = Profile::builtin("bench", &Tunables::default()).unwrap();
    profile.table(&Endpoints([endpoint; 2]), directions)
}

fn sites(count: usize, device: &Device) -> Vec<Shared> {
    (0..count).map(|_| Rc::new(RefCell::new(Site::new(device.clone())))).collect()
}

fn start(sites: &[Shared], directions: Directions, end: Duration) -> (TesterEngine, Rc<RefCell<Apart>>) {
    let connect = |(number, site): (usize, &Shared)| {
        let client = Client::new(format!("tester{number}"), Box::new(To(Rc::clone(site), None)));
        Server::connect(client, 7).unwrap()
    };
    let servers: Vec<Server> = sites.iter().enumerate().map(connect).collect();
    assert!(servers.iter().all(|server| server.version().is_linerate));
    assert_eq!(servers[0].ports()[1].speed_bps, Some(1e9));
    let stop = Arc::new(AtomicBool::new(false));
    let clock = Box::new(Virtual(sites.to_vec(), Arc::clone(&stop), end));
    let apart = Rc::default();
    (TesterEngine::start(servers, &table(directions), clock, stop, &apart).unwrap(), apart)
}

const NEVER: Duration = Duration::from_secs(3_600);
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn testers_share_a_load_and_their_counts_add_up() {
    let sites = sites(2, &Device::default());
    let (mut engine, apart) = start(&sites, Directions::Both, NEVER);
    let first = engine.begin(Load::Rate(3_000.0)).unwrap();
    engine.wait(10 * SECOND).unwrap();
    let second = engine.begin(Load::Rate(1_000.0)).unwrap();
    engine.wait(10 * SECOND).unwrap();
    engine.begin(Load::Idle).unwrap();
    engine.wait(SECOND).unwrap();
    for (interval, intended) in [(first, 30_000.0), (second, 10_000.0)] {
        for counts in engine.counts(interval).unwrap() {
            assert_eq!(counts.intended, intended);
            assert!((counts.offered as f64 / intended - 1.0).abs() < 1e-3, "{counts:?}");
            assert_eq!((counts.forwarded, counts.unsent), (counts.offered, 0));
            assert_eq!(counts.forwarded_bytes, 64 * counts.forwarded);
        }
    }
    // Each tester had its half.
    let sent = [0, 1].map(|site: usize| sites[site].borrow_mut().stats(0)["opackets"].as_u64().unwrap());
    assert!(sent[0].abs_diff(sent[1]) < 50 && sent[0] + sent[1] == engine.totals().unwrap()[0].offered);
    assert_eq!(engine.now(), 21 * SECOND);
    assert!(
        apart.borrow().note().unwrap().contains("testers tester0 and tester1: one load began at most 0.0 ms")
    );
    drop(engine);
    for site in &sites {
        assert_eq!(site.borrow_mut().state(0), "IDLE");
    }
}

#[test]
fn every_lost_frame_is_counted_in_its_interval() {
    let sites = sites(1, &Device { drop_every: Some(10), ..Device::default() });
    let (mut engine, apart) = start(&sites, Directions::Forward, NEVER);
    let mut before = 0;
    for pps in [1_000.0, 5_000.0, 2_000.0] {
        let interval = engine.begin(Load::Rate(pps)).unwrap();
        engine.wait(SECOND).unwrap();
        let counts = engine.counts(interval).unwrap()[0];
        let lost = (before + counts.offered) / 10 - before / 10;
        assert_eq!(counts.offered - counts.forwarded, lost, "{counts:?}");
        before += counts.offered;
    }
    assert_eq!(apart.borrow().note(), None);
    assert!(engine.begin(Load::Rate(f64::NAN)).is_err());
}

#[test]
fn a_burst_has_exactly_its_frames_whatever_came_before() {
    let sites = sites(3, &Device::default());
    let (mut engine, _) = start(&sites, Directions::Both, NEVER);
    let rate = engine.begin(Load::Rate(3_000.0)).unwrap();
    engine.wait(SECOND).unwrap();
    for frames in [1_000, 2, 500] {
        let interval = engine.begin(Load::Burst { pps: 3_000.0, frames }).unwrap();
        engine.wait(SECOND).unwrap();
        engine.wait(SECOND).unwrap();
        for counts in engine.counts(interval).unwrap() {
            assert_eq!((counts.intended, counts.offered, counts.forwarded), (frames as f64, frames, frames));
        }
    }
    engine.begin(Load::Rate(3_000.0)).unwrap();
    engine.wait(SECOND).unwrap();
    assert!(engine.counts(rate).unwrap()[0].offered.abs_diff(3_000) < 30);
    assert!(engine.begin(Load::Burst { pps: f64::INFINITY, frames: 7 }).is_err());
}

#[test]
fn the_user_ends_a_load_and_hears_so_once() {
    let sites = sites(2, &Device::default());
    let (mut engine, _) = start(&sites, Directions::Forward, 5 * SECOND);
    let interval = engine.begin(Load::Rate(1_000.0)).unwrap();
    assert!(matches!(engine.wait(60 * SECOND), Err(Error::Interrupted)));
    assert_eq!(sites[1].borrow_mut().state(0), "STREAMS");
    let counts = engine.counts(interval).unwrap()[0];
    assert!(counts.offered == counts.forwarded && (4_000..5_500).contains(&counts.offered), "{counts:?}");
    engine.begin(Load::Idle).unwrap();
    engine.wait(SECOND).unwrap();
}

#[test]
fn a_port_that_somebody_takes_ends_the_run() {
    let sites = sites(1, &Device::default());
    let (mut engine, _) = start(&sites, Directions::Forward, NEVER);
    engine.begin(Load::Rate(1_000.0)).unwrap();
    let taken = {
        let mut site = sites[0].borrow_mut();
        site.take_port(0)
    };
    assert!(taken.is_ok());
    let error = engine.wait(SECOND).unwrap_err().to_string();
    assert!(error.contains("tester0") && error.contains("not owned"), "{error}");
    assert!(engine.begin(Load::Idle).is_err(), "it stays failed");
}

/// A server that answers what it is told to.
struct Scripted(Vec<Option<&'static str>>);

impl Transport for Scripted {
    fn send(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn receive(&mut self, _: Duration) -> Result<Option<Vec<u8>>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        Ok(self.0.remove(0).map(|text| text.as_bytes().to_vec()))
    }

    fn renew(&mut self) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn an_answer_that_makes_no_sense_is_an_error_that_names_the_server() {
    let synced = Some(r#"{"jsonrpc":"2.0","id":"1","result":{"api_h":"A"}}"#);
    let version = Some(r#"{"jsonrpc":"2.0","id":"2","result":{"version":"v3"}}"#);
    let no_ports = Some(r#"{"jsonrpc":"2.0","id":"3","result":{"ports":[{}]}}"#);
    let scripts: [(Vec<Option<&'static str>>, &str); 12] = [
        (vec![None], "no answer within 3s"),
        (vec![Some("")], "no JSON"),
        (vec![Some("[[[[")], "no JSON"),
        (vec![Some("[]")], "0 answers to 1 calls"),
        (vec![Some("7")], "another call"),
        (vec![Some(r#"{"id":"1"}"#)], "neither"),
        (vec![Some(r#"{"id":"9","result":{}}"#)], "another call"),
        (vec![Some(r#"{"id":"1","result":{"api_h":7}}"#)], "api_h"),
        (
            vec![Some(r#"{"id":"1","error":{"code":1,"message":"M","specific_err":"too old"}}"#)],
            "refuses: too old",
        ),
        (vec![Some(r#"{"id":"1","error":"bad"}"#)], "no reason is given"),
        (vec![synced, version, no_ports], "1 ports"),
        (vec![synced, version, Some(r#"{"id":"3","result":"x"}"#)], "0 ports"),
    ];
    for (script, wanted) in scripts {
        let client = Client::new("there:4501".to_owned(), Box::new(Scripted(script.clone())));
        let error = Server::connect(client, 1).err().unwrap().to_string();
        assert!(error.starts_with("tester there:4501: ") && error.contains(wanted), "{script:?}: {error}");
    }
    // A zlib stream that announces more than it holds.
    let mut damaged = framing::pack(b"{}");
    damaged.truncate(12);
    assert!(framing::open(&damaged).is_err());
}

#[test]
fn counters_that_go_back_or_are_none_end_the_run() {
    let sites = sites(1, &Device::default());
    let (mut engine, _) = start(&sites, Directions::Forward, NEVER);
    engine.read[0][0].sent = 1_000_000;
    engine.begin(Load::Rate(1_000.0)).unwrap();
    let error = engine.wait(SECOND).unwrap_err().to_string();
    assert!(error.contains("tester0") && error.contains("went back"), "{error}");
    let scripted = |text| Client::new("there".to_owned(), Box::new(Scripted(vec![Some(text)])));
    let ask = |text| {
        let mut client = scripted(text);
        client.ask(vec![("get_port_stats", json!({})); 2]).unwrap();
        client.answer()
    };
    assert!(ask(r#"[{"id":"1","result":{}}]"#).unwrap_err().to_string().contains("1 answers to 2 calls"));
    assert!(ask(r#"[{"id":"2","result":{}},{"id":"1","result":{}}]"#).is_err());
}
