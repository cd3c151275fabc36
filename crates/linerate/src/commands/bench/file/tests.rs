use testbed::bench::{Direction, Order};
use testbed::target::{EngineName, Place};

use super::*;

/// A bench of two devices and one profile.
const SOUND: &str = r#"
name = "firewall-rules"
[strategy]
use = "ramp"
options = ["--rate", "97%"]
[[duts]]
name = "none"
dut = "linux-router"
commands = ["first"]
undo = ["undo first"]
[[duts]]
name = "10 rules"
extends = "none"
commands = ["second"]
undo = ["undo second"]
requires = ["nft"]
[[profiles]]
name = "64 B"
size = "64"
directions = ["one", "both"]
"#;

fn read(text: &str) -> Result<Bench> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.toml");
    std::fs::write(&file, text).unwrap();
    load(&file)
}

/// `text` is refused at `line`, in words that hold all of `clues`.
fn refused(text: &str, line: usize, clues: &[&str]) {
    let error = read(text).unwrap_err();
    assert!(crate::exit::is_misuse(&error), "{error}");
    let said = error.to_string();
    assert!(said.contains(&format!("a.toml:{line}: ")), "not line {line}: {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    for clue in clues {
        assert!(said.contains(clue), "no '{clue}' in: {said}");
    }
}

#[test]
fn what_is_not_said_has_its_default() {
    let bench = read(SOUND).unwrap();
    assert_eq!((bench.repeats, bench.order, bench.seed), (6, Order::Shuffled, 1));
    assert_eq!((bench.title.as_str(), bench.baseline.as_deref()), ("firewall-rules", Some("none")));
    let flags = [("--profile", "bench".to_owned()), ("--size", "64".to_owned())];
    assert_eq!(bench.profiles[0].flags, flags);
    assert_eq!(bench.profiles[0].directions, [Direction::One, Direction::Both]);
    assert_eq!(bench.strategy.line, 5);
}

#[test]
fn a_device_takes_over_what_it_does_not_set_and_undoes_last_things_first() {
    let bench = read(SOUND).unwrap();
    let rules = &bench.duts[1];
    assert_eq!(rules.place, Place::Lab("linux-router".parse().unwrap()));
    assert_eq!(rules.configuration.commands, ["first", "second"]);
    assert_eq!(rules.configuration.undo, ["undo second", "undo first"]);
    assert_eq!(rules.configuration.requires, ["nft"]);
    let options =
        SOUND.replace("dut = \"linux-router\"", "dut = \"linux-router\"\noptions = [\"--cores\", \"0\"]");
    let options = options.replace("extends = \"none\"", "extends = \"none\"\noptions = [\"--step\", \"1s\"]");
    assert_eq!(read(&options).unwrap().duts[1].options, ["--cores", "0", "--step", "1s"]);
    let moved = SOUND.replace("extends = \"none\"", "extends = \"none\"\nports = \"eth1,eth2\"");
    assert!(
        matches!(&read(&moved).unwrap().duts[1].place, Place::Ports(ports) if ports.names == ["eth1", "eth2"])
    );
}

#[test]
fn unknown_keys_are_refused_with_the_known_ones() {
    refused(&SOUND.replace("size = \"64\"", "sise = \"64\""), 19, &["`sise`", "`size`", "`directions`"]);
    refused(&SOUND.replace("requires", "require"), 16, &["`require`", "`requires`"]);
    refused(&format!("repeat = 3\n{SOUND}"), 1, &["`repeat`", "`repeats`"]);
    refused(&SOUND.replace("\"ramp\"", "\"rmap\""), 4, &["`rmap`", "`ramp`", "`soak`"]);
    refused(&SOUND.replace("name = \"64 B\"", "name = 64"), 18, &["text in quotes"]);
    refused("name = \"x", 1, &[]);
}

