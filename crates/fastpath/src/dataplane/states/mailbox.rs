//! What a worker and its router have in common of states: a table enters, once; what the worker counts, and some of its
//! states when they are asked for, leave. The worker waits for nothing here.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use wire::{ipv4, ipv6};

use super::table::{State, Table};
use crate::dataplane::counters::Counter;

/// The most states that a worker lists, and how many places it looks at for them.
const LISTED: usize = 100;
const LOOKED_AT: usize = 2048;

/// Protocols, as they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// Echoes of either version.
    Icmp,
    /// All else.
    Other,
}

impl Kind {
    /// That of a protocol.
    #[must_use]
    pub fn of(protocol: u8) -> Self {
        match protocol {
            ipv4::TCP => Self::Tcp,
            ipv4::UDP => Self::Udp,
            ipv4::ICMP | ipv6::ICMP => Self::Icmp,
            _ => Self::Other,
        }
    }
}

/// What became of the states of some protocols.
#[derive(Debug, Default)]
pub struct Ends {
    /// They began.
    pub opened: Counter,
    /// They are no longer there.
    pub ended: Counter,
}

impl Ends {
    /// How many there are.
    #[must_use]
    pub fn known(&self) -> u64 {
        // In this order, as the worker may be at work: none ends before it has begun.
        let ended = self.ended.get();
        self.opened.get().saturating_sub(ended)
    }
}

/// What a worker counts of its states.
#[derive(Debug, Default)]
pub struct Tally {
    tcp: Ends,
    udp: Ends,
    icmp: Ends,
    other: Ends,
    /// States whose time was over.
    pub expired: Counter,
    /// States of connections that were closed, and that began anew.
    pub closed: Counter,
    /// States whose permission was gone.
    pub revoked: Counter,
    /// Flows that began and found no room.
    pub refused: Counter,
}

impl Tally {
    /// Of a kind of protocols.
    #[must_use]
    pub fn of(&self, kind: Kind) -> &Ends {
        match kind {
            Kind::Tcp => &self.tcp,
            Kind::Udp => &self.udp,
            Kind::Icmp => &self.icmp,
            Kind::Other => &self.other,
        }
    }
}

/// What a worker and its router have in common.
#[derive(Default)]
pub struct Mailbox {
    /// On its way to the worker.
    table: Mutex<Option<Table>>,
    /// What the worker counts.
    pub tally: Tally,
    /// Whether the worker is to list states.
    asked: AtomicBool,
    /// What it has listed.
    told: Mutex<Option<Vec<State>>>,
}

impl Mailbox {
    /// Has the worker find a table here when it takes up what the router publishes next.
    pub fn give(&self, table: Table) {
        *self.table.lock().unwrap_or_else(PoisonError::into_inner) = Some(table);
    }

    /// The table that lies here. The router holds the lock only to put it here.
    pub(super) fn take(&self) -> Option<Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Asks the worker for some of its states.
    pub fn ask(&self) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.asked.store(true, Relaxed);
    }

    /// What the worker has listed since it was asked; `None` as long as it has not.
    #[must_use]
    pub fn told(&self) -> Option<Vec<State>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Lists some states, if that was asked for. While the router looks, the next time will do.
    pub(super) fn tell(&self, table: &Table) {
        if !self.asked.load(Relaxed) {
            return;
        }
        if let Ok(mut told) = self.told.try_lock() {
            *told = Some(table.some(LISTED, LOOKED_AT).collect());
            self.asked.store(false, Relaxed);
        }
    }
}
