//! Flows spread over workers (RSS): every flow stays on one worker and keeps its order, and nothing vanishes.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastpath::config::{Idle, Precedence};
use fastpath::counters::{Counters, Reason};
use fastpath::device::simulated::Wire;
use fastpath::device::{self, Output};
use fastpath::fib::Prefix;
use fastpath::flow::rss::Rss;
use fastpath::handoff::{Handoff, Meter};
use fastpath::node::Node;
use fastpath::router::{Hop, Router};
use fastpath::snapshot::Snapshot;
use fastpath::threads::{self, Job};
use fastpath::worker::{Receive, Worker};
use memif::{Config, Frame, Memif, Opened, Role, Socket};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use proptest::prelude::*;
use wire::{MacAddress, ethernet, ipv4};

const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x10]);
const THEIRS: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x20]);
/// Where the flow and the number of a frame stand: its source port, and its first bytes of payload.
const FLOW: usize = ethernet::LENGTH + ipv4::LENGTH;
const NUMBER: usize = FLOW + 8;

/// Frame `number` of a flow, to a destination behind the second device.
fn frame(flow: u16, number: u32, length: usize) -> Vec<u8> {
    let ethernet = ethernet::Header { destination: OURS, source: THEIRS, ethertype: ethernet::IPV4 };
    let header = ipv4::Header {
        source: Ipv4Addr::new(16, 0, 0, 1),
        destination: Ipv4Addr::new(48, 0, 0, 1),
        ttl: 64,
        protocol: ipv4::UDP,
        total_length: length as u16,
        tos: 0,
        identification: 0,
    };
    let mut frame = [&ethernet.emit()[..], &header.emit()].concat();
    frame.extend([flow, 9, 8, 0].map(u16::to_be_bytes).as_flattened());
    frame.extend(number.to_be_bytes());
    frame.resize(ethernet::LENGTH + length, 0xab);
    frame
}

/// The flow and the number of a frame.
fn identity(frame: &[u8]) -> (u16, u32) {
    let flow = frame[FLOW..].first_chunk().unwrap();
    let number = frame[NUMBER..].first_chunk().unwrap();
    (u16::from_be_bytes(*flow), u32::from_be_bytes(*number))
}

/// Notes who had which flow, and checks that nobody else had it and that it kept its order.
#[derive(Default)]
struct Flows {
    of: HashMap<u16, (usize, u32)>,
    frames: u64,
}

impl Flows {
    fn note(&mut self, worker: usize, frame: &[u8]) {
        let (flow, number) = identity(frame);
        if let Some((before, last)) = self.of.insert(flow, (worker, number)) {
            assert_eq!(before, worker, "flow {flow} changed its worker");
            assert!(last < number, "flow {flow}: {number} after {last}");
        }
        self.frames += 1;
    }

    fn workers(&self) -> usize {
        let mut workers: Vec<_> = self.of.values().map(|(worker, _)| *worker).collect();
        workers.sort_unstable();
        workers.dedup();
        workers.len()
    }
}

/// A router of two devices, by whose second one all frames leave.
fn router() -> Router {
    let mut router = Router::new().unwrap();
    for name in ["lan", "wan"] {
        router.add_device(name, OURS, 1500).unwrap();
    }
    let neighbour = IpAddr::from([10, 1, 0, 2]);
    router.set_neighbour(1, neighbour, THEIRS).unwrap();
    let prefix = Prefix::new(u32::from(Ipv4Addr::new(48, 0, 0, 0)), 8).unwrap();
    router.add_route(prefix, &[Hop::Neighbour(1, neighbour)]).unwrap();
    router
}

/// Workers of which the first one polls the only queue of the first device.
struct Team {
    /// What arrives.
    arriving: Wire,
    /// By worker: what it sent.
    sent: Vec<Wire>,
    workers: Vec<Worker>,
    counters: Vec<Arc<Counters>>,
    meters: Vec<Meter>,
    _router: Router,
}

