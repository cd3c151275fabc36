//! Field engine programs: a stream's instructions and its packet enter, one packet after the other leaves.
//!
//! Instructions run in order for each packet. A variable has its first value in the first packet and advances
//! after each; one that is another's `next_var` advances when that one wraps. Checksums are not done here: they
//! are set right in every frame anyway.

mod variable;

use serde_json::Value;

use crate::rpc::{Failure, Parameters};
use variable::Variable;

/// The most instructions of a stream.
const MOST_INSTRUCTIONS: usize = 256;
/// The longest name of a variable.
const LONGEST_NAME: usize = 128;

/// What a stream does with its packet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    variables: Vec<Variable>,
    /// Which variable advances when this one wraps.
    next: Vec<Option<usize>>,
    /// Tuples that begin again after so many packets: where their address is.
    limits: Vec<(usize, u64)>,
    steps: Vec<Step>,
}

/// One change of a packet.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Write {
        variable: usize,
        offset: usize,
        add: i64,
        big_endian: bool,
    },
    WriteMask {
        variable: usize,
        offset: usize,
        size: usize,
        mask: u32,
        shift: i32,
        add: i64,
        big_endian: bool,
    },
    Trim {
        variable: usize,
    },
}

/// A program at work: its variables' values.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    program: &'a Program,
    states: Vec<variable::State>,
    packets: u64,
}

impl Program {
    /// Reads the instructions of a packet of `length` bytes; `seed` is that of random variables.
    ///
    /// # Errors
    /// When an instruction is wrong, or one that cannot be done.
    pub fn read(instructions: &[Value], length: usize, seed: u64) -> Result<Self, Failure> {
        if instructions.len() > MOST_INSTRUCTIONS {
            return Err(refused(format!(
                "a stream has at most {MOST_INSTRUCTIONS} field engine instructions"
            )));
        }
        let mut program = Self::default();
        let mut names: Vec<String> = Vec::new();
        let mut followers: Vec<Option<&str>> = Vec::new();
        for (index, instruction) in instructions.iter().enumerate() {
            let instruction = instruction.as_object().map(Parameters);
            let instruction = instruction.ok_or_else(|| refused("an instruction must be an object"))?;
            let kind = instruction.text("type")?;
            let seed = seed.wrapping_add(index as u64);
            if let Some(variables) = Variable::read(kind, &instruction, seed)? {
                let name = instruction.text("name")?;
                if name.len() > LONGEST_NAME {
                    return Err(refused(format!("a variable's name has at most {LONGEST_NAME} bytes")));
                }
                let follower = match instruction.optional("next_var") {
                    Some(_) => Some(instruction.text("next_var")?),
                    None => None,
                };
                let last = variables.len() - 1;
                if kind == "tuple_flow_var" {
                    let limit = instruction.or("limit_flows", 0, |it| it.number("limit_flows", u64::MAX))?;
                    let flows =
                        variables.iter().fold(1, |flows: u64, (_, it)| flows.saturating_mul(it.count()));
                    if (1..flows).contains(&limit) {
                        program.limits.push((program.variables.len(), limit));
                    }
                }
                for (at, (suffix, variable)) in variables.into_iter().enumerate() {
                    let name = format!("{name}{suffix}");
                    if names.contains(&name) {
                        return Err(refused(format!("flow variable '{name}' is there twice")));
                    }
                    names.push(name);
                    program.variables.push(variable);
                    // The port of a tuple advances when its address wraps.
                    program.next.push((at < last).then_some(program.variables.len()));
                    followers.push(follower.filter(|_| at == last));
                }
                continue;
            }
            let step = program.step(kind, &instruction, &names, length)?;
            program.steps.extend(step);
        }
        for (index, follower) in followers.iter().enumerate() {
            let Some(follower) = follower else { continue };
            program.next[index] = Some(find(&names, follower)?);
        }
        program.check_order()?;
        Ok(program)
    }

