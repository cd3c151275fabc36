//! What the kernel's tables hold, as a program that follows them hears of it.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};

use fastpath::kernel::{Change, Importer, Path, Watcher};
use fastpath::router::{Hop, Router};
use wire::MacAddress;

use crate::namespace::{Follower, Namespace, through};

/// Two links, `left` and `right`, each to an end that nobody looks at.
const LINKS: &str = "for link in left right; do
        ip link add $link type veth peer name far-$link
        ip link set far-$link up
        ip link set $link up
    done
    ip address add 10.0.1.1/24 dev left
    ip address add 10.0.2.1/24 dev right
    ip address add 2001:db8:1::1/64 dev left nodad
    ip address add 2001:db8:2::1/64 dev right nodad";

#[test]
fn routes_of_both_families_come_change_and_go() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.run(LINKS);
    namespace.run("ip route add 192.0.2.0/24 via 10.0.1.2");
    let (left, right) = (namespace.index("left"), namespace.index("right"));
    let mut follower = namespace.follow();
    // What was there before.
    assert_eq!(follower.known.route("192.0.2.0/24"), through(&[(left, "10.0.1.2", 1)]).as_ref());
    assert_eq!(follower.known.route("10.0.1.0/24"), through(&[(left, "", 1)]).as_ref());
    assert_eq!(follower.known.route("2001:db8:1::/64"), through(&[(left, "", 1)]).as_ref());
    let own: IpAddr = "10.0.2.1".parse().unwrap();
    assert!(follower.known.addresses.contains(&(right, own, 24)));

    for (family, net, gateways) in [
        ("-4", "198.51.100.0/24", ["10.0.1.2", "10.0.1.3", "10.0.2.2"]),
        ("-6", "2001:db8:9::/48", ["2001:db8:1::2", "2001:db8:1::3", "2001:db8:2::2"]),
    ] {
        let [first, second, third] = gateways;
        let mut check = |script: String, path: Option<Path>| {
            namespace.run(&script);
            follower.until_route(net, path);
        };
        let ip = format!("ip {family} route");
        check(format!("{ip} add {net} via {first} metric 50"), through(&[(left, first, 1)]));
        check(format!("{ip} replace {net} via {second} metric 50"), through(&[(left, second, 1)]));
        check(format!("{ip} add {net} via {third} metric 20"), through(&[(right, third, 1)]));
        check(format!("{ip} del {net} via {third} metric 20"), through(&[(left, second, 1)]));
        check(format!("{ip} del {net} metric 50"), None);
        let both = format!("{ip} add {net} nexthop via {first} weight 3 nexthop via {third} weight 5");
        check(both, through(&[(left, first, 3), (right, third, 5)]));
        check(format!("{ip} replace {net} via {first}"), through(&[(left, first, 1)]));
        check(format!("{ip} flush {net}"), None);
        check(format!("{ip} add blackhole {net}"), Some(Path::Blackhole));
        check(format!("{ip} replace unreachable {net}"), Some(Path::Unreachable));
        check(format!("{ip} replace prohibit {net}"), Some(Path::Prohibit));
        check(format!("{ip} flush {net}"), None);
        // Of other tables nothing is heard; then something is, so that this would have come before.
        namespace.run(&format!("{ip} add {net} via {first} table 100"));
        check(format!("{ip} add {net} dev right"), through(&[(right, "", 1)]));
        check(format!("{ip} del {net}"), None);
    }
    // IPv6 adds to routes, and takes from them.
    let net = "2001:db8:9::/48";
    let [first, second, third] = ["2001:db8:1::2", "2001:db8:1::3", "2001:db8:2::2"];
    namespace.run(&format!("ip -6 route add {net} via {first}; ip -6 route append {net} via {third}"));
    follower.until_route(net, through(&[(left, first, 1), (right, third, 1)]));
    namespace.run(&format!("ip -6 route append {net} via {second}; ip -6 route del {net} via {first}"));
    follower.until_route(net, through(&[(left, second, 1), (right, third, 1)]));
    assert_eq!(follower.watcher.health().unreadable, 0);
}

