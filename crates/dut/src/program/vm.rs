//! A virtual machine as the device: its parameters and a lab whose ports are taps enter; QEMU's command line, the guest's
//! serial console, and what is to be found in the guest leave.
//!
//! QEMU runs in the tester's namespace and opens the taps there by their names. It listens for the console at a socket
//! without a file, which is of that namespace, too. So nothing is left behind when it ends with us.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lab::{Check, Lab, Level, Namespace, SIDES};
use machine::{Acceleration, Card, Hardware, Kernel};
use programs::{INPUT, is_installed};
use wording::usage::misuse;

use crate::vm::{Wanted, Wish};

/// What `--dut` calls it.
pub const NAME: &str = "vm";
/// The driver that configures Linerate's own guest.
const LINUX: &str = "linux";
/// The socket of the serial console.
const CONSOLE: &str = "linerate-console";
/// How long a guest may take to its prompt, by the processor and by emulation, on a host that others share.
const BOOT: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(240)];
/// What Linerate's own guest is told to boot quickly, to end where it panics, and to be at the serial console.
const OWN_WORDS: &str = "console=ttyS0,115200 quiet loglevel=1 panic=-1 random.trust_cpu=on";
/// What any kernel is told that is booted directly.
const CONSOLE_WORDS: &str = "console=ttyS0,115200 panic=-1";
/// The largest frame that fits an MTU of 1500 bytes, FCS included.
const ETHERNET: usize = 1518;
/// Where the host carries frames between a tap and a guest's memory by itself.
const VHOST: &str = "/dev/vhost-net";
/// In the facts of a guest's driver: what its kernel is, and what it was told.
const FOUND_KERNEL: &str = "kernel";
const FOUND_COMMAND_LINE: &str = "kernel's command line";

/// A virtual machine, which may run.
pub struct Vm {
    /// That of the tester's ports.
    namespace: Namespace,
    wanted: Wanted,
    acceleration: Acceleration,
    /// Why it is emulated, where it is.
    refusal: Option<String>,
    has_vhost: bool,
    /// The kernel that Linerate boots, where its own guest runs.
    kernel: Option<Kernel>,
    /// Linerate's own file system.
    archive: Option<Vec<u8>>,
    max_frame_size: usize,
    console: Mutex<Option<UnixStream>>,
}

impl Vm {
    /// A machine at the ports of `lab` that will be as `parameters` say. Frames of up to `max_frame_size` bytes fit.
    ///
    /// # Errors
    /// What is not installed, not there or cannot be so.
    pub fn prepare(lab: &Lab, parameters: &BTreeMap<String, String>, max_frame_size: usize) -> Result<Self> {
        let wanted = Wanted::of(parameters).map_err(|key| misuse(format!("vm: what {key} has cannot be")))?;
        if !is_installed(machine::PROGRAM) {
            bail!("{} is not installed: install it (Debian: apt install qemu-system-x86)", machine::PROGRAM);
        }
        let refusal = Acceleration::kvm_refusal();
        let acceleration = match (wanted.wish, &refusal) {
            (Wish::Emulation, _) | (Wish::Auto, Some(_)) => Acceleration::Emulation,
            (Wish::Kvm, _) | (Wish::Auto, None) => Acceleration::Kvm,
        };
        let refusal = match wanted.wish {
            Wish::Emulation => Some("accel=tcg asks for it".to_owned()),
            Wish::Auto | Wish::Kvm => refusal.filter(|_| acceleration == Acceleration::Emulation),
        };
        let kernel = if wanted.is_own() { Some(own_kernel(&wanted)?) } else { None };
        let archive = kernel.as_ref().map(|kernel| machine::router(kernel, wanted.nic.module, &cards()));
        let has_vhost = wanted.nic.name == "virtio" && opens(VHOST);
        Ok(Self {
            namespace: lab.tester_namespace().try_clone()?,
            acceleration,
            refusal,
            has_vhost,
            kernel,
            archive: archive.transpose()?,
            max_frame_size,
            console: Mutex::new(None),
            wanted,
        })
    }

