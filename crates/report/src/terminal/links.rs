//! What a device's packet rate is worth as bandwidth, in one line: people buy links, not packets.

use explain::links::{Sizes, imix_bps};
use wire::human::{bps, pps};

/// What `rate`, all directions added up, fills in one direction.
pub fn line(rate: f64) -> String {
    let filled = Sizes::ALL.map(|sizes| {
        let name = match sizes {
            Sizes::Smallest => "at 64 bytes",
            Sizes::Imix => "of IMIX",
            Sizes::Largest => "at 1518 bytes",
        };
        let link = sizes.link_filled(rate).map_or_else(|| "less than 100 Mbps".to_owned(), link);
        format!("{link} {name}")
    });
    let [smallest, imix, largest] = filled;
    format!(
        "as many packets of other sizes: {} carry {} of IMIX; one way they fill a link of {smallest}, {imix}, {largest}",
        pps(rate),
        bps(imix_bps(rate))
    )
}

/// A link as it is sold: without zeros behind the point.
fn link(speed: f64) -> String {
    if speed < 1e9 { format!("{} Mbps", speed / 1e6) } else { format!("{} Gbps", speed / 1e9) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_links_are_those_that_are_sold() {
        assert_eq!(
            line(1.1e6),
            "as many packets of other sizes: 1.10 Mpps carry 3.12 Gbps of IMIX; one way they fill a link of \
             100 Mbps at 64 bytes, 2.5 Gbps of IMIX, 10 Gbps at 1518 bytes"
        );
        assert!(line(0.0).contains("less than 100 Mbps of IMIX"));
    }
}
