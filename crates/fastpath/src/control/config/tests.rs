use std::net::IpAddr;

use super::*;
use crate::control::protocol::{self, Set, To};

const HEAD: &str = "[workers]\ncores = [1]\n";
/// A router with a bit of everything.
const WHOLE: &str = r#"
[control]
socket = "/run/one.sock"

[workers]
cores = [1, 3]
idle = "sleep"

[[interface]]
name = "lan"
device = "null"
mac = "02:00:00:00:00:10"
mtu = 9000
addresses = ["10.0.0.1/24", "2001:db8::1/64"]

[[interface.vlan]]
id = 7
addresses = ["10.7.0.1/24"]
up = false

[[interface]]
name = "wan"
device = "null"
addresses = ["10.1.0.1/24"]

[[interface]]
name = "a"
device = "null"
cross-connect = "b"

[[interface]]
name = "b"
device = "null"
cross-connect = "a"

[[interface]]
name = "c"
device = "null"
bridge = "office"

[[route]]
prefix = "0.0.0.0/0"
via = [{ gateway = "10.1.0.2", weight = 3 }, { gateway = "10.7.0.2" }]

[[route]]
prefix = "192.168.0.0/16"
drop = true

[[neighbour]]
interface = "wan"
address = "10.1.0.2"
mac = "02:00:00:00:00:20"
"#;

fn parse(text: &str) -> Result<Config, Error> {
    Config::parse("x.toml", text)
}

/// What is wrong, line by line.
fn refused(text: &str) -> Vec<(usize, String)> {
    let problems = parse(text).unwrap_err().problems;
    problems.into_iter().map(|problem| (problem.line, problem.reason)).collect()
}

/// An interface of this name, with more keys.
fn interface(name: &str, more: &str) -> String {
    format!("[[interface]]\nname = \"{name}\"\ndevice = \"null\"\n{more}\n")
}

#[test]
fn what_is_written_is_what_the_router_is_to_be() {
    let config = parse(WHOLE).unwrap();
    assert_eq!(
        (config.socket.to_str(), config.workers.cores.as_slice()),
        (Some("/run/one.sock"), &[1, 3][..])
    );
    assert_eq!((config.workers.idle, config.workers.precedence), (Idle::Sleep, Precedence::Ordinary));
    let names: Vec<&str> = config.interfaces.iter().map(|interface| interface.name.as_str()).collect();
    assert_eq!(names, ["lan", "lan.7", "wan", "a", "b", "c"]);
    let [lan, tagged, wan, a, _, c] = &config.interfaces[..] else { panic!() };
    assert_eq!((lan.mtu, tagged.mtu, wan.mtu), (9000, 9000, 1500));
    assert_eq!((lan.up, tagged.up), (true, false));
    assert_eq!(tagged.attachment, Attachment::Vlan { parent: "lan".into(), id: 7 });
    assert_eq!(tagged.mac, lan.mac);
    assert!(wan.mac != a.mac && wan.mac.0[..2] == [0x02, 0xfe]);
    assert_eq!((&a.role, &c.role), (&Role::CrossConnect("b".into()), &Role::Bridge(0)));
    let hop = |gateway: [u8; 4], interface: &str, weight| Hop {
        gateway: IpAddr::from(gateway),
        interface: interface.into(),
        weight,
    };
    let hops = vec![hop([10, 1, 0, 2], "wan", 3), hop([10, 7, 0, 2], "lan.7", 1)];
    assert_eq!(config.routes.get("0.0.0.0/0".parse().unwrap()), Some(&Route::Via(hops)));
    assert_eq!(config.routes.get("192.168.0.0/16".parse().unwrap()), Some(&Route::Drop));
    assert_eq!(config.neighbours.len(), 1);
    assert_eq!(parse(HEAD).unwrap().socket.to_str(), Some(SOCKET));
    assert!(!config.routes_from_kernel && !lan.tap);
    let tapped = WHOLE.replace("id = 7", "id = 7\ntap = true");
    let config = parse(&format!("routes-from-kernel = true\n{tapped}")).unwrap();
    let tapped: Vec<bool> = config.interfaces.iter().map(|interface| interface.tap).collect();
    assert_eq!((config.routes_from_kernel, tapped), (true, vec![false, true, false, false, false, false]));
    let spread = parse(&WHOLE.replace("mtu = 9000", "mtu = 9000\nrss = true")).unwrap();
    let spread: Vec<bool> = spread.interfaces.iter().map(|interface| interface.rss).collect();
    assert_eq!(spread, [true, false, false, false, false, false], "VLANs go with their device");
}

