//! Stations that mean harm: none takes more than its share, and none ends anything.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use fastpath::counters::Reason;
use fastpath::device::simulated::Wire;
use fastpath::device::{Output, Queues};
use fastpath::events::Event;
use fastpath::fib::{Capacity, Prefix};
use fastpath::punt::Kernel;
use fastpath::router::{Hop, Router};
use fastpath::vector::Frame;
use wire::{MacAddress, arp, ethernet, ipv4};

use crate::common::icmp6::packet;
use crate::common::{OURS, THEIRS, Taken, Two, changed, frame};

const US: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);

/// [`Two`], whose second interface has the address [`US`] in a subnet of 16 bits.
fn two() -> Two {
    let mut two = Two::new(4096);
    two.router.add_address(1, US.into(), 16).unwrap();
    two
}

/// An ARP packet for us from an address at the second interface.
fn arp(operation: u16, sender: Ipv4Addr, mac: MacAddress) -> Vec<u8> {
    let header = ethernet::Header { destination: OURS[1], source: mac, ethertype: ethernet::ARP };
    let packet = arp::Header { operation, sender_mac: mac, sender, target_mac: OURS[1], target: US };
    [&header.emit()[..], &packet.emit()].concat()
}

/// All frames that left by an interface.
fn sent(two: &Two, interface: usize) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| two.wires[interface].take()).collect()
}

fn host(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(US) + 0x100 + number)
}

#[test]
fn what_is_behind_a_packet_does_not_leave_with_it() {
    let mut two = two();
    let short = frame(OURS[0], [48, 0, 0, 1], 64, 28);
    for length in [60, 61, 1000, 9014] {
        let mut long = short.clone();
        long.resize(length, 0xee);
        two.wires[0].put(long);
        two.run();
        let left = sent(&two, 1);
        assert_eq!((left.len(), left[0].len()), (1, 60), "{length}");
    }
    let mut long = frame(OURS[0], [48, 0, 0, 1], 64, 1500);
    long.resize(9014, 0xee);
    two.wires[0].put(long);
    // With options, which most packets do not have.
    let mut options = changed(frame(OURS[0], [48, 0, 0, 1], 64, 100), |frame| {
        frame[14] = 0x46;
        frame[34..38].copy_from_slice(&[1, 1, 1, 0]);
    });
    options.resize(2000, 0xee);
    two.wires[0].put(options);
    two.run();
    let lengths: Vec<usize> = sent(&two, 1).iter().map(Vec::len).collect();
    assert_eq!(lengths, [1514, 114]);
}

#[test]
fn nor_what_is_behind_one_of_ip6() {
    let mut two = two();
    let them = "2001:db8:1::2".parse().unwrap();
    two.router.add_address(1, "2001:db8:1::1".parse().unwrap(), 64).unwrap();
    two.router.set_neighbour(1, them, THEIRS[1]).unwrap();
    let udp = packet((OURS[0], THEIRS[0]), ("2001:db8::9", "2001:db8:1::2"), (ipv4::UDP, 64), &[7; 100]);
    for length in [udp.len(), udp.len() + 1, 9014] {
        let mut long = udp.clone();
        long.resize(length, 0xee);
        two.wires[0].put(long);
        two.run();
        assert_eq!(sent(&two, 1).iter().map(Vec::len).collect::<Vec<_>>(), [udp.len()]);
    }
}

/// A device that sends frames of up to 1,000 bytes.
#[derive(Clone, Default)]
struct Short {
    sent: Arc<Mutex<Vec<usize>>>,
    stopped: bool,
}

impl Output for Short {
    fn transmit(&mut self, frames: &[Frame]) -> usize {
        let fit = frames.iter().take_while(|frame| frame.len() <= 1000);
        let count = fit.map(|frame| self.sent.lock().unwrap().push(frame.len())).count();
        self.stopped = count < frames.len();
        count
    }

    fn stopped_at_long(&self) -> bool {
        self.stopped
    }
}

