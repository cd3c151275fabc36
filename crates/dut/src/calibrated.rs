//! A cross connect of known capacity: the truth that a measurement is compared with. In the lab a kernel
//! program is it; for frames in user space its [`Rules`] are.

mod rules;

use std::mem::MaybeUninit;
use std::time::Duration;

use lab::{Addressing, Bursts, Counters, Error, Result, Running, Site};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use wire::rate::Rate;

pub use rules::{Passed, Rules};

use super::spec::{Parameters, share};
use super::{Description, Device, FCS, Kind, Parameter, SpecError, constants, kept, load, words};
use rules::{Limits, StallRates};

#[allow(clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod program {
    include!(concat!(env!("OUT_DIR"), "/calibrated.skel.rs"));
}

pub(super) const KIND: Kind = Kind {
    description: Description {
        name: "calibrated",
        summary: "a cross connect that forwards exactly so many frames a second, or loses known ones",
        parameters: &[
            Parameter {
                key: "rate",
                values: "frames a second from 1 to 1000000000, like 300kpps",
                meaning: "what each direction forwards; without it there is no limit",
            },
            Parameter {
                key: "burst",
                values: "a number from 1 to 1000000",
                meaning: "frames that pass at once after a pause, like a queue of so many; 256 unless given, or in \
                          user space 1024, and at over 1 Mpps those of a millisecond",
            },
            Parameter {
                key: "drop-every",
                values: "a number from 1",
                meaning: "of every so many frames in a direction the last is lost; none unless given",
            },
            Parameter {
                key: "loss",
                values: "a share up to 100%, like 0.1%",
                meaning: "the chance of each frame to be lost; none unless given",
            },
            Parameter {
                key: "stall-after",
                values: "a number from 1",
                meaning: "after so many frames nothing passes any more; never unless given",
            },
            Parameter {
                key: "stall-rate",
                values: "two rates with .. between, like 0..2kpps, 500kpps.. or 10kpps..50kpps",
                meaning: "while frames of a direction come at a rate from the first one to below the second, nothing passes \
                          any more; never unless given",
            },
            Parameter {
                key: "stall-time",
                values: "a time from 50ms to 1h, like 500ms",
                meaning: "how long they must come at such a rate before that; 500ms unless given",
            },
            Parameter {
                key: "stall-ends",
                values: "reset or pause",
                meaning: "what makes it forward again after stall-rate: a reset, unless given, or a quarter of a second \
                          without frames",
            },
        ],
    },
    parse,
};

/// Frames that a veth's receive ring holds (`VETH_RING_SIZE`). When the device's core is late,
/// that many frames wait and then come at once: a smaller tolerance would lose frames that came
/// at a lower rate than the device's, and a larger one would hide how much the ring delays.
///
/// After a pause, frames that come at the rate L pass a device of the rate C as they would pass a
/// queue of `burst` frames: the first 1 + (burst - 1) * L / (L - C) of them without loss. That is
/// the truth of a back-to-back test.
const KERNEL_BURST: u64 = 256;
/// The same of the ring in shared memory that frames in user space come by.
const USER_SPACE_BURST: u64 = 1024;
/// Where that ring is filled sooner: a millisecond of frames, in 2^-32 ns. Cores are often late for a part
/// of one, unseen, and what came a little late is not to be lost by the rule. It hides a fifth of a percent
/// from a trial of half a second.
const USER_SPACE_PAUSE: u64 = 1_000_000 << 32;

/// Nanoseconds in a second, times 2^32: intervals are kept in fractions of a nanosecond, so
/// that a rate is exact in the long run.
const FIXED_SECOND: f64 = 1e9 * (1_u64 << 32) as f64;

/// Frames, bytes and frames forwarded, then those of bursts, as in `struct direction`.
const WORDS: usize = 3 + lab::BURST_LENGTHS;

/// The parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Calibrated {
    /// Between two frames, in 2^-32 ns; 0 for no limit.
    interval: u64,
    burst: Option<u64>,
    /// 0 for none.
    drop_every: u64,
    /// In 2^-32; 0 for none.
    loss: u64,
    /// 0 for never.
    stall_after: u64,
    /// The rates that it stalls at, in frames a second: from the first on, below the second, where there is one …
    stall_rates: Option<(u64, Option<u64>)>,
    /// … for so long. `None` for the default.
    stall_time: Option<Duration>,
    stall_ends_in_pause: bool,
}

