//! Packets to known destinations take shortcuts in the kernel: they look as a worker sends them, are counted, and follow
//! each change at once; whatever is not plain forwarding comes to a worker.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::path::PathBuf;

use fastpath::client::Client;
use fastpath::control::{Answer, Request, Set, Show, To};
use fastpath::show::hardware::Shortcuts;
use fastpath::show::interfaces::Row;
use nix::sys::signal::Signal;

use crate::process::until;
use crate::site::{Site, exchange, frame, poster, udp};

/// What changes something.
type Change<'a> = &'a dyn Fn();

/// Both ends of each conversation, by kind of address.
const ENDS_OF: [[&str; 2]; 2] = [["10.0.0.2", "10.0.1.2"], ["2001:db8:0::2", "2001:db8:1::2"]];

impl Site {
    /// A configuration with shortcuts between both interfaces; hosts at whose interfaces the kernel can have some.
    fn with_shortcuts(&self) -> PathBuf {
        for host in &self.hosts {
            // Nobody here computes the sums that a card would.
            host.run("ethtool -K host gro on tx off >/dev/null");
        }
        let file = self.write("mac = \"02:00:00:00:00:10\"");
        let text = fs::read_to_string(&file).unwrap();
        let text = ["left", "right"].into_iter().fold(text, |text, end| {
            text.replace(&format!("af_xdp:{end}\""), &format!("af_xdp:{end},shortcuts=true\""))
        });
        fs::write(&file, text).unwrap();
        file
    }

    fn ask(&self, request: &Request) -> Answer {
        Client::connect(&self.socket()).unwrap().ask(request).unwrap()
    }

    fn rows(&self) -> Vec<Row> {
        Client::connect(&self.socket()).unwrap().interfaces().unwrap().interfaces
    }

    /// How many packets workers had at their nodes of a name that ends so.
    fn at_nodes(&self, name: &str) -> u64 {
        let threads = Client::connect(&self.socket()).unwrap().runtime().unwrap().threads;
        let nodes = threads.iter().flat_map(|thread| &thread.nodes);
        nodes.filter(|node| node.name.ends_with(name)).map(|node| node.vectors).sum()
    }

    /// Waits until the kernel can have shortcuts at both interfaces.
    fn until_able(&self) {
        until("both interfaces can have shortcuts", || {
            let devices = self.hardware().devices;
            devices.iter().all(|device| device.shortcuts == Some(Shortcuts::On)).then_some(())
        });
    }

    /// A socket at each end of a conversation.
    fn conversation(&self, [one, other]: [&str; 2]) -> [UdpSocket; 2] {
        [(0, one), (1, other)]
            .map(|(host, address)| udp(&self.hosts[host], address.parse::<IpAddr>().unwrap()))
    }

    /// Has packets both ways until none comes to a worker.
    fn until_short(&self, [one, other]: &[UdpSocket; 2]) {
        until("no worker has their packets any more", || {
            let before = self.at_nodes("rewrite");
            for _ in 0..8 {
                exchange(one, other, other.local_addr().unwrap(), b"there");
                exchange(other, one, one.local_addr().unwrap(), b"and back");
            }
            (self.at_nodes("rewrite") == before).then_some(())
        });
    }
}

