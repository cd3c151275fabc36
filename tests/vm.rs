//! The program on Debian's stock kernels, with emulated network cards: machines under QEMU, by hardware where that
//! works and by emulation where not. Emulation is slow: no test looks at a time, all look at counts.
//!
//! By default each kernel and each card comes once or twice; all pairs do with `LINERATE_VM=all`
//! (`make test-long`). Kernels are downloaded by apt-get and stay in `target/vm`, which may be removed.

mod guest;
mod initramfs;
mod kernels;

use guest::Guest;

use crate::common::shared_machine;

/// A kernel of Debian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// That of the release: 6.1.
    Release,
    /// The newest that the archive of the release offers: 6.12.
    Backports,
}

impl Kernel {
    fn name(self) -> &'static str {
        match self {
            Self::Release => "bookworm",
            Self::Backports => "bookworm-backports",
        }
    }

    /// The parts of the archive that have it.
    fn suites(self) -> &'static [&'static str] {
        match self {
            Self::Release => &["bookworm", "bookworm-security"],
            Self::Backports => &["bookworm-backports"],
        }
    }
}

/// A card that QEMU emulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Card {
    VirtioNet,
    Vmxnet3,
    E1000e,
    E1000,
}

impl Card {
    /// Its name in QEMU.
    fn device(self) -> &'static str {
        match self {
            Self::VirtioNet => "virtio-net-pci",
            Self::Vmxnet3 => "vmxnet3",
            Self::E1000e => "e1000e",
            Self::E1000 => "e1000",
        }
    }

    /// Its driver in Linux.
    fn driver(self) -> &'static str {
        match self {
            Self::VirtioNet => "virtio_net",
            Self::Vmxnet3 => "vmxnet3",
            Self::E1000e => "e1000e",
            Self::E1000 => "e1000",
        }
    }
}

/// Runs `test` on a machine, unless none can run here; pairs that are not of the default set only where all are asked
/// for.
fn on(kernel: Kernel, card: Card, by_default: bool, test: impl FnOnce(&mut Guest)) {
    let pair = format!("{card:?} on the kernel of {}", kernel.name());
    if !by_default && !std::env::var("LINERATE_VM").is_ok_and(|value| value == "all") {
        return eprintln!("skipped: {pair} is tested by make test-long");
    }
    if let Some(reason) = guest::unavailable() {
        return eprintln!("skipped: {pair}: {reason}");
    }
    let _machine = shared_machine();
    match Guest::boot(kernel, card) {
        Ok(mut guest) => test(&mut guest),
        Err(reason) => eprintln!("skipped: {pair}: {reason}"),
    }
}

#[test]
fn a_stock_kernel_has_what_the_doctor_looks_for() {
    on(Kernel::Release, Card::VirtioNet, true, |guest| {
        let checks = guest.linerate("doctor --json").json();
        eprintln!("{checks:#}");
        eprintln!("{}", guest.run("uname -a; ip -br link; free -m"));
    });
}
