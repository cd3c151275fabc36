//! Whether the kernel engine can send by an interface, which takes a driver that transmits redirected frames:
//! its facts enter; yes, no with cause and remedy, or what has to be tried leaves.

use std::time::Duration;

use results::record::{PortFacts, XdpFeature};

use crate::findings::guest_offloads;
use crate::link::Link;
use crate::program::{Attached, probe};
use crate::{Result, ethtool, wait_for_carrier};

/// Drivers without XDP, or without it in every kernel that does not tell what a driver can do (before 6.3).
const WITHOUT_XDP: [&str; 12] = [
    "8139cp", "8139too", "alx", "atl1c", "e1000", "e1000e", "pcnet32", "r8152", "r8169", "sky2", "tg3",
    "vmxnet3",
];
/// How long a card that resets when a program is attached may be without a link.
const RESET: Duration = Duration::from_secs(10);

/// What facts say of sending by the kernel engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sending {
    /// It can.
    Yes,
    /// It may be able to while an XDP program is attached to the interface.
    WithProgram,
    /// The kernel does not tell.
    Unknown,
    /// It cannot.
    No {
        /// Why.
        cause: String,
        /// What would let it.
        remedy: String,
    },
}

impl Sending {
    /// Judges by facts alone.
    #[must_use]
    pub fn of(facts: &PortFacts) -> Self {
        let name = &facts.name;
        let driver = facts.driver.as_deref().unwrap_or("unknown");
        if let Some(finding) = guest_offloads(facts) {
            return Self::No { cause: finding.cause, remedy: finding.remedy };
        }
        match (facts.has(XdpFeature::NdoXmit), facts.has(XdpFeature::Basic)) {
            (Some(true), _) => Self::Yes,
            (Some(false), Some(true)) if driver == "veth" => Self::No {
                cause: format!("the other end of the veth {name} takes no redirected frames"),
                remedy: "switch GRO on there ('ethtool -K NAME gro on'), or attach an XDP program there"
                    .to_owned(),
            },
            (Some(false), Some(true)) if facts.xdp_program.is_none() => Self::WithProgram,
            (Some(false), Some(true)) => Self::No {
                cause: format!("the driver {driver} of {name} transmits no redirected frames"),
                remedy: "use '--engine af_xdp', which sends by any card".to_owned(),
            },
            (Some(false), _) => without_xdp(name, driver),
            (None, _) if WITHOUT_XDP.contains(&driver) => without_xdp(name, driver),
            (None, _) => Self::Unknown,
        }
    }
}

fn without_xdp(name: &str, driver: &str) -> Sending {
    Sending::No {
        cause: format!("the driver {driver} of {name} has no XDP in this kernel"),
        remedy: "use '--engine af_xdp', which sends by any card, or a card with XDP (docs/real-ports.md lists them)"
            .to_owned(),
    }
}

/// What was found out about sending by the kernel engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// [`Sending::Yes`] or [`Sending::No`].
    pub sending: Sending,
    /// Whether it takes an XDP program at the sending interface ([`Attached`]).
    pub needs_program: bool,
    /// How that is known.
    pub because: String,
}

/// Finds out whether the kernel engine can send by the interface of `facts`, whose address is `mac`. Where
/// facts do not tell, a program is attached for a moment, and where that does not tell either, a few frames are
/// sent. Nothing stays at the interface.
///
/// # Errors
/// [`crate::Error::Missing`], or [`crate::Error::Kernel`]. A program that the kernel refuses is a
/// [`Sending::No`].
pub fn can_send(facts: &PortFacts, mac: wire::MacAddress) -> Result<Verdict> {
    let told = |sending| Verdict { sending, needs_program: false, because: "the kernel tells".to_owned() };
    match Sending::of(facts) {
        Sending::WithProgram => with_program(facts, mac),
        Sending::Unknown if facts.xdp_program.is_some() => Ok(trial(facts, mac, false)),
        Sending::Unknown => {
            let without = trial(facts, mac, false);
            if without.sending == Sending::Yes { Ok(without) } else { with_program(facts, mac) }
        }
        known => Ok(told(known)),
    }
}

