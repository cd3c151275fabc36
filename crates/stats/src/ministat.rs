//! The block that `ministat` prints, character for character: sets of numbers enter, text leaves.
//!
//! `ministat` is FreeBSD's (usr.bin/ministat, Poul-Henning Kamp). Two versions are in the wild,
//! see [`Version`]. All sets are compared with the first by Student's t of the pooled deviation,
//! which takes the variances of both for equal.

pub mod data;
mod number;
mod plot;
mod student;

use std::fmt::Write as _;

use crate::Confidence;
use number::general;

/// What a set is drawn with, by its number; they add up like bits: `x` and `+` are `*`.
const SYMBOLS: [char; 8] = [' ', 'x', '+', '*', '%', '#', '@', 'O'];
/// Numbers that a set must have.
pub const MIN_VALUES: usize = 3;
/// Sets that fit a block.
pub const MAX_SETS: usize = SYMBOLS.len() - 1;
/// Columns of a plot.
pub const WIDTHS: std::ops::RangeInclusive<usize> = 2..=10_000;
/// Columns of a plot that does not go to a terminal.
pub const DEFAULT_WIDTH: usize = 74;

/// Which `ministat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// FreeBSD's of today: the error of the percentage includes that of the reference's mean.
    #[default]
    FreeBsd,
    /// As it was before, and is in Debian's package `ministat`: the error of the difference over
    /// the reference's mean. The median of an even number of values is the upper of the two in
    /// the middle, and variances come from sums of squares.
    Classic,
}

/// What is printed, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Which `ministat`.
    pub version: Version,
    /// Of Student's t (`-c`).
    pub confidence: Confidence,
    /// Columns of the plot, of [`WIDTHS`] (`-w`).
    pub width: usize,
    /// Each set's bar on a line of its own (`-s`).
    pub separate_bars: bool,
    /// Without the plot (`-A`).
    pub no_plot: bool,
    /// Without the plot and the comparisons (`-n`).
    pub summary_only: bool,
    /// Without the names and the head (`-q`).
    pub no_names: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            version: Version::default(),
            confidence: Confidence::default(),
            width: DEFAULT_WIDTH,
            separate_bars: false,
            no_plot: false,
            summary_only: false,
            no_names: false,
        }
    }
}

/// Why there is no block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A set is too small.
    #[error("{name} has {count} values, ministat needs at least {MIN_VALUES}: measure more often")]
    TooFew {
        /// The set's name.
        name: String,
        /// The values it has.
        count: usize,
    },
    /// There are too many sets, or none.
    #[error("there are {0} sets, ministat compares 1 to {MAX_SETS}: name fewer")]
    Sets(usize),
    /// The plot is too narrow or too wide.
    #[error("a plot cannot be {0} columns wide: 2 to 10000")]
    Width(usize),
}

/// A named set and its summary.
struct Set<'a> {
    name: &'a str,
    sorted: Vec<f64>,
    mean: f64,
    median: f64,
    variance: f64,
}

impl<'a> Set<'a> {
    fn new(name: &'a str, values: &[f64], version: Version) -> Result<Self, Error> {
        let count = values.len();
        if count < MIN_VALUES {
            return Err(Error::TooFew { name: name.to_owned(), count });
        }
        let mut sorted = values.to_vec();
        // Zeros of either sign are equal, and stay as they came.
        sorted.sort_by(|one, other| (one + 0.0).total_cmp(&(other + 0.0)));
        let n = count as f64;
        let sum: f64 = values.iter().sum();
        let mean = sum / n;
        let upper = sorted[count / 2];
        let (median, squares) = match version {
            Version::FreeBsd => {
                let median =
                    if count.is_multiple_of(2) { (upper + sorted[count / 2 - 1]) / 2.0 } else { upper };
                (median, sorted.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>())
            }
            Version::Classic => {
                let squares: f64 = values.iter().map(|value| value * value).sum();
                (upper, squares - sum * sum / n)
            }
        };
        Ok(Self { name, sorted, mean, median, variance: squares / (n - 1.0) })
    }

    fn count(&self) -> f64 {
        self.sorted.len() as f64
    }

    fn minimum(&self) -> f64 {
        self.sorted.first().copied().unwrap_or(f64::NAN)
    }

    fn maximum(&self) -> f64 {
        self.sorted.last().copied().unwrap_or(f64::NAN)
    }