#[test]
fn known_destinations_are_reached_without_a_worker_and_all_is_counted() {
    let Some(site) = Site::new() else { return };
    let router = site.start(&site.with_shortcuts());
    site.until_able();
    for ends in ENDS_OF {
        let conversation = site.conversation(ends);
        site.until_short(&conversation);
        // One hop less each way; an answer begins with 64.
        let said = site.hosts[0].run(&format!("ping -c 2 -i 0.05 -W 2 {}", ends[1]));
        assert!(said.contains("ttl=63"), "{said}");
        // A packet's bytes and its link header.
        let link_and_ip = 14 + if ends[0].contains(':') { 40 } else { 20 };
        let before = site.rows();
        let [one, other] = &conversation;
        exchange(one, other, other.local_addr().unwrap(), &[7; 60]);
        let after = site.rows();
        let grown = |what: fn(&Row) -> u64, at: usize| what(&after[at]) - what(&before[at]);
        assert_eq!([grown(|row| row.rx_packets, 0), grown(|row| row.tx_packets, 1)], [1, 1], "{after:?}");
        let bytes = link_and_ip + 8 + 60;
        assert_eq!([grown(|row| row.rx_bytes, 0), grown(|row| row.tx_bytes, 1)], [bytes, bytes], "{after:?}");
    }
    until("what arrived was sent, dropped or punted", || {
        let sum = |what: fn(&Row) -> u64| site.rows().iter().map(what).sum::<u64>();
        (sum(|row| row.rx_packets) == sum(|row| row.tx_packets + row.drops + row.punts)).then_some(())
    });
    for [_, beyond] in ENDS_OF {
        // The last hop is the router's to tell of.
        let said = site.hosts[0].run(&format!("ping -c 1 -t 1 -W 2 {beyond} || true"));
        assert!(said.contains("exceeded"), "{said}");
    }
    let Answer::Metrics(metrics) = site.ask(&Request::Show(Show::Metrics)) else { panic!("no metrics") };
    assert!(metrics.text.contains("worker=\"shortcuts\""), "{}", metrics.text);
    router.stop(Signal::SIGTERM);
    assert!(!site.programs().contains("xdp"), "{}", site.programs());
}

/// Each frame is like one that takes a shortcut but for one thing, for which a worker has to look at it.
#[test]
fn what_is_not_plain_forwarding_comes_to_a_worker() {
    let Some(site) = Site::new() else { return };
    for namespace in site.hosts.iter().chain([&site.router]) {
        // Nothing but what is sent here arrives.
        namespace.run("echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6");
    }
    site.hosts[0].run("ip link set host mtu 2000");
    site.router.run("ip link set left mtu 2000");
    let router = site.start(&site.with_shortcuts());
    site.until_able();
    let mut poster = poster(&site.hosts[0]);
    let mut send = |frame: &[u8]| {
        until("it is sent", || (poster.post([frame]).taken == 1).then_some(()));
    };
    let arrived = || site.rows()[0].rx_packets;
    // How many more workers had when `frame` had arrived.
    let mut had = |frame: &[u8]| {
        let (before, workers) = (arrived(), site.at_nodes("ethernet-input"));
        send(frame);
        until("it has arrived", || (arrived() > before).then_some(()));
        site.at_nodes("ethernet-input") - workers
    };
    let plain = frame([10, 0, 1, 2]);
    until("it needs no worker", || (had(&plain) == 0).then_some(()));

    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = plain.clone();
        change(&mut frame);
        frame
    };
    // The sum of the header as it should be.
    let summed = |change: &dyn Fn(&mut Vec<u8>)| {
        changed(&|frame: &mut Vec<u8>| {
            change(frame);
            let header = 4 * usize::from(frame[14] & 0xf);
            frame[24..26].fill(0);
            let sum = wire::checksum::Sum::default().bytes(&frame[14..14 + header]).checksum();
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        })
    };
    assert_eq!(had(&summed(&|_| {})), 0, "the sum is computed as it should be");
    // Shorter than its frame, which is as short as frames are.
    assert_eq!(had(&summed(&|frame| frame[17] = 30)), 0, "a frame that is filled up");
    let long = |frame: &mut Vec<u8>, packet: u16| {
        frame.resize(14 + usize::from(packet), 0xab);
        frame[16..18].copy_from_slice(&packet.to_be_bytes());
    };
    assert_eq!(had(&summed(&|frame| long(frame, 1500))), 0, "as long as the MTU");
    // Three that do nothing, and their end.
    let options = |frame: &mut Vec<u8>| {
        frame[14] = 0x46;
        frame[34..38].copy_from_slice(&[1, 1, 1, 0]);
    };
    for (what, frame) in [
        ("longer than the MTU", summed(&|frame| long(frame, 1501))),
        ("at the end of its life", summed(&|frame| frame[22] = 1)),
        ("with a wrong sum", changed(&|frame| frame[24] ^= 1)),
        ("with options", summed(&options)),
        ("of another version", summed(&|frame| frame[14] = 0x55)),
        ("longer than its frame", summed(&|frame| frame[17] = 47)),
        ("shorter than its frame", summed(&|frame| frame.resize(61, 0))),
        ("from loopback", summed(&|frame| frame[26] = 127)),
        ("from a group", summed(&|frame| frame[26] = 224)),
        ("from this network", summed(&|frame| frame[26] = 0)),
        ("to another station", changed(&|frame| frame[5] ^= 1)),
        ("to all stations", changed(&|frame| frame[..6].fill(0xff))),
        ("with a tag", changed(&|frame| drop(frame.splice(12..12, [0x81, 0, 0, 7])))),
        ("of another kind", changed(&|frame| frame[12] = 0x88)),
        ("to another destination", frame([10, 0, 1, 3])),
        ("shorter than a header", plain[..30].to_vec()),
    ] {
        assert_eq!(had(&frame), 1, "{what}");
        assert_eq!(had(&plain), 0, "the plain one after one {what}");
    }
    router.stop(Signal::SIGTERM);
}

