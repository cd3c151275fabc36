//! The router between interfaces of the kernel, by AF_XDP: hosts behind them reach each other through it, no
//! packet vanishes, and the interfaces are the kernel's alone again when it has ended.

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use fastpath::client::Client;
use fastpath::control::{Answer, Request, Show};
use fastpath::show::hardware::Link;
use nix::sys::signal::Signal;
use xsk::{Interface, Program, Wanted};

use crate::process::until;
use crate::site::{ENDS, Site, exchange, frame, poster, refusal_of, udp};

#[test]
fn hosts_reach_each_other_through_it_and_no_packet_vanishes() {
    let Some(site) = Site::new() else { return };
    let router = site.start(&site.write(""));
    site.ping();
    // Between two passes all numbers are of one moment.
    until("what arrived was sent, dropped or punted", || {
        let rows = Client::connect(&site.socket()).unwrap().interfaces().unwrap().interfaces;
        let sum = |what: fn(&fastpath::show::interfaces::Row) -> u64| rows.iter().map(what).sum::<u64>();
        assert!(rows.iter().all(|row| row.rx_packets > 0 && row.tx_packets > 0), "{rows:?}");
        let gone = sum(|row| row.tx_packets) + sum(|row| row.drops) + sum(|row| row.punts);
        (sum(|row| row.rx_packets) == gone).then_some(())
    });
    for (device, end) in site.hardware().devices.iter().zip(ENDS) {
        assert_eq!(device.driver, format!("af_xdp at {end}"));
        assert!(device.lost.is_some_and(|lost| lost.errors == 0), "{device:?}");
        // A veth lends no frames.
        let copying = device.copying.as_ref().map(ToString::to_string);
        assert!(copying.is_some_and(|copying| copying.contains("copy")), "{device:?}");
    }
    // A worker goes before those who bring it frames, as far as the kernel lets it.
    let threads = match Client::connect(&site.socket()).unwrap().ask(&Request::Show(Show::Threads)).unwrap() {
        Answer::Threads(threads) => threads.threads,
        other => panic!("{other:?}"),
    };
    let policies: Vec<_> =
        threads.iter().filter(|row| row.kind == "worker").map(|row| &*row.policy).collect();
    let has_precedence = |policy: &&str| ["fifo (priority 1)", "other (nice -20)"].contains(policy);
    assert!(!policies.is_empty() && policies.iter().all(has_precedence), "{policies:?}");
    let link = |number: usize| site.hardware().devices[number].link.clone();
    until("the links are up", || (link(0) == Link::Up && link(1) == Link::Up).then_some(()));
    // What the kernel knows of a cable, the router tells.
    site.hosts[1].run("ip link set host down");
    until("the link is down", || matches!(link(1), Link::Down(why) if why.contains("no peer")).then_some(()));

    router.stop(Signal::SIGTERM);
    assert!(!site.programs().contains("xdp"), "{}", site.programs());
    assert!(!fs::exists(site.socket()).unwrap());
}

