//! The processor: what the kernel says of it, and the measured rate of its time stamp counter, enter.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The flags that matter to a router: what it may compute with, and whether its clock can be trusted.
const FLAGS: [&str; 14] = [
    "sse4_2",
    "avx",
    "avx2",
    "bmi1",
    "bmi2",
    "pclmulqdq",
    "aes",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512_vbmi",
    "constant_tsc",
    "nonstop_tsc",
    "hypervisor",
];

/// The processor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Its name, if the kernel tells.
    pub model: Option<String>,
    /// Family, model and stepping as numbers, if the kernel tells.
    pub family: Option<String>,
    /// Of the flags that matter, those that it has.
    pub flags: Vec<String>,
    /// Clocks a second of the time stamp counter, as measured.
    pub clocks_per_second: f64,
}

/// From `/proc/cpuinfo`, of which the first processor counts.
#[must_use]
pub fn cpu(cpuinfo: &str, clocks_per_second: f64) -> Cpu {
    let first = cpuinfo.split("\n\n").next().unwrap_or_default();
    let value = |key: &str| {
        let pairs = first.lines().filter_map(|line| line.split_once(':'));
        pairs
            .map(|(name, value)| (name.trim(), value.trim()))
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value)
    };
    let has: Vec<&str> = value("flags").unwrap_or_default().split_whitespace().collect();
    let family = value("cpu family").zip(value("model")).zip(value("stepping"));
    Cpu {
        model: value("model name").map(str::to_owned),
        family: family
            .map(|((family, model), stepping)| format!("{family} model {model} stepping {stepping}")),
        flags: FLAGS.iter().filter(|flag| has.contains(flag)).map(|flag| (*flag).to_owned()).collect(),
        clocks_per_second,
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = |text: &Option<String>| text.clone().unwrap_or_else(|| "the kernel does not tell".into());
        writeln!(formatter, "Model name:  {}", told(&self.model))?;
        writeln!(formatter, "Family:      {}", told(&self.family))?;
        writeln!(formatter, "Flags:       {}", self.flags.join(" "))?;
        writeln!(formatter, "TSC:         {:.3} GHz, measured", self.clocks_per_second / 1e9)
    }
}
