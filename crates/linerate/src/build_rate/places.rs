//! Where built frames can go: those asked for enter, what the cores built leaves.

use std::str::FromStr;
use std::time::Duration;

use anyhow::Result;
use engine::build_rate::{self, Built};
use serde::Serialize;
use traffic::FrameTable;

use crate::args::misuse;

/// Where frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Into memory, over and over the same.
    Memory,
    /// To a port of DPDK that drops them.
    NetNull,
    /// Through shared memory to a sink on another core.
    NetMemif,
}

const ALL: [Place; 3] = [Place::Memory, Place::NetNull, Place::NetMemif];

impl Place {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::NetNull => "net_null",
            Self::NetMemif => "net_memif",
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = ALL.into_iter().find(|place| place.name() == text);
        found.ok_or_else(|| format!("'{text}' is none of {}", ALL.map(Place::name).join(", ")))
    }
}

/// The places that are measured, ready.
pub struct Places {
    list: Vec<Place>,
    notes: Vec<String>,
    #[cfg(feature = "dpdk")]
    user_space: Option<user_space::Ports>,
}

impl Places {
    /// Gets those ready that are asked for, or all that there are. `online` are the cores there are.
    pub fn open(asked: &[Place], online: &[usize]) -> Result<Self> {
        #[cfg(not(feature = "dpdk"))]
        {
            let _ = online;
            if let Some(place) = asked.iter().find(|place| **place != Place::Memory) {
                return Err(misuse(format!(
                    "{} needs DPDK, which this linerate was built without: build it with --features dpdk",
                    place.name()
                )));
            }
            let note = "net_null and net_memif are left out: this linerate was built without DPDK";
            let notes = if asked.is_empty() { vec![note.to_owned()] } else { Vec::new() };
            Ok(Self { list: vec![Place::Memory], notes })
        }
        #[cfg(feature = "dpdk")]
        {
            let list = if asked.is_empty() { ALL.to_vec() } else { asked.to_vec() };
            let mut notes = Vec::new();
            let user_space = match list.iter().any(|place| *place != Place::Memory) {
                true => Some(user_space::Ports::open(online, &mut notes)?),
                false => None,
            };
            Ok(Self { list, notes, user_space })
        }
    }

    /// Which they are.
    pub fn list(&self) -> &[Place] {
        &self.list
    }

    /// What a reader should know of them.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What each of `cores` builds onto `place` in `duration`; `None` where there are too few cores.
    pub fn build(
        &self,
        place: Place,
        table: &FrameTable,
        cores: &[usize],
        duration: Duration,
    ) -> Result<Option<Vec<Built>>> {
        if place == Place::Memory {
            return Ok(Some(build_rate::in_memory(table, cores, duration)?));
        }
        #[cfg(feature = "dpdk")]
        if let Some(ports) = &self.user_space {
            return ports.build(place, table, cores, duration);
        }
        Err(misuse(format!("{} is not ready: name it with --onto", place.name())))
    }
}

#[cfg(feature = "dpdk")]
mod user_space {
    use std::sync::Arc;

    use engine::dpdk::build_rate::{onto_null, through_memif};
    use engine::dpdk::{Dpdk, Memory};

    use super::*;

    pub struct Ports {
        dpdk: Arc<Dpdk>,
        online: Vec<usize>,
    }

    impl Ports {
        pub fn open(online: &[usize], notes: &mut Vec<String>) -> Result<Self> {
            let core = online.first().copied().unwrap_or_default();
            let (dpdk, memory) = engine::dpdk::start(core, &[])?;
            notes.push(match memory {
                Memory::Hugepages => "DPDK's frames were in hugepages".to_owned(),
                Memory::Ordinary { .. } => {
                    "DPDK's frames were in ordinary memory: no hugepages are reserved".to_owned()
                }
            });
            if online.len() < 2 {
                notes.push("net_memif is left out: its sink needs a core of its own".to_owned());
            }
            Ok(Self { dpdk, online: online.to_vec() })
        }

        pub fn build(
            &self,
            place: Place,
            table: &FrameTable,
            cores: &[usize],
            duration: Duration,
        ) -> Result<Option<Vec<Built>>> {
            if place == Place::NetNull {
                return Ok(Some(onto_null(&self.dpdk, table, cores, duration)?));
            }
            let sinks: Vec<usize> =
                self.online.iter().copied().filter(|core| !cores.contains(core)).collect();
            if sinks.len() < cores.len() {
                return Ok(None);
            }
            Ok(Some(through_memif(&self.dpdk, table, cores, &sinks, duration)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_known_by_their_names() {
        for place in ALL {
            assert_eq!(place.name().parse(), Ok(place));
            assert_eq!(serde_json::to_value(place).unwrap(), place.name());
        }
        assert!("net_nil".parse::<Place>().unwrap_err().contains("net_null"));
    }
}
