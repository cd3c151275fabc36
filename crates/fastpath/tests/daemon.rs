//! The router and its control as people use them: the programs are started, asked, told to change, and
//! stopped; then nothing of them is left.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use crate::common::{OURS, THEIRS, frame};
use fastpath::client::Client;
use memif::{Config, Memif, Opened, Role, Socket};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::process::{Router, fastpath};

/// A directory with a configuration, and where the socket is to be.
struct Site {
    directory: TempDir,
}

impl Site {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("control")
    }

    /// Writes a configuration of two interfaces, and what else it says.
    fn write(&self, name: &str, more: &str) -> PathBuf {
        self.write_for(name, &cores()[..1], more)
    }

    /// As [`Self::write`], with a worker on each of `cores`.
    fn write_for(&self, name: &str, cores: &[usize], more: &str) -> PathBuf {
        let text = format!(
            "[control]\nsocket = \"{}\"\n[workers]\ncores = {cores:?}\nidle = \"sleep\"\n\
             [[interface]]\nname = \"lan\"\ndevice = \"null\"\naddresses = [\"10.0.0.1/24\"]\n\
             [[interface]]\nname = \"wan\"\ndevice = \"null\"\naddresses = [\"10.1.0.1/24\"]\n{more}\n",
            self.socket().display(),
        );
        let path = self.directory.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn ctl(&self, words: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fastpathctl"));
        command.arg("--socket").arg(self.socket()).args(words.split_whitespace()).output().unwrap()
    }

    /// What it answers as JSON.
    fn json(&self, words: &str) -> Value {
        let output = self.ctl(&format!("--json {words}"));
        assert!(output.status.success(), "{words}: {}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// The cores that there are.
fn cores() -> Vec<usize> {
    let usable = sched_getaffinity(Pid::from_raw(0)).unwrap();
    (0..CpuSet::count()).filter(|core| usable.is_set(*core).unwrap()).collect()
}

/// A router that has said that it is in control.
fn started(file: &Path) -> Router {
    Router::started(fastpath(file).spawn().unwrap())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_log_that_nobody_can_write_or_reads_ends_nothing() {
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    for log in [std::process::Stdio::from(full()), std::process::Stdio::from(writer)] {
        let site = Site::new();
        let file = site.write("router.toml", "");
        let mut process = fastpath(&file).stderr(log).spawn().unwrap();
        crate::process::until("an answer", || site.ctl("show version").status.success().then_some(()));
        fs::write(&file, "nonsense").unwrap();
        for _ in 0..3 {
            nix::sys::signal::kill(Pid::from_raw(process.id().cast_signed()), Signal::SIGHUP).unwrap();
        }
        assert!(site.ctl("show interfaces").status.success());
        nix::sys::signal::kill(Pid::from_raw(process.id().cast_signed()), Signal::SIGTERM).unwrap();
        let status = process.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

#[test]
fn a_router_is_asked_changed_and_stopped_and_leaves_nothing() {
    let site = Site::new();
    let file = site.write("router.toml", "");
    let mut router = started(&file);

    let runtime = site.json("show runtime");
    let thread = &runtime["threads"][0];
    assert_eq!((&thread["id"], &thread["name"]), (&1.into(), &"worker 0".into()));
    assert_eq!(
        (&thread["nodes"][0]["name"], &thread["nodes"][0]["state"]),
        (&"device-input".into(), &"polling".into())
    );
    assert!(thread["nodes"][0]["calls"].as_u64().unwrap() > 0);
    for (command, clue) in [
        ("show runtime", "Vectors/Call"),
        ("show runtime max", "Max Node Clocks"),
        ("show bridge", "no interface is a port"),
        ("show acl", "there are no access lists"),
        ("show flows", "no access list keeps states"),
        ("show interfaces", "wan"),
        ("show errors", "Severity"),
        ("show threads", "worker 0"),
        ("show cpu", "GHz"),
        ("show hardware", "null"),
        ("show graph", "ip4-lookup"),
        ("show version", "fastpath"),
        ("show fib ip4", "10.1.0.0/24"),
        ("show fib ip4 10.1.0.9", "connected"),
        ("show fib ip6", "routes in all"),
        ("show neighbours", "MAC"),
        ("show trace", "0 traced"),
    ] {
        let output = site.ctl(command);
        assert!(output.status.success() && text(&output.stdout).contains(clue), "{command}: {output:?}");
        assert!(site.json(command).is_object());
    }
    let kinds = site.json("show threads");
    assert_eq!(
        (&kinds["threads"][0]["type"], &kinds["threads"][1]["type"]),
        (&"main".into(), &"worker".into())
    );
    for command in [
        "clear runtime",
        "clear interfaces",
        "clear errors",
        "trace add 5",
        "clear trace",
        "clear bridge",
        "clear acl",
        "set interface wan mtu 1400",
        "set route add 5.0.0.0/8 --via 10.1.0.2 --via 10.0.0.2*3",
        "set route add 6.0.0.0/8 --drop",
        "set route del 5.0.0.0/8",
        "set neighbour add wan 10.1.0.2 02:00:00:00:00:20",
        "set neighbour del wan 10.1.0.2",
        "set interface lan down",
    ] {
        let output = site.ctl(command);
        assert!(output.status.success(), "{command}: {}", text(&output.stderr));
    }
    let route = &site.json("show fib ip4 6.1.2.3")["routes"][0];
    assert_eq!((&route["prefix"], &route["paths"][0]["action"]), (&"6.0.0.0/8".into(), &"drop".into()));
    let interfaces = Client::connect(&site.socket()).unwrap().interfaces().unwrap().interfaces;
    assert_eq!((interfaces[0].up, interfaces[1].up, interfaces[1].mtu), (false, true, 1400));

    // A wrong configuration changes nothing; a right one is taken up, from wherever it is read.
    let wrong = site.write("wrong.toml", "[[route]]\nprefix = \"7.0.0.1/8\"\ndrop = true");
    let output = site.ctl(&format!("reload {}", wrong.display()));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("wrong.toml:15: 7.0.0.1/8 has bits set"),
        "{}",
        text(&output.stderr)
    );
    assert!(!site.json("show interfaces")["interfaces"][0]["up"].as_bool().unwrap());
    let other = site.write("other.toml", "[[interface]]\nname = \"dmz\"\ndevice = \"null\"");
    let output = site.ctl(&format!("reload {}", other.display()));
    assert!(text(&output.stderr).contains("dmz is new"), "{}", text(&output.stderr));
    fs::write(&file, "nonsense").unwrap();
    router.signal(Signal::SIGHUP);
    let line = router.line();
    assert!(line.contains("the running configuration stays"), "{line}");
    site.write("router.toml", "");
    assert!(site.ctl("reload").status.success());
    let interfaces = site.json("show interfaces");
    assert_eq!(
        (&interfaces["interfaces"][0]["up"], &interfaces["interfaces"][1]["mtu"]),
        (&true.into(), &1500.into())
    );

    // There is only one at a socket.
    let second = fastpath(&file).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second.stderr).contains("another fastpath"), "{}", text(&second.stderr));

    assert_eq!(router.stop(Signal::SIGTERM), "");
    assert!(!site.socket().exists());
}

/// What the kernel says of a process under `key`.
fn status(process: u32, key: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).unwrap().trim().to_owned()
}

#[test]
fn a_router_gives_up_root_and_keeps_what_it_needs() {
    const NOBODY: u32 = 65_534;
    if !nix::unistd::geteuid().is_root() {
        return eprintln!("skipped: becoming another user needs root");
    }
    let site = Site::new();
    let file = site.write("router.toml", "tap = true");
    std::os::unix::fs::chown(site.directory.path(), Some(NOBODY), None).unwrap();
    // Where its tap is nobody's but its own.
    let in_namespace = |command: &mut Command| {
        // SAFETY: between fork and exec it only makes a system call.
        unsafe { command.pre_exec(|| Ok(nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)?)) };
    };
    let check = |mut router: Router, kept: u64| {
        let ids: Vec<_> =
            status(router.id(), "Uid").split_whitespace().map(|id| id.parse::<u32>().unwrap()).collect();
        assert_eq!(ids, [NOBODY; 4]);
        for set in ["CapEff", "CapPrm"] {
            assert_eq!(u64::from_str_radix(&status(router.id(), set), 16).unwrap(), kept, "{set}");
        }
        assert_eq!(status(router.id(), "NoNewPrivs"), "1");
        assert!(site.ctl("show interfaces").status.success());
        site.write(
            "router.toml",
            "tap = true\n[[route]]\nprefix = \"10.9.0.0/16\"\nvia = [{ gateway = \"10.0.0.9\" }]",
        );
        router.signal(Signal::SIGHUP);
        let said = router.line();
        assert!(said.contains("1 changes made"), "{said}");
        site.write("router.toml", "tap = true");
        router.stop(Signal::SIGTERM);
        assert!(!site.socket().exists());
    };
    // NET_ADMIN, NET_RAW, SYS_NICE, PERFMON and BPF.
    let needed = 1 << 12 | 1 << 13 | 1 << 23 | 1 << 38 | 1 << 39;
    let mut command = fastpath(&file);
    in_namespace(command.args(["--user", "nobody"]));
    check(Router::started(command.spawn().unwrap()), needed);

    // Who is that user already has nothing to change, but keeps no more.
    let program = site.directory.path().join("fastpath");
    fs::copy(env!("CARGO_BIN_EXE_fastpath"), &program).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command
        .args(["--inh-caps=-all,+net_admin,+net_raw,+kill", "--ambient-caps=-all,+net_admin,+net_raw,+kill"]);
    command.arg(&program).args(["--user", "nobody"]).arg(&file).stderr(std::process::Stdio::piped());
    in_namespace(&mut command);
    check(Router::started(command.spawn().unwrap()), 1 << 12 | 1 << 13);
}

#[test]
fn a_router_that_was_killed_is_followed_by_another() {
    let site = Site::new();
    let file = site.write("router.toml", "");
    drop(started(&file));
    assert!(site.socket().exists());
    let output = site.ctl("show runtime");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("start one, or name its socket"), "{}", text(&output.stderr));
    let router = started(&file);
    assert!(site.ctl("show version").status.success());
    router.stop(Signal::SIGINT);
    assert!(!site.socket().exists());
}