impl Team {
    fn new(workers: usize) -> Self {
        let mut router = router();
        let (arriving, mut queues) = Wire::device(0);
        let (handoff, ways) = Handoff::new(Arc::new(Rss::new(workers)), 0, workers);
        let mut polled = Receive::new(0, queues.inputs.remove(0));
        polled.handoff = Some(handoff);
        let mut inputs = vec![vec![polled]];
        let mut meters = Vec::new();
        for way in ways {
            assert_eq!(way.to, inputs.len());
            inputs.push(vec![Receive::new(0, way.input)]);
            meters.push(way.meter);
        }
        let (mut team, mut sent, mut counters) = (Vec::new(), Vec::new(), Vec::new());
        for inputs in inputs {
            let (wire, mut queues) = Wire::device(usize::MAX);
            let nowhere = device::null::queues(0, 1).outputs.remove(0);
            let outputs: Vec<Box<dyn Output>> = vec![nowhere, queues.outputs.remove(0)];
            let counts = Arc::new(Counters::default());
            team.push(Worker::new(inputs, outputs, router.attach(), Arc::clone(&counts)));
            sent.push(wire);
            counters.push(counts);
        }
        Self { arriving, sent, workers: team, counters, meters, _router: router }
    }

    fn all(&self) -> Snapshot {
        let none = Snapshot::of(&Counters::default());
        self.counters.iter().fold(none, |sum, counters| sum.and(&Snapshot::of(counters)))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Workers take turns in any order, and may be so late that rings are full.
    #[test]
    fn flows_keep_to_their_worker_and_their_order_and_nothing_vanishes(
        workers in 1usize..5,
        turns in prop::collection::vec((0usize..5, prop::collection::vec((0u16..40, 46usize..1500), 0..120)), 1..40),
        strange in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..20),
    ) {
        let mut team = Team::new(workers);
        let mut put = 0;
        for (turn, frames) in turns {
            for (flow, length) in frames {
                team.arriving.put(frame(flow, put, length));
                put += 1;
            }
            team.workers[turn % workers].turn();
            prop_assert!(team.counters.iter().all(|counters| counters.balance().holds()));
        }
        // Frames of all kinds are somebody's.
        for frame in &strange {
            team.arriving.put(frame.clone());
        }
        while team.workers.iter_mut().map(Worker::turn).sum::<usize>() > 0 {}
        let all = team.all();
        let balance = all.balance();
        prop_assert!(balance.holds(), "{:?}", balance);
        prop_assert_eq!(balance.received, u64::from(put) + strange.len() as u64);
        prop_assert_eq!(all.reasons.iter().sum::<u64>(), balance.dropped);
        let refused: u64 = team.meters.iter().map(Meter::refused).sum();
        prop_assert_eq!(all.reasons[Reason::Congestion as usize], refused);
        let handed: u64 = team.meters.iter().map(Meter::handed).sum();
        let others: u64 = team.counters[1..].iter().map(|counters| counters.balance().received).sum();
        prop_assert_eq!(others, handed);
        let mut flows = Flows::default();
        for (worker, wire) in team.sent.iter().enumerate() {
            while let Some(frame) = wire.take() {
                flows.note(worker, &frame);
            }
        }
        prop_assert_eq!(flows.frames + refused + strange.len() as u64, u64::from(put) + strange.len() as u64);
    }
}

#[test]
fn a_worker_that_does_not_keep_up_costs_its_own_flows_alone() {
    let mut team = Team::new(2);
    let long = |number| frame((number % 64) as u16, number, 1500);
    for number in 0..2000 {
        team.arriving.put(long(number));
    }
    while team.workers[0].turn() > 0 {}
    let counted = |worker: usize, reason: Reason| team.counters[worker].reasons[reason as usize].get();
    let congested = counted(0, Reason::Congestion);
    assert!(congested > 0 && congested == team.meters[0].refused());
    let balance = team.counters[0].balance();
    assert!(balance.holds());
    assert_eq!((balance.dropped, balance.received + team.meters[0].handed()), (congested, 2000));
    let kept = team.counters[0].nodes[Node::EthernetInput as usize].vectors.get();
    assert_eq!(balance.sent, kept, "its own flows lost nothing");
    // There is room again when it has caught up.
    while team.workers[1].turn() > 0 {}
    assert_eq!(team.counters[1].balance().sent, team.meters[0].handed());
    for number in 2000..2064 {
        team.arriving.put(long(number));
    }
    while team.workers.iter_mut().map(Worker::turn).sum::<usize>() > 0 {}
    assert_eq!(team.counters[0].reasons[Reason::Congestion as usize].get(), congested);
}

