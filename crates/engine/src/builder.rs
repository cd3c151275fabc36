//! Builds frames in user space: a frame table and stamps enter, whole frames in somebody's memory
//! leave, in the order of departure.
//!
//! A frame costs what its first bytes and its signature cost: payloads stand in the memory already.
//! So buffers must hold [`FrameTable::fill`] from the start, and are used for one table only; for others
//! there is [`Builder::whole`].

use traffic::table::Row;
use traffic::{FrameTable, finish};
use wire::signature::{self, DEPARTURE_MASK, MAGIC, Signature};

/// How many rows ahead are fetched: a table of a million rows is in no cache.
const AHEAD: usize = 16;

/// What is the same for all frames that are built together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The interval they leave in, modulo 65,536.
    pub interval: u16,
    /// When they leave: nanoseconds of the monotonic clock.
    pub departure: u64,
}

/// Builds a worker's share of the frames of a table, over and over.
#[derive(Clone, Debug)]
pub struct Builder {
    templates: Templates,
    /// The next row, the first one, and how far it is from one to the next.
    row: usize,
    /// Where rows begin again, and how far back that is.
    end: usize,
    span: usize,
    worker: usize,
    workers: usize,
    /// By direction and stream.
    sequences: Box<[[u32; 256]; 2]>,
    /// The byte that payloads are written anew with, where frames differ in length: a shorter one may
    /// have left its signature there.
    refill: Option<u8>,
    shortest: usize,
}

/// Headers of up to 64 bytes are copied as such: that is one cache line, and most of all that are sent.
#[derive(Clone, Debug)]
enum Templates {
    Short(Vec<Template<64>>),
    Long(Vec<Template<{ FrameTable::MAX_HEADER }>>),
}

/// The first bytes of a frame, and what else is needed to build it.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
struct Template<const N: usize> {
    bytes: [u8; N],
    /// The first eight bytes of the signature, but for the interval.
    signature: u64,
    row: Row,
}

/// What is built next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upcoming {
    /// Bytes without FCS.
    pub length: usize,
    /// 0 or 1.
    pub direction: usize,
    /// The number of its stream.
    pub stream: u8,
}

impl Builder {
    /// Builds the rows that worker `worker` of `workers` sends: its own number, and every one that is a
    /// multiple of `workers` further. The table has at least as many rows as there are workers.
    #[must_use]
    pub fn new(table: &FrameTable, worker: usize, workers: usize) -> Self {
        let lengths = || table.rows.iter().map(|row| usize::from(row.length));
        let shortest = lengths().min().unwrap_or(0);
        let templates = if table.header_length <= 64 {
            Templates::Short(templates(table, worker))
        } else {
            Templates::Long(templates(table, worker))
        };
        Self {
            templates,
            row: worker,
            end: table.rows.len(),
            span: table.rows.len(),
            worker,
            workers: workers.max(1),
            sequences: Box::new([[0; 256]; 2]),
            refill: lengths().any(|length| length != shortest).then_some(table.fill),
            shortest,
        }
    }

    /// Writes every payload anew, for buffers that may hold anything.
    #[must_use]
    pub fn whole(self, table: &FrameTable) -> Self {
        Self { refill: Some(table.fill), shortest: 0, ..self }
    }

    /// Begins with the first of `rows` rows from `first` on, which then take turns: no fewer than there are workers,
    /// or 0 for the whole table. Sequence numbers go on.
    pub fn rewind(&mut self, (first, rows): (u64, u64)) {
        let all = self.rows();
        let first = usize::try_from(first).unwrap_or(all).min(all);
        let rows = usize::try_from(rows).ok().filter(|rows| (1..=all - first).contains(rows));
        self.span = rows.unwrap_or(all);
        self.end = rows.map_or(all, |rows| first + rows);
        self.row = self.worker + if rows.is_some() { first } else { 0 };
    }

    /// Leaves out the next `frames` rows that this worker would send.
    pub fn leave_out(&mut self, frames: u64) {
        let (start, span) = (self.end - self.span, self.span.max(1) as u64);
        let further = frames % span * self.workers as u64;
        self.row = start + (((self.row - start) as u64 + further) % span) as usize;
    }

