//! A device under test that is another computer, or a virtual machine: the flags enter; it leaves checked, configured and
//! described, counts for the record, and is undone.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::Result;
use dut::program::Dut;
use dut::program::vm::Vm;
use dut::program::vpp;
use explain::queues::{self, Place, Reading, Source};
use lab::{InterfaceCounters, SIDES};
use remote::{Console, Counted, Counters, Device as Connected, Driver, Login, Plan, Shell, Ssh};
use results::record::{self, NodeRuntimes};
use wording::usage::{in_one_line, misuse};

use crate::remote_stacks::RemoteStacks;
use crate::target::{Ports, Remote};

/// The variable of the environment that has the password of who logs in at a virtual machine's console.
const PASSWORD: &str = "LINERATE_VM_PASSWORD";
/// Which interface of a device has the MAC address that stands in the place of MAC, on Linux and on systems with BSD's ifconfig.
const INTERFACE_WITH: &str = r#"if [ -d /sys/class/net ]; then
    for path in /sys/class/net/*; do
        [ ! -e "$path/device" ] || [ "$(cat "$path/address")" != MAC ] || echo "${path##*/}"
    done
else
    ifconfig -a | awk '/^[a-z]/ { sub(":", "", $1); name = $1 } tolower($2) == "MAC" { print name; exit }'
fi"#;

/// A configured device.
pub struct RemoteDevice {
    // A run reads its counters while others look at the testbed.
    connected: RefCell<Connected<Box<dyn Shell>>>,
    /// Whom ssh connects to, and whether everything there runs by sudo; nothing where the device goes with the run.
    way: Option<(String, bool)>,
    /// The driver's name.
    driver: String,
    /// The options that the user gave.
    given: BTreeMap<String, String>,
    fingerprint: BTreeMap<String, String>,
}

impl RemoteDevice {
    /// The device between `ports`, if a driver is to configure it. It gets to know the MAC addresses of these
    /// where its driver wants them.
    ///
    /// # Errors
    /// What is wrong with the driver, the connection or the device, with the remedy; nothing stays
    /// changed on the device.
    pub fn configure(ports: &Ports) -> Result<Option<Self>> {
        let Some(Remote { host, driver, options, sudo }) = &ports.remote else { return Ok(None) };
        let plan = plan(driver, options, Some(ports.names.each_ref().map(String::as_str)))?;
        if let (None, Some(gateways)) = (&ports.gateways, router_addresses(&plan)) {
            return Err(misuse(format!(
                "{host} is to be a router, which frames are addressed to: give --gateways {gateways}"
            )));
        }
        let checked = Connected::check(connect(host, *sudo)?, plan)?;
        let way = Some((host.clone(), *sudo));
        Self::apply(checked, options.iter().cloned().collect(), way).map(Some)
    }

    /// The virtual machine that `program` is, over its serial console, if a driver is to configure it.
    ///
    /// # Errors
    /// Why there is no shell, what is wrong with the driver or the guest, or what the guest did not get that was asked for.
    pub fn in_machine(program: &Dut) -> Result<Option<Self>> {
        let Some((vm, driver)) = program.machine().and_then(|vm| Some((vm, vm.driver()?))) else {
            return Ok(None);
        };
        let login = Login { user: vm.login().map(str::to_owned), password: std::env::var(PASSWORD).ok() };
        let is_alive = || program.check().is_ok();
        let console = Console::open(vm.take_console()?, GUEST, &login, vm.patience(), &is_alive);
        // What QEMU says is nearer to the cause.
        let mut shell: Box<dyn Shell> = match console {
            Ok(console) => Box::new(console),
            Err(error) => return Err(program.check().err().unwrap_or_else(|| error.into())),
        };
        let options = guest_options(vm, driver, &mut *shell)?;
        let plan = plan(driver, &options, None)?;
        let guest = Self::apply(Connected::check(shell, plan)?, BTreeMap::new(), None)?;
        vm.check(&guest.fingerprint)?;
        Ok(Some(guest))
    }

    /// Configures what was checked. `way` leads to a device that outlives the run, so that it must be undone.
    fn apply(
        mut connected: Connected<Box<dyn Shell>>,
        given: BTreeMap<String, String>,
        way: Option<(String, bool)>,
    ) -> Result<Self> {
        let driver = connected.plan().driver().name.clone();
        if way.is_some() && connected.needs_restart() {
            eprintln!("{} restarts with other settings, and at the end with its own again", connected.host());
        }
        let applied = connected.restart(&mut again(way.as_ref())).and_then(|()| connected.apply());
        if way.is_none() {
            connected.forget();
        }
        // From here on it is undone, whatever happens.
        let mut configured =
            Self { connected: RefCell::new(connected), way, driver, given, fingerprint: BTreeMap::new() };
        applied?;
        configured.fingerprint = configured.connected.get_mut().fingerprint()?;
        Ok(configured)
    }

