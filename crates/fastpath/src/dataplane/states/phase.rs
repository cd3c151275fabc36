//! How long states stay: what packets of a flow have shown enters; its phase, and for how long nothing more may come, leaves.

use wire::{ipv4, ipv6};

use super::Moment;
use crate::dataplane::flow::member::{ACK, FIN, RST, SYN};

/// How far a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// There is no flow.
    Free,
    /// It is not of TCP.
    Simple,
    /// A SYN of TCP was there.
    Opening,
    /// The other end has answered it.
    Answered,
    /// The first end has acknowledged that.
    Established,
    /// One of the ends has had enough: FIN or RST was there.
    Closing,
}

/// How many phases there are.
const PHASES: usize = Phase::Closing as usize + 1;

impl Phase {
    /// The one after a packet of TCP with these flags, of the end that began or of the other one.
    #[must_use]
    #[inline(always)]
    pub fn after(self, flags: u8, of_beginner: bool) -> Self {
        if flags & (FIN | RST) != 0 {
            return Self::Closing;
        }
        match self {
            Self::Opening if !of_beginner && flags & ACK != 0 => Self::Answered,
            Self::Answered if of_beginner && flags & (ACK | SYN) == ACK => Self::Established,
            phase => phase,
        }
    }
}

/// For how many seconds nothing of a flow may come before its state is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// A connection of TCP that is not established.
    pub tcp_opening: u32,
    /// One that is: RFC 5382, REQ-5, asks for two hours and four minutes at least.
    pub tcp_established: u32,
    /// One that an end has closed or reset.
    pub tcp_closing: u32,
    /// UDP, and all protocols that are not said here: RFC 4787, REQ-5, asks for two minutes at least.
    pub udp: u32,
    /// An echo.
    pub icmp: u32,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { tcp_opening: 120, tcp_established: 7440, tcp_closing: 120, udp: 120, icmp: 30 }
    }
}

impl Timeouts {
    /// In units of [`Moment`], rounded up.
    #[must_use]
    pub fn lives(&self) -> Lives {
        // 1000 milliseconds in units of 64.
        let moments = |seconds: u32| seconds.saturating_mul(125).div_ceil(8);
        let [opening, established, closing, udp, icmp] =
            [self.tcp_opening, self.tcp_established, self.tcp_closing, self.udp, self.icmp].map(moments);
        let of = |simple| [simple, simple, opening, opening, established, closing];
        Lives { echo: of(icmp), other: of(udp) }
    }
}

/// How long states stay, by phase.
#[derive(Clone, Copy, Debug)]
pub struct Lives {
    echo: [Moment; PHASES],
    other: [Moment; PHASES],
}

impl Lives {
    /// That of a flow of this protocol in its phase.
    #[must_use]
    #[inline(always)]
    pub fn of(&self, protocol: u8, phase: Phase) -> Moment {
        let is_echo = protocol == ipv4::ICMP || protocol == ipv6::ICMP;
        let lives = if is_echo { &self.echo } else { &self.other };
        lives.get(phase as usize).copied().unwrap_or_default()
    }
}

/// How the states of a router are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The most states of a worker.
    pub maximum: u32,
    /// How long they stay.
    pub timeouts: Timeouts,
}

impl Default for Settings {
    fn default() -> Self {
        Self { maximum: 262_144, timeouts: Timeouts::default() }
    }
}
