//! Frames of any bytes through a router that does all it can: routes, with VLANs, neighbours and access lists, bridges
//! and cross connects. Nothing vanishes, nothing panics, and no byte beside a frame is touched.
//!
//! The bytes of an input are a script: most steps have a frame of the corpus arrive somewhere, with some of
//! its bytes changed and its end cut or stretched; others have any bytes arrive, forward what has arrived, let
//! time pass, trace packets, give an interface access lists or none, or have bytes rewritten between two nodes, as who shares a frame's memory may. A frame
//! that has once caused harm is kept in `corpus`, too.

use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use fastpath::acl::{AccessList, Action, Addresses, Carried, Filters, Rule};
use fastpath::bridge::Settings;
use fastpath::counters::{Counters, Reason};
use fastpath::fib::{Capacity, Prefix};
use fastpath::forwarding::Role;
use fastpath::node::Node;
use fastpath::punt::{Kernel, Punt};
use fastpath::router::{Error, Hop, Router};
use fastpath::vector::{Index, Packets};
use fastpath::worker::{Receive, Worker};
use wire::MacAddress;

use crate::guarded::Memory;

/// Devices: two route, two are a bridge, two are cross connected.
pub const DEVICES: u16 = 6;

/// Frames of all kinds that a router meets.
pub fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// Plays `script`, whose frames are changed ones of `corpus`.
pub fn play(corpus: &[Vec<u8>], script: &[u8]) {
    let mut net = Net::default();
    let mut script = script.iter().copied();
    while let Some(step) = script.next() {
        let mut next = || script.next().unwrap_or(0);
        match step {
            // What has arrived goes on; how much each device takes.
            0..16 => {
                let room = usize::from(next());
                net.memory.set_room(if room < 32 { room } else { 4096 });
                net.forward();
            }
            16..20 => net.pass_time(Duration::from_secs(u64::from(next()))),
            20..24 => net.router.traces().add(u32::from(next()) % 8),
            // Of one frame, many.
            24 => {
                let (device, frame) =
                    (u16::from(next()) % DEVICES, &corpus[usize::from(next()) % corpus.len()]);
                (0..usize::from(next()) * 2).for_each(|_| net.arrive(device, frame, 4));
            }
            25 => net.filter(u16::from(next()) % (DEVICES + 1), next()),
            26..28 => net.rewrites.push([next(), next(), next(), next()]),
            28..48 => {
                let (device, length) = (u16::from(next()) % DEVICES, usize::from(next()));
                let frame: Vec<u8> = (0..length).map(|_| next()).collect();
                net.arrive(device, &frame, 4);
            }
            _ => {
                let mut frame = corpus[usize::from(next()) % corpus.len()].clone();
                let device = u16::from(next()) % DEVICES;
                for _ in 0..step % 4 {
                    // Headers more often than what follows.
                    let at = usize::from(next()) % 64;
                    if let Some(byte) = frame.get_mut(at) {
                        *byte = next();
                    }
                }
                match step / 4 % 8 {
                    0 => frame.truncate(usize::from(next())),
                    1 => frame.resize(frame.len() + usize::from(next()) * 8, 0x55),
                    _ => {}
                }
                net.arrive(device, &frame, [0, 3, 4, 256][usize::from(step / 32 % 4)]);
            }
        }
    }
    net.memory.set_room(4096);
    net.forward();
}

/// A kernel that takes packets three times of four.
#[derive(Default)]
struct Sometimes(std::sync::atomic::AtomicUsize);

impl Punt for Sometimes {
    fn punt(&self, frame: &[u8]) -> bool {
        assert!(frame.len() < 65_536);
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 4 != 3
    }
}

/// The router, and what it is attached to.
pub struct Net {
    router: Router,
    worker: Worker,
    pub counters: Arc<Counters>,
    memory: Memory,
    arrived: u64,
    now: Duration,
    /// What is written to lent frames when the next ones are forwarded: before which node, to which frame, where,
    /// and what.
    rewrites: Vec<[u8; 4]>,
}

