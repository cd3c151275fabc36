//! Frame tables for the kernel: the rows of one enter, the values of the program's maps leave.

use libbpf_rs::{MapCore, MapFlags};
use traffic::FrameTable;

use crate::Error;

/// Bytes of a row before its header, as in `generate.bpf.c`.
pub const ROW_HEAD: usize = 8;

/// How many values of a map are written at once.
const ROWS_AT_ONCE: usize = 4096;

/// What to say when a table of so many rows has no place.
fn does_not_fit(rows: usize, error: &libbpf_rs::Error) -> Error {
    Error::Failed(format!("the frame table of {rows} rows does not fit in kernel memory: {error:#}"))
}

/// The numbers of so many values of a map, from `first` on.
fn keys(first: usize, count: usize) -> Vec<u8> {
    (first..first + count).flat_map(|key| (key as u32).to_ne_bytes()).collect()
}

/// Copies the distances of rows into the kernel.
///
/// # Errors
/// When there is no memory for them.
pub fn load_distances(map: &impl MapCore, distances: &[u64]) -> Result<(), Error> {
    for (chunk, some) in distances.chunks(ROWS_AT_ONCE).enumerate() {
        let values: Vec<u8> = some.iter().flat_map(|distance| distance.to_ne_bytes()).collect();
        map.update_batch(
            &keys(chunk * ROWS_AT_ONCE, some.len()),
            &values,
            some.len() as u32,
            MapFlags::ANY,
            MapFlags::ANY,
        )
        .map_err(|error| does_not_fit(distances.len(), &error))?;
    }
    Ok(())
}

/// Copies the frame table into the kernel.
///
/// # Errors
/// When there is no memory for it.
pub fn load(map: &impl MapCore, table: &FrameTable) -> Result<(), Error> {
    let mut values = Vec::new();
    for (chunk, rows) in table.rows.chunks(ROWS_AT_ONCE).enumerate() {
        values.clear();
        let first = chunk * ROWS_AT_ONCE;
        for (index, row) in rows.iter().enumerate() {
            let checksum = row.checksum.as_ref();
            values.extend_from_slice(&row.length.to_ne_bytes());
            values.extend_from_slice(&checksum.map_or(0, |checksum| checksum.offset).to_ne_bytes());
            values.push(row.stream);
            values.push(row.direction);
            values.push(checksum.is_some_and(|checksum| checksum.swapped).into());
            values.push(checksum.is_some_and(|checksum| checksum.zero_is_ffff).into());
            values.extend_from_slice(table.header(first + index));
        }
        map.update_batch(&keys(first, rows.len()), &values, rows.len() as u32, MapFlags::ANY, MapFlags::ANY)
            .map_err(|error| does_not_fit(table.rows.len(), &error))?;
    }
    Ok(())
}
