//! What really left by the kernel engine, beside what the interfaces say: a frame is sent when the driver
//! took it, and unsent with its reason if not.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use std::fs;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use common::{cable, detach_a_program, receive_on, run, start, table};
use engine::live::{Sent, monotonic};
use engine::xdp::{Generator, PortRef, Receiver};
use engine::{Engine, Error, Load, Order, Untaken};

/// Engines hold a core each, and there may be only two.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What the kernel says that an interface of this thread's namespace counted.
fn counted(port: &str, what: &str) -> u64 {
    let path = format!("/sys/class/net/{port}/statistics/{what}");
    fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

/// Offers `load` as interval `number` for `milliseconds`, then nothing.
fn send(generator: &mut Generator, number: u64, load: Load, milliseconds: u64) -> Sent {
    generator.begin(number, &Order::Load(load), monotonic().unwrap()).unwrap();
    thread::sleep(Duration::from_millis(milliseconds));
    generator.begin(number + 1, &Order::Load(Load::Idle), monotonic().unwrap()).unwrap();
    thread::sleep(Duration::from_millis(50));
    generator.sent(number, 0).unwrap()
}

#[test]
fn what_an_end_without_napi_refuses_is_unsent_and_the_interface_agrees() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let napi = Receiver::attach(&ports, None, 1, 1).unwrap();
    let mut generator = Generator::start(&table(&[64], 5, 1), &ports, None, &[0]).unwrap();
    let before = counted("port0", "tx_packets");
    let sent = send(&mut generator, 1, Load::Rate(20_000.0), 100);
    assert!(sent.frames > 0 && sent.untaken == Untaken::default(), "{sent:?}");
    drop(napi);
    let refused = send(&mut generator, 3, Load::Rate(20_000.0), 100);
    assert_eq!((refused.frames, refused.bytes, refused.refused), (0, 0, 0), "{refused:?}");
    assert_eq!(refused.untaken, Untaken { unable: refused.untaken.total(), ..Untaken::default() });
    assert!(refused.untaken.unable > 0, "{refused:?}");
    assert_eq!(counted("port0", "tx_packets") - before, sent.frames);
    // Nothing was late of what did not leave.
    assert_eq!(generator.lateness(0).unwrap().total(), sent.frames);
}

#[test]
fn an_interface_that_cannot_transmit_redirected_frames_ends_the_run_with_the_reason() {
    let _alone = alone();
    if cable().is_none() {
        return;
    }
    // A bridge has no way to transmit them; nor has a dummy interface, which not every kernel has.
    run("ip link add nothing type bridge");
    run("ip link set nothing up");
    let index = nix::net::if_::if_nametoindex("nothing").unwrap();
    let port = [PortRef { name: "nothing".into(), index }];
    let mut generator = Generator::start(&table(&[64], 5, 1), &port, None, &[0]).unwrap();
    let sent = send(&mut generator, 1, Load::Rate(20_000.0), 100);
    assert_eq!(sent.frames, 0);
    assert!(sent.untaken.unable > 0 && sent.untaken.unable == sent.untaken.total(), "{sent:?}");
    let Err(Error::Failed(why)) = generator.check() else { panic!("not told") };
    assert!(why.contains("interface nothing does not transmit redirected frames"), "{why}");
}

/// The thread that receives for port 1 gets no time beside the worker.
#[test]
fn what_a_full_queue_of_the_other_end_refuses_was_offered_and_is_told() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let mut engine = start(&ports, &table(&[64], 5, 1));
    receive_on(0);
    let before = counted("port0", "tx_packets");
    let interval = engine.begin(Load::Max).unwrap();
    engine.wait(Duration::from_millis(200)).unwrap();
    engine.begin(Load::Idle).unwrap();
    engine.wait(Duration::from_millis(300)).unwrap();
    let (counts, totals) = (engine.counts(interval).unwrap()[0], engine.totals().unwrap().remove(0));
    let refused = totals.refused.unwrap();
    assert!(refused > 0, "{counts:?}");
    assert_eq!((counts.unsent, counts.untaken), (0, Untaken::default()));
    assert_eq!((totals.offered, counts.offered), (counts.offered, counts.forwarded + refused));
    assert_eq!(counted("port0", "tx_packets") - before, counts.offered - refused);
}

/// Two runs on one core, by ports of the same index in two namespaces, one of which takes no frame.
#[test]
fn runs_in_two_namespaces_with_equal_indexes_count_their_own_frames() {
    let _alone = alone();
    let site = |load: f64, takes: bool| {
        let ports = cable()?;
        let napi = Receiver::attach(&ports, None, 1, 1).unwrap();
        let mut generator = Generator::start(&table(&[64], 5, 1), &ports, None, &[0]).unwrap();
        let _napi = takes.then_some(napi);
        let before = counted("port0", "tx_packets");
        let sent = send(&mut generator, 1, Load::Rate(load), 400);
        Some((ports[0].index, sent, counted("port0", "tx_packets") - before))
    };
    let (takes, refuses) = thread::scope(|scope| {
        let takes = scope.spawn(|| site(20_000.0, true));
        let refuses = scope.spawn(|| site(30_000.0, false));
        (takes.join().unwrap(), refuses.join().unwrap())
    });
    let Some(((index, sent, counted), (other, refused, none))) = takes.zip(refuses) else { return };
    assert_eq!(index, other, "the test shows nothing");
    assert!(sent.frames > 0 && sent.untaken.total() == 0, "{sent:?}");
    assert_eq!(sent.frames, counted);
    assert!(refused.frames == 0 && refused.untaken.unable > 0, "{refused:?}");
    assert_eq!(none, 0);
}

#[test]
fn an_interface_that_goes_down_or_vanishes_ends_the_run_and_what_was_counted_stays() {
    let _alone = alone();
    for (command, words) in
        [("ip link set port0 down", "interface port0 went down"), ("ip link del port0", "vanished")]
    {
        let Some(ports) = cable() else { return };
        let mut engine = start(&ports, &table(&[64], 5, 1));
        let interval = engine.begin(Load::Rate(20_000.0)).unwrap();
        engine.wait(Duration::from_millis(100)).unwrap();
        run(command);
        let Err(Error::Failed(why)) = engine.wait(Duration::from_secs(3)) else { panic!("not told") };
        assert!(why.contains(words), "{why}");
        engine.begin(Load::Idle).unwrap();
        engine.wait(Duration::from_millis(50)).unwrap();
        let counts = engine.counts(interval).unwrap()[0];
        assert!(counts.forwarded > 0 && counts.untaken.total() > 0, "{counts:?}");
        assert_eq!(counts.forwarded, counts.offered);
    }
}

#[test]
fn a_receiver_that_somebody_detaches_ends_the_run() {
    let _alone = alone();
    let Some(ports) = cable() else { return };
    let mut engine = start(&ports, &table(&[64], 5, 1));
    engine.begin(Load::Rate(1_000.0)).unwrap();
    engine.wait(Duration::from_millis(100)).unwrap();
    detach_a_program();
    let Err(Error::Failed(why)) = engine.wait(Duration::from_secs(3)) else { panic!("not told") };
    assert!(why.contains("Linerate's XDP program is no more at interface port"), "{why}");
}
