//! The headers of the frames that benchmarks send: a destination enters, they leave with the right checksum.

use std::net::Ipv4Addr;

use wire::{MacAddress, ethernet, ipv4};

/// Bytes of a frame of 64, without FCS.
pub const FRAME: usize = 60;
/// Bytes of both headers.
pub const HEADERS: usize = ethernet::LENGTH + ipv4::LENGTH;

/// The headers, and the sum of the second without its destination.
pub struct Template {
    headers: [u8; HEADERS],
    sum: u32,
}

impl Template {
    /// Of frames to a device with the link address `device`.
    pub fn new(device: MacAddress) -> Self {
        let source = MacAddress([2, 0, 0, 0, 0, 2]);
        let ethernet = ethernet::Header { destination: device, source, ethertype: ethernet::IPV4 };
        let ip4 = ipv4::Header {
            tos: 0,
            total_length: (FRAME - ethernet::LENGTH) as u16,
            identification: 0,
            ttl: 64,
            protocol: ipv4::UDP,
            source: Ipv4Addr::new(16, 0, 0, 1),
            destination: Ipv4Addr::UNSPECIFIED,
        };
        let mut headers = [0; HEADERS];
        headers[..ethernet::LENGTH].copy_from_slice(&ethernet.emit());
        headers[ethernet::LENGTH..].copy_from_slice(&ip4.emit());
        let sum = u32::from(!u16::from_be_bytes([headers[24], headers[25]]));
        Self { headers, sum }
    }

    /// Those of a frame to `destination`.
    #[inline(always)]
    pub fn to(&self, destination: u32) -> [u8; HEADERS] {
        let mut headers = self.headers;
        headers[30..].copy_from_slice(&destination.to_be_bytes());
        let sum = self.sum + (destination >> 16) + (destination & 0xffff);
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = (sum & 0xffff) + (sum >> 16);
        headers[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        headers
    }
}
