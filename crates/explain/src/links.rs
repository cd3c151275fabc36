//! What a packet rate is worth as bandwidth: frames a second and their size enter; bits a second of the
//! Internet's mix, and the fastest links that would be filled, leave. Pure.

use wire::size::{self, l1_bps_to_pps, pps_to_ethernet_bps};

/// Links that can be bought, in bits a second (L1).
pub const LINKS: [f64; 11] = [100e6, 1e9, 2.5e9, 5e9, 10e9, 25e9, 40e9, 50e9, 100e9, 200e9, 400e9];

/// Simple IMIX: IP packets of 40, 576 and 1500 bytes, 7:4:1, each with 18 bytes of Ethernet header and
/// FCS. The smallest is padded on a line, which counters at the Ethernet layer do not show.
const SIMPLE_IMIX: [(u16, u64); 3] = [(58, 7), (594, 4), (1518, 1)];

/// Frames to fill a link with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Frames {
    /// 64 bytes, as an attacker would: line rate.
    Smallest,
    /// Of so many bytes in the mean, as those that the rate was measured with.
    Own(f64),
    /// Simple IMIX, at the Ethernet layer without FCS, as switches count: 2,834.67 bits a packet.
    Imix,
}

impl Frames {
    /// Frames a second that fill a link of `bps` in one direction.
    #[must_use]
    pub fn pps_to_fill(self, bps: f64) -> f64 {
        match self {
            Self::Smallest => l1_bps_to_pps(bps, f64::from(size::MIN)),
            Self::Own(mean_size) => l1_bps_to_pps(bps, mean_size),
            Self::Imix => bps / imix_bps(1.0),
        }
    }

    /// The fastest link of [`LINKS`] that `pps` fill in one direction; `None` if not even the slowest.
    #[must_use]
    pub fn link_filled(self, pps: f64) -> Option<f64> {
        LINKS.into_iter().rev().find(|bps| pps >= self.pps_to_fill(*bps))
    }
}

/// What a packet rate is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worth {
    /// Frames a second, all directions added up.
    pub pps: f64,
    /// How many directions that is the rate of.
    pub directions: usize,
    /// The bandwidth of as many packets of simple IMIX, all directions added up.
    pub imix_bps: f64,
    /// By which frames which link is filled in each of the directions.
    pub fills: [(Frames, Option<f64>); 3],
}

impl Worth {
    /// What `pps`, `directions` added up, of frames of `mean_size` bytes are worth.
    #[must_use]
    pub fn new(pps: f64, directions: usize, mean_size: f64) -> Self {
        let directions = directions.max(1);
        let each = pps / directions as f64;
        let fills = [Frames::Smallest, Frames::Own(mean_size), Frames::Imix];
        let fills = fills.map(|frames| (frames, frames.link_filled(each)));
        Self { pps, directions, imix_bps: imix_bps(pps), fills }
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
        for (frames, bps, pps) in [
            (Frames::Smallest, 1e9, 1.488e6),
            (Frames::Smallest, 10e9, 14.88e6),
            (Frames::Imix, 1e9, 350e3),
            (Frames::Imix, 10e9, 3.5e6),
            (Frames::Own(1518.0), 10e9, 812.7e3),
        ] {
            let found = frames.pps_to_fill(bps);
            assert!((found / pps - 1.0).abs() < 0.01, "{frames:?} {bps}: {found}");
        }
        assert!((imix_bps(1.0) - 2_834.67).abs() < 0.01);
        let links = |worth: Worth| worth.fills.map(|(_, link)| link);
        let full_duplex = Worth::new(7.1e6, 2, 64.0);
        assert_eq!(links(full_duplex), [Some(1e9), Some(1e9), Some(10e9)]);
        assert_eq!(links(Worth::new(30e6, 2, 64.0)), [Some(10e9), Some(10e9), Some(40e9)]);
    }

    #[test]
    fn a_rate_fills_the_fastest_link_that_it_reaches() {
        let worth = Worth::new(1.1e6, 1, 1518.0);
        assert_eq!(worth.fills.map(|(_, link)| link), [Some(100e6), Some(10e9), Some(2.5e9)]);
        assert_eq!(Frames::Smallest.link_filled(148_810.0), Some(100e6));
        assert_eq!(Frames::Smallest.link_filled(148_800.0), None);
        assert_eq!(Frames::Imix.link_filled(1e12), Some(400e9));
        assert_eq!(Frames::Imix.link_filled(0.0), None);
    }
}
