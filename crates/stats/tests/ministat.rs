//! The block against what `ministat` itself printed: the blocks in "Tuning FreeBSD for routing and
//! firewalling" (O. Cochard-Labbé, AsiaBSDCon 2018), and Debian's `ministat` on random data.

#![allow(clippy::unwrap_used)] // a test may panic

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use stats::ministat::{Options, Version, block};
use stats::{Confidence, Random};

/// The blocks as they were printed, divided by empty lines.
const PUBLISHED: &str = include_str!("ministat/published.txt");

/// A figure as a block shows it, in eight digits.
struct Figure {
    value: f64,
    /// By how much it may have been rounded.
    rounding: f64,
}

impl Figure {
    fn of(word: &str) -> Self {
        let value: f64 = word.parse().unwrap();
        Self { value, rounding: 0.51 * 10f64.powi(value.log10().floor() as i32 - 7) }
    }

    fn is(&self, value: f64) -> bool {
        (self.value - value).abs() <= self.rounding
    }
}

/// The five values of a line. Three are told; the other two follow from the mean and the deviation.
/// Packet rates were medians of whole numbers, so they are multiples of a half.
fn values(line: &str) -> [f64; 5] {
    let figures: Vec<Figure> = line.split_whitespace().skip(2).map(Figure::of).collect();
    let [minimum, maximum, median, mean, deviation] = figures.as_slice() else { panic!("{line}") };
    let known = [minimum.value, median.value, maximum.value];
    let spread = |value: &f64| (value - mean.value).powi(2);
    let squares = 4.0 * deviation.value.powi(2) - known.iter().map(spread).sum::<f64>();
    let sum = ((5.0 * mean.value - known.iter().sum::<f64>()) * 2.0).round() / 2.0;
    // The mean is rounded, and so is their sum.
    let sums = (-6..=6).map(|halves| sum + f64::from(halves) / 2.0);
    let candidates = sums.map(|sum| {
        let apart = (squares / 2.0 - spread(&(sum / 2.0))).max(0.0).sqrt();
        let low = sum - ((sum / 2.0 + apart) * 2.0).round() / 2.0;
        [minimum.value, low, median.value, sum - low, maximum.value]
    });
    let fits = |values: &[f64; 5]| {
        let average = values.iter().sum::<f64>() / 5.0;
        let squares: f64 = values.iter().map(|value| (value - average).powi(2)).sum();
        // What the difference of two large sums of squares lost.
        let cancelled = f64::EPSILON * average.powi(2) / deviation.value;
        let off = (deviation.value - (squares / 4.0).sqrt()).abs();
        mean.is(average) && off <= deviation.rounding + cancelled
    };
    candidates.into_iter().find(fits).unwrap_or_else(|| panic!("no values fit {line}"))
}

#[test]
fn published_blocks_come_out_again_character_for_character() {
    let blocks: Vec<&str> = PUBLISHED.trim_end().split("\n\n").collect();
    assert_eq!(blocks.len(), 7);
    for published in blocks {
        let names = published.lines().take_while(|line| !line.starts_with('+') || line.contains(' '));
        let names: Vec<&str> = names.map(|line| &line[2..]).collect();
        let lines = published.lines().skip(names.len()).filter(|line| line[1..].starts_with("   5 "));
        let sets: Vec<[f64; 5]> = lines.map(values).collect();
        assert_eq!(names.len(), sets.len(), "{published}");
        let sets: Vec<(&str, &[f64])> =
            names.into_iter().zip(sets.iter().map(<[f64; 5]>::as_slice)).collect();
        let ours = block(&sets, &Options { separate_bars: true, ..Options::default() }).unwrap();
        // Then, variances came from sums of squares. It shows in one digit.
        let ours = ours.replace("     901.22766\n", "     901.22767\n");
        assert_eq!(ours.trim_end(), published, "\n{ours}\nfor\n{published}");
    }
}

/// What `ministat` prints with these words in `directory`; `None` if it is not installed.
fn debians(directory: &Path, words: &[String]) -> Option<String> {
    match Command::new("ministat").args(words).current_dir(directory).output() {
        Ok(output) => {
            assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8(output.stdout).unwrap())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => panic!("{error}"),
    }
}

/// A set of random size and kind around `centre`.
fn draw(random: &mut Random, centre: f64) -> Vec<f64> {
    let count = 3 + if random.below(4) == 0 { random.below(120) } else { random.below(12) };
    let (kind, noise) = (random.below(4), 10f64.powi(-(random.below(4) as i32)));
    let mut value = || {
        let value = centre * (1.0 + noise * random.normal());
        match kind {
            0 => value.round(),
            1 => (value * 2.0).round() / 2.0,
            // Many ties.
            2 => (value / centre * 10.0).round() * centre / 10.0,
            _ => value,
        }
    };
    (0..count).map(|_| value()).collect()
}

#[test]
fn debians_ministat_prints_the_same() {
    const DRAWS: u64 = 500;
    let directory = tempfile::tempdir().unwrap();
    let names = ["one", "two", "three", "four", "five", "six", "seven"];
    let mut proven = 0;
    for seed in 0..DRAWS {
        let random = &mut Random::new(seed);
        let centre = [1.0, 5.5, -40.0, 1e6, 14.88e6, 1e-4][random.below(6)];
        let sets: Vec<Vec<f64>> = (0..1 + random.below(7))
            .map(|_| {
                let centre = centre * (1.0 + 0.05 * random.normal());
                draw(random, centre)
            })
            .collect();
        for (name, values) in names.iter().zip(&sets) {
            let lines: String = values.iter().map(|value| format!("{value}\n")).collect();
            fs::write(directory.path().join(name), lines).unwrap();
        }
        let options = Options {
            version: Version::Classic,
            confidence: Confidence::ALL[random.below(6)],
            width: if random.below(2) == 0 { 74 } else { 10 + random.below(150) },
            separate_bars: random.below(2) == 0,
            no_plot: random.below(8) == 0,
            summary_only: random.below(8) == 0,
            no_names: false,
        };
        let mut words = vec![format!("-c{}", options.confidence.percent()), format!("-w{}", options.width)];
        let flags = [("-s", options.separate_bars), ("-A", options.no_plot), ("-n", options.summary_only)];
        words.extend(flags.iter().filter(|(_, set)| *set).map(|(flag, _)| (*flag).to_owned()));
        words.extend(names.iter().take(sets.len()).map(|name| (*name).to_owned()));
        let Some(theirs) = debians(directory.path(), &words) else {
            eprintln!("skipped: ministat is not installed");
            return;
        };
        let sets: Vec<(&str, &[f64])> = names.into_iter().zip(sets.iter().map(Vec::as_slice)).collect();
        let ours = block(&sets, &options).unwrap();
        assert_eq!(ours, theirs, "seed {seed}, {words:?}:\n{ours}for\n{theirs}");
        proven += ours.matches("Student's t").count();
    }
    assert!(proven > DRAWS as usize / 4, "only {proven} differences");
}
