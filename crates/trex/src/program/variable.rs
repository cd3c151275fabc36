//! Flow variables: the fields of an instruction enter, a sequence of values leaves.

use serde_json::Value;

use super::refused;
use crate::rpc::{Failure, Parameters};

/// The most values of a list.
const LONGEST_LIST: usize = 65_536;
/// The first and the last port of a tuple whose ports have no limits.
const FREE_PORTS: (u64, u64) = (1025, 65_535);

/// One variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    size: usize,
    order: Order,
    /// Where its values come from.
    values: Values,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Up {
        step: u64,
    },
    Down {
        step: u64,
    },
    /// Drawn; the draws repeat after `limit`, or never (`u64::MAX`).
    Random {
        seed: u64,
        limit: u64,
    },
}

#[derive(Clone, Debug, PartialEq)]
enum Values {
    /// From `low` to `high`; the first is `first`.
    Range {
        first: u64,
        low: u64,
        high: u64,
    },
    List(Vec<u64>),
}

/// Where a variable is.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// A value, or a place in a list, or the number of a draw.
    at: u64,
}

impl Variable {
    /// The variables of an instruction of this kind, each with what its name ends in; nothing where the
    /// instruction is another.
    pub fn read(
        kind: &str,
        instruction: &Parameters<'_>,
        seed: u64,
    ) -> Result<Option<Vec<(&'static str, Self)>>, Failure> {
        match kind {
            "flow_var" => Self::flow(instruction, seed).map(|variable| Some(vec![("", variable)])),
            "flow_var_rand_limit" => Self::limited(instruction).map(|variable| Some(vec![("", variable)])),
            "tuple_flow_var" => Self::tuple(instruction).map(Some),
            _ => Ok(None),
        }
    }

    fn flow(instruction: &Parameters<'_>, seed: u64) -> Result<Self, Failure> {
        let size = size(instruction)?;
        let most = largest(size);
        let step = instruction.or("step", 1, |it| it.number("step", most))?;
        let operation = instruction.text("op")?;
        let order = match operation {
            "inc" => Order::Up { step },
            "dec" => Order::Down { step },
            "random" => Order::Random { seed, limit: u64::MAX },
            other => {
                let other: String = other.chars().take(16).collect();
                return Err(refused(format!("field 'op' must be inc, dec or random, not '{other}'")));
            }
        };
        if instruction.optional("value_list").is_some() {
            let values: Option<Vec<u64>> =
                instruction.list("value_list")?.iter().map(Value::as_u64).collect();
            let values = values.filter(|list| (1..=LONGEST_LIST).contains(&list.len()));
            let values = values.filter(|list| list.iter().all(|value| *value <= most));
            let values = values.ok_or_else(|| {
                refused(format!("field 'value_list' must have 1 to {LONGEST_LIST} numbers of {size} bytes"))
            })?;
            let step = step.max(1);
            let order = match order {
                Order::Up { .. } => Order::Up { step },
                Order::Down { .. } => Order::Down { step },
                random @ Order::Random { .. } => random,
            };
            return Ok(Self { size, order, values: Values::List(values) });
        }
        let (low, high) = (instruction.number("min_value", most)?, instruction.number("max_value", most)?);
        let first = instruction.or("init_value", low, |it| it.number("init_value", most))?;
        if low > high || !(low..=high).contains(&first) {
            return Err(refused(format!("flow variable: {low} to {high} from {first} is no range")));
        }
        if step == 0 && low != high && operation != "random" {
            return Err(refused("flow variable: a step of 0 never advances"));
        }
        Ok(Self { size, order, values: Values::Range { first, low, high } }.padded())
    }

    /// As TRex does it: the range is made as long as a whole number of steps.
    fn padded(mut self) -> Self {
        let (Order::Up { step } | Order::Down { step }) = self.order else { return self };
        let Values::Range { low, high, .. } = &mut self.values else { return self };
        let span = (*high - *low).saturating_add(1);
        let missing = (step.max(1) - span % step.max(1)) % step.max(1);
        match self.order {
            Order::Down { .. } if *low >= missing => *low -= missing,
            _ => *high = high.saturating_add(missing),
        }
        self
    }

