//! Real interfaces before the first frame: ports and the engine that was asked for enter; what they are and
//! can, the engine that is used and why leave, or why they cannot be used.

use std::time::Duration;

use anyhow::Result;
use engine::xdp;
use lab::Port;
use ports::{Attached, PortFacts, Sending, Severity, Verdict};
use wording::usage::misuse;

use crate::target::EngineName;

/// How long a card that resets when an XDP program is attached may be without a link.
const RESET: Duration = Duration::from_secs(15);

/// What was found at one or two interfaces.
pub struct Inspection {
    /// What the kernel and the drivers say of them.
    pub facts: Vec<PortFacts>,
    /// What sends and receives.
    pub engine: EngineName,
    /// Why it is that engine, where `auto` chose it.
    pub why: Option<String>,
    /// What can make a result wrong or low, each with its remedy.
    pub warnings: Vec<String>,
    /// The interfaces that send only while an XDP program is attached to them, by index.
    wanting: Vec<(String, u32)>,
}

impl Inspection {
    /// Looks at `ports`, by which frames of up to `largest` bytes are to be sent by the engine `wanted`.
    ///
    /// # Errors
    /// Wrong use, with cause and remedy, where no engine measures by one of them, or not the one that is wanted.
    pub fn of(ports: &[&Port], wanted: EngineName, largest: usize) -> Result<Self> {
        let facts: Vec<_> = ports.iter().map(|port| ports::read(&port.name)).collect::<Result<_, _>>()?;
        let (refusals, warnings): (Vec<_>, Vec<_>) =
            facts.iter().flat_map(ports::findings).partition(|finding| finding.severity == Severity::Refuse);
        let words =
            |findings: Vec<ports::Finding>| findings.iter().map(ToString::to_string).collect::<Vec<_>>();
        if !refusals.is_empty() {
            return Err(misuse(words(refusals).join("; ")));
        }
        let asked = if matches!(wanted, EngineName::Auto | EngineName::Xdp) { ports } else { &[] };
        let verdicts = facts.iter().zip(asked).map(|(facts, port)| ports::can_send(facts, port.mac));
        let verdicts: Vec<Verdict> = verdicts.collect::<Result<_, _>>()?;
        let (engine, why) = choose(ports, &verdicts, wanted, largest)?;
        // AF_XDP sockets send without.
        let is_kernel = engine == EngineName::Xdp;
        let wanting = ports.iter().zip(&verdicts).filter(|(_, verdict)| is_kernel && verdict.needs_program);
        Ok(Self {
            engine,
            why,
            warnings: words(warnings),
            wanting: wanting.map(|(port, _)| (port.name.clone(), port.ifindex)).collect(),
            facts,
        })
    }

    /// Says on the terminal which engine is used and why, and what to beware of.
    pub fn tell(&self) {
        if let Some(why) = &self.why {
            eprintln!("engine: {why}");
        }
        for warning in &self.warnings {
            eprintln!("warning: {warning}");
        }
    }

    /// Attaches a program that passes every frame on to each interface that sends only with one, until the
    /// result is dropped, and waits for its link.
    ///
    /// # Errors
    /// When the kernel refuses, or a link does not come back.
    pub fn attach(&self) -> Result<Vec<Attached>> {
        let attached =
            self.wanting.iter().map(|(_, index)| Attached::to(*index)).collect::<Result<_, _>>()?;
        let names: Vec<&str> = self.wanting.iter().map(|(name, _)| name.as_str()).collect();
        wait_for_links(&names)?;
        Ok(attached)
    }
}

/// Waits for the links of interfaces to which an XDP program was just attached.
///
/// # Errors
/// When one does not come back.
pub fn wait_for_links(names: &[&str]) -> Result<()> {
    if ports::wait_for_carrier(names, RESET)? {
        return Ok(());
    }
    anyhow::bail!(
        "{}: no link within {} s after an XDP program was attached; check the cable, and the other end",
        names.join(", "),
        RESET.as_secs()
    )
}

fn choose(
    ports: &[&Port],
    verdicts: &[Verdict],
    wanted: EngineName,
    largest: usize,
) -> Result<(EngineName, Option<String>)> {
    match wanted {
        EngineName::Auto => {
            let pairs: Vec<_> = ports.iter().map(|port| port.name.as_str()).zip(verdicts).collect();
            match ports::choose(&pairs) {
                (ports::Engine::Kernel, _) if largest > xdp::MAX_FRAME => {
                    let why = format!(
                        "af_xdp, because frames of {largest} bytes are too large for xdp, which sends at most {}",
                        xdp::MAX_FRAME
                    );
                    Ok((EngineName::AfXdp, Some(why)))
                }
                (ports::Engine::Kernel, why) => Ok((EngineName::Xdp, Some(why))),
                (ports::Engine::AfXdp, why) => Ok((EngineName::AfXdp, Some(why))),
            }
        }
        EngineName::Xdp => match verdicts.iter().find_map(refusal) {
            Some(refusal) => Err(misuse(format!("--engine xdp cannot send: {refusal}"))),
            None => Ok((EngineName::Xdp, None)),
        },
        other => Ok((other, None)),
    }
}

fn refusal(verdict: &Verdict) -> Option<String> {
    match &verdict.sending {
        Sending::No { cause, remedy } => Some(format!("{cause}: {remedy}")),
        _ => None,
    }
}
