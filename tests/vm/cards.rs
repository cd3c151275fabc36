//! Emulated cards with a router between them. A machine and a kind of card enter; what the program counted is held
//! against what the cards counted, to the frame where nothing else sends.

use std::thread;
use std::time::Duration;

use results::Record;
use results::record::LimitedBy;

use super::guest::{Guest, Output};

/// Four cards of one kind. In the machine `NAME-0` and `NAME-1` are the tester's ports; `NAME-2` and `NAME-3`, at the
/// other ends of their cables, are the router's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Up to 10 letters.
    pub name: &'static str,
    /// What QEMU calls it, with its settings.
    pub device: &'static str,
    /// Its driver in Linux.
    pub driver: &'static str,
    /// How QEMU connects it.
    pub cable: Cable,
}

/// What is between two cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cable {
    /// A hub of QEMU's own: one queue, and no offloads.
    Hub,
    /// A bridge of this machine in a namespace of the test's, with a tap of so many pairs of queues at either end.
    /// The host offers its offloads to the guest.
    Bridge { queues: u32 },
    /// A process that takes 500 frames a second at most in each direction, and loses none.
    Slow,
}

pub const VIRTIO: Kind =
    Kind { name: "virtio", device: "virtio-net-pci", driver: "virtio_net", cable: Cable::Hub };
/// The host takes few frames a second off the ports: their transmit queues, of 256 frames, are soon full.
pub const SLOW: Kind =
    Kind { name: "slow", device: "virtio-net-pci", driver: "virtio_net", cable: Cable::Slow };
pub const VMXNET3: Kind = Kind { name: "vmxnet3", device: "vmxnet3", driver: "vmxnet3", cable: Cable::Hub };
pub const E1000E: Kind = Kind { name: "e1000e", device: "e1000e", driver: "e1000e", cable: Cable::Hub };
pub const E1000: Kind = Kind { name: "e1000", device: "e1000", driver: "e1000", cable: Cable::Hub };
/// Several pairs of queues; the guest can switch off what the host merges.
pub const QUEUES: Kind = Kind {
    name: "queues",
    device: "virtio-net-pci,mq=on,vectors=12",
    driver: "virtio_net",
    cable: Cable::Bridge { queues: 5 },
};
/// The host merges frames, and the guest cannot switch that off.
pub const MERGING: Kind = Kind {
    name: "merging",
    device: "virtio-net-pci,ctrl_guest_offloads=off",
    driver: "virtio_net",
    cable: Cable::Bridge { queues: 1 },
};

/// What the router's limit lets pass, in frames a second.
const LIMIT: f64 = 200.0;
/// How often an interface is asked until it counted all.
const LOOKS: usize = 12;

/// A machine whose cards of one kind are wired: the router is in a namespace of its name.
pub struct Wired<'a> {
    guest: &'a mut Guest,
    kind: Kind,
}

impl<'a> Wired<'a> {
    /// Gives ports and router their addresses and routes, as docs/real-ports.md asks for.
    pub fn new(guest: &'a mut Guest, kind: Kind) -> Self {
        let name = kind.name;
        guest.run(&format!(
            "ip netns add router
             for n in 0 1; do
                 dev={name}-$((n + 2))
                 ip link set $dev netns router
                 ip address add 100.65.$((n + 1)).2/24 dev {name}-$n
                 ip link set {name}-$n up
                 ip -n router address add 100.65.$((n + 1)).1/24 dev $dev
                 ip -n router link set $dev up
             done
             ip -n router route add 16.0.0.0/8 via 100.65.1.2
             ip -n router route add 48.0.0.0/8 via 100.65.2.2
             ip netns exec router sysctl -qw net.ipv4.ip_forward=1
             for end in '{name}-0' '{name}-1' '{name}-2 netns router' '{name}-3 netns router'; do
                 set -- $end
                 for try in $(seq 100); do
                     ip ${{3:+-n $3}} link show $1 | grep -q LOWER_UP && break
                     sleep 0.1
                 done
             done"
        ));
        Self { guest, kind }
    }

    /// Runs the program with `--ports` and `--gateways`.
    fn through_the_router(&mut self, line: &str) -> Output {
        let name = self.kind.name;
        self.guest
            .linerate(&format!("{line} --ports {name}-0,{name}-1 --gateways 100.65.1.1,100.65.2.1 --json"))
    }

