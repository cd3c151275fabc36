//! VPP as the device, where it is installed: a mode enters; its start-up configuration, the commands that make
//! it a router or a cross connect, and what it counts leave.
//!
//! Nothing asks for addresses at ports of DPDK, so its neighbours are static.

mod said;

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use lab::{InterfaceCounters, Namespace, SIDES, Side};
use programs::is_installed;
use results::record::NodeRuntimes;
pub use said::runtime;
use wire::MacAddress;

use super::private::{self, DIRECTORY, outside, socket};
use super::{MODE, ROUTES, Site};
use crate::access_list::{MOST_STATES, Rules};
use crate::routes;
use crate::workers::Spread;

/// What `--dut` calls it.
pub const NAME: &str = "vpp";
/// What it is unless asked for something else.
pub(super) const ROUTER: &str = "router";
/// The file of its table of routes, in its directory: commands.
const TABLE: &str = "routes.cli";
/// The file of its access list, there: one command.
const LIST: &str = "list.cli";
/// Its programs.
const EXECUTABLES: [&str; 2] = ["vpp", "vppctl"];
/// Where it listens for commands, there.
const COMMANDS: &str = "cli.sock";
/// The longest frame that it takes unless told otherwise, FCS included, and what of it an MTU does not count.
const LONGEST: usize = 9018;
const OVERHEAD: usize = wire::size::ETHERNET as usize;
/// The number of its access list, the first, and what it answers once it has that.
const NUMBER: u32 = 0;
const ACCEPTED: &str = "ACL index:0";
/// The most letters of a refusal that are told: one of a table says the same of every line.
const MOST_SAID: usize = 500;
/// What to do where it does not start, or refuses a command.
pub(super) const REMEDY: &str = "it is started as VPP 21.06 to 26.06 are: `vpp --version` says which this is";
/// Seconds that the answer to a command may take, and to that which reads a table, on a machine that others share.
const PATIENCE: u32 = 30;
const PATIENCE_WITH_A_TABLE: u32 = 120;

/// VPP, which may run.
pub(super) struct Vpp {
    namespace: Namespace,
    mode: String,
    /// Routes of its table.
    routes: Option<usize>,
    /// Its access list.
    rules: Option<Rules>,
    /// How packets come to its workers.
    spread: Spread,
}

/// Why it cannot be started here, with the remedy.
pub fn refusal() -> Option<String> {
    let missing = EXECUTABLES.into_iter().find(|program| !is_installed(program))?;
    Some(format!(
        "{missing} is not installed: install VPP (packages vpp and vpp-plugin-core of fd.io), or choose --dut testpmd"
    ))
}

impl Vpp {
    /// A place for it, where it will do as `parameters` say.
    ///
    /// # Errors
    /// When it is not installed, or namespaces cannot be made.
    pub fn prepare(parameters: &BTreeMap<String, String>) -> Result<Self> {
        if let Some(refusal) = refusal() {
            bail!(refusal);
        }
        let mode = parameters.get(MODE).cloned().unwrap_or_default();
        let routes = parameters.get(ROUTES).and_then(|routes| routes::count(routes));
        // What is wrong was said when they were read.
        let rules = Rules::of(parameters).ok().flatten();
        Ok(Self { namespace: private::create()?, mode, routes, rules, spread: Spread::of(parameters) })
    }

    /// Where it is to be started.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Its addresses at port 0 and port 1, where frames are addressed to it.
    pub fn next_hops(&self) -> Option<[MacAddress; 2]> {
        (self.mode == ROUTER).then_some(SIDES.map(|side| side.interface_mac))
    }

    /// Whether the process `pid` listens for commands.
    pub fn is_ready(&self, pid: u32) -> bool {
        ask(pid, "show version").is_ok()
    }

    /// Makes the process `pid`, which is ready, a device between two memifs whose other ends are the `tester`'s
    /// addresses. What it is then, for the record.
    ///
    /// # Errors
    /// What it refuses, with its words.
    pub fn configure(
        &self,
        pid: u32,
        site: &Site,
        tester: [MacAddress; 2],
    ) -> Result<BTreeMap<String, String>> {
        let mut commands = commands(&self.mode, self.spread, site, tester);
        let write = |name: &str, text: String| {
            let file = outside(pid, name);
            fs::write(&file, text).with_context(|| format!("cannot write {file}"))
        };
        if let Some(rules) = self.rules {
            write(LIST, access_list(rules))?;
            commands.push(format!("exec {DIRECTORY}/{LIST}"));
            let held = [0, 1].into_iter().flat_map(|number| {
                rules.held_against(number).iter().map(move |direction| (interface(number), direction))
            });
            commands.extend(held.map(|(interface, direction)| {
                format!("set acl-plugin interface {interface} {direction}put acl {NUMBER}")
            }));
        }
        if let Some(count) = self.routes {
            write(TABLE, table(count))?;
            commands.extend(gateways(tester[1]));
            commands.push(format!("exec {DIRECTORY}/{TABLE}"));
        }
        for command in &commands {
            // It succeeds whatever happens, but says why it did not.
            let patience = if command.starts_with("exec ") { PATIENCE_WITH_A_TABLE } else { PATIENCE };
            let said = ask_within(pid, command, patience)?;
            if !matches!(said.trim(), "" | ACCEPTED) {
                let said: String = said.trim().replace('\n', " ").chars().take(MOST_SAID).collect();
                bail!("VPP refuses '{command}': {said}; {REMEDY}");
            }
        }
        let version = ask(pid, "show version")?;
        let version = ("version".to_owned(), version.lines().next().unwrap_or_default().to_owned());
        let commands = ("commands".to_owned(), commands.join("\n"));
        Ok(BTreeMap::from([version, commands]))
    }

