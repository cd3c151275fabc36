//! Tunables of the built-in profiles: text as on a command line enters, typed values leave.

use std::fmt;
use std::str::FromStr;

use wire::{size, vlan};

use crate::error::Error;
use crate::stream::IpVersion;

/// What was asked of a built-in profile. `None` and empty: its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tunables {
    /// Frame size.
    pub size: Option<Size>,
    /// What varies from frame to frame.
    pub vm: Option<Vm>,
    /// IP version.
    pub ip: Option<IpVersion>,
    /// VLAN tags, outer first.
    pub vlan: Option<VlanTags>,
}

/// `--size`: one frame size, or the mix of three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// All frames have this size, FCS included.
    Bytes(u16),
    /// Small, middle and large frames, 28:16:4.
    Imix,
}

/// `--vm`: what varies, in TRex's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Vm {
    /// Nothing: one flow.
    #[default]
    None,
    /// The source address steps through 251 values.
    Var1,
    /// Source and destination step together through 251 pairs.
    Var2,
    /// The source address is drawn from 251.
    Random,
    /// The source address steps, and the source port after each round of it.
    Tuple,
    /// The frame size is drawn.
    Size,
    /// `var1` as a cache of 255 frames makes it.
    Cached,
}

/// `--vlan`: one tag, or two with the outer first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VlanTags(Vec<u16>);

/// The names of all [`Vm`], with what they do.
pub(crate) const VMS: [(&str, Vm); 7] = [
    ("none", Vm::None),
    ("var1", Vm::Var1),
    ("var2", Vm::Var2),
    ("random", Vm::Random),
    ("tuple", Vm::Tuple),
    ("size", Vm::Size),
    ("cached", Vm::Cached),
];

impl VlanTags {
    /// The identifiers, outer first.
    #[must_use]
    pub fn ids(&self) -> &[u16] {
        &self.0
    }
}

/// The error of `text`, which is no value of `tunable`.
fn wrong(tunable: &'static str, text: &str, expected: impl Into<String>) -> Error {
    Error::Value { tunable, text: text.to_owned(), expected: expected.into() }
}

impl FromStr for Size {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "imix" {
            return Ok(Self::Imix);
        }
        match text.parse() {
            Ok(bytes @ size::MIN..=size::MAX) => Ok(Self::Bytes(bytes)),
            _ => Err(wrong(
                "frame size",
                text,
                format!("write {} to {} bytes (FCS included), or imix", size::MIN, size::MAX),
            )),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Imix => f.write_str("imix"),
        }
    }
}

impl FromStr for Vm {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let found = VMS.iter().find(|(name, _)| *name == text);
        found.map(|(_, vm)| *vm).ok_or_else(|| {
            wrong("choice of flows", text, format!("known are {}", VMS.map(|(name, _)| name).join(", ")))
        })
    }
}

impl fmt::Display for Vm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = VMS.iter().find(|(_, vm)| vm == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl FromStr for IpVersion {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "4" => Ok(Self::V4),
            "6" => Ok(Self::V6),
            _ => Err(wrong("IP version", text, "known are 4, 6")),
        }
    }
}

impl fmt::Display for IpVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "4",
            Self::V6 => "6",
        })
    }
}

impl FromStr for VlanTags {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let ids: Option<Vec<u16>> = text
            .split(',')
            .map(|id| id.trim().parse().ok().filter(|id| (1..=vlan::MAX_ID).contains(id)))
            .collect();
        match ids {
            Some(ids) if ids.len() <= 2 => Ok(Self(ids)),
            _ => Err(wrong(
                "VLAN",
                text,
                format!("write an identifier from 1 to {}, or two with a comma (outer first)", vlan::MAX_ID),
            )),
        }
    }
}

impl fmt::Display for VlanTags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<String> = self.0.iter().map(u16::to_string).collect();
        f.write_str(&ids.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trips<T: FromStr<Err = Error> + fmt::Display>(texts: &[&str]) {
        for text in texts {
            assert_eq!(text.parse::<T>().map(|value| value.to_string()), Ok((*text).to_owned()));
        }
    }

    #[test]
    fn text_round_trips() {
        round_trips::<Size>(&["64", "1514", "9216", "imix"]);
        round_trips::<Vm>(&VMS.map(|(name, _)| name));
        round_trips::<IpVersion>(&["4", "6"]);
        round_trips::<VlanTags>(&["1", "100", "100,200", "4094,1"]);
    }

    #[test]
    fn what_is_wrong_is_refused_with_what_is_right() {
        for text in ["", "63", "9217", "-1", "IMIX", "64b"] {
            insta::allow_duplicates! {
                assert!(text.parse::<Size>().unwrap_err().to_string().ends_with("write 64 to 9216 bytes (FCS included), or imix"));
            }
        }
        insta::assert_snapshot!("var3".parse::<Vm>().unwrap_err(), @"'var3' is no choice of flows: known are none, var1, var2, random, tuple, size, cached");
        insta::assert_snapshot!("5".parse::<IpVersion>().unwrap_err(), @"'5' is no IP version: known are 4, 6");
        for text in ["", "0", "4095", "1,", "1,2,3", "1 2"] {
            assert!(text.parse::<VlanTags>().is_err(), "{text}");
        }
    }
}
