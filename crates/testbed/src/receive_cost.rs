//! What receiving costs the core that the device works on: a lab like the one to be tested enters,
//! and the commands that configured its device; nanoseconds a frame and the share of the core leave.
//!
//! Where there are only two cores, the tester's ports receive on the device's core, in soft
//! interrupts that nobody accounts for. So it is measured beforehand, in a second lab of the same
//! kind: there the ports receive on kernel threads of their own, whose time the scheduler counts,
//! while the device is at its limit and receiving is as efficient as it gets. The share is that of the
//! time in which the device was at its limit, so it is never more than the core has; and since both slow
//! down together, it also holds where the core is slower in the run than it was then. What was found is
//! kept, since it takes half a second and hangs on the machine, the device and the distance of the cores.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;
use dut::DutSpec;
use dut::program::Dut;
use engine::xdp::{Config, XdpEngine};
use engine::{Engine, Load};
use lab::{Device, Lab, NapiThread, Placement};
use traffic::{Directions, Endpoints, Profile, Tunables};

use crate::kept::{Kept, ReceiveCost, Receiving};
use crate::{lab_commands, port};

/// How long the device is loaded.
const DURATION: Duration = Duration::from_millis(250);
/// How long the last frames are waited for.
const DRAIN: Duration = Duration::from_millis(50);
/// Fewer frames than this say nothing.
const ENOUGH_FRAMES: u64 = 10_000;

/// What receiving takes of the device's core in a lab like `lab`, whose device `commands` configured: as it
/// was measured before with the same device, commands and cores on this machine, while the cores were as far
/// from each other as now; else as it is measured now. `None` where nothing arrives, or too little to tell.
pub fn of(lab: &Lab, commands: &[String]) -> Result<Option<Receiving>> {
    let placement = lab.placement();
    let distance = placement.generate.first().and_then(|core| monitor::core_distance([*core, placement.dut]));
    let distance_ns = distance.and_then(|distance| u64::try_from(distance.as_nanos()).ok());
    let Some(dut) = measured(lab.dut())? else { return Ok(None) };
    let (kept, key) = (Kept::open(), key(dut.as_ref(), placement, commands));
    if let Some(receiving) = distance_ns.and_then(|now| kept.receive_cost(&key, now)) {
        return Ok(Some(receiving));
    }
    let measure = || measure(&dut, placement, commands);
    let Some(first) = measure()? else { return Ok(None) };
    let Some(distance_ns) = distance_ns else { return Ok(Some(first)) };
    // That of the lesser cost: a machine that is disturbed takes longer, never less.
    let second = measure()?.filter(|second| second.cost_ns < first.cost_ns);
    let receiving = second.unwrap_or(first);
    // Without a place to keep it, the next run measures it again.
    let _ = kept.put_receive_cost(&key, ReceiveCost { receiving, distance_ns });
    Ok(Some(receiving))
}

/// Forgets the cost in a lab like `lab`, which a run has contradicted.
pub fn forget(lab: &Lab, commands: &[String]) {
    if let Ok(Some(dut)) = measured(lab.dut()) {
        // What cannot be forgotten is contradicted again.
        let _ = Kept::open().forget_receive_cost(&key(dut.as_ref(), lab.placement(), commands));
    }
}

/// All that the cost with the device `measured` depends on, but the distance of the cores.
fn key(measured: &dyn Device, placement: &Placement, commands: &[String]) -> String {
    let Placement { generate, dut, .. } = placement;
    let parameters = measured.parameters();
    format!("{} {parameters:?} {commands:?}, generators {generate:?}, device {dut}", measured.name())
}

/// The device that is measured in place of `dut`; `None` where nothing comes back from it.
fn measured(dut: &Arc<dyn Device>) -> Result<Option<Arc<dyn Device>>> {
    Ok(match dut.name() {
        "sink" => None,
        // Its limits are its purpose; it hands frames over like the plain cross connect.
        "calibrated" => Some(Arc::new("xdp-xconnect".parse::<DutSpec>()?)),
        _ => Some(Arc::clone(dut)),
    })
}

fn measure(dut: &Arc<dyn Device>, placement: &Placement, commands: &[String]) -> Result<Option<Receiving>> {
    let dut = Arc::clone(dut);
    let twin = Lab::start(&lab::Config { dut, placement: placement.clone(), max_frame_size: 64 })?;
    let _program = Dut::start_in(&twin, 64)?;
    let _left = lab_commands::run(twin.dut_namespace(), commands)?;
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

#[cfg(test)]
mod tests {
    use lab::placement::Wishes;
    use results::record::Topology;

    use super::*;

    #[test]
    fn calibrated_devices_share_what_is_kept_and_others_do_not() {
        let place = Placement::choose(&Topology::flat(&[0, 1]), &Wishes::default()).unwrap();
        let device = |name: &str| -> Arc<dyn Device> { Arc::new(name.parse::<DutSpec>().unwrap()) };
        let key = |name| measured(&device(name)).unwrap().map(|dut| key(dut.as_ref(), &place, &[]));
        assert_eq!(key("calibrated:rate=1mpps"), key("calibrated:rate=2kpps,burst=64"));
        assert_eq!(key("calibrated:rate=1mpps"), key("xdp-xconnect"));
        assert_ne!(key("linux-router"), key("xdp-router"));
        assert_eq!(key("sink"), None);
    }
}
