//! A capture as a profile: its frames enter, made fit to be counted; rows of a frame table leave.
//!
//! Headers stay as they were captured, but for the addresses of Ethernet, which are those of the test.
//! Payloads become the filling byte, so that the signature stands at their end; lengths and checksums
//! follow. A frame without room for the signature is made longer.

use std::net::{Ipv4Addr, Ipv6Addr};

use wire::checksum::{self, Sum};
use wire::{ethernet, icmp, ipv4, ipv6, signature, size, tcp, udp, vlan};

use super::{Capture, CaptureError, Captured};
use crate::frame::{Directions, Endpoints, fill_slot};
use crate::stream::IpVersion;
use crate::table::{Apart, Checksum, FrameTable, Row};

/// Extension headers of IPv6 that stand between it and layer 4 and say how long they are.
const EXTENSIONS: [u8; 3] = [0, 43, 60];
/// The extension header of a fragment.
const FRAGMENT: u8 = 44;

/// The frames of a capture that can be counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    frames: Vec<Template>,
    header_length: usize,
}

/// One frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Template {
    /// As captured.
    pub(crate) headers: Vec<u8>,
    layers: Layers,
    /// Without FCS.
    pub(crate) length: u16,
}

/// Where the layers of a frame stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layers {
    pub(crate) version: IpVersion,
    /// Where IP begins.
    ip: usize,
    /// Where layer 4 begins, and which it is, if its checksum is known to this program.
    transport: Option<(usize, u8)>,
    /// Where headers end.
    pub(crate) end: usize,
}

impl Recording {
    /// The frames of `capture` that are IP, with notes of what was left out or changed.
    ///
    /// # Errors
    /// [`CaptureError::NoFrames`] when there are none.
    pub fn new(capture: &Capture) -> Result<(Self, Vec<String>), CaptureError> {
        let mut notes = capture.notes.clone();
        let found = || capture.frames.iter().filter_map(|frame| Some((frame, Layers::parse(&frame.bytes)?)));
        let fits = |layers: &Layers| layers.end <= FrameTable::MAX_HEADER;
        let headers =
            found().map(|(_, layers)| layers.end).filter(|end| *end <= FrameTable::MAX_HEADER).max();
        let header_length = headers.unwrap_or_default().next_multiple_of(8);
        let least = usize::from(size::MIN - size::FCS).max((header_length + 1).saturating_sub(8));
        let frames: Vec<Template> = found()
            .filter(|(_, layers)| fits(layers))
            .map(|(frame, layers)| Template::new(frame, layers, least))
            .collect();
        let other = capture.frames.len() - found().count();
        let long = found().count() - frames.len();
        let longer = frames
            .iter()
            .zip(found().filter(|(_, layers)| fits(layers)))
            .filter(|(template, (frame, _))| usize::from(template.length) > frame.length.max(60))
            .count();
        for (count, what) in [
            (other, "are not IP, or their headers were captured in part: left out"),
            (long, "have headers of more than 96 bytes: left out"),
            (longer, "are longer than captured, to hold the signature"),
        ] {
            if count > 0 {
                notes.push(format!("{count} frames of the capture {what}"));
            }
        }
        if frames.is_empty() {
            Err(CaptureError::NoFrames(notes))
        } else {
            Ok((Self { frames, header_length }, notes))
        }
    }

    /// The largest frame size, FCS included.
    #[must_use]
    pub fn largest_size(&self) -> u16 {
        self.frames.iter().map(|frame| frame.length + size::FCS).max().unwrap_or(size::MIN)
    }

    /// Whether any frame is of this IP version.
    #[must_use]
    pub fn uses(&self, version: IpVersion) -> bool {
        self.frames.iter().any(|frame| frame.layers.version == version)
    }

    /// Its frames in order. In the reverse direction sources and destinations of IP change places.
    pub(crate) fn table(
        &self,
        endpoints: &Endpoints,
        directions: Directions,
        fill: u8,
        max_rows: usize,
    ) -> FrameTable {
        let lanes = if directions == Directions::Both { 2 } else { 1 };
        let count = self.frames.len().min(max_rows / lanes).max(1);
        let mut table = FrameTable {
            rows: Vec::with_capacity(count * lanes),
            headers: vec![fill; count * lanes * self.header_length],
            header_length: self.header_length,
            fill,
            period: (self.frames.len() * lanes) as u64,
            times: Vec::new(),
            apart: Apart::default(),
        };
        let mut slots = table.headers.chunks_exact_mut(self.header_length.max(1));
        for template in self.frames.iter().take(count) {
            for (direction, endpoint) in (0..).zip(endpoints.0.iter().take(lanes)) {
                let Some(slot) = slots.next() else { continue };
                let mut headers = template.headers.clone();
                headers[..6].copy_from_slice(&endpoint.destination.0);
                headers[6..12].copy_from_slice(&endpoint.source.0);
                if direction == 1 {
                    template.layers.swap_addresses(&mut headers);
                }
                let checksum = template.finish(&mut headers, fill);
                fill_slot(slot, &headers, usize::from(template.length));
                table.rows.push(Row { length: template.length, stream: 0, direction, checksum });
            }
        }
        table
    }
}

