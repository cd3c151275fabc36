//! Devices that are other computers: a namespace with an ssh server of its own is configured, measured,
//! counted and put back as it was, however the run ends.

use std::fs;
use std::time::Duration;

use crate::common::sites::Site;
use crate::common::sshd::{Device, has_sshd};
use crate::common::{Finished, Linerate, Running, eventually, has_namespaces, linerate, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use results::Record;
use results::record::{Phase, Status};

/// A short run at a low rate.
const BRIEF: &str = "saturate --ports eth1,eth2 --rate 2kpps --warm-up-duration 300ms --duration 300ms --step 100ms \
                     --drain 100ms --json";
const GATEWAYS: &str = "--gateways 100.65.1.1,100.65.2.1";
const LINUX: &str = "--dut-driver linux --dut-option port0=far1 --dut-option port1=far2";

/// A site whose far side is a computer that nobody has configured.
struct Remote {
    site: Site,
    device: Device,
}

impl Remote {
    /// None, with the reason said, where that cannot be.
    fn new() -> Option<Self> {
        Self::of(Site::cables)
    }

    fn of(site: fn() -> Site) -> Option<Self> {
        if !has_namespaces() || !has_sshd() {
            return None;
        }
        let site = site();
        let device = Device::start(&site);
        Some(Self { site, device })
    }

    fn run(&self, line: &str) -> Linerate<'_> {
        self.device.client(linerate(line), &self.site)
    }

    /// All that a driver may change there.
    fn state(&self) -> Vec<String> {
        let state = self.site.far.run(
            "ip -o link | grep -v mgmt1 | sed 's/ \\(state\\|qlen\\|mode\\) [^ ]*//g'
             ip -o address | sed 's/ *valid_lft.*//'
             ip route show table all; ip -6 route show | grep -v '^fe80' || true
             ip neighbour show nud permanent; ip -6 neighbour show nud permanent
             sysctl net.ipv4.ip_forward net.ipv6.conf.all.forwarding net.ipv4.ip_default_ttl
             ethtool -k far1; ethtool -k far2",
        );
        state.lines().map(str::to_owned).collect()
    }

    /// What is not as in `before`, after some time to undo.
    fn changed(&self, before: &[String]) -> Vec<String> {
        let mut changed = Vec::new();
        wait_until(Duration::from_secs(10), || {
            let now = self.state();
            let new = now.iter().filter(|line| !before.contains(line)).map(|line| format!("+{line}"));
            let gone = before.iter().filter(|line| !now.contains(line)).map(|line| format!("-{line}"));
            changed = new.chain(gone).collect();
            changed.is_empty()
        });
        changed
    }
}

/// The record of a run whose frames passed.
fn passes(finished: &Finished) -> Result<Record, String> {
    assert!(finished.status.success(), "{}", finished.stderr);
    let record = finished.record();
    for direction in &record.directions {
        let (offered, forwarded) = (direction.offered, direction.forwarded);
        if offered < 300 || forwarded * 10 < offered * 9 {
            return Err(format!("{}: {forwarded} of {offered} passed", direction.name));
        }
    }
    Ok(record)
}

#[test]
fn a_router_is_configured_measured_counted_and_put_back() {
    let Some(remote) = Remote::new() else { return };
    let before = remote.state();
    let measured = eventually(|| {
        let line = format!("{BRIEF} {GATEWAYS} --dut-host dut {LINUX} --dut-option ip=both");
        passes(&remote.run(&line).run())
    });
    assert_eq!(remote.changed(&before), [""; 0]);
    let Some(record) = measured else { return };

    assert_eq!((record.status, record.dut.name.as_str()), (Status::Complete, "linux"));
    assert_eq!(record.dut.parameters["port0"], "far1");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert!(record.dut.configuration["kernel"].contains(kernel.trim()), "{:?}", record.dut.configuration);
    assert_eq!(record.dut.configuration["forwarding"], "IPv4 1, IPv6 1");
    let remote = record.dut.remote.as_deref().unwrap();
    assert_eq!((remote.host.as_str(), remote.driver.as_str(), &remote.source), ("dut", "linux", &None));
    assert_eq!(
        (remote.options["mac0"].as_str(), remote.options["mode"].as_str()),
        ("02:00:00:00:01:02", "router")
    );
    let counted = |name: &str| remote.counters[name].meanwhile().unwrap();
    let [direction, ..] = record.directions.as_slice() else { panic!() };
    assert!((direction.forwarded..direction.forwarded + 64).contains(&counted("port0 received")));
    assert!((direction.forwarded..direction.forwarded + 64).contains(&counted("port1 sent")));
    assert!(counted("IPv4 ForwDatagrams") >= direction.forwarded, "{:?}", remote.counters);
    let places: Vec<_> = record.cross_check[0].points.iter().map(|point| point.place.as_str()).collect();
    assert_eq!(places, ["sent by eth1", "received by far1", "sent by far2", "received by eth2"]);
    assert!(record.cross_check[0].agrees, "{:?}", record.cross_check);
}

