//! What two ports and the device between them consist of, by where they are: the target enters; all of it leaves, open.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use dut::DutSpec;
use dut::program::Dut;
use lab::{Lab, Placement, RealPorts};
use wording::usage::misuse;

use crate::lab_commands::{self, LeftRunning};
use crate::remote_device::RemoteDevice;
use crate::target::{EngineName, Place, Target};
use crate::testers::Testers;
use crate::user_space::{self, UserSpace};
use crate::{dut_command, real};

/// How long links may take to come up after the device's interfaces were configured.
const LINK_UP: Duration = Duration::from_secs(15);

/// Where a run takes place.
pub(super) enum Site {
    /// What runs in it goes before it: the connection to a virtual machine, and the program that it is.
    Lab(Option<Box<RemoteDevice>>, Option<Box<Dut>>, Box<Lab>),
    Real(RealPorts, Option<Box<RemoteDevice>>),
    UserSpace(Box<UserSpace>),
    Testers(Testers),
}

impl Site {
    /// Opens what `device` asks for and has its commands run; what those started that goes on leaves beside it.
    pub fn open(
        device: &Target,
        engine: EngineName,
        placement: &Placement,
        max_frame_size: usize,
    ) -> Result<(Self, Option<LeftRunning>)> {
        let site = match &device.place {
            Place::Lab(dut) => return Self::lab(device, dut, placement, max_frame_size),
            Place::Started(dut) => {
                Self::UserSpace(Box::new(UserSpace::start(engine, dut, placement, max_frame_size)?))
            }
            Place::Named(named) => {
                Self::UserSpace(Box::new(UserSpace::open(engine, named, placement, max_frame_size)?))
            }
            Place::Testers(addresses) => {
                dut_command::here(&device.dut_commands)?;
                Self::Testers(Testers::open(addresses)?)
            }
            Place::Ports(ports) => {
                // The device may answer only after these.
                let remote = RemoteDevice::configure(ports)?;
                dut_command::here(&device.dut_commands)?;
                let patience = if remote.is_some() { LINK_UP } else { Duration::ZERO };
                Self::Real(real::open(ports, patience)?, remote.map(Box::new))
            }
        };
        Ok((site, None))
    }

    /// A lab with `dut` in it.
    fn lab(
        device: &Target,
        dut: &DutSpec,
        placement: &Placement,
        max_frame_size: usize,
    ) -> Result<(Self, Option<LeftRunning>)> {
        if let Some(refusal) = user_space::refusal(device.engine, Some(dut), &[]) {
            return Err(misuse(refusal));
        }
        let config = lab::Config { dut: Arc::new(dut.clone()), placement: placement.clone(), max_frame_size };
        let lab = Lab::start(&config)?;
        let program = Dut::start_in(&lab, max_frame_size)?;
        let guest = program.as_ref().map_or(Ok(None), RemoteDevice::in_machine)?;
        let mut left_running = None;
        match (&guest, lab.has_interfaces()) {
            (Some(guest), _) => guest.run(&device.dut_commands)?,
            (None, true) => left_running = lab_commands::run(lab.dut_namespace(), &device.dut_commands)?,
            (None, false) if device.dut_commands.is_empty() => {}
            (None, false) => {
                return Err(misuse("--dut-command needs a shell in the virtual machine: give driver="));
            }
        }
        Ok((Self::Lab(guest.map(Box::new), program.map(Box::new), Box::new(lab)), left_running))
    }
}
