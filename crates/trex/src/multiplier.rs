//! How much of its streams a port sends: TRex's multipliers enter, a factor leaves.

use crate::rpc::{Failure, Parameters};

/// What a multiplier counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// A factor.
    Raw,
    /// Frames a second.
    Pps,
    /// Bits a second without preamble and gap.
    BpsL2,
    /// Bits a second on the wire.
    BpsL1,
    /// Of line rate.
    Percentage,
}

/// What it does with the rate that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Set,
    Add,
    Subtract,
}

/// What a client wants a port to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Multiplier {
    unit: Unit,
    operation: Operation,
    value: f64,
}

/// What a port sends at factor 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Frames a second.
    pub pps: f64,
    /// Bits a second, FCS included.
    pub bps_l2: f64,
    /// Bits a second on the wire.
    pub bps_l1: f64,
}

impl Rates {
    /// Those of `pps` frames a second of `length` bytes without FCS on average.
    pub fn of(pps: f64, length: f64) -> Self {
        let size = length + f64::from(wire::size::FCS);
        Self {
            pps,
            bps_l2: pps * size * 8.0,
            bps_l1: pps * (size + f64::from(wire::size::L1_OVERHEAD)) * 8.0,
        }
    }

    /// So many times as much.
    pub fn times(self, factor: f64) -> Self {
        Self { pps: self.pps * factor, bps_l2: self.bps_l2 * factor, bps_l1: self.bps_l1 * factor }
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            pps: self.pps + other.pps,
            bps_l2: self.bps_l2 + other.bps_l2,
            bps_l1: self.bps_l1 + other.bps_l1,
        }
    }
}

impl Multiplier {
    /// Reads the field `mul`.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Failure> {
        let mul = parameters.object("mul")?;
        let unit = match mul.text("type")? {
            "raw" => Unit::Raw,
            "pps" => Unit::Pps,
            "bps" => Unit::BpsL2,
            "bpsl1" => Unit::BpsL1,
            "percentage" => Unit::Percentage,
            other => return Err(unknown("type", other, "raw, pps, bps, bpsl1 or percentage")),
        };
        let operation = match mul.or("op", "abs", |mul| mul.text("op"))? {
            "abs" => Operation::Set,
            "add" => Operation::Add,
            "sub" => Operation::Subtract,
            other => return Err(unknown("op", other, "abs, add or sub")),
        };
        let value = mul.float("value")?;
        if !value.is_finite() || value < 0.0 {
            return Err(Failure::parameters(format!("multiplier value cannot be {value}")));
        }
        Ok(Self { unit, operation, value })
    }

    /// The factors of a port that sends `scaled` and `fixed` at factors of 1, and that has `current` now, if it
    /// sends: of both. Until it sends, `fixed` stays as it is; then both change alike, so that they keep their
    /// proportion.
    pub fn factors(
        &self,
        [scaled, fixed]: [Rates; 2],
        line_rate_bps: f64,
        current: Option<[f64; 2]>,
    ) -> Result<[f64; 2], Failure> {
        if let Some([factor, fixed_factor]) = current {
            let change = if self.unit == Unit::Raw {
                self.factor(&scaled, line_rate_bps, Some(factor))? / factor
            } else {
                let now = scaled.times(factor).plus(fixed.times(fixed_factor));
                self.factor(&now, line_rate_bps, Some(1.0))?
            };
            return Ok([factor * change, fixed_factor * change]);
        }
        if scaled.pps == 0.0 && fixed.pps > 0.0 {
            return Ok([1.0, 1.0]);
        }
        let share = match self.unit {
            Unit::Raw => 0.0,
            Unit::Pps => fixed.pps / scaled.pps,
            Unit::BpsL2 => fixed.bps_l2 / scaled.bps_l2,
            Unit::BpsL1 | Unit::Percentage => fixed.bps_l1 / scaled.bps_l1,
        };
        let factor = self.factor(&scaled, line_rate_bps, None)? - share;
        if factor > 0.0 || fixed.pps == 0.0 {
            return Ok([factor, 1.0]);
        }
        Err(Failure::execute(format!(
            "streams whose latency is counted send {} packets/s at any multiplier: ask for more",
            fixed.pps
        )))
    }

    /// The factor of a port that sends `rates` at factor 1 on a line of `line_rate_bps` (L1), and that has
    /// `current` now, if it sends.
    pub fn factor(&self, rates: &Rates, line_rate_bps: f64, current: Option<f64>) -> Result<f64, Failure> {
        let one = match self.unit {
            Unit::Raw => 1.0,
            Unit::Pps => rates.pps,
            Unit::BpsL2 => rates.bps_l2,
            Unit::BpsL1 => rates.bps_l1,
            Unit::Percentage if self.operation == Operation::Set => 100.0 * rates.bps_l1 / line_rate_bps,
            // Of what is sent now.
            Unit::Percentage => 100.0 / current.unwrap_or(0.0),
        };
        let change = self.value / one;
        let factor = match (self.operation, current) {
            (Operation::Set, _) => change,
            (_, None) => return Err(Failure::execute("add and sub need traffic that is sent: use abs")),
            (Operation::Add, Some(current)) => current + change,
            (Operation::Subtract, Some(current)) => current - change,
        };
        if factor.is_finite() && factor > 0.0 {
            Ok(factor)
        } else {
            Err(Failure::execute("multiplier results in a rate that is not above 0"))
        }
    }
}

