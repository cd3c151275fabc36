//! How the tester reaches a device in user space: by ports of DPDK, or by memifs of our own. The device's
//! sockets, or what the user names, enter; engines and carriers leave.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use anyhow::Result;
use engine::Engine;
use engine::replay::Carrier;
use engine::user_space::PortCounted;
use lab::InterfaceCounters;
use memif::Socket;
use traffic::FrameTable;

/// What was counted at port 0 and port 1 of an engine, as long as that lives.
pub type Watch = Box<dyn Fn() -> Result<Option<[InterfaceCounters; 2]>>>;

/// The tester's two ports, which are opened anew for each engine.
pub trait Link {
    /// An idle engine that sends `table` between the ports, on cores that send and cores that receive, and
    /// what its ports count.
    ///
    /// # Errors
    /// When a port cannot be used, or has no other end.
    fn start_engine(
        &self,
        table: &FrameTable,
        cores: [&[usize]; 2],
        stop: &Arc<AtomicBool>,
    ) -> Result<(Box<dyn Engine>, Watch)>;

    /// The ports for frames as they are, of up to `longest` bytes without FCS.
    ///
    /// # Errors
    /// As above.
    fn carrier(&self, longest: usize) -> Result<Box<dyn Carrier>>;

    /// The ports, as a user names them.
    fn devices(&self) -> &[String; 2];
}

/// A socket for a cable between the tester's two ports, another one for each.
pub fn socket_of_a_cable() -> Socket {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    Socket::Abstract(format!("linerate-cable-{}-{number}", std::process::id()))
}

/// A socket, as DPDK's net_memif takes it.
pub fn arguments(socket: &Socket) -> String {
    match socket {
        Socket::Path(path) => format!("socket={},socket-abstract=no", path.display()),
        Socket::Abstract(name) => format!("socket={name},socket-abstract=yes"),
    }
}

/// What a port counted, as the kernel's interfaces count it.
pub fn counters(port: PortCounted) -> InterfaceCounters {
    let PortCounted { name, received, receive_dropped, sent, send_dropped } = port;
    InterfaceCounters { name, received, receive_dropped, sent, send_dropped }
}
