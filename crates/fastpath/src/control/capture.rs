//! `pcap trace`: words enter as VPP's users write them; a file of captured packets leaves, as pcapng.
//!
//! A file is made anew in the directory for temporary files (`TMPDIR`, `/tmp`), for its owner alone, and never over another
//! or by a symbolic link. Packets and bytes are bounded.

mod pcapng;

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::dataplane::capture::{Captured, Copies};

/// Packets of a capture unless it says otherwise, and the most that one can have.
const PACKETS: u32 = 1000;
const MOST_PACKETS: u32 = 10_000_000;
/// Bytes of a packet unless a capture says otherwise, and the least and the most.
const BYTES: u32 = 512;
const LEAST_BYTES: u32 = 32;
const MOST_BYTES: u32 = 9216;
/// The longest file.
const FILE: u64 = 1 << 30;
/// How many packets are written before somebody else has a turn.
const AT_ONCE: usize = 4096;
/// The longest name of a file.
const NAME: usize = 100;

/// What is asked of a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pcap {
    /// That it begins.
    Start(Start),
    /// That it ends.
    Off,
    /// How it goes.
    Status,
}

/// Which packets a capture has, and where they go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Those that arrive.
    pub received: bool,
    /// Those that are sent.
    pub sent: bool,
    /// How many at most.
    pub packets: u32,
    /// How many bytes of each.
    pub bytes: u32,
    /// The interface; all if none is named.
    pub interface: Option<String>,
    /// The name of the file, without a directory.
    pub file: String,
}

impl Pcap {
    /// What the words behind `pcap trace` ask for, as in `rx tx max 100 intfc lan file lan.pcapng`, in any order.
    ///
    /// # Errors
    /// Which word is none, and what to write instead.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["off"] => return Ok(Self::Off),
            ["status"] => return Ok(Self::Status),
            _ => {}
        }
        let mut start = Start {
            received: false,
            sent: false,
            packets: PACKETS,
            bytes: BYTES,
            interface: None,
            file: String::new(),
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("a value is missing after '{word}'"));
            match word {
                "rx" => start.received = true,
                "tx" => start.sent = true,
                "max" => start.packets = number(word, value()?)?,
                "max-bytes-per-pkt" => start.bytes = number(word, value()?)?,
                "intfc" => start.interface = Some(value()?.to_owned()).filter(|name| name != "any"),
                "file" => start.file = value()?.to_owned(),
                other => {
                    return Err(format!(
                        "unknown word '{other}': write rx, tx, max N, max-bytes-per-pkt N, intfc NAME, file NAME, \
                         or off or status alone"
                    ));
                }
            }
        }
        let of = match (start.received, start.sent) {
            (true, true) => "rxandtx",
            (true, false) => "rx",
            (false, true) => "tx",
            (false, false) => return Err("neither rx nor tx: write which packets, or both".into()),
        };
        if start.file.is_empty() {
            start.file = format!("{of}.pcapng");
        }
        start.check()?;
        Ok(Self::Start(start))
    }
}

fn number(word: &str, text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("'{text}' is no number: write {word} and a number"))
}

impl Start {
    /// Whether it can be had: it may come from any client.
    ///
    /// # Errors
    /// What cannot, and what can.
    fn check(&self) -> Result<(), String> {
        if !(1..=MOST_PACKETS).contains(&self.packets) {
            return Err(format!("{} packets: write max from 1 to {MOST_PACKETS}", self.packets));
        }
        if !(LEAST_BYTES..=MOST_BYTES).contains(&self.bytes) {
            return Err(format!(
                "{} bytes of each packet: write max-bytes-per-pkt from {LEAST_BYTES} to {MOST_BYTES}",
                self.bytes
            ));
        }
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        if self.file.is_empty()
            || self.file.len() > NAME
            || self.file.starts_with('.')
            || !self.file.chars().all(is_plain)
        {
            return Err(format!(
                "'{}' is no name for the file: write up to {NAME} letters, digits, '.', '-' or '_', without a directory",
                self.file
            ));
        }
        Ok(())
    }
}

/// A capture that goes on.
pub struct Capturing {
    path: PathBuf,
    file: BufWriter<File>,
    copies: Copies,
    /// Packets that were written, and the most.
    written: u32,
    most: u32,
    /// Bytes of the file.
    length: u64,
}