#[test]
fn circles_are_refused_with_the_names() {
    let circle = SOUND.replace("dut = \"linux-router\"", "extends = \"10 rules\"");
    refused(&circle, 13, &["circular \"extends\": 'none' → '10 rules' → 'none'", "extend nothing"]);
    let own = SOUND.replace("extends = \"none\"", "extends = \"10 rules\"");
    refused(&own, 13, &["circular \"extends\": '10 rules' → '10 rules'"]);
    refused(&SOUND.replace("extends = \"none\"", "extends = \"no\""), 13, &["'no'", "none, 10 rules"]);
}

#[test]
fn empty_matrices_are_refused() {
    let (head, profiles) = SOUND.split_once("[[profiles]]").unwrap();
    refused(head, 17, &["empty", "profile"]);
    let (strategy, _) = head.split_once("[[duts]]").unwrap();
    refused(&format!("{strategy}[[profiles]]{profiles}"), 10, &["empty", "DUT"]);
    refused(&SOUND.replace("[\"one\", \"both\"]", "[]"), 20, &["[\"one\", \"both\"]"]);
    refused(&SOUND.replace("[\"one\", \"both\"]", "[\"one\", \"one\"]"), 20, &["[\"both\"]"]);
    refused(&format!("repeats = 0\n{SOUND}"), 1, &["0 repeats", "at least 1"]);
}

#[test]
fn names_are_to_be_told_apart() {
    refused(&SOUND.replace("name = \"10 rules\"", "name = \"none\""), 12, &["two DUTs 'none'"]);
    refused(&SOUND.replace("64 B", "64/B"), 18, &["'64/B'", "no /"]);
    for name in ["Firewall", "a--b", "", "../x"] {
        refused(&SOUND.replace("firewall-rules", name), 2, &["no name for a bench"]);
    }
    refused(&format!("baseline = \"some\"\n{SOUND}"), 1, &["'some'", "none, 10 rules"]);
}

#[test]
fn devices_that_are_no_rivals_are_not_compared() {
    assert_eq!(read(&format!("compare = false\n{SOUND}")).unwrap().baseline, None);
    let bench = read(&format!("compare = true\nbaseline = \"10 rules\"\n{SOUND}")).unwrap();
    assert_eq!(bench.baseline.as_deref(), Some("10 rules"));
    refused(&format!("compare = false\nbaseline = \"none\"\n{SOUND}"), 2, &["compare", "baseline"]);
}

#[test]
fn profiles_are_compared_where_the_file_says_so() {
    assert_eq!(read(SOUND).unwrap().compare, Compare::Devices);
    let bench = read(&format!("compare = \"profiles\"\n{SOUND}")).unwrap();
    assert_eq!((bench.compare, bench.baseline.as_deref()), (Compare::Profiles, Some("64 B")));
    refused(
        &format!("compare = \"profiles\"\nbaseline = \"none\"\n{SOUND}"),
        2,
        &["no profile 'none'", "64 B"],
    );
    for wrong in ["\"rules\"", "3"] {
        refused(&format!("compare = {wrong}\n{SOUND}"), 1, &[wrong, "\"profiles\"", "false"]);
    }
    let told = SOUND
        .replace("size = \"64\"", "size = \"64\"\ncommands = [\"a\"]\nundo = [\"b\"]\nrequires = [\"c\"]");
    let profile = read(&told).unwrap().profiles.remove(0).configuration;
    assert_eq!(
        (profile.commands, profile.undo, profile.requires),
        (vec!["a".into()], vec!["b".into()], vec!["c".into()])
    );
}