    /// What is built next; `None` when there is nothing to build.
    #[inline]
    #[must_use]
    pub fn upcoming(&self) -> Option<Upcoming> {
        let row = match &self.templates {
            Templates::Short(templates) => templates.get(self.row)?.row,
            Templates::Long(templates) => templates.get(self.row)?.row,
        };
        Some(Upcoming {
            length: usize::from(row.length),
            direction: usize::from(row.direction & 1),
            stream: row.stream,
        })
    }

    /// Builds the next frame at the start of `buffer`, which has room for it, and goes on to the one
    /// after it. Bytes behind the frame may change too.
    #[inline]
    pub fn build(&mut self, buffer: &mut [u8], stamp: Stamp) {
        let ahead = self.row + AHEAD * self.workers;
        match &self.templates {
            Templates::Short(templates) => {
                let Some(template) = templates.get(self.row) else { return };
                fetch(templates.get(ahead));
                write(template, buffer, stamp, &mut self.sequences, self.refill, self.shortest);
            }
            Templates::Long(templates) => {
                let Some(template) = templates.get(self.row) else { return };
                fetch(templates.get(ahead));
                write(template, buffer, stamp, &mut self.sequences, self.refill, self.shortest);
            }
        }
        self.row += self.workers;
        if self.row >= self.end {
            self.row -= self.span;
        }
    }

    fn rows(&self) -> usize {
        match &self.templates {
            Templates::Short(templates) => templates.len(),
            Templates::Long(templates) => templates.len(),
        }
    }
}

fn templates<const N: usize>(table: &FrameTable, worker: usize) -> Vec<Template<N>> {
    let template = |(index, row): (usize, &Row)| {
        let mut bytes = [table.fill; N];
        let header = table.header(index);
        let length = header.len().min(N);
        bytes[..length].copy_from_slice(&header[..length]);
        let lane = (row.direction << 7) | (worker as u8 & 0x7f);
        let [a, b, c, d] = MAGIC;
        let signature = u64::from_be_bytes([a, b, c, d, row.stream, lane, 0, 0]);
        Template { bytes, signature, row: *row }
    };
    table.rows.iter().enumerate().map(template).collect()
}

/// Has the first bytes of a template fetched, and what is needed beside them.
#[inline(always)]
fn fetch<const N: usize>(template: Option<&Template<N>>) {
    if let Some(template) = template {
        prefetch::to_read(template.bytes.as_ptr());
        prefetch::to_read(std::ptr::from_ref(&template.row).cast());
    }
}

#[inline]
fn write<const N: usize>(
    template: &Template<N>,
    buffer: &mut [u8],
    stamp: Stamp,
    sequences: &mut [[u32; 256]; 2],
    refill: Option<u8>,
    shortest: usize,
) {
    let row = &template.row;
    let length = usize::from(row.length);
    match buffer.first_chunk_mut::<N>() {
        Some(first) => *first = template.bytes,
        None => {
            let room = buffer.len();
            buffer.copy_from_slice(&template.bytes[..room]);
        }
    }
    let place = length.saturating_sub(signature::LENGTH);
    if let Some(fill) = refill
        && length > shortest
        && let Some(payload) = buffer.get_mut(N..place)
    {
        payload.fill(fill);
    }
    let counter = &mut sequences[usize::from(row.direction & 1)][usize::from(row.stream)];
    let sequence = *counter;
    *counter = sequence.wrapping_add(1);
    if row.checksum.is_some() {
        if let Some(frame) = buffer.get_mut(..length) {
            finish(frame, row, &signature_of(template, stamp, sequence));
        }
        return;
    }
    let Some(signature) = buffer.get_mut(place..length).and_then(<[u8]>::first_chunk_mut) else { return };
    *signature = emit(template.signature | u64::from(stamp.interval), sequence, stamp.departure);
}

/// The bytes of a signature whose first eight are `first`.
#[inline]
fn emit(first: u64, sequence: u32, departure: u64) -> [u8; signature::LENGTH] {
    let departure = departure & DEPARTURE_MASK;
    let mut bytes = [0; signature::LENGTH];
    bytes[..8].copy_from_slice(&first.to_be_bytes());
    bytes[8..16].copy_from_slice(&(u64::from(sequence) << 32 | departure >> 16).to_be_bytes());
    bytes[16..].copy_from_slice(&(departure as u16).to_be_bytes());
    bytes
}

