//! Wrong use and unfit machines: each is refused in one clear line, and nothing is left behind.

use std::fs;
use std::process::{Command, Stdio};

use crate::common::namespace::Namespace;
use crate::common::sites::Site;
use crate::common::{
    PROGRAM, QUICK, has_namespaces, linerate, refusal_without_privileges, refusal_without_privileges_in,
};

/// Refused as wrong use, with a line that holds all of `clues`.
fn refuses(line: &str, clues: &[&str]) {
    // Nothing is sent, so that other tests may measure meanwhile.
    let finished = linerate(line).on_my_machine().run();
    holds(finished.refusal(2), clues);
    assert!(finished.records().is_empty(), "{line}: left a record");
}

fn holds(refusal: &str, clues: &[&str]) {
    for clue in clues {
        assert!(refusal.contains(clue), "no '{clue}' in: {refusal}");
    }
}

/// Whether `said` reads as `message`, in which `…` stands for what differs from host to host.
fn reads(said: &str, message: &str) -> bool {
    let parts: Vec<&str> = message.split('…').collect();
    let [first, .., last] = parts.as_slice() else { return said == message };
    let mut rest = said;
    let found = parts.iter().all(|part| {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        true
    });
    found && said.starts_with(first) && said.ends_with(last)
}

/// What users meet first, word for word: the words, the exit status, and how the line on standard error goes on after
/// `linerate: `. Each says what is wrong and what to do.
const MESSAGES: [(&str, i32, &str); 16] = [
    (
        "ramp --dut linux-ruter",
        2,
        "invalid value 'linux-ruter' for '--dut <DUT>': no device under test is called 'linux-ruter'. There are: \
         linux-router, linux-bridge, …",
    ),
    (
        "ramp --dut linux-router:colour=red",
        2,
        "invalid value 'linux-router:colour=red' for '--dut <DUT>': linux-router has no parameter 'colour'. It has: gro, \
         …; 'linerate lab devices linux-router' explains them",
    ),
    (
        "ramp --dut linux-router --engine memif",
        2,
        "linux-router forwards between interfaces of the kernel, which --engine dpdk and memif do not reach: leave \
         --engine out, choose --dut calibrated, testpmd, vpp or fastpath, or name ports with --port0 and --port1",
    ),
    (
        "saturate --dut-denies 10.0.0",
        2,
        "invalid value '10.0.0' for '--dut-denies <ADDRESS>': '10.0.0' is not an IP address: write one such as 10.0.0.9 \
         or fd00::9",
    ),
    (
        "ramp --dut linux-router --gateways 10.0.0.1,10.0.1.1",
        2,
        "the argument '--dut <DUT>' cannot be used with '--gateways <IP,IP>'",
    ),
    ("profile show --queues 0", 2, "invalid value '0' for '--queues <N>': 0 is outside of 1 to 128"),
    (
        "profile show --profile nope.toml",
        1,
        "cannot read the profile nope.toml: check its name: No such file …",
    ),
    (
        "ramp --flows many",
        2,
        "invalid value 'many' for '--flows <FLOWS>': 'many' is no choice of flows: known are none, …",
    ),
    (
        "ramp --rate 5mpsp",
        2,
        "invalid value '5mpsp' for '--rate <RATE>': '5mpsp' is not a rate: write frames a second (10kpps, 1.5mpps), \
         bits a second at L2 (5gbps) or L1 (5gbpsl1), percent of line rate (97%), or max",
    ),
    (
        "ramp --size 32",
        2,
        "invalid value '32' for '--size <SIZE>': '32' is no frame size: write 64 to 9216 bytes (FCS included), or imix",
    ),
    ("search --gaol ndr", 2, "unexpected argument '--gaol' found. A similar argument exists: '--goal'"),
    ("ramp --ports eth1,eth9", 2, "there is no interface 'eth9'. There are: eth1, eth2"),
    (
        "ramp --ports eth1,eth2",
        2,
        "'eth1' carries the default route, and a load test on it would cut that off. Name another interface, or say \
         --force twice",
    ),
    (
        "bench typo.toml",
        2,
        "typo.toml:9: unknown key `sise`, expected one of `name`, `profile`, `size`, `flows`, `ip`, `vlan`, …",
    ),
    ("profile show --profile mine.toml", 2, "mine.toml:4: 10 is out of range: it can be 64 to 9216"),
    (
        "report other.json",
        1,
        "other.json: is no record of linerate (its \"schema\" is not linerate/run/1): name a file that a run left in runs/",
    ),
];

#[test]
fn pipes_are_refused_as_files_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe.toml").display().to_string();
    nix::unistd::mkfifo(pipe.as_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for line in ["profile show --profile {}", "bench {}", "report {}", "compare {} {}"] {
        let said = linerate(&line.replace("{}", &pipe)).run();
        assert!(said.stderr.contains("it is a pipe: name an ordinary file"), "{line}: {}", said.stderr);
        assert_ne!(said.status.code(), Some(0), "{line}");
    }
}

