//! Devices: what drives them, and which worker serves which queue; and taps, which the kernel sees.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::table::{self, Column};

/// All devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hardware {
    /// By number.
    pub devices: Vec<Device>,
    /// By the number of their interfaces.
    #[serde(default)]
    pub taps: Vec<Tap>,
}

/// What the kernel sees of an interface, and the frames that passed between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tap {
    /// The name of both.
    pub name: String,
    /// The kernel's index of it.
    pub kernel_index: u32,
    /// The kernel took them.
    pub to_kernel: u64,
    /// The kernel did not take them: somebody set it down or removed it, or there was no room.
    pub refused: u64,
    /// The kernel sent them.
    pub from_kernel: u64,
    /// The kernel sent them, but they were too long or there was no room.
    pub lost: u64,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// The name of its interface of untagged frames.
    pub name: String,
    /// Its number.
    pub index: usize,
    /// What drives it, as the configuration has it.
    pub driver: String,
    /// How the kernel serves an interface of its own by AF_XDP.
    #[serde(flatten)]
    pub copying: Option<Copying>,
    /// Whether packets can take shortcuts in the kernel, where they are to.
    #[serde(default)]
    pub shortcuts: Option<Shortcuts>,
    /// Whether there is somebody at its other end, and why not.
    pub link: Link,
    /// By receive queue, the worker that serves it.
    pub placement: Vec<usize>,
    /// Transmit queues: one for each worker.
    pub transmit_queues: usize,
    /// Where frames that one worker receives are handed to others (RSS).
    #[serde(default)]
    pub handoffs: Vec<Handoff>,
    /// The frames that it lost, if it counts them.
    #[serde(default)]
    pub lost: Option<Lost>,
}

impl fmt::Display for Link {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Up => formatter.write_str("its link is up"),
            Self::Down(reason) => write!(formatter, "its link is down: {reason}"),
        }
    }
}

/// How the kernel serves an interface by AF_XDP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copying {
    /// Whether frames stay where the interface has them; otherwise the kernel copies each from and to it.
    pub zero_copy: bool,
    /// Why it copies.
    #[serde(rename = "why_copies", default)]
    pub reason: Option<String>,
    /// Whether the driver works when a worker asks it to, instead of by interrupts.
    #[serde(default)]
    pub busy_polls: bool,
}

impl fmt::Display for Copying {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.zero_copy { "zero-copy" } else { "copy" })?;
        if let Some(reason) = &self.reason {
            write!(formatter, " ({reason})")?;
        }
        if self.busy_polls { formatter.write_str(", busy polling") } else { Ok(()) }
    }
}

/// Whether packets can take shortcuts from an interface and to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shortcuts {
    /// They can.
    On,
    /// They cannot, because of this.
    Off(String),
}

impl fmt::Display for Shortcuts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::On => formatter.write_str("shortcuts"),
            Self::Off(reason) => write!(formatter, "no shortcuts ({reason})"),
        }
    }
}

/// What the worker that polls a receive queue handed to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handoff {
    /// The receive queue.
    pub queue: usize,
    /// The worker that polls it.
    pub from: usize,
    /// The worker whose flows these are.
    pub to: usize,
    /// Frames that were handed over.
    pub frames: u64,
    /// Frames that were dropped, since the other worker had not kept up.
    pub congestion_drops: u64,
}

/// Frames that a device lost where no node saw them, since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Its receive queues had no room for them.
    pub missed: u64,
    /// It had no buffer for them.
    pub no_buffer: u64,
    /// They arrived broken, or did not fit in a buffer.
    pub errors: u64,
    /// It had taken them to send, and did not.
    pub unsent: u64,
}

/// Whether there is somebody at a device's other end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    /// There is.
    Up,
    /// There is not, because of this.
    Down(String),
}

impl fmt::Display for Hardware {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Column::{Left, Right};
        let columns = [
            Left("Name"),
            Right("Idx"),
            Left("Driver"),
            Left("Link"),
            Left("RX queue: worker"),
            Right("TX queues"),
        ];
        let rows = self.devices.iter().map(|device| {
            let placed = device.placement.iter().enumerate();
            let placed: Vec<_> = placed.map(|(queue, worker)| format!("{queue}: {worker}")).collect();
            vec![
                device.name.clone(),
                device.index.to_string(),
                device.driver_in_words(),
                match &device.link {
                    Link::Up => "up".to_owned(),
                    Link::Down(reason) => format!("down: {reason}"),
                },
                placed.join(", "),
                device.transmit_queues.to_string(),
            ]
        });
        table::write(formatter, &columns, rows)?;
        self.write_handoffs(formatter)?;
        self.write_lost(formatter)?;
        self.write_taps(formatter)
    }
}

impl Device {
    /// What drives it, and how the kernel does that.
    fn driver_in_words(&self) -> String {
        let copying = self.copying.iter().map(ToString::to_string);
        let how: Vec<_> = copying.chain(self.shortcuts.iter().map(ToString::to_string)).collect();
        if how.is_empty() { self.driver.clone() } else { format!("{}: {}", self.driver, how.join(", ")) }
    }
}

impl Hardware {
    fn write_handoffs(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Column::{Left, Right};
        let columns = [
            Left("Handoff"),
            Right("RX queue"),
            Right("From worker"),
            Right("To worker"),
            Right("Frames"),
            Right("Congestion drops"),
        ];
        let handoffs = |device: &'_ Device| {
            let name = device.name.clone();
            let rows = device.handoffs.clone().into_iter();
            rows.map(move |Handoff { queue, from, to, frames, congestion_drops }| {
                let numbers = [queue as u64, from as u64, to as u64, frames, congestion_drops];
                std::iter::once(name.clone()).chain(numbers.map(|number| number.to_string())).collect()
            })
        };
        let rows: Vec<_> = self.devices.iter().flat_map(handoffs).collect();
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(formatter)?;
        table::write(formatter, &columns, rows)
    }

    fn write_taps(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Column::{Left, Right};
        if self.taps.is_empty() {
            return Ok(());
        }
        let columns = [
            Left("Tap"),
            Right("Kernel idx"),
            Right("To kernel"),
            Right("Refused"),
            Right("From kernel"),
            Right("Lost"),
        ];
        let rows = self.taps.iter().map(|tap| {
            let Tap { name, kernel_index, to_kernel, refused, from_kernel, lost } = tap;
            let numbers = [u64::from(*kernel_index), *to_kernel, *refused, *from_kernel, *lost];
            std::iter::once(name.clone()).chain(numbers.map(|number| number.to_string())).collect()
        });
        writeln!(formatter)?;
        table::write(formatter, &columns, rows)
    }

    /// What the devices lost that count it.
    fn write_lost(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Column::{Left, Right};
        let counting = self.devices.iter().filter_map(|device| Some((&device.name, device.lost?)));
        let rows: Vec<Vec<String>> = counting
            .map(|(name, Lost { missed, no_buffer, errors, unsent })| {
                let numbers = [missed, no_buffer, errors, unsent].map(|number| number.to_string());
                std::iter::once(name.clone()).chain(numbers).collect()
            })
            .collect();
        if rows.is_empty() {
            return Ok(());
        }
        let columns = [
            Left("Lost at"),
            Right("RX missed"),
            Right("RX no buffer"),
            Right("RX errors"),
            Right("TX errors"),
        ];
        writeln!(formatter)?;
        table::write(formatter, &columns, rows)
    }
}