#[test]
fn wrong_use_is_told_with_what_is_known() {
    let site = Site::new();
    for (words, clue) in [
        ("show nothing", "runtime"),
        ("frobnicate", "reload"),
        ("set interface wan sideways", "mtu"),
        ("set route add 5.0.0.0/8", "--via"),
        ("show fib ip5", "ip6"),
        ("show runtime least", "max"),
        ("set route add 5.0.0.0/8 --via 10.0.0.2*x", "whole number"),
        ("show runtime --jsonn", "--json"),
    ] {
        let output = site.ctl(words);
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(text(&output.stderr).contains(clue), "{words}: {}", text(&output.stderr));
    }
    let good = site.write("good.toml", "");
    let wrong = site.write("wrong.toml", "[[rout]]");
    let check = |file: &Path| fastpath(file).arg("--check").output().unwrap();
    assert!(text(&check(&good).stderr).contains("configuration OK: 1 workers, 2 interfaces"));
    let output = check(&wrong);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("wrong.toml:14: unknown key `rout`"), "{}", text(&output.stderr));
    assert_eq!(check(Path::new("/nowhere")).status.code(), Some(1));
    let core = site.write("core.toml", "");
    let text_of = fs::read_to_string(&core).unwrap();
    let cores = text_of.lines().find(|line| line.starts_with("cores")).unwrap();
    fs::write(&core, text_of.replace(cores, "cores = [1000]")).unwrap();
    let output = fastpath(&core).output().unwrap();
    assert!(text(&output.stderr).contains("no worker can have core 1000"), "{}", text(&output.stderr));
    assert!(!site.socket().exists());
}

