//! Frames through virtual ports of DPDK, in ordinary memory, so that nothing need be reserved.

#![allow(clippy::unwrap_used)] // a test may panic

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use dpdk::{Burst, Config, Dpdk, Error, Fib4, Fib6, Memory, Pool, Port, PortConfig, Queues};

fn config() -> Config {
    Config { core: 0, memory: Memory::Ordinary { mebibytes: 256 }, cards: Vec::new() }
}

/// The DPDK of this process, for one test at a time.
fn start() -> (Arc<Dpdk>, MutexGuard<'static, ()>) {
    static DPDK: OnceLock<Arc<Dpdk>> = OnceLock::new();
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    (Arc::clone(DPDK.get_or_init(|| Dpdk::start(&config()).unwrap())), guard)
}

const ONE_QUEUE: PortConfig = PortConfig { rx_queues: 1, tx_queues: 1, descriptors: 512, max_frame: 1514 };

fn open(dpdk: &Arc<Dpdk>, device: &str, config: &PortConfig, pool: &Pool) -> (Port, Queues) {
    let mut port = Port::probe(dpdk, device).unwrap();
    let queues = port.start(config, pool).unwrap();
    (port, queues)
}

/// Two ends of a memif, up.
fn memif(
    dpdk: &Arc<Dpdk>,
    name: &str,
    buffer: usize,
    config: &PortConfig,
    pool: &Pool,
) -> [(Port, Queues); 2] {
    let common = format!("id=0,bsize={buffer},socket-abstract=yes,socket=/{name}-{}", std::process::id());
    let mut ends = ["server", "client"]
        .map(|role| open(dpdk, &format!("net_memif_{name}_{role},role={role},{common}"), config, pool));
    let deadline = Instant::now() + Duration::from_secs(10);
    while !ends.iter().all(|(port, _)| port.link().unwrap().up) {
        assert!(Instant::now() < deadline, "the two ends do not find each other");
        thread::sleep(Duration::from_millis(5));
    }
    // An end has room for frames once the other has looked for some.
    for (_, queues) in &mut ends {
        queues.receive[0].receive(&mut Burst::new(dpdk), 32);
    }
    ends
}

/// Frames of these lengths, each byte of a frame its number.
fn stock(dpdk: &Arc<Dpdk>, pool: &Pool, lengths: &[usize]) -> Burst {
    let mut burst = Burst::new(dpdk);
    assert!(burst.stock(pool, lengths.len()));
    for (index, length) in lengths.iter().enumerate() {
        burst.buffer(index, *length).unwrap()[..*length].fill((index + 1) as u8);
    }
    burst
}

/// What arrives at the first queue of `queues` until there are `count` frames.
fn receive(dpdk: &Arc<Dpdk>, queues: &mut Queues, count: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut burst = Burst::new(dpdk);
    let deadline = Instant::now() + Duration::from_secs(10);
    while frames.len() < count && Instant::now() < deadline {
        queues.receive[0].receive(&mut burst, 32);
        frames.extend((0..burst.len()).map(|index| burst.frame(index).unwrap().to_vec()));
        burst.clear();
    }
    frames
}

fn expected(lengths: &[usize]) -> Vec<Vec<u8>> {
    lengths.iter().zip(1..).map(|(length, byte)| vec![byte; *length]).collect()
}

#[test]
fn frames_pass_a_ring_as_they_were_written() {
    let (dpdk, _one) = start();
    let _thread = dpdk.register_thread().unwrap();
    let mut pool = Pool::new(&dpdk, 1023, 2048, None).unwrap();
    pool.fill(0x55);
    let (port, mut queues) = open(&dpdk, "net_ring0", &ONE_QUEUE, &pool);
    assert_eq!(port.facts().unwrap().driver, "net_ring");
    let lengths = [60, 61, 1514, 100];
    let mut burst = stock(&dpdk, &pool, &lengths);
    assert_eq!(burst.buffer(0, 60).unwrap()[60], 0x55, "what filled the pool");
    assert!(burst.buffer(0, 2049).is_none() && burst.buffer(4, 60).is_none());
    assert_eq!(queues.send[0].send(&mut burst, 3), 3);
    assert_eq!(burst.len(), 1, "one is still ours");
    assert_eq!(queues.send[0].send(&mut burst, 3), 1);
    assert_eq!(receive(&dpdk, &mut queues, 4), expected(&lengths));
}

#[test]
fn a_null_port_swallows_frames_and_gives_as_many_as_there_is_room_for() {
    let (dpdk, _one) = start();
    let pool = Pool::new(&dpdk, 1023, 2048, None).unwrap();
    let (port, mut queues) = open(&dpdk, "net_null0,size=64", &ONE_QUEUE, &pool);
    let mut burst = stock(&dpdk, &pool, &[60; 256]);
    assert_eq!(queues.send[0].send(&mut burst, 256), 256);
    assert!(burst.is_empty());
    assert_eq!(queues.receive[0].receive(&mut burst, 300), 256, "the room of a burst");
    assert_eq!(queues.receive[0].receive(&mut burst, 1), 0);
    assert_eq!(burst.frame(255).unwrap().len(), 64);
    let stats = port.stats().unwrap();
    assert_eq!((stats.sent, stats.received), (256, 256));
    let counters = port.counters().unwrap();
    assert!(counters.iter().any(|c| c.name == "tx_good_packets" && c.value == 256), "{counters:?}");
}

