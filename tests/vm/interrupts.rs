//! What the driver `linux` does to the interrupts of a card: the functions of its shell and an emulated card enter; that
//! each queue's interrupt is served by the core that was asked for, and afterwards by those that did before, is checked.

use super::guest::Guest;

/// The text of the driver.
const DRIVER: &str = include_str!("../../drivers/linux.toml");

/// Pins the interrupts of the interface `name`, which has at least so many `queues`, and puts them back.
pub fn are_pinned_and_put_back(guest: &mut Guest, name: &str, queues: usize) {
    let driver: toml::Table = DRIVER.parse().unwrap();
    let functions = driver["functions"].as_str().unwrap();
    let said = guest.run(&format!(
        "{functions}
         ip link set {name} up
         before=$(pinned_interrupts {name})
         pin_interrupts {name} '1 0'
         queue_interrupts {name} | while read -r irq queue; do
             echo \"$queue $(cat /proc/irq/$irq/smp_affinity_list)\"
         done
         unpin_interrupts \"$before\"
         [ \"$(pinned_interrupts {name})\" = \"$before\" ]
         ip link set {name} down"
    ));
    let pinned: Vec<Vec<usize>> =
        said.lines().map(|line| line.split(' ').flat_map(str::parse).collect()).collect();
    assert!(
        pinned.iter().all(|pinned| matches!(pinned[..], [queue, core] if core == 1 - queue % 2)),
        "{said}"
    );
    assert!((0..queues).all(|queue| pinned.iter().any(|pinned| pinned[0] == queue)), "{said}");
    let refused = guest.attempt(&format!("{functions}\npin_interrupts lo '0'"));
    assert!(refused.status != 0 && refused.stderr.contains("lo has no interrupts"), "{}", refused.stderr);
}
