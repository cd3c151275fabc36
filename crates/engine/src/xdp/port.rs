//! A port that frames leave by: its name enters; whether it can go on transmitting, or why not, leaves.

use std::os::fd::{AsRawFd, OwnedFd};
use std::thread;
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags};
use nix::errno::Errno;
use nix::libc::{self, ifreq};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::{DIRECTIONS, PortRef};
use crate::{Error, Untaken};

/// `ETHTOOL_GDRVINFO` of `linux/ethtool.h`.
const GDRVINFO: u32 = 3;
/// Drivers whose transmit queue is the receive queue of whatever is at the other end: a full one is the
/// device's, not ours.
const SHARED_QUEUE: [&str; 2] = ["veth", "tun"];

/// How often, and how long after each other, an interface that is down is looked for once more.
const REMOVAL_LOOKS: usize = 20;
const REMOVAL_LOOK: Duration = Duration::from_millis(10);

/// `struct ethtool_drvinfo` of `linux/ethtool.h`.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

/// A sending port.
pub(super) struct Port {
    name: String,
    index: u32,
    driver: String,
    /// Opened in the port's namespace, so that questions are answered there.
    socket: OwnedFd,
    /// What it had not taken when it was looked at last.
    untaken: Untaken,
}

impl Port {
    /// Opens a port of the current network namespace.
    ///
    /// # Errors
    /// When the kernel knows that it does not transmit redirected frames.
    pub(super) fn open(port: &PortRef) -> Result<Self, Error> {
        check_features(port)?;
        let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
            .map_err(|error| Error::Failed(format!("cannot open a socket: {error}; close some files")))?;
        let mut this = Self {
            name: port.name.clone(),
            index: port.index,
            driver: String::new(),
            socket,
            untaken: Untaken::default(),
        };
        this.driver = this.read_driver().unwrap_or_default();
        Ok(this)
    }

    /// Whether what it sends is in the device's receive queue at once.
    pub(super) fn has_the_devices_queue(&self) -> bool {
        SHARED_QUEUE.contains(&self.driver.as_str())
    }

    /// Fails when the port cannot go on. `taken` and `untaken` frames it had until now.
    pub(super) fn check(&mut self, taken: u64, untaken: Untaken) -> Result<(), Error> {
        let since = untaken - self.untaken;
        self.untaken = untaken;
        let name = &self.name;
        let is_down = since.down > 0 && self.is_down();
        if (since.gone > 0 && self.is_gone()) || (is_down && self.is_being_removed()) {
            return Err(Error::Failed(format!(
                "interface {name} vanished: it was removed, or moved to another namespace; see that it stays \
                 and measure again"
            )));
        }
        if is_down {
            return Err(Error::Failed(format!(
                "interface {name} went down; `ip link set {name} up`, see what takes it down, and measure again"
            )));
        }
        if since.unable > 0 && taken == 0 {
            return Err(Error::Failed(self.cannot_transmit()));
        }
        Ok(())
    }

    fn is_gone(&self) -> bool {
        self.index_now() != Ok(self.index)
    }

    /// Whether it is gone a moment later: the kernel takes an interface down before it removes it.
    fn is_being_removed(&self) -> bool {
        (0..REMOVAL_LOOKS).any(|_| {
            thread::sleep(REMOVAL_LOOK);
            self.is_gone()
        })
    }

    fn cannot_transmit(&self) -> String {
        let Self { name, driver, .. } = self;
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

    fn request(&self) -> ifreq {
        // SAFETY: all bytes zero are a valid ifreq.
        let mut request: ifreq = unsafe { std::mem::zeroed() };
        // The last byte stays zero.
        let length = request.ifr_name.len() - 1;
        let bytes = self.name.bytes().take(length);
        request.ifr_name.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte as libc::c_char);
        request
    }

    fn ask(&self, question: libc::Ioctl, request: &mut ifreq) -> Result<(), Errno> {
        // SAFETY: the request is valid for reads and writes, and so is what it points to, if anything.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), question, std::ptr::from_mut(request)) };
        Errno::result(result).map(drop)
    }

    fn index_now(&self) -> Result<u32, Errno> {
        let mut request = self.request();
        self.ask(libc::SIOCGIFINDEX, &mut request)?;
        // SAFETY: the kernel set this member.
        Ok(unsafe { request.ifr_ifru.ifru_ifindex } as u32)
    }

    fn is_down(&self) -> bool {
        let mut request = self.request();
        let asked = self.ask(libc::SIOCGIFFLAGS, &mut request);
        // SAFETY: the kernel set this member.
        asked.is_ok() && i32::from(unsafe { request.ifr_ifru.ifru_flags }) & libc::IFF_UP == 0
    }

    fn read_driver(&self) -> Result<String, Errno> {
        let mut information = DriverInfo { command: GDRVINFO, driver: [0; 32], rest: [0; 160] };
        let mut request = self.request();
        request.ifr_ifru.ifru_data = (&raw mut information).cast();
        self.ask(libc::SIOCETHTOOL, &mut request)?;
        let name = information.driver.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(name).into_owned())
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
    /// `NETDEV_XDP_ACT_NDO_XMIT` of `linux/netdev.h`.
    const TRANSMITS: u64 = 4;
    match super::xdp_state(port.index) {
        Some(state) if state.feature_flags != 0 && state.feature_flags & TRANSMITS == 0 => {
            Err(Error::Port(format!(
                "interface {} does not transmit XDP frames now: the other end of a veth needs GRO \
             (ethtool -K … gro on) or an XDP program, a network card a driver with XDP",
                port.name
            )))
        }
        _ => Ok(()),
    }
}
