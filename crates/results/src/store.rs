//! The store: a directory of records, one file `<id>.json` each.
//!
//! Records enter as they grow; files leave that are [whole] at every moment, so a crash or a full disk
//! leaves the state before it. What comes while a run goes on is kept in a journal until its end.

mod journal;
mod packed;
mod printable;

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub use journal::Entry;
use serde::Deserialize;
use serde_json::error::Category;

use crate::bench::{self, Bench};
use crate::certificate::{self, Certificate};
use crate::record::{Record, SCHEMA, Status};
use crate::time::compact;
use crate::whole;

/// What all versions of the schema begin with.
const SCHEMA_FAMILY: &str = "linerate/run/";
/// Longest id: a file name may have 255 bytes on Linux, and a number and `.json` follow.
const LONGEST_ID: usize = 200;

/// Why a record could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system has no room, or the user's quota or file size limit is used up.
    #[error(
        "{path}: the disk is full ({source}); the record as it was before is kept. \
         Free some space, or choose another directory for results"
    )]
    DiskFull {
        /// The record's file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory or file cannot be written.
    #[error("{path}: cannot be written ({source}); choose a directory for results that you may write to")]
    Unwritable {
        /// The record's file, or the store's directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The record would not be readable: JSON knows no NaN and no infinity.
    #[error(
        "{path}: not written, because it could not be read again ({source}); this is a defect of linerate, please report it"
    )]
    NotRepresentable {
        /// The record's file.
        path: PathBuf,
        /// Which value, and where.
        source: serde_json::Error,
    },
    /// The file or directory cannot be read.
    #[error("{path}: cannot be read ({source})")]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file ends in the middle.
    #[error("{path}: ends in the middle ({source}); copy it again from where it came from")]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where it ends.
        source: serde_json::Error,
    },
    /// The file is not JSON.
    #[error("{path}: is no result file of Linerate: it is not JSON ({source})")]
    NotJson {
        /// The file.
        path: PathBuf,
        /// Where it fails.
        source: serde_json::Error,
    },
    /// The file is JSON, but no record.
    #[error(
        "{path}: is no record of linerate (its \"schema\" is not {SCHEMA}): name a file that a run left in runs/"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The record was written by another version.
    #[error(
        "{path}: has schema {found}, this linerate reads {SCHEMA}; use the version that wrote it, or a newer one"
    )]
    OtherSchema {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: String,
    },
    /// The schema is ours, the content is not.
    #[error("{path}: says it is {schema}, but is not ({source})")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it says it is.
        schema: &'static str,
        /// What is wrong, and where.
        source: serde_json::Error,
    },
}

impl Error {
    /// Sorts a failure to write by whether there was room.
    fn writing(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                Self::DiskFull { path, source }
            }
            _ => Self::Unwritable { path, source },
        }
    }
}

/// A directory of records.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
}

/// What a directory holds.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Its records, in order of their file names, which is the order they began in.
    pub records: Vec<Record>,
    /// Certificates of the tester that lie beside them.
    pub certificates: Vec<Certificate>,
    /// The benches that they are of, as far as these are described beside them.
    pub benches: Vec<Bench>,
    /// Why other files that end in `.json` or `.json.gz` were passed over.
    pub warnings: Vec<Error>,
}

impl Store {
    /// The store in `directory`, which is made if it is missing.
    ///
    /// # Errors
    /// [`Error::Unwritable`] or [`Error::DiskFull`] if it cannot be made.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, Error> {
        let directory = directory.into();
        fs::create_dir_all(&directory).map_err(|error| Error::writing(&directory, error))?;
        Ok(Self { directory })
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes the first state of `record`, and returns what writes the following ones.
    /// If its id is taken, the record gets one with a number behind it, like `…-2`.
    ///
    /// # Errors
    /// See [`Writer::write`].
    pub fn create(&self, record: &mut Record) -> Result<Writer, Error> {
        let wanted = file_safe(&record.id);
        record.id.clone_from(&wanted);
        let mut number = 1;
        loop {
            let path = self.directory.join(format!("{}.json", record.id));
            match whole::create(&path, &readable_json(record, &path)?) {
                Ok(()) => {
                    let journal_path = journal::path(&path);
                    return Ok(Writer { path, journal_path, journal: None });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    number += 1;
                    record.id = format!("{wanted}-{number}");
                }
                Err(error) => return Err(Error::writing(&path, error)),
            }
        }
    }

