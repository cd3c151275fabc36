//! Learning bridges (IEEE 802.1Q, 8.7 to 8.9): interfaces and their roles enter, bridges with their ports
//! and the table of their stations leave.

pub mod stations;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::dataplane::forwarding::{Interface, Role};

pub use self::stations::{Learned, Station, Stations};

/// How a bridge is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a station is known that says nothing (802.1Q, 8.8.3: 10 s to 1,000,000 s); to the second.
    pub ageing: Duration,
    /// The most stations that are known.
    pub stations: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { ageing: Duration::from_secs(300), stations: 16_384 }
    }
}

/// A bridge as the workers see it.
#[derive(Clone, Debug)]
pub struct Bridge {
    /// Its number, as in [`Role::Bridge`].
    pub domain: u16,
    /// Its interfaces that are up.
    pub ports: Vec<u16>,
    /// Who is where.
    pub stations: Arc<Stations>,
}

impl PartialEq for Bridge {
    /// Whether it is the same table with the same ports.
    fn eq(&self, other: &Self) -> bool {
        (self.domain, &self.ports) == (other.domain, &other.ports)
            && Arc::ptr_eq(&self.stations, &other.stations)
    }
}

impl Eq for Bridge {}

/// The bridges of `interfaces`, in the order of their numbers. Those that were there before keep their
/// stations, but for those of ports that are no longer there or down; and lose all when `settings` change. It is
/// `now` by the router's clock.
pub(crate) fn of(
    interfaces: &[Interface],
    before: &[Bridge],
    settings: &HashMap<u16, Settings>,
    now: Duration,
) -> Vec<Bridge> {
    let mut domains = BTreeMap::<u16, Vec<u16>>::new();
    for (number, interface) in interfaces.iter().enumerate() {
        if let Role::Bridge(domain) = interface.role {
            let ports = domains.entry(domain).or_default();
            if interface.up {
                ports.push(number as u16);
            }
        }
    }
    let bridge = |(domain, ports): (u16, Vec<u16>)| {
        let settings = settings.get(&domain).copied().unwrap_or_default();
        let known = before.iter().find(|bridge| bridge.domain == domain).map(|bridge| &bridge.stations);
        let stations = match known.filter(|stations| stations.settings() == settings) {
            Some(stations) => Arc::clone(stations),
            None => Arc::new(Stations::new(settings, now)),
        };
        stations.retain(|station| ports.contains(&station.interface));
        Bridge { domain, ports, stations }
    };
    domains.into_iter().map(bridge).collect()
}
