//! Facts, trials and questions of real interfaces: pairs of veths in a network namespace of the test's own.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::net::{IpAddr, UdpSocket};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::Uid;
use ports::{Attached, Engine, Questions, Sending, Severity};
use results::record::XdpFeature;
use wire::MacAddress;

const MAC: MacAddress = MacAddress([2, 0, 0, 0, 1, 2]);

/// Runs `test` in a network namespace with a veth `eth1`, whose other end is `far1`; both are up.
fn with_veth(test: impl FnOnce() + Send + 'static) {
    if !Uid::effective().is_root() {
        println!("skipped: network namespaces need root");
        return;
    }
    let inside = move || {
        if let Err(errno) = unshare(CloneFlags::CLONE_NEWNET) {
            println!("skipped: no network namespace can be made: {errno}");
            return;
        }
        run("ip link set lo up");
        run("ip link add eth1 address 02:00:00:00:01:02 type veth peer name far1 address 02:00:00:00:01:01");
        run("sysctl -qw net.ipv6.conf.eth1.accept_dad=0 net.ipv6.conf.far1.accept_dad=0");
        run("ethtool -K far1 gro on");
        run("ip link set far1 up");
        run("ip link set eth1 up");
        test();
    };
    thread::spawn(inside).join().unwrap();
}

fn run(line: &str) {
    let status = Command::new("sh").args(["-c", line]).status().unwrap();
    assert!(status.success(), "{line}");
}

#[test]
fn facts_are_those_that_ethtool_and_ip_show() {
    with_veth(|| {
        run("ip link set eth1 mtu 1400");
        let facts = ports::read("eth1").unwrap();
        assert_eq!((facts.name.as_str(), facts.driver.as_deref()), ("eth1", Some("veth")));
        assert!(facts.up && facts.carrier);
        assert_eq!((facts.speed_mbps, facts.full_duplex, facts.mtu), (Some(10_000), Some(true), 1400));
        assert_eq!(facts.queues.map(|queues| queues.transmit), Some(1));
        assert!(facts.is_on("rx-checksum") && !facts.is_on("rx-lro"), "{:?}", facts.offloads);
        assert_eq!((facts.controller.as_ref(), facts.xdp_program.as_ref()), (None, None));
        assert_eq!(ports::findings(&facts), []);
        assert!(matches!(ports::read("eth9"), Err(ports::Error::Missing(_))));
    });
}

#[test]
fn a_port_that_is_down_or_in_a_bridge_is_refused() {
    with_veth(|| {
        run("ip link set far1 down");
        let cause = |name| {
            let found = ports::findings(&ports::read(name).unwrap());
            assert_eq!(found[0].severity, Severity::Refuse);
            found[0].to_string()
        };
        assert!(cause("far1").contains("'ip link set far1 up'"));
        assert!(cause("eth1").contains("no link"));
        assert!(!ports::wait_for_carrier(&["eth1"], Duration::from_millis(50)).unwrap());
        run("ip link set far1 up");
        assert!(ports::wait_for_carrier(&["eth1", "far1"], Duration::from_secs(10)).unwrap());
        run("ip link add br0 type bridge");
        run("ip link set eth1 master br0");
        assert!(cause("eth1").contains("bridge br0"), "{}", cause("eth1"));
    });
}

#[test]
fn a_program_is_attached_as_long_as_it_is_kept_and_belongs_to_somebody() {
    with_veth(|| {
        let index = nix::net::if_::if_nametoindex("eth1").unwrap();
        let attached = Attached::to(index).unwrap();
        let facts = ports::read("eth1").unwrap();
        assert_eq!(facts.xdp_program.as_ref().map(|program| program.mode.as_str()), Some("native"));
        let found = ports::findings(&facts);
        assert!(found[0].remedy.contains("ip link set dev eth1 xdp off"), "{found:?}");
        assert!(Attached::to(index).is_err(), "two programs at one interface");
        drop(attached);
        assert_eq!(ports::read("eth1").unwrap().xdp_program, None);
    });
}