    /// What the process `pid` counted at its two interfaces since it started.
    pub fn counters(&self, pid: u32) -> Result<[InterfaceCounters; 2]> {
        let (shown, errors) = (ask(pid, "show interface")?, ask(pid, "show errors")?);
        Ok([0, 1].map(|number| {
            said::interface(&shown, &errors, &interface(number), format!("{NAME}'s port {number}"))
        }))
    }

    /// What the nodes of the process `pid` did since it started.
    pub fn nodes(&self, pid: u32) -> Result<NodeRuntimes> {
        Ok(runtime(&ask(pid, "show runtime")?))
    }
}

/// Its command line, which is its start-up configuration: in ordinary memory, with no plugins but those that it needs.
/// Workers forward, and the main thread is out of their way; with no core for that, the main thread forwards.
pub(super) fn words(site: &Site, parameters: &BTreeMap<String, String>) -> Vec<String> {
    let workers = site.cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let cores = match site.spare {
        Some(spare) => format!("main-core {spare} corelist-workers {workers}"),
        None => format!("main-core {workers}"),
    };
    let rules = Rules::of(parameters).ok().flatten();
    // Counters of routes are in the segment of statistics, whose usual 32 MB are too few for a million.
    let memory = if parameters.contains_key(ROUTES) || rules.is_some() {
        "memory { main-heap-size 2G main-heap-page-size default } statseg { size 1G }"
    } else {
        "memory { main-heap-size 512M main-heap-page-size default }"
    };
    let filter = match rules {
        Some(rules) if rules.keeps_states => format!(
            "plugin acl_plugin.so {{ enable }} }} acl-plugin {{ connection count max {MOST_STATES} \
             connection hash buckets {MOST_STATES}"
        ),
        Some(_) => "plugin acl_plugin.so { enable }".to_owned(),
        None => String::new(),
    };
    // Before other processes on its core, as testpmd.
    let line = format!(
        "nice -n -20 vpp unix {{ nodaemon nosyslog runtime-dir {DIRECTORY} cli-listen {DIRECTORY}/{COMMANDS} }} \
         cpu {{ {cores} }} {memory} \
         buffers {{ page-size default }} \
         plugins {{ plugin default {{ disable }} plugin memif_plugin.so {{ enable }} {filter} }}"
    );
    line.split_whitespace().map(str::to_owned).collect()
}

/// The commands for a table of `count` routes, whose gateways are at the tester's port 1.
fn table(count: usize) -> String {
    let interface = interface(1);
    routes::text(count, SIDES[1], |route, gateway| {
        format!("ip route add {}/{} via {gateway} {interface}", route.network, route.length)
    })
}

/// The command for an access list. A rule is of one IP version.
fn access_list(rules: Rules) -> String {
    let of_all = |host: IpAddr| if host.is_ipv4() { "0.0.0.0/0" } else { "::/0" };
    let deny = |host: IpAddr| {
        format!("deny src {host}/{} dst {} , ", if host.is_ipv4() { 32 } else { 128 }, of_all(host))
    };
    let denied: String = rules.denied().map(deny).collect();
    let last = if rules.keeps_states { "permit+reflect" } else { "permit" };
    format!(
        "set acl-plugin acl {denied}{last} src 0.0.0.0/0 dst 0.0.0.0/0 , {last} src ::/0 dst ::/0 tag rules\n"
    )
}

/// The commands that say where the gateways are; the first is the tester itself, and known.
fn gateways(mac: MacAddress) -> impl Iterator<Item = String> {
    let gateways = (1..routes::GATEWAYS).map(|number| routes::gateway(SIDES[1], number));
    gateways.map(move |gateway| format!("set ip neighbor {} {gateway} {mac} static", interface(1)))
}

