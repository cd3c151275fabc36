//! What goes wrong with remote devices; each says what to do.

/// Why something did not come to be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A driver's text is wrong.
    #[error("{origin}:{line}: {reason}")]
    Driver {
        /// The file.
        origin: String,
        /// Its line, from 1.
        line: usize,
        /// What is wrong, and what to write instead.
        reason: String,
    },
    /// The user asked for what there is not.
    #[error("{0}")]
    Misuse(String),
    /// The device is not what the driver is for, or lacks something.
    #[error("{host}: check failed: {what}{said}. {remedy}")]
    Unfit {
        /// The device.
        host: String,
        /// What must be so.
        what: String,
        /// What the check said, with a colon before it; or nothing.
        said: String,
        /// What to do.
        remedy: String,
    },
    /// A command on the device failed.
    #[error(
        "{host}: {what}: '{command}' failed (exit status {status}): {said}. Try it there by hand, or \
         change the options ('linerate remote plan' prints all commands)"
    )]
    Failed {
        /// The device.
        host: String,
        /// What it was to do.
        what: String,
        /// Its first line.
        command: String,
        /// Its exit status.
        status: i32,
        /// What it said.
        said: String,
    },
    /// The device cannot be reached.
    #[error("cannot reach {host} by ssh: {said}. {remedy}")]
    Unreachable {
        /// The device.
        host: String,
        /// What ssh said.
        said: String,
        /// What to do.
        remedy: String,
    },
    /// A console leads to no shell.
    #[error("{host}: no shell on its console: {said}. {remedy}")]
    NoShell {
        /// The device.
        host: String,
        /// What kept us from it.
        said: String,
        /// What to do.
        remedy: String,
    },
    /// A restart did not bring what it was for.
    #[error("{host}: {what} did not hold after the restart ({said}). {remedy}")]
    Unproven {
        /// The device.
        host: String,
        /// What was to hold.
        what: String,
        /// What the proof said.
        said: String,
        /// What to do.
        remedy: String,
    },
    /// The connection ended, or nothing came in time.
    #[error("{host}: {reason}")]
    Lost {
        /// The device.
        host: String,
        /// What happened, and what to do.
        reason: String,
    },
}

/// A result with such an error.
pub type Result<T> = std::result::Result<T, Error>;
