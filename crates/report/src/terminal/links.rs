//! What results are worth as bandwidth: names and cells enter, columns leave.

use super::Look;
use super::columns::{Align, Columns, Text};
use crate::links::HEAD;

/// A row for each result; `what` says what their names are.
pub fn columns(what: Text, rows: impl IntoIterator<Item = (String, [String; HEAD.len()])>) -> Columns {
    let mut columns = Columns::new([Align::Right; HEAD.len()]);
    columns.row(what, HEAD.map(|name| Text::new(name, Look::Faint)));
    for (name, cells) in rows {
        columns.row(Text::plain(&name), cells.map(|cell| Text::plain(&cell)));
    }
    columns
}
