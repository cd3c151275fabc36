//! What stands in the way of a load test by an interface: its facts enter; each finding, with its cause and the
//! command or the setting of the hypervisor that mends it, leaves.

use results::record::{Pause, PortFacts, Queues, Rings};

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// No engine can measure by this interface.
    Refuse,
    /// A result can be wrong or lower than the card's.
    Warn,
}

/// One thing in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How serious it is.
    pub severity: Severity,
    /// What was found, with the interface's name.
    pub cause: String,
    /// What to do about it.
    pub remedy: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.cause, self.remedy)
    }
}

/// The largest MTU whose frames fit a page of 4 KiB with what any of the common drivers needs beside them.
const LARGEST_MTU: u32 = 3046;
/// A transmit ring below this overflows within a millisecond at 1 Gb/s of small frames.
const SMALL_RING: u32 = 512;

/// Everything that stands in the way, the serious first.
#[must_use]
pub fn findings(facts: &PortFacts) -> Vec<Finding> {
    let mut found: Vec<Finding> = [
        down(facts),
        no_carrier(facts),
        controlled(facts),
        other_program(facts),
        half_duplex(facts),
        large_mtu(facts),
        merges(facts, "rx-lro", "the card merges received frames of one flow (LRO)", "lro"),
        merges(
            facts,
            "rx-gro-hw",
            "the card or the host merges received frames of one flow (GRO_HW)",
            "rx-gro-hw",
        ),
        guest_offloads(facts).map(|finding| Finding { severity: Severity::Warn, ..finding }),
        virtio_queues(facts),
        small_ring(facts),
        pause_frames(facts),
    ]
    .into_iter()
    .flatten()
    .collect();
    found.sort_by_key(|finding| finding.severity);
    found
}

fn finding(severity: Severity, cause: String, remedy: String) -> Option<Finding> {
    Some(Finding { severity, cause, remedy })
}

fn down(PortFacts { name, up, .. }: &PortFacts) -> Option<Finding> {
    if *up {
        return None;
    }
    finding(Severity::Refuse, format!("{name} is down"), format!("set it up with 'ip link set {name} up'"))
}

fn no_carrier(PortFacts { name, up, carrier, .. }: &PortFacts) -> Option<Finding> {
    if !*up || *carrier {
        return None;
    }
    let remedy = "check the cable, and that the interface at its other end is up".to_owned();
    finding(Severity::Refuse, format!("{name} has no link"), remedy)
}

fn controlled(PortFacts { name, controller, .. }: &PortFacts) -> Option<Finding> {
    let controller = controller.as_ref()?;
    let cause = format!(
        "{name} belongs to the {} {}, which takes what arrives and sends frames of its own",
        controller.kind, controller.name
    );
    finding(Severity::Refuse, cause, format!("take it out with 'ip link set {name} nomaster'"))
}

fn other_program(PortFacts { name, xdp_program, .. }: &PortFacts) -> Option<Finding> {
    let program = xdp_program.as_ref()?;
    let cause =
        format!("{name} has an XDP program of another process already (id {}, {})", program.id, program.mode);
    let remedy = format!(
        "'bpftool prog show id {}' names it; end the process that attached it, or remove it with \
         'ip link set dev {name} xdp off'",
        program.id
    );
    finding(Severity::Refuse, cause, remedy)
}

fn half_duplex(PortFacts { name, full_duplex, .. }: &PortFacts) -> Option<Finding> {
    if *full_duplex != Some(false) {
        return None;
    }
    let cause = format!("{name} runs at half duplex: it cannot send and receive at the same time");
    let remedy = format!("let both ends negotiate with 'ethtool -s {name} autoneg on', and check the cable");
    finding(Severity::Warn, cause, remedy)
}

fn large_mtu(PortFacts { name, mtu, driver, .. }: &PortFacts) -> Option<Finding> {
    // A veth has no ring of pages.
    if *mtu <= LARGEST_MTU || driver.as_deref() == Some("veth") {
        return None;
    }
    let cause =
        format!("{name} has an MTU of {mtu}, and many drivers take an XDP program only up to {LARGEST_MTU}");
    finding(Severity::Warn, cause, format!("lower it with 'ip link set {name} mtu 1500'"))
}

fn merges(facts: &PortFacts, offload: &str, what: &str, flag: &str) -> Option<Finding> {
    if !facts.is_on(offload) {
        return None;
    }
    let name = &facts.name;
    let cause = format!("on {name}, {what}: fewer and larger frames are counted than arrived");
    finding(Severity::Warn, cause, format!("switch it off with 'ethtool -K {name} {flag} off'"))
}