/// How long a rate must last that a device stalls at, unless it is given.
const STALL_TIME: Duration = Duration::from_millis(500);

fn parse(parameters: &Parameters) -> Result<Box<dyn Device>, SpecError> {
    let count = |text: &str| text.parse().ok().filter(|count| *count > 0);
    let burst = |text: &str| count(text).filter(|burst| *burst <= 1_000_000);
    Ok(Box::new(Calibrated {
        interval: parameters.get("rate", interval)?.unwrap_or(0),
        burst: parameters.get("burst", burst)?,
        drop_every: parameters.get("drop-every", count)?.unwrap_or(0),
        loss: parameters.get("loss", loss)?.unwrap_or(0),
        stall_after: parameters.get("stall-after", count)?.unwrap_or(0),
        stall_rates: parameters.get("stall-rate", rates)?,
        stall_time: parameters.get("stall-time", stall_time)?,
        stall_ends_in_pause: parameters.get("stall-ends", ends_in_pause)?.unwrap_or(false),
    }))
}

/// Two rates in whole frames a second, like `10kpps..50kpps`; the first may be 0, the second absent.
fn rates(text: &str) -> Option<(u64, Option<u64>)> {
    let pps = |text: &str| match text.parse() {
        Ok(Rate::Pps(pps)) if (1.0..=1e9).contains(&pps) => Some(pps.round() as u64),
        _ => None,
    };
    let (low, high) = text.split_once("..")?;
    let low = if matches!(low, "" | "0") { 0 } else { pps(low)? };
    let high = if high.is_empty() { None } else { Some(pps(high)?) };
    high.is_none_or(|high| high > low).then_some((low, high))
}

fn stall_time(text: &str) -> Option<Duration> {
    let time = humantime::parse_duration(text).ok()?;
    (Duration::from_millis(50)..=Duration::from_secs(3600)).contains(&time).then_some(time)
}

fn ends_in_pause(text: &str) -> Option<bool> {
    match text {
        "reset" => Some(false),
        "pause" => Some(true),
        _ => None,
    }
}

/// The interval of a rate in frames a second, of those from 1 to 1 G.
fn interval(text: &str) -> Option<u64> {
    match text.parse() {
        Ok(Rate::Pps(pps)) if (1.0..=1e9).contains(&pps) => Some((FIXED_SECOND / pps).round() as u64),
        _ => None,
    }
}

/// A chance above 0 and at most 1, in 2^-32.
fn loss(text: &str) -> Option<u64> {
    share(text).map(|share| (share * 2f64.powi(32)).round() as u64).filter(|loss| *loss > 0)
}

impl Calibrated {
    /// The limits, where a burst has `burst` frames unless another is given: all of these conform at once
    /// after a pause.
    fn limits(&self, burst: u64) -> Limits {
        let early = self.burst.unwrap_or(burst).saturating_sub(1);
        Limits {
            drop_every: self.drop_every,
            loss: self.loss,
            interval: self.interval,
            tolerance_ns: ((u128::from(early) * u128::from(self.interval)) >> 32) as u64,
            stall_after: self.stall_after,
            stall: self.stall_rates.map(|(low, high)| StallRates {
                low,
                high: high.unwrap_or(0),
                time_ns: self.stall_time.unwrap_or(STALL_TIME).as_nanos() as u64,
                ends_in_pause: self.stall_ends_in_pause,
            }),
        }
    }

    /// Frames of a burst in user space, unless it is given.
    fn user_space_burst(&self) -> u64 {
        USER_SPACE_PAUSE.checked_div(self.interval).unwrap_or(0).max(USER_SPACE_BURST)
    }
}

impl Device for Calibrated {
    fn addressing(&self) -> Addressing {
        Addressing::OtherPort
    }

    fn rules(&self, seed: u64) -> Option<Rules> {
        Some(Rules::new(self.limits(self.user_space_burst()), seed))
    }