/// What makes it do as `mode` and `spread` say, between the `tester`'s two addresses.
///
/// Each of its threads sends by a queue of its own, as far as the tester has one for it. RSS in software is a hand-off to
/// the workers, of which all take part.
fn commands(mode: &str, spread: Spread, site: &Site, tester: [MacAddress; 2]) -> Vec<String> {
    let mut commands = Vec::new();
    let workers = site.cores.len();
    for (number, side) in SIDES.into_iter().enumerate() {
        let (id, name, queues) = (number + 1, interface(number), spread.queues.unwrap_or(site.queues));
        let send = if workers > 1 { workers + 1 } else { queues };
        commands.push(format!("create memif socket id {id} filename {DIRECTORY}/{}", socket(number)));
        commands.push(format!(
            "create interface memif id 0 socket-id {id} hw-addr {} rx-queues {queues} tx-queues {send} master",
            side.interface_mac
        ));
        if site.max_frame_size > LONGEST {
            commands.push(format!("set interface mtu {} {name}", site.max_frame_size - OVERHEAD));
        }
        if spread.rss && workers > 1 {
            let last = workers - 1;
            commands.push(format!("set interface handoff {name} workers 0-{last} symmetrical"));
        }
        commands.push(format!("set interface state {name} up"));
    }
    if mode == ROUTER {
        for ((number, side), mac) in SIDES.into_iter().enumerate().zip(tester) {
            commands.extend(routes(&interface(number), side, mac));
        }
    } else {
        let [zero, one] = [0, 1].map(interface);
        commands.push(format!("set interface l2 xconnect {zero} {one}"));
        commands.push(format!("set interface l2 xconnect {one} {zero}"));
    }
    commands
}

/// The addresses of an interface, the tester's beyond it at `mac`, and the networks beyond that.
fn routes(interface: &str, side: Side, mac: MacAddress) -> Vec<String> {
    let own = side.interface_addresses.into_iter().zip(side.prefixes);
    let own = own.map(|(address, prefix)| format!("set interface ip address {interface} {address}/{prefix}"));
    let beyond = side.port_addresses.into_iter().flat_map(|hop| {
        let neighbour = format!("set ip neighbor {interface} {hop} {mac} static");
        let networks =
            side.networks.into_iter().filter(move |(network, _)| network.is_ipv4() == hop.is_ipv4());
        let routes = networks
            .map(move |(network, prefix)| format!("ip route add {network}/{prefix} via {hop} {interface}"));
        [neighbour].into_iter().chain(routes)
    });
    own.chain(beyond).collect()
}

/// What VPP calls the interface at the tester's port `number`.
fn interface(number: usize) -> String {
    format!("memif{}/0", number + 1)
}

/// What the process `pid` answers to `command`.
fn ask(pid: u32, command: &str) -> Result<String> {
    ask_within(pid, command, PATIENCE)
}

