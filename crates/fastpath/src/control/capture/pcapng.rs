//! The format pcapng (draft-ietf-opsawg-pcapng): interfaces and packets enter, blocks of bytes leave.

use crate::dataplane::capture::{Captured, Way};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
/// Says the order of bytes.
const MAGIC: u32 = 0x1a2b_3c4d;
/// The link type of Ethernet.
const ETHERNET: u16 = 1;
/// Options: the name of an interface, the unit of its times as a power of ten, and the flags of a packet.
const NAME: u16 = 2;
const RESOLUTION: u16 = 9;
const FLAGS: u16 = 2;

/// What a file begins with: the interfaces, by number, of each packet of which there are so many bytes at most.
#[must_use]
pub fn head(names: &[String], most: u32) -> Vec<u8> {
    let mut section = MAGIC.to_le_bytes().to_vec();
    section.extend(1u16.to_le_bytes());
    section.extend(0u16.to_le_bytes());
    // How long the section is, is not known.
    section.extend(u64::MAX.to_le_bytes());
    let mut file = block(SECTION, &section);
    for name in names {
        let mut body = u32::from(ETHERNET).to_le_bytes().to_vec();
        body.extend(most.to_le_bytes());
        option(&mut body, NAME, name.as_bytes());
        option(&mut body, RESOLUTION, &[9]);
        option(&mut body, 0, &[]);
        file.extend(block(INTERFACE, &body));
    }
    file
}

/// A packet.
#[must_use]
pub fn packet(captured: &Captured) -> Vec<u8> {
    let Captured { at, interface, way, length, bytes } = captured;
    let nanoseconds = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
    let mut body = Vec::with_capacity(bytes.len() + 40);
    for word in [
        u32::from(*interface),
        (nanoseconds >> 32) as u32,
        nanoseconds as u32,
        bytes.len() as u32,
        *length as u32,
    ] {
        body.extend(word.to_le_bytes());
    }
    body.extend_from_slice(bytes);
    pad(&mut body);
    let inbound_or_outbound: u32 = match way {
        Way::Received => 1,
        Way::Sent => 2,
    };
    option(&mut body, FLAGS, &inbound_or_outbound.to_le_bytes());
    option(&mut body, 0, &[]);
    block(PACKET, &body)
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend_from_slice(value);
    pad(body);
}

/// All is a multiple of four bytes long.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_packet_stands_in_its_block_byte_by_byte() {
        let captured = Captured {
            at: Duration::from_nanos((3 << 32) + 7),
            interface: 2,
            way: Way::Sent,
            length: 60,
            bytes: [1, 2, 3, 4, 5].into(),
        };
        let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
        let expected = [
            words(&[6, 52, 2, 3, 7, 5, 60]),
            vec![1, 2, 3, 4, 5, 0, 0, 0],
            vec![2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0],
            words(&[52]),
        ];
        assert_eq!(packet(&captured), expected.concat());
    }

    #[test]
    fn every_block_says_how_long_it_is() {
        let file = head(&["lan".into(), "a longer name".into()], 512);
        let mut rest = &file[..];
        let mut kinds = Vec::new();
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(*rest[at..].first_chunk().unwrap());
            let length = word(4) as usize;
            assert_eq!((word(length - 4) as usize, length % 4), (length, 0));
            kinds.push(word(0));
            rest = &rest[length..];
        }
        assert_eq!(kinds, [SECTION, INTERFACE, INTERFACE]);
    }
}
