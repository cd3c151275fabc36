//! Rates as people write them: `10kpps`, `5gbps`, `97%` enter; packets a second leave.

use std::fmt;
use std::str::FromStr;

use crate::size;

/// How much load, in one of the units that the field uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Frames a second: `10kpps`, `1.5mpps`, or a bare number.
    Pps(f64),
    /// Bits a second at L2, FCS included: `5gbps`.
    L2Bps(f64),
    /// Bits a second at L1: `5gbpsl1`.
    L1Bps(f64),
    /// Percent of the line rate: `97%`.
    Percent(f64),
    /// As fast as the tester can: `max`.
    Max,
}

/// The text is not a rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseRateError {
    /// Not a [`Rate`].
    #[error(
        "'{0}' is not a rate: write frames a second (10kpps, 1.5mpps), bits a second at L2 (5gbps) or L1 (5gbpsl1), percent of line rate (97%), or max"
    )]
    Rate(String),
    /// A [`Rate::Percent`] above 100.
    #[error("'{0}' is more than the line carries: write at most 100%, or another --line-rate")]
    OverLine(String),
    /// Not a line rate.
    #[error(
        "'{0}' is not a line rate: write bits a second, like 10gbps or 2.5gbps (a line rate is always L1)"
    )]
    LineRate(String),
}

impl Rate {
    /// This rate in frames a second, for frames of `mean_frame_size` bytes (FCS included) on a
    /// line of `line_rate_bps` (L1). `None` for [`Rate::Max`], which has no number.
    #[must_use]
    pub fn to_pps(self, mean_frame_size: f64, line_rate_bps: f64) -> Option<f64> {
        match self {
            Self::Pps(pps) => Some(pps),
            Self::L2Bps(bps) => Some(size::l2_bps_to_pps(bps, mean_frame_size)),
            Self::L1Bps(bps) => Some(size::l1_bps_to_pps(bps, mean_frame_size)),
            Self::Percent(percent) => {
                Some(size::l1_bps_to_pps(line_rate_bps * percent / 100.0, mean_frame_size))
            }
            Self::Max => None,
        }
    }
}

/// Reads a line rate such as `10gbps` or `2.5gbps`: bits a second at L1, more than zero.
///
/// # Errors
/// When the text is anything else.
pub fn parse_line_rate(text: &str) -> Result<f64, ParseRateError> {
    match split(text) {
        Some((bps, unit)) if unit == "bps" && bps > 0.0 => Ok(bps),
        _ => Err(ParseRateError::LineRate(text.to_owned())),
    }
}

impl FromStr for Rate {
    type Err = ParseRateError;

    fn from_str(text: &str) -> Result<Self, ParseRateError> {
        if text.trim().eq_ignore_ascii_case("max") {
            return Ok(Self::Max);
        }
        let error = || ParseRateError::Rate(text.to_owned());
        let (value, unit) = split(text).ok_or_else(error)?;
        match unit.as_str() {
            "" | "pps" => Ok(Self::Pps(value)),
            "bps" | "bpsl2" => Ok(Self::L2Bps(value)),
            "bpsl1" => Ok(Self::L1Bps(value)),
            "%" if value > 100.0 => Err(ParseRateError::OverLine(text.to_owned())),
            "%" => Ok(Self::Percent(value)),
            _ => Err(error()),
        }
    }
}

/// Splits `1.5mpps` into 1,500,000 and `pps`. A prefix needs a unit after it.
fn split(text: &str) -> Option<(f64, String)> {
    let text = text.trim().to_ascii_lowercase();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (factor, unit) = match unit.trim_start() {
        unit if unit.starts_with("kp") || unit.starts_with("kb") => (1e3, &unit[1..]),
        unit if unit.starts_with("mp") || unit.starts_with("mb") => (1e6, &unit[1..]),
        unit if unit.starts_with("gp") || unit.starts_with("gb") => (1e9, &unit[1..]),
        unit => (1.0, unit),
    };
    let value = number.parse::<f64>().ok()? * factor;
    value.is_finite().then(|| (value, unit.to_owned()))
}