fn unknown(key: &str, value: &str, known: &str) -> Failure {
    let value: String = value.chars().take(64).collect();
    Failure::parameters(format!("field '{key}' must be {known}, not '{value}'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn factor(kind: &str, operation: &str, value: f64, current: Option<f64>) -> Result<f64, Failure> {
        let parameters = json!({"mul": {"type": kind, "op": operation, "value": value}});
        let multiplier = Multiplier::read(&Parameters(parameters.as_object().unwrap()))?;
        // 64-byte frames: 84 on the wire.
        multiplier.factor(&Rates::of(2.0, 60.0), 10e9, current)
    }

    #[test]
    fn every_unit_gives_the_factor_that_trex_gives() {
        assert_eq!(factor("raw", "abs", 5.0, None), Ok(5.0));
        assert_eq!(factor("pps", "abs", 1000.0, None), Ok(500.0));
        assert_eq!(factor("bps", "abs", 1024.0, None), Ok(1.0));
        assert_eq!(factor("bpsl1", "abs", 1344.0, None), Ok(1.0));
        let ten_percent = factor("percentage", "abs", 10.0, None).unwrap();
        assert!((ten_percent * 2.0 * 84.0 * 8.0 - 1e9).abs() < 1.0);
    }

    #[test]
    fn streams_of_a_fixed_rate_are_a_part_of_the_load() {
        let factors = |kind: &str, value: f64, current| {
            let parameters = json!({"mul": {"type": kind, "value": value}});
            let multiplier = Multiplier::read(&Parameters(parameters.as_object().unwrap()))?;
            multiplier.factors([Rates::of(2.0, 60.0), Rates::of(100.0, 60.0)], 10e9, current)
        };
        assert_eq!(factors("pps", 1_100.0, None), Ok([500.0, 1.0]));
        assert_eq!(factors("raw", 3.0, None), Ok([3.0, 1.0]));
        assert!(factors("pps", 100.0, None).unwrap_err().reason.contains("100 packets/s"));
        // What is sent keeps its proportions.
        assert_eq!(factors("pps", 2_200.0, Some([500.0, 1.0])), Ok([1_000.0, 2.0]));
        assert_eq!(factors("raw", 1_000.0, Some([500.0, 1.0])), Ok([1_000.0, 2.0]));
    }

    #[test]
    fn additions_and_subtractions_are_of_what_is_sent() {
        assert_eq!(factor("pps", "add", 1000.0, Some(500.0)), Ok(1000.0));
        assert_eq!(factor("pps", "sub", 1000.0, Some(1500.0)), Ok(1000.0));
        assert_eq!(factor("percentage", "add", 50.0, Some(100.0)), Ok(150.0));
        assert_eq!(factor("percentage", "sub", 50.0, Some(100.0)), Ok(50.0));
        assert!(factor("pps", "sub", 5000.0, Some(500.0)).is_err());
        assert!(factor("pps", "add", 5.0, None).is_err());
        for (kind, operation, value) in
            [("raw", "abs", 0.0), ("raw", "abs", -1.0), ("x", "abs", 1.0), ("raw", "x", 1.0)]
        {
            assert!(factor(kind, operation, value, None).is_err());
        }
    }
}