#[test]
fn a_bridge_settings_and_commands_of_the_user_are_made_and_put_back() {
    let Some(remote) = Remote::new() else { return };
    let before = remote.state();
    let log = remote.device.file("log of commands").display().to_string();
    let line = format!(
        "{BRIEF} --bidirectional --dut-host dut {LINUX} --dut-option mode=bridge --dut-option features=txvlan=off \
         --dut-option sysctls=net.ipv4.ip_default_ttl=77"
    );
    let run = remote
        .run(&line)
        .arg("--dut-option")
        .arg(format!("first=sysctl -n net.ipv4.ip_default_ttl > '{log}'"))
        .arg("--dut-option")
        .arg(format!(
            "last=sysctl -n net.ipv4.ip_default_ttl >> '{log}'; ip -o link show master linerate0 >> '{log}'"
        ))
        .arg("--dut-option")
        .arg(format!("undo_last=echo undone >> '{log}'"));
    let measured = eventually(|| passes(&run.run()));
    assert_eq!(remote.changed(&before), [""; 0]);
    let Some(record) = measured else { return };
    assert!(!record.dut.configuration["port 0 features"].contains("tx-vlan-offload"), "{:?}", record.dut);
    let log = fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!((lines[0], lines[1], lines[4]), ("64", "77", "undone"), "{log}");
    assert!(lines[2].contains("far1") && lines[3].contains("far2"), "{log}");
}

#[test]
fn however_a_run_ends_the_device_is_put_back() {
    let Some(remote) = Remote::new() else { return };
    let before = remote.state();
    let long = format!(
        "saturate --ports eth1,eth2 {GATEWAYS} --rate 2kpps --warm-up-duration 300ms --duration 60s --step 100ms \
         --drain 200ms --json --dut-host dut {LINUX}"
    );
    let started = || -> Running {
        let mut run = remote.run(&long).start();
        run.wait_for_record(|record| record.samples.iter().any(|sample| sample.phase == Phase::Hold));
        assert_ne!(remote.state(), before, "nothing was configured");
        run
    };
    let run = started();
    run.signal(Signal::SIGINT);
    let finished = run.finish();
    let record = finished.record();
    assert_eq!(record.status, Status::Interrupted, "{}", finished.stderr);
    assert!(record.dut.remote.unwrap().counters["port0 received"].meanwhile() > Some(0));
    assert_eq!(remote.changed(&before), [""; 0], "Ctrl-C");

    let run = started();
    run.signal(Signal::SIGKILL);
    assert_eq!(run.finish().status.code(), None);
    assert_eq!(remote.changed(&before), [""; 0], "kill -9");

    // The connection dies under it.
    let run = started();
    let ssh = children(run.pid());
    assert_eq!(ssh.len(), 1, "one connection");
    kill(Pid::from_raw(ssh[0]), Signal::SIGKILL).unwrap();
    assert_eq!(remote.changed(&before), [""; 0], "ssh killed");
    run.signal(Signal::SIGINT);
    let finished = run.finish();
    let notes = finished.record().notes.join("\n");
    assert!(notes.contains("what the device counted is not known: dut: "), "{notes}");
    assert!(finished.stderr.contains("\nlinerate: dut: the connection ended"), "{}", finished.stderr);
}

/// The processes that `pid` started.
fn children(pid: u32) -> Vec<i32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    list.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