impl fmt::Display for Rate {
    /// What [`FromStr`] reads back as the same rate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match *self {
            Self::Pps(pps) => (pps, "pps"),
            Self::L2Bps(bps) => (bps, "bps"),
            Self::L1Bps(bps) => (bps, "bpsl1"),
            Self::Percent(percent) => return write!(f, "{percent}%"),
            Self::Max => return f.write_str("max"),
        };
        let exact = |factor: &(f64, &str)| value >= factor.0 && value / factor.0 * factor.0 == value;
        let (factor, prefix) =
            [(1e9, "g"), (1e6, "m"), (1e3, "k")].into_iter().find(exact).unwrap_or((1.0, ""));
        write!(f, "{}{prefix}{unit}", value / factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_are_read_as_written() {
        for (text, rate, shown) in [
            ("10kpps", Rate::Pps(10e3), "10kpps"),
            ("1.5mpps", Rate::Pps(1.5e6), "1.5mpps"),
            ("1.5 Mpps", Rate::Pps(1.5e6), "1.5mpps"),
            ("2000", Rate::Pps(2000.0), "2kpps"),
            ("7pps", Rate::Pps(7.0), "7pps"),
            ("5gbps", Rate::L2Bps(5e9), "5gbps"),
            ("5gbpsl2", Rate::L2Bps(5e9), "5gbps"),
            ("5gbpsl1", Rate::L1Bps(5e9), "5gbpsl1"),
            ("800bpsl1", Rate::L1Bps(800.0), "800bpsl1"),
            ("97%", Rate::Percent(97.0), "97%"),
            ("0.1%", Rate::Percent(0.1), "0.1%"),
            ("max", Rate::Max, "max"),
        ] {
            assert_eq!(text.parse(), Ok(rate), "{text}");
            assert_eq!(rate.to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for text in [
            "", "pps", "-1pps", "10k", "10kk", "1e3pps", "nan", "inf", "1.2.3pps", "5%%", "5gbpsl3", "5tbps",
            "k", "%",
        ] {
            assert!(matches!(text.parse::<Rate>(), Err(ParseRateError::Rate(_))), "{text}");
        }
        assert!(matches!("9".repeat(400).parse::<Rate>(), Err(ParseRateError::Rate(_))));
        assert!(matches!("101%".parse::<Rate>(), Err(ParseRateError::OverLine(_))));
    }

    #[test]
    fn a_line_rate_is_bits_a_second() {
        assert_eq!(parse_line_rate("10gbps"), Ok(10e9));
        assert_eq!(parse_line_rate("2.5Gbps"), Ok(2.5e9));
        for text in ["", "10", "0gbps", "10gbpsl1", "10gbpsl2", "10gpps", "100%", "max"] {
            assert!(matches!(parse_line_rate(text), Err(ParseRateError::LineRate(_))), "{text}");
        }
    }

    #[test]
    fn rates_become_packets() {
        let pps = |text: &str| text.parse::<Rate>().unwrap().to_pps(64.0, 10e9);
        assert_eq!(pps("10kpps"), Some(10e3));
        assert_eq!(pps("512bps"), Some(1.0));
        assert_eq!(pps("672bpsl1"), Some(1.0));
        assert_eq!(pps("100%"), Some(10e9 / 672.0));
        assert_eq!(pps("max"), None);
    }

    proptest! {
        #[test]
        fn text_round_trips(value in 0.0f64..1e12, whole: bool, unit in 0..4) {
            let value = if whole { value.round() } else { value };
            let rate = match unit {
                0 => Rate::Pps(value),
                1 => Rate::L2Bps(value),
                2 => Rate::L1Bps(value),
                _ => Rate::Percent(value / 1e10),
            };
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,20}") {
            let _ = text.parse::<Rate>();
            let _ = parse_line_rate(&text);
        }
    }
}