/// The offloads of a virtio device that keep its driver from taking an XDP program, where the guest cannot
/// switch them off.
pub(crate) fn guest_offloads(facts: &PortFacts) -> Option<Finding> {
    let virtio = facts.virtio.as_ref().filter(|_| facts.driver.as_deref() == Some("virtio_net"))?;
    let on: Vec<&str> =
        virtio.iter().map(String::as_str).filter(|feature| feature.starts_with("GUEST_")).collect();
    if on.is_empty() || virtio.contains("CTRL_GUEST_OFFLOADS") {
        return None;
    }
    let cause = format!(
        "the host hands {} merged or unchecked frames ({}), and its driver takes no XDP program while it does",
        facts.name,
        on.join(", ")
    );
    let remedy = "switch this off at the hypervisor: QEMU's '-device virtio-net-pci,guest_csum=off,\
                  guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off', libvirt's \
                  <driver><guest csum='off' tso4='off' tso6='off' ecn='off' ufo='off'/></driver>; or let the \
                  guest do so with ctrl_guest_offloads=on"
        .to_owned();
    finding(Severity::Refuse, cause, remedy)
}

/// virtio_net sends redirected frames by a queue for each core beyond those that it uses otherwise; where the
/// host offers fewer, cores share one under a lock.
fn virtio_queues(facts: &PortFacts) -> Option<Finding> {
    let queues = facts.queues.as_ref().filter(|_| facts.driver.as_deref() == Some("virtio_net"))?;
    let Queues { combined, combined_max, .. } = *queues;
    let wanted = combined.saturating_add(facts.cores);
    if combined_max >= wanted {
        return None;
    }
    let name = &facts.name;
    let cause = format!(
        "{name} has too few pairs of queues ({combined_max}, of which {combined} in use): XDP needs one more for each of the \
         host's {} cores, so cores share a transmit queue under a lock",
        facts.cores
    );
    let lower = if combined > 1 {
        format!("use fewer with 'ethtool -L {name} combined 1', or ")
    } else {
        String::new()
    };
    let remedy = format!(
        "{lower}give the guest more: QEMU's 'queues={0}' at -netdev with 'mq=on,vectors={1}' at -device, \
         libvirt's <driver queues='{0}'/>",
        facts.cores + 1,
        2 * (facts.cores + 1) + 2
    );
    finding(Severity::Warn, cause, remedy)
}

fn small_ring(PortFacts { name, rings, .. }: &PortFacts) -> Option<Finding> {
    let Rings { transmit, transmit_max, .. } = rings.as_ref().copied()?;
    if transmit >= SMALL_RING || transmit_max <= transmit || transmit == 0 {
        return None;
    }
    let cause = format!(
        "a transmit queue of {name} holds {transmit} frames only: bursts overflow it and stay unsent"
    );
    finding(Severity::Warn, cause, format!("enlarge it with 'ethtool -G {name} tx {transmit_max}'"))
}

