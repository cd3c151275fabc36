use proptest::prelude::*;

use super::*;

/// A capture of these frames, each a microsecond after the one before it.
fn pcap(frames: &[&[u8]]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    for (frame, number) in frames.iter().zip(0..) {
        writer.frame(1_700_000_000_000_000_000 + number * 1000, frame).unwrap();
    }
    writer.finish().unwrap()
}

/// A block of pcapng in either byte order.
fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let number = |number: u32| if big { number.to_be_bytes() } else { number.to_le_bytes() };
    let length = 12 + body.len().next_multiple_of(4);
    let mut block = [number(kind), number(length as u32)].concat();
    block.extend(body);
    block.resize(length - 4, 0);
    block.extend(number(length as u32));
    block
}

fn numbers(big: bool, numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| if big { n.to_be_bytes() } else { n.to_le_bytes() }).collect()
}

/// A section of one interface of this link type and resolution, with two frames so many ticks apart.
fn section(big: bool, link_type: u16, resolution: Option<u8>, ticks: u32) -> Vec<u8> {
    let half = |number: u16| if big { number.to_be_bytes() } else { number.to_le_bytes() };
    let mut file = block(big, 0x0a0d_0d0a, &[numbers(big, &[0x1a2b_3c4d, 1, 0, 0])].concat());
    let mut interface = [half(link_type), half(0)].concat();
    interface.extend(numbers(big, &[0]));
    if let Some(resolution) = resolution {
        interface.extend([half(9), half(1)].concat());
        interface.extend([resolution, 0, 0, 0]);
    }
    file.extend(block(big, 1, &interface));
    // Statistics of it, which hold no frame.
    file.extend(block(big, 5, &numbers(big, &[0, 0, 0])));
    for number in 0..2 {
        let mut packet = numbers(big, &[0, 1, 7 + number * ticks, 61, 61]);
        packet.extend([number as u8; 61]);
        file.extend(block(big, 6, &packet));
    }
    file
}

fn refused(file: &[u8]) -> String {
    Capture::read(file).unwrap_err().to_string()
}

#[test]
fn what_is_written_is_read() {
    let frames: [&[u8]; 3] = [&[1; 60], &[2; 1514], &[3; 14]];
    let capture = Capture::read(&pcap(&frames)).unwrap();
    assert_eq!(capture.notes, Vec::<String>::new());
    for ((captured, frame), number) in capture.frames.iter().zip(frames).zip(0..) {
        assert_eq!((captured.bytes.as_slice(), captured.time), (frame, number * 1000));
        assert!(captured.is_whole());
    }
    assert_eq!((capture.duration(), capture.mean_pps()), (2000, Some(1e6)));
}

#[test]
fn either_byte_order_and_any_resolution_of_time_is_read() {
    let mut file = vec![0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4];
    file.extend(numbers(true, &[0, 0, 65_535, 1, 9, 999_999, 60, 60]));
    file.extend([7; 60]);
    file.extend(numbers(true, &[10, 1, 60, 60]));
    file.extend([8; 60]);
    let times =
        |file: &[u8]| Capture::read(file).unwrap().frames.iter().map(|frame| frame.time).collect::<Vec<_>>();
    assert_eq!(times(&file), [0, 2000], "microseconds across a second");
    for big in [false, true] {
        assert_eq!(times(&section(big, 1, None, 3)), [0, 3000]);
        assert_eq!(times(&section(big, 1, Some(9), 3)), [0, 3]);
        assert_eq!(times(&section(big, 1, Some(0x80 | 10), 1024)), [0, 1_000_000_000]);
    }
    let both = [section(false, 1, Some(9), 3), section(true, 1, Some(9), 3)].concat();
    assert_eq!(Capture::read(&both).unwrap().frames.len(), 4, "two sections");
}

#[test]
fn what_is_whole_of_a_cut_file_is_used_and_the_rest_is_named() {
    let file = pcap(&[&[1; 60], &[2; 60]]);
    let capture = Capture::read(&file[..file.len() - 1]).unwrap();
    assert_eq!(capture.frames.len(), 1);
    assert!(capture.notes[0].contains("within frame 2"), "{:?}", capture.notes);
    let file = section(false, 1, None, 1);
    let capture = Capture::read(&file[..file.len() - 1]).unwrap();
    assert_eq!((capture.frames.len(), capture.notes.len()), (1, 1));
    assert!(refused(&file[..30]).contains("ends within frame 1"));
}