#[test]
fn the_first_mistakes_are_answered_word_for_word() {
    if !has_namespaces() {
        return;
    }
    let site = Site::router();
    site.tester.run("ip route add default via 100.65.1.1");
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [
        (
            "typo.toml",
            "name = \"small\"\n[strategy]\nuse = \"ramp\"\n[[duts]]\nname = \"kernel\"\ndut = \"linux-router\"\n\
             [[profiles]]\nname = \"64 B\"\nsise = \"64\"\n",
        ),
        ("mine.toml", "name = \"mine\"\n\n[[stream]]\nsize = 10\n[stream.ipv4]\n"),
        ("other.json", "{}"),
    ] {
        fs::write(directory.path().join(name), text).unwrap();
    }
    for (line, code, message) in MESSAGES {
        let run = linerate(line).inside(&site.tester).in_directory(directory.path()).on_my_machine().run();
        assert!(reads(run.refusal(code), message), "{line}:\n{}instead of\n{message}", run.stderr);
    }
    let said = refusal_without_privileges("ramp --dut linux-router");
    let message = "linerate: cannot create a network namespace (unshare): Operation not permitted (os error 1). Run it \
                   as root (sudo), or with CAP_SYS_ADMIN";
    assert!(reads(said.trim_end(), message), "{said}");
    assert!(!reads("a b c", "a…d") && !reads("a b c", "b…c") && reads("a b c", "a…c") && !reads("a", "b"));
}

#[test]
fn a_device_that_answers_nothing_is_told_after_the_warm_up() {
    if !has_namespaces() {
        return;
    }
    let run = linerate("search --dut sink --warm-up-duration 300ms --drain 100ms --time-limit 5s").run();
    assert_eq!(run.status.code(), Some(1), "{}", run.stderr);
    let words =
        "frames sent in the warm-up came back; check the link, and the device's neighbours, routes and MTU";
    assert!(run.stderr.contains("0->1: none of ") && run.stderr.contains(words), "{}", run.stderr);
    assert!(run.stderr.contains("record: runs/"), "where what was seen is kept: {}", run.stderr);
}

#[test]
fn an_unknown_subcommand_lists_the_known_ones() {
    let known =
        ["ramp", "saturate", "bench", "send", "count", "profile", "lab", "report", "export", "doctor"];
    refuses("frobnicate", &[&["'frobnicate'"], &known[..]].concat());
    refuses("lab frobnicate", &["'frobnicate'", "list", "up", "exec", "down"]);
    refuses("rmap", &["'rmap'", "similar command", "'ramp'"]);
    refuses("lab upp", &["'upp'", "similar command", "'up'"]);
}