/// Polls both peers until `condition` holds of what the router answers.
fn until(site: &Site, peers: &mut [Opened], words: &str, condition: impl Fn(&Value) -> bool) {
    for _ in 0..500 {
        for peer in &mut *peers {
            peer.memif.poll(Duration::from_millis(5)).unwrap();
        }
        // The router may know of a connection before its peer does.
        let connected = peers.iter().all(|peer| peer.memif.is_connected());
        if connected && condition(&site.json(words)) {
            return;
        }
    }
    panic!("{words}: {}", site.json(words));
}

#[test]
fn packets_are_routed_between_memifs_and_peers_may_come_back() {
    let site = Site::new();
    let path = |name: &str| site.directory.path().join(name);
    let memif = |name: &str| format!("device = \"memif:socket={}\"", path(name).display());
    let file = site.write(
        "router.toml",
        "[[route]]\nprefix = \"48.0.0.0/8\"\nvia = [{ gateway = \"10.1.0.2\" }]\n\
         [[neighbour]]\ninterface = \"wan\"\naddress = \"10.1.0.2\"\nmac = \"02:00:00:00:00:21\"",
    );
    let text_of = fs::read_to_string(&file).unwrap();
    let text_of =
        text_of.replacen("device = \"null\"", &format!("{}\nmac = \"{}\"", memif("lan"), OURS[0]), 1);
    let text_of =
        text_of.replacen("device = \"null\"", &format!("{}\nmac = \"{}\"", memif("wan"), OURS[1]), 1);
    fs::write(&file, text_of).unwrap();
    let mut router = started(&file);
    let peer = |name: &str| Memif::open(Config::new(Role::Client, Socket::Path(path(name)))).unwrap();
    let mut peers = [peer("lan"), peer("wan")];
    let up =
        |devices: &Value| devices["devices"].as_array().unwrap().iter().all(|device| device["link"] == "up");
    until(&site, &mut peers, "show hardware", up);
    assert!(router.line().contains("connected with"));
    let sent = frame(OURS[0], [48, 0, 0, 1], 64, 46);
    let counted = |count: u64| move |answer: &Value| answer["interfaces"][1]["tx_packets"] == count;
    assert!(site.ctl("trace add 1").status.success());
    assert_eq!(peers[0].senders[0].send(&[&sent[..]; 100]), 100);
    until(&site, &mut peers, "show interfaces", counted(100));
    let mut received = [memif::Frame::NONE; 256];
    assert_eq!(peers[1].receivers[0].receive(&mut received), 100);
    let mut expected = frame(THEIRS[1], [48, 0, 0, 1], 63, 46);
    expected[6..12].copy_from_slice(&OURS[1].0);
    // SAFETY: it is lent until it is released.
    assert_eq!(unsafe { received[99].bytes() }, &expected[..]);
    peers[1].receivers[0].release();

    // What users see of it.
    let mut client = Client::connect(&site.socket()).unwrap();
    let runtime = client.runtime().unwrap();
    let thread = &runtime.threads[0];
    let vectors = |name: &str| thread.nodes.iter().find(|row| row.name == name).unwrap().vectors;
    assert_eq!((vectors("ip4-lookup"), vectors("tx")), (100, 100));
    assert!(thread.clocks_per_packet.unwrap().without_polling > 0.0);
    let most = site.json("show runtime max");
    let nodes = most["threads"][0]["nodes"].as_array().unwrap();
    let lookup = nodes.iter().find(|row| row["name"] == "ip4-lookup").unwrap();
    let vectors = lookup["vectors_at_max"].as_u64().unwrap();
    assert!((1..=100).contains(&vectors) && lookup["max_node_clocks"].as_u64().unwrap() > 0, "{lookup}");
    assert!(text(&site.ctl("show trace").stdout).contains("ip4-lookup"));
    peers[0].senders[0].send(&[&frame(OURS[0], [99, 0, 0, 1], 64, 46)]);
    // Its sender cannot be told either.
    until(&site, &mut peers, "show errors", |answer| answer["errors"][0]["count"] == 2);
    for what in ["runtime", "interfaces", "errors"] {
        assert!(site.ctl(&format!("clear {what}")).status.success());
    }
    assert_eq!(site.json("show errors")["errors"], Value::Array(Vec::new()));
    assert_eq!(site.json("show runtime max")["threads"][0]["nodes"], Value::Array(Vec::new()));
    assert_eq!(site.json("show interfaces")["interfaces"][1]["tx_packets"], 0);

    // A peer goes, and one like it comes.
    peers[1] = peer("wan");
    let is_down = |devices: &Value| devices["devices"][1]["link"] != "up";
    until(&site, &mut [], "show hardware", is_down);
    until(&site, &mut peers, "show hardware", up);
    assert_eq!(peers[0].senders[0].send(&[&sent[..]; 10]), 10);
    until(&site, &mut peers, "show interfaces", counted(10));
    let said = router.stop(Signal::SIGTERM);
    assert!(said.contains("wan: disconnected: the peer"), "{said}");
    let left: Vec<_> =
        fs::read_dir(site.directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["router.toml"]);
}