fn pause_frames(PortFacts { name, pause, .. }: &PortFacts) -> Option<Finding> {
    let Pause { obeyed, sent, frames_received, .. } = pause.as_ref().copied()?;
    let what = match (obeyed, sent) {
        (true, true) => "obeys and sends",
        (true, false) => "obeys",
        (false, true) => "sends",
        (false, false) => return None,
    };
    let so_far = frames_received.filter(|frames| *frames > 0);
    let so_far = so_far.map_or(String::new(), |frames| format!(" ({frames} have come so far)"));
    let cause = format!(
        "{name} {what} pause frames{so_far}: an overloaded device slows the tester down and hides its losses"
    );
    finding(
        Severity::Warn,
        cause,
        format!("switch them off with 'ethtool -A {name} autoneg off rx off tx off'"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::record::{Controller, XdpProgram};

    /// A card of 1 Gb/s as its driver finds it, with nothing in the way.
    pub fn card(driver: &str) -> PortFacts {
        PortFacts {
            name: "eth1".to_owned(),
            driver: Some(driver.to_owned()),
            up: true,
            carrier: true,
            speed_mbps: Some(1000),
            full_duplex: Some(true),
            mtu: 1500,
            rings: Some(Rings { receive: 1024, transmit: 1024, receive_max: 4096, transmit_max: 4096 }),
            queues: Some(Queues { combined: 4, combined_max: 8, ..Queues::default() }),
            pause: Some(Pause::default()),
            cores: 4,
            ..PortFacts::default()
        }
    }

    fn only(facts: &PortFacts) -> Finding {
        let [found] = findings(facts).try_into().unwrap();
        found
    }

    #[test]
    fn a_card_that_is_ready_has_no_findings() {
        for driver in
            ["r8169", "e1000e", "igb", "igc", "ixgbe", "i40e", "ice", "mlx5_core", "vmxnet3", "veth"]
        {
            assert_eq!(findings(&card(driver)), [], "{driver}");
        }
        // What is not known is not guessed.
        let unknown = PortFacts { up: true, carrier: true, mtu: 1500, ..PortFacts::default() };
        assert_eq!(findings(&unknown), []);
    }

    #[test]
    fn a_port_that_cannot_be_used_is_refused_with_the_command_that_mends_it() {
        let bridge = Controller { name: "br0".to_owned(), kind: "bridge".to_owned() };
        let program = XdpProgram { id: 42, mode: "native".to_owned() };
        let cases = [
            (PortFacts { up: false, carrier: false, ..card("igb") }, "is down", "ip link set eth1 up"),
            (PortFacts { carrier: false, ..card("igb") }, "no link", "cable"),
            (
                PortFacts { controller: Some(bridge), ..card("igb") },
                "bridge br0",
                "ip link set eth1 nomaster",
            ),
            (
                PortFacts { xdp_program: Some(program), ..card("igb") },
                "id 42",
                "ip link set dev eth1 xdp off",
            ),
        ];
        for (facts, cause, remedy) in cases {
            let found = only(&facts);
            assert_eq!(found.severity, Severity::Refuse);
            assert!(found.cause.contains(cause) && found.remedy.contains(remedy), "{found}");
        }
    }

    #[test]
    fn what_makes_results_wrong_is_warned_of() {
        let with = |offload: &str| Some([offload.to_owned()].into());
        let pause = Pause { obeyed: true, frames_received: Some(7), ..Pause::default() };
        let rings = Rings { receive: 256, transmit: 256, receive_max: 4096, transmit_max: 4096 };
        let cases = [
            (PortFacts { full_duplex: Some(false), ..card("r8169") }, "half duplex", "autoneg on"),
            (PortFacts { mtu: 9000, ..card("ixgbe") }, "9000", "mtu 1500"),
            (PortFacts { offloads: with("rx-lro"), ..card("ixgbe") }, "LRO", "ethtool -K eth1 lro off"),
            (PortFacts { offloads: with("rx-gro-hw"), ..card("bnxt_en") }, "GRO_HW", "rx-gro-hw off"),
            (PortFacts { rings: Some(rings), ..card("e1000e") }, "256 frames", "ethtool -G eth1 tx 4096"),
            (
                PortFacts { pause: Some(pause), ..card("mlx5_core") },
                "(7 have come so far)",
                "ethtool -A eth1",
            ),
        ];
        for (facts, cause, remedy) in cases {
            let found = only(&facts);
            assert_eq!(found.severity, Severity::Warn);
            assert!(found.cause.contains(cause) && found.remedy.contains(remedy), "{found}");
        }
        assert_eq!(findings(&PortFacts { mtu: 9216, ..card("veth") }), []);
    }

    #[test]
    fn a_virtio_device_is_judged_by_what_the_host_offers() {
        let features = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        let fixed = PortFacts { virtio: features(&["GUEST_CSUM", "GUEST_TSO4"]), ..card("virtio_net") };
        let found = only(&fixed);
        assert!(found.cause.contains("GUEST_CSUM, GUEST_TSO4"), "{found}");
        assert!(found.remedy.contains("guest_csum=off") && found.remedy.contains("libvirt"), "{found}");
        let switchable = features(&["GUEST_CSUM", "GUEST_TSO4", "CTRL_GUEST_OFFLOADS"]);
        assert_eq!(findings(&PortFacts { virtio: switchable, ..card("virtio_net") }), []);

        let one = Some(Queues { combined: 1, combined_max: 1, ..Queues::default() });
        let found = only(&PortFacts { queues: one, cores: 2, ..card("virtio_net") });
        assert!(found.remedy.contains("queues=3") && found.remedy.contains("vectors=8"), "{found}");
        assert!(!found.remedy.contains("ethtool -L"), "{found}");
        let all = Some(Queues { combined: 8, combined_max: 8, ..Queues::default() });
        let found = only(&PortFacts { queues: all, cores: 4, ..card("virtio_net") });
        assert!(found.remedy.contains("ethtool -L eth1 combined 1"), "{found}");
    }

    #[test]
    fn refusals_come_first() {
        let pause = Pause { obeyed: true, sent: true, ..Pause::default() };
        let facts = PortFacts { pause: Some(pause), carrier: false, ..card("igb") };
        let severities: Vec<_> = findings(&facts).into_iter().map(|finding| finding.severity).collect();
        assert_eq!(severities, [Severity::Refuse, Severity::Warn]);
    }
}
