//! Why a session ends early: the user, the device or a failure.

use crate::outcome::Failure;

/// Why a session ends before its strategy does.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The user asked for it.
    Interrupted,
    /// The device returns nothing any more; the text says how that was seen.
    Stalled(String),
    /// It cannot go on.
    Failed(Failure),
}

impl From<engine::Error> for Stop {
    fn from(error: engine::Error) -> Self {
        match error {
            engine::Error::Interrupted => Self::Interrupted,
            error => Self::Failed(Failure::Engine(error)),
        }
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