#[test]
fn flows_of_one_queue_are_spread_over_workers_where_the_configuration_says_so() {
    let cores = cores();
    if cores.len() < 2 {
        eprintln!("skipped: two workers need two cores, and there is one");
        return;
    }
    let site = Site::new();
    let route = "[[route]]\nprefix = \"48.0.0.0/8\"\nvia = [{ gateway = \"10.1.0.2\" }]\n\
                 [[neighbour]]\ninterface = \"wan\"\naddress = \"10.1.0.2\"\nmac = \"02:00:00:00:00:21\"";
    let file = site.write_for("router.toml", &cores[..2], route);
    let socket = site.directory.path().join("lan");
    let lan = format!("device = \"memif:socket={}\"\nmac = \"{}\"\nrss = true", socket.display(), OURS[0]);
    let text_of = fs::read_to_string(&file).unwrap();
    fs::write(&file, text_of.replacen("device = \"null\"", &lan, 1)).unwrap();
    let router = started(&file);
    // It sends by a queue for each worker.
    let config = Config { receive_queues: 2, ..Config::new(Role::Client, Socket::Path(socket)) };
    let mut peers = [Memif::open(config).unwrap()];
    until(&site, &mut peers, "show hardware", |answer| answer["devices"][0]["link"] == "up");
    for flow in 0..100u8 {
        let mut sent = frame(OURS[0], [48, 0, 0, flow], 64, 46);
        sent[34..38].copy_from_slice(&[4, flow, 0, 9]);
        assert_eq!(peers[0].senders[0].send(&[&sent[..]]), 1);
    }
    until(&site, &mut peers, "show interfaces", |answer| answer["interfaces"][1]["tx_packets"] == 100);
    let handoff = &site.json("show hardware")["devices"][0]["handoffs"][0];
    assert_eq!((&handoff["from"], &handoff["to"]), (&1.into(), &2.into()), "{handoff}");
    let handed = handoff["frames"].as_u64().unwrap();
    assert!(0 < handed && handed < 100 && handoff["congestion_drops"] == 0, "{handoff}");
    assert!(text(&site.ctl("show hardware").stdout).contains("Congestion drops"));
    let runtime = Client::connect(&site.socket()).unwrap().runtime().unwrap();
    let lookups = |thread: &fastpath::show::runtime::Thread| {
        thread.nodes.iter().find(|row| row.name == "ip4-lookup").map_or(0, |row| row.vectors)
    };
    assert_eq!(lookups(&runtime.threads[1]), handed);
    assert_eq!(lookups(&runtime.threads[0]), 100 - handed);
    assert!(text(&site.ctl("show runtime").stdout).contains("worker-handoff"));
    router.stop(Signal::SIGTERM);
}