    /// All records of the directory; see [`load_all`].
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the directory cannot be read.
    pub fn load_all(&self) -> Result<Loaded, Error> {
        load_all(&self.directory)
    }
}

/// Keeps one record's file up to date.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    journal_path: PathBuf,
    journal: Option<File>,
}

impl Writer {
    /// The record's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds to what readers find of a record that is [`Status::Running`]. Takes microseconds.
    ///
    /// # Errors
    /// [`Error::DiskFull`] or [`Error::Unwritable`]; what was added before stands.
    pub fn append(&mut self, entry: &Entry) -> Result<(), Error> {
        journal::append(&mut self.journal, &self.journal_path, entry)
            .map_err(|error| Error::writing(&self.journal_path, error))
    }

    /// Replaces the file by `record` as it is now, in one step. What was appended before is gone:
    /// it is to be in the record.
    ///
    /// # Errors
    /// [`Error::DiskFull`], [`Error::Unwritable`] or [`Error::NotRepresentable`]; the file then
    /// holds what it held before, and no temporary file remains.
    pub fn write(&mut self, record: &Record) -> Result<(), Error> {
        write(record, &self.path)?;
        // What it replaces can go, since this is on the disk.
        if self.journal.take().is_some() {
            fs::remove_file(&self.journal_path).map_err(|error| Error::writing(&self.journal_path, error))?;
        }
        Ok(())
    }
}

/// Replaces the file of `record` in `directory`, which has come to its end, by `record` as it is now, in one step.
///
/// # Errors
/// See [`Writer::write`].
pub fn replace(directory: &Path, record: &Record) -> Result<(), Error> {
    write(record, &directory.join(format!("{}.json", record.id)))
}

/// Replaces the file at `path` by `record`.
fn write(record: &Record, path: &Path) -> Result<(), Error> {
    whole::replace(path, &readable_json(record, path)?).map_err(|error| Error::writing(path, error))
}

/// Keeps `bench` in `directory`, beside its records; replaces what was kept before in one step.
///
/// # Errors
/// See [`Writer::write`].
pub fn keep_bench(directory: &Path, bench: &Bench) -> Result<(), Error> {
    let path = Bench::path(directory);
    let not_representable = |source| Error::NotRepresentable { path: path.clone(), source };
    let mut json = serde_json::to_vec_pretty(bench).map_err(not_representable)?;
    json.push(b'\n');
    whole::replace(&path, &json).map_err(|error| Error::writing(&path, error))
}

/// `record` as one line of JSON, for `path`. It is parsed once more, since NaN and infinity become `null`
/// without an error and the file would be lost to every reader.
fn readable_json(record: &Record, path: &Path) -> Result<Vec<u8>, Error> {
    let represent = || {
        let mut json = serde_json::to_vec(record)?;
        serde_json::from_slice::<Record>(&json)?;
        json.push(b'\n');
        Ok(json)
    };
    represent().map_err(|source| Error::NotRepresentable { path: path.to_path_buf(), source })
}

/// An id that sorts by time and fits a file name, like
/// `20261121T085123Z-linux-router-64b-bidirectional`. [`Store::create`] makes it unique.
#[must_use]
pub fn id(started: SystemTime, dut: &str, test: &str) -> String {
    file_safe(&format!("{}-{dut}-{test}", compact(started)))
}

/// `text` as words of ASCII letters, digits, `_` and inner `.`, joined by `-`.
fn file_safe(text: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
    let words = text.split(|c| !is_kept(c)).map(|word| word.trim_matches('.'));
    let mut name = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
    name.truncate(LONGEST_ID);
    if name.is_empty() { "run".to_owned() } else { name }
}

/// What a file of Linerate's holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    /// A run.
    Record(Box<Record>),
    /// What `linerate verify` found.
    Certificate(Box<Certificate>),
    /// What a bench is.
    Bench(Box<Bench>),
}

