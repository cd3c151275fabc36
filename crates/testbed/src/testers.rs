//! TRex stateless servers in the place of this machine's ports: their addresses enter; two ports, each that of all
//! servers together, and an engine over them leave.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use engine::Engine;
use lab::Port;
use results::record;
use traffic::FrameTable;
use trex::testers::{Apart, Client, Clock, Server, TesterEngine, Transport, VersionOf};
use wire::MacAddress;
use zeromq::{Context, Socket};

use crate::target::TesterAddress;

/// What servers take at most; each says more exactly what it takes when it gets a stream.
const MTU: u32 = 9_198;

/// Servers that answered.
pub struct Testers {
    addresses: Vec<TesterAddress>,
    versions: Vec<VersionOf>,
    ports: [Port; 2],
    apart: Rc<RefCell<Apart>>,
}

impl Testers {
    /// Asks each server for its ports. Nothing is sent, and nothing is taken yet.
    ///
    /// # Errors
    /// When one does not answer, or is no TRex stateless server with two ports.
    pub fn open(addresses: &[TesterAddress]) -> Result<Self> {
        let servers = connect(addresses)?;
        let versions = servers.iter().map(|server| server.version().clone()).collect();
        let ports = [0, 1].map(|number: usize| {
            let each = || servers.iter().map(|server| &server.ports()[number]);
            let speeds: Option<Vec<f64>> = each().map(|port| port.speed_bps).collect();
            let slowest = speeds.and_then(|speeds| speeds.into_iter().min_by(f64::total_cmp));
            let words =
                |of: fn(&trex::testers::PortOf) -> &str| each().map(of).collect::<Vec<_>>().join(" + ");
            let mac = each().next().and_then(|port| port.mac.parse().ok()).unwrap_or(MacAddress([0; 6]));
            Port {
                name: words(|port| &port.name),
                ifindex: 0,
                mac,
                mtu: MTU,
                // Each sends an equal share.
                speed_bps: slowest.map(|slowest| slowest * servers.len() as f64),
                driver: Some(words(|port| &port.driver)),
                next_hop_mac: mac,
            }
        });
        Ok(Self { addresses: addresses.to_vec(), versions, ports, apart: Rc::default() })
    }

    /// The ports.
    pub fn ports(&self) -> &[Port; 2] {
        &self.ports
    }

    /// An idle engine that sends `table` by all servers, whose ports it takes until it is dropped.
    ///
    /// # Errors
    /// What a server refuses, or what of the table cannot be sent.
    pub fn start_engine(&self, table: &FrameTable, stop: &Arc<AtomicBool>) -> Result<Box<dyn Engine>> {
        let servers = connect(&self.addresses)?;
        let clock = Box::new(Real(Instant::now()));
        Ok(Box::new(TesterEngine::start(servers, table, clock, Arc::clone(stop), &self.apart)?))
    }

    /// What a reader of a record should know of the testers of the engine that ran last.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self
            .addresses
            .iter()
            .zip(&self.versions)
            .map(|(address, version)| {
                format!("sent by {} on {}, at {address}", version.version, version.hostname)
            })
            .collect();
        notes.extend(self.apart.borrow().note());
        notes.push(
            "the testers do not tell latency, lateness, duplicates and order: those are unknown, not zero; \
             between two loads nothing was sent until their counters were quiet"
                .to_owned(),
        );
        let others = self.versions.iter().filter(|version| !version.is_linerate).count();
        if others > 0 {
            notes.push(
                "TRex counts every frame that arrives at a port: those of others are among the forwarded"
                    .to_owned(),
            );
        }
        notes
    }

    /// The device, for the record.
    pub fn describe_dut(&self) -> record::Dut {
        let configuration: BTreeMap<String, String> = self
            .ports
            .iter()
            .enumerate()
            .map(|(number, port)| (format!("port {number}"), port.name.clone()))
            .collect();
        record::Dut { name: "ports".to_owned(), configuration, ..record::Dut::default() }
    }
}

fn connect(addresses: &[TesterAddress]) -> Result<Vec<Server>> {
    let context = Context::new()?;
    let connect = |address: &TesterAddress| {
        let transport = Tcp::to(&context, address)?;
        let client = Client::new(address.to_string(), Box::new(transport));
        Server::connect(client, std::process::id()).map_err(|error| anyhow!(error))
    };
    addresses.iter().map(connect).collect()
}

/// A way to a server over TCP.
struct Tcp {
    context: Context,
    endpoint: String,
    socket: Socket,
}

impl Tcp {
    fn to(context: &Context, address: &TesterAddress) -> Result<Self> {
        let endpoint = address.endpoint();
        let socket = context.connect(&endpoint)?;
        Ok(Self { context: context.clone(), endpoint, socket })
    }
}

impl Transport for Tcp {
    fn send(&mut self, message: &[u8]) -> Result<(), String> {
        self.socket.send(message).map_err(|error| error.to_string())
    }

    fn receive(&mut self, timeout: Duration) -> Result<Option<Vec<u8>>, String> {
        let end = Instant::now() + timeout;
        loop {
            // A signal ends the library's wait early.
            let left = end.saturating_duration_since(Instant::now());
            let message = self.socket.receive(left + Duration::from_micros(999));
            match message.map_err(|error| error.to_string())? {
                Some(message) => return Ok(Some(message.to_vec())),
                None if left.is_zero() => return Ok(None),
                None => {}
            }
        }
    }

    fn renew(&mut self) -> Result<(), String> {
        self.socket = self.context.connect(&self.endpoint).map_err(|error| error.to_string())?;
        Ok(())
    }
}

/// This machine's clock.
struct Real(Instant);

impl Clock for Real {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}
