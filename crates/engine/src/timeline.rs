//! Frames by the time of their departure, so that what befell a device for a moment can be told from
//! what it does all the time.

/// One direction's frames, in bins of equal length without a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// When the first bin begins, in nanoseconds of the clock that departures are read from:
    /// `CLOCK_MONOTONIC`, or an engine's virtual time.
    pub start_ns: u64,
    /// How long each bin is.
    pub bin_ns: u64,
    /// In the order of time.
    pub bins: Vec<Bin>,
}

/// The frames that left in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// How many.
    pub offered: u64,
    /// How many of them have come back.
    pub forwarded: u64,
}
