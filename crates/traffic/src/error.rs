//! Why there is no such profile.

use crate::capture::CaptureError;
use crate::field::FieldError;
use crate::stream::StreamError;

/// Why there is no such profile. Each text names cause and remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No built-in profile has this name.
    #[error(
        "there is no profile '{name}': known are {known}, and files that end in .toml, .pcap, .pcapng or .py"
    )]
    UnknownProfile {
        /// The name asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The profile has no such tunable.
    #[error("profile '{profile}' has no tunable '{tunable}': it has {known}")]
    UnknownTunable {
        /// The profile.
        profile: &'static str,
        /// The tunable that was given.
        tunable: &'static str,
        /// The tunables it has.
        known: String,
    },
    /// The text is no value of this tunable.
    #[error("'{text}' is no {tunable}: {expected}")]
    Value {
        /// The tunable.
        tunable: &'static str,
        /// The text given.
        text: String,
        /// What it can be.
        expected: String,
    },
    /// Two tunables exclude each other.
    #[error("{0}")]
    Conflict(&'static str),
    /// A field program means nothing.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A profile has from one stream to 256.
    #[error("a profile has 1 to {max} streams, not {0}", max = crate::stream::MAX_STREAMS)]
    Streams(usize),
    /// The frames of a stream are impossible.
    #[error("stream '{stream}': {error}")]
    Stream {
        /// The stream's name.
        stream: String,
        /// Why.
        error: StreamError,
    },
    /// A capture cannot be sent.
    #[error("{origin}: {error}")]
    Capture {
        /// The file.
        origin: String,
        /// Why.
        error: CaptureError,
    },
    /// A profile's text is wrong.
    #[error("{origin}:{line}: {reason}")]
    Document {
        /// The file, or whatever the text came from.
        origin: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong there, and what would be right.
        reason: String,
    },
}