    fn step(
        &self,
        kind: &str,
        instruction: &Parameters<'_>,
        names: &[String],
        length: usize,
    ) -> Result<Option<Step>, Failure> {
        let offset = || Ok(instruction.number("pkt_offset", u64::from(u16::MAX))? as usize);
        let add = || instruction.or("add_value", 0, |it| it.signed("add_value"));
        let big_endian = || instruction.or("is_big_endian", true, |it| it.flag("is_big_endian"));
        let within = |offset: usize, size: usize| {
            if offset + size <= length {
                Ok(())
            } else {
                Err(refused(format!(
                    "field engine writes {size} bytes at offset {offset} of a packet of {length} bytes"
                )))
            }
        };
        let variable = || find(names, instruction.text("name")?);
        Ok(Some(match kind {
            "write_flow_var" => {
                let (variable, offset) = (variable()?, offset()?);
                within(offset, self.variables[variable].size())?;
                Step::Write { variable, offset, add: add()?, big_endian: big_endian()? }
            }
            "write_mask_flow_var" => {
                let (variable, offset) = (variable()?, offset()?);
                let size = instruction.number("pkt_cast_size", 4)? as usize;
                if !matches!(size, 1 | 2 | 4) {
                    return Err(refused(format!("field 'pkt_cast_size' must be 1, 2 or 4, not {size}")));
                }
                within(offset, size)?;
                let mask = instruction.number("mask", u64::from(u32::MAX))? as u32;
                let shift = instruction.signed("shift")?;
                if !(-120..=120).contains(&shift) {
                    return Err(refused("field 'shift' must be from -120 to 120"));
                }
                let (add, big_endian) = (add()?, big_endian()?);
                Step::WriteMask { variable, offset, size, mask, shift: shift as i32, add, big_endian }
            }
            "trim_pkt_size" => {
                let variable = variable()?;
                let (size, most) = (self.variables[variable].size(), self.variables[variable].most());
                if size != 2 {
                    return Err(refused(format!("trim_pkt_size needs a variable of 2 bytes, not of {size}")));
                }
                if most > length as u64 {
                    return Err(refused(format!(
                        "trim_pkt_size to up to {most} bytes of a packet of {length} bytes"
                    )));
                }
                Step::Trim { variable }
            }
            "fix_checksum_ipv4" | "fix_checksum_hw" | "fix_checksum_icmpv6" => return Ok(None),
            other => {
                let other: String = other.chars().take(64).collect();
                return Err(refused(format!("field engine instruction '{other}' is not known")));
            }
        }))
    }

    /// That no variable waits for itself.
    fn check_order(&self) -> Result<(), Failure> {
        for start in 0..self.variables.len() {
            let mut at = start;
            for _ in 0..self.variables.len() {
                match self.next[at] {
                    Some(next) => at = next,
                    None => break,
                }
            }
            if self.next[at].is_some() {
                return Err(refused("flow variables wait for each other in a circle (next_var)"));
            }
        }
        Ok(())
    }

    /// Packets after which they repeat; `u64::MAX` for never, or for more.
    pub fn period(&self) -> u64 {
        let led: Vec<usize> = self.next.iter().flatten().copied().collect();
        let roots = (0..self.variables.len()).filter(|index| !led.contains(index));
        roots
            .map(|root| {
                if let Some((_, limit)) = self.limits.iter().find(|(address, _)| *address == root) {
                    return *limit;
                }
                let mut period = self.variables[root].count();
                let mut at = root;
                while let Some(next) = self.next[at] {
                    period = period.saturating_mul(self.variables[next].count());
                    at = next;
                }
                period
            })
            .fold(1, lcm)
    }

    /// The end of the last byte that it writes, counted from the packet's start.
    pub fn reach(&self) -> usize {
        let end = |step: &Step| match step {
            Step::Write { variable, offset, .. } => offset + self.variables[*variable].size(),
            Step::WriteMask { offset, size, .. } => offset + size,
            Step::Trim { .. } => 0,
        };
        self.steps.iter().map(end).max().unwrap_or(0)
    }