/// Answers to a socket of UDP come while its flow has a state, nobody reaches it otherwise, and so it is with TCP. Where
/// there are two workers, both directions come to one.
#[test]
fn flows_that_began_at_one_end_are_answered_and_none_begin_at_the_other() {
    let Some(site) = Site::new() else { return };
    for host in &site.hosts {
        // Nobody here computes the sums that a card would.
        host.run("ethtool -K host tx off >/dev/null");
    }
    let file = site.write("rss = true");
    let text = fs::read_to_string(&file).unwrap().replace(
        "af_xdp:right\"",
        "af_xdp:right\"\nrss = true\naccess-list-out = \"out\"\naccess-list-in = \"in\"",
    );
    let lists = "[states]\nudp = 1\n[[access-list]]\nname = \"in\"\n[[access-list]]\nname = \"out\"\n\
                 rules = [{ action = \"keep-state\" }]\n";
    fs::write(&file, text + lists).unwrap();
    let router = site.start(&file);
    site.ping();
    for [within, beyond] in [["10.0.0.2", "10.0.1.2"], ["2001:db8:0::2", "2001:db8:1::2"]] {
        let [within, beyond]: [IpAddr; 2] = [within.parse().unwrap(), beyond.parse().unwrap()];
        let [client, server] =
            [(0, within), (1, beyond)].map(|(host, address)| udp(&site.hosts[host], address));
        let (to_client, to_server) = (client.local_addr().unwrap(), server.local_addr().unwrap());
        let denied = denied(&site);
        server.send_to(b"unasked", to_client).unwrap();
        until("it is denied", || (self::denied(&site) > denied).then_some(()));
        exchange(&client, &server, to_server, b"request");
        exchange(&server, &client, to_client, b"answer");
        std::thread::sleep(Duration::from_millis(1200));
        let denied = self::denied(&site);
        server.send_to(b"too late", to_client).unwrap();
        until("it is denied", || (self::denied(&site) > denied).then_some(()));
        exchange(&client, &server, to_server, b"again");
        exchange(&server, &client, to_client, b"answer");

        let [outer, inner] = [(1, beyond), (0, within)]
            .map(|(host, address)| site.hosts[host].inside(|| TcpListener::bind((address, 0)).unwrap()));
        let [to_outer, to_inner] = [&outer, &inner].map(|listener| listener.local_addr().unwrap());
        let connect = |host: usize, to: SocketAddr, patience| {
            site.hosts[host].inside(|| TcpStream::connect_timeout(&to, Duration::from_millis(patience)))
        };
        let mut out = connect(0, to_outer, 5000).unwrap();
        let (mut accepted, _) = outer.accept().unwrap();
        let mut said = [0; 4];
        out.write_all(b"ping").unwrap();
        accepted.read_exact(&mut said).unwrap();
        accepted.write_all(&said).unwrap();
        out.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"ping");
        assert!(connect(1, to_inner, 100).is_err(), "a connection from beyond");
    }
    until("both connections are closing", || {
        let flows = match Client::connect(&site.socket()).unwrap().ask(&Request::Show(Show::Flows)).unwrap() {
            Answer::Flows(flows) => flows,
            other => panic!("{other:?}"),
        };
        assert_eq!(flows.workers.iter().map(|worker| worker.tcp).sum::<u64>(), 2, "{flows}");
        let connections = flows.flows.iter().filter(|flow| flow.protocol == "tcp");
        let phases: Vec<_> = connections.map(|flow| (&*flow.interface, &*flow.phase)).collect();
        (phases == [("right", "closing"); 2]).then_some(())
    });
    router.stop(Signal::SIGTERM);
}

/// How many packets the list of what arrives has denied.
fn denied(site: &Site) -> u64 {
    let rows = Client::connect(&site.socket()).unwrap().errors().unwrap().errors;
    rows.iter()
        .filter(|row| row.reason.ends_with("denied by the input access list"))
        .map(|row| row.count)
        .sum()
}

#[test]
fn the_longest_packets_pass_too() {
    let Some(site) = Site::new() else { return };
    // Both ends of both cables, and the router, of which only the first interface is told otherwise.
    let file = site.write("mtu = 3394");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("af_xdp:right\"", "af_xdp:right\"\nmtu = 3394")).unwrap();
    for (host, end) in site.hosts.iter().zip(ENDS) {
        host.run("ip link set host mtu 3394");
        site.router.run(&format!("ip link set {end} mtu 3394"));
    }
    let router = site.start(&file);
    let ping = "ping -c 1 -W 0.2 -M do -s 3366 10.0.1.2 || true";
    until("an answer of 3394 bytes", || site.hosts[0].run(ping).contains("bytes from").then_some(()));
    router.stop(Signal::SIGTERM);
}

