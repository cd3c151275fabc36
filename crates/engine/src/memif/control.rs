//! The control ends of memifs: a thread answers their peers for as long as an engine lives; whether
//! they are connected, and what their queues counted, leaves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use memif::{Event, Memif, QueueStatistics};

use super::End;
use crate::Error;
use crate::user_space::PortCounted;
use crate::user_space::tally::Tally;

/// How often peers are looked after.
const INTERVAL: Duration = Duration::from_millis(2);

/// One of the two.
struct Port {
    end: End,
    memif: Memif,
    up: bool,
    /// Queues that frames can be sent through, and come through.
    queues: usize,
    /// Why it is not connected, as far as that is known.
    reason: Option<String>,
    failure: Option<String>,
}

type Shared = Arc<[Mutex<Port>]>;

/// Memifs that are looked after.
pub struct Controlled {
    names: Vec<String>,
    ports: Shared,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The two ports of an engine from beside; it does not keep them.
#[derive(Clone)]
pub struct PortsWatch {
    ports: Weak<[Mutex<Port>]>,
    senders: Vec<Arc<Tally>>,
}

fn lock(port: &Mutex<Port>) -> MutexGuard<'_, Port> {
    port.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Port {
    fn new((end, memif): (End, Memif)) -> Self {
        Self { end, memif, up: false, queues: 0, reason: None, failure: None }
    }

    /// Does what there is to do.
    fn attend(&mut self) {
        match self.memif.poll(Duration::ZERO) {
            Ok(None) => {}
            Ok(Some(Event::Connected(peer))) => {
                (self.up, self.queues) = (true, peer.send_queues.min(peer.receive_queues));
                self.reason = None;
            }
            Ok(Some(Event::Disconnected(reason))) => {
                self.up = false;
                self.reason = Some(reason.to_string());
            }
            Ok(Some(Event::Refused(reason))) => self.reason = Some(reason.to_string()),
            Err(error) => self.failure = Some(error.to_string()),
        }
    }
}

impl Controlled {
    /// Looks after them from now on.
    ///
    /// # Errors
    /// When there can be no thread for that.
    pub fn start(memifs: Vec<(End, Memif)>) -> Result<Self, Error> {
        let names = memifs.iter().map(|(end, _)| end.name.clone()).collect();
        let ports: Shared = memifs.into_iter().map(|memif| Mutex::new(Port::new(memif))).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let (attended, stopped) = (Arc::clone(&ports), Arc::clone(&stop));
        let attend = move || {
            while !stopped.load(Ordering::Relaxed) {
                attended.iter().for_each(|port| lock(port).attend());
                thread::sleep(INTERVAL);
            }
        };
        let thread = thread::Builder::new()
            .name("memif-control".into())
            .spawn(attend)
            .map_err(|error| Error::Failed(format!("cannot start a thread: {error}")))?;
        Ok(Self { names, ports, stop, thread: Some(thread) })
    }

    /// Waits until all are connected, by so many queues.
    ///
    /// # Errors
    /// Why one is not.
    pub fn wait(&self, queues: usize, patience: Duration) -> Result<(), Error> {
        let deadline = Instant::now() + patience;
        for port in self.ports.iter() {
            loop {
                let now = lock(port);
                if let Some(failure) = &now.failure {
                    return Err(Error::Failed(failure.clone()));
                }
                let End { name, socket, .. } = &now.end;
                if now.up && now.queues < queues {
                    return Err(Error::Refused(format!(
                        "the other end of port {name} has {} queues, and {queues} are needed: give it more, \
                         or use fewer cores",
                        now.queues
                    )));
                }
                if now.up {
                    break;
                }
                if Instant::now() > deadline {
                    let reason = now.reason.as_deref().unwrap_or("nobody answers");
                    return Err(Error::Failed(format!(
                        "port {name} has no other end at {socket} ({reason}): start it first, with the same \
                         socket and number and the other role"
                    )));
                }
                drop(now);
                thread::sleep(INTERVAL);
            }
        }
        Ok(())
    }

    /// What port 0 or port 1 is called.
    pub fn name(&self, port: usize) -> &str {
        self.names.get(port).map_or("?", String::as_str)
    }

    /// Whether port 0 or port 1 is connected.
    pub fn is_up(&self, port: usize) -> bool {
        self.ports.get(port).is_some_and(|port| lock(port).up)
    }

    /// Fails when they are not looked after any longer.
    ///
    /// # Errors
    /// Why that is.
    pub fn check(&self) -> Result<(), Error> {
        let failure = self.ports.iter().find_map(|port| lock(port).failure.clone());
        failure.map_or(Ok(()), |failure| Err(Error::Failed(failure)))
    }

    /// The two from beside, whose workers count in `senders`.
    pub fn watch(&self, senders: Vec<Arc<Tally>>) -> PortsWatch {
        PortsWatch { ports: Arc::downgrade(&self.ports), senders }
    }
}

impl PortsWatch {
    /// What was counted at port 0 and port 1; `None` once the engine is gone.
    #[must_use]
    pub fn read(&self) -> Option<[PortCounted; 2]> {
        let ports = self.ports.upgrade()?;
        let [zero, one] = &*ports else { return None };
        Some([self.counted(0, &lock(zero)), self.counted(1, &lock(one))])
    }

    fn counted(&self, number: usize, port: &Port) -> PortCounted {
        let (received, sent) = (port.memif.received(), port.memif.sent());
        PortCounted {
            name: port.end.name.clone(),
            received: sum(&received, |queue| queue.frames),
            receive_dropped: sum(&received, |queue| queue.chained + queue.malformed),
            sent: sum(&sent, |queue| queue.frames),
            send_dropped: self.senders.iter().map(|tally| tally.refused[number].get()).sum(),
        }
    }
}

fn sum(queues: &[QueueStatistics], of: impl Fn(&QueueStatistics) -> u64) -> u64 {
    queues.iter().map(of).sum()
}

impl Drop for Controlled {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
