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