/// The verdict while a program is attached, for this moment only.
fn with_program(facts: &PortFacts, mac: wire::MacAddress) -> Result<Verdict> {
    let index = Link::by_name(&facts.name)?.index;
    let attached = match Attached::to(index) {
        Ok(attached) => attached,
        Err(refusal) => {
            let sending = Sending::No {
                cause: format!("{} takes no XDP program: {refusal}", facts.name),
                remedy: "use '--engine af_xdp', which sends by any card".to_owned(),
            };
            return Ok(Verdict {
                sending,
                needs_program: true,
                because: "an attempt to attach one".to_owned(),
            });
        }
    };
    wait_for_carrier(&[&facts.name], RESET)?;
    let features = ethtool::xdp_features(index);
    let verdict = if features.is_some() {
        // The program that is attached now is this one: a driver that needs one has it.
        let now =
            PortFacts { xdp_features: features, xdp_program: Some(Default::default()), ..facts.clone() };
        let because = "the kernel tells while an XDP program is attached".to_owned();
        Verdict { sending: Sending::of(&now), needs_program: true, because }
    } else {
        trial(facts, mac, true)
    };
    drop(attached);
    wait_for_carrier(&[&facts.name], RESET)?;
    Ok(verdict)
}

/// The verdict of a few frames.
fn trial(facts: &PortFacts, mac: wire::MacAddress, needs_program: bool) -> Verdict {
    let no =
        |cause| Sending::No { cause, remedy: "use '--engine af_xdp', which sends by any card".to_owned() };
    let sending = match probe(&facts.name, mac) {
        Ok(true) => Sending::Yes,
        Ok(false) => no(format!("none of the frames redirected to {} for a trial left it", facts.name)),
        Err(error) => no(error.to_string()),
    };
    Verdict { sending, needs_program, because: "a trial of a few frames".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use XdpFeature::{Basic, NdoXmit, Redirect, XskZerocopy};

    fn card(driver: &str, features: Option<&[XdpFeature]>) -> PortFacts {
        PortFacts {
            name: "eth1".to_owned(),
            driver: Some(driver.to_owned()),
            xdp_features: features.map(|features| features.iter().copied().collect()),
            ..PortFacts::default()
        }
    }

    fn cause(sending: Sending) -> String {
        let Sending::No { cause, remedy } = sending else { panic!("{sending:?}") };
        assert!(!remedy.is_empty());
        cause
    }

    #[test]
    fn new_kernels_tell_what_a_driver_can() {
        let mlx5 = card("mlx5_core", Some(&[Basic, Redirect, NdoXmit, XskZerocopy]));
        assert_eq!(Sending::of(&mlx5), Sending::Yes);
        for driver in ["virtio_net", "i40e", "ixgbe", "ice", "ena", "bnxt_en"] {
            let idle = card(driver, Some(&[Basic, Redirect]));
            assert_eq!(Sending::of(&idle), Sending::WithProgram, "{driver}");
        }
        for driver in ["r8169", "e1000e", "tg3"] {
            assert!(cause(Sending::of(&card(driver, Some(&[])))).contains("has no XDP"), "{driver}");
        }
    }

    #[test]
    fn old_kernels_do_not_tell_but_some_drivers_never_could() {
        for driver in ["r8169", "e1000e", "e1000", "tg3", "vmxnet3"] {
            assert!(cause(Sending::of(&card(driver, None))).contains(driver), "{driver}");
        }
        for driver in ["virtio_net", "igb", "mlx5_core", "something-new"] {
            assert_eq!(Sending::of(&card(driver, None)), Sending::Unknown, "{driver}");
        }
        // vmxnet3 has it since 6.6, whose kernel tells so.
        let new = card("vmxnet3", Some(&[Basic, Redirect, NdoXmit]));
        assert_eq!(Sending::of(&new), Sending::Yes);
    }

    #[test]
    fn a_veth_needs_its_other_end() {
        let veth = Sending::of(&card("veth", Some(&[Basic, Redirect])));
        assert!(cause(veth).contains("the other end of the veth eth1"));
    }

    #[test]
    fn a_virtio_device_whose_offloads_are_fixed_takes_no_program() {
        let facts = PortFacts {
            virtio: Some(["GUEST_CSUM".to_owned()].into()),
            ..card("virtio_net", Some(&[Basic, Redirect]))
        };
        assert!(cause(Sending::of(&facts)).contains("GUEST_CSUM"));
    }

    #[test]
    fn another_program_is_not_replaced() {
        let facts =
            PortFacts { xdp_program: Some(Default::default()), ..card("i40e", Some(&[Basic, Redirect])) };
        assert!(cause(Sending::of(&facts)).contains("transmits no redirected frames"));
    }
}
