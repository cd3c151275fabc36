use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;

/// A worker that looks at its schedule at each of `times`, and what it did.
#[derive(Debug, Default)]
struct Seen {
    departures: Vec<u64>,
    unsent: u64,
    worst_late: u64,
}

fn run(schedule: &mut Schedule, times: impl Iterator<Item = u64>, most_at_once: usize) -> Seen {
    let mut seen = Seen::default();
    for now in times {
        for _ in 0..most_at_once {
            match schedule.due(now) {
                Due::Nothing => break,
                Due::GivenUp(frames) => seen.unsent += frames,
                Due::Frame { late } => {
                    seen.worst_late = seen.worst_late.max(late);
                    seen.departures.push(now);
                    schedule.depart(now);
                }
            }
        }
    }
    seen
}

fn announced(load: Load, start: u64) -> Announced {
    Announced::new(load, 1, 1, start).unwrap()
}

fn begin(load: Load, start: u64) -> Schedule {
    let mut schedule = Schedule::new(0, 1);
    let followed = schedule.follow(&announced(load, start), start, true);
    assert_eq!(followed.rewind, Some((0, 0)));
    schedule
}

#[test]
fn departures_are_the_integral_of_the_rate() {
    for pps in [1.0, 1e3, 999_999.0, 14_880_952.0, 333_333_333.0] {
        let mut schedule = begin(Load::Rate(pps), MS);
        let end = 2 * MS + 10 * (1e9 / pps) as u64 + 20 * MS;
        let step = ((1e9 / pps) as u64 / 3).clamp(20, 5_000);
        let seen = run(&mut schedule, (MS..end).step_by(step as usize), usize::MAX);
        let expected = (end - 2 * MS) as f64 * pps / 1e9;
        let found = seen.departures.len() as f64;
        // One for the first, which is due at once, and what the last look has not seen yet.
        assert!((found - expected).abs() <= 2.0 + step as f64 * pps / 1e9, "{pps}: {found} of {expected}");
        assert_eq!(seen.unsent, 0);
        assert!(seen.departures[0] >= 2 * MS, "after silence a millisecond later");
    }
}

#[test]
fn a_burst_has_its_frames_and_then_silence() {
    let mut schedule = begin(Load::Burst { pps: 1e6, frames: 1000 }, MS);
    let seen = run(&mut schedule, (MS..10 * MS).step_by(500), 64);
    assert_eq!((seen.departures.len(), seen.unsent), (1000, 0));
    assert!(schedule.is_idle());
    // Three workers share it, to the last frame.
    let load = Announced::new(Load::Burst { pps: 1e6, frames: 500 }, 2, 3, 0).unwrap();
    let shares = (0..3).map(|worker| {
        let mut schedule = Schedule::new(worker, 3);
        schedule.follow(&load, 0, true);
        run(&mut schedule, (0..10 * MS).step_by(500), 64).departures.len()
    });
    assert_eq!(shares.sum::<usize>(), 1000);
}

#[test]
fn parts_follow_each_other_at_the_times_that_were_asked_for() {
    let part = |frames, pps, first| Part { first, rows: 8, frames, pps };
    let announced = |part: Part, start| Announced::part(&part, 1, start).unwrap();
    let (one, two) = (announced(part(3, 3_000.0, 0), 5 * MS), announced(part(2, 1_000.0, 8), 6 * MS));
    let mut schedule = Schedule::new(0, 1);
    // Announced ahead, and taken up at once: nothing leaves before its time.
    assert_eq!(schedule.follow(&one, 0, true).rewind, Some((0, 8)));
    assert_eq!(schedule.finish_before(&two, 0), (false, 0));
    let first = run(&mut schedule, (0..6 * MS).step_by(1_000), 64).departures;
    assert_eq!((first.len(), first[0]), (3, 5 * MS));
    assert_eq!(schedule.finish_before(&two, 6 * MS), (true, 0));
    // A little late, it still begins in time, and catches up.
    let followed = schedule.follow(&two, 6 * MS + 5_000, false);
    assert_eq!((followed.begun, followed.rewind), (6 * MS, Some((8, 8))));
    let second = run(&mut schedule, (6 * MS + 5_000..6 * MS + 500_000).step_by(1_000), 64).departures;
    assert_eq!(second.len(), 1);
    // What is left when it ends is neither sent nor unsent, and the next load has all rows.
    let rate = self::announced(Load::Rate(1e3), 6 * MS + 600_000);
    let followed = schedule.follow(&rate, 6 * MS + 600_000, false);
    assert_eq!((followed.unsent, followed.rewind), (0, Some((0, 0))));
    assert!(Announced::part(&part(1, 1.0, 0), 9, 0).is_err(), "fewer rows than workers");
}