#[test]
fn what_cannot_be_sent_is_refused_with_the_remedy() {
    assert!(refused(&[]).contains("empty"));
    assert!(refused(&pcap(&[])).contains("empty"));
    assert!(refused(b"hello, world").contains("neither pcap nor pcapng"));
    assert!(refused(b"hi").contains("neither"));
    assert!(refused(&[0x1f, 0x8b, 8, 0, 0]).contains("gunzip"));
    let mut cooked = pcap(&[&[1; 60]]);
    cooked[20] = 113;
    assert!(refused(&cooked).contains("113 (Linux cooked)"), "{}", refused(&cooked));
    assert!(refused(&section(true, 101, None, 1)).contains("101 (IP without Ethernet)"));
    let mut damaged = pcap(&[&[1; 60]]);
    damaged[24 + 11] = 0xff;
    assert!(refused(&damaged).contains("frame 1"), "{}", refused(&damaged));
    let short = refused(&pcap(&[&[1; 13]]));
    assert!(short.contains("1 frames of the capture are too short"), "{short}");
}

#[test]
fn frames_that_are_too_long_or_captured_in_part_are_left_out_and_counted() {
    let capture = Capture::read(&pcap(&[&[1; 9213], &[2; 9212]])).unwrap();
    assert_eq!(capture.frames.len(), 1);
    assert!(capture.notes[0].contains("1 frames") && capture.notes[0].contains("GRO"), "{:?}", capture.notes);
    let mut part = pcap(&[&[1; 60], &[2; 60]]);
    part[24 + 12] = 61;
    let capture = Capture::read(&part).unwrap();
    assert!(!capture.frames[0].is_whole());
    let whole = capture.whole().unwrap();
    assert_eq!((whole.frames.len(), whole.frames[0].bytes[0]), (1, 2));
    assert!(whole.notes[0].contains("tcpdump -s 0"), "{:?}", whole.notes);
}

/// A UDP datagram in IPv4, padded to 60 bytes.
fn datagram(last: u8) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 32, 0, 1, 0, 0, 64, 17, 0xab, 0xcd, 16, 0, 0, 1, 48, 0, 0, 1]);
    frame.extend([4, 1, 0, 12, 0, 12, 0, 0, 1, 2, 3, last]);
    frame.resize(60, 0);
    frame
}

#[test]
fn what_a_router_changes_does_not_count_and_all_else_does() {
    let frame = datagram(4);
    let mut routed = frame.clone();
    routed[..12].fill(9);
    (routed[22], routed[24], routed[25]) = (63, 1, 2);
    *routed.last_mut().unwrap() = 0x55;
    assert_eq!(key(&routed), key(&frame), "addresses, time to live, checksum and padding");
    let mut tagged = frame.clone();
    tagged.splice(12..12, [0x81, 0, 0, 100]);
    assert_eq!(key(&tagged), key(&frame));
    assert_ne!(key(&datagram(5)), key(&frame));
    for length in 0..frame.len() {
        let _ = key(&frame[..length]);
    }
    let mut padded = vec![0xff; 12];
    padded.extend([8, 6, 1, 2, 3]);
    let bare = key(&padded);
    padded.resize(60, 0);
    assert_eq!(key(&padded), bare);
}

proptest! {
    #[test]
    fn no_bytes_do_any_harm(
        kind in 0usize..4,
        mut bytes in prop::collection::vec(any::<u8>(), 0..400),
        at in 0usize..400,
        byte: u8,
    ) {
        let _ = Capture::read(&bytes);
        let mut file = match kind {
            0 => pcap(&[&bytes, &[1; 60]]),
            1 => section(false, 1, Some(byte), 3),
            2 => section(true, 1, None, 3),
            _ => pcap(&[&datagram(byte)]),
        };
        let place = at % file.len();
        file[place] = byte;
        for capture in [Capture::read(&file), Capture::read(&file[..place])].into_iter().flatten() {
            let _ = Recording::new(&capture);
            capture.frames.iter().for_each(|frame| { let _ = key(&frame.bytes); });
        }
        bytes.truncate(60);
        let _ = key(&bytes);
    }
}
