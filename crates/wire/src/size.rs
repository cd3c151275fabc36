//! Frame sizes, and packet rates against bit rates: the only place where 4, 18 and 20 are added.
//!
//! A *frame size* includes the 4-byte FCS. On the line each frame takes 20 bytes more.
//!
//! ```text
//!  preamble+SFD 8 | Ethernet 14 | IP packet … | FCS 4 | gap 12
//!                                \__ IP layer __/
//!                  \______ Ethernet layer ______/              size − 4: what an interface is handed
//!                  \___________ frame size, L2 ________/
//!  \___________________________ L1 ____________________________/
//! ```
//! Rates are frames a second (pps) and bits a second (bps). Sizes may be means, hence `f64`;
//! a size of zero gives an infinite packet rate.

/// Bytes of the frame check sequence.
pub const FCS: u16 = 4;
/// Bytes that a frame takes on the line beyond its size: preamble and start delimiter (8) and
/// the inter-packet gap (12), IEEE 802.3 sections 3.1.1 and 4.4.2.
pub const L1_OVERHEAD: u16 = 20;
/// The smallest frame of Ethernet.
pub const MIN: u16 = 64;
/// The largest frame that we make, as TRex's `bench`.
pub const MAX: u16 = 9216;

/// Bytes of Ethernet header and FCS around an IP packet, untagged: what an MTU does not count.
pub const ETHERNET: u16 = 18;

/// The L1 bit rate of `pps` frames of `frame_size` bytes.
#[must_use]
pub fn pps_to_l1_bps(pps: f64, frame_size: f64) -> f64 {
    pps * (frame_size + f64::from(L1_OVERHEAD)) * 8.0
}

/// The L2 bit rate of `pps` frames of `frame_size` bytes.
#[must_use]
pub fn pps_to_l2_bps(pps: f64, frame_size: f64) -> f64 {
    pps * frame_size * 8.0
}

/// The bit rate at the Ethernet layer, FCS not counted, as interface counters show it.
#[must_use]
pub fn pps_to_ethernet_bps(pps: f64, frame_size: f64) -> f64 {
    pps * (frame_size - f64::from(FCS)) * 8.0
}

/// The bit rate at the IP layer, for frames without VLAN tags.
#[must_use]
pub fn pps_to_ip_bps(pps: f64, frame_size: f64) -> f64 {
    pps * (frame_size - f64::from(ETHERNET)) * 8.0
}

/// The packet rate of frames of `frame_size` bytes that fill `bps` at L1. With the line rate
/// this is the most that fits: 1.488 Mpps of 64 bytes in 1 Gb/s.
#[must_use]
pub fn l1_bps_to_pps(bps: f64, frame_size: f64) -> f64 {
    bps / pps_to_l1_bps(1.0, frame_size)
}

/// The packet rate of frames of `frame_size` bytes that fill `bps` at L2.
#[must_use]
pub fn l2_bps_to_pps(bps: f64, frame_size: f64) -> f64 {
    bps / pps_to_l2_bps(1.0, frame_size)
}

/// The mean of frame sizes, each with its weight; 0 when there is no weight.
#[must_use]
pub fn mean(sizes: &[(u16, u64)]) -> f64 {
    let weight: u64 = sizes.iter().map(|(_, weight)| weight).sum();
    let bytes: f64 = sizes.iter().map(|(size, weight)| f64::from(*size) * *weight as f64).sum();
    if weight == 0 { 0.0 } else { bytes / weight as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Simple IMIX: IP packets of 40, 576 and 1500 bytes, 7:4:1. 40 bytes of IP are 58 of frame
    /// in the formulas; a line carries 64.
    const SIMPLE_IMIX: [(u16, u64); 3] = [(58, 7), (594, 4), (1518, 1)];

    /// Within `tolerance`, a share of `expected`.
    fn close(actual: f64, expected: f64, tolerance: f64) {
        assert!((actual / expected - 1.0).abs() <= tolerance, "{actual} is not about {expected}");
    }

    #[test]
    fn the_line_rates_that_everybody_quotes() {
        close(l1_bps_to_pps(1e9, 64.0), 1_488_095.24, 1e-8);
        close(l1_bps_to_pps(10e9, 64.0), 14_880_952.38, 1e-8);
        // The table of the FreeBSD tuning talk: 1.48 and 14.8 Mpps, 3 and 30 full duplex.
        close(l1_bps_to_pps(1e9, 64.0), 1.48e6, 0.01);
        close(l1_bps_to_pps(10e9, 64.0), 14.8e6, 0.01);
        close(2.0 * l1_bps_to_pps(1e9, 64.0), 3e6, 0.01);
        close(2.0 * l1_bps_to_pps(10e9, 64.0), 30e6, 0.01);
    }

    #[test]
    fn the_loads_of_the_netgate_review() {
        // bench-var2-1514b is "~815Kpps at 10Gbps"; 64 bytes both ways are "approx 29.7Mpps".
        close(l1_bps_to_pps(10e9, 1514.0), 814_863.1, 1e-6);
        close(2.0 * l1_bps_to_pps(10e9, 64.0), 29.7e6, 0.003);
        // bench's IMIX is "just about 3.2Mpps at 10Gbps".
        close(l1_bps_to_pps(10e9, mean(&[(68, 28), (590, 16), (1514, 4)])), 3.2e6, 0.03);
        // "single core performance of 623kpps … about 419Mbit of 64b packets".
        close(pps_to_l1_bps(623e3, 64.0), 418.656e6, 1e-9);
    }

    #[test]
    fn trex_imix_takes_381_8_bytes_of_line() {
        // 60, 590 and 1514 bytes without FCS, 28:16:4.
        let size = mean(&[(64, 28), (594, 16), (1518, 4)]);
        close(size + f64::from(L1_OVERHEAD), 381.8, 1e-4);
        close(l1_bps_to_pps(1e9, size), 327.4e3, 1e-3);
    }

    #[test]
    fn oliviers_imix_formulas() {
        for pps in [1.0, 350e3, 7e6] {
            let size = mean(&SIMPLE_IMIX);
            let ip = pps * ((7.0 * 40.0 + 4.0 * 576.0 + 1500.0) / 12.0) * 8.0;
            close(pps_to_ip_bps(pps, size), ip, 1e-12);
            let ethernet = pps * ((7.0 * 54.0 + 4.0 * 590.0 + 1514.0) / 12.0) * 8.0;
            close(pps_to_ethernet_bps(pps, size), ethernet, 1e-12);
        }
    }

    #[test]
    fn oliviers_minimum_rates() {
        // 350 kpps of IMIX fill 1 Gb/s, 3.5 Mpps fill 10 Gb/s, at the Ethernet layer.
        let size = mean(&SIMPLE_IMIX);
        close(pps_to_ethernet_bps(350e3, size), 1e9, 0.01);
        close(pps_to_ethernet_bps(3.5e6, size), 10e9, 0.01);
        close(pps_to_ethernet_bps(700e3, size), 2e9, 0.01);
        close(pps_to_ethernet_bps(7e6, size), 20e9, 0.01);
    }

    proptest! {
        #[test]
        fn conversions_invert_each_other(bps in 1.0f64..1e12, size in MIN..=MAX) {
            let size = f64::from(size);
            close(pps_to_l1_bps(l1_bps_to_pps(bps, size), size), bps, 1e-12);
            close(pps_to_l2_bps(l2_bps_to_pps(bps, size), size), bps, 1e-12);
            prop_assert!(l1_bps_to_pps(bps, size) < l2_bps_to_pps(bps, size));
        }
    }
}
