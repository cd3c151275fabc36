//! The router beside the kernel as routing daemons use it: taps stand for its interfaces, and what they
//! bring into the kernel's table it routes by.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{OURS, THEIRS, frame};
use etherparse::PacketBuilder;
use fastpath::client::Client;
use fastpath::control::{Answer, IpVersion, Request, Show};
use fastpath::kernel::{Settings, Tap};
use memif::{Config, Frame, Memif, Opened, Role, Socket};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sched::sched_getaffinity;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::namespace::Namespace;
use crate::namespace::bird::Bird;
use crate::namespace::frr::Frr;
use crate::process::{PATIENCE, Router, fastpath, until};

/// The next frame to arrive at a peer that is `wanted`.
fn arrives(peer: &mut Opened, what: &str, wanted: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    until(what, || {
        let mut frames = [Frame::NONE; 64];
        let count = peer.receivers[0].receive(&mut frames);
        // SAFETY: they are lent until they are released.
        let mut frames = frames[..count].iter().map(|frame| unsafe { frame.bytes() }.to_vec());
        let found = frames.find(|frame| wanted(frame));
        peer.receivers[0].release();
        found
    })
}

/// Polls peers of the router's memifs until they are connected.
fn connect<const N: usize>(directory: &Path, names: [&str; N]) -> [Opened; N] {
    names.map(|name| {
        let socket = Socket::Path(directory.join(name));
        let mut peer = Memif::open(Config::new(Role::Client, socket)).unwrap();
        until("the peers are connected", || {
            peer.memif.poll(Duration::from_millis(5)).unwrap();
            peer.memif.is_connected().then_some(())
        });
        peer
    })
}

/// Waits until packets to a prefix have this done to them by what this source says; nothing, without a route.
fn has_route(client: &mut Client, prefix: &str, wanted: Option<(&str, &str)>) {
    let show = Show::Fib { version: IpVersion::Ip4, of: Some(prefix.to_owned()) };
    until(&format!("{prefix}: {wanted:?}"), || {
        let Answer::Fib(fib) = client.ask(&Request::Show(show.clone())).unwrap() else { panic!() };
        let fib = serde_json::to_value(fib).unwrap();
        let route = &fib["routes"][0];
        (route["source"].as_str().zip(route["paths"][0]["action"].as_str()) == wanted).then_some(())
    });
}

/// A router of two memifs that the kernel sees, `lan` and `wan`, that routes by its table.
fn configuration(directory: &Path) -> String {
    let core = (0..1024).find(|core| sched_getaffinity(Pid::from_raw(0)).unwrap().is_set(*core).unwrap());
    let interface = |name: &str, number: usize| {
        format!(
            "[[interface]]\nname = \"{name}\"\ndevice = \"memif:socket={}/{name}\"\nmac = \"{}\"\n\
             addresses = [\"10.{number}.0.1/24\"]\ntap = true\n",
            directory.display(),
            OURS[number]
        )
    };
    format!(
        "routes-from-kernel = true\n[control]\nsocket = \"{}/control\"\n[workers]\ncores = [{}]\n\
         idle = \"sleep\"\n{}{}",
        directory.display(),
        core.unwrap(),
        interface("lan", 0),
        interface("wan", 1)
    )
}

