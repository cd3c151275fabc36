//! Devices: what drives them, and which worker serves which queue.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::table::{self, Column};

/// All devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hardware {
    /// By number.
    pub devices: Vec<Device>,
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
    /// Whether there is somebody at its other end, and why not.
    pub link: Link,
    /// By receive queue, the worker that serves it.
    pub placement: Vec<usize>,
    /// Transmit queues: one for each worker.
    pub transmit_queues: usize,
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
                device.driver.clone(),
                match &device.link {
                    Link::Up => "up".to_owned(),
                    Link::Down(reason) => format!("down: {reason}"),
                },
                placed.join(", "),
                device.transmit_queues.to_string(),
            ]
        });
        table::write(formatter, &columns, rows)
    }
}