/// A router for the devices: with routes and neighbours at the first two, a bridge at the next two, and a cross
/// connect at the last two.
fn router() -> Result<Router, Error> {
    // As much room as an input may need: each makes its own tables.
    let capacity = Capacity { nodes: 1 << 14, groups: 16 };
    let mut router = Router::with_capacity(capacity, capacity)?;
    router.set_states(fastpath::states::Settings { maximum: 20, ..Default::default() });
    // What changes together is published once.
    let hops = router.batch(set_interfaces)?;
    router.with_next_hops(&hops, |router| add_routes(router, &hops))??;
    Ok(router)
}

/// Returns the neighbours: two on each subnet, by IPv4 and IPv6.
fn set_interfaces(router: &mut Router) -> Result<Vec<Hop>, Error> {
    for device in 0..DEVICES {
        let mac = MacAddress([2, 0, 0, 0, 0, device as u8]);
        let mtu = if device == 5 { 100 } else { 1500 };
        assert_eq!(router.add_device(&format!("port{device}"), mac, mtu)?, device);
    }
    let vlan = router.add_vlan(1, 7)?;
    let of_bridge = router.add_vlan(2, 5)?;
    let (eight, nine) = (router.add_vlan(4, 8)?, router.add_vlan(5, 9)?);
    // Before it has ports, or it would first be made with room for many stations.
    router.set_bridge(1, Settings { stations: 3, ..Settings::default() });
    let roles = [
        (2, Role::Bridge(1)),
        (3, Role::Bridge(1)),
        (of_bridge, Role::Bridge(1)),
        (4, Role::CrossConnect(5)),
        (5, Role::CrossConnect(4)),
        (eight, Role::CrossConnect(nine)),
        (nine, Role::CrossConnect(eight)),
    ];
    for (interface, role) in roles {
        router.set_interface(interface, |interface| interface.role = role)?;
    }
    let kernel = Arc::new(Sometimes::default());
    for interface in [0, vlan] {
        router.set_kernel(interface, Some(Kernel::new(kernel.clone())))?;
    }
    let mac = MacAddress([2, 0, 0, 0, 1, 2]);
    let mut hops = Vec::new();
    for (subnet, interface) in [(0, 0), (1, 1), (7, vlan)] {
        router.add_address(interface, IpAddr::from([10, subnet, 0, 1]), 24)?;
        let address = |last| IpAddr::from([0xfd00 + u16::from(subnet), 0, 0, 0, 0, 0, 0, last]);
        router.add_address(interface, address(1), 64)?;
        for neighbour in [IpAddr::from([10, subnet, 0, 2]), address(2)] {
            router.set_neighbour(interface, neighbour, mac)?;
            hops.push(Hop::Neighbour(interface, neighbour));
        }
    }
    Ok(hops)
}

fn add_routes(router: &mut Router, hops: &[Hop]) -> Result<(), Error> {
    for (first, to) in
        [(16u32, &[hops[0]][..]), (48, &[hops[2]]), (49, &[hops[4]]), (50, &[hops[2], hops[4]])]
    {
        router.add_route(Prefix::new(first << 24, 16)?, to)?;
    }
    router.add_route(Prefix::new(0x2001_0db8_0001_u128 << 80, 48)?, &[hops[3], hops[5]])
}

impl Default for Net {
    fn default() -> Self {
        let mut router = router().unwrap();
        let memory = Memory::new(usize::from(DEVICES));
        let inputs = (0..DEVICES).map(|device| Receive::new(device, memory.input(device))).collect();
        // What the first two send was routed, with a link header and a tag at most; bridges take any length.
        let longest = |device| if device < 2 { 1500 + 18 } else { usize::MAX };
        let outputs = (0..DEVICES).map(|device| memory.output(longest(device))).collect();
        let counters = Arc::new(Counters::default());
        let worker = Worker::new(inputs, outputs, router.attach(), Arc::clone(&counters));
        Self { router, worker, counters, memory, arrived: 0, now: Duration::ZERO, rewrites: Vec::new() }
    }
}

