//! A profile: traffic until told to stop, as pkt-gen's users expect.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use engine::{Error, Load};
use testbed::control::Control;
use testbed::sending::{Source, Tally, WayOut, since};
use testbed::{cross_check, port, stop};
use wire::human;
use wire::rate::Rate;
use wording::usage::misuse;

use super::Args;
use crate::Exit;

pub fn main(args: &Args) -> Result<Exit> {
    let profile = args.traffic.profile()?;
    let stop = stop::flag()?;
    let way_out = way_out(args, usize::from(profile.largest_size()))?;
    let table = profile.table(&way_out.endpoints(), args.traffic.directions());
    let load = match args.rate {
        None | Some(Rate::Max) => Load::Max,
        Some(rate) => Load::Rate(port::to_pps(rate, table.mean_frame_size(), way_out.line_rate_bps())?),
    };
    let _programs = way_out.attach_programs()?;
    let cores = args.device.cores.as_deref().unwrap_or(&[0]);
    let mut generator = way_out.start(&table, cores, &stop)?;
    let directions = table.directions();
    let before = way_out.interfaces(directions)?;

    let control = Control::beside(cores);
    let clock = Instant::now();
    generator.begin(load)?;
    let mut last = (Tally::default(), Duration::ZERO);
    let mut failure = None;
    while failure.is_none()
        && !stop::is_set(&stop)
        && args.duration.is_none_or(|duration| clock.elapsed() < duration)
    {
        let left = args.duration.map_or(args.interval, |duration| duration.saturating_sub(clock.elapsed()));
        failure = watch(&mut generator, args.interval.min(left), &stop).err();
        let now = (generator.tally(directions)?, clock.elapsed());
        eprintln!("{}", now.0.since(last.0).line((now.1 - last.1).as_secs_f64()));
        last = now;
    }
    let elapsed = clock.elapsed().as_secs_f64();
    generator.end()?;
    generator.wait_until_left();
    drop(control);
    // The last frames arrive a little later.
    thread::sleep(Duration::from_millis(50));
    let total = generator.tally(directions)?;
    eprintln!("sent {} frames in {elapsed:.2} s: {}", human::count(total.frames()), total.line(elapsed));
    total
        .reasons()
        .for_each(|(reason, frames)| eprintln!("{} were not sent: {reason}", human::count(frames)));
    if total.refused() > 0 {
        eprintln!("the full queue at the other end refused {} of those sent", human::count(total.refused()));
    }
    let received = way_out.received()?;
    if let Some(received) = received {
        eprintln!("the device received {} of them", human::count(received));
    }
    // An interface that is gone says nothing.
    let refused = generator.refused(total);
    let read = || Ok(since(&way_out.interfaces(directions)?, &before));
    let left = cross_check::settled(cross_check::REFRESH, read, |left| total.is_all_of(left, refused)).ok();
    let disagreement = left.as_ref().and_then(|left| total.disagreement(left, refused));
    if args.json {
        println!("{}", total.json(elapsed, received, left.map(|left| left.sent)));
    }
    disagreement.iter().for_each(|disagreement| eprintln!("{disagreement}"));
    if let Some(failure) = failure {
        // What fails after frames have left is no wrong use.
        return Err(anyhow!(failure.to_string()));
    }
    Ok(if disagreement.is_some() || total.is_nothing() { Exit::Failed } else { Exit::Done })
}

/// By which way frames leave.
fn way_out(args: &Args, max_frame_size: usize) -> Result<WayOut> {
    let Some(name) = &args.port else {
        let default = if args.device.engine.name.is_in_user_space() { "calibrated" } else { "sink" };
        return WayOut::of_testbed(&args.device.target_or(default)?, max_frame_size);
    };
    if args.traffic.bidirectional {
        return Err(misuse("--bidirectional needs two ports: --ports A,B"));
    }
    let Some(to) = &args.to else {
        return Err(misuse("say where frames of --port go: --to MAC, or --to IP of a neighbour"));
    };
    WayOut::of_port(name, to, args.device.engine.name, args.device.force, max_frame_size)
}

/// How often the generator is asked whether all goes well.
const LOOK: Duration = Duration::from_millis(100);

/// Lets `duration` pass while all goes well, or until told to stop.
fn watch(generator: &mut Source, duration: Duration, stop: &AtomicBool) -> Result<(), Error> {
    let clock = Instant::now();
    while clock.elapsed() < duration && !stop::is_set(stop) {
        stop::sleep(stop, LOOK.min(duration.saturating_sub(clock.elapsed())));
        generator.check()?;
    }
    Ok(())
}
