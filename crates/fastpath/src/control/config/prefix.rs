//! Prefixes and addresses of either version of IP, as people write them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::fib::{self, Prefix};
use crate::subnet::Subnet;

/// A prefix of either version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IpPrefix {
    /// Of IPv4.
    Ip4(Prefix<u32>),
    /// Of IPv6.
    Ip6(Prefix<u128>),
}

/// The text is not a prefix.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// It has another form.
    #[error("'{0}' is no address with a length: write one like 10.0.0.0/8 or 2001:db8::/32")]
    Form(String),
    /// The numbers do not go together.
    #[error(transparent)]
    Fib(#[from] fib::Error),
}

impl FromStr for Subnet {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let form = || ParseError::Form(text.to_owned());
        let (address, length) = text.split_once('/').ok_or_else(form)?;
        let address: IpAddr = address.parse().map_err(|_| form())?;
        let digits = length.bytes().all(|byte| byte.is_ascii_digit());
        let length: u8 = length.parse().ok().filter(|_| digits).ok_or_else(form)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        if length > most {
            return Err(fib::Error::Length { length, most }.into());
        }
        Ok(Self { address, length })
    }
}

impl FromStr for IpPrefix {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let Subnet { address, length } = text.parse()?;
        Ok(match address {
            IpAddr::V4(address) => Self::Ip4(Prefix::new(u32::from(address), length)?),
            IpAddr::V6(address) => Self::Ip6(Prefix::new(u128::from(address), length)?),
        })
    }
}

impl IpPrefix {
    /// All addresses that are on a subnet.
    ///
    /// # Errors
    /// [`fib::Error::Length`].
    pub fn of(subnet: Subnet) -> Result<Self, fib::Error> {
        Ok(match subnet.network() {
            IpAddr::V4(address) => Self::Ip4(Prefix::new(address.to_bits(), subnet.length)?),
            IpAddr::V6(address) => Self::Ip6(Prefix::new(address.to_bits(), subnet.length)?),
        })
    }

    /// Whether an address is among its.
    #[must_use]
    pub fn holds(self, address: IpAddr) -> bool {
        use fib::Address;
        match (self, address) {
            (Self::Ip4(prefix), IpAddr::V4(address)) => {
                u32::from(address).network(prefix.length()) == prefix.address()
            }
            (Self::Ip6(prefix), IpAddr::V6(address)) => {
                u128::from(address).network(prefix.length()) == prefix.address()
            }
            _ => false,
        }
    }

    /// Its first address.
    #[must_use]
    pub fn address(self) -> IpAddr {
        match self {
            Self::Ip4(prefix) => Ipv4Addr::from(prefix.address()).into(),
            Self::Ip6(prefix) => Ipv6Addr::from(prefix.address()).into(),
        }
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip4(prefix) => prefix.fmt(formatter),
            Self::Ip6(prefix) => prefix.fmt(formatter),
        }
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_read_and_written_back() {
        for text in ["0.0.0.0/0", "10.0.0.0/8", "10.1.2.3/32", "::/0", "2001:db8::/32"] {
            assert_eq!(text.parse::<IpPrefix>().unwrap().to_string(), text);
        }
        let subnet: Subnet = "10.1.2.3/24".parse().unwrap();
        let network = IpPrefix::of(subnet).unwrap();
        assert_eq!(
            (subnet.to_string().as_str(), network.to_string().as_str()),
            ("10.1.2.3/24", "10.1.2.0/24")
        );
        assert!(network.holds("10.1.2.9".parse().unwrap()) && !network.holds("10.1.3.9".parse().unwrap()));
        assert!(!network.holds("::1".parse().unwrap()));
        assert_eq!(network.address(), IpAddr::from([10, 1, 2, 0]));
    }

    #[test]
    fn what_is_no_prefix_is_refused_with_what_to_write() {
        for (text, clue) in [
            ("", "write one like"),
            ("10.0.0.0", "write one like"),
            ("10.0.0.0/+8", "write one like"),
            ("10.0.0/8", "write one like"),
            ("10.0.0.0/33", "addresses have 32"),
            ("::/129", "addresses have 128"),
            ("10.0.0.1/8", "is 10.0.0.0/8 meant?"),
        ] {
            let said = text.parse::<IpPrefix>().unwrap_err().to_string();
            assert!(said.contains(clue), "{said}");
        }
    }
}
