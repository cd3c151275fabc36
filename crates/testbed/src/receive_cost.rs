//! What receiving costs the core that the device works on: a lab like the one to be tested enters,
//! and the commands that configured its device; nanoseconds a frame and the share of the core leave.
//!
//! Where there are only two cores, the tester's ports receive on the device's core, in soft
//! interrupts that nobody accounts for. So it is measured beforehand, in a second lab of the same
//! kind: there the ports receive on kernel threads of their own, whose time the scheduler counts,
//! while the device is at its limit and receiving is as efficient as it gets. The share is that of the
//! time in which the device was at its limit, so it is never more than the core has; and since both slow
//! down together, it also holds where the core is slower in the run than it was then.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;
use dut::DutSpec;
use dut::program::Dut;
use engine::xdp::{Config, XdpEngine};
use engine::{Engine, Load};
use lab::{Lab, NapiThread};
use traffic::{Directions, Endpoints, Profile, Tunables};

use crate::{dut_command, port};

/// How long the device is loaded.
const DURATION: Duration = Duration::from_millis(250);
/// How long the last frames are waited for.
const DRAIN: Duration = Duration::from_millis(50);
/// Fewer frames than this say nothing.
const ENOUGH_FRAMES: u64 = 10_000;

/// What receiving takes of the device's core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Receiving {
    /// Nanoseconds for one 64-byte frame.
    pub cost_ns: f64,
    /// The share of its time while the device is at its limit, 0 to 1.
    pub share: f64,
}

/// What receiving takes of the device's core in a lab like `lab`, whose device `commands` configured.
/// `None` where nothing arrives, or too little to tell.
pub fn measure(lab: &Lab, commands: &[String]) -> Result<Option<Receiving>> {
    let dut = match lab.dut().name() {
        "sink" => return Ok(None),
        // Its limits are its purpose; it hands frames over like the plain cross connect.
        "calibrated" => Arc::new("xdp-xconnect".parse::<DutSpec>()?),
        _ => Arc::clone(lab.dut()),
    };
    let twin = Lab::start(&lab::Config { dut, placement: lab.placement().clone(), max_frame_size: 64 })?;
    let _program = Dut::start_in(&twin, 64)?;
    dut_command::inside(twin.dut_namespace(), commands)?;
    let [zero, one] = twin.ports();
    let profile = Profile::builtin("bench", &Tunables::default())?;
    let table = profile.table(&Endpoints([port::endpoint(zero), port::endpoint(one)]), Directions::Forward);
    let mut engine = XdpEngine::start(&Config {
        ports: [port::reference(zero), port::reference(one)],
        namespace: Some(twin.tester_namespace().fd()),
        cores: &twin.placement().generate,
        table: &table,
        stop: Arc::new(AtomicBool::new(false)),
    })?;
    twin.pin()?;
    let threads = twin.receive_apart()?;

    let (before, began) = (time(&threads), Instant::now());
    let interval = engine.begin(Load::Max)?;
    engine.wait(DURATION)?;
    let (loaded, lasted) = (time(&threads).saturating_sub(before), began.elapsed());
    engine.begin(Load::Idle)?;
    engine.wait(DRAIN)?;
    let used = time(&threads).saturating_sub(before);
    let received: u64 = engine.counts(interval)?.iter().map(|counts| counts.forwarded).sum();
    let enough = received >= ENOUGH_FRAMES && !used.is_zero();
    Ok(enough.then(|| Receiving {
        cost_ns: used.as_nanos() as f64 / received as f64,
        share: (loaded.as_secs_f64() / lasted.as_secs_f64()).min(1.0),
    }))
}

/// The time that `threads` have run.
fn time(threads: &[NapiThread]) -> Duration {
    threads.iter().filter_map(|thread| monitor::thread_time(thread.pid)).sum()
}
