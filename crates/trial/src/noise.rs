//! What the machine did beside a measurement: by how much it may have spoiled it.

use crate::Interruption;

/// Noise during one stretch of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Noise {
    /// The share of the frames whose loss it may account for, 0 to 1: an upper estimate. A loss
    /// beyond that is the device's.
    pub cost: f64,
    /// The part of that which lasted all the time, as when a core is slow.
    pub lasting: f64,
    /// When the rest of it was, if that is known.
    pub interruptions: Option<Vec<Interruption>>,
    /// In words, where it is more than usual: whatever was measured then is marked as disturbed.
    pub disturbed: Option<String>,
}

impl Noise {
    /// Whether it lasted all the time and may account for any loss, as when the cores are far apart:
    /// what was measured then is another machine's, so to speak.
    #[must_use]
    pub fn hides_all(&self) -> bool {
        self.lasting >= 1.0
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let disturbed = match (self.disturbed, other.disturbed) {
            (Some(one), Some(two)) => Some(format!("{one}; {two}")),
            (one, two) => one.or(two),
        };
        Self {
            cost: (self.cost + other.cost).min(1.0),
            lasting: (self.lasting + other.lasting).min(1.0),
            interruptions: self.interruptions.or(other.interruptions),
            disturbed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noises_add_up() {
        let noise = |cost, text: &str| Noise { cost, disturbed: Some(text.to_owned()), ..Noise::default() };
        assert_eq!(Noise::default().and(noise(0.1, "a")), noise(0.1, "a"));
        assert_eq!(noise(0.7, "a").and(noise(0.7, "b")), noise(1.0, "a; b"));
    }
}
