//! What a frame costs at each step from memory to a port: a generator enters; the steps with what they cost beside
//! building leave, the same for the terminal and the page.

use results::record::{BuiltFrames, Generator, WaterfallStep};
use wire::human::pps;

/// One step.
pub struct Step {
    pub name: String,
    /// Frames a second of one core.
    pub pps: f64,
    /// What a frame takes of the core, in nanoseconds …
    pub ns: f64,
    /// … and how much of that is not building it in memory; `None` of that step itself, and where it is not known.
    pub more_ns: Option<f64>,
}

/// The steps in their order.
pub fn steps(found: &Generator) -> Vec<Step> {
    let building = found.waterfall.iter().find(|step| step.name == BUILDING).map(WaterfallStep::ns_per_frame);
    let each = found.waterfall.iter().map(|step| Step {
        name: step.name.clone(),
        pps: step.pps,
        ns: step.ns_per_frame(),
        more_ns: building.filter(|_| step.name != BUILDING).map(|building| step.ns_per_frame() - building),
    });
    each.collect()
}

const BUILDING: &str = "memory";

/// The last step in a few words, like `8.00 Mpps, 125 ns per frame`.
pub fn headline(found: &Generator) -> Option<String> {
    let last = found.waterfall.last()?;
    Some(format!("{}, {:.0} ns per frame", pps(last.pps), last.ns_per_frame()))
}

/// What happens at the step of this name.
pub fn meaning(name: &str) -> &'static str {
    match name {
        BUILDING => "it is built in a buffer that stays in the cache",
        "memif" => "it is built in shared memory; a sink takes it out",
        "null" => "it is built in a buffer of DPDK and handed to a driver that drops it",
        "net_memif" => "DPDK copies it into shared memory; a sink takes it out",
        "af_xdp" => "an AF_XDP socket sends it at the port",
        "xdp" => "an XDP program in the kernel sends it at the port",
        _ => "",
    }
}

/// The places, in the order in which they were measured.
pub fn places(built: &[BuiltFrames]) -> Vec<&str> {
    let mut places: Vec<&str> = Vec::new();
    for frames in built {
        if !places.contains(&frames.onto.as_str()) {
            places.push(&frames.onto);
        }
    }
    places
}

/// The sizes, the smallest first.
pub fn sizes(built: &[BuiltFrames]) -> Vec<f64> {
    let mut sizes: Vec<f64> = built.iter().map(|frames| frames.frame_size).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    sizes
}