#[test]
fn what_cannot_be_reached_or_is_not_fit_is_told_and_left_as_it_is() {
    let Some(remote) = Remote::new() else { return };
    let before = remote.state();
    let refusal = |code: i32, flags: &str| {
        let finished = remote.run(&format!("{BRIEF} {GATEWAYS} {flags}")).run();
        let text = finished.refusal(code).to_owned();
        assert!(finished.records().is_empty());
        text
    };
    let unreachable = |host: &str| refusal(1, &format!("--dut-host {host} {LINUX}"));
    let stranger = unreachable("stranger");
    assert!(
        stranger.contains("cannot reach stranger by ssh: ")
            && stranger.contains("Log in once by hand (ssh stranger)"),
        "{stranger}"
    );
    let locked = unreachable("locked");
    assert!(
        locked.contains("Permission denied (")
            && locked.contains("Make 'ssh -o BatchMode=yes locked true' work"),
        "{locked}"
    );
    assert!(unreachable("closed").contains("refused. Start its ssh server"));

    let linux = |options: &str| refusal(1, &format!("--dut-host dut --dut-driver linux {options}"));
    let login = linux("--dut-option port0=far1 --dut-option port1=mgmt1");
    assert!(
        login.contains("does not come over them (it does over mgmt1). Reach it by"),
        "{login}"
    );
    let missing = linux("--dut-option port0=far1 --dut-option port1=far9");
    assert!(
        missing.contains("both interfaces are there (no far9; there are ")
            && missing.contains("far2"),
        "{missing}"
    );
    let failed = linux("--dut-option port0=far1 --dut-option port1=far2 --dut-option sysctls=no.such=1");
    assert!(
        failed.contains("set the kernel's settings: ") && failed.contains("linerate remote plan"),
        "{failed}"
    );
    let other =
        refusal(1, "--dut-host dut --dut-driver freebsd --dut-option port0=far1 --dut-option port1=far2");
    assert!(other.contains("it runs FreeBSD (Linux "), "{other}");

    let misuse = |flags: &str| refusal(2, flags);
    // What was configured before the port turned out to be none is put back.
    let elsewhere = BRIEF.replace("eth1,eth2", "eth1,eth9");
    let port = remote.run(&format!("{elsewhere} {GATEWAYS} --dut-host dut {LINUX}"));
    assert!(port.run().refusal(2).contains("no interface 'eth9'"));
    assert!(
        misuse("--dut-host dut --dut-driver linux --dut-option port0=far1").contains("must know 'port1'")
    );
    assert!(
        misuse(&format!("--dut-host dut {LINUX} --dut-option prot=1"))
            .contains("no option 'prot': it has port0")
    );
    assert!(misuse("--dut-host dut --dut-driver openbsd").contains("known are linux, freebsd, vpp"));
    assert!(misuse("--dut-host dut").contains("--dut-driver"));
    let bare = remote.run(&format!("{BRIEF} --dut-host dut {LINUX}")).run();
    assert!(bare.refusal(2).contains("give --gateways 100.65.1.1,100.65.2.1"));
    assert!(misuse(&format!("--dut-host=-oProxyCommand=id {LINUX}")).contains("is no host"));
    assert_eq!(remote.changed(&before), [""; 0]);
}

#[test]
fn a_device_is_looked_at_without_changing_it() {
    let Some(remote) = Remote::new() else { return };
    let before = remote.state();
    let check = format!("remote check --dut-host dut {LINUX}");
    let found = remote.run(&format!("{check} --json")).run().well().json();
    assert_eq!((&found["host"], &found["driver"]), (&"dut".into(), &"linux".into()));
    assert!(found["fingerprint"]["kernel"].as_str().unwrap().starts_with("Linux "));
    assert!(found["counters"]["port0 received"].is_u64(), "{found}");
    let text = remote.run(&check).run().well().stdout;
    assert!(text.starts_with("dut can be configured by linux\n") && text.contains("port1 sent"), "{text}");
    assert_eq!(remote.changed(&before), [""; 0]);

    // sudo keeps none of the environment; what ssh came over is known all the same.
    remote.device.fake("sudo", "shift; exec env -i PATH=\"$PATH\" \"$@\"");
    let login = "remote check --dut-host dut --dut-sudo --dut-driver linux --dut-option port0=mgmt1 --dut-option port1=far2";
    assert!(remote.run(login).run().refusal(1).contains("it does over mgmt1"));
    let calls = fs::read_to_string(remote.device.file("calls")).unwrap();
    assert!(calls.starts_with("sudo -n /bin/sh -c "), "{calls}");

    let plan = linerate(&format!("remote plan {LINUX} --dut-option mac0=02::")).run().well().stdout;
    for line in [
        "port0=far1",
        "sysctl -qw net.ipv4.ip_forward=1",
        "# undo: sysctl -qw net.ipv4.ip_forward=\"$before\"",
        "# know the tester's port 0",
    ] {
        assert!(plan.lines().any(|other| other == line), "no '{line}' in {plan}");
    }
    assert!(!plan.contains("IPv6") && !plan.contains("# know the tester's port 1"), "{plan}");
}