#[test]
fn a_burst_that_ends_too_early_leaves_unsent_frames() {
    let mut schedule = begin(Load::Burst { pps: 1e5, frames: 1000 }, 0);
    let sent = run(&mut schedule, (0..3 * MS).step_by(1000), 64).departures.len() as u64;
    let idle = announced(Load::Idle, 3 * MS);
    assert_eq!(schedule.finish_before(&idle, 3 * MS), (true, 0));
    assert_eq!(schedule.follow(&idle, 3 * MS, false).unsent, 1000 - sent);
}

#[test]
fn a_stopped_worker_gives_up_what_is_too_late_and_catches_up_gently() {
    let mut schedule = begin(Load::Rate(1e6), 0);
    run(&mut schedule, (0..5 * MS).step_by(1000), 64);
    // Stopped for 8 ms: all are sent, at most 1/7 faster but for those of 20 us, and 1/15 once the worker is less
    // than 5 ms behind.
    let seen = run(&mut schedule, (13 * MS..14 * MS).step_by(1000), usize::MAX);
    assert_eq!(seen.unsent, 0);
    assert!((1140..=1170).contains(&seen.departures.len()), "{}", seen.departures.len());
    run(&mut schedule, (14 * MS..45 * MS).step_by(1000), usize::MAX);
    let seen = run(&mut schedule, (45 * MS..46 * MS).step_by(1000), usize::MAX);
    assert!((1060..=1070).contains(&seen.departures.len()), "{}", seen.departures.len());
    // Stopped for 50 ms: what was due is given up, and nothing but that.
    let seen = run(&mut schedule, (96 * MS..97 * MS).step_by(1000), usize::MAX);
    assert!(seen.unsent > 50_000, "{}", seen.unsent);
    assert!(seen.departures.len() <= 1100);
}

#[test]
fn a_worker_that_leaves_its_core_to_others_in_turns_sends_all_the_same() {
    let mut schedule = begin(Load::Rate(1e5), 0);
    let [ours, theirs] = crate::xdp::precedence::TURNS.map(|turn| turn.as_nanos() as u64);
    // For twenty seconds, others want the core at every time …
    let turns = |more: u64| {
        let begun = (0..1000).map(move |turn| (turn * (ours + theirs) + theirs, turn % 10 == 0));
        let times = begun.map(move |(begun, keeps)| (begun + if keeps { more } else { 0 }, begun + ours));
        times.flat_map(|(begun, end)| (begun..end).step_by(5_000))
    };
    let seen = run(&mut schedule, turns(0), 64);
    assert_eq!(seen.unsent, 0);
    assert!(seen.worst_late < 2 * theirs, "{} ns", seen.worst_late);
    // … and now and then keep it for longer than their turn.
    let seen = run(&mut begin(Load::Rate(1e5), 0), turns(4 * MS), 64);
    assert_eq!(seen.unsent, 0);
}

#[test]
fn a_frame_belongs_to_the_interval_that_it_was_due_in() {
    let mut schedule = begin(Load::Rate(1e4), 0);
    run(&mut schedule, (0..5 * MS).step_by(1000), 64);
    // The next is asked for at 7 ms, when frames since 5 ms have not left: they come first.
    let next = announced(Load::Rate(2e4), 7 * MS);
    assert_eq!(schedule.finish_before(&next, 7 * MS), (false, 0));
    let mut frames = 0;
    let mut now = 7 * MS;
    while !schedule.finish_before(&next, now).0 {
        frames += run(&mut schedule, std::iter::once(now), 64).departures.len();
        now += 1000;
    }
    assert_eq!(frames, 20);
    // One that does not come back before they are too late gives them up.
    let mut late = begin(Load::Rate(1e4), 0);
    run(&mut late, (0..5 * MS).step_by(1000), 64);
    assert_eq!(late.finish_before(&next, 30 * MS), (true, 20));
}