#[test]
fn a_frame_that_is_too_long_for_a_device_takes_no_other_with_it() {
    let (wire, first) = Wire::device(1024);
    let short = Short::default();
    let second = Queues { inputs: Vec::new(), outputs: vec![Box::new(short.clone())] };
    let mut two = Two::between(vec![first, second]);
    for length in [100, 1200, 200, 1300, 1301, 300, 1400] {
        wire.put(frame(OURS[0], [48, 0, 0, 1], 64, length));
    }
    two.run();
    assert_eq!(*short.sent.lock().unwrap(), [114, 214, 314]);
    assert_eq!((two.dropped(Reason::TooLong), two.dropped(Reason::Full)), (4, 0));
    let counters = &two.counters.interfaces[1];
    assert_eq!((counters.sent.get(), counters.sent_bytes.get()), (3, 114 + 214 + 314));
}

#[test]
fn a_full_table_of_routes_ends_nothing() {
    let (wires, queues): (Vec<_>, Vec<_>) = (0..2).map(|_| Wire::device(4096)).unzip();
    let small = Capacity { nodes: 64, ..Capacity::of::<u32>() };
    let router = Router::with_capacity(small, Capacity::of::<u128>()).unwrap();
    let mut two = Two { wires, ..Two::of(router, queues) };
    two.router.add_address(1, US.into(), 16).unwrap();
    for number in 0..200 {
        two.wires[1].put(arp(arp::REQUEST, host(number << 8 | 9), MacAddress([2, 7, 0, 0, 0, number as u8])));
    }
    two.run();
    assert_eq!(two.router.poll(), 200);
    let counts = two.router.neighbour_counts();
    let learned = two.router.neighbours().count() as u64;
    assert!(counts.without_route > 0 && counts.without_route + learned == 202, "{counts:?}, {learned}");
    // All that was there is there.
    sent(&two, 1);
    two.wires[0].put(frame(OURS[0], [48, 0, 0, 1], 64, 46));
    two.run();
    assert_eq!(sent(&two, 1).len(), 1);
    // With room it is learned when it says so again.
    assert!(two.router.remove_neighbour(1, host(9).into()).unwrap());
    two.wires[1].put(arp(arp::REQUEST, host(199 << 8 | 9), MacAddress([2, 7, 0, 0, 0, 199])));
    two.run();
    two.router.poll();
    assert!(two.router.neighbours().any(|(_, address, _)| address == IpAddr::from(host(199 << 8 | 9))));
}

#[test]
fn neighbours_that_nobody_asked_for_do_not_push_out_one_that_answered() {
    let mut two = two();
    let them = Ipv4Addr::new(10, 1, 0, 9);
    two.wires[0].put(frame(OURS[0], them.octets(), 64, 46));
    two.run();
    assert_eq!(sent(&two, 1).len(), 1, "it is asked");
    two.wires[1].put(arp(arp::REPLY, them, THEIRS[1]));
    two.run();
    two.router.poll();
    let made_up = |router: &mut Router| {
        (0..40_000).try_for_each(|number| {
            let mac = MacAddress([2, 7, 0, 0, (number >> 8) as u8, number as u8]);
            router.handle(Event::Neighbour { interface: 1, address: host(number).into(), mac })
        })
    };
    two.router.batch(made_up).unwrap();
    let counts = two.router.neighbour_counts();
    assert!(counts.evicted > 20_000 && counts.refused == 0, "{counts:?}");
    assert!(two.router.neighbours().count() < 20_000);
    two.wires[0].put(frame(OURS[0], them.octets(), 64, 46));
    two.run();
    assert_eq!(sent(&two, 1)[0][..6], THEIRS[1].0);
}

#[test]
fn a_flood_of_events_is_cut_where_it_begins() {
    let mut two = two();
    for round in 0..20 {
        for number in 0..1000 {
            let number = round * 1000 + number;
            let mac = MacAddress([2, 7, 0, 0, (number >> 8) as u8, number as u8]);
            two.wires[1].put(arp(arp::REQUEST, host(number), mac));
        }
        two.run();
    }
    let (told, lost) = (two.router.poll(), two.counters.events_lost.get());
    assert!(told < 4096 && told as u64 + lost == 20_000, "{told} told, {lost} not");
}