fn memif_config(role: Role, name: &str) -> Config {
    let socket = Socket::Abstract(format!("fastpath-rss-{}-{name}", std::process::id()));
    Config { ring_size: 1024, ..Config::new(role, socket) }
}

/// The other end of a memif, connected.
fn peer(name: &str, receive_queues: u16, control: &mut Memif) -> Opened {
    let config = Config { receive_queues, ..memif_config(Role::Client, name) };
    let mut opened = Memif::open(config).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !opened.memif.is_connected() || !control.is_connected() {
        opened.memif.poll(Duration::from_millis(1)).unwrap();
        control.poll(Duration::from_millis(1)).unwrap();
        assert!(Instant::now() < deadline, "no connection");
    }
    opened
}

/// A peer with one queue sends; two workers, each a thread, forward; each has a queue of its own to the
/// other peer.
#[test]
fn a_memif_of_one_queue_keeps_two_workers_busy() {
    const FRAMES: u32 = 2000;
    let mut router = router();
    let open = |name| {
        let config = Config { send_queues: 2, ..memif_config(Role::Server, name) };
        device::memif::open(config).unwrap()
    };
    let (mut lan, lan_queues) = open("lan");
    let (mut wan, wan_queues) = open("wan");
    let (handoff, mut ways) = Handoff::new(Arc::new(Rss::new(2)), 0, 2);
    let way = ways.remove(0);
    let mut polled = Receive::new(0, lan_queues.inputs.into_iter().next().unwrap());
    polled.handoff = Some(handoff);
    let inputs = [vec![polled], vec![Receive::new(0, way.input)]];
    let outputs = lan_queues.outputs.into_iter().zip(wan_queues.outputs);
    let usable = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let cores: Vec<_> = (0..CpuSet::count()).filter(|core| usable.is_set(*core).unwrap()).collect();
    let job = |(inputs, (number, (lan, wan)))| {
        let number: usize = number;
        let counters = Arc::new(Counters::default());
        let worker = Worker::new(inputs, vec![lan, wan], router.attach(), Arc::clone(&counters));
        Job { core: cores[number % cores.len()], worker, counters }
    };
    let jobs = inputs.into_iter().zip(outputs.enumerate()).map(job).collect();
    let mut from = peer("lan", 2, &mut lan);
    let mut to = peer("wan", 2, &mut wan);
    let workers = threads::start(jobs, Idle::Sleep, Precedence::Ordinary).unwrap();
    let counters: Vec<_> = workers.running.iter().map(|worker| Arc::clone(&worker.counters)).collect();
    let (mut sent, mut flows) = (0, Flows::default());
    let deadline = Instant::now() + Duration::from_secs(60);
    while flows.frames < u64::from(FRAMES) {
        // No more are under way than any ring holds, so that none is lost.
        while sent < FRAMES && u64::from(sent) < flows.frames + 256 {
            let frame = frame((sent % 50) as u16, sent, 46);
            sent += from.senders[0].send(&[&frame[..]]) as u32;
        }
        let mut received = [Frame::NONE; 256];
        for (queue, receiver) in to.receivers.iter_mut().enumerate() {
            let count = receiver.receive(&mut received);
            for frame in &received[..count] {
                // SAFETY: it is lent until it is released.
                flows.note(queue, unsafe { frame.bytes() });
            }
            receiver.release();
        }
        assert!(Instant::now() < deadline, "{} of {sent} have arrived", flows.frames);
        std::thread::yield_now();
    }
    drop(workers);
    assert_eq!((flows.of.len(), flows.workers()), (50, 2));
    let balances: Vec<_> = counters.iter().map(|counters| counters.balance()).collect();
    assert!(balances.iter().all(|balance| balance.holds() && balance.dropped == 0), "{balances:?}");
    assert!(balances.iter().all(|balance| balance.sent > 0), "{balances:?}");
    assert_eq!(balances.iter().map(|balance| balance.sent).sum::<u64>(), u64::from(FRAMES));
    assert_eq!(way.meter.handed(), balances[1].received);
}