#[test]
fn one_that_was_killed_leaves_nothing_in_the_next_one_s_way() {
    let Some(site) = Site::new() else { return };
    let file = site.write("");
    let router = site.start(&file);
    site.ping();
    assert!(site.programs().contains("xdp"), "{}", site.programs());
    drop(router);
    until("no program is left", || (!site.programs().contains("xdp")).then_some(()));
    let router = site.start(&file);
    site.ping();
    router.stop(Signal::SIGTERM);
    assert!(!site.programs().contains("xdp"), "{}", site.programs());
}

#[test]
fn what_an_interface_cannot_be_is_refused_with_the_remedy() {
    let Some(site) = Site::new() else { return };
    let file = site.write("");
    let text = fs::read_to_string(&file).unwrap();
    for (from, to, clue) in [
        ("af_xdp:left", "af_xdp:none-such", "ip link lists"),
        ("af_xdp:left", "af_xdp:left,queues=2", "ethtool -L left combined 2"),
        ("af_xdp:right", "af_xdp:left", "left has the interface left of the kernel already"),
        ("af_xdp:left\"", "af_xdp:left\"\nmtu = 9000", "up to 3818 bytes"),
    ] {
        assert!(text.contains(from));
        fs::write(&file, text.replacen(from, to, 1)).unwrap();
        let refusal = site.refusal(&file);
        assert!(refusal.contains(clue), "{to}: {refusal}");
    }
    if cfg!(feature = "dpdk") {
        for (device, clue) in [
            ("dpdk:net_nil0", "net_nil0"),
            ("dpdk:left", "write a card's PCI address"),
            ("dpdk:ffff:ff:1f.7", ""),
        ] {
            fs::write(&file, text.replacen("af_xdp:left", device, 1)).unwrap();
            let refusal = site.refusal(&file);
            assert!(refusal.contains(clue), "{device}: {refusal}");
        }
    }
    fs::write(&file, &text).unwrap();

    site.router.run("ip link set right down");
    let refusal = site.refusal(&file);
    assert!(refusal.contains("interface right is down") && refusal.contains("ip link set dev right up"));
    site.router.run("ip link set right up");
    assert!(!site.programs().contains("xdp"), "{}", site.programs());

    // Somebody else's program stays where it is.
    let theirs = site
        .router
        .inside(|| Program::attach(&Interface::find("right").unwrap(), Wanted::Everything, 1514).unwrap());
    let refusal = site.refusal(&file);
    assert!(refusal.contains("right has another XDP program") && refusal.contains("xdp off"), "{refusal}");
    assert!(theirs.is_attached());
    drop(theirs);
    // So does their socket.
    let theirs =
        site.router.inside(|| xsk::open(&Interface::find("right").unwrap(), 0, &xsk::Config::new()).unwrap());
    let refusal = site.refusal(&file);
    assert!(refusal.contains("queue 0 of interface right is busy"), "{refusal}");
    drop(theirs);

    let child = site.router.inside(|| {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-all", "--inh-caps=-all", env!("CARGO_BIN_EXE_fastpath")]);
        command.arg(&file).stderr(Stdio::piped()).spawn().unwrap()
    });
    let refusal = refusal_of(child);
    assert!(refusal.contains("not permitted: run as root"), "{refusal}");
    assert!(!site.programs().contains("xdp"), "{}", site.programs());
}

/// The numbers of `show interfaces` and `show hardware` that frames are counted by, and what the hosts' interfaces
/// say.
#[derive(Debug)]
struct Counted {
    received: u64,
    sent: u64,
    dropped: u64,
    punted: u64,
    /// At the first interface, before a worker had them.
    missed: u64,
    /// At the second interface, after a worker had sent them.
    unsent: u64,
    /// What `show errors` says of all.
    reasons: u64,
    /// What the first host's interface has sent.
    left: u64,
    /// What the second host's interface has received.
    arrived: u64,
}