#[test]
fn a_step_up_from_a_low_rate_is_not_held_back() {
    let mut schedule = begin(Load::Rate(50.0), 0);
    run(&mut schedule, (0..22 * MS).step_by(1000), 64);
    let next = announced(Load::Rate(1e6), 22 * MS);
    assert_eq!(schedule.finish_before(&next, 22 * MS), (true, 0));
    schedule.follow(&next, 22 * MS, false);
    let seen = run(&mut schedule, (22 * MS..24 * MS).step_by(1000), 64);
    assert_eq!(seen.unsent, 0);
    assert!(seen.worst_late <= 2000 && seen.departures.len() >= 1999, "{} ns late", seen.worst_late);
}

#[test]
fn loads_that_nobody_keeps_are_refused() {
    for pps in [0.0, 0.5, -1.0, f64::NAN, f64::INFINITY, 2e9] {
        assert!(Announced::new(Load::Rate(pps), 1, 1, 0).is_err(), "{pps}");
        assert!(Announced::new(Load::Burst { pps, frames: 1 }, 1, 1, 0).is_err(), "{pps}");
    }
    assert_eq!(announced(Load::Max, 7).mode, Mode::Max);
}

proptest! {
    /// However often a worker looks, and whatever it misses: intended = offered + unsent, to a frame.
    #[test]
    fn every_frame_that_was_due_is_sent_or_unsent(
        pps in 1e3..2e7,
        pauses in prop::collection::vec((1u64..200, 0u64..30), 1..40),
    ) {
        let mut schedule = begin(Load::Rate(pps), 0);
        let mut now = LEAD_NS;
        let (mut sent, mut unsent) = (0u64, 0u64);
        for (looks, pause_ms) in pauses {
            for _ in 0..looks {
                let seen = run(&mut schedule, std::iter::once(now), 64);
                sent += seen.departures.len() as u64;
                unsent += seen.unsent;
                prop_assert!(seen.worst_late <= GIVE_UP_NS);
                now += 1000;
            }
            now += pause_ms * MS;
        }
        let seen = run(&mut schedule, std::iter::once(now), usize::MAX);
        sent += seen.departures.len() as u64;
        unsent += seen.unsent;
        // Those still owed are not too late yet.
        let due = ((now - LEAD_NS) as f64 * pps / 1e9) as u64 + 1;
        prop_assert!(sent + unsent <= due + 1, "{sent} + {unsent} of {due}");
        let owed = due.saturating_sub(sent + unsent) as f64;
        prop_assert!(owed <= GIVE_UP_NS as f64 * pps / 1e9 + 2.0, "{owed} owed of {due}");
    }

    /// From rate to rate nothing is lost or sent twice, wherever in a gap the change comes.
    #[test]
    fn rates_follow_each_other_without_a_seam(
        rates in prop::collection::vec(1e3..1e7, 2..20),
        lengths in prop::collection::vec(1u64..4_000_000, 20),
    ) {
        let mut schedule = begin(Load::Rate(rates[0]), 0);
        let mut now = LEAD_NS;
        let mut intended = 0.0;
        let mut sent = 0;
        let mut begun = LEAD_NS;
        for (index, rate) in rates.iter().enumerate() {
            let end = now + lengths[index];
            while now < end {
                sent += run(&mut schedule, std::iter::once(now), usize::MAX).departures.len();
                now = (now + 777).min(end);
            }
            let Some(next) = rates.get(index + 1) else {
                intended += rate * (now - begun) as f64 / 1e9;
                break;
            };
            let next = announced(Load::Rate(*next), now);
            while !schedule.finish_before(&next, now).0 {
                sent += run(&mut schedule, std::iter::once(now), usize::MAX).departures.len();
                now += 777;
            }
            let followed = schedule.follow(&next, now, false);
            prop_assert!(followed.rewind.is_none() && followed.unsent == 0);
            intended += rate * (followed.begun - begun) as f64 / 1e9;
            begun = followed.begun;
        }
        let slack = 2.0 + rates.len() as f64 * 0.01 + rates.last().unwrap() * 20e-6;
        prop_assert!((sent as f64 - intended).abs() <= slack, "{sent} of {intended}");
    }
}