#[test]
fn a_scan_of_a_subnet_asks_few_questions_and_keeps_nobody_from_gateways() {
    let mut two = two();
    for number in 0..30_000 {
        two.wires[0].put(frame(OURS[0], host(number).octets(), 64, 46));
        if number % 1000 == 999 {
            two.run();
        }
    }
    let asked = two.counters.made.get();
    assert!((256..5000).contains(&asked), "{asked} questions");
    assert_eq!(two.dropped(Reason::Ip4NoNeighbour), 30_000);
    sent(&two, 1);
    let gateway = Hop::Neighbour(1, [10, 1, 0, 77].into());
    two.router.add_route(Prefix::new(99_u32 << 24, 8).unwrap(), &[gateway]).unwrap();
    two.wires[0].put(frame(OURS[0], [99, 0, 0, 1], 64, 46));
    two.run();
    let questions = sent(&two, 1);
    assert!(questions.iter().any(|frame| frame[38..42] == [10, 1, 0, 77]), "{questions:?}");
}

#[test]
fn the_kernel_is_not_flooded_and_what_it_asked_for_still_comes() {
    let mut two = two();
    let kernel = Taken::new(1 << 20);
    two.router.set_kernel(1, Some(Kernel::new(kernel.clone()))).unwrap();
    let flood = changed(frame(OURS[1], US.octets(), 64, 46), |frame| frame[23] = ipv4::TCP);
    for _ in 0..50 {
        (0..1000).for_each(|_| two.wires[1].put(&flood[..]));
        two.run();
    }
    let (punted, limited) = (kernel.take().len() as u64, two.dropped(Reason::PuntLimited));
    assert!(limited > 0 && punted + limited == 50_000, "{punted} punted, {limited} not");
    two.wires[1].put(arp(arp::REPLY, Ipv4Addr::new(10, 1, 0, 9), THEIRS[1]));
    two.wires[1].put(changed(flood, |frame| frame[36..38].copy_from_slice(&179_u16.to_be_bytes())));
    two.run();
    assert_eq!(kernel.take().len(), 2, "an answer by ARP, and one of BGP");
}

#[test]
fn a_flood_of_expired_packets_does_not_silence_that_others_are_too_big() {
    let mut two = two();
    two.router.add_address(0, [10, 0, 0, 1].into(), 24).unwrap();
    for _ in 0..2000 {
        two.wires[0].put(frame(OURS[0], [48, 0, 0, 1], 1, 46));
    }
    two.wires[0].put(changed(frame(OURS[0], [48, 0, 0, 1], 64, 1501), |frame| frame[20] = 0x40));
    two.run();
    let told = sent(&two, 0);
    assert!(told.len() < 1000, "{}", told.len());
    assert_eq!(told.iter().filter(|error| error[34..36] == [3, 4]).count(), 1);
}

#[test]
fn a_late_fragment_does_not_become_a_first_one() {
    let mut two = two();
    two.router.set_interface(1, |interface| interface.mtu = 600).unwrap();
    let late = changed(frame(OURS[0], [48, 0, 0, 1], 64, 1400), |frame| {
        frame[20..22].copy_from_slice(&0x1ff0_u16.to_be_bytes());
    });
    two.wires[0].put(late);
    two.run();
    assert_eq!((sent(&two, 1).len(), two.dropped(Reason::Ip4BeyondEnd)), (0, 1));
}

#[test]
fn a_router_alert_goes_on_where_no_kernel_looks_at_it() {
    let mut two = two();
    let alert = changed(frame(OURS[0], [48, 0, 0, 1], 64, 100), |frame| {
        frame[14] = 0x46;
        frame[34..38].copy_from_slice(&[148, 4, 0, 0]);
    });
    two.wires[0].put(&alert[..]);
    two.run();
    assert_eq!(sent(&two, 1).len(), 1);
    let kernel = Taken::new(10);
    two.router.set_kernel(0, Some(Kernel::new(kernel.clone()))).unwrap();
    two.wires[0].put(&alert[..]);
    two.run();
    assert_eq!((sent(&two, 1).len(), kernel.take()), (0, vec![alert]));
}
