//! The program on Debian's stock kernels, with emulated network cards: machines under QEMU, by hardware where that
//! works and by emulation where not. Emulation is slow: no test looks at a time, all look at counts.
//!
//! The lab takes minutes by emulation: it is tested by `make test` where KVM works, else by `make test-long`. Kernels
//! are downloaded by apt-get and stay in `target/vm`, which may be removed.

mod cards;
mod device;
mod guest;
mod initramfs;
mod interrupts;
mod kernels;
mod lab;
mod slow;

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use cards::{E1000, E1000E, Kind, MERGING, QUEUES, SLOW, VIRTIO, VMXNET3, Wired};
use guest::Guest;

use crate::common::{has_namespaces, shared_machine};

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

/// Runs `test` on a machine with cards of such kinds, unless none can run here. There is one machine at a time.
fn on(kernel: Kernel, kinds: &[Kind], test: impl FnOnce(&mut Guest)) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(reason) = guest::unavailable() {
        return eprintln!("skipped: the kernel of {}: {reason}", kernel.name());
    }
    let _machine = shared_machine();
    match Guest::boot(kernel, kinds) {
        Ok(mut guest) => test(&mut guest),
        Err(reason) => eprintln!("skipped: the kernel of {}: {reason}", kernel.name()),
    }
}

/// Those of virtio_net whose cables are bridges, unless this machine has none.
fn with_bridges() -> &'static [Kind] {
    if !has_namespaces() {
        return &[];
    }
    if !Path::new("/dev/net/tun").exists() {
        eprintln!("skipped: cards with several queues and offloads need /dev/net/tun");
        return &[];
    }
    &[QUEUES, MERGING]
}

/// The same without cards for what takes minutes by emulation: in one of `make test`, where KVM works, and
/// `make test-long`, where it does not.
fn without_cards(kernel: Kernel, is_long: bool, test: impl FnOnce(&mut Guest)) {
    if guest::unavailable().is_none() {
        match guest::runs_by_hardware(kernel) {
            Ok(true) if is_long => return eprintln!("skipped: KVM works here, so make test has this"),
            Ok(false) if !is_long => {
                return eprintln!(
                    "skipped: the lab of {} by emulation: make test-long has it",
                    kernel.name()
                );
            }
            _ => {}
        }
    }
    on(kernel, &[], test);
}

/// Cards with and without XDP, and devices behind VLAN tags, on `kernel`: what leaves and what comes back is counted to the frame.
fn every_card_counts(kernel: Kernel, guest: &mut Guest) {
    let vmxnet3 = match kernel {
        Kernel::Release => (VMXNET3, "af_xdp", "has no XDP"),
        Kernel::Backports => (VMXNET3, "xdp", "vmxnet3-0"),
    };
    let without = [E1000E, E1000].map(|kind| (kind, "af_xdp", "has no XDP"));
    for (kind, engine, why) in [(VIRTIO, "xdp", "virtio-0"), vmxnet3].into_iter().chain(without) {
        let mut wired = Wired::new(guest, kind);
        wired.what_left_is_what_was_counted(engine, why);
        wired.a_ramp_comes_back(engine);
        wired.nothing_is_attached();
        wired.unwire();
    }
    lab::large_frames_leave_or_are_refused(guest, kernel == Kernel::Backports);
    lab::vlan_tags_are_taken_off_and_put_on(guest, &["one"]);
    lab::no_family_is_asked_for_twice(guest);
    lab::nothing_stays_after_a_kill(guest);
}

#[test]
fn every_card_counts_to_the_frame_on_the_kernel_of_the_release() {
    on(Kernel::Release, &[VIRTIO, VMXNET3, E1000E, E1000], |guest| {
        lab::the_doctor_finds_all(guest);
        every_card_counts(Kernel::Release, guest);
    });
}

#[test]
fn every_card_counts_to_the_frame_on_the_newest_kernel_of_the_archive() {
    on(Kernel::Backports, &[VIRTIO, VMXNET3, E1000E, E1000], |guest| {
        lab::the_doctor_finds_all(guest);
        every_card_counts(Kernel::Backports, guest);
    });
}

/// A port whose queue is full is the tester's limit, by both engines.
fn a_full_queue_is_the_testers(guest: &mut Guest) {
    let mut wired = Wired::new(guest, SLOW);
    wired.a_full_queue_is_the_testers("xdp");
    wired.a_full_queue_is_the_testers("af_xdp");
    wired.what_left_a_full_queue_is_counted("af_xdp");
    wired.unwire();
}

#[test]
fn full_queues_several_queues_and_offloads_on_the_newest_kernel_of_the_archive() {
    let bridged = with_bridges();
    on(Kernel::Backports, &[&[SLOW], bridged].concat(), |guest| {
        a_full_queue_is_the_testers(guest);
        virtio_counts_with_queues_and_offloads(guest, bridged);
    });
}

#[test]
fn full_queues_several_queues_interrupts_offloads_and_a_limited_router_on_the_kernel_of_the_release() {
    let bridged = with_bridges();
    on(Kernel::Release, &[&[SLOW, E1000E], bridged].concat(), |guest| {
        interrupts::are_pinned_and_put_back(guest, "e1000e-0", 1);
        if bridged.contains(&QUEUES) {
            interrupts::are_pinned_and_put_back(guest, "queues-0", 2);
        }
        a_full_queue_is_the_testers(guest);
        virtio_counts_with_queues_and_offloads(guest, bridged);
        let mut wired = Wired::new(guest, E1000E);
        wired.a_limited_router_is_found("af_xdp");
        wired.a_capture_comes_back();
        wired.nothing_stays_after_a_kill();
        wired.unwire();
    });
}

/// virtio_net with several queues, and with offloads that the guest can switch off and that it cannot: those of
/// `kinds`.
fn virtio_counts_with_queues_and_offloads(guest: &mut Guest, kinds: &[Kind]) {
    for (kind, engine, why) in [(QUEUES, "xdp", "queues-0"), (MERGING, "af_xdp", "GUEST_")] {
        if !kinds.contains(&kind) {
            continue;
        }
        let mut wired = Wired::new(guest, kind);
        wired.what_left_is_what_was_counted(engine, why);
        wired.a_ramp_comes_back(engine);
        wired.nothing_is_attached();
        wired.unwire();
    }
}

#[test]
fn the_lab_works_on_the_kernel_of_the_release_where_kvm_does() {
    without_cards(Kernel::Release, false, lab::all_works);
}

#[test]
fn the_lab_works_on_the_newest_kernel_of_the_archive_where_kvm_does() {
    without_cards(Kernel::Backports, false, lab::all_works);
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn the_lab_works_on_the_kernel_of_the_release() {
    without_cards(Kernel::Release, true, lab::all_works);
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn the_lab_works_on_the_newest_kernel_of_the_archive() {
    without_cards(Kernel::Backports, true, lab::all_works);
}