/// A table of periods of a millisecond: so many frames a microsecond apart, and a pause.
fn bursts(frames: usize, workers: usize) -> Vec<Schedule> {
    let row = traffic::Row { length: 60, stream: 0, direction: 0, checksum: None };
    let lane = traffic::timeline::Lane {
        port: 0,
        pps: 1e6,
        mode: traffic::timeline::Mode::Bursts {
            frames: frames as u64,
            count: traffic::timeline::ENDLESS,
            gap: std::time::Duration::from_micros(1000 - frames as u64),
        },
        wait: 0,
        next: None,
        turns: None,
        starts: true,
    };
    let repetition = traffic::repetition::Repetition::of(&[lane], 1000).unwrap();
    let table = FrameTable {
        rows: vec![row; frames],
        headers: vec![0; 48 * frames],
        header_length: 48,
        fill: 0,
        period: frames as u64,
        times: repetition.of_rows(frames, 1),
        apart: traffic::Apart::default(),
    };
    (0..workers).map(|worker| Schedule::new(worker, workers).of(&table)).collect()
}

#[test]
fn bursts_of_a_profile_leave_together_and_pause_however_many_workers_send_them() {
    for workers in 1..=3 {
        let mut all = Vec::new();
        for mut schedule in bursts(12, workers) {
            let load = Announced::new(Load::Rate(12_000.0), 1, workers, MS).unwrap();
            assert_eq!(schedule.follow(&load, MS, true).rewind, Some((0, 0)));
            let seen = run(&mut schedule, (MS..102 * MS).step_by(100), usize::MAX);
            assert_eq!(seen.unsent, 0);
            all.extend(seen.departures.iter().map(|time| time - 2 * MS));
        }
        all.sort_unstable();
        assert_eq!(all.len(), 1200, "{workers} workers");
        for (burst, times) in all.chunks(12).enumerate() {
            for (frame, time) in times.iter().enumerate() {
                let due = burst as u64 * MS + frame as u64 * 1000;
                assert!((due.saturating_sub(200)..due + 300).contains(time), "{workers}: {time} for {due}");
            }
        }
    }
}

#[test]
fn a_load_makes_bursts_and_pauses_faster_alike() {
    let mut schedule = bursts(10, 1).remove(0);
    schedule.follow(&announced(Load::Rate(10_000.0), MS), MS, true);
    run(&mut schedule, (MS..12 * MS + MS / 2).step_by(100), usize::MAX);
    // In the middle of a pause, ten times as fast: it ends ten times sooner.
    let followed =
        schedule.follow(&announced(Load::Rate(100_000.0), 12 * MS + MS / 2), 12 * MS + MS / 2, false);
    assert_eq!((followed.rewind, followed.begun), (None, 12 * MS + MS / 2));
    let start = 12 * MS + MS / 2;
    let seen = run(&mut schedule, (start..start + MS).step_by(100), usize::MAX);
    assert!(seen.departures[0].abs_diff(start + MS / 20) <= 200, "{}", seen.departures[0] - start);
    assert_eq!(seen.departures.len(), 100);
    assert!((seen.departures[9] - seen.departures[0]).abs_diff(900) <= 200);
    assert!((seen.departures[10] - seen.departures[0]).abs_diff(100_000) <= 200);
}

#[test]
fn frames_of_bursts_that_are_too_late_are_unsent_and_the_next_burst_is_whole() {
    let mut schedule = bursts(10, 1).remove(0);
    schedule.follow(&announced(Load::Rate(10_000.0), MS), MS, true);
    // Nobody looks for 50 ms.
    let late = run(&mut schedule, [52 * MS + MS / 2].into_iter(), usize::MAX);
    assert_eq!((late.unsent, late.departures.len()), (510, 0), "all bursts from 2 to 52 ms");
    let seen = run(&mut schedule, (52 * MS + MS / 2..102 * MS).step_by(100), usize::MAX);
    assert_eq!(late.unsent + seen.departures.len() as u64, 1000);
    let last = &seen.departures[seen.departures.len() - 10..];
    assert!(last[9] - last[0] <= 9_300 && last[0].abs_diff(101 * MS) <= 200, "{last:?}");
}

#[test]
fn after_silence_and_bursts_of_their_own_rows_begin_anew() {
    let mut schedule = bursts(10, 1).remove(0);
    for (at, load, anew) in [
        (1, Load::Rate(10_000.0), true),
        (2, Load::Rate(20_000.0), false),
        (3, Load::Max, true),
        (4, Load::Rate(10_000.0), true),
        (5, Load::Idle, true),
        (6, Load::Rate(10_000.0), true),
    ] {
        let followed = schedule.follow(&announced(load, at * MS), at * MS, at == 1);
        assert_eq!(followed.rewind.is_some(), anew, "{load:?}");
        assert_eq!(schedule.is_spaced(), matches!(load, Load::Rate(_)));
    }
}
