//! Points in time, in the two forms that records use.
//!
//! A [`SystemTime`] enters; text in UTC leaves.

use std::time::SystemTime;

use jiff::Timestamp;

/// RFC 3339 in UTC to the millisecond, like `2026-11-21T08:51:23.042Z`.
#[must_use]
pub fn rfc3339(time: SystemTime) -> String {
    format!("{:.3}", timestamp(time))
}

/// RFC 3339's basic form to the second, like `20261121T085123Z`: sorts by time, fits a file name.
#[must_use]
pub fn compact(time: SystemTime) -> String {
    timestamp(time).strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// Times beyond the calendar's ends (the years −9999 and 9999) become 1970.
fn timestamp(time: SystemTime) -> Timestamp {
    Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn time_is_written_in_utc() {
        let time = UNIX_EPOCH + Duration::from_millis(1_637_916_683_042);
        assert_eq!(rfc3339(time), "2021-11-26T08:51:23.042Z");
        assert_eq!(compact(time), "20211126T085123Z");
    }

    #[test]
    fn a_time_before_1970_is_no_panic() {
        let time = UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(rfc3339(time), "1969-12-31T23:59:59.000Z");
    }
}
