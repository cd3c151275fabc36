//! The plot in a `ministat` block: sets enter, lines in a frame leave.
//!
//! Each point stands in the column of its value, on top of those of its own set that share it.
//! Below lie bars from a standard deviation under the mean to one above, with the median (`M`) and
//! the mean (`A`).

use super::{SYMBOLS, Set};

/// What is drawn so far.
struct Plot {
    /// The value at the left edge of the first column.
    left: f64,
    /// The values that one column holds.
    step: f64,
    width: usize,
    /// From the bottom; in each cell a bit for each set, counted from 1, whose numbers add up.
    rows: Vec<Vec<usize>>,
    /// Rows that are shown. `ministat` shows as many as its last set needs, so what others piled
    /// higher is cut off.
    shown: usize,
    /// Lines of bars: one for all sets, or one each.
    bars: Vec<Vec<char>>,
}

/// The plot of `sets` in `width` columns, with its frame; bars on separate lines if asked.
pub fn plot(sets: &[Set], width: usize, separate_bars: bool) -> String {
    let ends = sets.iter().flat_map(|set| {
        let (low, high) = (set.mean - set.deviation(), set.mean + set.deviation());
        [set.minimum(), set.maximum(), low, high]
    });
    // These ignore what is not a number.
    let (low, high) =
        ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), end| (low.min(end), high.max(end)));
    let span = high - low;
    if span == 0.0 {
        return "[no plot, span is zero width]\n".to_owned();
    }
    let step = span / (width as f64 - 1.0);
    let lines = if separate_bars { sets.len() } else { 1 };
    let mut plot = Plot {
        left: low - 0.5 * step,
        step,
        width,
        rows: Vec::new(),
        shown: 0,
        bars: vec![vec![' '; width]; lines],
    };
    for (at, set) in sets.iter().enumerate() {
        plot.points(set, at + 1);
        plot.bar(set, if separate_bars { at } else { 0 });
    }
    plot.framed()
}

impl Plot {
    /// The column that holds `value`.
    fn column(&self, value: f64) -> usize {
        let column = (value - self.left) / self.step;
        (column as usize).min(self.width - 1)
    }

    fn points(&mut self, set: &Set, number: usize) {
        // Where each point goes: its column, and how many of the set are below it there.
        let mut places: Vec<(usize, usize)> = Vec::with_capacity(set.sorted.len());
        for value in &set.sorted {
            let column = self.column(*value);
            let below = places.last().filter(|(last, _)| *last == column).map_or(0, |(_, row)| row + 1);
            places.push((column, below));
        }
        let height = places.iter().map(|(_, row)| row + 1).max().unwrap_or(0);
        // What an earlier set piled higher than the rows shown does not come back.
        if height > self.shown {
            self.rows.truncate(self.shown);
            self.rows.resize_with(height, || vec![0; self.width]);
        }
        self.shown = height;
        for (column, row) in places {
            self.rows[row][column] |= number;
        }
    }

    fn bar(&mut self, set: &Set, line: usize) {
        let ends = [set.mean - set.deviation(), set.mean + set.deviation()].map(|end| self.column(end));
        let [median, mean] = [set.median, set.mean].map(|value| self.column(value));
        let line = &mut self.bars[line];
        if !set.deviation().is_nan() {
            let [low, high] = ends;
            line[high] = '|';
            line[low] = '|';
            let inside = line.iter_mut().take(high).skip(low + 1);
            inside.filter(|cell| **cell == ' ').for_each(|cell| *cell = '_');
        }
        line[median] = 'M';
        line[mean] = 'A';
    }

    fn framed(&self) -> String {
        let edge = format!("+{}+\n", "-".repeat(self.width));
        let rows = self.rows.iter().take(self.shown).rev();
        let rows = rows.map(|row| row.iter().map(|mask| SYMBOLS[mask % SYMBOLS.len()]).collect::<String>());
        let bars = self.bars.iter().map(|bar| bar.iter().collect());
        let lines: String = rows.chain(bars).map(|line| format!("|{line}|\n")).collect();
        format!("{edge}{lines}{edge}")
    }
}
