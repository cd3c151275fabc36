//! Captures: packets of ports in service mode enter, clients fetch them. Pure, and bounded in all it keeps.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::filter::Filter;

/// The most captures at once.
const MOST: usize = 16;
/// The most packets of one.
pub const MOST_PACKETS: u64 = 100_000;
/// The most bytes that all hold together.
const MOST_BYTES: usize = 32 << 20;
/// The most bytes of packets in one reply.
const REPLY_BYTES: usize = 512 << 10;

/// What a capture is asked to be.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Whether it takes what is pushed, and what arrives, by port.
    pub sent: [bool; 2],
    /// See `sent`.
    pub received: [bool; 2],
    /// The most packets that it holds.
    pub limit: u64,
    /// Whether the oldest ones make room for new ones.
    pub cyclic: bool,
    /// The most bytes of each packet that are kept.
    pub length: usize,
    /// What passes, and how the client wrote it.
    pub filter: (Filter, String),
}

#[derive(Debug)]
struct Capture {
    wanted: Wanted,
    active: bool,
    began: Duration,
    packets: VecDeque<Packet>,
    bytes: usize,
    /// Packets that passed so far: the number of the next one.
    matched: u64,
}

#[derive(Debug)]
struct Packet {
    at: Duration,
    port: usize,
    sent: bool,
    index: u64,
    bytes: Vec<u8>,
}

/// All captures.
#[derive(Debug, Default)]
pub struct Captures {
    all: BTreeMap<u64, Capture>,
    newest: u64,
}

impl Captures {
    /// Begins one; its number.
    ///
    /// # Errors
    /// When there are too many.
    pub fn start(&mut self, wanted: Wanted, now: Duration) -> Result<u64, String> {
        if self.all.len() >= MOST {
            return Err(format!("there are {MOST} captures already: remove one"));
        }
        self.newest += 1;
        let capture =
            Capture { wanted, active: true, began: now, packets: VecDeque::new(), bytes: 0, matched: 0 };
        self.all.insert(self.newest, capture);
        Ok(self.newest)
    }

    /// Ends one; how many packets it holds.
    pub fn stop(&mut self, id: u64) -> Result<usize, String> {
        let capture = self.all.get_mut(&id).ok_or_else(|| missing(id))?;
        capture.active = false;
        Ok(capture.packets.len())
    }

    /// Forgets one.
    pub fn remove(&mut self, id: u64) -> Result<(), String> {
        self.all.remove(&id).map(drop).ok_or_else(|| missing(id))
    }

    /// Ends all that take packets of `port`: it has left service mode.
    pub fn stop_port(&mut self, port: usize) {
        for capture in self.all.values_mut() {
            capture.active &= !(capture.wanted.sent[port] || capture.wanted.received[port]);
        }
    }

    /// Whether any takes what arrives at `port`.
    pub fn listens(&self, port: usize) -> bool {
        self.all.values().any(|capture| capture.active && capture.wanted.received[port])
    }

    /// A packet was pushed, or has arrived.
    pub fn take(&mut self, now: Duration, port: usize, sent: bool, bytes: &[u8]) {
        let mut free = MOST_BYTES.saturating_sub(self.all.values().map(|capture| capture.bytes).sum());
        for capture in self.all.values_mut() {
            let Wanted { limit, cyclic, length, .. } = capture.wanted;
            let ways = if sent { capture.wanted.sent } else { capture.wanted.received };
            if !capture.active || !ways[port] || !capture.wanted.filter.0.passes(bytes) {
                continue;
            }
            let kept = bytes.get(..length).unwrap_or(bytes);
            while cyclic && (capture.packets.len() as u64 >= limit || kept.len() > free) {
                let Some(oldest) = capture.packets.pop_front() else { break };
                capture.bytes -= oldest.bytes.len();
                free += oldest.bytes.len();
            }
            let index = capture.matched;
            capture.matched += 1;
            if capture.packets.len() as u64 >= limit || kept.len() > free {
                continue;
            }
            (capture.bytes, free) = (capture.bytes + kept.len(), free - kept.len());
            capture.packets.push_back(Packet { at: now, port, sent, index, bytes: kept.to_vec() });
        }
    }

