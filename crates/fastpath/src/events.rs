//! What passes between the router and its workers besides what these forward by: events go to the router,
//! frames that are to be sent go to a worker. Both queues are bounded, and nobody waits for room in them.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use wire::MacAddress;

use crate::dataplane::counters::INTERFACES;
use crate::dataplane::vector::MADE;

/// How many events wait for the router at most; further ones are lost, and counted by the worker.
pub(crate) const EVENTS: usize = 4096;

/// How many frames wait for a worker at most.
const FRAMES: usize = 1024;

/// What a worker tells the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A neighbour that has to do with us said its link address: it is noted, known or not.
    Neighbour {
        /// Where it is.
        interface: u16,
        /// Its address.
        address: IpAddr,
        /// Its link address.
        mac: MacAddress,
    },
    /// As [`Self::Neighbour`], of one that this worker had asked.
    Answer {
        /// Where it is.
        interface: u16,
        /// Its address.
        address: IpAddr,
        /// Its link address.
        mac: MacAddress,
    },
    /// A neighbour was asked for its link address, and said one that may not be the best: it is noted if
    /// no other is known (RFC 4861, 7.2.5).
    Offer {
        /// Where it is.
        interface: u16,
        /// Its address.
        address: IpAddr,
        /// Its link address.
        mac: MacAddress,
    },
    /// A neighbour told everybody its link address: it is noted if the neighbour is known.
    Announcement {
        /// Where it is.
        interface: u16,
        /// Its address.
        address: IpAddr,
        /// Its link address.
        mac: MacAddress,
    },
    /// A packet was forwarded, and the kernel might forward the next ones to its destination by itself.
    Forwarded {
        /// Where it arrived.
        interface: u16,
        /// To where it goes.
        destination: IpAddr,
    },
}

impl Event {
    /// Where it came from.
    #[must_use]
    pub fn interface(&self) -> u16 {
        match *self {
            Self::Neighbour { interface, .. }
            | Self::Answer { interface, .. }
            | Self::Offer { interface, .. }
            | Self::Announcement { interface, .. }
            | Self::Forwarded { interface, .. } => interface,
        }
    }
}

/// A frame that a worker is to send.
pub(crate) struct Injected {
    /// By this interface.
    pub interface: u16,
    /// From the Ethernet header on, without the interface's VLAN tag, without FCS.
    pub frame: Box<[u8]>,
}

/// Gives a worker frames to send: from the router itself, or from the kernel.
#[derive(Clone)]
pub struct Injector {
    frames: SyncSender<Injected>,
    waiting: Arc<AtomicBool>,
}

/// A worker's end of it.
pub(crate) struct Injections {
    frames: Receiver<Injected>,
    waiting: Arc<AtomicBool>,
}

/// A queue of frames to a worker.
pub(crate) fn injections() -> (Injector, Injections) {
    let (sender, receiver) = sync_channel(FRAMES);
    let waiting = Arc::new(AtomicBool::new(false));
    let injector = Injector { frames: sender, waiting: Arc::clone(&waiting) };
    (injector, Injections { frames: receiver, waiting })
}

impl Injector {
    /// Has a frame sent by an interface: from its Ethernet header on, without FCS, and without the
    /// interface's VLAN tag, which the worker puts in. Says whether there was room; a frame longer than
    /// workers make, or of no interface, has none.
    #[must_use]
    pub fn inject(&self, interface: u16, frame: &[u8]) -> bool {
        if usize::from(interface) >= INTERFACES || frame.len() + wire::vlan::LENGTH > MADE {
            return false;
        }
        let taken = self.frames.try_send(Injected { interface, frame: frame.into() }).is_ok();
        self.waiting.store(true, Ordering::Release);
        taken
    }
}

impl Injections {
    /// Whether there may be frames. Costs one load.
    #[inline(always)]
    pub fn waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Up to `most` frames that wait.
    pub fn take(&self, most: usize) -> impl Iterator<Item = Injected> {
        // Before looking, so that a frame that comes meanwhile is asked for again.
        self.waiting.swap(false, Ordering::AcqRel);
        let mut left = most;
        std::iter::from_fn(move || {
            if left == 0 {
                self.waiting.store(true, Ordering::Relaxed);
                return None;
            }
            left -= 1;
            self.frames.try_recv().ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_wait_in_their_order_until_there_is_no_room() {
        let (injector, injections) = injections();
        assert!(!injections.waiting());
        for number in 0..FRAMES {
            assert!(injector.inject(1, &(number as u16).to_be_bytes()));
        }
        assert!(!injector.inject(1, &[0]) && injections.waiting());
        let first: Vec<_> = injections.take(2).map(|injected| injected.frame[1]).collect();
        assert_eq!(first, [0, 1]);
        assert!(injections.waiting(), "some were left");
        assert_eq!(injections.take(FRAMES).count(), FRAMES - 2);
        assert!(!injections.waiting());
        assert!(!injector.inject(INTERFACES as u16, &[0]) && !injector.inject(0, &[0; MADE]));
    }
}