    /// Runs the user's commands on the device, which nothing undoes.
    ///
    /// # Errors
    /// The first that failed.
    pub fn run(&self, commands: &[String]) -> Result<()> {
        let mut connected = self.connected.borrow_mut();
        commands.iter().try_for_each(|command| Ok(connected.run("--dut-command", command)?))
    }

    /// What the device is, as its driver found it.
    pub fn fingerprint(&self) -> &BTreeMap<String, String> {
        &self.fingerprint
    }

    /// Undoes what was configured.
    ///
    /// # Errors
    /// What could not be undone, and is to be undone by hand.
    pub fn undo(&self) -> Result<()> {
        let mut connected = self.connected.borrow_mut();
        undo(&mut connected)?;
        Ok(connected.wait_until_restored(&mut again(self.way.as_ref()))?)
    }

    /// What the device has counted so far.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn counters(&self) -> Result<Counted> {
        Ok(self.connected.borrow_mut().counters()?)
    }

    /// What the nodes of the device's graph have done so far; none where it is no graph of nodes.
    ///
    /// # Errors
    /// When it does not tell, or the connection is lost.
    pub fn nodes(&self) -> Result<NodeRuntimes> {
        Ok(vpp::runtime(&self.connected.borrow_mut().nodes()?))
    }

    /// Prepares to sample where it works, for that long.
    ///
    /// # Errors
    /// That its driver cannot, or that it cannot be reached by another connection.
    pub(crate) fn stacks(&self, duration: Duration) -> Result<RemoteStacks> {
        let way = self.way.as_ref().ok_or_else(|| {
            misuse("a guest on a console takes no stacks: there is one connection, which counts")
        })?;
        RemoteStacks::prepare(way, self.connected.borrow().plan(), duration)
    }

    /// The driver's name.
    pub fn driver(&self) -> &str {
        &self.driver
    }

    /// How it was reached and configured, for the record.
    pub fn describe_remote(&self) -> record::Remote {
        let connected = self.connected.borrow();
        let driver = connected.plan().driver();
        let options = connected.plan().values().map(|(name, value)| (name.to_owned(), value.to_owned()));
        record::Remote {
            host: connected.host().to_owned(),
            driver: driver.name.clone(),
            source: (!driver.is_builtin).then(|| driver.text.clone()),
            options: options.collect(),
            counters: BTreeMap::new(),
            cores: Vec::new(),
        }
    }

    /// The device, for the record.
    pub fn describe(&self) -> record::Dut {
        record::Dut {
            name: self.driver.clone(),
            parameters: self.given.clone(),
            configuration: self.fingerprint.clone(),
            remote: Some(Box::new(self.describe_remote())),
            ..record::Dut::default()
        }
    }
}

impl Drop for RemoteDevice {
    /// Undoes what was configured and is not undone yet; people are told what is left.
    fn drop(&mut self) {
        if let Err(error) = undo(self.connected.get_mut()) {
            eprintln!("linerate: {}", in_one_line(&error));
        }
    }
}

fn connect(host: &str, sudo: bool) -> remote::Result<Box<dyn Shell>> {
    Ok(Box::new(Ssh::connect(host, sudo)?))
}

/// How to connect again after a restart.
fn again(way: Option<&(String, bool)>) -> impl FnMut() -> remote::Result<Box<dyn Shell>> {
    move || match way {
        Some((host, sudo)) => connect(host, *sudo),
        None => Err(remote::Error::Misuse("a virtual machine is not restarted".to_owned())),
    }
}

fn undo(connected: &mut Connected<Box<dyn Shell>>) -> Result<()> {
    let failures = connected.undo()?;
    anyhow::ensure!(failures.is_empty(), "{}", failures.join("; "));
    Ok(())
}

/// What the record calls a guest.
const GUEST: &str = "virtual machine";

/// The options of `driver` for the guest that `vm` is: its interfaces, found by their MAC addresses where they must be
/// asked for, and the tester's ports.
///
/// # Errors
/// That an interface is not there, or the console is gone.
fn guest_options(vm: &Vm, driver: &str, shell: &mut dyn Shell) -> Result<Vec<(String, String)>> {
    let interfaces = match vm.interfaces() {
        Some(interfaces) => interfaces,
        None => {
            let [zero, one] = vm.macs();
            [interface_with(&zero, shell)?, interface_with(&one, shell)?]
        }
    };
    let [zero, one] = interfaces;
    let mut options = vec![("port0".to_owned(), zero), ("port1".to_owned(), one)];
    let known = Driver::open(driver)?;
    let mut add = |name: &str, value: String| {
        if known.has(name) {
            options.push((name.to_owned(), value));
        }
    };
    add("ip", "both".to_owned());
    for (name, side) in ["mac0", "mac1"].into_iter().zip(SIDES) {
        add(name, side.port_mac.to_string());
    }
    vm.further().into_iter().for_each(|further| add("last", further));
    Ok(options)
}

