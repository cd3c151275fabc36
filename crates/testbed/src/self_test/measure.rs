//! The measurement: two ports with a cable between them enter; the tester's ceiling and what it adds
//! to every latency leave.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};
use engine::xdp::{Config, PortRef, XdpEngine};
use engine::{Counts, Engine, Load};
use lab::Cable;
use results::record::SelfTest;
use traffic::{Directions, Endpoints, FrameTable, Profile};

use crate::Testbed;
use crate::control::Control;
use crate::port;
use crate::target::EngineName;
use crate::user_space::UserSpace;

/// The best of so many tries counts: a machine that is disturbed reaches less, never more.
const TRIES: usize = 3;
/// How long each loads the cable.
const DURATION: Duration = Duration::from_millis(150);
/// How long the last frames are waited for.
const DRAIN: Duration = Duration::from_millis(30);

/// What the tester reaches with `profile`: over a cable of the lab; in user space over one memif, of which it has
/// both ends; or between the testbed's own ports, which a cable must connect.
pub fn measure(
    testbed: &Testbed,
    profile: &Profile,
    directions: Directions,
    stop: &Arc<AtomicBool>,
) -> Result<SelfTest> {
    let Some(lab) = testbed.lab() else {
        let (table, cores) = (profile.table(&testbed.endpoints(), directions), testbed.generating_cores());
        if let Some(cable) = testbed.user_space().map(UserSpace::cable).transpose()?.flatten() {
            return load(&mut *cable.start_engine(&table, cores, stop)?, cores);
        }
        return load(&mut *testbed.start_any_engine(&table, stop)?.0, cores);
    };
    let _paused = testbed.pause_program();
    let cable = Cable::start(lab.placement(), usize::from(profile.largest_size()))?;
    let [zero, one] = cable.ports();
    let table = profile.table(&Endpoints([port::endpoint(zero), port::endpoint(one)]), directions);
    let mut engine = over(&cable, [port::reference(zero), port::reference(one)], &table, testbed, stop)?;
    load(&mut *engine, testbed.generating_cores())
}

fn over(
    cable: &Cable,
    ports: [PortRef; 2],
    table: &FrameTable,
    testbed: &Testbed,
    stop: &Arc<AtomicBool>,
) -> Result<Box<dyn Engine>> {
    let namespace = Some(cable.namespace().fd());
    let engine: Box<dyn Engine> = if testbed.engine() == EngineName::AfXdp {
        Box::new(testbed.start_af_xdp(ports, namespace, table, stop)?)
    } else {
        Box::new(XdpEngine::start(&Config {
            ports,
            namespace,
            cores: testbed.generating_cores(),
            table,
            stop: Arc::clone(stop),
        })?)
    };
    cable.pin()?;
    Ok(engine)
}

fn load(engine: &mut dyn Engine, cores: &[usize]) -> Result<SelfTest> {
    let _control = Control::beside(cores);
    let low = interval(engine, Load::Rate(SelfTest::LOW_PPS))?;
    if low.iter().any(|counts| counts.forwarded == 0) {
        bail!("nothing that leaves one port arrives at the other: connect them by a cable, without a device");
    }
    let medians = engine.totals()?.into_iter().filter_map(|totals| totals.latency.percentile(50.0)).max();
    let mut ceiling_pps: f64 = 0.0;
    for _ in 0..TRIES {
        let slowest = interval(engine, Load::Max)?.iter().map(|counts| counts.forwarded).min().unwrap_or(0);
        ceiling_pps = ceiling_pps.max(slowest as f64 / DURATION.as_secs_f64());
    }
    let frames: u64 = low.iter().map(|counts| counts.forwarded).sum();
    Ok(SelfTest {
        measured: results::time::rfc3339(SystemTime::now()),
        ceiling_pps,
        base_latency_min_ns: low.iter().map(|counts| counts.latency_min).min().unwrap_or(0),
        base_latency_mean_ns: low.iter().map(|counts| counts.latency_sum).sum::<u64>() as f64 / frames as f64,
        base_latency_p50_ns: medians,
    })
}

/// Final counts of one interval at `load`.
fn interval(engine: &mut dyn Engine, load: Load) -> Result<Vec<Counts>> {
    let interval = engine.begin(load)?;
    engine.wait(DURATION)?;
    engine.begin(Load::Idle)?;
    engine.wait(DRAIN)?;
    Ok(engine.counts(interval)?)
}