impl Site {
    fn counted(&self) -> Counted {
        let mut client = Client::connect(&self.socket()).unwrap();
        let rows = client.interfaces().unwrap().interfaces;
        let errors = match client.ask(&Request::Show(Show::Errors)).unwrap() {
            Answer::Errors(errors) => errors.errors,
            other => panic!("{other:?}"),
        };
        let lost = |number: usize| self.hardware().devices[number].lost.unwrap();
        let column = |host: usize, number: usize| -> u64 {
            let line = self.hosts[host].run("grep host: /proc/net/dev");
            line.split_whitespace().nth(number).unwrap().parse().unwrap()
        };
        Counted {
            received: rows.iter().map(|row| row.rx_packets).sum(),
            sent: rows.iter().map(|row| row.tx_packets).sum(),
            dropped: rows.iter().map(|row| row.drops).sum(),
            punted: rows.iter().map(|row| row.punts).sum(),
            missed: lost(0).missed,
            unsent: lost(1).unsent,
            reasons: errors.iter().map(|row| row.count).sum(),
            left: column(0, 10),
            arrived: column(1, 2),
        }
    }
}

/// A host that sends as fast as it can, for as long as the router does not keep up, costs the router frames; each of
/// them is counted where it was lost.
#[test]
fn under_overload_each_frame_is_forwarded_or_counted_where_it_was_lost() {
    let Some(site) = Site::new() else { return };
    for namespace in site.hosts.iter().chain([&site.router]) {
        // Nothing but what is sent here arrives.
        namespace.run("echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6");
    }
    let routes = "[[route]]\nprefix = \"48.0.0.0/8\"\nvia = [{ gateway = \"10.0.1.2\" }]\n\
                  [[route]]\nprefix = \"49.0.0.0/8\"\ndrop = true\n";
    let file = site.write("mac = \"02:00:00:00:00:10\"");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text + routes).unwrap();
    let router = site.start(&file);
    let before = site.counted();

    // Every eighth goes nowhere.
    let frames: Vec<_> =
        (0..64).map(|number| frame([if number % 8 == 0 { 49 } else { 48 }, 0, 0, 1])).collect();
    let mut poster = poster(&site.hosts[0]);
    for _ in 0..5000 {
        poster.post(frames.iter().map(Vec::as_slice));
    }
    let after = until("no frame is on its way any more", || {
        let now = site.counted();
        let all = now.received + now.missed - before.received - before.missed;
        let is_done = now.received == now.sent + now.dropped + now.punted;
        (is_done && all > 10_000 && all == now.left - before.left).then_some(now)
    });
    let (dropped, sent) = (after.dropped - before.dropped, after.sent - before.sent);
    assert!(dropped > 0 && sent > 0, "{after:?}");
    assert_eq!(dropped, after.reasons - before.reasons, "each has its reason: {after:?}");
    let unsent = after.unsent - before.unsent;
    assert_eq!(sent - unsent, after.arrived - before.arrived, "{before:?} {after:?}");
    // It is as it was.
    site.ping4();
    router.stop(Signal::SIGTERM);
}

#[test]
fn an_interface_that_goes_away_is_told_and_ends_nothing() {
    let Some(site) = Site::new() else { return };
    let mut router = site.start(&site.write(""));
    site.ping();
    site.router.run("ip link del left");
    let gone = |link: &Link| matches!(link, Link::Down(why) if why.contains("lost the interface left"));
    until("it is told", || gone(&site.hardware().devices[0].link).then_some(()));
    until("it is said", || router.line().contains("lost the interface left").then_some(()));
    // What is for it is dropped, and nobody waits.
    site.hosts[1].run("ping -c 3 -i 0.05 -W 0.1 10.0.0.2 || true");
    site.hosts[1].run("ping -c 1 -W 5 10.0.1.1");
    router.stop(Signal::SIGTERM);
    assert!(!site.programs().contains("xdp"), "{}", site.programs());
}