    /// Frames that the router's first card received.
    fn arrived(&mut self) -> u64 {
        let count = self.guest.run(&format!(
            "ip netns exec router cat /sys/class/net/{}-2/statistics/rx_packets",
            self.kind.name
        ));
        count.trim().parse().unwrap()
    }

    /// Waits until the router's first card has received `count` frames since it had `before`; some drivers say
    /// what they counted every two seconds.
    fn must_arrive(&mut self, before: u64, count: u64, said: &str) {
        for _ in 0..LOOKS {
            if self.arrived() - before == count {
                return;
            }
            thread::sleep(Duration::from_millis(500));
        }
        let name = self.kind.name;
        let cards = self
            .guest
            .run(&format!("ip -s link show {name}-0; ip netns exec router ip -s link show {name}-2"));
        let came = self.arrived() - before;
        panic!("{:?}: {count} frames were offered, {came} arrived: {said}{cards}", self.kind);
    }

    /// What is sent by one port is what the interface counted, and what arrived at the other end of its cable, to the
    /// frame. `--engine auto` takes `engine`, and says why, with the word `why`.
    pub fn what_left_is_what_was_counted(&mut self, engine: &str, why: &str) {
        let name = self.kind.name;
        let mac = self.guest.run(&format!("ip netns exec router cat /sys/class/net/{name}-2/address"));
        let (before, taken_before) = (self.arrived(), self.taken().filter(|_| engine == "xdp"));
        let line = format!("send --port {name}-0 --to {} --rate 300pps --duration 1s --json", mac.trim());
        let sent = self.guest.linerate(&line).well();
        let reason = sent.stderr.lines().find(|line| line.starts_with("engine: ")).unwrap_or_default();
        let expected = format!("engine: {engine}, because");
        assert!(reason.starts_with(&expected) && reason.contains(why), "{:?}: {}", self.kind, sent.stderr);
        let told = sent.json();
        let offered = told["offered"].as_u64().unwrap();
        assert!(offered > 0, "{:?}: {}", self.kind, sent.stderr);
        let counted = told["interface_sent"].as_u64().unwrap();
        // virtio_net adds a batch to its count when it sends the next by the same queue.
        let pending = if self.kind == QUEUES { 16 } else { 0 };
        assert!(
            counted <= offered && offered <= counted + pending,
            "{:?}: {told} {}",
            self.kind,
            sent.stderr
        );
        self.must_arrive(before, offered, &sent.stderr);
        if let Some((then, now)) = taken_before.zip(self.taken()) {
            // Kernels that do not tell what a driver can do are tried: up to 208 frames, 16 at once.
            let tried = now - then - offered;
            assert!(tried.is_multiple_of(16) && tried <= 208, "{:?}: {told}: {then} {now}", self.kind);
        }
    }

    /// Frames that virtio_net's first queue took from XDP since it was loaded, where the kernel calls them so. Of
    /// several queues it hides those of XDP when the program is gone.
    fn taken(&mut self) -> Option<u64> {
        if self.kind != VIRTIO {
            return None;
        }
        Some(self.counter("tx_queue_0_xdp_tx")? - self.counter("tx_queue_0_xdp_tx_drops")?)
    }

    /// Frames of XDP that virtio_net's first queue had no room for.
    fn drops(&mut self) -> u64 {
        let names = ["tx_queue_0_xdp_tx_drops", "tx0_xdp_tx_drops"];
        names
            .into_iter()
            .find_map(|name| self.counter(name))
            .unwrap_or_else(|| panic!("{}", self.guest.run(&format!("ethtool -S {}-0", self.kind.name))))
    }

    /// What the driver of the first port counted by this name.
    fn counter(&mut self, name: &str) -> Option<u64> {
        let counters = self.guest.run(&format!("ethtool -S {}-0", self.kind.name));
        let mut counters = counters.lines().filter_map(|line| line.trim().split_once(": "));
        counters.find(|(counter, _)| *counter == name).map(|(_, count)| count.parse().unwrap())
    }

