//! What a strategy leaves behind: samples, verdicts, and how it ended.

use engine::Totals;
use results::record::{Direction, Finding, Sample, Status};

use crate::ObserverError;
use crate::verdict::direction_name;

/// The result of one run of a strategy; the parts of a record that it fills.
#[derive(Debug)]
pub struct Outcome {
    /// What was measured, in order of time, with the counts as they were after the drain.
    pub samples: Vec<Sample>,
    /// The verdict on each direction.
    pub directions: Vec<Direction>,
    /// What the strategy found.
    pub finding: Finding,
    /// Complete (also when it ended early because the device stalled), interrupted or failed.
    pub status: Status,
    /// Why it failed; `None` unless the status is [`Status::Failed`].
    pub failure: Option<Failure>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl Outcome {
    /// Why it ended so, where that needs words: for `reason` of the record.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        self.failure.as_ref().map(ToString::to_string)
    }
}

/// Why a strategy could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A parameter makes no sense; the text names cause and remedy.
    #[error("{0}")]
    Refused(String),
    /// The tester sent nothing in the warm-up.
    #[error(
        "{name}: no frame left the tester in the warm-up; check that its port is up, or warm up longer or at a higher rate",
        name = direction_name(*direction)
    )]
    NothingLeaves {
        /// Index of the direction.
        direction: usize,
    },
    /// Nothing that was sent in the warm-up came back: link, neighbour, route or MTU.
    #[error("{}", nothing_passes(*direction, *offered, *returned, *foreign, *others_pass))]
    NothingPasses {
        /// Index of the first direction in which nothing passes.
        direction: usize,
        /// Frames that left.
        offered: u64,
        /// Frames of these that came back at the port they left by.
        returned: u64,
        /// Frames at the receiving port that are not ours.
        foreign: u64,
        /// Whether another direction passes.
        others_pass: bool,
    },
    /// The engine failed.
    #[error(transparent)]
    Engine(engine::Error),
    /// The observer failed, like a full disk under the record.
    #[error(transparent)]
    Observer(ObserverError),
}

fn nothing_passes(direction: usize, offered: u64, returned: u64, foreign: u64, others_pass: bool) -> String {
    let name = direction_name(direction);
    let mut text = format!("{name}: none of {offered} frames sent in the warm-up came back");
    if returned > 0 {
        text += &format!("; {returned} came back on the sending port");
    }
    if foreign > 0 {
        text += &format!("; {foreign} frames that are not Linerate's arrived");
    }
    if others_pass {
        text += "; the other direction passes";
    }
    text + "; check the link, and the device's neighbours, routes and MTU"
}

/// Whether traffic passes at all, by the totals after the warm-up.
pub(crate) fn passes(totals: &[Totals]) -> Result<(), Failure> {
    if let Some(direction) = totals.iter().position(|totals| totals.offered == 0) {
        return Err(Failure::NothingLeaves { direction });
    }
    let blocked = totals.iter().enumerate().find(|(_, totals)| totals.forwarded == 0);
    blocked.map_or(Ok(()), |(direction, blocked)| {
        Err(Failure::NothingPasses {
            direction,
            offered: blocked.offered,
            returned: blocked.returned,
            foreign: blocked.foreign,
            others_pass: totals.iter().any(|totals| totals.forwarded > 0),
        })
    })
}