    fn deviation(&self) -> f64 {
        self.variance.sqrt()
    }

    /// The line of figures.
    fn figures(&self, symbol: char) -> String {
        let figures = [self.minimum(), self.maximum(), self.median, self.mean, self.deviation()];
        let figures = figures.map(|figure| format!(" {:>13}", general(figure, 8)));
        format!("{symbol} {:>3}{}\n", self.sorted.len(), figures.concat())
    }
}

/// The block of `sets`, each a name and its values. All are compared with the first.
///
/// # Errors
/// [`Error`] if a set has fewer than [`MIN_VALUES`] values, there are more than [`MAX_SETS`] or
/// none, or the width is not of [`WIDTHS`].
pub fn block(sets: &[(&str, &[f64])], options: &Options) -> Result<String, Error> {
    let sets: Vec<Set> = sets
        .iter()
        .map(|(name, values)| Set::new(name, values, options.version))
        .collect::<Result<_, _>>()?;
    let Some(reference) = sets.first().filter(|_| sets.len() <= MAX_SETS) else {
        return Err(Error::Sets(sets.len()));
    };
    if !WIDTHS.contains(&options.width) {
        return Err(Error::Width(options.width));
    }
    let numbered = || SYMBOLS.iter().skip(1).zip(&sets);
    let mut text = String::new();
    if !options.no_names {
        numbered().for_each(|(symbol, set)| _ = writeln!(text, "{symbol} {}", set.name));
    }
    if !options.no_plot && !options.summary_only {
        text += &plot::plot(&sets, options.width, options.separate_bars);
    }
    if !options.no_names {
        text += "    N           Min           Max        Median           Avg        Stddev\n";
    }
    for (at, (symbol, set)) in numbered().enumerate() {
        text += &set.figures(*symbol);
        if at > 0 && !options.summary_only {
            text += &Difference::new(set, reference, options).lines(options.confidence);
        }
    }
    Ok(text)
}

/// Whether `ministat` says that `values` differ from `reference`; `None` for sets that are too small.
#[must_use]
pub fn proves_difference(reference: &[f64], values: &[f64], confidence: Confidence) -> Option<bool> {
    let options = Options { confidence, ..Options::default() };
    let [reference, set] = [reference, values].map(|values| Set::new("", values, options.version).ok());
    Some(Difference::new(&set?, &reference?, &options).is_proven())
}

/// A set's mean less the reference's, with the reach of its interval of confidence.
struct Difference {
    mean: f64,
    reach: f64,
    percent: f64,
    percent_reach: f64,
    pooled: f64,
}

impl Difference {
    fn new(set: &Set, reference: &Set, options: &Options) -> Self {
        let (n, m) = (set.count(), reference.count());
        let t = student::t(set.sorted.len() + reference.sorted.len() - 2, options.confidence);
        let squares = [(n - 1.0) * set.variance, (m - 1.0) * reference.variance];
        let pooled = ((squares[0] + squares[1]) / (n + m - 2.0)).sqrt();
        let reach = t * (pooled * (1.0 / n + 1.0 / m).sqrt());
        let ratio_reach = match options.version {
            Version::Classic => reach,
            Version::FreeBsd => {
                let scaled = squares[1] * (set.mean * set.mean) / (reference.mean * reference.mean);
                t * ((squares[0] + scaled) * ((n + m) / (n * m * (n + m - 2.0)))).sqrt()
            }
        };
        let mean = set.mean - reference.mean;
        Self {
            mean,
            reach,
            percent: mean * 100.0 / reference.mean,
            percent_reach: ratio_reach * 100.0 / reference.mean,
            pooled,
        }
    }

    fn is_proven(&self) -> bool {
        self.mean.abs() > self.reach
    }

    fn lines(&self, confidence: Confidence) -> String {
        let level = confidence.percent();
        if !self.is_proven() {
            return format!("No difference proven at {level:.1}% confidence\n");
        }
        let [mean, reach, percent, percent_reach, pooled] =
            [self.mean, self.reach, self.percent, self.percent_reach, self.pooled]
                .map(|value| general(value, 6));
        format!(
            "Difference at {level:.1}% confidence\n\t{mean} +/- {reach}\n\t{percent}% +/- {percent_reach}%\n\
             \t(Student's t, pooled s = {pooled})\n"
        )
    }
}