    /// Where it is to be started.
    pub(super) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// What stands for [`INPUT`] in its command line.
    pub(super) fn input(&self) -> Option<&[u8]> {
        self.archive.as_deref()
    }

    /// QEMU's command line.
    ///
    /// # Errors
    /// When the disk image cannot be read.
    pub(super) fn words(&self) -> Result<Vec<String>> {
        let Self { wanted, acceleration, .. } = self;
        let hardware = Hardware { acceleration: *acceleration, cpus: wanted.cpus, memory: wanted.memory };
        let mut words = vec![machine::PROGRAM.to_owned()];
        words.extend(hardware.words());
        words.extend(SANDBOX.map(str::to_owned));
        if let (Some(kernel), Some(_)) = (&self.kernel, &self.archive) {
            words.extend(machine::boot(&kernel.image, INPUT, &told(OWN_WORDS, &wanted.command_line)));
        } else if let Some(image) = &wanted.kernel {
            words.extend(["-kernel".to_owned(), image.display().to_string()]);
            words.extend(["-append".to_owned(), told(CONSOLE_WORDS, &wanted.command_line)]);
            words.extend(
                wanted.initrd.iter().flat_map(|file| ["-initrd".to_owned(), file.display().to_string()]),
            );
        }
        if let Some(image) = &wanted.image {
            let file = image.display().to_string().replace(',', ",,");
            // QEMU writes changes to a file that it has removed already.
            words.extend([
                "-drive".to_owned(),
                format!("file={file},if=virtio,snapshot=on,format={}", format(image)?),
            ]);
        }
        let console = format!("socket,id=console,server=on,wait=off,abstract=on,path={CONSOLE}");
        words.extend(["-chardev", &console, "-serial", "chardev:console"].map(str::to_owned));
        let vhost = if self.has_vhost { "on" } else { "off" };
        for (side, card) in SIDES.iter().zip(cards()) {
            let tap = format!("tap,ifname={},script=no,downscript=no,vnet_hdr=off,vhost={vhost}", side.port);
            let mtu = self.mtu().filter(|_| wanted.nic.name == "virtio");
            let mtu = mtu.map_or(String::new(), |mtu| format!(",host_mtu={mtu}"));
            words.extend(machine::card(&card.name, &tap, &format!("{}{mtu}", wanted.nic.device), &card.mac));
        }
        Ok(words)
    }

    /// The MTU that its cards need, in bytes, where that is not Ethernet's own.
    fn mtu(&self) -> Option<usize> {
        (self.max_frame_size > ETHERNET).then(|| self.max_frame_size - (ETHERNET - 1500))
    }

    /// Whether QEMU runs, which listens for the console then.
    pub(super) fn is_ready(&self) -> bool {
        let connect =
            || SocketAddr::from_abstract_name(CONSOLE).and_then(|address| UnixStream::connect_addr(&address));
        let Ok(Ok(stream)) = self.namespace.run(|| Ok(connect())) else { return false };
        *self.console.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
        true
    }