    /// A ramp far below what all can do: every frame comes back, and all interfaces on the way agree.
    pub fn a_ramp_comes_back(&mut self, engine: &str) {
        let line = "ramp --rate 300pps --duration 1s --step 250ms --hold-duration 250ms --drain 2s \
                    --warm-up-duration 300ms";
        let record = self.through_the_router(line).well().record();
        assert_eq!(record.tester.engine, engine, "{:?}", self.kind);
        self.all_came_back(&record);
    }

    fn all_came_back(&self, record: &Record) {
        let way = &record.directions[0];
        assert!(way.offered > 0, "{:?}: {:?}", self.kind, record.notes);
        assert_eq!(
            way.forwarded, way.offered,
            "{:?}: {:?} {:?}",
            self.kind, record.notes, record.cross_check
        );
        assert!(record.cross_check.iter().all(|check| check.agrees), "{:?}: {record:#?}", self.kind);
        assert_ne!(way.limited_by, LimitedBy::Dut, "{:?}: {record:#?}", self.kind);
    }

    /// A capture leaves whole and comes back.
    pub fn a_capture_comes_back(&mut self) {
        let octal: String = capture().iter().map(|byte| format!("\\{byte:03o}")).collect();
        self.guest.run(&format!("printf '{octal}' >/tmp/trace.pcap"));
        let before = self.arrived();
        let told = self.through_the_router("send /tmp/trace.pcap --rate 100pps --loops 10 --drain 2s").well();
        let json = told.json();
        assert_eq!((json["sent"].as_u64(), json["received"].as_u64()), (Some(30), Some(30)), "{json}");
        // The router asks for the tester's address, or it has not to.
        let came = self.arrived() - before;
        assert!((30..40).contains(&came), "{came} arrived: {json}");
    }

    /// The port's queue is full most of the time. What it did not take is unsent, with the driver's own count and
    /// for that reason; the device, which forwarded all that left, is not to blame.
    pub fn a_full_queue_is_the_testers(&mut self, engine: &str) {
        let before = self.drops();
        // The driver stops its queue for 0.4 s when it is full: frames wait in it longer than a step.
        let line = format!(
            "saturate --engine {engine} --rate 2kpps --duration 2s --step 100ms --warm-up-duration 300ms --warm-up \
             100pps --drain 5s"
        );
        let output = self.through_the_router(&line).well();
        let record = output.record();
        let way = &record.directions[0];
        assert_eq!(way.forwarded, way.offered, "{record:#?}");
        let by_sample: u64 = record.samples.iter().map(|sample| sample.directions[0].offered).sum();
        assert_eq!(by_sample, way.offered, "{record:#?}");
        assert!(record.cross_check.iter().all(|check| check.agrees), "{record:#?}");
        assert_eq!(way.limited_by, LimitedBy::Tester, "{record:#?}");
        assert!(way.unsent > way.offered / 10, "{record:#?}");
        if engine == "xdp" {
            let full = way.untaken.get("the driver's transmit queue was full").copied().unwrap_or(0);
            assert_eq!(self.drops() - before, full, "{record:#?}");
            // An emulated tester that hardly has its core sends too little to fill the queue.
            let held_up = record.notes.iter().find(|note| note.starts_with("interference from the host"));
            match held_up {
                Some(note) if full == 0 => eprintln!("skipped: the queue was never full: {note}"),
                _ => assert!(full > 0, "{record:#?}"),
            }
        }
    }

    /// What `send` counts by a queue that is full when it ends is what arrives.
    pub fn what_left_a_full_queue_is_counted(&mut self, engine: &str) {
        let name = self.kind.name;
        let mac = self.guest.run(&format!("ip netns exec router cat /sys/class/net/{name}-2/address"));
        let before = self.arrived();
        let line = format!(
            "send --port {name}-0 --engine {engine} --to {} --rate 2kpps --duration 500ms --json",
            mac.trim()
        );
        let sent = self.guest.linerate(&line).well();
        let told = sent.json();
        let count = |key: &str| told[key].as_u64().unwrap();
        assert!(count("offered") > 0 && count("unsent") > 0, "{told}");
        self.must_arrive(before, count("offered"), &sent.stderr);
    }

