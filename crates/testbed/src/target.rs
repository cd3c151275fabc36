//! What is to be measured, and by what: plain data, from flags or from a bench file.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use dut::{DutSpec, SpecError};
use wire::MacAddress;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Target {
    /// The device to start, in the lab or in user space; the default one if none is named.
    pub dut: Option<DutSpec>,
    /// Two interfaces of this machine.
    pub ports: Option<Vec<String>>,
    /// What sends and receives.
    pub engine: EngineName,
    /// Port 0 in user space.
    pub port0: Option<String>,
    /// Port 1 in user space.
    pub port1: Option<String>,
    /// The device's IP addresses at port 0 and port 1.
    pub gateways: Option<Vec<IpAddr>>,
    /// The device's MAC addresses at port 0 and port 1, in user space.
    pub gateway_macs: Option<Vec<MacAddress>>,
    /// How often `--force` was given, 0 to 2: 2 uses an interface even if it carries the default route or this login.
    pub force: u8,
    /// The line rate (L1) that percentages refer to, in bits a second.
    pub line_rate: Option<f64>,
    /// The cores that generate.
    pub cores: Option<Vec<usize>>,
    /// The cores that receive in user space.
    pub receive_cores: Option<Vec<usize>>,
    /// The core that the lab's device works on.
    pub dut_core: Option<usize>,
    /// Shell commands that configure the device first.
    pub dut_commands: Vec<String>,
    /// The device as ssh takes it.
    pub dut_host: Option<String>,
    /// The driver of that device.
    pub dut_driver: Option<String>,
    /// Options of the driver.
    pub dut_options: Vec<(String, String)>,
    /// Whether everything runs on the device by sudo.
    pub dut_sudo: bool,
}

impl Target {
    /// A device of the lab and a line rate, without any other wishes.
    #[must_use]
    pub fn lab(dut: DutSpec, line_rate: f64) -> Self {
        Self {
            dut: Some(dut),
            ports: None,
            engine: EngineName::Auto,
            port0: None,
            port1: None,
            gateways: None,
            gateway_macs: None,
            force: 0,
            line_rate: Some(line_rate),
            cores: None,
            receive_cores: None,
            dut_core: None,
            dut_commands: Vec::new(),
            dut_host: None,
            dut_driver: None,
            dut_options: Vec::new(),
            dut_sudo: false,
        }
    }

    /// The same, with this device of the lab where none is named.
    ///
    /// # Errors
    /// When there is no such device.
    pub fn or_dut(&self, name: &str) -> Result<Self, SpecError> {
        let dut = match (&self.dut, &self.ports) {
            (None, None) => Some(name.parse()?),
            (dut, _) => dut.clone(),
        };
        Ok(Self { dut, ..self.clone() })
    }
}

/// What sends and receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineName {
    /// The kernel where each port can transmit redirected frames, else AF_XDP sockets.
    Auto,
    /// The kernel.
    Xdp,
    /// AF_XDP sockets at interfaces of the kernel.
    AfXdp,
    /// DPDK.
    Dpdk,
    /// Shared memory, by ourselves.
    Memif,
}

impl EngineName {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Auto, Self::Xdp, Self::AfXdp, Self::Dpdk, Self::Memif];

    /// Whether its ports are in user space, and not interfaces of the kernel.
    #[must_use]
    pub fn is_in_user_space(self) -> bool {
        matches!(self, Self::Dpdk | Self::Memif)
    }

    /// The largest frame that it sends by interfaces of the kernel, FCS included.
    #[must_use]
    pub fn max_frame(self) -> usize {
        match self {
            Self::Xdp => engine::xdp::MAX_FRAME,
            Self::Auto | Self::AfXdp => engine::af_xdp::MAX_FRAME,
            Self::Dpdk | Self::Memif => engine::user_space::MAX_FRAME,
        }
    }

    /// What users call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Xdp => "xdp",
            Self::AfXdp => "af_xdp",
            Self::Dpdk => "dpdk",
            Self::Memif => "memif",
        }
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for EngineName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|engine| engine.name() == text);
        found.ok_or_else(|| format!("'{text}' is no engine: there are auto, xdp, af_xdp, dpdk and memif"))
    }
}
