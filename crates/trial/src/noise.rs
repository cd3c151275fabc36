//! What the machine did beside a measurement: by how much it may have spoiled it.

use crate::Interruption;

/// Noise during one stretch of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Noise {
    /// The share of the frames whose loss it may account for, 0 to 1: an upper estimate. A loss
    /// beyond that is the device's.
    pub cost: f64,
    /// The part of `cost` that lasted all the time, as when a core is slow, 0 to 1.
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

    /// That of a trial in which so many frames were `left` in full queues, before or behind a
    /// reference device: a core was late. Those that were lost in interruptions whose time is known are left
    /// out with them: what is beyond may have been at any time. The trial is judged by `judged` frames,
    /// which the shares are of.
    pub(crate) fn of_overrun(judged: u64, left: u64, lost_in_interruptions: u64) -> Self {
        let unexplained = left.saturating_sub(lost_in_interruptions);
        let share = |frames: u64| if frames == 0 { 0.0 } else { (frames as f64 / judged as f64).min(1.0) };
        let words =
            || format!("{unexplained} frames overflowed a queue because a core was not scheduled in time");
        Self {
            cost: share(left),
            lasting: share(unexplained),
            interruptions: None,
            disturbed: (unexplained > 0).then(words),
        }
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
    fn what_a_device_of_known_truth_left_in_its_queue_is_noise() {
        assert_eq!(Noise::of_overrun(0, 0, 0), Noise::default());
        let noise = Noise::of_overrun(1000, 250, 0);
        assert_eq!((noise.cost, noise.lasting, noise.hides_all()), (0.25, 0.25, false));
        assert!(noise.disturbed.unwrap().contains("250 frames"));
        let known = Noise::of_overrun(1000, 250, 260);
        assert_eq!((known.cost, known.lasting, known.disturbed), (0.25, 0.0, None));
    }

    #[test]
    fn noises_add_up() {
        let noise = |cost, text: &str| Noise { cost, disturbed: Some(text.to_owned()), ..Noise::default() };
        assert_eq!(Noise::default().and(noise(0.1, "a")), noise(0.1, "a"));
        assert_eq!(noise(0.7, "a").and(noise(0.7, "b")), noise(1.0, "a; b"));
    }
}