#[test]
fn bridges_are_numbered_by_their_names_and_set_as_written() {
    let ports =
        format!("{HEAD}{}{}", interface("p", "bridge = \"west\""), interface("q", "bridge = \"east\""));
    let usual = parse(&ports).unwrap();
    let names: Vec<_> = usual.bridges.iter().map(|bridge| bridge.name.as_str()).collect();
    assert_eq!(names, ["east", "west"]);
    assert!(usual.bridges.iter().all(|bridge| bridge.settings == Settings::default()));
    let set = parse(&format!("{ports}[[bridge]]\nname = \"west\"\nageing = 60\nstations = 100\n")).unwrap();
    assert_eq!(set.interface("p").unwrap().role, Role::Bridge(1));
    let west = Bridge {
        name: "west".into(),
        settings: Settings { ageing: std::time::Duration::from_secs(60), stations: 100 },
    };
    assert_eq!((&set.bridges[0], &set.bridges[1]), (&usual.bridges[0], &west));
    assert_eq!(difference(&usual, &set).unwrap(), [Change::Bridge(1, west)]);
    for (entry, clue) in [
        ("name = \"north\"", "no interface is a port of the bridge 'north'"),
        ("name = \"west\"\nageing = 9", "an ageing time in seconds of 9: write 10 to 1000000"),
        ("name = \"west\"\nstations = 0", "a table for stations of 0: write 1 to 1048576"),
        ("name = \"west\"\n[[bridge]]\nname = \"west\"", "the bridge west is set twice"),
        ("name = \"west\"\nspeed = 1", "unknown key `speed`"),
    ] {
        let said = refused(&format!("{ports}[[bridge]]\n{entry}\n"));
        assert!(said.len() == 1 && said[0].1.contains(clue), "{entry}: {said:?}");
    }
}

#[test]
fn all_that_is_wrong_is_said_at_once_with_its_lines() {
    let text = r#"
[workers]
cores = [1, 1]
color = "red"

[[interface]]
name = "lan"
device = "nul"

[[interface]]
name = "wan"
device = "null"
mtu = 20
addresses = ["10.0.0.1", "10.1.0.1/24"]
spped = 10

[[route]]
prefix = "10.0.0.1/8"
via = [{ gateway = "10.0.0.2", interface = "lan" }]

[[route]]
prefix = "10.0.0.0/8"
via = [{ gateway = "fe80::1", interface = "dmz" }]

[[rout]]
"#;
    let said = parse(text).unwrap_err().to_string();
    insta::assert_snapshot!(said);
}