    /// What it is, for the record, as far as the host knows.
    pub(super) fn facts(&self) -> BTreeMap<String, String> {
        let runs_by = match &self.refusal {
            Some(reason) => format!("{}: {reason}", self.acceleration.name()),
            None => self.acceleration.name().to_owned(),
        };
        let backend = match (self.has_vhost, self.wanted.nic.name) {
            (true, _) => "vhost-net".to_owned(),
            (false, "virtio") => format!("QEMU's own: {VHOST} cannot be opened"),
            (false, nic) => format!("QEMU's own: vhost-net has no {nic}"),
        };
        let facts =
            [("runs by", runs_by), ("card backend", backend), ("card", self.wanted.nic.name.to_owned())];
        facts.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// What a reader of results should know of it.
    pub(super) fn note(&self, cores: &[usize]) -> String {
        let cpus = self.wanted.cpus;
        let shared = if cores.len() < cpus as usize {
            format!("; its {cpus} virtual processors share {} of the host's", cores.len())
        } else {
            String::new()
        };
        let receive = "the tester's receive program runs in QEMU's time";
        match &self.refusal {
            Some(reason) => format!(
                "the device is an emulated machine ({reason}): its rates compare with each other alone, not with those of \
                 hardware; {receive}{shared}"
            ),
            None => format!("the device is a virtual machine by KVM: {receive}{shared}"),
        }
    }

    /// Its serial console, which there is once.
    ///
    /// # Errors
    /// When it was taken before.
    pub fn take_console(&self) -> Result<UnixStream> {
        self.console.lock().unwrap_or_else(PoisonError::into_inner).take().context("the console is in use")
    }

    /// How long it may take to show a prompt there.
    #[must_use]
    pub fn patience(&self) -> Duration {
        BOOT[usize::from(self.acceleration == Acceleration::Emulation)]
    }

    /// The driver that configures it over its console; `None` where it is measured as it is.
    #[must_use]
    pub fn driver(&self) -> Option<&str> {
        if self.wanted.is_own() { Some(LINUX) } else { self.wanted.driver.as_deref() }
    }

    /// Who logs in there; nobody in Linerate's own guest.
    #[must_use]
    pub fn login(&self) -> Option<&str> {
        self.wanted.login.as_deref()
    }

    /// The names of its two interfaces, where these are known without asking.
    #[must_use]
    pub fn interfaces(&self) -> Option<[String; 2]> {
        self.wanted.is_own().then(|| cards().map(|card| card.name))
    }

    /// The MAC addresses of its two cards, as text.
    #[must_use]
    pub fn macs(&self) -> [String; 2] {
        cards().map(|card| card.mac)
    }

    /// What Linerate's own guest is to do beside what its driver has it do: routes to RFC 2544's networks, and room for
    /// large frames.
    #[must_use]
    pub fn further(&self) -> Option<String> {
        if !self.wanted.is_own() {
            return None;
        }
        let mut lines = Vec::new();
        for side in SIDES {
            let [gateway, _] = side.port_addresses;
            let networks = side.networks.iter().skip(1).filter(|(network, _)| network.is_ipv4());
            lines.extend(
                networks.map(|(network, length)| format!("ip route add {network}/{length} via {gateway}")),
            );
            let mtu = self.mtu().filter(|_| self.wanted.nic.name != "virtio");
            lines.extend(mtu.map(|mtu| format!("ip link set dev {} mtu {mtu}", side.interface)));
        }
        Some(lines.join("; "))
    }

    /// That the guest got what was asked for, by what its driver `found` in it.
    ///
    /// # Errors
    /// What it did not get: then the run would measure something else than it says.
    pub fn check(&self, found: &BTreeMap<String, String>) -> Result<()> {
        let version = self.kernel.as_ref().map(|kernel| kernel.version.as_str());
        let missing = missing(version, &self.wanted.command_line, found);
        missing.map_or(Ok(()), |missing| bail!("the guest did not get what was asked for: {missing}"))
    }
}

/// Whether a virtual machine can be the device here, and what runs it: for `linerate doctor`.
#[must_use]
pub fn check() -> Check {
    let check = |level, found: String, remedy: Option<&str>| Check {
        name: "virtual machines",
        level,
        found,
        remedy: remedy.map(str::to_owned),
    };
    if !is_installed(machine::PROGRAM) {
        let found = format!("{} is not installed: --dut vm is unavailable", machine::PROGRAM);
        return check(Level::Degraded, found, Some("Install Debian's qemu-system-x86"));
    }
    let vhost = if opens(VHOST) { "vhost-net" } else { "no vhost-net" };
    let Ok(kernel) = Kernel::newest().map(|kernel| format!("kernel {}", kernel.version)) else {
        let found = format!(
            "QEMU is installed; {vhost}, no kernel in /boot: --dut vm needs kernel=FILE or image=FILE"
        );
        return check(
            Level::Degraded,
            found,
            Some("Install a kernel for guests, such as Debian's linux-image-amd64"),
        );
    };
    match Acceleration::kvm_refusal() {
        None => check(Level::Good, format!("QEMU is installed; KVM, {vhost}, {kernel}"), None),
        Some(reason) => check(
            Level::Degraded,
            format!("QEMU is installed; guests are emulated ({reason}), {vhost}, {kernel}"),
            Some("Compare rates of emulated guests only with each other, or use a host with KVM"),
        ),
    }
}

/// Whether a device of the host can be used.
fn opens(device: &str) -> bool {
    File::options().read(true).write(true).open(device).is_ok()
}

/// A guest may be an image of strangers: QEMU starts no programs and gains no rights.
const SANDBOX: [&str; 2] = ["-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny"];

/// What was asked for and is not `found`: a kernel's version, or words of its command line.
fn missing(version: Option<&str>, command_line: &str, found: &BTreeMap<String, String>) -> Option<String> {
    let words = |name: &str| found.get(name).map(|text| text.split_whitespace().collect::<Vec<_>>());
    if let Some(version) = version {
        match words(FOUND_KERNEL) {
            Some(words) if words.contains(&version) => {}
            Some(words) => return Some(format!("it runs {} instead of {version}", words.join(" "))),
            None => return Some("it does not say which kernel it runs".to_owned()),
        }
    }
    if command_line.is_empty() {
        return None;
    }
    let Some(told) = words(FOUND_COMMAND_LINE) else {
        return Some("it does not say what its kernel was told".to_owned());
    };
    let missing: Vec<&str> = command_line.split_whitespace().filter(|word| !told.contains(word)).collect();
    (!missing.is_empty()).then(|| format!("its kernel's command line has no '{}'", missing.join(" ")))
}

/// A kernel's command line of what it needs and what the user wants.
fn told(needed: &str, wanted: &str) -> String {
    format!("{needed} {wanted}").trim_end().to_owned()
}

/// The kernel of Linerate's own guest.
fn own_kernel(wanted: &Wanted) -> Result<Kernel> {
    match &wanted.kernel {
        Some(image) => Kernel::open(image, wanted.modules.as_deref()),
        None => Kernel::newest(),
    }
}

/// The guest's cards, named as the interfaces of a lab's device are.
fn cards() -> [Card; 2] {
    SIDES.map(|side| Card { mac: side.interface_mac.to_string(), name: side.interface.to_owned() })
}

/// What QEMU calls the format of the disk image in `file`.
fn format(file: &Path) -> Result<&'static str> {
    let mut magic = [0; 4];
    let kind = fs::metadata(file).and_then(|_| File::open(file)).and_then(|mut file| file.read(&mut magic));
    kind.with_context(|| format!("cannot read the disk image {}", file.display()))?;
    Ok(if magic == *b"QFI\xfb" { "qcow2" } else { "raw" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kernel: &str, command_line: &str) -> BTreeMap<String, String> {
        let pairs = [(FOUND_KERNEL, kernel), (FOUND_COMMAND_LINE, command_line)];
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    #[test]
    fn what_the_guest_did_not_get_is_told() {
        let guest = found("Linux 6.1.0-56-amd64 #1 SMP x86_64", "console=ttyS0 quiet mitigations=off");
        let version = Some("6.1.0-56-amd64");
        assert_eq!(missing(version, "mitigations=off", &guest), None);
        assert_eq!(
            missing(version, "mitigations=off nosmt", &guest).unwrap(),
            "its kernel's command line has no 'nosmt'"
        );
        assert!(missing(Some("6.12.0-1"), "", &guest).unwrap().starts_with("it runs Linux 6.1.0-56-amd64"));
        assert_eq!(missing(None, "", &BTreeMap::new()), None);
        assert!(missing(None, "nosmt", &BTreeMap::new()).is_some());
    }

    #[test]
    fn the_format_of_an_image_is_in_its_first_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("disk");
        fs::write(&file, b"QFI\xfb\0\0").unwrap();
        assert_eq!(format(&file).unwrap(), "qcow2");
        fs::write(&file, b"x").unwrap();
        assert_eq!(format(&file).unwrap(), "raw");
        assert!(format(&directory.path().join("none")).is_err());
    }

    #[test]
    fn the_cards_have_the_addresses_that_frames_go_to() {
        let [zero, one] = cards();
        assert_eq!((zero.name.as_str(), zero.mac.as_str()), ("dut0", "02:4c:6e:72:01:01"));
        assert_eq!((one.name.as_str(), one.mac.as_str()), ("dut1", "02:4c:6e:72:02:01"));
    }
}