#[test]
fn a_router_shows_the_kernel_its_interfaces_and_routes_by_its_table() {
    let Some(namespace) = Namespace::new() else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("router.toml");
    let text = format!(
        "{}[[neighbour]]\ninterface = \"wan\"\naddress = \"10.1.0.2\"\nmac = \"{}\"\n\
         [[route]]\nprefix = \"49.0.0.0/8\"\ndrop = true\n",
        configuration(directory.path()),
        THEIRS[1]
    );
    fs::write(&file, &text).unwrap();
    let router = Router::started(namespace.inside(|| fastpath(&file).spawn().unwrap()));
    let mut peers = connect(directory.path(), ["lan", "wan"]);
    let mut client = Client::connect(&directory.path().join("control")).unwrap();
    let shown = namespace.run("ip address show dev wan");
    assert!(shown.contains("inet 10.1.0.1/24") && shown.contains(&OURS[1].to_string()), "{shown}");

    // Who speaks to a program of the kernel gets its answer, for which the kernel asks where he is.
    let socket = namespace.inside(|| UdpSocket::bind("10.0.0.1:7").unwrap());
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut datagram = Vec::new();
    let built = PacketBuilder::ethernet2(THEIRS[0].0, OURS[0].0).ipv4([10, 0, 0, 2], [10, 0, 0, 1], 64);
    built.udp(9, 7).write(&mut datagram, b"to you").unwrap();
    assert_eq!(peers[0].senders[0].send(&[&datagram[..]]), 1);
    let mut heard = [0; 99];
    let (length, from) = socket.recv_from(&mut heard).unwrap();
    assert_eq!((&heard[..length], from.to_string()), (&b"to you"[..], "10.0.0.2:9".to_owned()));
    socket.send_to(b"and back", from).unwrap();
    let asks = |frame: &[u8]| frame[12..14] == [8, 6] && frame[38..42] == [10, 0, 0, 2];
    let request = arrives(&mut peers[0], "the kernel asks", asks);
    let answer = [&[0, 2], &THEIRS[0].0[..], &[10, 0, 0, 2], &request[22..32]].concat();
    let answer = [&request[6..12], &THEIRS[0].0, &request[12..20], &answer].concat();
    assert_eq!(peers[0].senders[0].send(&[&answer[..]]), 1);
    arrives(&mut peers[0], "the program answers", |frame| frame.ends_with(b"and back"));

    // Routes of the kernel come and go; one that is configured stays.
    namespace.run("for net in 48 49; do ip route add $net.0.0.0/8 via 10.1.0.2 dev wan; done");
    has_route(&mut client, "48.0.0.0/8", Some(("kernel", "via")));
    has_route(&mut client, "49.0.0.0/8", Some(("configured", "drop")));
    assert_eq!(peers[0].senders[0].send(&[&frame(OURS[0], [48, 0, 0, 1], 64, 46)]), 1);
    let routed = arrives(&mut peers[1], "a packet is routed", |frame| frame[30..34] == [48, 0, 0, 1]);
    assert_eq!((&routed[..6], &routed[6..12], routed[22]), (&THEIRS[1].0[..], &OURS[1].0[..], 63));
    namespace.run("ip route del 48.0.0.0/8");
    has_route(&mut client, "48.0.0.0/8", None);

    // Without the configured route that of the kernel is there; taps and the key stay as they are.
    fs::write(&file, text.split("[[route]]").next().unwrap()).unwrap();
    client.ask(&Request::Reload { file: None }).unwrap();
    has_route(&mut client, "49.0.0.0/8", Some(("kernel", "via")));
    fs::write(&file, text.replacen("tap = true", "", 1)).unwrap();
    let refused = client.ask(&Request::Reload { file: None }).unwrap_err().to_string();
    assert!(refused.contains("the tap of lan cannot change while the router runs"), "{refused}");
    let Answer::Hardware(hardware) = client.ask(&Request::Show(Show::Hardware)).unwrap() else { panic!() };
    let lan = &hardware.taps[0];
    assert_eq!((lan.name.as_str(), lan.kernel_index, lan.refused), ("lan", namespace.index("lan"), 0));
    assert!(lan.to_kernel >= 2 && lan.from_kernel >= 2, "{lan:?}");

    router.stop(Signal::SIGTERM);
    let links = namespace.run("ip -o link");
    assert!(!links.contains("lan") && !links.contains("wan"), "{links}");
}

/// A cable from the router to a host, until it is cut, a failed test too.
struct Cable<'a> {
    cut: &'a AtomicBool,
}

impl Drop for Cable<'_> {
    fn drop(&mut self) {
        self.cut.store(true, Ordering::Relaxed);
    }
}

/// Carries frames between the router's peer and a host until the cable is cut, and shows what is for the host.
fn carry(peer: &mut Opened, host: &Tap, cut: &AtomicBool, seen: &Sender<Vec<u8>>) {
    let mut frame = [0; 2048];
    while !cut.load(Ordering::Relaxed) {
        poll(&mut [PollFd::new(host.as_fd(), PollFlags::POLLIN)], 1u8).unwrap();
        while let Some(length) = host.read(&mut frame) {
            peer.senders[0].send(&[&frame[..length]]);
        }
        let mut frames = [Frame::NONE; 64];
        let count = peer.receivers[0].receive(&mut frames);
        for frame in &frames[..count] {
            // SAFETY: it is lent until it is released.
            let frame = unsafe { frame.bytes() };
            host.try_write(frame);
            // Nobody looks at them when the test is over.
            let _ = seen.send(frame.to_vec());
        }
        peer.receivers[0].release();
    }
}