impl Layers {
    /// `None` where the frame is not IP, or its headers are not all there.
    pub(crate) fn parse(frame: &[u8]) -> Option<Self> {
        let mut ip = ethernet::LENGTH;
        let mut ethertype = number(frame, ip - 2)?;
        while matches!(ethertype, vlan::CUSTOMER | vlan::SERVICE) {
            ip += vlan::LENGTH;
            ethertype = number(frame, ip - 2)?;
        }
        let (version, start, protocol) = match ethertype {
            ethernet::IPV4 => {
                let length = usize::from(frame.get(ip)? & 0x0f) * 4;
                let is_fragment = number(frame, ip + 6)? & 0x3fff != 0;
                let protocol = *frame.get(ip + 9)?;
                (IpVersion::V4, ip + length.max(ipv4::LENGTH), (!is_fragment).then_some(protocol))
            }
            ethernet::IPV6 => {
                let (start, protocol) = behind_extensions(frame, ip)?;
                (IpVersion::V6, start, protocol)
            }
            _ => return None,
        };
        let length = match protocol {
            Some(ipv4::TCP) => (usize::from(frame.get(start + 12)? >> 4) * 4).max(tcp::LENGTH),
            Some(ipv4::UDP) => udp::LENGTH,
            Some(ipv4::ICMP | ipv6::ICMP) => icmp::LENGTH,
            _ => 0,
        };
        let end = start + length;
        let transport = protocol.filter(|_| length > 0).map(|protocol| (start, protocol));
        (end <= frame.len()).then_some(Self { version, ip, transport, end })
    }

    /// Where the addresses of IP stand.
    fn addresses(&self) -> (usize, usize) {
        match self.version {
            IpVersion::V4 => (self.ip + 12, 4),
            IpVersion::V6 => (self.ip + 8, 16),
        }
    }

    /// Source and destination of IP change places; ports stay, as in all profiles.
    fn swap_addresses(&self, headers: &mut [u8]) {
        let (at, length) = self.addresses();
        if let Some(pair) = headers.get_mut(at..at + 2 * length) {
            pair.rotate_left(length);
        }
    }

    /// The sum that the checksum of layer 4 begins with.
    fn pseudo(&self, headers: &[u8], protocol: u8, length: u16) -> Sum {
        let (at, width) = self.addresses();
        match self.version {
            _ if protocol == ipv4::ICMP => Sum::default(),
            IpVersion::V4 => {
                let address = |at| Ipv4Addr::from(bytes::<4>(headers, at));
                checksum::pseudo_ipv4(address(at), address(at + width), protocol, length)
            }
            IpVersion::V6 => {
                let address = |at| Ipv6Addr::from(bytes::<16>(headers, at));
                checksum::pseudo_ipv6(address(at), address(at + width), protocol, length)
            }
        }
    }
}

impl Template {
    /// `frame`, no shorter than `least`, and long enough for its headers and a signature.
    pub(crate) fn new(frame: &Captured, layers: Layers, least: usize) -> Self {
        let length = frame.length.max(least).max(layers.end + signature::LENGTH);
        let headers = frame.bytes.get(..layers.end).unwrap_or(&frame.bytes).to_vec();
        Self { headers, layers, length: length as u16 }
    }

    /// Sets lengths and checksums of `headers` right for a payload of `fill` and the signature's magic;
    /// says where a checksum stands that covers the signature.
    pub(crate) fn finish(&self, headers: &mut [u8], fill: u8) -> Option<Checksum> {
        let Layers { version, ip, transport, end } = self.layers;
        let length = self.length - ip as u16;
        match version {
            IpVersion::V4 => {
                put(headers, ip + 2, length);
                put(headers, ip + 10, 0);
                let ihl = usize::from(headers[ip] & 0x0f) * 4;
                let header = headers.get(ip..ip + ihl.max(ipv4::LENGTH)).unwrap_or_default();
                let checksum = Sum::default().bytes(header).checksum();
                put(headers, ip + 10, checksum);
            }
            IpVersion::V6 => put(headers, ip + 4, length - ipv6::LENGTH as u16),
        }
        let (start, protocol) = transport?;
        let length = self.length - start as u16;
        let (offset, zero_is_ffff) = match protocol {
            ipv4::UDP => {
                put(headers, start + 4, length);
                (udp::CHECKSUM_OFFSET, true)
            }
            ipv4::TCP => (tcp::CHECKSUM_OFFSET, false),
            _ => (icmp::CHECKSUM_OFFSET, false),
        };
        let place = start + offset;
        if protocol == ipv4::UDP && version == IpVersion::V4 && number(headers, place) == Some(0) {
            // It was captured without one.
            return None;
        }
        put(headers, place, 0);
        let filled = usize::from(self.length) - end - signature::LENGTH;
        let odd = filled % 2 == 1;
        let sum = self.layers.pseudo(headers, protocol, length);
        let sum = sum.bytes(headers.get(start..end).unwrap_or_default()).repeated(fill, filled);
        let sum = if odd { sum.bytes_at_odd(&signature::MAGIC) } else { sum.bytes(&signature::MAGIC) };
        let checksum = match sum.checksum() {
            0 if zero_is_ffff => 0xffff,
            checksum => checksum,
        };
        put(headers, place, checksum);
        Some(Checksum { offset: place as u16, swapped: odd, zero_is_ffff })
    }
}

/// Where what follows IPv6 and its extension headers begins, and which protocol that is, if it is known.
fn behind_extensions(frame: &[u8], ip: usize) -> Option<(usize, Option<u8>)> {
    let mut next = *frame.get(ip + 6)?;
    let mut at = ip + ipv6::LENGTH;
    while EXTENSIONS.contains(&next) {
        let length = 8 + usize::from(*frame.get(at + 1)?) * 8;
        next = *frame.get(at)?;
        at += length;
    }
    if next == FRAGMENT {
        return Some((at + 8, None));
    }
    Some((at, Some(next)))
}

/// The 16-bit number at `at`.
fn number(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

/// The bytes at `at`, zeros where there are none.
fn bytes<const N: usize>(from: &[u8], at: usize) -> [u8; N] {
    from.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

/// Writes a 16-bit number.
fn put(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = value.to_be_bytes();
    }
}