    /// The smallest and the mean length of its packets, of which the whole one has `length` bytes.
    pub fn lengths(&self, length: usize) -> (usize, f64) {
        let mut trims = self.steps.iter().filter_map(|step| match step {
            Step::Trim { variable } => Some(&self.variables[*variable]),
            _ => None,
        });
        match trims.next_back() {
            Some(variable) => (variable.least() as usize, variable.mean()),
            None => (length, length as f64),
        }
    }

    /// The program at its first packet.
    pub fn run(&self) -> Run<'_> {
        Run { program: self, states: self.variables.iter().map(Variable::start).collect(), packets: 0 }
    }
}

impl Run<'_> {
    /// Changes `packet` into the next one, and says how long that is.
    pub fn next(&mut self, packet: &mut [u8]) -> usize {
        let mut length = packet.len();
        let value = |states: &[variable::State], variable: usize| {
            self.program.variables[variable].value(&states[variable])
        };
        for step in &self.program.steps {
            match *step {
                Step::Write { variable, offset, add, big_endian } => {
                    let number = value(&self.states, variable).wrapping_add_signed(add);
                    put(packet, offset, self.program.variables[variable].size(), number, big_endian);
                }
                Step::WriteMask { variable, offset, size, mask, shift, add, big_endian } => {
                    let number = value(&self.states, variable).wrapping_add_signed(add);
                    let number = if shift >= 0 {
                        number.checked_shl(shift as u32).unwrap_or(0)
                    } else {
                        number.checked_shr(shift.unsigned_abs()).unwrap_or(0)
                    };
                    let mask = u64::from(mask);
                    let there = get(packet, offset, size, big_endian);
                    put(packet, offset, size, (there & !mask) | (number & mask), big_endian);
                }
                Step::Trim { variable } => {
                    length = (value(&self.states, variable) as usize).min(packet.len())
                }
            }
        }
        self.advance();
        length
    }

    fn advance(&mut self) {
        let program = self.program;
        for root in 0..program.variables.len() {
            if program.next.iter().flatten().any(|next| *next == root) {
                continue;
            }
            let mut at = root;
            while program.variables[at].advance(&mut self.states[at]) {
                let Some(next) = program.next[at] else { break };
                at = next;
            }
        }
        self.packets += 1;
        for (address, limit) in &program.limits {
            if self.packets.is_multiple_of(*limit) {
                for at in [*address, *address + 1] {
                    self.states[at] = program.variables[at].start();
                }
            }
        }
    }
}

fn find(names: &[String], name: &str) -> Result<usize, Failure> {
    names.iter().position(|known| known == name).ok_or_else(|| {
        let name: String = name.chars().take(64).collect();
        refused(format!("flow variable '{name}' does not exist"))
    })
}

/// The low `size` bytes of `number` at `offset`.
fn put(packet: &mut [u8], offset: usize, size: usize, number: u64, big_endian: bool) {
    let Some(place) = packet.get_mut(offset..offset + size) else { return };
    let (big, little) = (number.to_be_bytes(), number.to_le_bytes());
    let bytes = if big_endian { &big[8 - size..] } else { &little[..size] };
    place.copy_from_slice(bytes);
}

fn get(packet: &[u8], offset: usize, size: usize, big_endian: bool) -> u64 {
    let place = packet.get(offset..offset + size).unwrap_or_default();
    let add = |number: u64, byte: &u8| (number << 8) | u64::from(*byte);
    if big_endian { place.iter().fold(0, add) } else { place.iter().rev().fold(0, add) }
}

/// The least common multiple, or `u64::MAX` where it is more.
pub fn lcm(a: u64, b: u64) -> u64 {
    if a == u64::MAX || b == u64::MAX {
        return u64::MAX;
    }
    (a / gcd(a, b).max(1)).saturating_mul(b)
}

/// The greatest common divisor.
pub fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while a != 0 {
        (a, b) = (b % a, a);
    }
    b
}

fn refused(reason: impl Into<String>) -> Failure {
    Failure::execute(reason)
}

#[cfg(test)]
mod tests;
