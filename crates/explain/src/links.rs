//! What a packet rate is worth as bandwidth: frames a second enter; bits a second of the Internet's
//! mix, and the fastest link that would be filled, leave. Pure.

use wire::size::{self, l1_bps_to_pps, pps_to_ethernet_bps};

/// Links that can be bought, in bits a second (L1).
pub const LINKS: [f64; 11] = [100e6, 1e9, 2.5e9, 5e9, 10e9, 25e9, 40e9, 50e9, 100e9, 200e9, 400e9];

/// Simple IMIX: IP packets of 40, 576 and 1500 bytes, 7:4:1, each with 18 bytes of Ethernet header and
/// FCS. The smallest is padded on a line, which counters at the Ethernet layer do not show.
const SIMPLE_IMIX: [(u16, u64); 3] = [(58, 7), (594, 4), (1518, 1)];

/// Sizes of frames to fill a link with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// 64 bytes, as an attacker would: line rate.
    Smallest,
    /// Simple IMIX, at the Ethernet layer without FCS, as switches count: 2,834.67 bits a packet.
    Imix,
    /// 1518 bytes.
    Largest,
}

impl Sizes {
    /// All of them, the hardest first.
    pub const ALL: [Self; 3] = [Self::Smallest, Self::Imix, Self::Largest];

    /// Frames a second that fill a link of `bps` in one direction.
    #[must_use]
    pub fn pps_to_fill(self, bps: f64) -> f64 {
        match self {
            Self::Smallest => l1_bps_to_pps(bps, f64::from(size::MIN)),
            Self::Imix => bps / imix_bps(1.0),
            Self::Largest => l1_bps_to_pps(bps, 1518.0),
        }
    }

    /// The fastest link of [`LINKS`] that `pps` fill in one direction; `None` if not even the slowest.
    #[must_use]
    pub fn link_filled(self, pps: f64) -> Option<f64> {
        LINKS.into_iter().rev().find(|bps| pps >= self.pps_to_fill(*bps))
    }
}

/// The bandwidth of `pps` packets of simple IMIX, as counters at the Ethernet layer show it.
#[must_use]
pub fn imix_bps(pps: f64) -> f64 {
    pps_to_ethernet_bps(pps, size::mean(&SIMPLE_IMIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tuning_talk_s_minimum_rates() {
        // 1 Gb/s: 1.48 Mpps, 350 kpps of IMIX; 10 Gb/s ten times that; full duplex twice that.
        for (sizes, bps, pps) in [
            (Sizes::Smallest, 1e9, 1.488e6),
            (Sizes::Smallest, 10e9, 14.88e6),
            (Sizes::Imix, 1e9, 350e3),
            (Sizes::Imix, 10e9, 3.5e6),
            (Sizes::Imix, 20e9, 7e6),
            (Sizes::Largest, 10e9, 812.7e3),
        ] {
            let found = sizes.pps_to_fill(bps);
            assert!((found / pps - 1.0).abs() < 0.01, "{sizes:?} {bps}: {found}");
        }
        assert!((imix_bps(1.0) - 2_834.67).abs() < 0.01);
    }

    #[test]
    fn a_rate_fills_the_fastest_link_that_it_reaches() {
        assert_eq!(Sizes::ALL.map(|sizes| sizes.link_filled(1.1e6)), [Some(100e6), Some(2.5e9), Some(10e9)]);
        assert_eq!(Sizes::Smallest.link_filled(148_810.0), Some(100e6));
        assert_eq!(Sizes::Smallest.link_filled(148_800.0), None);
        assert_eq!(Sizes::Imix.link_filled(1e12), Some(400e9));
        assert_eq!(Sizes::Imix.link_filled(0.0), None);
    }
}