#[test]
fn what_the_kernel_does_not_tell_is_found() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.run(LINKS);
    let (left, right) = (namespace.index("left"), namespace.index("right"));
    let mut follower = namespace.follow();
    let (net, single, object) = ("198.51.100.0/24", "192.0.2.0/24", "203.0.113.0/24");
    namespace.run(&format!("ip route add {net} nexthop via 10.0.1.2 nexthop via 10.0.2.2"));
    namespace.run(&format!("ip route add {single} via 10.0.2.2"));
    let both = through(&[(left, "10.0.1.2", 1), (right, "10.0.2.2", 1)]);
    follower.until_route(net, both.clone());
    follower.until_route(single, through(&[(right, "10.0.2.2", 1)]));

    // With an interface go routes, and next hops of others. The latter return with it.
    namespace.run("ip link set right down");
    follower.until_route(net, through(&[(left, "10.0.1.2", 1)]));
    follower.until_route(single, None);
    namespace.run("ip link set right up");
    follower.until_route(net, both);

    // Nexthop objects lead where they say, and routes follow what happens to them.
    namespace.run(&format!(
        "ip nexthop add id 1 via 10.0.1.2 dev left
         ip nexthop add id 2 via 10.0.2.2 dev right
         ip nexthop add id 3 group 1,2/2,4
         ip route add {object} nhid 3"
    ));
    follower.until_route(object, through(&[(left, "10.0.1.2", 2), (right, "10.0.2.2", 4)]));
    namespace.run("ip nexthop replace id 1 via 10.0.1.9 dev left");
    follower.until_route(object, through(&[(left, "10.0.1.9", 2), (right, "10.0.2.2", 4)]));
    namespace.run("ip nexthop del id 2");
    follower.until("one is left", |known| known.route(object).is_some_and(|path| path.hops().len() == 1));
    namespace.run("ip nexthop del id 3");
    follower.until_route(object, None);
}

#[test]
fn nexthop_objects_without_what_they_lead_to_are_refused() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.run("echo 0 > /proc/sys/net/ipv4/nexthop_compat_mode");
    let error = namespace.inside(Watcher::start).err().unwrap().to_string();
    assert!(error.contains("nexthop_compat_mode to 1"), "{error}");
}

const MANY: u32 = 10_000;

/// Adds or deletes many networks of 256 addresses, in turns by `left` and by `right`.
fn batch(namespace: &Namespace, act: &str) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for number in 0..MANY {
        let net = Ipv4Addr::from(100 << 24 | number << 8);
        writeln!(file, "route {act} {net}/24 via 10.0.{}.2", 1 + number % 2).unwrap();
    }
    namespace.run(&format!("ip -batch {}", file.path().display()));
}

#[test]
fn many_routes_at_once_reach_a_router() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.run(LINKS);
    let mut follower = namespace.follow();
    let others = follower.known.routes.len();
    batch(&namespace, "add");
    follower.until("all are there", |known| known.routes.len() == others + MANY as usize);

    let (mut router, mut importer) = (Router::new().unwrap(), Importer::default());
    for (name, mac) in [("left", 1), ("right", 2)] {
        let number = router.add_device(name, MacAddress([2, 0, 0, 0, 0, mac]), 1500).unwrap();
        router.add_address(number, [10, 0, mac, 1].into(), 24).unwrap();
        importer.join(namespace.index(name), number);
    }
    for change in follower.known.changes4.drain(..) {
        importer.apply(&Change::Route4(change), &mut router).unwrap();
    }
    let mut reader = router.ip4();
    for number in 0..MANY {
        let index = reader.pass().lookup(100 << 24 | number << 8 | 7, 0).index();
        let side = (number % 2) as u8;
        let hop = Hop::Neighbour(side.into(), [10, 0, 1 + side, 2].into());
        assert_eq!(router.forwarding().adjacencies[index as usize].hop, hop);
    }
}

#[test]
fn what_came_too_fast_is_read_again() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.run(LINKS);
    let mut follower = Follower::new(namespace.inside(|| Watcher::with_backlog(64 << 10)).unwrap());
    let others = follower.known.routes.len();
    // Nobody takes the changes. More than can wait are lost, the last deletions among them.
    ["add", "del", "add", "del"].iter().for_each(|act| batch(&namespace, act));
    follower.until("the tables were read again", |known| known.synchronised > 1);
    follower.until("none is left", |known| known.routes.len() == others);
    let health = follower.watcher.health();
    assert!(health.overruns > 0 && health.readings > 1 && health.unreadable == 0, "{health:?}");
}