    fn limited(instruction: &Parameters<'_>) -> Result<Self, Failure> {
        let size = size(instruction)?;
        let most = largest(size);
        let limit = instruction.number("limit", u64::MAX)?;
        let seed = instruction.or("seed", 0, |it| it.number("seed", u64::MAX))?;
        let low = instruction.or("min_value", 0, |it| it.number("min_value", most))?;
        let high = instruction.or("max_value", most, |it| it.number("max_value", most))?;
        if low > high || limit == 0 {
            return Err(refused(format!("flow variable: {limit} draws from {low} to {high} are none")));
        }
        Ok(Self {
            size,
            order: Order::Random { seed, limit },
            values: Values::Range { first: low, low, high },
        })
    }

    fn tuple(instruction: &Parameters<'_>) -> Result<Vec<(&'static str, Self)>, Failure> {
        let four = u64::from(u32::MAX);
        let two = u64::from(u16::MAX);
        let addresses = (instruction.number("ip_min", four)?, instruction.number("ip_max", four)?);
        let flags = instruction.or("flags", 0, |it| it.number("flags", two))?;
        let ports = if flags & 1 == 1 {
            FREE_PORTS
        } else {
            (instruction.number("port_min", two)?, instruction.number("port_max", two)?)
        };
        let range = |size, (low, high)| {
            if low > high {
                return Err(refused(format!("tuple_flow_var: {low} to {high} is no range")));
            }
            Ok(Self { size, order: Order::Up { step: 1 }, values: Values::Range { first: low, low, high } })
        };
        Ok(vec![(".ip", range(4, addresses)?), (".port", range(2, ports)?)])
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Its smallest value.
    pub fn least(&self) -> u64 {
        match &self.values {
            Values::Range { low, .. } => *low,
            Values::List(values) => values.iter().copied().min().unwrap_or(0),
        }
    }

    /// Its largest value.
    pub fn most(&self) -> u64 {
        match &self.values {
            Values::Range { high, .. } => *high,
            Values::List(values) => values.iter().copied().max().unwrap_or(0),
        }
    }

    /// Its mean value.
    pub fn mean(&self) -> f64 {
        match &self.values {
            Values::Range { low, high, .. } => f64::midpoint(*low as f64, *high as f64),
            Values::List(values) => {
                values.iter().map(|value| *value as f64).sum::<f64>() / values.len() as f64
            }
        }
    }

    /// How many values it steps through before they repeat; `u64::MAX` for never, or for more.
    pub fn count(&self) -> u64 {
        match self.order {
            Order::Random { limit, .. } => limit,
            Order::Up { step } | Order::Down { step } => self.span().div_ceil(step.max(1)).max(1),
        }
    }

    /// How many different places it has.
    fn span(&self) -> u64 {
        match &self.values {
            Values::Range { low, high, .. } => (high - low).saturating_add(1),
            Values::List(values) => values.len() as u64,
        }
    }

    /// Where it begins.
    pub fn start(&self) -> State {
        State {
            at: match (&self.order, &self.values) {
                (Order::Random { .. }, _) | (_, Values::List(_)) => 0,
                (_, Values::Range { first, low, .. }) => first - low,
            },
        }
    }

    /// Its value there.
    pub fn value(&self, state: &State) -> u64 {
        let place = match self.order {
            Order::Random { seed, .. } => mix(mix(seed).wrapping_add(state.at)) % self.span(),
            Order::Up { .. } | Order::Down { .. } => state.at,
        };
        match &self.values {
            Values::Range { low, .. } => low.saturating_add(place),
            Values::List(values) => values.get(place as usize).copied().unwrap_or(0),
        }
    }

    /// Goes to the next place; says whether it began again.
    pub fn advance(&self, state: &mut State) -> bool {
        let span = self.span();
        match self.order {
            Order::Random { limit, .. } => {
                state.at = (state.at + 1) % limit;
                state.at == 0
            }
            Order::Up { step } => {
                let left = span - 1 - state.at;
                let wraps = left < step;
                state.at = if wraps { (step - left - 1) % span } else { state.at + step };
                wraps
            }
            Order::Down { step } => {
                let wraps = state.at < step;
                state.at = if wraps { span - 1 - (step - state.at - 1) % span } else { state.at - step };
                wraps
            }
        }
    }
}

fn size(instruction: &Parameters<'_>) -> Result<usize, Failure> {
    match instruction.number("size", 8)? {
        size @ (1 | 2 | 4 | 8) => Ok(size as usize),
        size => Err(refused(format!("field 'size' must be 1, 2, 4 or 8, not {size}"))),
    }
}

/// The largest number of `size` bytes.
fn largest(size: usize) -> u64 {
    u64::MAX >> (64 - 8 * size)
}

/// SplitMix64's output function: any number to an even 64 bits.
fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