    fn start(&self, site: &Site) -> Result<Running> {
        let limits = self.limits(KERNEL_BURST);
        site.namespace.run(|| {
            let mut object = MaybeUninit::uninit();
            let loaded =
                load("calibrated", program::CalibratedSkelBuilder::default(), &mut object, |open| {
                    let constants = constants(open.maps.rodata_data.as_deref_mut())?;
                    constants.interfaces = site.indexes();
                    constants.drop_every = limits.drop_every;
                    constants.loss = limits.loss;
                    constants.interval_ns = limits.interval >> 32;
                    constants.interval_fraction = limits.interval as u32;
                    constants.tolerance_ns = limits.tolerance_ns;
                    constants.stall_after = limits.stall_after;
                    if let Some(stall) = limits.stall {
                        constants.stall_low = stall.low;
                        constants.stall_high = stall.high;
                        constants.stall_time_ns = stall.time_ns;
                        constants.stall_ends_in_pause = u8::from(stall.ends_in_pause);
                    }
                    Ok(())
                })?;
            let directions = kept(MapHandle::try_from(&loaded.maps.directions))?;
            let memory = kept(MapHandle::try_from(&loaded.maps.memory))?;
            let counted = kept(MapHandle::try_from(&loaded.maps.directions))?;
            let queue = if limits.interval > 0 { self.burst.unwrap_or(KERNEL_BURST) } else { 0 };
            let count = move |direction| count(&directions, direction, queue);
            Ok(Running {
                links: site.attach(&loaded.progs.calibrated)?,
                counters: Some(Box::new(move || Ok([count(0)?, count(1)?]))),
                reset: Some(Box::new(move || forget(&memory, &counted))),
                ..Running::default()
            })
        })
    }
}

/// Ends a stall: what was forwarded until now counts for none.
fn forget(memory: &MapHandle, directions: &MapHandle) -> Result<()> {
    let forwarded = count(directions, 0, 0)?.forwarded + count(directions, 1, 0)?.forwarded;
    let value: Vec<u8> = [0, forwarded].into_iter().flat_map(u64::to_ne_bytes).collect();
    let written = memory.update(&0_u32.to_ne_bytes(), &value, MapFlags::ANY);
    written.map_err(|cause| Error::bpf("cannot reset the device", cause))
}

/// What a direction counted, of a device whose queue holds so many frames; 0 of one without a rate.
fn count(directions: &MapHandle, direction: u32, queue: u64) -> Result<Counters> {
    let words = words::<WORDS>(directions, direction)?.first().copied().unwrap_or([0; WORDS]);
    let [frames, bytes, forwarded, bursts @ ..] = words;
    let bytes = bytes + FCS * frames;
    Ok(Counters { frames, bytes, forwarded, bursts: Bursts { queue, frames: bursts }, ..Counters::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_exact_in_the_long_run() {
        for (text, pps) in [("300kpps", 300e3), ("7mpps", 7e6), ("1", 1.0), ("50kpps", 50e3)] {
            let interval = interval(text).unwrap();
            let found = FIXED_SECOND / interval as f64;
            assert!((found / pps - 1.0).abs() < 1e-9, "{text}: {found}");
        }
        assert_eq!(interval("1mpps"), Some(1000 << 32));
    }

    #[test]
    fn stall_rates_are_read_and_others_are_refused() {
        assert_eq!(rates("0..2kpps"), Some((0, Some(2_000))));
        assert_eq!(rates("500kpps.."), Some((500_000, None)));
        assert_eq!(rates("..50"), Some((0, Some(50))));
        for wrong in ["2kpps", "2kpps..1kpps", "5..5", "fast..", "10%..20%", "1..2..3"] {
            assert_eq!(rates(wrong), None, "{wrong}");
        }
        assert_eq!(stall_time("2s"), Some(Duration::from_secs(2)));
        assert_eq!((stall_time("49ms"), stall_time("2h"), ends_in_pause("never")), (None, None, None));
    }

    #[test]
    fn a_burst_is_as_many_frames_as_it_says() {
        // The first frame of a burst is due at once, the last burst - 1 intervals later.
        let device = Calibrated { interval: 1000 << 32, burst: Some(64), ..Calibrated::default() };
        assert_eq!(device.limits(9).tolerance_ns, 63_000);
        assert_eq!(Calibrated { burst: Some(1), ..device }.limits(9).tolerance_ns, 0);
        assert_eq!(Calibrated { burst: None, ..device }.limits(9).tolerance_ns, 8_000);
        for (interval, burst) in [(0, 1024), (1000 << 32, 1024), (125 << 32, 8000)] {
            assert_eq!(Calibrated { interval, ..Calibrated::default() }.user_space_burst(), burst);
        }
    }
}