/// As [`ask`], within so many seconds.
fn ask_within(pid: u32, command: &str, patience: u32) -> Result<String> {
    let patience = patience.to_string();
    let socket = outside(pid, COMMANDS);
    // As VPP itself: beside threads that never sleep an ordinary process hardly gets a turn.
    let words = ["-n", "-20", "timeout", &patience, "vppctl", "-s", &socket];
    let words = words.into_iter().chain(command.split_whitespace());
    let asked = Command::new("nice").args(words).stdin(Stdio::null()).output();
    let output = asked.with_context(|| format!("cannot run vppctl {command}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(anyhow!(
            "VPP does not answer to '{command}' within {patience} s: {} {said}",
            output.status
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).replace('\r', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTER: [MacAddress; 2] = [MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 1, 1])];

    fn site(spare: Option<usize>, max_frame_size: usize) -> Site {
        Site { cores: vec![3], shared: false, spare, queues: 2, max_frame_size }
    }

    const ALONE: Spread = Spread { queues: None, rss: true };

    #[test]
    fn several_workers_have_cores_and_queues_and_share_the_flows() {
        let site = Site { cores: vec![3, 2], ..site(Some(1), 64) };
        let line = words(&site, &BTreeMap::new()).join(" ");
        assert!(line.contains("cpu { main-core 1 corelist-workers 3,2 }"), "{line}");
        let text = commands(ROUTER, Spread { queues: Some(4), rss: true }, &site, TESTER).join("\n");
        assert!(text.contains("rx-queues 4 tx-queues 3 master"), "{text}");
        assert!(text.contains("\nset interface handoff memif2/0 workers 0-1 symmetrical\n"), "{text}");
    }

    #[test]
    fn a_worker_forwards_on_the_device_s_core_where_another_is_spare() {
        let line = |spare| words(&site(spare, 64), &BTreeMap::new()).join(" ");
        assert!(line(Some(1)).contains("cpu { main-core 1 corelist-workers 3 }"), "{}", line(Some(1)));
        assert!(line(None).contains("cpu { main-core 3 } memory"), "{}", line(None));
        for part in ["nodaemon", "plugin default { disable }", "cli-listen /dev/shm/cli.sock"] {
            assert!(line(None).contains(part), "no {part}");
        }
    }

    #[test]
    fn a_router_gets_addresses_neighbours_and_routes_and_a_cross_connect_none() {
        let interfaces = |mtu: [&str; 2]| {
            format!(
                "create memif socket id 1 filename /dev/shm/memif0.sock
create interface memif id 0 socket-id 1 hw-addr 02:4c:6e:72:01:01 rx-queues 2 tx-queues 2 master
{}set interface state memif1/0 up
create memif socket id 2 filename /dev/shm/memif1.sock
create interface memif id 0 socket-id 2 hw-addr 02:4c:6e:72:02:01 rx-queues 2 tx-queues 2 master
{}set interface state memif2/0 up",
                mtu[0], mtu[1]
            )
        };
        let router = commands(ROUTER, ALONE, &site(None, 9018), TESTER).join("\n");
        let routes = "
set interface ip address memif1/0 100.65.1.1/24
set interface ip address memif1/0 2001:2:0:1::1/64
set ip neighbor memif1/0 100.65.1.2 02:00:00:00:00:01 static
ip route add 16.0.0.0/8 via 100.65.1.2 memif1/0
ip route add 198.18.0.0/16 via 100.65.1.2 memif1/0
set ip neighbor memif1/0 2001:2:0:1::2 02:00:00:00:00:01 static
ip route add 2001:2:0:16::/64 via 2001:2:0:1::2 memif1/0
set interface ip address memif2/0 100.65.2.1/24
set interface ip address memif2/0 2001:2:0:2::1/64
set ip neighbor memif2/0 100.65.2.2 02:00:00:00:01:01 static
ip route add 48.0.0.0/8 via 100.65.2.2 memif2/0
ip route add 198.19.0.0/16 via 100.65.2.2 memif2/0
set ip neighbor memif2/0 2001:2:0:2::2 02:00:00:00:01:01 static
ip route add 2001:2:0:48::/64 via 2001:2:0:2::2 memif2/0";
        assert_eq!(router, interfaces(["", ""]) + routes);
        let jumbo = ["set interface mtu 9198 memif1/0\n", "set interface mtu 9198 memif2/0\n"];
        let connected = "
set interface l2 xconnect memif1/0 memif2/0
set interface l2 xconnect memif2/0 memif1/0";
        assert_eq!(
            commands("xconnect", ALONE, &site(None, 9216), TESTER).join("\n"),
            interfaces(jumbo) + connected
        );
    }
    #[test]
    fn a_table_is_commands_in_a_file_and_its_gateways_are_known() {
        let table = table(1000);
        assert_eq!(table.lines().count(), 1000);
        assert!(table.starts_with("ip route add 0.0.0.0/0 via 100.65.2.2 memif2/0\n"), "{}", &table[..100]);
        let known: Vec<String> = gateways(TESTER[1]).collect();
        assert_eq!(
            (known.len(), known[14].as_str()),
            (15, "set ip neighbor memif2/0 100.65.2.17 02:00:00:00:01:01 static")
        );
        let words = words(&site(None, 64), &BTreeMap::from([(ROUTES.to_owned(), "1k".to_owned())])).join(" ");
        assert!(words.contains("main-heap-size 2G") && words.contains("statseg { size 1G }"), "{words}");
    }

    #[test]
    fn an_access_list_is_one_command_and_has_its_plugin() {
        let rules = |denying, keeps_states| Rules { denying, keeps_states };
        assert_eq!(
            access_list(rules(1, true)),
            "set acl-plugin acl deny src 10.0.0.0/32 dst 0.0.0.0/0 , deny src fd00::/128 dst ::/0 , \
             permit+reflect src 0.0.0.0/0 dst 0.0.0.0/0 , permit+reflect src ::/0 dst ::/0 tag rules\n"
        );
        let stateless =
            "set acl-plugin acl permit src 0.0.0.0/0 dst 0.0.0.0/0 , permit src ::/0 dst ::/0 tag rules\n";
        assert_eq!(access_list(rules(0, false)), stateless);
        let line = |key: &str, value: &str| {
            words(&site(None, 64), &BTreeMap::from([(key.to_owned(), value.to_owned())])).join(" ")
        };
        assert!(line("acl", "10").ends_with("plugin acl_plugin.so { enable } }"), "{}", line("acl", "10"));
        let keeping = line("states", "on");
        assert!(keeping.contains("acl-plugin { connection count max 1048576 "), "{keeping}");
        assert!(!words(&site(None, 64), &BTreeMap::new()).join(" ").contains("acl"));
    }
}
