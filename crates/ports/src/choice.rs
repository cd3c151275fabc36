//! Which engine `auto` takes: what was found out about each port enters; the engine, and why in a sentence,
//! leave.

use crate::sending::{Sending, Verdict};

/// An engine for interfaces of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Frames are made and counted by XDP programs.
    Kernel,
    /// Frames pass AF_XDP sockets.
    AfXdp,
}

/// The kernel engine where each port can transmit redirected frames, and AF_XDP otherwise. Ports are pairs of
/// name and verdict.
#[must_use]
pub fn choose(ports: &[(&str, &Verdict)]) -> (Engine, String) {
    let refused = ports.iter().find_map(|(_, verdict)| match &verdict.sending {
        Sending::No { cause, .. } => Some(cause),
        _ => None,
    });
    if let Some(cause) = refused {
        return (Engine::AfXdp, format!("af_xdp, because {cause}"));
    }
    let names: Vec<_> = ports.iter().map(|(name, _)| *name).collect();
    let transmit = if names.len() == 1 { "transmits" } else { "transmit" };
    let because = ports.first().map_or("nothing to ask", |(_, verdict)| verdict.because.as_str());
    (Engine::Kernel, format!("xdp, because {} {transmit} redirected frames ({because})", names.join(" and ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(sending: Sending) -> Verdict {
        Verdict { sending, needs_program: false, because: "the kernel tells".to_owned() }
    }

    #[test]
    fn one_port_that_cannot_decides() {
        let yes = verdict(Sending::Yes);
        let no =
            verdict(Sending::No { cause: "the driver r8169 has no XDP".to_owned(), remedy: String::new() });
        let (engine, why) = choose(&[("eth1", &yes), ("eth2", &yes)]);
        assert_eq!(engine, Engine::Kernel);
        assert_eq!(why, "xdp, because eth1 and eth2 transmit redirected frames (the kernel tells)");
        let (engine, why) = choose(&[("eth1", &yes), ("eth2", &no)]);
        assert_eq!((engine, why.as_str()), (Engine::AfXdp, "af_xdp, because the driver r8169 has no XDP"));
    }
}
