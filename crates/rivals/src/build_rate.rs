//! How fast this machine builds frames without sending them, as ipgen's -X.
//!
//! Sizes and cores enter; a table of frames a second leaves: into memory, through shared memory to a sink,
//! and with DPDK onto a port that drops them too.

mod places;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use engine::build_rate::Built;
use results::record::Topology;
use serde::Serialize;
use traffic::tunable::{Size, Vm};
use traffic::{Directions, Endpoint, Endpoints, FrameTable, IpVersion, Profile, Tunables};
use wire::{MacAddress, human, size};
use wording::usage::misuse;

pub use places::Place;
use places::{Measured, Places};
use testbed::stop;

/// The frame sizes of RFC 2544, section 9.1, and jumbo frames.
const SIZES: [u16; 9] = [64, 128, 256, 512, 1024, 1280, 1518, 4096, 9216];
/// The longest that one figure may take.
const LONGEST: Duration = Duration::from_secs(60);

/// What is built, and how long.
pub struct Wanted {
    /// Frame sizes in bytes with FCS; empty for those of RFC 2544 and jumbo frames.
    pub sizes: Vec<Size>,
    /// How flows vary.
    pub flows: Vm,
    /// The IP version.
    pub ip: IpVersion,
    /// The cores that build; empty for all.
    pub cores: Vec<usize>,
    /// Where frames go; empty for everywhere that this program was built for.
    pub onto: Vec<Place>,
    /// How long each figure is measured, up to a minute.
    pub duration: Duration,
}

/// One figure of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Where the frames went.
    pub onto: Place,
    /// Bytes with FCS, on average.
    pub frame_size: f64,
    /// The cores that built.
    pub cores: Vec<usize>,
    /// Frames a second of all cores together.
    pub pps: f64,
    /// The same in bits a second on the wire (L1).
    pub l1_bps: f64,
    /// Frames a second of each core.
    pub pps_of_each_core: Vec<f64>,
    /// Cores that took the frames out of shared memory: those that built, in turns with that, where no others
    /// were left.
    pub sinks: Vec<usize>,
}

/// All that was measured.
#[derive(Clone, Debug)]
pub struct Figures {
    /// One for each place, size and number of cores.
    pub figures: Vec<Figure>,
    /// What a reader should know of them.
    pub notes: Vec<String>,
}

/// Measures what is `wanted`; `None` if the user stopped it.
///
/// # Errors
/// What was asked for wrongly, or cannot be built here.
pub fn measure(wanted: &Wanted, stop: &AtomicBool) -> Result<Option<Figures>> {
    if wanted.duration.is_zero() || wanted.duration > LONGEST {
        return Err(misuse(format!(
            "--duration is {:?}: give more than nothing, up to a minute",
            wanted.duration
        )));
    }
    let host = lab::placement::host().map_err(lab::Error::from)?;
    let online = lab::placement::online().map_err(lab::Error::from)?;
    // One of each physical core first, so that a figure of few cores is not of the threads of one.
    let online = host.spread(&online);
    let cores = if wanted.cores.is_empty() { online.clone() } else { wanted.cores.clone() };
    if let Some(core) = cores.iter().find(|core| host.core(**core).is_none()) {
        return Err(misuse(format!("core {core} is not available. There are: {:?}", host.numbers())));
    }
    let tables = tables(wanted)?;
    let places = Places::open(&wanted.onto, &online)?;
    let mut figures = Vec::new();
    for place in places.list() {
        for table in &tables {
            for count in 1..=cores.len() {
                if stop::is_set(stop) {
                    return Ok(None);
                }
                let cores = &cores[..count];
                if let Some(measured) = places.build(*place, table, cores, wanted.duration)? {
                    figures.push(Figure::new(*place, table, cores, measured));
                }
            }
        }
    }
    let notes = places.notes().iter().map(ToString::to_string).chain(in_turns(&figures));
    let notes = notes.chain(side_by_side(&host, &cores)).collect();
    Ok(Some(Figures { figures, notes }))
}

/// A frame table for each size.
fn tables(wanted: &Wanted) -> Result<Vec<FrameTable>> {
    let sizes = if wanted.sizes.is_empty() { SIZES.map(Size::Bytes).to_vec() } else { wanted.sizes.clone() };
    let mac = |last| MacAddress([2, 0, 0, 0, 0, last]);
    let endpoint = Endpoint { source: mac(1), destination: mac(2) };
    let table = |size| {
        let tunables = Tunables { size: Some(size), vm: Some(wanted.flows), ip: Some(wanted.ip), vlan: None };
        let profile = Profile::builtin("bench", &tunables).map_err(|error| misuse(error.to_string()))?;
        Ok(profile.table(&Endpoints([endpoint; 2]), Directions::Forward))
    };
    sizes.into_iter().map(table).collect()
}