/// The record in `file`.
///
/// # Errors
/// See [`read`]; [`Error::Foreign`] if the file holds another kind of [`Document`].
pub fn load(file: &Path) -> Result<Record, Error> {
    match read(file)? {
        Document::Record(record) => Ok(*record),
        Document::Certificate(_) | Document::Bench(_) => Err(Error::Foreign { path: file.to_path_buf() }),
    }
}

/// The record in `directory` that has grown last, as far as it has got; `None` if none has since then.
#[must_use]
pub fn growing(directory: &Path, since: SystemTime) -> Option<Record> {
    let files = fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path());
    let journals =
        files.filter(|path| path.extension().is_some_and(|extension| extension == journal::EXTENSION));
    let written = |path: PathBuf| Some((fs::metadata(&path).ok()?.modified().ok()?, path));
    let (_, newest) = journals.filter_map(written).filter(|(at, _)| *at >= since).max()?;
    load(&newest.with_extension("json")).ok()
}

/// What `file` holds, packed by gzip if its name ends in `.gz`.
///
/// # Errors
/// Says which file, and whether it is unreadable, truncated, foreign, malformed or of another
/// version's schema.
pub fn read(file: &Path) -> Result<Document, Error> {
    let path = || file.to_path_buf();
    let json = packed::read(file).map_err(|source| Error::Unreadable { path: path(), source })?;
    let json = printable::json(json);
    let malformed = |schema| move |source| Error::Malformed { path: file.to_path_buf(), schema, source };
    match schema_of(&json, file)?.as_deref() {
        Some(SCHEMA) => {
            let mut record: Record = serde_json::from_slice(&json).map_err(malformed(SCHEMA))?;
            if record.status == Status::Running {
                journal::complete(&mut record, &journal::path(file));
            }
            Ok(Document::Record(Box::new(record)))
        }
        Some(certificate::SCHEMA) => {
            let found = serde_json::from_slice(&json).map_err(malformed(certificate::SCHEMA))?;
            Ok(Document::Certificate(Box::new(found)))
        }
        Some(bench::SCHEMA) => {
            let found = serde_json::from_slice(&json).map_err(malformed(bench::SCHEMA))?;
            Ok(Document::Bench(Box::new(found)))
        }
        Some(found) if found.starts_with(SCHEMA_FAMILY) => {
            Err(Error::OtherSchema { path: path(), found: found.to_owned() })
        }
        _ => Err(Error::Foreign { path: path() }),
    }
}

/// What `json` says it is, if anything; nothing else of it is kept.
fn schema_of(json: &[u8], file: &Path) -> Result<Option<String>, Error> {
    #[derive(Deserialize)]
    struct Head {
        schema: Option<String>,
    }
    let path = || file.to_path_buf();
    match serde_json::from_slice::<Head>(json) {
        Ok(head) => Ok(head.schema),
        Err(source) => match source.classify() {
            Category::Eof => Err(Error::Truncated { path: path(), source }),
            Category::Data => Ok(None),
            Category::Syntax | Category::Io => Err(Error::NotJson { path: path(), source }),
        },
    }
}

/// The records, certificates and benches among the files of `directory` that end in `.json` or `.json.gz`, and
/// why others are none of them. A packed file is passed over where the same lies there unpacked.
///
/// # Errors
/// [`Error::Unreadable`] if the directory cannot be read.
pub fn load_all(directory: &Path) -> Result<Loaded, Error> {
    let unreadable = |source| Error::Unreadable { path: directory.to_path_buf(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "json") || packed::is_new(&path) {
            files.push(path);
        }
    }
    files.sort();
    let mut loaded = Loaded::default();
    for file in files {
        match read(&file) {
            Ok(Document::Record(record)) => loaded.records.push(*record),
            Ok(Document::Certificate(certificate)) => loaded.certificates.push(*certificate),
            Ok(Document::Bench(bench)) => loaded.benches.push(*bench),
            Err(error) => loaded.warnings.push(error),
        }
    }
    Ok(loaded)
}

#[cfg(test)]
mod tests;
