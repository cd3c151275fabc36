//! What is seen of a testbed: its counters, nodes, threads and cores, and its description for the record, leave.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use dut::Passed;
use dut::program::Dut;
use lab::{InterfaceCounters, Lab, Placement};
use monitor::gauges::Wanted;
use monitor::{CoreMeter, Monitor};
use results::record;

use super::{Site, Testbed};
use crate::target::EngineName;
use crate::user_space::{UserSpace, several};

impl Testbed {
    /// Every thread that does the work of a device that Linerate started, by its id.
    pub fn dut_work(&self) -> Result<Vec<i32>> {
        let mut work = self.lab().map(Lab::dut_work).transpose()?.unwrap_or_default();
        let programs = self.program().map(Dut::threads).into_iter();
        let programs = programs.chain(self.user_space().map(UserSpace::dut_threads));
        work.extend(programs.flatten().map(|thread| thread.pid));
        Ok(work)
    }

    /// Which cores the tester uses for what.
    pub fn cores_in_words(&self) -> String {
        let Placement { generate, receive, receive_cores, dut_workers, .. } = &self.placement;
        match &self.site {
            Site::Lab(..) => format!("cores {generate:?}, receiving on {receive}"),
            Site::UserSpace(user_space) if user_space.has_own_dut() => {
                format!("cores {generate:?}, receiving on {receive_cores:?}, the device on {dut_workers:?}")
            }
            Site::Real(..) | Site::UserSpace(_) => format!("cores {generate:?}"),
            Site::Testers(_) => "cores of the testers' own".to_owned(),
        }
    }

    /// What the device is called.
    pub fn dut_name(&self) -> &str {
        match &self.site {
            Site::Lab(.., lab) => lab.dut().name(),
            Site::Real(_, Some(remote)) => remote.driver(),
            Site::Real(_, None) | Site::Testers(_) => "ports",
            Site::UserSpace(user_space) => user_space.dut_name(),
        }
    }

    /// What the device itself has counted, one for each direction, where it counts.
    pub fn device_counters(&self) -> Option<Vec<record::DeviceCounted>> {
        if let Some(passed) = self.passed() {
            let counted = |passed: Passed| record::DeviceCounted {
                received: passed.frames,
                forwarded: passed.forwarded,
            };
            return Some(passed.map(counted).into());
        }
        let counters = self.lab()?.dut_counters().ok()??;
        let counted = counters
            .map(|counted| record::DeviceCounted { received: counted.frames, forwarded: counted.forwarded });
        Some(counted.into())
    }

    /// How frames came at the device since it was started, both directions together, where it knows.
    pub fn bursts(&self) -> Option<trial::Bursts> {
        let counted = self.lab()?.dut_counters().ok()??.map(|counters| counters.bursts);
        let queue = counted.iter().map(|bursts| bursts.queue).max().filter(|queue| *queue > 0)?;
        let mut frames = BTreeMap::new();
        for (place, count) in counted.iter().flat_map(|bursts| bursts.frames.iter().enumerate()) {
            *frames.entry(lab::Bursts::length(place)).or_default() += count;
        }
        Some(trial::Bursts { queue, frames })
    }

    /// What became of the frames that a device started in user space took, one for each direction, where it
    /// counts.
    pub fn passed(&self) -> Option<[Passed; 2]> {
        self.user_space()?.counted()
    }

    /// The connections that the lab's device tracks, if it does, with the memory that they took beyond `before`
    /// ([`lab::tracked::memory`]).
    pub fn states(&self, before: Option<u64>) -> Option<record::States> {
        let tracked = self.lab()?.dut_namespace().run(|| Ok(lab::tracked::read())).ok()??;
        let now = lab::tracked::memory();
        Some(record::States {
            count: tracked.count,
            limit: tracked.limit,
            buckets: tracked.buckets,
            bytes: now.zip(before).map(|(now, before)| now.saturating_sub(before)),
        })
    }

    /// The device, for the record.
    pub fn describe_dut(&self) -> Result<record::Dut> {
        let mut dut = match &self.site {
            Site::Lab(guest, _, lab) => record::Dut {
                name: lab.dut().name().to_owned(),
                parameters: lab.dut().parameters().clone(),
                configuration: lab.dut_configuration()?,
                core: Some(self.placement.dut),
                cores: several(&self.placement.dut_workers),
                remote: guest.as_ref().map(|guest| Box::new(guest.describe_remote())),
                ..record::Dut::default()
            },
            Site::Real(_, Some(remote)) => remote.describe(),
            Site::UserSpace(user_space) => user_space.describe_dut(),
            Site::Testers(testers) => testers.describe_dut(),
            Site::Real(_, None) => record::Dut { name: "ports".to_owned(), ..record::Dut::default() },
        };
        dut.configuration
            .extend(self.program().map(|program| program.configuration().clone()).into_iter().flatten());
        if let Site::Lab(Some(guest), ..) = &self.site {
            dut.configuration.extend(guest.fingerprint().clone());
        }
        let commands = self.dut_commands.iter().zip(1..);
        dut.configuration
            .extend(commands.map(|(command, number)| (format!("command {number}"), command.clone())));
        Ok(dut)
    }