/// The interface of a guest whose MAC address is `mac`.
fn interface_with(mac: &str, shell: &mut dyn Shell) -> Result<String> {
    let answer = shell.run(&INTERFACE_WITH.replace("MAC", mac))?;
    let name = answer.stdout.split_whitespace().next().map(str::to_owned);
    name.ok_or_else(|| {
        anyhow::anyhow!(
            "the guest shows no interface with the address {mac} ({}): has it a driver for the card? Try nic=e1000",
            answer.said()
        )
    })
}

/// The driver `name` with `options`, and with the MAC addresses of the tester's `ports` where it wants them and
/// the options do not say them.
///
/// # Errors
/// What is wrong with the driver or the options.
pub fn plan(name: &str, options: &[(String, String)], ports: Option<[&str; 2]>) -> Result<Plan> {
    let driver = Driver::open(name)?;
    let mut options = options.to_vec();
    for (parameter, port) in ["mac0", "mac1"].into_iter().zip(ports.into_iter().flatten()) {
        let is_said = options.iter().any(|(name, _)| name == parameter);
        if let (Ok(address), true) =
            (fs::read_to_string(format!("/sys/class/net/{port}/address")), driver.has(parameter) && !is_said)
        {
            options.push((parameter.to_owned(), address.trim().to_owned()));
        }
    }
    Ok(Plan::new(driver, &options)?)
}

/// The addresses of a device that its driver makes a router, as `--gateways` takes them.
fn router_addresses(plan: &Plan) -> Option<String> {
    let value = |wanted: &str| plan.values().find(|(name, _)| *name == wanted).map(|(_, value)| value);
    let version = if value("ip") == Some("6") { "_v6" } else { "" };
    let address = |port: u8| value(&format!("address{port}{version}"))?.split('/').next();
    (value("mode") == Some("router")).then_some(())?;
    Some(format!("{},{}", address(0)?, address(1)?))
}

/// Adds to the record of a device what it counted between `before` and `after`.
pub fn count(remote: &mut record::Remote, before: &Counted, after: &Counted) {
    remote.counters = counted(&before.counters, &after.counters);
    let core = |(core, now): (&usize, &Counters)| {
        let then = before.cores.get(core).cloned().unwrap_or_default();
        record::RemoteCore { core: *core, counters: counted(&then, now) }
    };
    remote.cores = after.cores.iter().map(core).collect();
}

/// What the queues of both ports and the cores took in so far, by what they are called; what the device does not tell is
/// not there. `options` are those of its driver.
pub fn readings<'a>(
    options: impl Iterator<Item = (&'a str, &'a str)>,
    counted: &Counted,
) -> Vec<(String, Reading)> {
    let reading = |source, counters| Reading { source, counters, missing: Vec::new() };
    let mut readings = Vec::new();
    for (port, interface) in options.filter(|(name, _)| matches!(*name, "port0" | "port1")) {
        let queues = of_port(&counted.queues, port);
        if !queues.is_empty() {
            readings.push((interface.to_owned(), reading(Source::Ethtool, queues)));
        }
    }
    let cores: BTreeMap<Place, queues::Counters> = counted.cores.iter().filter_map(core).collect();
    if !cores.is_empty() {
        readings.push(("cores".to_owned(), reading(Source::Softnet, cores)));
    }
    readings
}

/// What a core took in, where it counts that.
fn core((core, counters): (&usize, &Counters)) -> Option<(Place, queues::Counters)> {
    let of = |name: &str| counters.get(name).copied();
    let counted = queues::Counters {
        packets: of("packets")?,
        dropped: of("dropped"),
        squeezed: of("time squeeze"),
        soft_interrupts: of("NET_RX"),
    };
    Some((Place::Core(u32::try_from(*core).ok()?), counted))
}

/// What each queue of `port` counts, by what its driver calls it.
fn of_port(statistics: &Counters, port: &str) -> BTreeMap<Place, queues::Counters> {
    let prefix = format!("{port} ");
    queues::by_queue(
        statistics.iter().filter_map(|(name, value)| Some((name.strip_prefix(&prefix)?, *value))),
    )
}

/// What was counted between `before` and `after`. A counter that is shown only once it has counted began at 0.
fn counted(before: &Counters, after: &Counters) -> BTreeMap<String, record::Count> {
    let count = |(name, after): (&String, &u64)| {
        let before = before.get(name).copied().unwrap_or(0);
        (name.clone(), record::Count { before, after: *after })
    };
    after.iter().map(count).collect()
}

