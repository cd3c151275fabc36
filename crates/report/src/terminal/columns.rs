//! Columns of text: rows of cells enter, lines with aligned columns leave.

use super::Look;

/// Between columns.
const GAP: &str = "  ";

/// Where a column's text stands.
#[derive(Clone, Copy, Debug)]
pub enum Align {
    Left,
    Right,
}

/// One cell.
#[derive(Clone, Debug)]
pub struct Text {
    content: String,
    look: Look,
}

impl Text {
    pub fn new(content: &str, look: Look) -> Self {
        Self { content: content.to_owned(), look }
    }

    pub fn plain(content: &str) -> Self {
        Self::new(content, Look::Plain)
    }

    /// In characters; all that we print is one column wide.
    fn width(&self) -> usize {
        self.content.chars().count()
    }
}

/// Rows, each of a name and cells. The name's column is left-aligned.
#[derive(Debug)]
pub struct Columns {
    align: Vec<Align>,
    rows: Vec<Vec<Text>>,
}

impl Columns {
    /// Cells beyond these columns are not shown.
    pub fn new(align: impl IntoIterator<Item = Align>) -> Self {
        Self { align: std::iter::once(Align::Left).chain(align).collect(), rows: Vec::new() }
    }

    /// Adds a row; it may be shorter than others.
    pub fn row(&mut self, name: Text, cells: impl IntoIterator<Item = Text>) {
        self.rows.push(std::iter::once(name).chain(cells).collect());
    }

    /// Lines without trailing blanks.
    pub fn render(&self, colour: bool) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            let mut pending = String::new();
            for ((at, align), cell) in self.align.iter().enumerate().zip(row) {
                let blanks = " ".repeat(self.width(at).saturating_sub(cell.width()));
                let painted = cell.look.paint(&cell.content, colour);
                let (before, after) = match align {
                    Align::Left => (String::new(), blanks),
                    Align::Right => (blanks, String::new()),
                };
                pending.push_str(&before);
                if !cell.content.is_empty() {
                    line.push_str(&pending);
                    line.push_str(&painted);
                    pending.clear();
                }
                pending.push_str(&after);
                pending.push_str(GAP);
            }
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    /// The widest cell of a column. A row of one cell is a heading and widens nothing.
    fn width(&self, column: usize) -> usize {
        let rows = self.rows.iter().filter(|row| row.len() > 1);
        rows.filter_map(|row| row.get(column)).map(Text::width).max().unwrap_or(0)
    }
}
