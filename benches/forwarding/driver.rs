//! The generator and the sink, on core 1.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use memif::{Config, Frame, Memif, Opened, Receiver, Role, Sender, Socket};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use wire::MacAddress;

use crate::router::Router;
use crate::tables::Table;
use crate::template::{FRAME, HEADERS, Template};

const WARM_UP: Duration = Duration::from_millis(200);
const TURN: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(10);
const VECTOR: usize = 256;
/// The link address of the device.
pub const DEVICE: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

/// What a turn measured.
pub struct Measured {
    /// Frames that arrived at the sink, millions a second.
    pub mpps: f64,
    /// Frames that the ring took, millions a second.
    pub offered_mpps: f64,
    /// Packets that the device's nodes had at once, on average.
    pub vector: f64,
    /// Clocks of the device's core for a packet, without empty polls.
    pub clocks: f64,
}

/// Names for two sockets, new each time.
pub fn sockets() -> [String; 2] {
    static MADE: AtomicU32 = AtomicU32::new(0);
    [0, 1].map(|port| {
        format!("/forwarding-{}-{}-{port}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed))
    })
}

/// Has the calling thread run on `core` alone.
pub fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core).unwrap();
    sched_setaffinity(Pid::from_raw(0), &cores).unwrap();
}

/// Where frames go: `count` addresses, each inside one of the routes.
pub fn destinations(routes: usize, count: usize, table: &Table<u32>) -> Vec<u32> {
    match routes {
        0 | 1 => vec![u32::from(Ipv4Addr::new(48, 0, 0, 1)); count],
        _ => table.destinations[..count].to_vec(),
    }
}

/// Both ends beside the device.
pub struct Driver {
    _controls: [Memif; 2],
    sender: Sender,
    receiver: Receiver,
}

impl Driver {
    /// Connects to the device that listens on `sockets`.
    pub fn connect(sockets: &[String; 2]) -> Self {
        pin(1);
        let [mut zero, mut one] = sockets.each_ref().map(|socket| {
            let config = Config::new(Role::Client, Socket::Abstract(socket.clone()));
            Memif::open(config).unwrap()
        });
        let deadline = Instant::now() + PATIENCE;
        for Opened { memif, .. } in [&mut zero, &mut one] {
            while !memif.is_connected() {
                memif.poll(Duration::from_millis(10)).unwrap();
                assert!(Instant::now() < deadline, "the device does not answer");
            }
        }
        let sender = zero.senders.pop().unwrap();
        let receiver = one.receivers.pop().unwrap();
        Self { _controls: [zero.memif, one.memif], sender, receiver }
    }

    /// Sends as fast as the ring takes frames, to one destination after the other.
    pub fn measure(mut self, destinations: &[u32], router: Option<&Router>) -> Measured {
        let mut generator = Generator::new(destinations);
        let mut run = |time: Duration| {
            let (started, mut sent, mut received) = (Instant::now(), 0, 0);
            while started.elapsed() < time {
                for _ in 0..64 {
                    sent += generator.send(&mut self.sender);
                    received += take(&mut self.receiver);
                }
            }
            (started.elapsed().as_secs_f64() * 1e6, sent, received)
        };
        run(WARM_UP);
        let before = router.map(Router::counted);
        let (micros, sent, received) = run(TURN);
        let counted = router.zip(before).map(|(router, before)| router.counted() - before);
        Measured {
            mpps: received as f64 / micros,
            offered_mpps: sent as f64 / micros,
            vector: counted.map_or(f64::NAN, |counted| counted.packets as f64 / counted.calls as f64),
            clocks: counted.map_or(f64::NAN, |counted| counted.clocks as f64 / counted.packets as f64),
        }
    }
}

/// Takes what has arrived.
fn take(receiver: &mut Receiver) -> usize {
    let mut frames = [Frame::NONE; VECTOR];
    let count = receiver.receive(&mut frames);
    receiver.release();
    count
}

/// Builds frames.
struct Generator<'a> {
    template: Template,
    destinations: &'a [u32],
    next: usize,
    frames: Box<[Frame; VECTOR]>,
}

impl<'a> Generator<'a> {
    fn new(destinations: &'a [u32]) -> Self {
        Self {
            template: Template::new(DEVICE),
            destinations,
            next: 0,
            frames: Box::new([Frame::NONE; VECTOR]),
        }
    }

    fn send(&mut self, sender: &mut Sender) -> usize {
        let count = sender.reserve(&mut self.frames[..]);
        for frame in &mut self.frames[..count] {
            let destination = self.destinations[self.next];
            self.next = if self.next + 1 == self.destinations.len() { 0 } else { self.next + 1 };
            let headers = self.template.to(destination);
            frame.set_length(FRAME);
            // SAFETY: the sender has reserved it for us.
            unsafe { frame.bytes()[..HEADERS].copy_from_slice(&headers) };
        }
        sender.commit(&self.frames[..count]);
        count
    }
}
