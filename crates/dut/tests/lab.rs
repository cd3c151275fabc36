//! A lab as a whole: what it says of itself, where its work runs, who can look inside, and that
//! nothing of it remains.

#![allow(clippy::unwrap_used)] // a test may panic

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use dut::DutSpec;
use lab::HolderError;
use lab::holder::{self, Purpose, Server, Side};
use lab::{Destination, Error, Lab, PortsError, RealPorts, check_machine, open_port};
use libbpf_rs::query::{LinkInfoIter, ProgInfoIter};
use support::{RawPort, can_build_labs, start};

#[test]
fn the_configuration_is_what_was_asked_for() {
    if !can_build_labs() {
        return;
    }
    let lab = start("linux-router:gro=off");
    let mut found = lab.dut_configuration().unwrap();
    assert_eq!(found.remove("napi-core"), Some(lab.placement().dut.to_string()));
    let found: Vec<_> = found.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    insta::assert_snapshot!(found.join("\n"), @r"
    gro: off
    ipv4-forwarding: on
    ipv6-forwarding: on
    mtu: 1500
    napi-nice: -20
    routes: 6 IPv4, 4 IPv6
    static-neighbours: 4
    threaded-napi: true
    tx-checksum-offload: off
    xdp: native
    ");
}

#[test]
fn a_jail_routes_in_the_place_of_the_device() {
    if !can_build_labs() {
        return;
    }
    let bare = start("linux-router").dut_configuration().unwrap();
    let jailed = start("linux-router:jail=on").dut_configuration().unwrap();
    for setting in ["ipv4-forwarding", "ipv6-forwarding", "routes", "static-neighbours"] {
        assert_eq!(jailed[&format!("jail {setting}")], bare[setting], "{setting}");
        assert_ne!(jailed[setting], bare[setting], "{setting}: outside of the jail");
    }
}

#[test]
fn a_device_is_the_same_after_a_reset() {
    if !can_build_labs() {
        return;
    }
    for dut in [
        "linux-router",
        "linux-router:gro=off",
        "linux-router:jail=on",
        "xdp-router",
        "linux-bridge",
        "xdp-xconnect",
    ] {
        let lab = start(dut);
        let before = lab.dut_configuration().unwrap();
        lab.reset().unwrap();
        assert_eq!(lab.dut_configuration().unwrap(), before, "{dut}");
        let core = Some(lab.placement().dut);
        assert!(lab.dut_threads().unwrap().iter().all(|thread| thread.core == core), "{dut}");
    }
}

#[test]
fn a_device_has_the_queues_asked_for_each_on_its_core() {
    if !can_build_labs() {
        return;
    }
    let online = lab::placement::online().unwrap();
    let (first, last) = (online[0], online[online.len() - 1]);
    for dut in ["linux-router", "linux-bridge"] {
        let lab = start(&format!("{dut}:queues=3,cores={first}+{last}"));
        let queues =
            lab.dut_namespace().run(|| Ok(fs::read_dir("/sys/class/net/dut0/queues").unwrap().count()));
        assert_eq!(queues.unwrap(), 3 + 1, "three to receive by, one to send by");
        let cores: Vec<_> = lab.dut_threads().unwrap().iter().map(|thread| thread.core).collect();
        assert_eq!(cores, [first, last, first, first, last, first].map(Some), "{dut}");
    }
}

#[test]
fn what_was_added_to_a_device_is_there_after_a_reset() {
    if !can_build_labs() {
        return;
    }
    let lab = start("linux-router");
    let run = |script: &str| {
        let output =
            lab.dut_namespace().run(|| Ok(Command::new("sh").args(["-ec", script]).output().unwrap()));
        let output = output.unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run("ip route add 192.0.2.0/24 via 100.65.2.2 metric 7
         ip route add 203.0.113.0/24 dev dut1 table 100
         ip route add blackhole 198.51.100.0/24
         ip -6 route add 2001:db8::/64 via 2001:2:0:2::2
         ip address add 2001:db8:1::1/64 dev dut0
         ip neighbour add 100.65.2.77 lladdr 02:00:00:00:00:77 dev dut1 nud permanent");
    // The kernel notices a while later that a link is up: until then it says so of routes, and of links.
    let state = || {
        let text =
            run("ip route show table all; ip -6 route show table all; ip neighbour show nud permanent; \
                        ip -6 -oneline address");
        let mut lines: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
        lines.sort();
        lines
    };
    let settled = |right: &dyn Fn(&[String]) -> bool| {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let state = state();
            if right(&state) || Instant::now() > deadline {
                return state;
            }
            thread::sleep(Duration::from_millis(20));
        }
    };
    let before = settled(&|state| !state.iter().any(|line| line.contains("linkdown")));
    lab.reset().unwrap();
    assert_eq!(settled(&|state| state == before), before);
}

#[test]
fn ports_are_described() {
    if !can_build_labs() {
        return;
    }
    for (dut, next_hops) in [
        ("linux-router", ["02:4c:6e:72:01:01", "02:4c:6e:72:02:01"]),
        ("xdp-xconnect", ["02:4c:6e:72:02:02", "02:4c:6e:72:01:02"]),
        ("sink", ["02:4c:6e:72:01:01", "02:4c:6e:72:02:01"]),
    ] {
        let lab = start(dut);
        let ports = lab.ports();
        assert_eq!([0, 1].map(|port: usize| ports[port].name.clone()), ["port0", "port1"]);
        assert_eq!([0, 1].map(|port: usize| ports[port].next_hop_mac.to_string()), next_hops, "{dut}");
        assert_eq!((ports[0].speed_bps, ports[0].driver.as_deref()), (Some(10e9), Some("veth")));
    }
}

#[test]
fn the_device_works_on_its_own_core_and_again_after_xdp_came_and_went() {
    if !can_build_labs() {
        return;
    }
    let lab = start("linux-router");
    let core = Some(lab.placement().dut);
    let threads = lab.pin().unwrap();
    let on_core = |lab: &Lab| {
        let threads = lab.dut_threads().unwrap();
        assert_eq!(threads.len(), 2, "{threads:?}");
        threads.iter().all(|thread| thread.core == core)
    };
    assert!(on_core(&lab), "{threads:?}");
    // Without GRO and XDP there is no NAPI; with GRO again, new threads on any core.
    for state in ["off", "on"] {
        let command = ["ethtool", "-K", "dut0", "gro", state].map(str::to_owned);
        if !holder_command(&lab, Side::Dut, &command) {
            eprintln!("skipped: there is no ethtool to switch GRO with");
            return;
        }
    }
    lab.pin().unwrap();
    assert!(on_core(&lab));
}

/// Runs a command inside a lab, through its socket.
fn holder_command(lab: &Lab, side: Side, command: &[String]) -> bool {
    let name = format!("test-{}-command", std::process::id());
    let _server = Server::start(&name, lab, Purpose::Bench).unwrap();
    holder::execute(&name, side, command).is_ok_and(|status| status.success())
}

#[test]
fn two_labs_do_not_disturb_each_other() {
    if !can_build_labs() {
        return;
    }
    let (first, second) = (start("sink"), start("sink"));
    let pids =
        |lab: &Lab| lab.dut_threads().unwrap().iter().map(|thread| thread.pid).collect::<BTreeSet<_>>();
    assert!(pids(&first).is_disjoint(&pids(&second)));
    let port = &first.ports()[0];
    RawPort::open(&first, port).send(&[port.next_hop_mac.0.as_slice(), &[0; 54]].concat());
    std::thread::sleep(Duration::from_millis(20));
    let frames = |lab: &Lab| lab.dut_counters().unwrap().unwrap()[0].frames;
    assert_eq!((frames(&first), frames(&second)), (1, 0));
}

#[test]
fn a_router_answers_its_neighbour() {
    if !can_build_labs() {
        return;
    }
    for dut in ["linux-router", "xdp-router"] {
        let lab = start(dut);
        for (ours, theirs) in [("100.65.1.2", "100.65.1.1"), ("2001:2:0:2::2", "2001:2:0:2::1")] {
            // Nobody listens there, and the refusal comes back as an ICMP message.
            let answer = lab.tester_namespace().run(|| Ok(refusal(ours, theirs))).unwrap();
            assert_eq!(answer, Some(std::io::ErrorKind::ConnectionRefused), "{dut} {theirs}");
        }
    }
}

fn refusal(from: &str, to: &str) -> Option<std::io::ErrorKind> {
    let address = |text: &str, port| SocketAddr::new(text.parse::<IpAddr>().unwrap(), port);
    let socket = UdpSocket::bind(address(from, 0)).unwrap();
    socket.connect(address(to, 4)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    socket.send(b"anybody there?").unwrap();
    socket.recv(&mut [0; 64]).err().map(|error| error.kind())
}

#[test]
fn others_can_look_inside_a_lab_and_take_it_down() {
    if !can_build_labs() {
        return;
    }
    let name = format!("test-{}-hold", std::process::id());
    let lab = start("linux-bridge");
    std::thread::scope(|scope| {
        let held = scope.spawn(|| holder::hold(&name, lab));
        let deadline = Instant::now() + Duration::from_secs(30);
        let info = loop {
            if let Some(info) = holder::list().into_iter().find(|info| info.name == name) {
                break info;
            }
            assert!(Instant::now() < deadline, "the lab is not listed");
        };
        assert_eq!((info.dut.as_str(), info.pid), ("linux-bridge", std::process::id()));
        assert_eq!(info.configuration["gro"], "on");

        let inside = |side, command: &[&str]| {
            holder::execute(&name, side, &command.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
        };
        assert!(inside(Side::Tester, &["test", "-e", "/sys/class/net/port0"]).unwrap().success());
        assert!(inside(Side::Dut, &["test", "-e", "/sys/class/net/bridge"]).unwrap().success());
        assert!(!inside(Side::Tester, &["test", "-e", "/sys/class/net/bridge"]).unwrap().success());
        let here = std::env::current_dir().unwrap();
        let here = format!("test \"$PWD\" = '{}' && test -e Cargo.toml", here.display());
        assert!(inside(Side::Dut, &["sh", "-c", &here]).unwrap().success());
        assert!(matches!(inside(Side::Dut, &["no-such-command"]), Err(HolderError::Command { .. })));
        assert!(matches!(inside(Side::Dut, &[]), Err(HolderError::Command { .. })));

        let taken = Server::start(&name, &start("sink"), Purpose::Hold).unwrap_err();
        assert!(matches!(taken, Error::Holder(HolderError::Taken(_))));

        holder::down(&name).unwrap();
        held.join().unwrap().unwrap();
        assert!(matches!(holder::down(&name), Err(HolderError::Unknown { .. })));
    });
}

#[test]
fn a_lab_of_a_bench_is_not_taken_down_by_others() {
    if !can_build_labs() {
        return;
    }
    let name = format!("test-{}-bench", std::process::id());
    let lab = start("sink");
    let server = Server::start(&name, &lab, Purpose::Bench).unwrap();
    let refused = holder::down(&name).unwrap_err();
    assert!(matches!(refused, HolderError::Refused { .. }), "{refused}");
    drop(server);
    assert!(matches!(holder::down(&name), Err(HolderError::Unknown { .. })));
}

#[test]
fn real_ports_are_checked_and_their_gateways_resolved() {
    if !can_build_labs() {
        return;
    }
    let lab = start("linux-router");
    let open = |names, gateways: [Option<&str>; 2], force| {
        let gateways = gateways.map(|gateway| gateway.map(|text| text.parse().unwrap()));
        lab.tester_namespace().run(|| RealPorts::open(names, gateways, force))
    };
    let both = ["port0", "port1"];
    for gateways in [[Some("100.65.1.1"), Some("100.65.2.1")], [Some("2001:2:0:1::1"), Some("2001:2:0:2::1")]]
    {
        let ports = open(both, gateways, 0).unwrap();
        assert_eq!(ports.ports(), lab.ports());
    }
    let transparent = open(both, [None, None], 0).unwrap();
    assert_eq!(transparent.ports()[0].next_hop_mac, lab.ports()[1].mac);

    let [port, _] = lab.ports();
    for to in [Destination::Mac(port.next_hop_mac), Destination::Gateway("100.65.1.1".parse().unwrap())] {
        let single = lab.tester_namespace().run(|| open_port("port0", to, 0)).unwrap();
        assert_eq!(&single, port);
    }

    let refused = |names, gateways| match open(names, gateways, 0) {
        Err(Error::Ports(error)) => error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(refused(["port0", "port0"], [None, None]), PortsError::Same(_)));
    assert!(matches!(refused(["port0", "eth9"], [None, None]), PortsError::Missing { .. }));
    assert!(matches!(refused(["lo", "port0"], [None, None]), PortsError::NotEthernet(_)));
    let silent = refused(both, [Some("100.65.1.77"), None]).to_string();
    assert!(silent.contains("ARP got none within 3 s"), "{silent}");
    let elsewhere = refused(both, [Some("2001:db8::1"), None]).to_string();
    assert!(elsewhere.contains("cannot send to it"), "{elsewhere}");

    let route = ["ip", "route", "add", "default", "via", "100.65.2.1"].map(str::to_owned);
    if !holder_command(&lab, Side::Tester, &route) {
        eprintln!("skipped: there is no ip to add a default route with");
        return;
    }
    let in_use = refused(both, [None, None]).to_string();
    assert!(in_use.starts_with("'port1' carries the default route"), "{in_use}");
    assert!(open(both, [None, None], 2).is_ok());
}

#[test]
fn this_machine_is_checked() {
    let checks = check_machine();
    for check in &checks {
        assert_eq!(check.level == lab::Level::Good, check.remedy.is_none(), "{check:?}");
    }
    if can_build_labs() {
        let missing: Vec<_> = checks.iter().filter(|check| check.level == lab::Level::Missing).collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert!(checks.iter().any(|check| check.name == "threaded NAPI"));
    }
}

#[test]
fn a_frame_size_that_no_lab_carries_is_refused() {
    if !can_build_labs() {
        return;
    }
    for size in [0, 63, 9217] {
        let placement =
            lab::Placement::choose(&results::record::Topology::flat(&[0]), &Default::default()).unwrap();
        let config = lab::Config {
            dut: Arc::new("sink".parse::<DutSpec>().unwrap()),
            placement,
            max_frame_size: size,
        };
        let refused = Lab::start(&config).unwrap_err().to_string();
        assert!(refused.starts_with(&format!("frames of {size} bytes do not fit")), "{refused}");
    }
}

#[test]
fn without_privileges_the_missing_capability_is_named() {
    let refused = std::thread::spawn(|| {
        drop_capabilities();
        let checks = check_machine();
        let of = |name: &str| checks.iter().find(|check| check.name == name).cloned().unwrap();
        (of("capabilities"), of("network namespaces"))
    });
    let (capabilities, namespaces) = refused.join().unwrap();
    assert!(capabilities.found.contains("CAP_BPF"), "{capabilities:?}");
    assert_eq!(namespaces.level, lab::Level::Missing);
    assert_eq!(namespaces.remedy.as_deref(), Some("Run it as root (sudo), or with CAP_SYS_ADMIN"));
}

/// Takes all capabilities from the calling thread, and from those that it starts.
fn drop_capabilities() {
    const VERSION_3: u32 = 0x2008_0522;
    let header = [VERSION_3, 0];
    let none = [0_u32; 6];
    // SAFETY: header and data have the layout that version 3 prescribes.
    let answer = unsafe { nix::libc::syscall(nix::libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
    assert_eq!(answer, 0);
}

/// Set in the process that shall be killed.
const VICTIM: &str = "LINERATE_TEST_VICTIM";

#[test]
fn nothing_remains_after_kill_9() {
    if !can_build_labs() {
        return;
    }
    if let Ok(name) = std::env::var(VICTIM) {
        let lab = start("calibrated:rate=1kpps");
        let _server = Server::start(&name, &lab, Purpose::Bench).unwrap();
        println!(
            "pids {}",
            lab.dut_threads().unwrap().iter().map(|t| t.pid.to_string()).collect::<Vec<_>>().join(" ")
        );
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let before = Kernel::look();
    let name = format!("test-{}-victim", std::process::id());
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "nothing_remains_after_kill_9", "--nocapture"])
        .env(VICTIM, &name)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines().map(Result::unwrap);
    let threads = lines.find_map(|line| line.strip_prefix("pids ").map(str::to_owned)).unwrap();
    let threads: Vec<i32> = threads.split(' ').map(|pid| pid.parse().unwrap()).collect();
    let during = Kernel::look();
    let holds = |kernel: &Kernel| kernel.of(victim.id());
    assert_eq!(threads.len(), 2);
    assert!(is_running(threads[0]) && is_listed(&name));
    let (links, programs) = holds(&during);
    assert!(links.len() == 2 && programs.len() == 1, "{links:?} {programs:?}");
    assert!(before.links.is_disjoint(&links) && before.programs.is_disjoint(&programs));

    victim.kill().unwrap();
    victim.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    let remains = || {
        let after = Kernel::look();
        // A thread that receives for an interface ends with the interface.
        (threads.iter().any(|pid| is_running(*pid)) || is_listed(&name))
            || !after.links.is_disjoint(&links)
            || !after.programs.is_disjoint(&programs)
    };
    while remains() {
        assert!(Instant::now() < deadline, "something remains of {name}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn is_running(pid: i32) -> bool {
    fs::exists(format!("/proc/{pid}")).unwrap()
}

fn is_listed(name: &str) -> bool {
    fs::read_to_string("/proc/net/unix").unwrap().contains(name)
}

/// The BPF links and programs that the kernel holds, by id.
struct Kernel {
    links: BTreeSet<u32>,
    programs: BTreeSet<u32>,
}

impl Kernel {
    fn look() -> Self {
        Self {
            links: LinkInfoIter::default().map(|link| link.id).collect(),
            programs: ProgInfoIter::default().map(|program| program.id).collect(),
        }
    }

    /// Those that process `pid` holds by file descriptors.
    fn of(&self, pid: u32) -> (BTreeSet<u32>, BTreeSet<u32>) {
        let (mut links, mut programs) = (BTreeSet::new(), BTreeSet::new());
        for descriptor in fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap().flatten() {
            let text = fs::read_to_string(descriptor.path()).unwrap_or_default();
            let field = |name: &str| {
                text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u32>().ok())
            };
            links.extend(field("link_id:"));
            programs.extend(field("prog_id:"));
        }
        (&links & &self.links, &programs & &self.programs)
    }
}
