//! Devices that are other computers: a namespace with an ssh server of its own is configured, measured,
//! counted and put back as it was, however the run ends.

mod other_systems;

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
    let of_cores = |name: &str| -> u64 {
        remote.cores.iter().filter_map(|core| core.counters.get(name)?.meanwhile()).sum()
    };
    assert!(of_cores("busy") + of_cores("idle") > 0 && of_cores("NET_RX") > 0, "{:?}", remote.cores);
    let cores = record.queues.iter().find(|queues| queues.interface == "cores").unwrap();
    assert!(cores.queues[0].place.starts_with("core "), "{cores:?}");
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
fn a_flame_graph_shows_where_the_device_works() {
    let Some(remote) = Remote::new() else { return };
    if !std::path::Path::new("/usr/bin/perf").exists() {
        eprintln!("skipped: there is no perf (install linux-perf)");
        return;
    }
    let before = remote.state();
    let directory = tempfile::tempdir().unwrap();
    let svg = directory.path().join("there.svg");
    let line = format!(
        "explain flamegraph --ports eth1,eth2 {GATEWAYS} --dut-host dut {LINUX} --duration 2s --json --output {}",
        svg.display()
    );
    let finished = remote.run(&line).run().well();
    assert_eq!(remote.changed(&before), [""; 0]);
    let told = finished.json();
    assert!(told["title"].as_str().unwrap().starts_with("Where the cores of dut work, saturated"), "{told}");
    assert!(told["basis"].as_str().unwrap().contains("taken there by the driver linux"), "{told}");
    assert!(told["profiles"][0]["offered"].as_u64() > Some(0), "{told}");
    let folded = fs::read_to_string(svg.with_extension("folded")).unwrap();
    assert!(folded.contains("ip_forward"), "no stack of the router: {folded}");
    assert!(fs::read_to_string(&svg).unwrap().contains("<svg"));
    let other = remote.run(&line.replace("--duration 2s", "--duration 2h")).run();
    assert_eq!(other.status.code(), Some(2), "{}", other.stderr);
    assert!(other.stderr.contains("is sampled for 1s to 60s"), "{}", other.stderr);
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
    assert!(login.contains("does not come over them (it does over mgmt1). Reach it by"), "{login}");
    let missing = linux("--dut-option port0=far1 --dut-option port1=far9");
    assert!(
        missing.contains("both interfaces are there (no far9; there are ") && missing.contains("far2"),
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
    assert!(found["cores"]["0"]["busy"].is_u64() && text.contains("  core 0: "), "{found} {text}");
    let line = format!("explain queues --dut-host dut {LINUX} --interval 100ms");
    let watched = remote.run(&line).run().well().stderr;
    assert!(watched.contains("cores: what each core took in") && watched.contains("  core 0 "), "{watched}");
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

/// A driver of a computer whose setting holds from the next start on; `DIR` has what the computer is.
const RESTARTED: &str = r#"
name = "played"
title = "A computer that starts anew"
[[parameters]]
name = "port0"
about = "its interface at port 0"
[[parameters]]
name = "port1"
about = "its interface at port 1"
[[parameters]]
name = "setting"
about = "what it starts with"
[restart]
read = "cat DIR/starts"
run = "cp DIR/next DIR/now; echo again >>DIR/starts; rm -f /var/run/linerate-restarts"
[[boot]]
what = "set it for the next start"
read = "cat DIR/next"
run = 'echo "$setting" >DIR/next'
undo = 'echo "$before" >DIR/next'
prove = 'grep -Fxq "$setting" DIR/now || { cat DIR/now; exit 1; }'
[[fingerprint]]
name = "setting"
run = "cat DIR/now"
[[counters]]
name = "none"
run = "true"
"#;

#[test]
fn a_setting_that_needs_a_restart_is_made_proven_and_put_back() {
    let Some(remote) = Remote::of(Site::router) else { return };
    let directory = remote.device.file("computer");
    fs::create_dir(&directory).unwrap();
    let (now, next, starts) = (directory.join("now"), directory.join("next"), directory.join("starts"));
    [&now, &next].iter().for_each(|file| fs::write(file, "old\n").unwrap());
    fs::write(&starts, "first\n").unwrap();
    let driver = directory.join("played.toml");
    let text = RESTARTED.replace("DIR", &directory.display().to_string());
    fs::write(&driver, &text).unwrap();
    let run = |driver: &std::path::Path, setting: &str| {
        let line =
            format!("{BRIEF} {GATEWAYS} --dut-host dut --dut-option port0=far1 --dut-option port1=far2");
        remote
            .run(&line)
            .arg("--dut-option")
            .arg(format!("setting={setting}"))
            .arg("--dut-driver")
            .arg(driver)
            .run()
    };
    let is = |file: &std::path::Path| fs::read_to_string(file).unwrap();
    let record = run(&driver, "new").well().record();
    assert_eq!(record.dut.configuration["setting"], "new");
    let restarted = || is(&starts).lines().count() - 1;
    assert!(wait_until(Duration::from_secs(10), || restarted() == 2), "{}", is(&starts));
    assert_eq!((is(&now).as_str(), is(&next).as_str()), ("old\n", "old\n"));
    // What holds already needs no restart.
    assert_eq!(run(&driver, "old").well().record().dut.configuration["setting"], "old");
    assert_eq!(restarted(), 2);

    // A setting that does not come into force is refused, and put back.
    let ignoring = directory.join("ignoring.toml");
    fs::write(&ignoring, text.replace(&format!("cp {} {};", next.display(), now.display()), "true;"))
        .unwrap();
    let refused = run(&ignoring, "newer");
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.contains("did not hold after the restart (old)"), "{}", refused.stderr);
    assert!(refused.records().is_empty());
    assert!(wait_until(Duration::from_secs(10), || restarted() == 4), "{}", is(&starts));
    assert_eq!((is(&now).as_str(), is(&next).as_str()), ("old\n", "old\n"));
}