    /// Says on the terminal whether frames are copied on their way and who counts them, where that is a question.
    pub fn tell_modes(&self, modes: &[String]) {
        if self.engine == EngineName::AfXdp {
            for (port, mode) in self.ports().iter().zip(modes) {
                eprintln!("port {}: {mode}", port.name);
            }
        }
    }

    /// The tester, for the record. `modes` is how each port runs its XDP program.
    pub fn describe_tester(&self, modes: &[String]) -> record::Tester {
        let mut facts = self.inspection.iter().flat_map(|inspection| inspection.facts.iter().cloned());
        let ports = self.ports().iter().zip(modes).map(|(port, mode)| record::Port {
            name: port.name.clone(),
            driver: port.driver.clone(),
            mac: port.mac.to_string(),
            mtu: port.mtu,
            speed_bps: port.speed_bps,
            xdp_mode: mode.clone(),
            facts: facts.next().map(Box::new),
        });
        record::Tester {
            engine: self.engine.name().to_owned(),
            engine_reason: self.inspection.as_ref().and_then(|inspection| inspection.why.clone()),
            cores: self.placement.generate.clone(),
            receive_core: self.lab().map(|_| self.placement.receive),
            receive_cores: self.placement.receive_cores.clone(),
            receive_cost_ns: self.receive.map(|receive| receive.cost_ns),
            receive_share: self.receive.map(|receive| receive.share),
            ports: ports.collect(),
            self_test: None,
        }
    }

    /// What the kernel, or in user space the drivers, counted at the two ports, and at the device's
    /// interfaces where it is ours. To be asked for while an engine runs.
    pub fn interface_counters(&self) -> Result<Vec<InterfaceCounters>> {
        match &self.site {
            Site::Lab(.., lab) => Ok(lab.interface_counters()?),
            Site::Real(real, _) => Ok(real.interface_counters()?),
            Site::UserSpace(user_space) => user_space.interface_counters(),
            Site::Testers(_) => Err(anyhow!("they are the testers' own, which is all that is known")),
        }
    }

    /// What the nodes of the device have done since it started, where it is a graph of them that tells. One that is
    /// another computer is asked over its connection.
    pub fn nodes(&self) -> Result<record::NodeRuntimes> {
        match (&self.site, self.program()) {
            (Site::UserSpace(user_space), _) => user_space.nodes(),
            (Site::Real(_, Some(remote)), _) => remote.nodes(),
            (_, Some(program)) => program.nodes(),
            (_, None) => Ok(record::NodeRuntimes::new()),
        }
    }

    /// The cores in use.
    pub fn cores_in_use(&self) -> Vec<usize> {
        let Placement { generate, receive, receive_cores, dut_workers, .. } = &self.placement;
        let mut cores = generate.clone();
        match &self.site {
            Site::Lab(..) => cores.extend(dut_workers.iter().chain([receive])),
            Site::UserSpace(user_space) if user_space.has_own_dut() => {
                cores.extend(dut_workers.iter().chain(receive_cores));
            }
            Site::UserSpace(_) => cores.extend(receive_cores),
            Site::Real(..) | Site::Testers(_) => {}
        }
        cores
    }

    /// A monitor of the cores in use. To be asked for once the engine runs.
    pub fn monitor(&self) -> lab::Result<Monitor> {
        let threads = match &self.site {
            Site::Lab(_, program, lab) => {
                let mut threads = lab.threads()?;
                threads.extend(program.iter().flat_map(|program| program.threads()));
                threads
            }
            Site::UserSpace(user_space) if user_space.has_own_dut() => user_space.dut_threads(),
            Site::UserSpace(_) | Site::Real(..) | Site::Testers(_) => Vec::new(),
        };
        Monitor::start(&self.cores_in_use(), &threads)
    }

    /// The core of a device in user space that has one worker: nothing is lost between its queues and that.
    pub fn only_dut_worker(&self) -> Option<usize> {
        let [core] = *self.placement.dut_workers else { return None };
        self.user_space()?.has_own_dut().then_some(core)
    }

    /// The cores that Linerate uses for nothing but sending: neither its receiver nor the device runs there.
    pub fn senders(&self) -> Vec<usize> {
        let Placement { generate, receive, receive_cores, dut_workers, .. } = &self.placement;
        // Workers in user space also receive, unless other cores are named for that. A card may interrupt any core.
        let senders_are_apart = match &self.site {
            Site::Lab(..) => self.engine == EngineName::Xdp || !receive_cores.is_empty(),
            Site::UserSpace(_) => !receive_cores.is_empty(),
            Site::Real(..) | Site::Testers(_) => false,
        };
        let does_more =
            |core: &usize| dut_workers.contains(core) || receive == core || receive_cores.contains(core);
        generate.iter().copied().filter(|core| senders_are_apart && !does_more(core)).collect()
    }

    /// Who tells the power, and what energy costs.
    pub fn energy(&self) -> &Wanted {
        &self.energy
    }

    /// A meter of the core that the device works on, where that is known, and not all of it in any case: a
    /// program polls.
    pub fn dut_core_meter(&self) -> Option<CoreMeter> {
        self.lab().filter(|_| self.program().is_none())?;
        CoreMeter::new(self.placement.dut)
    }
}