#[test]
fn a_change_is_followed_by_the_next_packet() {
    let Some(site) = Site::new() else { return };
    let router = site.start(&site.with_shortcuts());
    site.until_able();
    let conversation = site.conversation(ENDS_OF[0]);
    let [one, other] = &conversation;
    let to = other.local_addr().unwrap();
    let set = |set: Set| assert!(matches!(site.ask(&Request::Set(set)), Answer::Done(_)));
    let route = |to: To| set(Set::Route { prefix: "10.0.1.2/32".into(), to });
    let mac = |last: u8| {
        let (interface, address) = ("right".into(), "10.0.1.2".into());
        set(Set::Neighbour { interface, address, mac: Some(format!("02:00:00:00:00:{last:02x}")) });
    };
    let up = |up: bool| set(Set::Interface { name: "right".into(), up: Some(up), mtu: None });
    let changes: [(&str, Change, Change); 3] = [
        ("a route that discards", &|| route(To::Drop), &|| route(To::Nothing)),
        ("another MAC address", &|| mac(0x99), &|| mac(0x21)),
        ("an interface that is down", &|| up(false), &|| up(true)),
    ];
    for (what, change, undo) in changes {
        site.until_short(&conversation);
        let forwarded = site.rows()[1].tx_packets;
        change();
        // In its order before the next one, if it arrived.
        one.send_to(b"not to arrive", to).unwrap();
        let expected = u64::from(what.contains("MAC"));
        until(what, || (site.rows()[1].tx_packets - forwarded == expected).then_some(()));
        undo();
        exchange(one, other, to, b"as before");
    }
    // Who wants to see packets sees all of them.
    site.until_short(&conversation);
    site.ask(&Request::Trace(1));
    exchange(one, other, to, b"traced");
    until("it is traced", || match site.ask(&Request::Show(Show::Trace)) {
        Answer::Trace(trace) => (trace.packets.len() == 1).then_some(()),
        answer => panic!("{answer:?}"),
    });
    site.until_short(&conversation);
    router.stop(Signal::SIGTERM);
}

/// What the kernel would drop is sent by a worker.
#[test]
fn an_interface_that_takes_no_frames_of_programs_is_sent_to_by_workers() {
    let Some(site) = Site::new() else { return };
    let file = site.with_shortcuts();
    let gro = |state: &str| site.hosts[1].run(&format!("ethtool -K host gro {state}"));
    gro("off");
    let router = site.start(&file);
    let shortcuts = || site.hardware().devices[1].shortcuts.clone();
    assert!(matches!(shortcuts(), Some(Shortcuts::Off(why)) if why.contains("GRO")), "{:?}", shortcuts());
    let conversation = site.conversation(ENDS_OF[0]);
    let [one, other] = &conversation;
    exchange(one, other, other.local_addr().unwrap(), b"by a worker");
    gro("on");
    site.until_able();
    site.until_short(&conversation);
    gro("off");
    until("no shortcut leads there", || (shortcuts() != Some(Shortcuts::On)).then_some(()));
    for _ in 0..100 {
        exchange(one, other, other.local_addr().unwrap(), b"by a worker again");
    }
    router.stop(Signal::SIGTERM);
}