#[test]
fn what_no_run_could_use_is_refused_before_any() {
    refused(&SOUND.replace("linux-router", "cisco"), 8, &["'cisco'", "xdp-router"]);
    refused(&SOUND.replace("size = \"64\"", "size = \"63\""), 18, &["63", "64 to 9216"]);
    refused(&SOUND.replace("size = \"64\"", "profile = \"bnech\""), 18, &["'bnech'", "bench"]);
    refused(&SOUND.replace("size = \"64\"", "profile = \"gone.toml\""), 18, &["gone.toml"]);
    refused(&SOUND.replace("dut = \"linux-router\"\n", ""), 7, &["needs one of: dut = ", "ports"]);
    let both = SOUND.replace("dut = \"linux-router\"", "dut = \"linux-router\"\nports = \"a,b\"");
    refused(&both, 9, &["exclude"]);
    let ports = SOUND.replace("dut = \"linux-router\"", "ports = \"eth1\"");
    refused(&ports, 8, &["'eth1'", "two interfaces"]);
    let gateways = SOUND.replace("dut = \"linux-router\"", "ports = \"a,b\"\ngateways = \"10.0.0.1\"");
    refused(&gateways, 9, &["'10.0.0.1'", "two addresses"]);
    refused(&gateways.replace("10.0.0.1", "10.0.0.1,10.0.1"), 9, &["'10.0.0.1,10.0.1'", "two addresses"]);
    let gateways = SOUND.replace("dut = \"linux-router\"", "dut = \"linux-router\"\ngateways = \"a,b\"");
    refused(&gateways, 9, &["belong to ports"]);
    refused(&SOUND.replace("--rate", "--bidirectional"), 5, &["directions"]);
}

#[test]
fn places_are_on_an_axis_and_an_axis_has_places() {
    let axis = SOUND.replace("[strategy]", "[axis]\nname = \"rules\"\n[strategy]");
    let placed = |text: &str, places: &[(&str, &str)]| {
        places.iter().fold(text.to_owned(), |text, (name, at)| {
            text.replace(&format!("name = \"{name}\""), &format!("name = \"{name}\"\nat = {at}"))
        })
    };
    let bench = read(&placed(&axis, &[("none", "0"), ("10 rules", "10")])).unwrap();
    assert_eq!(bench.axis, Some(Axis { name: "rules".to_owned(), linear: false }));
    assert_eq!(bench.duts.iter().map(|dut| dut.at).collect::<Vec<_>>(), [Some(0.0), Some(10.0)]);
    let linear = axis.replace("name = \"rules\"", "name = \"cores\"\nlinear = true");
    let bench = read(&placed(&linear, &[("64 B", "1.5")])).unwrap();
    assert_eq!((bench.profiles[0].at, bench.axis.unwrap().linear), (Some(1.5), true));

    refused(&placed(SOUND, &[("10 rules", "10")]), 13, &["there is none", "[axis] name"]);
    refused(&axis, 3, &["nothing has a place", "at = 10"]);
    refused(&placed(&axis, &[("none", "1"), ("64 B", "2")]), 22, &["places on the axis already"]);
    refused(&placed(&axis, &[("none", "-1")]), 10, &["at = -1", "from zero on"]);
    refused(&placed(&axis, &[("none", "inf")]), 10, &["at = inf"]);
}

#[test]
fn generators_send_datagrams_and_load_tests_frames() {
    let generators = SOUND.replace("\"ramp\"", "\"generator\"");
    refused(&generators, 18, &["datagram = 64"]);
    let datagrams = generators.replace("size = \"64\"", "datagram = 16");
    assert_eq!(read(&datagrams).unwrap().profiles[0].flags, [("--datagram", "16".to_owned())]);
    refused(&generators.replace("size", "datagram = 16\nsize"), 18, &["leave", "size"]);
    refused(&SOUND.replace("size = \"64\"", "datagram = 16"), 18, &["generator", "size"]);
}