#[test]
fn who_stops_reading_hears_no_complaint_and_it_is_no_success() {
    let mut child = Command::new(PROGRAM)
        .args(["profile", "show", "--size", "imix", "--flows", "var2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let finished = child.wait_with_output().unwrap();
    assert_eq!((finished.status.code(), String::from_utf8_lossy(&finished.stderr)), (Some(1), "".into()));
}

#[test]
fn an_unknown_flag_names_a_similar_one() {
    refuses("ramp --dutt sink", &["--dutt", "similar argument", "--dut"]);
    refuses("doctor --jsn", &["--jsn", "similar argument", "--json"]);
    refuses("doctor --xyzzy", &["--xyzzy", "linerate doctor --help"]);
}

#[test]
fn the_help_of_the_program_and_of_a_ramp_fit_a_screen() {
    for line in ["--help", "-h", "ramp -h", "saturate -h", "search -h"] {
        let help = linerate(line).on_my_machine().run().well().stdout;
        assert!((15..=40).contains(&help.lines().count()), "{line}:\n{help}");
    }
}

#[test]
fn an_unknown_device_lists_the_known_ones() {
    let known =
        ["linux-router", "linux-bridge", "xdp-router", "xdp-xconnect", "sink", "calibrated", "delayed"];
    for command in ["ramp", "saturate", "send", "bench --quick", "lab up x"] {
        refuses(&format!("{command} --dut cisco"), &[&["'cisco'"], &known[..]].concat());
    }
}

#[test]
fn an_unknown_parameter_lists_the_known_ones() {
    refuses("ramp --dut calibrated:rat=1kpps", &["'rat'", "rate", "burst", "drop-every", "stall-after"]);
    refuses("ramp --dut calibrated:rate=fast", &["'fast'", "rate", "300kpps"]);
    refuses("ramp --dut linux-router:gro=maybe", &["'maybe'", "gro", "on or off"]);
    refuses("ramp --dut calibrated:burst=1,burst=2", &["'burst'", "twice"]);
}

#[test]
fn an_unknown_profile_lists_the_known_ones() {
    for command in ["ramp", "send", "profile show"] {
        refuses(
            &format!("{command} --profile bnech"),
            &["'bnech'", "bench", "imix", "udp_1pkt_simple", ".toml"],
        );
    }
}

#[test]
fn an_unknown_value_lists_the_known_ones() {
    refuses("ramp --flows var3", &["'var3'", "none", "var1", "var2", "random", "tuple"]);
    refuses("ramp --ip 5", &["'5'", "4, 6"]);
    refuses("ramp --vlan 4095", &["'4095'", "1 to 4094"]);
    refuses("ramp --rate 5furlongs", &["'5furlongs'", "kpps", "gbps", "%"]);
    refuses("ramp --rate 120%", &["'120%'", "100%"]);
    refuses("export --format xml .", &["'xml'", "trex-loadtest", "csv"]);
    refuses("saturate --duration soon", &["'soon'", "30s"]);
}

#[test]
fn a_frame_size_out_of_bounds_is_refused_with_the_bounds() {
    refuses("ramp --size 63", &["'63'", "64 to 9216", "imix"]);
    refuses("ramp --size 9217", &["'9217'", "64 to 9216"]);
}

#[test]
fn testers_have_ports_of_their_own() {
    for flags in ["--dut sink", "--ports eth1,eth2", "--cores 0", "--dut-core 0"] {
        let flag = flags.split(' ').next().unwrap();
        refuses(&format!("ramp --engine trex:127.0.0.1 {flags}"), &["--engine trex", flag, "leave it out"]);
    }
    refuses("ramp --engine trex", &["'trex' is no engine", "trex:HOST"]);
    refuses("ramp --engine trex:a:b", &["HOST:PORT"]);
}

#[test]
fn a_frame_size_over_the_engines_limit_is_refused_with_the_limit() {
    if !has_namespaces() {
        return;
    }
    for command in ["ramp", "saturate", "send"] {
        refuses(
            &format!("{command} --size 9216"),
            &["9216", "xdp", &engine::xdp::MAX_FRAME.to_string(), "--size"],
        );
    }
}

#[test]
fn a_frame_size_that_does_not_hold_the_headers_is_refused_with_the_least_that_does() {
    refuses("ramp --size 64 --ip 6", &["64", "84"]);
    refuses("profile show --size 64 --ip 6 --vlan 100", &["64", "88"]);
    linerate("profile show --size 84 --ip 6").run().well();
    linerate("profile show --size 88 --ip 6 --vlan 100").run().well();
}

#[test]
fn a_profile_file_that_is_wrong_is_refused_with_line_and_reason() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("bad.toml"), "name = \"bad\"\n\n[[stream]]\nsize = 10\n[stream.ipv4]\n")
        .unwrap();
    let finished = linerate("ramp --profile bad.toml").in_directory(directory.path()).run();
    holds(finished.refusal(2), &["bad.toml:4:", "10"]);
    holds(linerate("ramp --profile gone.toml").run().refusal(1), &["gone.toml", "No such file"]);
}

#[test]
fn a_core_that_is_not_there_is_refused_with_those_that_are() {
    refuses("ramp --cores 4095", &["4095", "There are: 0"]);
    refuses("ramp --dut-core 4095", &["4095", "There are: 0"]);
    let workers =
        ["the device needs 64 cores beside the 1", "Ask for fewer workers or take a host with more cores"];
    refuses("ramp --dut fastpath:workers=64", &workers);
    refuses("ramp --engine memif --dut fastpath:workers=64,rss=on", &workers);
}

#[test]
fn ports_that_are_not_there_are_refused_with_those_that_are() {
    if !has_namespaces() {
        return;
    }
    let site = Site::cables();
    let refused = |line: &str, clues: &[&str]| {
        holds(linerate(line).inside(&site.tester).run().refusal(2), clues);
    };
    for command in ["ramp", "saturate", "send"] {
        refused(&format!("{command} --ports eth1,eth9"), &["'eth9'", "eth1, eth2"]);
        refused(&format!("{command} --ports eth1,eth1"), &["'eth1'", "two different"]);
        refused(&format!("{command} --ports eth1"), &["two interfaces"]);
        refused(&format!("{command} --ports eth1,lo"), &["'lo'", "not an Ethernet interface"]);
    }
    refused("count eth9", &["'eth9'", "eth1, eth2"]);
    refused("ramp --ports eth1,eth2 --dut sink", &["--ports", "--dut"]);
    refused("ramp --ports eth1,eth2 --gateways 192.0.2.1", &["--gateways", "two"]);
    refused("ramp --gateways 192.0.2.1,192.0.2.2", &["--ports"]);
}