#[test]
fn what_cannot_be_is_refused_with_what_to_write_instead() {
    let two = |more: &str| format!("{HEAD}{}{}", interface("lan", more), interface("wan", ""));
    let routed = |route: &str| {
        format!("{HEAD}{}[[route]]\n{route}\n", interface("lan", "addresses = [\"10.0.0.1/24\"]"))
    };
    let mut failures = Vec::new();
    for (text, clue) in [
        (String::new(), "write [workers] and cores = [1]"),
        ("x = ".into(), "string"),
        ("workers = 3".into(), "expected a table"),
        (format!("interface = 3\n{HEAD}"), "write [[interface]]"),
        ("[workers]\ncores = []".into(), "name 1 to 64 cores"),
        ("[workers]\ncores = [\"1\"]".into(), "a whole number without quotes"),
        ("[workers]\ncores = [1]\nidle = \"rest\"".into(), "expected `poll` or `sleep`"),
        (format!("{HEAD}[control]\nsocket = \"here\""), "write a path from / on"),
        (format!("{HEAD}[control]"), "`socket` is missing: write socket = …"),
        (format!("metrics = \"9482\"\n{HEAD}"), "like 127.0.0.1:9482"),
        (format!("{HEAD}{}", interface("lan 1", "")), "letters, digits"),
        (format!("{HEAD}{}{}", interface("lan", ""), interface("lan", "")), "two interfaces 'lan'"),
        (two("mac = \"3:4\""), "six hexadecimal bytes"),
        (two("mac = \"01:00:5e:00:00:01\""), "first byte is even"),
        (two("mtu = 67"), "write 68 to 9216"),
        (two("mtu = 9217"), "write 68 to 9216"),
        (two("addresses = [\"127.0.0.1/8\"]"), "write one of a host"),
        (two("addresses = [\"224.0.0.1/8\"]"), "write one of a host"),
        (two("addresses = [\"0.0.0.0/8\"]"), "write one of a host"),
        (two("addresses = [\"10.0.0.0/24\"]"), "write one of a host"),
        (two("addresses = [\"10.0.0.255/24\"]"), "write one of a host"),
        (two("addresses = [\"10.0.0.1/40\"]"), "addresses have 32"),
        (two("addresses = [\"10.0.0.1/24\", \"10.0.0.9/16\"]"), "overlaps with 10.0.0.0/24 of lan"),
        (two("cross-connect = \"lan\""), "its own cross connect"),
        (two("cross-connect = \"dmz\""), "there are lan, wan"),
        (two("cross-connect = \"wan\"\naddresses = [\"10.0.0.1/24\"]"), "takes no addresses"),
        (two("cross-connect = \"wan\"\nbridge = \"b\""), "leave one of them out"),
        (two("tap = 1"), "true or false without quotes"),
        (two("cross-connect = \"wan\"\ntap = true"), "takes no tap"),
        (two("[[interface.vlan]]\nid = 7\nbridge = \"b\"\ntap = true"), "lan.7 does not route"),
        (format!("{HEAD}{}", interface("a-name-of-some-length", "tap = true")), "15 bytes at most"),
        (format!("routes-from-kernel = true\n{}", two("tap = false")), "write tap = true"),
        (two("bridge = \"\""), "no name for a bridge"),
        (two("[[interface.vlan]]\nid = 4095"), "write one of 1 to 4094"),
        (two("[[interface.vlan]]\nid = 3\n[[interface.vlan]]\nid = 3"), "lan has two VLANs 3"),
        (format!("{HEAD}[[interface]]\nname = \"lan\"\ndevice = \"null:x=1\""), "leave 'x' out"),
        (format!("{HEAD}[[interface]]\nname = \"lan\"\ndevice = \"null:x\""), "key=value"),
        (routed("prefix = \"10.9.0.0/16\""), "either via"),
        (routed("prefix = \"10.9.0.0/16\"\nvia = []"), "either via"),
        (routed("prefix = \"10.0.0.0/24\"\ndrop = true"), "the network of lan"),
        (routed("prefix = \"127.0.0.0/8\"\ndrop = true"), "nobody may send to"),
        (routed("prefix = \"10.9.0.0/16\"\nvia = [{ gateway = \"10.0.0.2\" }]\ndrop = true"), "either via"),
        (routed("prefix = \"10.9.0.0/16\"\nvia = [{ gateway = \"10.5.0.2\" }]"), "write interface ="),
        (routed("prefix = \"10.9.0.0/16\"\nvia = [{ gateway = \"here\" }]"), "is no address"),
        (
            routed("prefix = \"10.9.0.0/16\"\nvia = [{ gateway = \"224.0.0.2\", interface = \"lan\" }]"),
            "no gateway",
        ),
        (
            routed("prefix = \"10.9.0.0/16\"\nvia = [{ gateway = \"10.0.0.2\", weight = 0 }]"),
            "write 1 or more",
        ),
        (
            routed("prefix = \"10.9.0.0/16\"\nvia = [{ gateway = \"10.0.0.2\", weight = 257 }]"),
            "add up to 256",
        ),
        (routed("prefix = \"::/0\"\nvia = [{ gateway = \"10.0.0.2\" }]"), "another version of IP"),
        (
            routed("prefix = \"1.0.0.0/8\"\ndrop = true\n[[route]]\nprefix = \"1.0.0.0/8\"\ndrop = true"),
            "two routes",
        ),
    ] {
        let said = refused(&text);
        if said.len() != 1 || !said[0].1.contains(clue) {
            failures.push(format!("{text}: {said:?} instead of {clue}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    for (device, clue) in [
        ("nul", "there are null, memif"),
        ("memif", "socket=/run/memif.sock"),
        ("memif:socket=here", "a path from / on, or @ and a name"),
        ("memif:socket=@", "a path from / on, or @ and a name"),
        ("memif:socket=@x,role=master", "server or client"),
        ("memif:socket=@x,ring=1000", "a power of two"),
        ("memif:socket=@x,ring=32768", "a power of two"),
        ("memif:socket=@x,queues=0", "1 to 64"),
        ("memif:socket=@x,id=x", "a whole number"),
        ("memif:socket=@x,colour=red", "it has socket, role"),
        ("memif:socket=@x,socket=@y", "socket twice"),
    ] {
        let said = refused(&format!("{HEAD}[[interface]]\nname = \"lan\"\ndevice = \"{device}\"\n"));
        assert!(said.len() == 1 && said[0].1.contains(clue), "{device}: {said:?}");
    }
    if !cfg!(feature = "dpdk") {
        let device = "dpdk:0000:01:00.0";
        let said = refused(&format!("{HEAD}{}", interface("lan", "").replace("null", device)));
        assert!(said.len() == 1 && said[0].1.contains("--features dpdk"), "{device}: {said:?}");
    }
    let twice = interface("lan", "").replace("null", "memif:socket=@x")
        + &interface("wan", "").replace("null", "memif:socket=@x,ring=64");
    assert!(refused(&format!("{HEAD}{twice}"))[0].1.contains("lan has the socket @x"));
    let bridged = format!(
        "{HEAD}{}{}",
        interface("lan", "cross-connect = \"wan\""),
        interface("wan", "bridge = \"b\"")
    );
    assert!(refused(&bridged)[0].1.contains("port of a bridge"));
}

#[test]
fn a_neighbour_is_somebody_at_an_interface_that_routes() {
    let with = |neighbour: &str| {
        format!(
            "{HEAD}{}{}[[neighbour]]\n{neighbour}\n",
            interface("lan", ""),
            interface("a", "cross-connect = \"lan\"")
        )
    };
    for (neighbour, clue) in [
        ("interface = \"a\"\naddress = \"10.0.0.2\"\nmac = \"02:00:00:00:00:01\"", "does not route"),
        ("interface = \"b\"\naddress = \"10.0.0.2\"\nmac = \"02:00:00:00:00:01\"", "there is no interface"),
        ("interface = \"lan\"\naddress = \"10.0.0\"\nmac = \"02:00:00:00:00:01\"", "is no address"),
        ("interface = \"lan\"\naddress = \"127.0.0.1\"\nmac = \"02:00:00:00:00:01\"", "no host's address"),
        ("interface = \"lan\"\naddress = \"10.0.0.2\"\nmac = \"ff:ff:ff:ff:ff:ff\"", "no station's address"),
        ("interface = \"lan\"\naddress = \"10.0.0.2\"", "`mac` is missing"),
    ] {
        let said = refused(&with(neighbour));
        assert!(said.len() == 1 && said[0].1.contains(clue), "{neighbour}: {said:?}");
    }
}

#[test]
fn a_difference_says_what_to_change_in_an_order_that_works() {
    let old = parse(WHOLE).unwrap();
    assert_eq!(difference(&old, &old).unwrap(), []);
    let text = WHOLE
        .replace("mtu = 9000", "mtu = 1400\nup = false")
        .replace("\"10.1.0.1/24\"", "\"10.2.0.1/24\"")
        .replace("gateway = \"10.1.0.2\"", "gateway = \"10.2.0.2\"")
        .replace("192.168.0.0/16", "192.168.0.0/24")
        .replace("00:00:20", "00:00:21")
        .replace("bridge = \"office\"", "");
    let new = parse(&text).unwrap();
    let wan = || "wan".to_owned();
    let gateway = IpAddr::from([10, 1, 0, 2]);
    assert_eq!(
        difference(&old, &new).unwrap(),
        [
            Change::Mtu("lan".into(), 1400),
            Change::Up("lan".into(), false),
            Change::Mtu("lan.7".into(), 1400),
            Change::Role("c".into(), Role::Router),
            Change::NoAddress(wan(), "10.1.0.1/24".parse().unwrap()),
            Change::Address(wan(), "10.2.0.1/24".parse().unwrap()),
            Change::Neighbour(wan(), gateway, "02:00:00:00:00:21".parse().unwrap()),
            Change::Routes(Arc::clone(&new.routes)),
        ]
    );
    let changed: Vec<String> =
        old.routes.changes(&new.routes).map(|(prefix, _)| prefix.to_string()).collect();
    assert_eq!(changed, ["0.0.0.0/0", "192.168.0.0/16", "192.168.0.0/24"]);
    let back = difference(&new, &old).unwrap();
    // A bridge without ports needs no change to go, but is set when it comes.
    assert_eq!(back.len(), 9);
}

#[test]
fn what_cannot_change_is_said_by_name() {
    let old = parse(WHOLE).unwrap();
    let taps = WHOLE.replace("up = false", "up = false\ntap = true");
    let fixed = difference(&old, &parse(&format!("routes-from-kernel = true\n{taps}")).unwrap()).unwrap_err();
    let fixed: Vec<&str> = fixed.iter().map(|fixed| fixed.0.as_str()).collect();
    assert_eq!(fixed, ["routes-from-kernel", "the tap of lan.7"]);
    for (from, to, clue) in [
        ("/run/one.sock", "/run/two.sock", "the control socket cannot change while the router runs"),
        ("cores = [1, 3]", "cores = [1]", "workers, which have their cores"),
        ("mtu = 9000", "mtu = 9000\nrss = true", "whether lan has rss cannot change"),
        ("id = 7", "id = 8", "lan.8 is new"),
        ("name = \"c\"", "name = \"d\"", "c is missing"),
    ] {
        // The gateway at VLAN 7 is at none then.
        let text = WHOLE.replace(from, to).replace(", { gateway = \"10.7.0.2\" }", "");
        let fixed = difference(&old, &parse(&text).unwrap()).unwrap_err();
        assert!(fixed.iter().any(|fixed| fixed.to_string().contains(clue)), "{fixed:?}");
    }
}

#[test]
fn what_users_ask_for_is_read_as_the_configuration_is() {
    let config = parse(WHOLE).unwrap();
    let ask = |set: Set| changes_of(&config, &set);
    let interface = |up, mtu| Set::Interface { name: "wan".into(), up, mtu };
    assert_eq!(ask(interface(Some(true), Some(1500))).unwrap(), []);
    assert_eq!(
        ask(interface(Some(false), Some(1400))).unwrap(),
        [Change::Up("wan".into(), false), Change::Mtu("wan".into(), 1400)]
    );
    assert!(ask(interface(None, Some(1))).unwrap_err().contains("write 68 to 9216"));
    let route = |prefix: &str, to| Set::Route { prefix: prefix.into(), to };
    let via = |gateway: &str| {
        To::Via(vec![protocol::Hop { gateway: gateway.into(), interface: None, weight: Some(2) }])
    };
    let hops = vec![Hop { gateway: [10, 1, 0, 9].into(), interface: "wan".into(), weight: 2 }];
    let prefix = "5.0.0.0/8".parse().unwrap();
    assert_eq!(
        ask(route("5.0.0.0/8", via("10.1.0.9"))).unwrap(),
        [Change::Route(prefix, Arc::new(Route::Via(hops)))]
    );
    assert!(ask(route("5.0.0.0/8", via("10.9.0.9"))).unwrap_err().contains("in no interface's network"));
    assert_eq!(ask(route("5.0.0.0/8", To::Drop)).unwrap(), [Change::Route(prefix, Arc::new(Route::Drop))]);
    assert!(ask(route("5.0.0.0/8", To::Nothing)).unwrap_err().contains("no route of 5.0.0.0/8"));
    let known = "192.168.0.0/16";
    assert_eq!(ask(route(known, To::Nothing)).unwrap(), [Change::NoRoute(known.parse().unwrap())]);
    let neighbour = |address: &str, mac: Option<&str>| Set::Neighbour {
        interface: "wan".into(),
        address: address.into(),
        mac: mac.map(str::to_owned),
    };
    let gateway = IpAddr::from([10, 1, 0, 2]);
    assert_eq!(ask(neighbour("10.1.0.2", None)).unwrap(), [Change::NoNeighbour("wan".into(), gateway)]);
    assert!(ask(neighbour("10.1.0.3", None)).unwrap_err().contains("no neighbour 10.1.0.3"));
    let mac: MacAddress = "02:00:00:00:00:33".parse().unwrap();
    assert_eq!(
        ask(neighbour("10.1.0.2", Some("02:00:00:00:00:33"))).unwrap(),
        [Change::Neighbour("wan".into(), gateway, mac)]
    );
    let wrong = ask(neighbour("10.1.0", Some("02"))).unwrap_err();
    assert!(wrong.contains("is no address") && wrong.contains("is not a MAC address"), "{wrong}");
}
