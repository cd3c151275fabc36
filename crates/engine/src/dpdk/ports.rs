//! The ports of an engine from beside, while it runs: the drivers' own counters leave.

use std::sync::Arc;

use dpdk::{Port, Stats, Watch};

use crate::Error;
use crate::user_space::PortCounted;
use crate::user_space::tally::Tally;

/// The two ports of an engine; it does not keep them.
#[derive(Clone, Debug)]
pub struct PortsWatch {
    ports: Vec<Watch>,
    senders: Vec<Arc<Tally>>,
}

impl PortsWatch {
    pub(super) fn new(ports: &[Port], senders: Vec<Arc<Tally>>) -> Self {
        Self { ports: ports.iter().map(Port::watch).collect(), senders }
    }

    /// What was counted at port 0 and port 1; `None` once the engine is gone.
    ///
    /// # Errors
    /// When a driver does not say.
    pub fn read(&self) -> Result<Option<[PortCounted; 2]>, Error> {
        let [zero, one] = self.ports.as_slice() else { return Ok(None) };
        let (Some(zero), Some(one)) = (zero.stats(), one.stats()) else { return Ok(None) };
        Ok(Some([self.counted(0, zero?), self.counted(1, one?)]))
    }

    fn counted(&self, direction: usize, (name, stats): (String, Stats)) -> PortCounted {
        PortCounted {
            name,
            received: stats.received,
            receive_dropped: stats.missed + stats.no_buffer,
            sent: stats.sent,
            send_dropped: self.senders.iter().map(|tally| tally.refused[direction].get()).sum(),
        }
    }
}