    /// The router lets 200 frames a second pass. A ramp and a search find that, and name the device.
    pub fn a_limited_router_is_found(&mut self, engine: &str) {
        self.guest.run(&format!(
            "ip netns exec router nft add table ip limits
             ip netns exec router nft 'add chain ip limits passing {{ type filter hook forward priority 0; }}'
             ip netns exec router nft add rule ip limits passing limit rate over {LIMIT}/second burst 4 packets drop"
        ));
        let line = "ramp --rate 800pps --duration 3s --step 250ms --hold-duration 500ms --drain 1s --warm-up 50pps \
                    --warm-up-duration 500ms";
        let record = self.through_the_router(line).well().record();
        assert_eq!(record.tester.engine, engine);
        let way = &record.directions[0];
        assert_eq!(way.limited_by, LimitedBy::Dut, "{record:#?}");
        assert!(way.forwarded < way.offered && way.max_rate_pps < 2.0 * LIMIT, "{record:#?}");
        assert!(record.cross_check.iter().all(|check| check.agrees), "{record:#?}");

        let line = "search --goal ndr:width=20%,initial=500ms,final=1s,sum=2s,queue=4 --min-rate 50pps --max-rate \
                    800pps --warm-up 50pps --warm-up-duration 500ms --drain 500ms --time-limit 25s";
        let record = self.through_the_router(line).well().record();
        let found = record.directions[0].results["ndr"];
        // On a busy machine frames leave too late, or trials are disturbed: that is the tester's, or it is not known
        // whose the loss is.
        let short = record.directions[0].unsent * 100 > record.directions[0].offered;
        match found.limited_by {
            LimitedBy::Dut => {}
            LimitedBy::Tester | LimitedBy::Unknown if short || found.disturbed => {
                eprintln!("skipped: the tester spoiled the search: {found:?}")
            }
            _ => panic!("{record:#?}"),
        }
        assert!(found.lower_pps < 1.1 * LIMIT, "{found:?}");
        assert!(found.upper_pps.is_none_or(|upper| upper > 0.5 * LIMIT), "{found:?}");
        self.guest.run("ip netns exec router nft delete table ip limits");
    }

    /// Killed in the middle, the program leaves no XDP program at the ports, and can start anew.
    pub fn nothing_stays_after_a_kill(&mut self) {
        let name = self.kind.name;
        let line = format!(
            "saturate --ports {name}-0,{name}-1 --gateways 100.65.1.1,100.65.2.1 --rate 100pps --duration 60s"
        );
        self.guest.run(&format!(
            "linerate {line} >/tmp/killed 2>&1 &
             pid=$!
             for try in $(seq 300); do
                 ip -details link show {name}-1 | grep -q prog/xdp && break
                 sleep 0.2
             done
             ip -details link show {name}-1 | grep -q prog/xdp || {{ cat /tmp/killed >&2; exit 1; }}
             sleep 1
             kill -9 $pid"
        ));
        self.nothing_is_attached();
        self.what_left_again();
    }

    fn what_left_again(&mut self) {
        let line = "ramp --rate 300pps --duration 500ms --step 250ms --hold-duration 250ms --drain 2s \
                    --warm-up-duration 300ms";
        let record = self.through_the_router(line).well().record();
        self.all_came_back(&record);
    }

    /// Waits until no XDP program is at the ports: the kernel cleans up when nobody looks.
    pub fn nothing_is_attached(&mut self) {
        let name = self.kind.name;
        let look = format!("ip -details link show {name}-0; ip -details link show {name}-1");
        let mut links = String::new();
        for _ in 0..LOOKS {
            links = self.guest.run(&look);
            if !links.contains("prog/xdp") {
                return;
            }
            thread::sleep(Duration::from_millis(300));
        }
        panic!("{links}");
    }

    /// Takes the router away.
    pub fn unwire(self) {
        let name = self.kind.name;
        self.guest.run(&format!(
            "ip netns delete router
             for n in 0 1; do ip address flush dev {name}-$n; ip link set {name}-$n down; done"
        ));
    }
}

/// Three UDP datagrams to the network behind the router, as a file.
fn capture() -> Vec<u8> {
    let mut writer = traffic::capture::Writer::new(Vec::new()).unwrap();
    for number in 0..3_u8 {
        let datagram = etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4([16, 0, 0, 1], [48, 0, 0, 1 + number], 64)
            .udp(1000, 2000);
        let mut frame = Vec::new();
        datagram.write(&mut frame, &[number; 30]).unwrap();
        writer.frame(u64::from(number) * 1_000_000, &frame).unwrap();
    }
    writer.finish().unwrap()
}