impl Capturing {
    /// Makes the file of a capture, which has the interfaces of these `names`, and takes what workers copy.
    ///
    /// # Errors
    /// When the capture cannot be had, or the file cannot be made.
    pub fn start(start: &Start, names: &[String], copies: Copies) -> Result<Self> {
        start.check().map_err(anyhow::Error::msg)?;
        let path = std::env::temp_dir().join(&start.file);
        let mut options = OpenOptions::new();
        // With create_new comes O_EXCL, which follows no symbolic link.
        let file = options.write(true).create_new(true).mode(0o600).open(&path);
        let file = file.with_context(|| {
            format!("cannot make {}: give the file another name, or remove that one", path.display())
        })?;
        let mut capturing =
            Self { path, file: BufWriter::new(file), copies, written: 0, most: start.packets, length: 0 };
        capturing.put(&pcapng::head(names, start.bytes))?;
        Ok(capturing)
    }

    /// Writes what has come, up to a bound. Says whether the capture goes on.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self) -> Result<bool> {
        for _ in 0..AT_ONCE {
            if self.written == self.most || self.length >= FILE {
                return Ok(false);
            }
            let Ok(captured) = self.copies.copies.try_recv() else { return Ok(true) };
            self.put_packet(&captured)?;
        }
        Ok(true)
    }

    fn put_packet(&mut self, captured: &Captured) -> Result<()> {
        self.written += 1;
        self.put(&pcapng::packet(captured))
    }

    fn put(&mut self, block: &[u8]) -> Result<()> {
        self.length += block.len() as u64;
        self.file.write_all(block).with_context(|| self.unwritable())
    }

    /// Writes what was copied until now, and ends. Says what the file has.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn end(mut self) -> Result<String> {
        while self.written < self.most && self.length < FILE {
            let Ok(captured) = self.copies.copies.try_recv() else { break };
            self.put_packet(&captured)?;
        }
        self.file.flush().with_context(|| self.unwritable())?;
        Ok(self.text())
    }

    /// What it has captured so far.
    #[must_use]
    pub fn text(&self) -> String {
        let missed = match self.copies.missed.load(Relaxed) {
            0 => String::new(),
            missed => format!("; {missed} were missed: they came faster than they were written"),
        };
        let (written, most, path) = (self.written, self.most, self.path.display());
        format!("{written} of {most} packets captured to {path}{missed}")
    }

    fn unwritable(&self) -> String {
        format!("cannot write {}: is its file system full? The capture has ended", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Pcap, String> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Pcap::parse(&words)
    }

    #[test]
    fn the_words_of_vpp_are_understood_in_any_order() {
        let all = Start {
            received: true,
            sent: true,
            packets: 35,
            bytes: 512,
            interface: Some("lan".into()),
            file: "vppcapture.pcap".into(),
        };
        for text in
            ["rx tx max 35 intfc lan file vppcapture.pcap", "file vppcapture.pcap intfc lan max 35 tx rx"]
        {
            assert_eq!(parse(text), Ok(Pcap::Start(all.clone())), "{text}");
        }
        let tx = Start { received: false, interface: None, file: "tx.pcapng".into(), packets: 1000, ..all };
        assert_eq!(parse("tx intfc any"), Ok(Pcap::Start(tx.clone())));
        assert_eq!(parse("tx max-bytes-per-pkt 96"), Ok(Pcap::Start(Start { bytes: 96, ..tx })));
        assert_eq!((parse("off"), parse("status")), (Ok(Pcap::Off), Ok(Pcap::Status)));
    }

    #[test]
    fn what_cannot_be_captured_is_refused_with_what_can() {
        for (text, clue) in [
            ("", "neither rx nor tx"),
            ("max 5", "neither rx nor tx"),
            ("rx max", "a value is missing after 'max'"),
            ("rx max many", "'many' is no number"),
            ("rx max 0", "from 1 to"),
            ("rx max 10000001", "from 1 to"),
            ("rx max-bytes-per-pkt 9217", "from 32 to 9216"),
            ("rx drop", "unknown word 'drop'"),
            ("rx off", "unknown word 'off'"),
            ("rx file /etc/passwd", "without a directory"),
            ("rx file ..", "is no name"),
            ("rx file .hidden", "is no name"),
        ] {
            let refused = parse(text).unwrap_err();
            assert!(refused.contains(clue), "{text}: {refused}");
        }
    }
}
