//! Levels of confidence: words of the command line enter, a level leaves.

use std::fmt;
use std::str::FromStr;

/// How sure a statement is, at the levels that `ministat` knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// 80 %
    Percent80,
    /// 90 %
    Percent90,
    /// 95 %
    #[default]
    Percent95,
    /// 98 %
    Percent98,
    /// 99 %
    Percent99,
    /// 99.5 %
    Percent99_5,
}

impl Confidence {
    /// All levels, the lowest first.
    pub const ALL: [Self; 6] = [
        Self::Percent80,
        Self::Percent90,
        Self::Percent95,
        Self::Percent98,
        Self::Percent99,
        Self::Percent99_5,
    ];

    /// In percent.
    #[must_use]
    pub fn percent(self) -> f64 {
        match self {
            Self::Percent80 => 80.0,
            Self::Percent90 => 90.0,
            Self::Percent95 => 95.0,
            Self::Percent98 => 98.0,
            Self::Percent99 => 99.0,
            Self::Percent99_5 => 99.5,
        }
    }

    /// The chance of being wrong, 0 to 1, that it leaves.
    #[must_use]
    pub fn error(self) -> f64 {
        1.0 - self.percent() / 100.0
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.percent())
    }
}

impl FromStr for Confidence {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim_end_matches('%').trim().parse::<f64>().ok();
        let found = Self::ALL.into_iter().find(|level| Some(level.percent()) == number);
        let known = || Self::ALL.map(|level| level.percent().to_string()).join(", ");
        found.ok_or_else(|| format!("'{text}' is not a level of confidence; there are: {}", known()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_and_others_name_them() {
        assert_eq!("99.5%".parse(), Ok(Confidence::Percent99_5));
        assert_eq!("95".parse(), Ok(Confidence::default()));
        assert!("96".parse::<Confidence>().unwrap_err().contains("80, 90, 95, 98, 99, 99.5"));
        assert!((Confidence::Percent98.error() - 0.02).abs() < 1e-12);
    }
}
