//! What a frame costs at each step from a buffer in memory to a port: sizes and a place to send to enter; one record
//! leaves, with the frames that were built and not sent beside those that were.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use results::record::{self, BuiltFrames, WaterfallStep};
use traffic::tunable::Size;
use wire::size;

use crate::build_rate::{Figure, Wanted, measure};
use crate::known::Chosen;
use crate::measurement::{Beside, Measurement};

/// The generator by AF_XDP sockets, which is a step of its own.
const AF_XDP: &str = "linerate-af-xdp";

/// Builds frames as `wanted`, and the smallest too, then sends these by AF_XDP sockets and by `sending`, and keeps the
/// records in `directory`; `None` if the user stopped it. The last record has all of it.
///
/// # Errors
/// What was asked for wrongly, or cannot be measured here.
pub fn run(
    mut wanted: Wanted,
    sending: Measurement,
    name: Option<&str>,
    given: &BTreeMap<String, String>,
    directory: &Path,
    stop: &AtomicBool,
) -> Result<Option<record::Record>> {
    let smallest = Size::Bytes(size::MIN);
    if !(wanted.sizes.is_empty() || wanted.sizes.contains(&smallest)) {
        wanted.sizes.insert(0, smallest);
    }
    let Some(found) = measure(&wanted, stop)? else { return Ok(None) };
    let mut beside = Beside {
        steps: steps(&found.figures),
        built: found.figures.iter().map(built).collect(),
        notes: found.notes,
    };
    let af_xdp = Measurement {
        program: AF_XDP.parse::<Chosen>().map_err(wording::usage::misuse)?,
        target: sending.target.clone(),
        beside: Beside::default(),
        ..sending
    };
    match af_xdp.refusal() {
        Some(reason) => beside.notes.push(format!("af_xdp is left out: {reason}")),
        None => {
            let sent = af_xdp.run(None, given.clone(), directory)?;
            beside.steps.extend(sent_by("af_xdp", &sent));
        }
    }
    Measurement { beside, ..sending }.run(name, given.clone(), directory).map(Some)
}

/// The step of what a generator handed to its port, whatever the far end took of it.
pub(crate) fn sent_by(name: &str, sent: &record::Record) -> Option<WaterfallStep> {
    let first =
        || sent.samples.iter().filter_map(|sample| Some((sample.duration_s, sample.directions.first()?)));
    let lasted_s: f64 = first().map(|(duration_s, _)| duration_s).sum();
    let pps = first().map(|(_, direction)| direction.offered).sum::<u64>() as f64 / lasted_s.max(1e-9);
    (pps > 0.0).then(|| WaterfallStep { name: name.to_owned(), pps })
}

/// The steps of frames that one core built: those of the smallest size, in the order of the places.
fn steps(figures: &[Figure]) -> Vec<WaterfallStep> {
    let smallest = figures.iter().map(|figure| figure.frame_size).reduce(f64::min).unwrap_or_default();
    let of_one = figures.iter().filter(|figure| figure.cores.len() == 1 && figure.frame_size <= smallest);
    of_one
        .filter(|figure| figure.pps > 0.0)
        .map(|figure| WaterfallStep { name: figure.onto.name().to_owned(), pps: figure.pps })
        .collect()
}

fn built(figure: &Figure) -> BuiltFrames {
    BuiltFrames {
        onto: figure.onto.name().to_owned(),
        frame_size: figure.frame_size,
        cores: figure.cores.clone(),
        pps: figure.pps,
        sinks: figure.sinks.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build_rate::Place;

    #[test]
    fn steps_are_of_one_core_and_the_smallest_frames() {
        let figure = |onto, frame_size, cores: &[usize], pps| Figure {
            onto,
            frame_size,
            cores: cores.to_vec(),
            pps,
            l1_bps: 0.0,
            pps_of_each_core: Vec::new(),
            sinks: Vec::new(),
        };
        let figures = [
            figure(Place::Memory, 64.0, &[0], 80e6),
            figure(Place::Memory, 64.0, &[0, 1], 160e6),
            figure(Place::Memory, 1518.0, &[0], 79e6),
            figure(Place::Memif, 64.0, &[0], 40e6),
            figure(Place::NetMemif, 64.0, &[0], 0.0),
        ];
        let found = steps(&figures);
        let names: Vec<&str> = found.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["memory", "memif"]);
        assert_eq!(found.iter().map(WaterfallStep::ns_per_frame).collect::<Vec<_>>(), [12.5, 25.0]);
        assert_eq!(figures.iter().map(built).filter(|built| built.cores.len() == 2).count(), 1);
    }
}
