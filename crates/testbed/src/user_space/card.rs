//! Network cards for DPDK: a PCI address enters; that the card can be used, or why not and what to do,
//! leaves. Asked before DPDK starts, which only says that it knows no such device.

use std::fs;
use std::path::Path;

/// Where the kernel lists PCI devices.
pub const SYSFS: &str = "/sys/bus/pci/devices";
/// Drivers that hand a card over to programs.
const FOR_PROGRAMS: [&str; 3] = ["vfio-pci", "uio_pci_generic", "igb_uio"];
/// Drivers of the kernel that a program shares a card with.
const SHARED: [&str; 3] = ["mlx4_core", "mlx5_core", "mana"];
/// The first byte of the class of network devices.
const NETWORK: &str = "0x02";

/// Whether `device` is a PCI address, as in 0000:01:00.0, with or without arguments.
pub fn is_card(device: &str) -> bool {
    let address = address(device);
    address.contains(':') && address.chars().all(|c| c.is_ascii_hexdigit() || c == ':' || c == '.')
}

fn address(device: &str) -> &str {
    device.split(',').next().unwrap_or_default()
}

/// Why the card at `device` cannot be used by DPDK, with the remedy; `devices` is [`SYSFS`].
pub fn refusal(devices: &Path, device: &str) -> Option<String> {
    let address = address(device);
    let full = full(address);
    let card = devices.join(&full);
    if !card.is_dir() {
        let known = network_cards(devices);
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Some(format!("there is no PCI device {full}. Network cards there are: {known}"));
    }
    if !is_network(&card) {
        return Some(format!("the PCI device {full} is no network card: 'lspci -D' shows what it is"));
    }
    let bind = format!("dpdk-devbind.py --bind=vfio-pci {full}");
    let driver = fs::read_link(card.join("driver")).ok();
    let driver = driver.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    match driver {
        None => Some(format!("no driver has the card {full}: bind it to vfio-pci first ({bind})")),
        Some(driver) if FOR_PROGRAMS.iter().chain(&SHARED).any(|known| *known == driver) => None,
        Some(driver) => {
            let interfaces = names(&card.join("net")).join(", ");
            let known_as = if interfaces.is_empty() { String::new() } else { format!(" as {interfaces}") };
            Some(format!(
                "the kernel's driver {driver} has the card {full}{known_as}: if nothing else needs it, bind it \
                 to vfio-pci first ({bind}); or leave it to the kernel and give net_af_xdp0,iface=… or --ports"
            ))
        }
    }
}

/// The interfaces that the kernel has of the card at `device`; `devices` is [`SYSFS`].
pub fn interfaces(devices: &Path, device: &str) -> Vec<String> {
    names(&devices.join(full(address(device))).join("net"))
}

/// `address` with the domain, which may be left out where it is 0.
fn full(address: &str) -> String {
    if address.matches(':').count() == 1 { format!("0000:{address}") } else { address.to_owned() }
}

fn is_network(card: &Path) -> bool {
    fs::read_to_string(card.join("class")).is_ok_and(|class| class.starts_with(NETWORK))
}

fn network_cards(devices: &Path) -> Vec<String> {
    names(devices).into_iter().filter(|name| is_network(&devices.join(name))).collect()
}

/// The names in a directory, in order.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn cards_are_told_from_drivers() {
        assert!(is_card("0000:01:00.0") && is_card("01:00.1,arg=1"));
        assert!(!is_card("net_memif0,socket=/a:b") && !is_card("net_null0"));
    }

    #[test]
    fn a_card_that_the_kernel_has_is_refused_with_the_remedy() {
        let directory = tempfile::tempdir().unwrap();
        let devices = directory.path();
        let card = |address: &str, class: &str, driver: Option<&str>| {
            let card = devices.join(address);
            fs::create_dir_all(card.join("net/eth7")).unwrap();
            fs::write(card.join("class"), class).unwrap();
            if let Some(driver) = driver {
                symlink(Path::new("/sys/bus/pci/drivers").join(driver), card.join("driver")).unwrap();
            }
        };
        card("0000:01:00.0", "0x020000\n", Some("ixgbe"));
        card("0000:01:00.1", "0x020000\n", Some("vfio-pci"));
        card("0000:02:00.0", "0x020000\n", None);
        card("0000:03:00.0", "0x010802\n", Some("nvme"));
        card("0000:04:00.0", "0x020000\n", Some("mlx5_core"));
        let refused = |device: &str, clues: &[&str]| {
            let said = refusal(devices, device).unwrap();
            clues.iter().for_each(|clue| assert!(said.contains(clue), "no '{clue}' in: {said}"));
        };
        let bind = "dpdk-devbind.py --bind=vfio-pci 0000:01:00.0";
        refused("01:00.0,arg=1", &["ixgbe", "eth7", bind, "net_af_xdp0"]);
        refused("0000:02:00.0", &["no driver", "vfio-pci"]);
        refused("0000:03:00.0", &["no network card"]);
        refused("0000:09:00.0", &["0000:09:00.0", "0000:01:00.0, 0000:01:00.1, 0000:02:00.0, 0000:04:00.0"]);
        assert_eq!(refusal(devices, "0000:01:00.1"), None);
        assert_eq!(refusal(devices, "04:00.0"), None);
    }
}
