//! A MAC address: text enters, six bytes leave, and the other way round.

use std::fmt;
use std::str::FromStr;

/// A 48-bit Ethernet address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MacAddress(pub [u8; 6]);

/// The text is not six hexadecimal bytes separated by colons.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a MAC address: write six hexadecimal bytes, like 02:00:00:00:00:01")]
pub struct ParseMacError(String);

impl MacAddress {
    /// That of all stations.
    pub const BROADCAST: Self = Self([0xff; 6]);
}

impl FromStr for MacAddress {
    type Err = ParseMacError;

    fn from_str(text: &str) -> Result<Self, ParseMacError> {
        let error = || ParseMacError(text.to_owned());
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().ok_or_else(error)?;
            if part.is_empty() || part.len() > 2 || part.starts_with('+') {
                return Err(error());
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| error())?;
        }
        match parts.next() {
            None => Ok(Self(bytes)),
            Some(_) => Err(error()),
        }
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        let mac: MacAddress = "02:0a:00:ff:1:10".parse().unwrap();
        assert_eq!(mac, MacAddress([2, 10, 0, 255, 1, 16]));
        assert_eq!(mac.to_string(), "02:0a:00:ff:01:10");
    }

    #[test]
    fn wrong_text_is_refused() {
        for text in
            ["", "02:00", "02:00:00:00:00:00:00", "02:00:00:00:00:zz", "002:0:0:0:0:0", "+2:0:0:0:0:0"]
        {
            assert!(text.parse::<MacAddress>().is_err(), "{text}");
        }
    }
}
