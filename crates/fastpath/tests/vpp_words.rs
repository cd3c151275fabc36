//! What users of VPP know: its words for what a router shows, packet capture to a file, and metrics for Prometheus.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use crate::common::{OURS, frame};
use memif::{Config, Memif, Opened, Role, Socket};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::process::{Router, fastpath, until};

/// A router between two memifs, `lan` and `wan`, by whose second one 48.0.0.0/8 is reached; and its files.
struct Site {
    router: Router,
    directory: TempDir,
}

impl Site {
    /// One whose configuration begins with `head`.
    fn new(head: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("router.toml");
        let usable = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let core = (0..CpuSet::count()).find(|core| usable.is_set(*core).unwrap()).unwrap();
        let interface = |name: &str, at: usize| {
            format!(
                "[[interface]]\nname = \"{name}\"\ndevice = \"memif:socket={}\"\nmac = \"{}\"\n\
                 addresses = [\"10.{at}.0.1/24\", \"2001:db8:{at}::1/64\"]\n",
                directory.path().join(name).display(),
                OURS[at]
            )
        };
        let text = format!(
            "{head}\n[control]\nsocket = \"{}\"\n[workers]\ncores = [{core}]\nidle = \"sleep\"\n{}{}\
             [[route]]\nprefix = \"48.0.0.0/8\"\nvia = [{{ gateway = \"10.1.0.2\" }}]\n\
             [[neighbour]]\ninterface = \"wan\"\naddress = \"10.1.0.2\"\nmac = \"02:00:00:00:00:21\"\n\
             [[neighbour]]\ninterface = \"wan\"\naddress = \"2001:db8:1::2\"\nmac = \"02:00:00:00:00:21\"\n",
            directory.path().join("control").display(),
            interface("lan", 0),
            interface("wan", 1),
        );
        fs::write(&file, text).unwrap();
        let process = fastpath(&file).env("TMPDIR", directory.path()).spawn().unwrap();
        Self { router: Router::started(process), directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn ctl(&self, words: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fastpathctl"));
        command.arg("--socket").arg(self.path("control")).args(words.split_whitespace()).output().unwrap()
    }

    /// What it says to words that it takes.
    fn well(&self, words: &str) -> String {
        let output = self.ctl(words);
        assert!(output.status.success(), "{words}: {}", text(&output.stderr));
        text(&output.stdout) + &text(&output.stderr)
    }

    /// Both peers, connected.
    fn peers(&self) -> [Opened; 2] {
        let mut peers = ["lan", "wan"]
            .map(|name| Memif::open(Config::new(Role::Client, Socket::Path(self.path(name)))).unwrap());
        until("both links up", || {
            for peer in &mut peers {
                peer.memif.poll(Duration::from_millis(1)).unwrap();
            }
            let shown: Value = serde_json::from_str(&self.well("--json show hardware")).unwrap();
            let devices = shown["devices"].as_array().unwrap();
            let up = devices.iter().all(|device| device["link"] == "up");
            (up && peers.iter().all(|peer| peer.memif.is_connected())).then_some(())
        });
        peers
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_words_of_vpp_are_understood() {
    let site = Site::new("");
    for (words, clue, absent) in [
        ("show interface", "wan", "nothing"),
        ("show interface lan", "lan", "wan"),
        ("show interfaces wan", "wan", "lan"),
        ("sh int", "wan", "nothing"),
        ("show ip fib", "48.0.0.0/8", "2001:db8:1::/64"),
        ("show ip fib 48.1.2.3", "48.0.0.0/8", "10.0.0.0/24"),
        ("show ip6 fib", "2001:db8:1::/64", "48.0.0.0/8"),
        ("show ip neighbors", "10.1.0.2", "2001:db8:1::2"),
        ("show ip6 neighbors", "2001:db8:1::2", "10.1.0.2"),
        ("show ip neighbours", "10.1.0.2", "2001:db8:1::2"),
        ("show neighbors", "10.1.0.2", "nothing"),
        ("show hardware-interfaces", "memif server", "nothing"),
        ("sh hard", "memif server", "nothing"),
        ("show errors", "Severity", "nothing"),
        ("sh err", "Severity", "nothing"),
        ("show runtime", "Vectors/Call", "nothing"),
        ("sh run", "Vectors/Call", "nothing"),
        ("show threads", "worker 0", "nothing"),
        ("show cpu", "GHz", "nothing"),
        ("show version", "fastpath", "nothing"),
        ("trace add memif-input 5", "5 packets are traced", "nothing"),
        ("trace add 5", "5 packets are traced", "nothing"),
        ("show trace", "traced", "nothing"),
        ("clear interfaces", "from now on", "nothing"),
        ("clear hardware-interfaces", "from now on", "nothing"),
        ("clear errors", "from now on", "nothing"),
        ("clear runtime", "from now on", "nothing"),
        ("clear trace", "forgotten", "nothing"),
        ("pcap trace status", "no packets are captured", "nothing"),
    ] {
        let said = site.well(words);
        assert!(said.contains(clue) && !said.contains(absent), "{words}: {said}");
    }
    for (words, clue) in [
        ("trace add ip4-lookup 5", "packets are traced from where they arrive"),
        ("trace add memif-input many", "no number of packets"),
        ("pcap trace max 5", "neither rx nor tx"),
        ("pcap trace rx file /etc/passwd", "without a directory"),
    ] {
        let output = site.ctl(words);
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(text(&output.stderr).contains(clue), "{words}: {}", text(&output.stderr));
    }
    site.router.stop(Signal::SIGTERM);
}

/// The packets of a capture: their interface, their bytes, how long they were, and 1 where they arrived, 2 where they were
/// sent.
fn packets(file: &Path) -> Vec<(u32, Vec<u8>, usize, u32)> {
    let bytes = fs::read(file).unwrap();
    let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let (mut at, mut packets) = (0, Vec::new());
    while at < bytes.len() {
        let length = word(at + 4) as usize;
        assert_eq!(word(at + length - 4) as usize, length, "a block ends as it begins");
        if word(at) == 6 {
            let kept = word(at + 20) as usize;
            let frame = bytes[at + 28..][..kept].to_vec();
            let flags = word(at + 28 + kept.next_multiple_of(4) + 4);
            packets.push((word(at + 8), frame, word(at + 24) as usize, flags));
        }
        at += length;
    }
    packets
}

#[test]
fn packets_are_captured_to_a_file_of_its_own_and_bounded() {
    let mut site = Site::new("");
    let mut peers = site.peers();
    let sent = frame(OURS[0], [48, 0, 0, 1], 64, 46);
    assert!(site.well("pcap trace rx tx max 150 file both.pcapng").contains("0 of 150"));
    let second = site.ctl("pcap trace rx");
    assert!(!second.status.success() && text(&second.stderr).contains("end that first"), "{second:?}");
    assert_eq!(peers[0].senders[0].send(&[&sent[..]; 100]), 100);
    // It ends by itself.
    until("the end of the capture", || site.well("pcap trace status").contains("no packets").then_some(()));
    let lines = until("its end in the log", || {
        let lines = site.router.said_so_far();
        lines.iter().any(|line| line.contains("150 of 150 packets captured to ")).then_some(lines)
    });
    assert!(!lines.iter().any(|line| line.contains("missed")), "{lines:?}");
    let both = packets(&site.path("both.pcapng"));
    assert_eq!((both.len(), &both[0]), (150, &(0, sent.clone(), sent.len(), 1)));
    let left: Vec<_> = both.iter().filter(|packet| packet.3 == 2).collect();
    assert!(!left.is_empty() && left.iter().all(|packet| packet.0 == 1 && packet.1[22] == 63), "{left:?}");
    let mode = fs::metadata(site.path("both.pcapng")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // Of one interface, one way, the first bytes.
    site.well("pcap trace tx intfc wan max-bytes-per-pkt 32 file tx.pcapng");
    let mut received = [memif::Frame::NONE; 256];
    peers[1].receivers[0].receive(&mut received);
    peers[1].receivers[0].release();
    assert_eq!(peers[0].senders[0].send(&[&sent[..]; 10]), 10);
    until("ten packets", || site.well("pcap trace status").contains("10 of 1000").then_some(()));
    assert!(site.well("pcap trace off").contains("10 of 1000 packets captured"));
    let few = packets(&site.path("tx.pcapng"));
    assert_eq!(few.len(), 10);
    assert!(
        few.iter().all(|packet| (packet.0, packet.1.len(), packet.2, packet.3) == (1, 32, sent.len(), 2))
    );

    // Neither over another file nor through a link.
    symlink(site.path("elsewhere"), site.path("link.pcapng")).unwrap();
    for (words, clue) in [
        ("pcap trace rx file tx.pcapng", "give the file another name"),
        ("pcap trace rx file link.pcapng", "give the file another name"),
        ("pcap trace rx intfc dmz", "no interface 'dmz'"),
        ("pcap trace off", "no packets are captured"),
    ] {
        let output = site.ctl(words);
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(text(&output.stderr).contains(clue), "{words}: {}", text(&output.stderr));
    }
    assert!(!site.path("elsewhere").exists());
    site.router.stop(Signal::SIGTERM);
}

#[test]
fn metrics_are_shown_and_served_where_the_configuration_says_so() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let site = Site::new(&format!("metrics = \"{free}\""));
    let mut peers = site.peers();
    let sent = frame(OURS[0], [48, 0, 0, 1], 64, 46);
    assert_eq!(peers[0].senders[0].send(&[&sent[..]; 100]), 100);
    let line = "fastpath_interface_sent_packets_total{interface=\"wan\"} 100\n";
    until("100 packets", || site.well("show metrics").contains(line).then_some(()));
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(free).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = ask(&format!("GET /metrics HTTP/1.1\r\nHost: {free}\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    for clue in [
        line,
        "# TYPE fastpath_interface_sent_packets_total counter\n",
        "fastpath_interface_up{interface=\"lan\"} 1\n",
        "fastpath_node_packets_total{worker=\"worker 0\",node=\"ip4-lookup\"} 100\n",
        "version=0.0.4",
    ] {
        assert!(answer.contains(clue), "no {clue} in {answer}");
    }
    assert!(ask("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n").starts_with("HTTP/1.1 403 "));
    assert!(ask(&format!("GET / HTTP/1.1\r\nHost: {free}\r\n\r\n")).starts_with("HTTP/1.1 404 "));
    assert!(ask(&format!("POST /metrics HTTP/1.1\r\nHost: {free}\r\n\r\n")).starts_with("HTTP/1.1 405 "));
    // A client that says nothing keeps neither others nor the end waiting.
    let _silent = TcpStream::connect(free).unwrap();
    assert!(ask(&format!("GET /metrics HTTP/1.1\r\nHost: {free}\r\n\r\n")).contains(line));
    site.router.stop(Signal::SIGTERM);
}
