//! A port of the kernel engine: its name enters; whether it can go on, or why not, leaves.

use std::thread;
use std::time::Duration;

use genetlink::netdev;
use libbpf_rs::{MapCore, MapFlags};
use xsk::Interface;

use super::{DIRECTIONS, PortRef};
use crate::refusal::Mtu;
use crate::{Error, Untaken};

/// How often, and how long after each other, an interface that is down is looked for once more.
const REMOVAL_LOOKS: usize = 20;
const REMOVAL_LOOK: Duration = Duration::from_millis(10);

/// A port, asked about in its own namespace.
pub(super) struct Port {
    interface: Interface,
    mtu: Mtu,
    /// What it had not taken when it was looked at last.
    untaken: Untaken,
}

impl Port {
    /// Opens a port of the current network namespace, which `sends` or only receives.
    ///
    /// # Errors
    /// When there is none, or the kernel knows that it does not transmit redirected frames.
    pub(super) fn open(port: &PortRef, sends: bool) -> Result<Self, Error> {
        if sends {
            check_features(port)?;
        }
        let interface = Interface::find(&port.name)?;
        Ok(Self { mtu: Mtu::of(&interface)?, interface, untaken: Untaken::default() })
    }

    /// Whether what it sends is in the device's receive queue at once: a full one is the device's, not ours.
    pub(super) fn has_the_devices_queue(&self) -> bool {
        self.interface.hands_over_at_once()
    }

    /// Fails when the port cannot go on. `taken` and `untaken` frames it had until now.
    pub(super) fn check(&mut self, taken: u64, untaken: Untaken) -> Result<(), Error> {
        let since = untaken - self.untaken;
        self.untaken = untaken;
        let name = self.interface.name();
        match self.interface.is_set_down() {
            Ok(false) => {}
            Ok(true) if !self.is_being_removed() => {
                return Err(Error::Failed(format!(
                    "interface {name} went down; `ip link set {name} up`, see what takes it down, and measure again"
                )));
            }
            _ => {
                return Err(Error::Failed(format!(
                    "interface {name} vanished: it was removed, or moved to another namespace; see that it stays \
                     and measure again"
                )));
            }
        }
        self.mtu.check(&self.interface)?;
        if since.unable > 0 && taken == 0 {
            return Err(Error::Failed(self.cannot_transmit()));
        }
        Ok(())
    }

    /// Whether it is gone a moment later: the kernel takes an interface down before it removes it.
    fn is_being_removed(&self) -> bool {
        (0..REMOVAL_LOOKS).any(|_| {
            thread::sleep(REMOVAL_LOOK);
            self.interface.is_set_down().is_err()
        })
    }

    fn cannot_transmit(&self) -> String {
        let (name, driver) = (self.interface.name(), self.interface.driver().unwrap_or_default());
        let remedy = if driver == "veth" {
            "the other end of a veth needs GRO (ethtool -K … gro on) or an XDP program, and must be up"
                .to_owned()
        } else {
            format!(
                "its driver{} has no XDP transmit, or only while an XDP program is attached to the interface: \
                 use a card whose driver has it",
                if driver.is_empty() { String::new() } else { format!(" {driver}") }
            )
        };
        format!("interface {name} does not transmit redirected frames, nothing was sent: {remedy}")
    }
}

/// Tells the program where frames leave: called in the ports' namespace.
pub(super) fn load(map: &impl MapCore, ports: &[PortRef]) -> Result<(), Error> {
    for (direction, port) in (0u32..).zip(ports.iter().take(DIRECTIONS)) {
        map.update(&direction.to_ne_bytes(), &port.index.to_ne_bytes(), MapFlags::ANY).map_err(|error| {
            Error::Port(format!("interface {} is not there any more: {error:#}; make it again", port.name))
        })?;
    }
    Ok(())
}

/// Refuses a port that drops what is redirected to it: a veth whose other end has no NAPI, or a
/// driver without the means. Kernels before 6.3 do not tell.
fn check_features(port: &PortRef) -> Result<(), Error> {
    match netdev::takes_redirected(port.index) {
        Some(false) => Err(Error::Port(format!(
            "interface {} does not transmit XDP frames now: the other end of a veth needs GRO \
             (ethtool -K … gro on) or an XDP program, a network card a driver with XDP",
            port.name
        ))),
        _ => Ok(()),
    }
}
