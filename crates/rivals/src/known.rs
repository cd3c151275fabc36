//! The generators that `--program` knows: a name enters, the generator leaves, or why it cannot send here.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use programs::is_installed;
use testbed::target::EngineName;

use super::datagram::Datagram;
use super::defined::Defined;
use super::program::{Program, Target};
use super::{defined, iperf3, own, testpmd, trafgen, user_space};

fn all() -> [&'static dyn Program; 12] {
    [
        &own::KERNEL,
        &own::AF_XDP,
        &own::MEMIF,
        &own::NULL,
        &iperf3::Iperf3,
        &trafgen::Trafgen,
        &*defined::TCPREPLAY,
        &testpmd::AF_PACKET,
        &testpmd::AF_XDP,
        &testpmd::MEMIF,
        &testpmd::NULL,
        &*defined::XDP_TRAFFICGEN,
    ]
}

/// What the names of files end in that define a generator.
const FILE: &str = ".toml";

/// One of the generators.
#[derive(Clone, Copy)]
pub struct Chosen(pub &'static dyn Program);

impl Chosen {
    /// The same where the ports are for `engine`: Linerate's own by AF_XDP, which refuses the same datagrams, where they
    /// take nothing else.
    #[must_use]
    pub fn by(self, engine: EngineName) -> Self {
        let is_refused = engine == EngineName::AfXdp && self.0.name() == own::KERNEL.name();
        if is_refused { Self(&own::AF_XDP) } else { self }
    }

    /// The device of the lab that it sends to, or through if it sends `across` one, unless the user names another.
    #[must_use]
    pub fn default_device(self, across: bool) -> &'static str {
        if across { super::across::DEVICE } else { self.0.far_end() }
    }
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl FromStr for Chosen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.ends_with(FILE) {
            // It lives as long as the program, which reads one or a few.
            let defined = Defined::read(Path::new(text))?;
            return Ok(Self(Box::leak(Box::new(defined))));
        }
        let known = || all().map(Program::name).join(", ");
        let found = all().into_iter().find(|program| program.name() == text);
        found.map(Self).ok_or_else(|| {
            format!(
                "there is no generator '{text}'. There are: {}, and files whose names end in {FILE}",
                known()
            )
        })
    }
}

/// Why `program` cannot send such datagrams from that core here, with the remedy.
pub fn refusal(program: &dyn Program, datagram: Datagram, core: usize) -> Option<String> {
    if program.target() != Target::Lab
        && let Some(refusal) = user_space::refusal(program)
    {
        return Some(refusal);
    }
    if !is_installed(program.executable()) {
        return Some(format!(
            "{} is not installed; install it (Debian's package {})",
            program.executable(),
            program.package()
        ));
    }
    program.refusal(datagram, core)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linerate_sends_by_the_engine_that_the_ports_take() {
        let program: Chosen = "linerate".parse().unwrap();
        assert_eq!(program.by(EngineName::Xdp).0.name(), "linerate");
        assert_eq!(program.by(EngineName::AfXdp).0.name(), "linerate-af-xdp");
        let other: Chosen = "trafgen".parse().unwrap();
        assert_eq!(other.by(EngineName::AfXdp).0.name(), "trafgen");
    }

    #[test]
    fn generators_are_known_by_name() {
        for program in all() {
            assert_eq!(program.name().parse::<Chosen>().unwrap().0.name(), program.name());
        }
        let unknown = "pktgen".parse::<Chosen>().unwrap_err();
        assert!(unknown.contains("'pktgen'") && unknown.contains("trafgen"), "{unknown}");
    }
}