/// The device's two interfaces as its counters tell of them: those that a driver calls `port0 received`,
/// `port0 sent`, `port0 receive dropped`, `port0 send dropped`, and so for port 1. None if some are missing.
pub fn interfaces(remote: &record::Remote) -> Vec<InterfaceCounters> {
    let interface = |port: &str| {
        let counted = |what: &str| remote.counters.get(&format!("{port} {what}"))?.meanwhile();
        Some(InterfaceCounters {
            name: remote.options.get(port).cloned().unwrap_or_else(|| format!("{port} of the device")),
            received: counted("received")?,
            receive_dropped: counted("receive dropped").unwrap_or(0),
            sent: counted("sent")?,
            send_dropped: counted("send dropped").unwrap_or(0),
        })
    };
    ["port0", "port1"].into_iter().map(interface).collect::<Option<_>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(counters: &[(&str, u64, u64)]) -> record::Remote {
        let counters = |shift: fn(&(&str, u64, u64)) -> u64| -> Counters {
            counters.iter().map(|entry| (entry.0.to_owned(), shift(entry))).collect()
        };
        record::Remote {
            host: "dut".to_owned(),
            driver: "linux".to_owned(),
            source: None,
            options: BTreeMap::from([("port0".to_owned(), "ix0".to_owned())]),
            counters: counted(&counters(|entry| entry.1), &counters(|entry| entry.2)),
            cores: Vec::new(),
        }
    }

    #[test]
    fn interfaces_are_those_whose_counters_have_the_names_for_it() {
        let mut entries = vec![
            ("port0 received", 5, 105),
            ("port0 receive dropped", 1, 4),
            ("port0 sent", 0, 1),
            ("port1 received", 0, 2),
            ("port1 sent", 7, 97),
        ];
        let found = interfaces(&remote(&entries));
        let ix0 = InterfaceCounters {
            name: "ix0".to_owned(),
            received: 100,
            receive_dropped: 3,
            sent: 1,
            send_dropped: 0,
        };
        assert_eq!(found.first(), Some(&ix0));
        assert_eq!((found[1].name.as_str(), found[1].sent), ("port1 of the device", 90));
        entries[4].2 = 0;
        assert!(interfaces(&remote(&entries)).is_empty(), "a counter that was set back tells nothing");
    }

    #[test]
    fn a_router_has_addresses_and_a_bridge_has_none() {
        let of = |options: &[&str]| {
            let options =
                ["port0=a", "port1=b"].iter().chain(options).filter_map(|option| option.split_once('='));
            let options: Vec<_> = options.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            router_addresses(&plan("freebsd", &options, None).unwrap())
        };
        assert_eq!(of(&[]).as_deref(), Some("100.65.1.1,100.65.2.1"));
        assert_eq!(of(&["ip=6", "address1_v6=fd00::1/64"]).as_deref(), Some("2001:2:0:1::1,fd00::1"));
        assert_eq!(of(&["mode=bridge"]), None);
        assert_eq!(of(&["mode=none"]), None);
    }

    #[test]
    fn cores_and_queues_have_counts_of_their_own() {
        let reading = |busy: u64, packets: u64| Counted {
            cores: BTreeMap::from([(
                2,
                Counters::from([("busy".to_owned(), busy), ("packets".to_owned(), packets)]),
            )]),
            queues: Counters::from([
                ("port0 rx_queue_3_packets".to_owned(), packets),
                ("port0 rx_queue_3_bytes".to_owned(), 64 * packets),
                ("port1 queue0.tx_packets".to_owned(), packets),
            ]),
            ..Counted::default()
        };
        let mut found = remote(&[]);
        count(&mut found, &reading(10, 5), &reading(70, 105));
        assert_eq!((found.cores[0].core, found.cores[0].counters["busy"].meanwhile()), (2, Some(60)));
        let options = [("mode", "router"), ("port0", "ix0"), ("port1", "ix1")];
        let told = readings(options.into_iter(), &reading(10, 5));
        let told: Vec<_> = told.iter().map(|(name, it)| (name.as_str(), it.counters.keys().next())).collect();
        let expected = [
            ("ix0", Some(&Place::Receive(3))),
            ("ix1", Some(&Place::Send(0))),
            ("cores", Some(&Place::Core(2))),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_counter_that_is_new_began_at_nothing() {
        let after = Counters::from([("null-node blackholed".to_owned(), 3)]);
        let found = counted(&Counters::new(), &after);
        assert_eq!(found["null-node blackholed"].meanwhile(), Some(3));
    }
}