    /// Hands out the first packets of one, which then are no longer kept.
    pub fn fetch(&mut self, id: u64, most: usize, length: usize) -> Result<Value, String> {
        let capture = self.all.get_mut(&id).ok_or_else(|| missing(id))?;
        let (mut packets, mut bytes) = (Vec::new(), 0);
        while packets.len() < most && bytes < REPLY_BYTES {
            let Some(packet) = capture.packets.pop_front() else { break };
            capture.bytes -= packet.bytes.len();
            bytes += packet.bytes.len();
            let kept = packet.bytes.get(..length).unwrap_or(&packet.bytes);
            packets.push(json!({
                "binary": STANDARD.encode(kept), "ts": packet.at.as_secs_f64(), "port": packet.port,
                "origin": if packet.sent { "TX" } else { "RX" }, "index": packet.index,
            }));
        }
        Ok(
            json!({"pkts": packets, "pending": capture.packets.len(), "start_ts": capture.began.as_secs_f64()}),
        )
    }

    /// What clients are told of all.
    pub fn status(&self) -> Value {
        let mask = |ways: [bool; 2]| u32::from(ways[0]) | u32::from(ways[1]) << 1;
        let all = self.all.iter().map(|(id, capture)| {
            let wanted = &capture.wanted;
            json!({
                "id": id, "state": if capture.active { "ACTIVE" } else { "STOPPED" },
                "filter": {"tx": mask(wanted.sent), "rx": mask(wanted.received), "bpf": wanted.filter.1},
                "mode": if wanted.cyclic { "cyclic" } else { "fixed" }, "limit": wanted.limit,
                "matched": capture.matched, "count": capture.packets.len(), "bytes": capture.bytes,
            })
        });
        all.collect()
    }
}

fn missing(id: u64) -> String {
    format!("capture {id} does not exist")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(limit: u64, cyclic: bool) -> Wanted {
        let filter = (Filter::All, String::new());
        Wanted { sent: [true, false], received: [true, false], limit, cyclic, length: 9_000, filter }
    }

    #[test]
    fn packets_are_kept_up_to_the_limit_and_handed_out_once() {
        let mut captures = Captures::default();
        let (fixed, cyclic) = (
            captures.start(wanted(3, false), Duration::ZERO).unwrap(),
            captures.start(wanted(3, true), Duration::ZERO).unwrap(),
        );
        for packet in 0..5_u8 {
            captures.take(Duration::from_secs(1), 0, packet == 0, &[packet; 60]);
            captures.take(Duration::ZERO, 1, false, &[packet; 60]);
        }
        assert_eq!((captures.stop(fixed), captures.stop(cyclic)), (Ok(3), Ok(3)));
        captures.take(Duration::ZERO, 0, false, &[9; 60]);
        let first = captures.fetch(fixed, 2, 4).unwrap();
        assert_eq!((&first["pending"], first["pkts"].as_array().unwrap().len()), (&json!(1), 2));
        assert_eq!(
            (&first["pkts"][0]["binary"], &first["pkts"][0]["origin"]),
            (&json!("AAAAAA=="), &json!("TX"))
        );
        assert_eq!(captures.fetch(fixed, 2, 4).unwrap()["pkts"][0]["index"], 2);
        assert_eq!(captures.fetch(fixed, 2, 4).unwrap()["pkts"], json!([]));
        assert_eq!(captures.fetch(cyclic, 9, 4).unwrap()["pkts"][0]["index"], 2);
        captures.remove(fixed).unwrap();
        assert!(captures.fetch(fixed, 1, 1).is_err() && captures.remove(fixed).is_err());
        assert_eq!(captures.status()[0]["matched"], 5);
    }

    #[test]
    fn all_together_are_bounded() {
        let mut captures = Captures::default();
        let ids: Vec<u64> =
            (0..MOST).map(|_| captures.start(wanted(MOST_PACKETS, false), Duration::ZERO).unwrap()).collect();
        assert!(captures.start(wanted(1, false), Duration::ZERO).unwrap_err().contains("remove one"));
        for _ in 0..MOST_BYTES / 9_000 {
            captures.take(Duration::ZERO, 0, false, &[1; 9_000]);
        }
        let kept: usize = captures.all.values().map(|capture| capture.bytes).sum();
        assert!(kept <= MOST_BYTES && kept > MOST_BYTES - 9_000, "{kept}");
        assert!(captures.listens(0) && !captures.listens(1));
        captures.stop_port(0);
        assert!(!captures.listens(0));
        ids.into_iter().for_each(|id| captures.remove(id).unwrap());
    }
}