#[test]
fn a_port_that_is_down_is_refused_with_the_remedy() {
    if !has_namespaces() {
        return;
    }
    let site = Site::cables();
    site.tester.run("ip link set eth2 down");
    let finished = linerate("ramp --ports eth1,eth2").inside(&site.tester).run();
    holds(finished.refusal(2), &["'eth2' is down", "ip link set eth2 up"]);
    site.tester.run("ip link set eth2 up");
    site.far.run("ip link set far2 down");
    let finished = linerate("ramp --ports eth1,eth2").inside(&site.tester).run();
    holds(finished.refusal(2), &["'eth2' has no link", "cable"]);
}

#[test]
fn a_port_with_the_default_route_is_used_only_when_forced_twice() {
    if !has_namespaces() {
        return;
    }
    let site = Site::router();
    site.tester.run("ip route add default via 100.65.1.1");
    let run = |force: &str| {
        let line =
            format!("ramp --ports eth1,eth2 --gateways 100.65.1.1,100.65.2.1 {force} {QUICK} --rate 2kpps");
        linerate(&line).inside(&site.tester).run()
    };
    for once in ["", "--force"] {
        holds(run(once).refusal(2), &["'eth1'", "default route", "--force twice"]);
    }
    run("--force --force").well();
    // Routes that share its work are as needed, in whichever table they are.
    site.tester.run("ip route del default && ip route add 128.0.0.0/1 via 100.65.1.1");
    holds(run("").refusal(2), &["'eth1'", "default route"]);
    site.tester.run("ip route del 128.0.0.0/1 && ip route add default via 100.65.2.1 table 100");
    holds(run("").refusal(2), &["'eth2'", "default route"]);
    // An interface on top of a port makes it just as needed.
    site.tester.run(
        "ip route del default table 100
         ip link add br0 type bridge
         ip link set eth2 master br0
         ip address add 192.0.2.2/24 dev br0
         ip link set br0 up
         ip route add default via 192.0.2.1",
    );
    holds(run("").refusal(2), &["'eth2'", "default route"]);
}

#[test]
fn a_port_that_this_login_comes_by_is_refused() {
    if !has_namespaces() {
        return;
    }
    let site = Site::router();
    let line = "ramp --ports eth1,eth2 --gateways 100.65.1.1,100.65.2.1";
    let login = linerate(line).env("SSH_CONNECTION", "100.65.2.1 50000 100.65.2.2 22");
    holds(
        login.inside(&site.tester).run().refusal(2),
        &["'eth2'", "SSH login from 100.65.2.1", "--force twice"],
    );
}

#[test]
fn frames_that_a_ports_mtu_does_not_carry_are_refused_with_the_remedy() {
    if !has_namespaces() {
        return;
    }
    let site = Site::cables();
    site.tester.run("ip link set eth2 mtu 1000");
    let run = |size: &str| linerate(&format!("send --ports eth1,eth2 {size} --rate 100 --duration 100ms"));
    holds(
        run("--size 1019").inside(&site.tester).run().refusal(2),
        &["eth2", "1000", "1018", "--size", "mtu 1001"],
    );
    run("--size 1018").inside(&site.tester).run().well();
}

#[test]
fn missing_privileges_are_named_with_the_remedy() {
    if !has_namespaces() {
        return;
    }
    for line in [
        "ramp",
        "ramp --engine af_xdp",
        "saturate",
        "send",
        "lab up nobody",
        "bench --quick",
        "count lo",
        "count lo --engine af_xdp",
    ] {
        holds(&refusal_without_privileges(line), &["root", "CAP_"]);
    }
    let site = Site::cables();
    for engine in ["auto", "xdp", "af_xdp"] {
        for line in ["ramp --ports eth1,eth2", "send --port eth1 --to 02:00:00:00:01:01", "count eth1"] {
            let line = format!("{line} --engine {engine}");
            holds(&refusal_without_privileges_in(Some(&site.tester), &line), &["root", "CAP_"]);
        }
    }
    assert!(!site.tester.run("ip link").contains("xdp"), "a program is left at a port");
}

#[test]
fn a_refused_run_leaves_nothing_in_the_kernel() {
    if !has_namespaces() {
        return;
    }
    let home = Namespace::new();
    let before = (home.interfaces(), home.abstract_sockets());
    for line in ["ramp --size 9216", "send --cores 4095", "ramp --ports lo,lo"] {
        linerate(line).inside(&home).run().refusal(2);
        assert_eq!((home.interfaces(), home.abstract_sockets()), before, "{line}");
    }
}

#[test]
fn parameters_that_make_no_sense_are_refused_before_anything_is_sent() {
    if !has_namespaces() {
        return;
    }
    refuses("ramp --dut sink --step 1ms", &["step", "10ms"]);
    refuses("saturate --dut sink --duration 0", &["--duration must be greater than 0"]);
}