impl Net {
    /// A frame arrives, with room for some bytes more.
    pub fn arrive(&mut self, device: u16, frame: &[u8], room: usize) {
        self.memory.arrive(device, frame, room);
        self.arrived += 1;
    }

    /// An interface has lists, or none, as bits of `which` say.
    pub fn filter(&mut self, interface: u16, which: u8) {
        let rule = |action, carried| Rule { action, addresses: Addresses::Any, carried };
        let ports = Carried::Ports { protocol: which % 2 * 11 + 6, source: 0..=u16::MAX, destination: 0..=9 };
        let last =
            [Action::Permit, Action::Deny, Action::KeepState, Action::KeepState][usize::from(which / 8 % 4)];
        let rules = vec![
            rule(Action::Deny, ports),
            rule(Action::Permit, Carried::Type { protocol: 58, kind: 135 }),
            rule(last, Carried::Any),
        ];
        let list = AccessList::new("list", rules);
        let of = |bit: u8| (which & bit != 0).then(|| Arc::clone(&list));
        self.router.set_filters(interface, Filters { input: of(2), output: of(4) }).unwrap();
    }

    fn pass_time(&mut self, time: Duration) {
        self.now += time;
        self.router.tick(self.now);
        self.router.poll();
    }

    /// Forwards what has arrived, and checks that nothing vanished.
    pub fn forward(&mut self) {
        let rewrites = std::mem::take(&mut self.rewrites);
        let (mut lent, mut calls) = (0, 0);
        let mut rewrite = |node, packets: &mut Packets| {
            if node == Node::DeviceInput {
                (lent, calls) = (packets.len(), 0);
            }
            for [_, frame, at, byte] in rewrites.iter().filter(|[when, ..]| lent > 0 && when % 16 == calls) {
                let bytes = packets.bytes_mut((usize::from(*frame) % lent) as Index);
                // Headers alone.
                if let Some(place) = bytes.get_mut(usize::from(*at) % 96) {
                    *place = *byte;
                }
            }
            calls = (calls + 1) % 16;
        };
        while self.worker.turn_before_nodes(&mut rewrite) > 0 {}
        self.router.poll();
        let balance = self.counters.balance();
        assert!(balance.holds(), "{balance:?}");
        assert_eq!((balance.received, balance.sent), (self.arrived, self.memory.sent()));
        let ends = Reason::ALL.iter().filter(|reason| reason.ends());
        let reasons: u64 = ends.map(|&reason| self.counters.reasons[reason as usize].get()).sum();
        assert_eq!(reasons, balance.dropped, "every drop has a reason");
        self.check_traces();
    }

    /// Packets go only where the graph's drawing leads.
    fn check_traces(&self) {
        for traced in self.router.traces().list(self.router.forwarding()) {
            for step in &traced.steps {
                let node = Node::ALL.iter().find(|node| node.name() == step.node).unwrap();
                let next = step.next.as_ref();
                assert!(
                    next.is_none_or(|next| node.next().iter().any(|node| node.name() == next)),
                    "{step:?}"
                );
            }
        }
        self.router.traces().clear();
    }
}

/// A target of any bytes as a script.
pub fn run(script: &[u8]) {
    static CORPUS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(corpus);
    play(&CORPUS, script);
}

/// Scripts that have every frame of the corpus arrive at every device.
pub fn scripts() -> Vec<Vec<u8>> {
    let arrivals =
        |device: u16| (0..corpus().len() as u8).flat_map(move |frame| [48, frame, device as u8, 0]).collect();
    (0..DEVICES).map(arrivals).collect()
}
