//! fastpath as the device, in this process, its worker on core 0.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::Sub;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fastpath::counters::Counters;
use fastpath::device;
use fastpath::fib::Prefix;
use fastpath::forwarding::Role as InterfaceRole;
use fastpath::node::Node;
use fastpath::router::{self, Hop};
use fastpath::worker::{Receive, Worker};
use memif::{Config, Role, Socket};
use wire::MacAddress;

use crate::driver::{DEVICE, pin};
use crate::tables::Table;

/// The device while it forwards.
pub struct Router {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    counters: Arc<Counters>,
    _router: router::Router,
}

/// What it counted.
#[derive(Clone, Copy)]
pub struct Counted {
    /// Vectors that devices lent.
    pub calls: u64,
    /// Their packets.
    pub packets: u64,
    /// Clocks of all nodes.
    pub clocks: u64,
}

impl Sub for Counted {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            calls: self.calls - before.calls,
            packets: self.packets - before.packets,
            clocks: self.clocks - before.clocks,
        }
    }
}

/// Starts a router between the two `sockets` with so many routes to the second; none for a cross connect.
pub fn start(routes: usize, sockets: &[String; 2], table: &Table<u32>) -> Router {
    let mut router = router::Router::new().unwrap();
    let (mut controls, mut inputs, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
    for (number, socket) in (0..).zip(sockets) {
        let config = Config::new(Role::Server, Socket::Abstract(socket.clone()));
        let (control, queues) = device::memif::open(config).unwrap();
        router.add_device(&format!("memif{number}"), DEVICE, 1500).unwrap();
        controls.push(control);
        inputs.extend(queues.inputs.into_iter().map(|input| Receive::new(number, input)));
        outputs.extend(queues.outputs);
    }
    if routes == 0 {
        router.set_interface(0, |interface| interface.role = InterfaceRole::CrossConnect(1)).unwrap();
        router.set_interface(1, |interface| interface.role = InterfaceRole::CrossConnect(0)).unwrap();
    } else {
        add_routes(&mut router, routes, table);
    }
    let counters = Arc::new(Counters::default());
    let mut worker = Worker::new(inputs, outputs, router.attach(), Arc::clone(&counters));
    let stop = Arc::new(AtomicBool::new(false));
    let (stop_worker, stop_control) = (Arc::clone(&stop), Arc::clone(&stop));
    let work = thread::spawn(move || {
        pin(0);
        while !stop_worker.load(Ordering::Relaxed) {
            worker.turn();
        }
    });
    let control = thread::spawn(move || {
        pin(0);
        while !stop_control.load(Ordering::Relaxed) {
            for control in &mut controls {
                control.poll(Duration::from_millis(5)).unwrap();
            }
        }
    });
    Router { stop, threads: vec![work, control], counters, _router: router }
}

fn add_routes(router: &mut router::Router, routes: usize, table: &Table<u32>) {
    let neighbours: Vec<_> = (0..16).map(|last| IpAddr::from(Ipv4Addr::new(10, 0, 0, last))).collect();
    for (at, address) in neighbours.iter().enumerate() {
        router.set_neighbour(1, *address, MacAddress([2, 0, 0, 0, 1, at as u8])).unwrap();
    }
    let mut add = |address, length, hop: usize| {
        let prefix = Prefix::new(address, length).unwrap();
        router.add_route(prefix, &[Hop::Neighbour(1, neighbours[hop % 16])]).unwrap();
    };
    match routes {
        1 => add(48 << 24, 8, 0),
        _ => table.routes[..routes]
            .iter()
            .for_each(|&(address, length, hop)| add(address, length, hop as usize)),
    }
}

impl Router {
    /// What it counted until now.
    pub fn counted(&self) -> Counted {
        let input = &self.counters.nodes[Node::DeviceInput as usize];
        Counted {
            calls: input.calls.get(),
            packets: input.vectors.get(),
            clocks: self.counters.nodes.iter().map(|node| node.clocks.get()).sum(),
        }
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
        let balance = self.counters.balance();
        assert!(balance.holds(), "{balance:?}");
    }
}
