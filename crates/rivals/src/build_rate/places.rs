//! Where built frames can go: those asked for enter, what the cores built leaves.

use std::str::FromStr;
use std::time::Duration;

use anyhow::Result;
use engine::build_rate::{self, Built};
use engine::memif::build_rate::through_memif;
use serde::Serialize;
use traffic::FrameTable;
use wording::usage::misuse;

/// Where frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Into memory, over and over the same.
    Memory,
    /// Into the ring of a memif of our own, which a sink empties.
    Memif,
    /// To a port of DPDK that drops them.
    #[serde(rename = "null")]
    NetNull,
    /// Through shared memory of DPDK's to a sink on another core.
    NetMemif,
}

const ALL: [Place; 4] = [Place::Memory, Place::Memif, Place::NetNull, Place::NetMemif];

impl Place {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Memif => "memif",
            Self::NetNull => "null",
            Self::NetMemif => "net_memif",
        }
    }

    fn is_of_dpdk(self) -> bool {
        matches!(self, Self::NetNull | Self::NetMemif)
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = ALL.into_iter().find(|place| place.name() == text);
        found.ok_or_else(|| {
            format!("there is no place '{text}' for frames. There are: {}", ALL.map(Place::name).join(", "))
        })
    }
}

/// What some cores built.
pub struct Measured {
    /// Each of them; through shared memory, what the sinks took out.
    pub built: Vec<Built>,
    /// The cores of the sinks, if there are any: those that built, in turns with that, where no others were left.
    pub sinks: Vec<usize>,
}

/// The places that are measured, ready.
pub struct Places {
    list: Vec<Place>,
    notes: Vec<String>,
    online: Vec<usize>,
    #[cfg(feature = "dpdk")]
    dpdk: Option<dpdk::Ports>,
}

impl Places {
    /// Gets those ready that are asked for, or all that there are. `online` are the cores there are.
    pub fn open(asked: &[Place], online: &[usize]) -> Result<Self> {
        let online = online.to_vec();
        #[cfg(not(feature = "dpdk"))]
        {
            if let Some(place) = asked.iter().find(|place| place.is_of_dpdk()) {
                return Err(misuse(format!(
                    "{} needs DPDK, which this linerate was built without: build it with --features dpdk",
                    place.name()
                )));
            }
            if !asked.is_empty() {
                return Ok(Self { list: asked.to_vec(), notes: Vec::new(), online });
            }
            let note = "null and net_memif are left out: this linerate was built without DPDK";
            let list = ALL.into_iter().filter(|place| !place.is_of_dpdk()).collect();
            Ok(Self { list, notes: vec![note.to_owned()], online })
        }
        #[cfg(feature = "dpdk")]
        {
            let list = if asked.is_empty() { ALL.to_vec() } else { asked.to_vec() };
            let mut notes = Vec::new();
            let dpdk = match list.iter().any(|place| place.is_of_dpdk()) {
                true => Some(dpdk::Ports::open(&online, &mut notes)?),
                false => None,
            };
            Ok(Self { list, notes, online, dpdk })
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
    ) -> Result<Option<Measured>> {
        let sinks = self.sinks(cores);
        match (place, sinks) {
            (Place::Memory, _) => {
                let built = build_rate::in_memory(table, cores, duration)?;
                Ok(Some(Measured { built, sinks: Vec::new() }))
            }
            (Place::Memif, Some(sinks)) => {
                let built = through_memif(table, cores, &sinks, duration)?;
                Ok(Some(Measured { built, sinks }))
            }
            (Place::Memif, None) => {
                let built = through_memif(table, cores, &[], duration)?;
                Ok(Some(Measured { built, sinks: cores.to_vec() }))
            }
            #[cfg(feature = "dpdk")]
            (Place::NetNull | Place::NetMemif, sinks) => match &self.dpdk {
                Some(ports) => ports.build(place, table, (cores, sinks), duration),
                None => Err(misuse(format!("{} is not ready: name it with --onto", place.name()))),
            },
            #[cfg(not(feature = "dpdk"))]
            (Place::NetNull | Place::NetMemif, _) => {
                Err(misuse(format!("{} needs a linerate that was built with DPDK", place.name())))
            }
        }
    }

    /// A core for the sink of each of `cores`, which none of them is; `None` where there are too few.
    fn sinks(&self, cores: &[usize]) -> Option<Vec<usize>> {
        let spare = self.online.iter().copied().filter(|core| !cores.contains(core));
        let sinks: Vec<usize> = spare.take(cores.len()).collect();
        (sinks.len() == cores.len()).then_some(sinks)
    }
}

#[cfg(feature = "dpdk")]
mod dpdk {
    use std::sync::Arc;

    use engine::dpdk::build_rate::{onto_null, through_memif};
    use engine::dpdk::{Dpdk, Memory};

    use super::*;

    pub struct Ports(Arc<Dpdk>);

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
            Ok(Self(dpdk))
        }

        pub fn build(
            &self,
            place: Place,
            table: &FrameTable,
            (cores, sinks): (&[usize], Option<Vec<usize>>),
            duration: Duration,
        ) -> Result<Option<Measured>> {
            if place == Place::NetNull {
                let built = onto_null(&self.0, table, cores, duration)?;
                return Ok(Some(Measured { built, sinks: Vec::new() }));
            }
            let Some(sinks) = sinks else { return Ok(None) };
            let built = through_memif(&self.0, table, cores, &sinks, duration)?;
            Ok(Some(Measured { built, sinks }))
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
        assert!("nil".parse::<Place>().unwrap_err().contains("null"));
    }

    #[test]
    fn a_sink_has_a_core_that_builds_nothing() {
        let places = |online: &[usize]| Places::open(&[Place::Memif], online).unwrap();
        assert_eq!(places(&[0, 1, 2]).sinks(&[1]), Some(vec![0]));
        assert_eq!(places(&[0, 1, 2, 3]).sinks(&[3, 1]), Some(vec![0, 2]));
        assert_eq!(places(&[0, 1, 2]).sinks(&[0, 1]), None);
        assert_eq!(places(&[0]).sinks(&[0]), None);
    }
}
