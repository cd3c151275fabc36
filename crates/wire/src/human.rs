//! Numbers for people: rates and counts enter, short text leaves.

/// A packet rate, like `1.10 Mpps`.
#[must_use]
pub fn pps(value: f64) -> String {
    scaled(value, "pps")
}

/// A bit rate, like `418.65 Mbps`.
#[must_use]
pub fn bps(value: f64) -> String {
    scaled(value, "bps")
}

/// A count with its thousands apart, like `1,048,576`.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Three digits before the point at most and two after it; below a thousand, none after it when
/// they would be zeros.
fn scaled(value: f64, unit: &str) -> String {
    // What would round to 1000.00 belongs to the next prefix.
    const NEXT: f64 = 999.995;
    let (factor, prefix) = match value.abs() {
        size if size >= NEXT * 1e9 => (1e12, "T"),
        size if size >= NEXT * 1e6 => (1e9, "G"),
        size if size >= NEXT * 1e3 => (1e6, "M"),
        size if size >= NEXT => (1e3, "k"),
        _ => (1.0, ""),
    };
    let text = format!("{:.2}", value / factor);
    let text = if factor == 1.0 { text.strip_suffix(".00").unwrap_or(&text) } else { &text };
    format!("{text} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_read_as_in_the_article() {
        assert_eq!(pps(1_100_000.0), "1.10 Mpps");
        assert_eq!(bps(418_650_000.0), "418.65 Mbps");
        assert_eq!(pps(623_000.0), "623.00 kpps");
        assert_eq!(bps(9.98e9), "9.98 Gbps");
        assert_eq!(bps(1.2e12), "1.20 Tbps");
        assert_eq!(pps(0.0), "0 pps");
        assert_eq!(pps(12.5), "12.50 pps");
        assert_eq!(pps(999.0), "999 pps");
    }

    #[test]
    fn rounding_carries_into_the_next_prefix() {
        assert_eq!(pps(999.999), "1.00 kpps");
        assert_eq!(pps(999_994.9), "999.99 kpps");
        assert_eq!(pps(999_999.0), "1.00 Mpps");
    }

    #[test]
    fn counts_have_their_thousands_apart() {
        let text = [0, 12, 123, 1234, 999_999, 1_048_576].map(count);
        assert_eq!(text, ["0", "12", "123", "1,234", "999,999", "1,048,576"]);
    }
}
