//! QEMU's command line: the parts of a machine enter, the arguments leave.

use std::fs::{self, File};
use std::path::Path;

/// The program.
pub const PROGRAM: &str = "qemu-system-x86_64";

/// What runs a guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceleration {
    /// The processor, by KVM.
    Kvm,
    /// QEMU's emulation (TCG): some tens of times slower.
    Emulation,
}

impl Acceleration {
    /// Why KVM cannot run guests here, as far as can be told without a trial; `None` if no reason is known.
    #[must_use]
    pub fn kvm_refusal() -> Option<String> {
        if let Err(error) = File::options().read(true).write(true).open("/dev/kvm") {
            return Some(format!("/dev/kvm cannot be opened: {error}"));
        }
        refusal_of(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
    }

    /// What the record calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "KVM",
            Self::Emulation => "emulation (TCG)",
        }
    }

    fn words(self) -> [&'static str; 4] {
        match self {
            Self::Kvm => ["-accel", "kvm", "-cpu", "host"],
            Self::Emulation => ["-accel", "tcg,thread=multi", "-cpu", "max"],
        }
    }
}

/// Why a processor that `/proc/cpuinfo` describes so has no hardware for guests. `/dev/kvm` may be there all the same, for
/// guests of a kind that Debian's kernels are not; those hang.
fn refusal_of(cpuinfo: &str) -> Option<String> {
    let mut flags = cpuinfo.lines().filter(|line| line.starts_with("flags")).flat_map(str::split_whitespace);
    let has_hardware = flags.any(|flag| flag == "vmx" || flag == "svm");
    (!has_hardware).then(|| "the processor shows neither vmx nor svm".to_owned())
}

/// What every machine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hardware {
    /// What runs it.
    pub acceleration: Acceleration,
    /// Virtual processors.
    pub cpus: u32,
    /// Memory, in MiB.
    pub memory: u32,
}

impl Hardware {
    /// The beginning of the command line: nothing but processors and memory.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let bare = ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none"];
        let size = [("-smp", self.cpus.to_string()), ("-m", self.memory.to_string())];
        let size = size.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]);
        bare.into_iter().chain(self.acceleration.words()).map(str::to_owned).chain(size).collect()
    }
}

/// The words that boot the kernel in the file `image` with the file system in `initrd` and a command line.
#[must_use]
pub fn boot(image: &Path, initrd: &str, command_line: &str) -> Vec<String> {
    let image = image.display().to_string();
    ["-kernel", &image, "-initrd", initrd, "-append", command_line].map(str::to_owned).to_vec()
}

/// The words of a card of kind `device` with a MAC address, on the backend that `netdev` describes after its kind and
/// before its id. Without firmware of its own the machine boots sooner.
#[must_use]
pub fn card(id: &str, netdev: &str, device: &str, mac: &str) -> Vec<String> {
    let (backend, options) = netdev.split_once(',').unwrap_or((netdev, ""));
    let options = if options.is_empty() { String::new() } else { format!(",{options}") };
    let card = format!("{device},netdev={id},mac={mac},romfile=");
    ["-netdev".to_owned(), format!("{backend},id={id}{options}"), "-device".to_owned(), card].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_without_hardware_for_guests_is_named() {
        assert_eq!(refusal_of("flags\t\t: fpu vme svm sse\n"), None);
        assert_eq!(refusal_of("flags\t\t: fpu vmx\n"), None);
        assert!(
            refusal_of("flags\t\t: fpu vme\nvmx flags : vnmi\n").unwrap().contains("neither vmx nor svm")
        );
    }

    #[test]
    fn the_command_line_has_the_given_parts_and_no_others() {
        let hardware = Hardware { acceleration: Acceleration::Emulation, cpus: 2, memory: 256 };
        let words = hardware.words().join(" ");
        assert!(words.starts_with("-nodefaults ") && words.ends_with("-smp 2 -m 256"), "{words}");
        let card = card("card0", "tap,ifname=port0", "virtio-net-pci", "02:00:00:00:00:01").join(" ");
        assert_eq!(
            card,
            "-netdev tap,id=card0,ifname=port0 -device virtio-net-pci,netdev=card0,mac=02:00:00:00:00:01,romfile="
        );
    }
}
