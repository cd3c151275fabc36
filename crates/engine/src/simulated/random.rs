//! Chance from a seed: the loss of independent frames.

use stats::Random;

/// Drops each frame with the same chance, independent of all others.
#[derive(Debug)]
pub(super) struct RandomLoss {
    random: Random,
    ratio: f64,
    /// Frames that pass before the next one is dropped.
    passing: u64,
}

impl RandomLoss {
    /// Drops the share `ratio` of frames; a share that is not above 0 drops none.
    pub(super) fn new(ratio: f64, seed: u64) -> Self {
        let mut loss = Self { random: Random::new(seed), ratio, passing: 0 };
        loss.passing = loss.gap();
        loss
    }

    /// How many of the next `frames` are dropped.
    pub(super) fn drop_of(&mut self, frames: u64) -> u64 {
        if self.ratio >= 1.0 {
            return frames;
        }
        let (mut dropped, mut left) = (0, frames);
        while self.passing < left {
            left -= self.passing + 1;
            dropped += 1;
            self.passing = self.gap();
        }
        if self.ratio > 0.0 {
            self.passing -= left;
        }
        dropped
    }

    /// Frames between two dropped ones: geometric, by inversion.
    fn gap(&mut self) -> u64 {
        if self.ratio > 0.0 { (self.random.uniform().ln() / (-self.ratio).ln_1p()) as u64 } else { u64::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_dropped_is_the_ratio_however_the_frames_are_grouped() {
        for (ratio, group) in [(0.001, 1), (0.001, 777), (0.3, 10), (0.9, 1000)] {
            let mut loss = RandomLoss::new(ratio, 7);
            let groups = 1_000_000 / group;
            let dropped: u64 = (0..groups).map(|_| loss.drop_of(group)).sum();
            let seen = dropped as f64 / (groups * group) as f64;
            let sigma = (ratio * (1.0 - ratio) / (groups * group) as f64).sqrt();
            assert!((seen - ratio).abs() < 5.0 * sigma, "{seen} for {ratio}");
        }
        assert_eq!(RandomLoss::new(0.0, 7).drop_of(u64::MAX - 1), 0);
        assert_eq!(RandomLoss::new(f64::NAN, 7).drop_of(1_000), 0);
        assert_eq!(RandomLoss::new(1.0, 7).drop_of(1_000), 1_000);
    }
}
