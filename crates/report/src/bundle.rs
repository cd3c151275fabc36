//! One run as one file to send to the authors of a device: a record enters; a packed archive leaves, with what was found
//! in plain words, the record, every sample, every stall with its counters, and the page.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use results::Record;
use results::export::csv;
use results::record::{Counted, RateStall, SoakStall, StallRate};
use serde::Serialize;

use crate::html::{self, Contents, command_line};
use crate::stalls;

/// Another file of the archive.
#[derive(Clone, Debug)]
pub struct File {
    /// Its name in the archive, without a directory.
    pub name: String,
    /// What it is, in a few words.
    pub meaning: String,
    /// What it holds.
    pub content: Vec<u8>,
}

/// Writes a `.tar.gz` of `record` and the `others` to `out`. Its directory is called as the record; its files are of
/// `time`, in seconds since 1970.
///
/// # Errors
/// What `out` says. A record that was read from a file can be written.
pub fn write(record: &Record, others: Vec<File>, time: u64, out: &mut impl Write) -> io::Result<()> {
    let mut files = own_files(record)?;
    files.extend(others);
    let readme = File { content: readme(record, &files).into_bytes(), ..file("README.txt", "", Vec::new()) };
    let mut archive = tar::Builder::new(GzEncoder::new(out, Compression::default()));
    for File { name, content, .. } in std::iter::once(readme).chain(files) {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(time);
        archive.append_data(&mut header, format!("{}/{name}", record.id), content.as_slice())?;
    }
    archive.into_inner()?.finish()?.flush()
}

fn file(name: &str, meaning: &str, content: Vec<u8>) -> File {
    File { name: name.to_owned(), meaning: meaning.to_owned(), content }
}

fn own_files(record: &Record) -> io::Result<Vec<File>> {
    let mut page = Vec::new();
    let contents = Contents { records: std::slice::from_ref(record), ..Contents::default() };
    html::write(&contents, &record.name, &mut page)?;
    let json = serde_json::to_vec_pretty(record).map_err(io::Error::other)?;
    let samples = csv::export(std::slice::from_ref(record)).map_err(io::Error::other)?;
    let mut files = vec![
        file(
            "record.json",
            "all of it for programs: the command, the device's configuration, the host, every sample, every finding",
            json,
        ),
        file("report.html", "the same as a page for a browser, with charts", page),
        file(
            "samples.csv",
            "what left and what came back, interval by interval, in order of time",
            samples.into_bytes(),
        ),
    ];
    let lines: Vec<Line> = lines(record);
    if !lines.is_empty() {
        let mut table = ::csv::Writer::from_writer(Vec::new());
        lines.iter().try_for_each(|line| table.serialize(line)).map_err(io::Error::other)?;
        let table = table.into_inner().map_err(|error| io::Error::other(error.to_string()))?;
        let meaning = "every stall: when it began, and the counters of the tester and of the device until it \
                       began and while it lasted";
        files.push(file("stalls.csv", meaning, table));
    }
    Ok(files)
}

/// A stall as a line of a table. What was not counted is empty.
#[derive(Serialize)]
struct Line {
    load_pps: f64,
    direction: String,
    from_s: f64,
    until_s: Option<f64>,
    disturbed: bool,
    before_offered: u64,
    before_forwarded: u64,
    before_device_received: Option<u64>,
    before_device_forwarded: Option<u64>,
    during_offered: u64,
    during_forwarded: u64,
    during_device_received: Option<u64>,
    during_device_forwarded: Option<u64>,
}

impl Line {
    fn new(load_pps: f64, direction: &str, stall: &SoakStall) -> Self {
        let device = |counted: Counted| counted.device.map(|it| (it.received, it.forwarded)).unzip();
        let (before, during) = (stall.counters.before, stall.counters.during);
        let ((before_device_received, before_device_forwarded), (received, forwarded)) =
            (device(before), device(during));
        Self {
            load_pps,
            direction: direction.to_owned(),
            from_s: stall.from_s,
            until_s: stall.until_s,
            disturbed: stall.disturbed,
            before_offered: before.offered,
            before_forwarded: before.forwarded,
            before_device_received,
            before_device_forwarded,
            during_offered: during.offered,
            during_forwarded: during.forwarded,
            during_device_received: received,
            during_device_forwarded: forwarded,
        }
    }
}

