//! Where a network card is: an interface's name enters; its NUMA node and the interrupts of its queues leave.

use results::record::PortInterrupt;

use crate::{System, parse_list};

/// A card, as its interface shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card {
    /// The NUMA node that it is attached to; absent where the kernel names none, as on machines with one.
    pub node: Option<usize>,
    /// Its interrupts, one for each queue with most drivers; none where the interface is no card's.
    pub interrupts: Vec<PortInterrupt>,
}

/// Reads it.
pub fn read(system: &System, interface: &str) -> Card {
    // A name with a path in it is no interface's.
    if interface.is_empty() || interface.contains('/') || interface.starts_with('.') {
        return Card::default();
    }
    let device = format!("sys/class/net/{interface}/device");
    // A virtio device is a child of the one on the bus.
    let places = [device.clone(), format!("{device}/..")];
    let numbers = places.iter().map(|place| system.entries(&format!("{place}/msi_irqs")));
    let numbers: Vec<u32> = numbers
        .flat_map(|names| names.into_iter().filter_map(|name| name.parse().ok()).collect::<Vec<_>>())
        .collect();
    let table = system.text("proc/interrupts").unwrap_or_default();
    // Of the cores that may serve it the kernel chooses one mostly, and says so.
    let cores = |number: u32| {
        let read = |file: &str| system.text(&format!("proc/irq/{number}/{file}"));
        read("effective_affinity_list").or_else(|| read("smp_affinity_list"))
    };
    let interrupt = |number: u32| {
        Some(PortInterrupt { number, name: name(&table, number)?, cores: parse_list(&cores(number)?) })
    };
    let mut interrupts: Vec<PortInterrupt> = numbers.into_iter().filter_map(interrupt).collect();
    interrupts.sort_by_key(|interrupt| interrupt.number);
    Card { node: places.iter().find_map(|place| system.node(place)), interrupts }
}

/// What the line of this interrupt in `/proc/interrupts` ends with: its name, like `eth1-TxRx-0`.
fn name(table: &str, number: u32) -> Option<String> {
    let line = table.lines().find(|line| {
        let first = line.split(':').next().unwrap_or_default();
        first.trim().parse() == Ok(number)
    })?;
    line.split_whitespace().last().map(str::to_owned)
}
