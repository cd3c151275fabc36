//! The engine on ports of DPDK: two devices enter, an idle engine leaves.

use std::sync::Arc;

use dpdk::{Burst, Dpdk, Pool, Port, RegisteredThread, RxQueue, TxQueue};

use super::ports::PortsWatch;
use super::setup::{Opened, port_config, wait_for_links};
use crate::Error;
use crate::live::Live;
use crate::user_space::workers::{check, start};
use crate::user_space::{
    BURST, Crew, Member, Ports, Queues, Receive, Transmit, WhenFull, Workers, longest, room,
};

/// Buffers for what a worker sends: a card keeps a queue full of them.
const SENDING: u32 = 4095;
/// Buffers for what arrives, for each queue.
const RECEIVING: u32 = 4095;

/// The engine on two ports of DPDK. Dropping it ends its workers and closes its ports.
pub type DpdkEngine = Live<Workers<DpdkPorts>>;

impl DpdkEngine {
    /// Opens port 0 and port 1, drivers with their arguments or PCI addresses, and starts the idle workers of
    /// `crew`.
    ///
    /// # Errors
    /// When the table does not fit this engine, a port cannot be used or has no other end, or a worker
    /// does not start.
    pub fn start(dpdk: &Arc<Dpdk>, devices: [&str; 2], crew: &Crew<'_>) -> Result<Self, Error> {
        check::<DpdkPorts>(crew)?;
        let longest = longest(crew.table);
        let pool = |frames| -> Result<Pool, Error> {
            let mut pool = Pool::new(dpdk, frames, room(longest) as u16, None)?;
            pool.fill(crew.table.fill);
            Ok(pool)
        };
        let open = |device| -> Result<Opened, Error> {
            // Each port has its own: net_af_xdp takes 2,048 of a pool at the start, for each queue.
            let pool = pool(RECEIVING * crew.queues() as u32)?;
            Opened::new(dpdk, device, &port_config(crew.queues(), longest), &pool)
        };
        let [zero, one] = devices.map(open);
        let (zero, one) = (zero?, one?);
        wait_for_links([&zero, &one])?;
        // One for each worker, for both ports.
        let pools: Vec<Pool> = crew.send_cores.iter().map(|_| pool(SENDING)).collect::<Result<_, _>>()?;
        let queues =
            [queues(dpdk, zero.queues, &zero.port, &pools)?, queues(dpdk, one.queues, &one.port, &pools)?];
        start(DpdkPorts { ports: vec![zero.port, one.port], dpdk: Arc::clone(dpdk) }, queues, crew)
    }

    /// The two ports.
    #[must_use]
    pub fn ports(&self) -> &[Port] {
        &self.machinery().ports.ports
    }

    /// The two ports from beside.
    #[must_use]
    pub fn watch(&self) -> PortsWatch {
        PortsWatch::new(self.ports(), self.machinery().senders.clone())
    }
}

/// Counts what arrives at `devices`, one or two, in frames of up to `longest` bytes without FCS, by workers on `cores`
/// with a queue of each port.
///
/// # Errors
/// When a port cannot be used, or a worker does not start.
pub fn listen(
    dpdk: &Arc<Dpdk>,
    devices: &[&str],
    longest: usize,
    cores: &[usize],
) -> Result<Workers<DpdkPorts>, Error> {
    let (mut ports, mut receive) = (Vec::new(), Vec::new());
    for device in devices {
        let pool = Pool::new(dpdk, RECEIVING * cores.len() as u32, room(longest) as u16, None)?;
        let Opened { queues, port } = Opened::new(dpdk, device, &port_config(cores.len(), longest), &pool)?;
        let queues = queues.receive.into_iter();
        receive.push(queues.map(|queue| Receiving::new(queue, Burst::new(dpdk))).collect());
        ports.push(port);
    }
    Workers::listen(DpdkPorts { ports, dpdk: Arc::clone(dpdk) }, receive, cores)
}

/// What the workers of a port use, each with a pool of its own.
fn queues(
    dpdk: &Arc<Dpdk>,
    queues: dpdk::Queues,
    port: &Port,
    pools: &[Pool],
) -> Result<Queues<Sending, Receiving>, Error> {
    let transmit = queues.send.into_iter().zip(pools);
    let receive = queues.receive.into_iter();
    Ok(Queues {
        transmit: transmit.map(|(queue, pool)| Sending::new(queue, pool.clone(), Burst::new(dpdk))).collect(),
        receive: receive.map(|queue| Receiving::new(queue, Burst::new(dpdk))).collect(),
        when_full: WhenFull::of(&port.facts()?.driver),
    })
}

impl WhenFull {
    /// How ports of `driver` are.
    pub fn of(driver: &str) -> Self {
        if matches!(driver, "net_memif" | "net_ring") { Self::Lost } else { Self::Waits }
    }
}

/// One port of DPDK, or two.
#[derive(Debug)]
pub struct DpdkPorts {
    ports: Vec<Port>,
    dpdk: Arc<Dpdk>,
}

impl Ports for DpdkPorts {
    const ENGINE: &'static str = "dpdk";
    type Transmit = Sending;
    type Receive = Receiving;
    type Member = Arc<Dpdk>;

    fn member(&self) -> Arc<Dpdk> {
        Arc::clone(&self.dpdk)
    }

    fn name(&self, port: usize) -> &str {
        self.ports.get(port).map_or("?", Port::name)
    }

    fn is_up(&self, port: usize) -> bool {
        self.ports.get(port).and_then(Port::link).is_none_or(|link| link.up)
    }

    fn missed(&self, port: usize) -> Result<u64, Error> {
        let stats = self.ports.get(port).map(Port::stats).transpose()?;
        Ok(stats.map_or(0, |stats| stats.missed + stats.no_buffer))
    }
}

impl Member for Arc<Dpdk> {
    type Pass = RegisteredThread;

    fn enter(&self) -> Result<RegisteredThread, Error> {
        Ok(self.register_thread()?)
    }
}

/// Where frames leave: the first buffers of the burst hold built frames, the others are in stock.
#[derive(Debug)]
pub struct Sending {
    queue: TxQueue,
    pool: Pool,
    burst: Burst,
}

impl Sending {
    pub(super) fn new(queue: TxQueue, pool: Pool, burst: Burst) -> Self {
        Self { queue, pool, burst }
    }
}

impl Transmit for Sending {
    #[inline]
    fn place(&mut self, index: usize, length: usize) -> Option<&mut [u8]> {
        if index == self.burst.len() {
            // A port holds too many buffers for now where there are none.
            self.burst.stock(&self.pool, BURST);
        }
        self.burst.buffer(index, length)
    }

    #[inline]
    fn send(&mut self, count: usize) -> usize {
        // What is refused and lost is in stock again.
        self.queue.send(&mut self.burst, count)
    }

    fn is_up(&self) -> bool {
        self.queue.is_up()
    }
}

/// Where frames arrive.
#[derive(Debug)]
pub struct Receiving {
    queue: RxQueue,
    burst: Burst,
}

impl Receiving {
    pub(super) fn new(queue: RxQueue, burst: Burst) -> Self {
        Self { queue, burst }
    }
}

impl Receive for Receiving {
    #[inline]
    fn receive(&mut self) -> usize {
        self.queue.receive(&mut self.burst, BURST)
    }

    #[inline]
    fn frame(&self, index: usize) -> Option<&[u8]> {
        self.burst.frame(index)
    }

    #[inline]
    fn release(&mut self) {
        self.burst.clear();
    }
}
