//! A capture through a device, as tcpreplay's users expect: whole frames, at the pace
//! they were captured at or another; what comes back is counted, and kept as a capture.
//!
//! Frames bear no signature here, so they are told from others by their content. A load test of the same
//! frames, each of them counted, is `--profile FILE.pcap` of all others.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail};
use engine::build_rate::pin;
use engine::replay::{Outcome, Pace, Replay};
use engine::xdp::precedence;
use serde_json::{Value, json};
use testbed::Testbed;
use testbed::port;
use testbed::stop;
use traffic::Capture;
use wire::rate::Rate;
use wire::{human, size};
use wording::usage::misuse;

use super::Args;
use super::kept::Kept;
use crate::Exit;
use crate::args::read_capture;

/// The shortest frame without FCS: what is shorter is padded with zeros, as a card does.
const SHORTEST: usize = (size::MIN - size::FCS) as usize;
/// The longest that a replay may take.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

pub fn main(args: &Args, name: &str) -> Result<Exit> {
    let file = read_capture(name)?;
    let refused = |error| misuse(format!("{name}: {error}"));
    let mut capture = Capture::read(&file).and_then(Capture::whole).map_err(refused)?;
    drop(file);
    let stop = stop::flag()?;
    capture.frames.iter_mut().for_each(|frame| frame.bytes.resize(frame.bytes.len().max(SHORTEST), 0));
    let longest = capture.frames.iter().map(|frame| frame.bytes.len()).max().unwrap_or(SHORTEST);

    let mut testbed = Testbed::open(&args.device.target()?, longest + usize::from(size::FCS))?;
    if !args.keep_macs {
        let endpoint = testbed.endpoints().0[0];
        for frame in &mut capture.frames {
            frame.bytes[..6].copy_from_slice(&endpoint.destination.0);
            frame.bytes[6..12].copy_from_slice(&endpoint.source.0);
        }
    }
    let replay = Replay {
        frames: &capture.frames,
        pace: pace(args, &testbed, mean_size(&capture))?,
        loops: args.loops,
        drain: args.drain,
        stop: &stop,
    };
    if replay.planned() > LONGEST {
        return Err(misuse(format!(
            "the replay would take {:?}, more than a day: give a higher --speed or --rate, or fewer --loops",
            replay.planned()
        )));
    }
    let mut kept = args.output.as_deref().map(|file| Kept::create(file, args.output_frames)).transpose()?;
    let mut carrier = testbed.carrier(longest)?;
    let cores = testbed.generating_cores();
    pin(cores.first().copied().unwrap_or_default())?;
    let turns = precedence::in_turns(lab::placement::online().is_ok_and(|online| online.len() > 1))?;
    let outcome = replay.run(&mut *carrier, &mut |time, frame| match &mut kept {
        Some(kept) => kept.take(time, frame),
        None => Ok(()),
    });
    drop(turns);
    precedence::give_back();
    let outcome = outcome?;
    let kept = kept.map(Kept::finish).transpose()?;
    capture.notes.iter().for_each(|note| eprintln!("{note}"));
    eprint!("{}", report(args, &outcome, kept));
    if args.json {
        println!("{}", summary(args, name, &capture, &outcome, kept));
    }
    if let Some(failure) = outcome.failure {
        bail!("the replay ended early: {failure}");
    }
    let all = capture.frames.len() as u64 * args.loops;
    Ok(if outcome.sent == all { Exit::Done } else { Exit::Failed })
}

/// The mean frame size, FCS included.
fn mean_size(capture: &Capture) -> f64 {
    let bytes: usize = capture.frames.iter().map(|frame| frame.bytes.len()).sum();
    bytes as f64 / capture.frames.len().max(1) as f64 + f64::from(size::FCS)
}

fn pace(args: &Args, testbed: &Testbed, mean_size: f64) -> Result<Pace> {
    Ok(match args.rate {
        None => Pace::Captured(args.speed.unwrap_or(1.0)),
        Some(Rate::Max) => Pace::Max,
        Some(rate) => Pace::Rate(port::to_pps(rate, mean_size, testbed.line_rate_bps())?),
    })
}

/// What became of it, for people. `kept` are the frames that were written, and those that were not.
fn report(args: &Args, outcome: &Outcome, kept: Option<(u64, u64)>) -> String {
    let Outcome { sent, elapsed_s, intended_s, lateness, received, foreign, missed, .. } = outcome;
    let pps = sent.saturating_sub(1) as f64 / elapsed_s.max(1e-9);
    let pace = if lateness.total() == 0 { String::new() } else { format!(" (asked for: {intended_s:.3} s)") };
    let mut text = format!("sent {} frames in {elapsed_s:.3} s{pace}", human::count(*sent));
    text += &if *sent > 1 { format!(": {}\n", human::pps(pps)) } else { "\n".to_owned() };
    for (reason, frames) in outcome.untaken.reasons() {
        text += &format!("{} were not sent: {reason}\n", human::count(frames));
    }
    if let (Some(p50), Some(p99), Some(most)) =
        (lateness.percentile(50.0), lateness.percentile(99.0), lateness.percentile(100.0))
    {
        let [p50, p99, most] = [p50, p99, most].map(|time| time as f64 / 1e3);
        text +=
            &format!("departures were late by {p50:.1} µs (p50), {p99:.1} µs (p99), {most:.1} µs at most\n");
    }
    text += &format!("{} of them came back at port 1", human::count(*received));
    text += &if *foreign > 0 {
        format!(", and {} others arrived\n", human::count(*foreign))
    } else {
        "\n".to_owned()
    };
    if *missed > 0 {
        text += &format!(
            "the tester had no room for {} that arrived: they are not counted\n",
            human::count(*missed)
        );
    }
    if let (Some((written, left_out)), Some(file)) = (kept, &args.output) {
        text += &format!("{} are in {}", human::count(written), file.display());
        text += &match left_out {
            0 => "\n".to_owned(),
            some => format!(", which is full: {} are not (--output-frames)\n", human::count(some)),
        };
    }
    text
}

fn summary(args: &Args, name: &str, capture: &Capture, outcome: &Outcome, kept: Option<(u64, u64)>) -> Value {
    let lateness = |percent| outcome.lateness.percentile(percent);
    json!({
        "capture": name,
        "frames": capture.frames.len(),
        "loops": args.loops,
        "sent": outcome.sent,
        "sent_bytes": outcome.sent_bytes,
        "unsent": outcome.untaken.total(),
        "untaken": outcome.untaken.reasons().collect::<BTreeMap<_, _>>(),
        "elapsed_s": outcome.elapsed_s,
        "intended_s": outcome.intended_s,
        "lateness_p50_ns": lateness(50.0),
        "lateness_p99_ns": lateness(99.0),
        "lateness_max_ns": lateness(100.0),
        "received": outcome.received,
        "foreign": outcome.foreign,
        "missed": outcome.missed,
        "failure": outcome.failure,
        "written": kept.map(|(written, _)| written),
        "not_written": kept.map(|(_, left_out)| left_out),
        "notes": capture.notes,
    })
}