fn signature_of<const N: usize>(template: &Template<N>, stamp: Stamp, sequence: u32) -> Signature {
    let [.., stream, lane, _, _] = template.signature.to_be_bytes();
    Signature {
        stream,
        direction: lane >> 7,
        worker: lane & 0x7f,
        interval: stamp.interval,
        sequence,
        departure: stamp.departure & DEPARTURE_MASK,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use traffic::{Directions, Endpoint, Endpoints, IpVersion, Profile, Tunables};
    use wire::MacAddress;

    use super::*;

    fn table(name: &str, tunables: &Tunables) -> FrameTable {
        let endpoint = |last| Endpoint {
            source: MacAddress([2, 0, 0, 0, 0, last]),
            destination: MacAddress([2, 0, 0, 0, 1, last]),
        };
        let endpoints = Endpoints([endpoint(1), endpoint(2)]);
        Profile::builtin(name, tunables).unwrap().table_up_to(&endpoints, Directions::Both, 600)
    }

    fn tables() -> Vec<FrameTable> {
        let mut tables = Vec::new();
        for ip in [IpVersion::V4, IpVersion::V6] {
            for size in ["64", "90", "1518", "9216", "imix"] {
                for (vm, vlan) in [("var2", None), ("random", Some("100")), ("tuple", Some("200,100"))] {
                    let size =
                        size.parse().ok().filter(|_| size.len() > 2 || vlan.is_none() && ip == IpVersion::V4);
                    let vlan = vlan.map(|tags| tags.parse().unwrap());
                    let tunables = Tunables { size, vm: vm.parse().ok(), ip: Some(ip), vlan };
                    tables.push(table("bench", &tunables));
                }
            }
        }
        tables
    }

    #[test]
    fn frames_are_those_of_the_table_with_every_signature_in_turn() {
        for table in tables() {
            for workers in [1, 3] {
                for worker in 0..workers {
                    frames_of_one_worker(&table, worker, workers);
                }
            }
        }
    }

    fn frames_of_one_worker(table: &FrameTable, worker: usize, workers: usize) {
        let mut builder = Builder::new(table, worker, workers);
        let mut buffers = vec![vec![table.fill; 9600]; 7];
        let mut sequences: HashMap<(u8, u8), u32> = HashMap::new();
        let mut row = worker;
        for count in 0..2 * table.rows.len() {
            let stamp =
                Stamp { interval: (count / 5) as u16 ^ 0xa5a5, departure: 0xfedc_ba98_7654 + count as u64 };
            let upcoming = builder.upcoming().unwrap();
            let buffer = &mut buffers[count % 7];
            builder.build(buffer, stamp);
            let expected = table.rows[row];
            assert_eq!(upcoming.length, usize::from(expected.length));
            assert_eq!(upcoming.direction, usize::from(expected.direction));
            let sequence = sequences.entry((expected.direction, expected.stream)).or_default();
            let signature = Signature {
                stream: expected.stream,
                direction: expected.direction,
                worker: worker as u8,
                interval: stamp.interval,
                sequence: *sequence,
                departure: stamp.departure,
            };
            assert!(buffer[..upcoming.length] == table.finished_frame(row, &signature), "row {row}");
            *sequence += 1;
            row = (row + workers) % table.rows.len();
        }
        builder.rewind((0, 0));
        let first = table.rows[worker];
        assert_eq!(builder.upcoming().unwrap().length, usize::from(first.length));
    }

    #[test]
    fn room_for_the_frame_is_enough_and_less_does_no_harm() {
        let table = table("bench", &Tunables::default());
        let mut builder = Builder::new(&table, 0, 1);
        let stamp = Stamp { interval: 1, departure: 2 };
        let length = builder.upcoming().unwrap().length;
        let mut exact = vec![table.fill; length];
        builder.build(&mut exact, stamp);
        let signature =
            Signature { stream: 0, direction: 0, worker: 0, interval: 1, sequence: 0, departure: 2 };
        assert_eq!(exact, table.finished_frame(0, &signature));
        for room in 0..length {
            builder.build(&mut vec![0; room], stamp);
        }
    }
}
