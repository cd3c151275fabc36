//! Tables of text: columns and rows enter, aligned lines leave.

use std::fmt;

/// Which side a column is aligned to.
#[derive(Clone, Copy)]
pub(super) enum Column {
    /// Text.
    Left(&'static str),
    /// Numbers.
    Right(&'static str),
}

/// Writes what each worker has to show, with a line between two.
pub(super) fn of_threads(formatter: &mut fmt::Formatter<'_>, threads: &[impl fmt::Display]) -> fmt::Result {
    for (at, thread) in threads.iter().enumerate() {
        if at > 0 {
            writeln!(formatter, "---------------")?;
        }
        thread.fmt(formatter)?;
    }
    Ok(())
}

/// Writes a head and rows, two blanks between columns.
pub(super) fn write(
    formatter: &mut fmt::Formatter<'_>,
    columns: &[Column],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> fmt::Result {
    let head = columns.iter().map(|(Column::Left(name) | Column::Right(name))| (*name).to_owned()).collect();
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let width =
        |at: usize| lines.iter().filter_map(|line| line.get(at)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns.len()).map(|at| width(at).unwrap_or(0)).collect();
    for line in &lines {
        let mut text = String::new();
        for ((cell, column), width) in line.iter().zip(columns).zip(&widths) {
            text += &match column {
                Column::Left(_) => format!("{cell:<width$}  "),
                Column::Right(_) => format!("{cell:>width$}  "),
            };
        }
        writeln!(formatter, "{}", text.trim_end())?;
    }
    Ok(())
}
