//! Linerate's own guest: a kernel and two cards enter; a file system leaves that boots into a shell on the serial console,
//! with what a Linux router needs and nothing else.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::archive::{Archive, find};
use crate::kernel::Kernel;
use crate::modules;

/// The programs of this host that the guest has, too, each with Debian's package. The shell is the host's: that of a static
/// busybox takes its own `ip` for the other.
pub const DEFAULT_PROGRAMS: [(&str, &str); 3] = [("sh", "dash"), ("busybox", "busybox"), ("ip", "iproute2")];
/// Those that it has where they are installed here.
const FURTHER: [&str; 4] = ["ethtool", "bridge", "nft", "tc"];
/// What is loaded beside the driver of the cards: what routers are made of.
const MODULES: [&str; 2] = ["8021q", "bridge"];
const INIT: &str = include_str!("init");

/// A card of the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its MAC address, in small letters.
    pub mac: String,
    /// The name that its interface gets.
    pub name: String,
}

/// The file system of a router with `kernel`, whose `cards` are driven by the module `driver`, as an archive to boot from.
///
/// # Errors
/// What is not installed, or cannot be read.
pub fn router(kernel: &Kernel, driver: &str, cards: &[Card]) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    for directory in ["bin", "dev", "etc", "proc", "root", "run", "sbin", "sys", "tmp", "usr/bin", "usr/sbin"]
    {
        archive.directory(directory);
    }
    archive.bytes("init", INIT, true);
    for (name, package) in DEFAULT_PROGRAMS {
        let Some(path) = find(name) else {
            bail!("the guest needs {name} of this host: install it (Debian: apt install {package})");
        };
        archive.program(&path, Path::new("usr/bin").join(name))?;
    }
    for name in FURTHER {
        if let Some(path) = find(name) {
            archive.program(&path, Path::new("usr/bin").join(name))?;
        }
    }
    // The kernel names the first for /init, which names the second.
    for name in ["sh", "busybox"] {
        archive.link(Path::new("bin").join(name), Path::new("/usr/bin").join(name));
    }
    add_modules(&mut archive, kernel, driver)?;
    let cards: String = cards.iter().map(|card| format!("{} {}\n", card.mac, card.name)).collect();
    archive.bytes("cards", cards, false);
    let mut bytes = Vec::new();
    archive.write(&mut bytes).context("cannot pack the guest's file system")?;
    Ok(bytes)
}

fn add_modules(archive: &mut Archive, kernel: &Kernel, driver: &str) -> Result<()> {
    let list = kernel.modules.join("modules.dep");
    let text = fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    let wanted: Vec<&str> = ["virtio_pci", driver].into_iter().chain(MODULES).collect();
    let mut order = String::new();
    for (file, number) in modules::in_order(&text, &wanted).iter().zip(0..) {
        let name = format!("{number:02}.ko");
        archive.bytes(Path::new("modules").join(&name), modules::read(&kernel.modules.join(file))?, false);
        order += &format!("{name}\n");
    }
    archive.bytes("modules/order", order, false);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_has_its_modules_in_order_and_the_names_of_its_cards() {
        let directory = tempfile::tempdir().unwrap();
        let modules = directory.path().to_owned();
        fs::write(modules.join("modules.dep"), "b.ko: a.ko\na.ko:\n").unwrap();
        fs::write(modules.join("a.ko"), "module A").unwrap();
        fs::write(modules.join("b.ko"), "module B").unwrap();
        let kernel = Kernel { version: "1".to_owned(), image: "vmlinuz".into(), modules };
        let card = Card { mac: "02:00:00:00:00:01".to_owned(), name: "dut0".to_owned() };
        if find("busybox").is_none() {
            let error = router(&kernel, "b", &[card]).unwrap_err().to_string();
            assert!(error.contains("apt install busybox"), "{error}");
            return;
        }
        let text = String::from_utf8_lossy(&router(&kernel, "b", &[card]).unwrap()).into_owned();
        assert!(text.find("module A") < text.find("module B"));
        assert!(text.contains("02:00:00:00:00:01 dut0\n") && text.contains("00.ko\n01.ko\n"));
    }
}
