//! What makes fastpath the device that was asked for: the device's parameters and its place enter; its configuration
//! leaves, and the access list and the table of routes that it names.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;

use engine::user_space::room;
use lab::{SIDES, Side};
use wire::MacAddress;

use crate::access_list::{MOST_STATES, Rules};
use crate::fastpath::has_shortcuts;
use crate::program::{MODE, ROUTES, Site, VLAN};
use crate::routes;
use crate::workers::Spread;

/// What it is unless asked for something else.
pub(crate) const ROUTER: &str = "router";
/// It learns where stations are.
const BRIDGE: &str = "bridge";
/// The name of its access list.
pub(super) const LIST: &str = "rules";
/// Bytes of a frame that an MTU does not count, FCS included.
const OVERHEAD: usize = wire::size::ETHERNET as usize;
/// The smallest MTU that it gets: a link's usual one.
const LEAST_MTU: usize = 1500;

/// What it is to do.
pub(super) struct Task {
    pub mode: String,
    /// The tag that frames have.
    pub vlan: Option<u16>,
    /// The rules of its access list, if it has one; they are for the process to write, as its command line has no room
    /// for thousands.
    pub rules: Option<Rules>,
    /// Routes of a table, which are for the process to write, too.
    pub routes: Option<usize>,
    /// How packets come to its workers.
    pub spread: Spread,
    /// Whether the kernel forwards by itself what needs no worker.
    pub shortcuts: bool,
}

impl Task {
    /// What the parameters of the device say.
    pub fn of(parameters: &BTreeMap<String, String>) -> Self {
        let text = |key: &str| parameters.get(key).map(String::as_str);
        Self {
            mode: text(MODE).unwrap_or_default().to_owned(),
            vlan: text(VLAN).and_then(|id| id.parse().ok()),
            // What is wrong was said when they were read.
            rules: Rules::of(parameters).ok().flatten(),
            routes: text(ROUTES).and_then(routes::count),
            spread: Spread::of(parameters),
            shortcuts: has_shortcuts(parameters),
        }
    }

    pub fn is_router(&self) -> bool {
        self.mode == ROUTER
    }

    /// What it calls the interface at the tester's port `number` that does its task.
    pub fn interface(&self, ports: Ports, number: usize) -> String {
        let device = ports.interface(number);
        self.vlan.map_or_else(|| device.clone(), |id| format!("{device}.{id}"))
    }
}

/// What it sends and receives by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ports {
    /// Memory that it shares with the tester.
    Memif,
    /// The interfaces of the lab's device.
    AfXdp,
}

/// Where it listens.
pub(super) struct Listening {
    /// For questions: a file, or `@` and the name of an abstract socket.
    pub control: String,
    /// For the other end of each memif, if it has memifs: the names of abstract sockets.
    pub memifs: [String; 2],
}

impl Ports {
    /// What the router calls its device at the tester's port `number`.
    fn interface(self, number: usize) -> String {
        match self {
            Self::Memif => format!("memif{number}"),
            Self::AfXdp => SIDES[number].interface.to_owned(),
        }
    }

    /// What it sends and receives by there, from so many `queues`.
    fn device(self, task: &Task, number: usize, queues: usize, site: &Site, at: &Listening) -> String {
        match self {
            Self::Memif => format!(
                "memif:socket=@{},role=server,queues={},buffer={}",
                at.memifs[number],
                queues,
                room(site.max_frame_size),
            ),
            Self::AfXdp => {
                let queues = if queues == 1 { String::new() } else { format!(",queues={queues}") };
                let shortcuts = if task.shortcuts { ",shortcuts=true" } else { "" };
                format!("af_xdp:{}{queues}{shortcuts}", SIDES[number].interface)
            }
        }
    }

    /// What its worker does at `site` while no packet comes. At interfaces of the kernel it shares its core with the
    /// threads that hand it the packets and with those that set up and take down the lab. It goes before them, and
    /// leaves them the core while it has nothing to do: otherwise they would receive all the time under a load that is
    /// too high, and it would forward next to nothing. The same where a worker shares its core with the tester.
    fn idle(self, site: &Site) -> &'static str {
        match self {
            Self::Memif if !site.shared => "poll",
            Self::Memif | Self::AfXdp => "sleep",
        }
    }
}