/// A router between `lan` and a host beyond `wan`, with which routing daemons beside both can speak.
struct Site {
    /// The router's namespace, and the host's.
    here: Namespace,
    there: Namespace,
    /// Files of the router.
    directory: TempDir,
    /// The other ends of the router's memifs.
    lan: Opened,
    wan: Opened,
    host: Tap,
    client: Client,
    _router: Router,
}

impl Site {
    /// `None`, with the reason printed, where there can be no namespaces.
    fn new() -> Option<Self> {
        let here = Namespace::new()?;
        let there = Namespace::new().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("router.toml");
        fs::write(&file, configuration(directory.path())).unwrap();
        let _router = Router::started(here.inside(|| fastpath(&file).spawn().unwrap()));
        let [lan, wan] = connect(directory.path(), ["lan", "wan"]);
        let addresses = [([10, 1, 0, 2].into(), 24)];
        let host = Settings { name: "host", mac: THEIRS[1], mtu: 1500, addresses: &addresses };
        let host = there.inside(|| Tap::create(&host)).unwrap();
        let client = Client::connect(&directory.path().join("control")).unwrap();
        Some(Self { here, there, directory, lan, wan, host, client, _router })
    }
}

/// What FRR is told beside the router.
const FRR_LISTENS: &str = "router bgp 65001\n bgp router-id 10.1.0.1\n no bgp ebgp-requires-policy\n \
                           neighbor 10.1.0.2 remote-as 65002\n neighbor 10.1.0.2 passive\n";

/// What BIRD is told at either end: who it is, and with whom it speaks.
fn speaker(own: u8, other: u8, more: &str) -> String {
    format!(
        "router id 10.1.0.{own};
         protocol device {{ }}
         protocol bgp {{
             local 10.1.0.{own} as 6500{own}; neighbor 10.1.0.{other} as 6500{other}; {more}
             connect delay time 1; connect retry time 1; error wait time 1, 1;
             ipv4 {{ import all; export where source = RTS_STATIC; }};
         }}"
    )
}

#[test]
fn packets_take_the_routes_that_bird_learns_through_the_router() {
    // Ours listens; what the other one says reaches it by the memif, the router and the tap.
    let listens = speaker(1, 2, "passive;") + "protocol kernel { ipv4 { export where source = RTS_BGP; }; }";
    packets_take_the_routes_of(|here, directory| Bird::start(here, directory, "listens", &listens));
}

#[test]
fn packets_take_the_routes_that_frr_learns_through_the_router() {
    if Frr::is_installed() {
        packets_take_the_routes_of(|here, _| Frr::start(here, FRR_LISTENS));
    }
}

/// How many routes the table has.
fn routes(client: &mut Client) -> usize {
    let show = Show::Fib { version: IpVersion::Ip4, of: Some("198.51.100.0/24".to_owned()) };
    let Answer::Fib(fib) = client.ask(&Request::Show(show)).unwrap() else { panic!() };
    fib.total
}

/// A million networks as BIRD's configuration has them: 61 % of them of 256 addresses, the others of 1,024.
fn full_table() -> String {
    let network = |number: u32| match number {
        0..610_000 => (Ipv4Addr::from((20 << 24) + (number << 8)), 24),
        _ => (Ipv4Addr::from((64 << 24) + ((number - 610_000) << 10)), 22),
    };
    let routes: String = (0..FULL as u32)
        .map(network)
        .map(|(network, length)| format!("route {network}/{length} blackhole;\n"))
        .collect();
    format!("protocol static everything {{ disabled; ipv4; {routes} }}")
}

const FULL: usize = 1_000_000;
/// How long a full table may take, on a machine that others share.
const PATIENCE_WITH_ALL: Duration = Duration::from_secs(300);