#[test]
fn freebsd_is_called_as_its_manuals_say() {
    // Its far side forwards already; what the driver does goes to programs that only note it.
    let Some(remote) = Remote::of(Site::router) else { return };
    let device = &remote.device;
    device.fake("uname", "[ \"$1\" = -s ] && echo FreeBSD || echo FreeBSD 14.0-RELEASE amd64");
    device.fake(
        "ifconfig",
        "case \"$*\" in -a) echo 'em0: flags=8863<UP> metric 0 mtu 1500'; echo '\tinet 192.0.2.2 netmask 0xffffff00' ;;
         -l) echo em0 ix0 ix1 ;;
         ix?) echo \"$1: flags=8822<BROADCAST,SIMPLEX> metric 0 mtu 1500\"; echo '\toptions=4e53fbb<RXCSUM,TXCSUM,TSO4,LRO,WOL>' ;;
         em0|'ix'*) ;; *) exit 1 ;; esac",
    );
    device.fake("route", "case \"$*\" in *get*) echo '  interface: em0' ;; esac");
    device.fake("sysctl", "case \"$*\" in '-n net.inet.ip.forwarding') echo 0 ;; '-n kern.random.harvest.mask') echo 511 ;; esac");
    device.fake(
        "netstat",
        "case \"$*\" in *-rn*) echo 'default 192.0.2.1 UGS em0' ;;
         *-I*) n=$(cat $0.n 2>/dev/null || echo 0); n=$((n + 1)); echo $n > $0.n
             echo 'Name Mtu Network Address Ipkts Ierrs Idrop Ibytes Opkts Oerrs Obytes Coll Drop'
             echo \"ix0 1500 <Link#1> 00:25:90:aa:bb:cc $((n * 100)) 0 $n 6400 $((n * 50)) 0 3200 0 3\"
             echo 'ix0 - 100.65.1.0/24 100.65.1.1 7 - - 448 7 - 448 - -' ;;
         *-s*ip) echo '\t1234567 packets forwarded (1200000 packets fast forwarded)'; echo '\t1 packet not forwardable' ;; esac",
    );
    for name in ["arp", "pfctl", "kldstat", "freebsd-version"] {
        device.fake(name, "case \"$*\" in *info*) echo 'Status: Enabled for 0 days 00:01:02' ;; esac");
    }
    let line = format!(
        "{BRIEF} {GATEWAYS} --dut-host dut --dut-driver freebsd --dut-option port0=ix0 --dut-option port1=ix1 \
         --dut-option pf=off --dut-option offloads=off --dut-option harvest_mask=351"
    );
    let Some(record) = eventually(|| {
        let _ = fs::remove_file(device.file("calls"));
        passes(&remote.run(&line).run())
    }) else {
        return;
    };
    let applied = [
        "pfctl -q -d",
        "ifconfig ix0 -tso4",
        "ifconfig ix0 -lro",
        "ifconfig ix1 -tso4",
        "ifconfig ix1 -lro",
        "ifconfig ix0 up",
        "ifconfig ix1 up",
        "sysctl net.inet.ip.forwarding=1",
        "ifconfig ix0 inet 100.65.1.1/24 alias",
        "ifconfig ix1 inet 100.65.2.1/24 alias",
        "route -q add -net 16.0.0.0/8 100.65.1.2",
        "route -q add -net 48.0.0.0/8 100.65.2.2",
        "arp -s 100.65.1.2 02:00:00:00:01:02",
        "arp -s 100.65.2.2 02:00:00:00:02:02",
        "sysctl kern.random.harvest.mask=351",
    ];
    let undone = [
        "sysctl kern.random.harvest.mask=511",
        "arp -d 100.65.2.2",
        "arp -d 100.65.1.2",
        "route -q delete -net 48.0.0.0/8 100.65.2.2",
        "route -q delete -net 16.0.0.0/8 100.65.1.2",
        "ifconfig ix1 inet 100.65.2.1 -alias",
        "ifconfig ix0 inet 100.65.1.1 -alias",
        "sysctl net.inet.ip.forwarding=0",
        "ifconfig ix1 down",
        "ifconfig ix0 down",
        "ifconfig ix1 tso4",
        "ifconfig ix1 lro",
        "ifconfig ix0 tso4",
        "ifconfig ix0 lro",
        "pfctl -q -e",
    ];
    assert_calls(device, &applied, &undone);
    let counters = &record.dut.remote.as_ref().unwrap().counters;
    assert!(counters["port0 receive dropped"].meanwhile() > Some(0), "{counters:?}");
    assert_eq!(counters["ip packets forwarded"].after, 1_234_567, "{counters:?}");
    assert_eq!(counters["ip packets not forwardable"].after, 1);
}