/// The stalls of a stall search, or of a soak.
fn lines(record: &Record) -> Vec<Line> {
    let searched = record.finding.stall_search().map(stalls::stalls).unwrap_or_default();
    let soak = record.finding.soak().into_iter();
    let soaked = soak.flat_map(|soak| soak.directions.iter().map(|direction| (soak.load_pps, direction)));
    let soaked = soaked.flat_map(|(load, direction)| {
        direction.stalls.iter().map(move |stall| Line::new(load, &direction.name, stall))
    });
    let of_search =
        |(rate, seen): (&StallRate, &RateStall)| Line::new(rate.pps, &seen.direction, &seen.stall);
    searched.into_iter().map(of_search).chain(soaked).collect()
}

/// What the archive is, for people.
fn readme(record: &Record, files: &[File]) -> String {
    let host = &record.environment;
    let mut text = format!(
        "{}\n\nA measurement by linerate {} of {}.\n\nWhat was found\n\n{}\n\
         How to repeat it\n\n  {}\n\nWhere\n\n  device: {}\n  tester: engine {}, kernel {}, {}, {}\n\nFiles\n\n",
        record.name,
        host.linerate,
        record.started,
        indented(&crate::terminal::verdict(record, false)),
        command_line(&record.command),
        record.device(),
        record.tester.engine,
        host.kernel,
        host.os,
        host.cpu
    );
    for File { name, meaning, .. } in files {
        text += &format!("  {name}: {meaning}\n");
    }
    text
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use flate2::read::GzDecoder;
    use results::fixtures::Scenario;

    use super::*;

    /// The files of an archive by their names.
    fn unpacked(record: &Record, others: Vec<File>) -> BTreeMap<String, String> {
        let mut packed = Vec::new();
        write(record, others, 1_700_000_000, &mut packed).unwrap();
        let mut archive = tar::Archive::new(GzDecoder::new(packed.as_slice()));
        let mut files = BTreeMap::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            assert_eq!(entry.header().mtime().unwrap(), 1_700_000_000);
            let name = entry.path().unwrap().to_string_lossy().into_owned();
            let mut content = String::new();
            entry.read_to_string(&mut content).unwrap();
            files.insert(name.strip_prefix(&format!("{}/", record.id)).unwrap().to_owned(), content);
        }
        files
    }

    #[test]
    fn the_archive_has_the_record_as_it_was_and_every_stall() {
        let record = Scenario::default().stall_search();
        let frames = file("frames.pcap", "the frames as they leave", b"pcap".to_vec());
        let files = unpacked(&record, vec![frames]);
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["README.txt", "frames.pcap", "record.json", "report.html", "samples.csv", "stalls.csv"]
        );
        assert_eq!(serde_json::from_str::<Record>(&files["record.json"]).unwrap(), record);
        assert_eq!(files["stalls.csv"].lines().count(), 1 + 3);
        assert!(files["stalls.csv"].contains("1950.0,0->1,22.5,,false,5875,5875,5875,5875,14625,0,14625,0"));
        assert!(
            files["report.html"].starts_with("<!doctype html>") || files["report.html"].contains("<html")
        );
        insta::assert_snapshot!(files["README.txt"]);
    }

    #[test]
    fn a_soak_has_its_stalls_too_and_a_ramp_has_no_table_of_them() {
        let files = unpacked(&Scenario::default().eventful_soak(), Vec::new());
        assert_eq!(files["stalls.csv"].lines().count(), 1 + 2);
        assert!(!unpacked(&Scenario::default().record(), Vec::new()).contains_key("stalls.csv"));
    }
}