#[test]
#[ignore = "takes about a minute"]
fn packets_pass_while_frr_learns_a_million_routes_and_forgets_them() {
    if !Frr::is_installed() || !Bird::is_installed() {
        return;
    }
    let Some(site) = Site::new() else { return };
    let Site { here, there, directory, mut lan, mut wan, host, mut client, _router } = site;
    let (cut, (seen, sight)) = (AtomicBool::new(false), channel());
    thread::scope(|scope| {
        scope.spawn(|| carry(&mut wan, &host, &cut, &{ seen }));
        let _cable = Cable { cut: &cut };
        let calls = speaker(2, 1, "")
            + "protocol static steady { ipv4; route 198.51.100.0/24 blackhole; }\n"
            + &full_table();
        let _frr = Frr::start(&here, FRR_LISTENS);
        let bird = Bird::start(&there, directory.path(), "calls", &calls);
        has_route(&mut client, "198.51.100.0/24", Some(("kernel", "via")));
        let few = routes(&mut client);
        let packet = frame(OURS[0], [198, 51, 100, 9], 64, 46);
        let is_packet = |seen: &[u8]| seen[12..14] == [8, 0] && seen[30..34] == [198, 51, 100, 9];
        until("a packet takes the route", || {
            lan.senders[0].send(&[&packet]);
            thread::sleep(Duration::from_millis(5));
            sight.try_iter().any(|seen| is_packet(&seen)).then_some(())
        });
        thread::sleep(Duration::from_millis(100));
        sight.try_iter().for_each(drop);
        // A thousand packets a second, from before the first route until after the last.
        let mut sent = 0;
        let mut arrived = 0;
        let mut pass_until = |what: &str, is_there: &dyn Fn(usize) -> bool| {
            let began = Instant::now();
            while !is_there(routes(&mut client)) {
                assert!(began.elapsed() < PATIENCE_WITH_ALL, "never came to that: {what}");
                for _ in 0..100 {
                    sent += lan.senders[0].send(&[&packet]);
                    thread::sleep(Duration::from_millis(1));
                }
                arrived += sight.try_iter().filter(|seen| is_packet(seen)).count();
            }
            eprintln!("{what}: {:.1} s", began.elapsed().as_secs_f64());
        };
        bird.control("enable everything");
        pass_until("a million routes are there", &|count| count == few + FULL);
        bird.control("disable everything");
        pass_until("they are gone", &|count| count == few);
        thread::sleep(Duration::from_millis(200));
        arrived += sight.try_iter().filter(|seen| is_packet(seen)).count();
        eprintln!("{sent} packets were sent meanwhile, and {} were lost", sent - arrived);
        assert_eq!(sent, arrived);
    });
}

/// Has a BIRD beyond the router tell routes by BGP to the daemon that `start` runs beside the router.
fn packets_take_the_routes_of<Daemon>(start: impl FnOnce(&Namespace, &Path) -> Daemon) {
    if !Bird::is_installed() {
        return;
    }
    let Some(site) = Site::new() else { return };
    let Site { here, there, directory, mut lan, mut wan, host, mut client, _router } = site;
    let (cut, (seen, sight)) = (AtomicBool::new(false), channel());
    thread::scope(|scope| {
        scope.spawn(|| carry(&mut wan, &host, &cut, &{ seen }));
        let _cable = Cable { cut: &cut };
        let calls = speaker(2, 1, "")
            + "protocol static steady { ipv4; route 198.51.100.0/24 blackhole; }
               protocol static fickle { ipv4; route 192.0.2.0/24 blackhole; }";
        let _ours = start(&here, directory.path());
        let theirs = Bird::start(&there, directory.path(), "calls", &calls);
        has_route(&mut client, "192.0.2.0/24", Some(("kernel", "via")));
        has_route(&mut client, "198.51.100.0/24", Some(("kernel", "via")));
        // What of packets to both, sent with this TTL, gets to the host until one to `awaited` does.
        let (fickle, steady) = ([192, 0, 2, 9], [198, 51, 100, 9]);
        let mut send = |ttl: u8, awaited: [u8; 4]| {
            let sent = [fickle, steady].map(|to| frame(OURS[0], to, ttl, 46));
            let mut got: Vec<Vec<u8>> = Vec::new();
            until("a packet takes a route", || {
                // The router may still have to ask who the gateway is.
                lan.senders[0].send(&[&sent[0], &sent[1]]);
                thread::sleep(Duration::from_millis(5));
                got.extend(sight.try_iter().filter(|seen| seen[12..14] == [8, 0] && seen[22] == ttl - 1));
                got.iter().any(|seen| seen[30..34] == awaited).then_some(())
            });
            got
        };
        let routed = send(64, fickle);
        assert!(routed.iter().all(|seen| seen[..6] == THEIRS[1].0 && seen[6..12] == OURS[1].0));
        theirs.control("disable fickle");
        has_route(&mut client, "192.0.2.0/24", None);
        has_route(&mut client, "198.51.100.0/24", Some(("kernel", "via")));
        assert!(send(60, steady).iter().all(|seen| seen[30..34] == steady));
        theirs.control("enable fickle");
        has_route(&mut client, "192.0.2.0/24", Some(("kernel", "via")));
        send(50, fickle);
    });
}