#[test]
fn frames_pass_shared_memory_both_ways_jumbo_ones_too() {
    let (dpdk, _one) = start();
    let pool = Pool::new(&dpdk, 4095, 9600, None).unwrap();
    let jumbo = PortConfig { max_frame: 9212, ..ONE_QUEUE };
    let [(server, mut one), (client, mut two)] = memif(&dpdk, "both", 9600, &jumbo, &pool);
    let lengths = [60, 9212, 1514];
    for _ in 0..2 {
        let mut burst = stock(&dpdk, &pool, &lengths);
        assert_eq!(one.send[0].send(&mut burst, 3), 3);
        assert_eq!(receive(&dpdk, &mut two, 3), expected(&lengths));
        (one, two) = (two, one);
    }
    let [server, client] = [server, client].map(|port| port.stats().unwrap());
    assert_eq!([server.sent, client.sent], [3, 3]);
}

#[test]
fn a_port_whose_other_end_is_gone_sends_nothing_and_says_so() {
    let (dpdk, _one) = start();
    let pool = Pool::new(&dpdk, 4095, 2048, None).unwrap();
    let [(server, mut queues), client] = memif(&dpdk, "gone", 2048, &ONE_QUEUE, &pool);
    assert!(queues.send[0].is_up());
    drop(client);
    let deadline = Instant::now() + Duration::from_secs(10);
    while server.link().unwrap().up {
        assert!(Instant::now() < deadline, "the port does not notice");
        thread::sleep(Duration::from_millis(5));
    }
    let mut burst = stock(&dpdk, &pool, &[60; 2]);
    assert_eq!(queues.send[0].send(&mut burst, 2), 0);
    assert_eq!(burst.len(), 2);
}

#[test]
fn what_cannot_be_is_refused_with_its_cause() {
    let (dpdk, _one) = start();
    let again = Dpdk::start(&config()).unwrap_err();
    assert_eq!(again, Error::StartedBefore);
    let error = Port::probe(&dpdk, "net_nil0").unwrap_err().to_string();
    assert!(error.contains("net_nil0") && error.contains("driver"), "{error}");
    let error = Port::probe(&dpdk, "net_af_packet7,iface=none-such").unwrap_err();
    assert!(matches!(&error, Error::Device { said, .. } if !said.is_empty()), "{error}");
    let pool = Pool::new(&dpdk, 255, 2048, None).unwrap();
    let error = Pool::new(&dpdk, 10_000_000, 2048, None).unwrap_err();
    assert!(matches!(error, Error::Pool { .. }), "{error}");
    let mut port = Port::probe(&dpdk, "net_null1").unwrap();
    let many = PortConfig { tx_queues: 60_000, ..ONE_QUEUE };
    let error = port.start(&many, &pool).unwrap_err();
    assert!(matches!(error, Error::TooMany { asked: 60_000, .. }), "{error}");
}

#[test]
fn a_name_that_was_refused_can_be_had_the_next_time() {
    let (dpdk, _one) = start();
    let end = |name: &str, id: u8| {
        let socket = format!("socket=/refused-{},socket-abstract=yes", std::process::id());
        Port::probe(&dpdk, &format!("{name},role=server,id={id},{socket}"))
    };
    let _first = end("net_memif8", 0).unwrap();
    for _ in 0..2 {
        let refused = end("net_memif9", 0);
        let same = "same role";
        assert!(matches!(&refused, Err(Error::Device { said, .. }) if said.contains(same)), "{refused:?}");
    }
    let second = end("net_memif9", 1).unwrap();
    assert_eq!(second.facts().unwrap().name, "net_memif9");
}

#[test]
fn no_files_are_left() {
    let (_dpdk, _one) = start();
    let ours = format!("linerate-{}", std::process::id());
    for directory in ["/var/run/dpdk", "/dev/hugepages", "/dev/shm"] {
        let names = fs::read_dir(directory).into_iter().flatten().flatten();
        let left: Vec<PathBuf> =
            names.map(|entry| entry.path()).filter(|path| path.to_string_lossy().contains(&ours)).collect();
        // A directory is made in any case; the next start of a process with the same number takes it.
        let files = left.iter().flat_map(|path| fs::read_dir(path).into_iter().flatten());
        assert_eq!(files.count(), 0, "{left:?}");
    }
}

#[test]
fn tables_of_routes_find_the_longest_prefix() {
    let (dpdk, _one) = start();
    let mut table = Fib4::new(&dpdk, "of-ipv4", 1_000, 16).unwrap();
    for (length, hop) in [(8, 1), (24, 2), (32, 3)] {
        table.add(0x0a01_0203 >> (32 - length) << (32 - length), length as u8, hop).unwrap();
    }
    let mut hops = [9; 5];
    table.lookup(&[0x0a01_0203, 0x0a01_0204, 0x0a02_0000, 0x0b00_0000], &mut hops);
    assert_eq!(hops, [3, 2, 1, 0, 9]);
    table.remove(0x0a01_0200, 24).unwrap();
    table.lookup(&[0x0a01_0204], &mut hops);
    assert_eq!(hops[0], 1);
    assert!(table.remove(0x0a01_0200, 24).unwrap_err().to_string().contains("10.1.2.0/24"));
    drop(table);

    let mut table = Fib6::new(&dpdk, "of-ipv6", 1_000, 16).unwrap();
    let address = |last| 0x2001_0db8_0000_0000_0000_0000_0000_0000_u128.wrapping_add(last).to_be_bytes();
    table.add(address(0), 32, 1).unwrap();
    table.add(address(7), 128, 2).unwrap();
    table.lookup(&[address(7), address(8), [0; 16]], &mut hops);
    assert_eq!(hops[..3], [2, 1, 0]);
    table.remove(address(7), 128).unwrap();
    table.lookup(&[address(7)], &mut hops);
    assert_eq!(hops[0], 1);
}