/// What makes it do its `task` by `ports` and listen `at` these places, between the `tester`'s two addresses, but for the
/// access list and the table of routes.
pub(super) fn configuration(
    task: &Task,
    ports: Ports,
    at: &Listening,
    site: &Site,
    tester: [MacAddress; 2],
) -> String {
    let Spread { queues, rss } = task.spread;
    let queues = queues.unwrap_or(site.queues);
    // Each worker knows its own states alone: both directions of a flow come to one.
    let keeps_states = task.rules.is_some_and(|rules| rules.keeps_states);
    let rss = rss || (keeps_states && site.cores.len() > 1);
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "control = {{ socket = \"{}\" }}\n\
         workers = {{ cores = {:?}, idle = \"{}\", precedence = \"urgent\" }}\n",
        at.control,
        site.cores,
        ports.idle(site)
    );
    for (number, side) in SIDES.into_iter().enumerate() {
        let _ = write!(
            text,
            "\n[[interface]]\nname = \"{}\"\ndevice = \"{}\"\nmac = \"{}\"\nmtu = {}\n{}",
            ports.interface(number),
            ports.device(task, number, queues, site, at),
            side.interface_mac,
            site.max_frame_size.saturating_sub(OVERHEAD).max(LEAST_MTU),
            if rss { "rss = true\n" } else { "" },
        );
        if let Some(id) = task.vlan {
            let _ = writeln!(text, "[[interface.vlan]]\nid = {id}");
        }
        text += &role(task, ports, number, side);
    }
    if task.is_router() {
        for ((number, side), mac) in SIDES.into_iter().enumerate().zip(tester) {
            text += &beyond(&task.interface(ports, number), side, mac);
        }
        if task.routes.is_some() {
            // The first is the tester's own address.
            let gateways = (1..routes::GATEWAYS).map(|number| routes::gateway(SIDES[1], number).to_string());
            text.extend(gateways.map(|gateway| neighbour(&task.interface(ports, 1), &gateway, tester[1])));
        }
    }
    text
}

/// What the interface at port `number` does.
fn role(task: &Task, ports: Ports, number: usize, side: Side) -> String {
    match task.mode.as_str() {
        ROUTER => {
            let own = side.interface_addresses.into_iter().zip(side.prefixes);
            let own: Vec<_> = own.map(|(address, prefix)| format!("\"{address}/{prefix}\"")).collect();
            let lists = task.rules.into_iter().flat_map(|rules| rules.held_against(number));
            let lists: String =
                lists.map(|direction| format!("access-list-{direction} = \"{LIST}\"\n")).collect();
            format!("addresses = [{}]\n{lists}", own.join(", "))
        }
        BRIDGE => "bridge = \"lab\"\n".to_owned(),
        _ => format!("cross-connect = \"{}\"\n", task.interface(ports, 1 - number)),
    }
}

/// What names the `file` of a table of routes. It stands before all else of a configuration.
pub(super) fn with_table(file: &str) -> String {
    format!("routes-file = \"{file}\"\n")
}

/// The access list of these rules.
pub(super) fn access_list(rules: Rules) -> String {
    let deny = |host: IpAddr| {
        let length = if host.is_ipv4() { 32 } else { 128 };
        format!("    {{ action = \"deny\", source = \"{host}/{length}\" }},\n")
    };
    let denied: String = rules.denied().map(deny).collect();
    let (last, states) = if rules.keeps_states {
        ("keep-state", format!("\n[states]\nmaximum = {MOST_STATES}\n"))
    } else {
        ("permit", String::new())
    };
    format!(
        "{states}\n[[access-list]]\nname = \"{LIST}\"\nrules = [\n{denied}    {{ action = \"{last}\" }},\n]\n"
    )
}

/// A table of `count` routes, whose gateways are at the tester's port 1.
pub(super) fn table(count: usize) -> String {
    routes::text(count, SIDES[1], |route, gateway| {
        format!("{}/{} via {gateway}", route.network, route.length)
    })
}

/// The tester beyond an interface at `mac`, and the networks beyond that.
fn beyond(interface: &str, side: Side, mac: MacAddress) -> String {
    let mut text = String::new();
    for hop in side.port_addresses {
        text += &neighbour(interface, &hop.to_string(), mac);
        for (network, prefix) in side.networks {
            if network.is_ipv4() == hop.is_ipv4() {
                let _ = write!(
                    text,
                    "\n[[route]]\nprefix = \"{network}/{prefix}\"\n\
                     via = [{{ gateway = \"{hop}\", interface = \"{interface}\" }}]\n"
                );
            }
        }
    }
    text
}

fn neighbour(interface: &str, address: &str, mac: MacAddress) -> String {
    format!("\n[[neighbour]]\ninterface = \"{interface}\"\naddress = \"{address}\"\nmac = \"{mac}\"\n")
}

#[cfg(test)]
mod tests {
    use fastpath::config::{Config, Role, Route};

    use super::*;