#[test]
fn another_computer_is_between_ports_and_its_options_are_taken_over_one_by_one() {
    let text = SOUND.replace(
        "dut = \"linux-router\"",
        "ports = \"a,b\"\nhost = \"root@dut\"\ndriver = \"vpp\"\ndriver-options = { port0 = \"x\", port1 = \"y\" }",
    );
    let text = text.replace(
        "extends = \"none\"",
        "extends = \"none\"\ndriver-options = { port1 = \"z\", ip = \"6\" }\nsudo = true",
    );
    let bench = read(&text).unwrap();
    let remote = |at: usize| match &bench.duts[at].place {
        Place::Ports(ports) => ports.remote.clone().unwrap(),
        other => panic!("{other:?}"),
    };
    let options = |at: usize| {
        remote(at).options.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!((options(0).as_str(), remote(0).sudo), ("port0=x port1=y", false));
    assert_eq!((options(1).as_str(), remote(1).sudo), ("ip=6 port0=x port1=z", true));
    assert_eq!((remote(1).host.as_str(), remote(1).driver.as_str()), ("root@dut", "vpp"));

    refused(&text.replace("ip = \"6\"", "ip = \"5\""), 17, &["'5' is no ip: it is one of 4, 6, both"]);
    refused(&text.replace("ip =", "ipv ="), 17, &["no option 'ipv'", "port0"]);
    refused(&text.replace("driver = \"vpp\"\n", ""), 9, &["host and a driver"]);
    refused(&text.replace("ports = \"a,b\"", "dut = \"linux-router\""), 7, &["between two ports"]);
    let orphan = SOUND.replace("undo = [\"undo first\"]", "driver-options = { ip = \"4\" }");
    refused(&orphan, 10, &["driver-options belong to a driver"]);
}

#[test]
fn ports_of_dpdk_and_devices_in_user_space_go_with_their_engine() {
    let site = "dut = \"linux-router\"";
    let ports = SOUND.replace(site, "engine = \"dpdk\"\nport0 = \"net_null0\"\nport1 = \"net_null1\"");
    let bench = read(&ports).unwrap();
    assert!(matches!(&bench.duts[1].place, Place::Named(named) if named.ports == ["net_null0", "net_null1"]));
    assert!(bench.duts.iter().all(|dut| dut.engine.is_in_user_space()), "taken over");
    let testpmd = SOUND.replace(site, "engine = \"dpdk\"\ndut = \"testpmd:mode=macswap\"");
    assert_eq!(
        read(&testpmd).unwrap().duts[0].place,
        Place::Started("testpmd:mode=macswap".parse().unwrap())
    );

    refused(&ports.replace("port1 = \"net_null1\"\n", ""), 9, &["port0 and port1"]);
    refused(&ports.replace("engine = \"dpdk\"\n", ""), 7, &["engine = \"dpdk\""]);
    refused(&ports.replace("\"dpdk\"", "\"netmap\""), 8, &["'netmap'", "xdp, dpdk and memif"]);
    refused(&ports.replace("engine", "engin"), 8, &["`engin`", "`engine`", "`port0`"]);
    refused(&ports.replace("engine =", "dut = \"sink\"\nengine ="), 10, &["exclude"]);
    refused(
        &ports.replace("engine =", "gateways = \"10.0.0.1,10.0.1.1\"\nengine ="),
        8,
        &["belong to ports"],
    );
    refused(&testpmd.replace("testpmd:mode=macswap", "linux-router"), 8, &["but testpmd", "port0"]);
    refused(&testpmd.replace("engine = \"dpdk\"\n", ""), 7, &["testpmd", "engine = \"memif\""]);
    refused(&SOUND.replace(site, "engine = \"dpdk\"\nports = \"a,b\""), 8, &["in place of ports"]);
    refused(&testpmd.replace("mode=macswap", "mode=txonly"), 9, &["io or macswap"]);

    let vpp = testpmd.replace("testpmd:mode=macswap", "vpp:mode=xconnect");
    assert_eq!(read(&vpp).unwrap().duts[0].place, Place::Started("vpp:mode=xconnect".parse().unwrap()));
    // In the lab, too.
    read(&SOUND.replace(site, "dut = \"fastpath\"")).unwrap();
    read(&SOUND.replace(site, "engine = \"memif\"\ndut = \"fastpath\"")).unwrap();
    refused(&vpp.replace("engine = \"dpdk\"\n", ""), 7, &["vpp", "engine = \"memif\""]);

    let own = testpmd.replace("\"dpdk\"", "\"memif\"");
    assert!(read(&own).unwrap().duts.iter().all(|dut| dut.engine == EngineName::Memif));
}