#[test]
fn a_veth_transmits_redirected_frames_only_where_its_other_end_takes_them() {
    with_veth(|| {
        let facts = ports::read("eth1").unwrap();
        if facts.xdp_features.is_none() {
            println!("skipped: this kernel does not tell XDP features");
            return;
        }
        assert_eq!(facts.has(XdpFeature::NdoXmit), Some(true));
        let verdict = ports::can_send(&facts, MAC).unwrap();
        assert_eq!(ports::choose(&[("eth1", &verdict)]).0, Engine::Kernel);

        run("ethtool -K far1 gro off");
        let facts = ports::read("eth1").unwrap();
        let verdict = ports::can_send(&facts, MAC).unwrap();
        assert!(matches!(&verdict.sending, Sending::No { cause, .. } if cause.contains("other end")));
        assert_eq!(ports::choose(&[("eth1", &verdict)]).0, Engine::AfXdp);
    });
}

#[test]
fn a_trial_of_a_few_frames_tells_where_the_kernel_does_not() {
    with_veth(|| {
        // As a kernel before 6.3 would say it, of a driver whose name says nothing.
        let before_6_3 = || ports::PortFacts {
            xdp_features: None,
            driver: Some("other".to_owned()),
            ..ports::read("eth1").unwrap()
        };
        assert_eq!(Sending::of(&before_6_3()), Sending::Unknown);
        assert!(ports::probe("eth1", MAC).unwrap());
        let verdict = ports::can_send(&before_6_3(), MAC).unwrap();
        assert_eq!((&verdict.sending, verdict.needs_program), (&Sending::Yes, false));

        // Without NAPI at its other end, a veth drops what is redirected to it.
        run("ethtool -K far1 gro off");
        assert!(!ports::probe("eth1", MAC).unwrap());
    });
}

#[test]
fn a_driver_that_takes_a_program_and_transmits_nothing_is_told_with_the_remedy_and_auto_takes_af_xdp() {
    with_veth(|| {
        run("ethtool -K far1 gro off");
        let eth1 = ports::read("eth1").unwrap();
        let driver = Some("other".to_owned());
        // A kernel before 6.3 says nothing of it, and this one says that it takes programs.
        let silent = ports::PortFacts { xdp_features: None, driver: driver.clone(), ..eth1.clone() };
        let telling = ports::PortFacts { driver, ..eth1 };
        let index = nix::net::if_::if_nametoindex("eth1").unwrap();
        let refusal = |facts: &ports::PortFacts, clue: &str| {
            let verdict = ports::can_send(facts, MAC).unwrap();
            let Sending::No { cause, remedy } = &verdict.sending else { panic!("{verdict:?}") };
            assert!(cause.contains("eth1") && cause.contains(clue), "{cause}");
            assert!(remedy.contains("--engine af_xdp"), "{remedy}");
            let (engine, why) = ports::choose(&[("eth1", &verdict)]);
            assert_eq!((engine, why), (Engine::AfXdp, format!("af_xdp, because {cause}")));
        };
        refusal(&silent, "");
        refusal(&telling, "");
        assert_eq!(ports::read("eth1").unwrap().xdp_program, None, "nothing stays at the interface");
        // With a program there already, only frames tell.
        let _attached = Attached::to(index).unwrap();
        let with_program = ports::PortFacts {
            xdp_features: None,
            driver: Some("other".to_owned()),
            ..ports::read("eth1").unwrap()
        };
        refusal(&with_program, "none of the frames redirected to eth1 for a trial left it");
    });
}

#[test]
fn an_address_that_no_port_has_is_named_with_the_command_that_gives_it() {
    with_veth(|| {
        run("ip address add 10.9.0.1/24 dev far1");
        run("ip address add fd09::1/64 dev far1 nodad");
        let index = nix::net::if_::if_nametoindex("eth1").unwrap();
        let questions = Questions::listen(&[("eth1", index)]).unwrap();
        let own = ports::own_addresses().unwrap();
        assert!(own.contains(&"10.9.0.1".parse::<IpAddr>().unwrap()), "{own:?}");
        let asked = ["10.9.0.2", "fd09::2"].map(|address| address.parse::<IpAddr>().unwrap());
        for address in asked {
            let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            UdpSocket::bind(any).unwrap().send_to(&[0], (address, 9)).unwrap();
        }
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut found = BTreeSet::new();
        while !asked.iter().all(|address| found.contains(address)) {
            assert!(Instant::now() < deadline, "{found:?}");
            for question in questions.unanswered(&own) {
                assert_eq!(question.interface, "eth1");
                assert!(question.to_string().contains("dev eth1'"), "{question}");
                found.insert(question.address);
            }
            thread::sleep(Duration::from_millis(10));
        }
    });
}