    const TESTER: [MacAddress; 2] = [MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 1, 1])];

    fn task(mode: &str) -> Task {
        let (vlan, rules, routes, spread, shortcuts) = (None, None, None, Spread::default(), false);
        Task { mode: mode.to_owned(), vlan, rules, routes, spread, shortcuts }
    }

    const TABLE: &str = "/proc/self/fd/7";

    /// The text of a task at both kinds of ports, each with what it says.
    fn both(task: &Task, more: &str) -> [(String, Config); 2] {
        let site = Site { cores: vec![1, 3], shared: false, spare: None, queues: 2, max_frame_size: 9216 };
        let memifs = ["/one", "/two"].map(str::to_owned);
        let at = Listening { control: "@/three".to_owned(), memifs };
        [Ports::Memif, Ports::AfXdp].map(|ports| {
            let table = task.routes.map(|_| with_table(TABLE)).unwrap_or_default();
            let text = table + &configuration(task, ports, &at, &site, TESTER) + more;
            let config = Config::parse("device", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            (text, config)
        })
    }

    #[test]
    fn its_configuration_is_sound_in_every_mode() {
        for (text, config) in both(&task(ROUTER), "") {
            assert_eq!((config.interfaces.len(), config.neighbours.len()), (2, 4), "{text}");
            assert!(text.contains("48.0.0.0/8") && text.contains("mtu = 9198"), "{text}");
            assert_eq!(config.workers.cores, [1, 3]);
        }
        let spread = Spread { queues: Some(4), rss: true };
        for (text, config) in both(&Task { spread, ..task(ROUTER) }, "") {
            assert!(text.contains("queues=4") && config.interfaces.iter().all(|it| it.rss), "{text}");
        }
        let [_, (text, _)] = both(&Task { shortcuts: true, spread, ..task(ROUTER) }, "");
        assert!(text.contains("\"af_xdp:dut0,queues=4,shortcuts=true\""), "{text}");
        for (text, config) in both(&task("xconnect"), "") {
            assert_eq!((config.interfaces.len(), config.routes.len()), (2, 0), "{text}");
            assert!(matches!(config.interfaces[0].role, Role::CrossConnect(_)), "{text}");
        }
        for (text, config) in both(&task(BRIDGE), "") {
            assert!(config.interfaces.iter().all(|interface| interface.role == Role::Bridge(0)), "{text}");
        }
        for (denying, keeps_states) in [(0, false), (1000, true), (4999, false)] {
            let rules = Rules { denying, keeps_states };
            assert_eq!(rules.to_string().parse(), Ok(rules));
            let filtered = Task { rules: Some(rules), ..task(ROUTER) };
            for (_, config) in both(&filtered, &access_list(rules)) {
                let list = &config.access_lists[LIST];
                assert_eq!(list.len(), 2 * denying + 1);
                let keeps = list.last().unwrap().action == fastpath::acl::Action::KeepState;
                assert_eq!((keeps, config.states.maximum == MOST_STATES), (keeps_states, keeps_states));
                let filters = |at: usize| &config.interfaces[at].filters;
                let lists = |at| (filters(at).input.is_some(), filters(at).output.is_some());
                let at_each = if keeps_states { [(false, false), (true, true)] } else { [(true, false); 2] };
                assert_eq!([lists(0), lists(1)], at_each);
            }
        }
    }

    #[test]
    fn in_a_vlan_it_does_the_same_by_the_tagged_interfaces() {
        for mode in [ROUTER, BRIDGE, "xconnect"] {
            let tagged = Task { vlan: Some(100), ..task(mode) };
            for (text, config) in both(&tagged, "") {
                let [device, vlan, ..] = &config.interfaces[..] else { panic!("{text}") };
                assert_eq!(format!("{}.100", device.name), vlan.name);
                assert!(device.addresses.is_empty() && device.role == Role::Router, "{text}");
                assert_eq!(vlan.addresses.len(), if mode == ROUTER { 2 } else { 0 });
                assert_eq!(vlan.role == Role::Router, mode == ROUTER, "{text}");
            }
        }
    }

    #[test]
    fn its_table_has_the_routes_and_gateways_that_the_configuration_knows() {
        for vlan in [None, Some(7)] {
            let full = Task { routes: Some(1000), vlan, ..task(ROUTER) };
            for (text, mut config) in both(&full, "") {
                assert_eq!(config.routes_file.as_deref(), Some(TABLE.as_ref()), "{text}");
                let (routes, neighbours) = (config.routes.len(), config.neighbours.len());
                config.add_table(TABLE, table(1000).as_bytes()).unwrap();
                assert_eq!((config.routes.len(), neighbours), (routes + 1000, 4 + 15));
                let default = config.routes.get("0.0.0.0/0".parse().unwrap());
                let Some(Route::Via(hops)) = default else { panic!("{default:?}") };
                assert!(hops[0].interface.starts_with(config.interfaces.last().unwrap().name.as_str()));
            }
        }
    }
}