#[test]
fn a_bridge_is_set_shown_and_cleared() {
    let site = Site::new();
    let memif = |name: &str| {
        let socket = site.directory.path().join(name);
        format!("[[interface]]\nname = \"{name}\"\ndevice = \"memif:socket={}\"\n", socket.display())
    };
    let more = |ageing| {
        let port = "bridge = \"office\"\n";
        let ports = ["p", "q"].map(|name| format!("{}{port}", memif(name))).concat();
        format!("{ports}[[bridge]]\nname = \"office\"\nageing = {ageing}\nstations = 50\n")
    };
    let file = site.write("router.toml", &more(60));
    let router = started(&file);
    let peer = |name| {
        Memif::open(Config::new(Role::Client, Socket::Path(site.directory.path().join(name)))).unwrap()
    };
    let mut peers = [peer("p"), peer("q")];
    let up = |answer: &Value| [2, 3].iter().all(|at| answer["devices"][*at]["link"] == "up");
    until(&site, &mut peers, "show hardware", up);
    let learned = |count: u64| move |answer: &Value| answer["bridges"][0]["known"] == count;
    assert_eq!(peers[0].senders[0].send(&[&frame(THEIRS[1], [48, 0, 0, 1], 64, 46)[..]]), 1);
    until(&site, &mut peers, "show bridge", learned(1));
    let bridge = &site.json("show bridge")["bridges"][0];
    let station = &bridge["stations"][0];
    assert_eq!(
        (&bridge["name"], &bridge["ageing"], &bridge["most"]),
        (&"office".into(), &60.into(), &50.into())
    );
    assert_eq!((&station["mac"], &station["interface"]), (&THEIRS[0].to_string().into(), &"p".into()));
    let shown = text(&site.ctl("show bridge").stdout);
    assert!(shown.starts_with("office (bridge 0): ports p, q; 1 of 50 stations, ageing 60 s\n"), "{shown}");
    assert!(site.ctl("clear bridge").status.success());
    assert!(learned(0)(&site.json("show bridge")));
    site.write("router.toml", &more(90));
    assert!(site.ctl("reload").status.success());
    assert_eq!(site.json("show bridge")["bridges"][0]["ageing"], 90);
    router.stop(Signal::SIGTERM);
}