/// Whether the device's programs were called as in `applied`, in this order among calls that only ask, and at
/// last as in `undone`.
fn assert_calls(device: &Device, applied: &[&str], undone: &[&str]) {
    let calls = fs::read_to_string(device.file("calls")).unwrap();
    let lines: Vec<&str> = calls.lines().collect();
    let mut rest = lines.iter();
    for wanted in applied {
        assert!(rest.any(|line| line == wanted), "no '{wanted}' there in\n{calls}");
    }
    assert_eq!(lines[lines.len().saturating_sub(undone.len())..], *undone, "{calls}");
}

#[test]
fn vpp_is_called_as_its_documentation_says() {
    let Some(remote) = Remote::of(Site::router) else { return };
    let device = &remote.device;
    device.fake(
        "vppctl",
        "case \"$*\" in
         'show version') echo 'vpp v24.02-release built by root on host' ;;
         'show mode '*) echo \"l3 $3\"; echo \"l3 $4\" ;;
         'show interface address '*) echo \"$4 (dn):\" ;;
         'show interface rx-placement') ;;
         'show interface '*)
             n=$(cat $0.n 2>/dev/null || echo 0); n=$((n + 1)); echo $n > $0.n
             echo '       Name               Idx    State  MTU (L3/IP4/IP6/MPLS)     Counter          Count'
             echo \"$3                1     down         9000/0/0/0     rx packets      $((11615035382 + n))\"
             echo '                                                       rx bytes     1785998048960'
             echo '                                                       tx packets       700076496'
             echo \"                                                       drops             $((n * 10))\"
             echo '                                                       ip4                     5' ;;
         'show errors')
             echo '   Count                  Node                              Reason               Severity'
             echo '         7             null-node                     blackholed packets           error'
             echo '         2             null-node                     blackholed packets           error'
             echo '        11             ethernet-input                l3 mac mismatch              error' ;;
         'set interface state bad '*) echo 'set interface state: unknown interface `bad up' ;;
         esac",
    );
    let line = |flags: &str| format!("{BRIEF} {GATEWAYS} --dut-host dut --dut-driver vpp {flags}");
    let ports = "--dut-option port0=TenGigabitEthernet3/0/0 --dut-option port1=TenGigabitEthernet3/0/1";
    let run = |flags: &str| {
        eventually(|| {
            let _ = fs::remove_file(device.file("calls"));
            passes(&remote.run(&line(flags)).run())
        })
    };
    let Some(record) = run(ports) else { return };
    let [zero, one] = ["TenGigabitEthernet3/0/0", "TenGigabitEthernet3/0/1"];
    let applied = [
        format!("vppctl set interface state {zero} up"),
        format!("vppctl set interface state {one} up"),
        format!("vppctl set interface ip address {zero} 100.65.1.1/24"),
        format!("vppctl set interface ip address {one} 100.65.2.1/24"),
        format!("vppctl set ip neighbor {zero} 100.65.1.2 02:00:00:00:01:02 static"),
        format!("vppctl set ip neighbor {one} 100.65.2.2 02:00:00:00:02:02 static"),
        format!("vppctl ip route add 16.0.0.0/8 via 100.65.1.2 {zero}"),
        format!("vppctl ip route add 48.0.0.0/8 via 100.65.2.2 {one}"),
    ];
    let undone = [
        format!("vppctl ip route del 48.0.0.0/8 via 100.65.2.2 {one}"),
        format!("vppctl ip route del 16.0.0.0/8 via 100.65.1.2 {zero}"),
        format!("vppctl set ip neighbor del {one} 100.65.2.2 02:00:00:00:02:02"),
        format!("vppctl set ip neighbor del {zero} 100.65.1.2 02:00:00:00:01:02"),
        format!("vppctl set interface ip address del {one} 100.65.2.1/24"),
        format!("vppctl set interface ip address del {zero} 100.65.1.1/24"),
        format!("vppctl set interface state {one} down"),
        format!("vppctl set interface state {zero} down"),
    ];
    assert_calls(device, &applied.each_ref().map(String::as_str), &undone.each_ref().map(String::as_str));
    assert!(record.dut.configuration["version"].starts_with("vpp v24.02-release"));
    let counters = &record.dut.remote.as_ref().unwrap().counters;
    assert_eq!(counters["null-node blackholed packets error"].after, 9, "{counters:?}");
    assert_eq!(counters["port1 sent"].after, 700_076_496);
    assert!(counters["port0 received"].after > 11_615_035_382, "{counters:?}");
    assert!(counters["port0 drops"].meanwhile() > Some(0));

    let Some(_) = run(&format!("{ports} --dut-option mode=xconnect")) else { return };
    let applied = [
        format!("vppctl set interface l2 xconnect {zero} {one}"),
        format!("vppctl set interface l2 xconnect {one} {zero}"),
    ];
    let undone = [
        format!("vppctl set interface l3 {one}"),
        format!("vppctl set interface l3 {zero}"),
        format!("vppctl set interface state {one} down"),
        format!("vppctl set interface state {zero} down"),
    ];
    assert_calls(device, &applied.each_ref().map(String::as_str), &undone.each_ref().map(String::as_str));

    // vppctl says that it failed, but ends well.
    let refused = remote.run(&line("--dut-option port0=bad --dut-option port1=b")).run();
    let refusal = refused.refusal(1);
    assert!(refusal.contains("set port 0 up: ") && refusal.contains("unknown interface"), "{refusal}");
}

