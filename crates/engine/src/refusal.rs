//! What no engine sends, whatever its means: a frame table and an engine's limits enter, a refusal leaves.

use traffic::FrameTable;

use crate::Error;

fn refuse(text: String) -> Result<(), Error> {
    Err(Error::Refused(text))
}

/// Refuses a table without frames, and frames beyond `most` bytes or below what Ethernet carries, FCS
/// included.
pub fn frames(table: &FrameTable, engine: &str, most: usize) -> Result<(), Error> {
    let largest = table.rows.iter().map(|row| usize::from(row.length) + 4).max().unwrap_or(0);
    if table.rows.is_empty() {
        return refuse("the profile has no frames".into());
    }
    if largest > most {
        return refuse(format!(
            "frames of {largest} bytes are too large: the {engine} engine sends at most {most} bytes; \
             choose a smaller --size"
        ));
    }
    if table.rows.iter().any(|row| row.length < 60) {
        return refuse("the profile has frames under 64 bytes, the least that Ethernet carries".into());
    }
    Ok(())
}

/// Refuses to share the rows of a table among more workers than there are rows.
pub fn shares(table: &FrameTable, workers: usize) -> Result<(), Error> {
    if workers > table.rows.len() {
        return refuse(format!(
            "{workers} workers share a table of {} frames: use fewer cores, or a profile with more flows",
            table.rows.len()
        ));
    }
    Ok(())
}