impl Figure {
    fn new(onto: Place, table: &FrameTable, cores: &[usize], Measured { built, sinks }: Measured) -> Self {
        let pps_of_each_core: Vec<f64> = built.iter().map(Built::pps).collect();
        let pps = pps_of_each_core.iter().sum();
        let frame_size = table.mean_frame_size();
        let l1_bps = size::pps_to_l1_bps(pps, frame_size);
        Self { onto, frame_size, cores: cores.to_vec(), pps, l1_bps, pps_of_each_core, sinks }
    }
}

/// Which figures are of cores that had to empty the shared memory themselves, if any are.
fn in_turns(figures: &[Figure]) -> Option<String> {
    let mut counts: Vec<usize> = figures
        .iter()
        .filter(|figure| figure.sinks == figure.cores)
        .map(|figure| figure.cores.len())
        .collect();
    counts.sort_unstable();
    counts.dedup();
    counts.first()?;
    let cores = if counts == [1] { "core" } else { "cores" };
    let columns = counts.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    Some(format!(
        "memif by {columns} {cores}: too few others were left for sinks, so each took its frames out again \
         itself, in turns with building"
    ))
}

/// From how many of `cores` on two of them are threads of one physical core, if any are.
fn side_by_side(host: &Topology, cores: &[usize]) -> Option<String> {
    let pair = |(at, core): (usize, &usize)| {
        let earlier = cores.iter().take(at).find(|earlier| host.are_siblings(**earlier, *core))?;
        Some(format!(
            "figures of {} cores and more: cores {earlier} and {core} are threads of one physical core, and slow each \
             other",
            at + 1
        ))
    };
    cores.iter().enumerate().find_map(pair)
}

/// A table for people: a line for each place and size, a column for each number of cores.
#[must_use]
pub fn show(figures: &[Figure]) -> String {
    let most = figures.iter().map(|figure| figure.cores.len()).max().unwrap_or(0);
    let mut text = format!("{:10} {:>5}", "onto", "size");
    for count in 1..=most {
        let cores = if count == 1 { "core " } else { "cores" };
        text += &format!("  {:>26}", format!("{count} {cores}"));
    }
    let mut line: Option<(Place, f64)> = None;
    for figure in figures {
        let of = (figure.onto, figure.frame_size);
        if line != Some(of) {
            text += &format!("\n{:10} {:>5.0}", figure.onto.name(), figure.frame_size);
            line = Some(of);
        }
        text += &format!("  {:>12} {:>13}", human::pps(figure.pps), human::bps(figure.l1_bps));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use results::record::Core;

    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_size_and_a_column_for_each_number_of_cores() {
        let figure = |onto, frame_size, cores: &[usize], pps| Figure {
            onto,
            frame_size,
            cores: cores.to_vec(),
            pps,
            l1_bps: size::pps_to_l1_bps(pps, frame_size),
            pps_of_each_core: vec![pps],
            sinks: Vec::new(),
        };
        let figures = [
            figure(Place::Memory, 64.0, &[0], 80e6),
            figure(Place::Memory, 64.0, &[0, 1], 160e6),
            figure(Place::NetMemif, 9216.0, &[0], 1e6),
        ];
        let text = show(&figures);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].contains("1 core") && lines[0].contains("2 cores"), "{text}");
        assert!(lines[1].contains("80.00 Mpps") && lines[1].ends_with("107.52 Gbps"), "{text}");
        assert!(lines[2].starts_with("net_memif   9216") && lines[2].contains("1.00 Mpps"), "{text}");
    }

    #[test]
    fn the_number_of_cores_from_which_threads_share_a_physical_core_is_said() {
        let core = |number: usize| Core { number, siblings: vec![(number + 2) % 4], ..Core::default() };
        let host = Topology { cores: (0..4).map(core).collect(), ..Topology::default() };
        let said = "figures of 3 cores and more: cores 0 and 2 are threads of one physical core, and slow each other";
        assert_eq!(side_by_side(&host, &host.spread(&[0, 1, 2, 3])).as_deref(), Some(said));
        assert_eq!(side_by_side(&host, &[0, 1]), None);
        assert_eq!(side_by_side(&Topology::flat(&[0, 1, 2, 3]), &[0, 1, 2, 3]), None);
    }

    #[test]
    fn it_is_said_which_figures_are_of_cores_that_were_their_own_sinks() {
        let figure = |cores: &[usize], sinks: &[usize]| Figure {
            onto: Place::Memif,
            frame_size: 64.0,
            cores: cores.to_vec(),
            pps: 1e6,
            l1_bps: 1e6,
            pps_of_each_core: vec![1e6],
            sinks: sinks.to_vec(),
        };
        assert_eq!(in_turns(&[figure(&[0], &[1]), figure(&[0], &[])]), None);
        let said = |figures: &[Figure]| in_turns(figures).unwrap();
        assert!(said(&[figure(&[0], &[0])]).starts_with("memif by 1 core: "));
        let some = [figure(&[0], &[2]), figure(&[0, 1], &[0, 1]), figure(&[0, 1, 2], &[0, 1, 2])];
        assert!(said(&some).starts_with("memif by 2, 3 cores: "), "{}", said(&some));
    }
}