#[test]
fn a_bench_configures_a_device_for_each_run_by_a_driver_of_the_user() {
    let Some(remote) = Remote::new() else { return };
    let before = remote.state();
    let directory = tempfile::tempdir().unwrap();
    let text = linerate("remote drivers linux --text").run().well().stdout;
    fs::write(directory.path().join("mine.toml"), text.replace("\"linux\"", "\"mine\"")).unwrap();
    let bench = |options: &str| {
        format!(
            "name = 'far'\nrepeats = 1\n[strategy]\nuse = 'saturate'\noptions = ['--rate', '2kpps', '--warm-up-duration', \
             '300ms', '--duration', '300ms', '--step', '100ms']\n[[duts]]\nname = 'one'\nports = 'eth1,eth2'\n\
             gateways = '100.65.1.1,100.65.2.1'\nhost = 'dut'\ndriver = 'mine.toml'\n\
             driver-options = {{ port0 = 'far1', port1 = 'far2' }}\n[[duts]]\nname = 'two'\nextends = 'one'\n\
             driver-options = {{ {options} }}\n[[profiles]]\nname = '64'\n"
        )
    };
    let file = directory.path().join("far.toml");
    fs::write(&file, bench("sysctls = 'net.ipv4.ip_default_ttl=77'")).unwrap();
    let finished = remote.run("bench --json").arg(&file).run().well();
    let mut records: Vec<Record> = serde_json::from_value(finished.json()["records"].clone()).unwrap();
    records.sort_by_key(Record::device);
    let [one, two] = records.as_slice() else { panic!("{}", finished.stderr) };
    assert_eq!((one.device().as_str(), one.dut.name.as_str()), ("one", "mine"));
    assert!(one.dut.remote.as_ref().unwrap().source.as_ref().unwrap().contains("name = \"mine\""));
    let options = &two.dut.remote.as_ref().unwrap().options;
    assert_eq!(
        (options["port0"].as_str(), options["sysctls"].as_str()),
        ("far1", "net.ipv4.ip_default_ttl=77")
    );
    assert_eq!(remote.changed(&before), [""; 0]);

    fs::write(&file, bench("sysctl = 'x'")).unwrap();
    let refused = remote.run("bench --dry-run").arg(&file).run();
    let refusal = refused.refusal(2);
    assert!(
        refusal.contains("far.toml:16: the driver mine has no option 'sysctl': it has port0"),
        "{refusal}"
    );
}
