//! DPDK's tables, in ordinary memory, as DPDK makes them or with huge pages behind them.

use std::sync::Arc;

use dpdk::{Config, Dpdk, Fib4, Fib6, Memory};
use fastpath::fib::VECTOR;

use crate::pages;
use crate::rivals::Rival;

/// Room for the routes of every table here, and for as many groups as DPDK wants for them.
const ROUTES4: u32 = 1_050_000;
const GROUPS4: u32 = 1 << 15;
const ROUTES6: u32 = 260_000;
const GROUPS6: u32 = 1 << 20;

pub struct Table<T> {
    table: T,
    huge: bool,
    hops: [u64; VECTOR],
}

pub fn ip4(huge: bool) -> Table<Fib4> {
    Table { table: Fib4::new(&start(), "ip4", ROUTES4, GROUPS4).unwrap(), huge, hops: [0; VECTOR] }
}

pub fn ip6(huge: bool) -> Table<Fib6> {
    Table { table: Fib6::new(&start(), "ip6", ROUTES6, GROUPS6).unwrap(), huge, hops: [0; VECTOR] }
}

fn start() -> Arc<Dpdk> {
    let memory = Memory::Ordinary { mebibytes: 2048 };
    Dpdk::start(&Config { core: 0, memory, cards: Vec::new() }).unwrap()
}

impl<T> Table<T> {
    fn settle(&self) {
        if self.huge {
            pages::make_huge();
        }
    }
}

impl Rival<u32> for Table<Fib4> {
    fn insert(&mut self, address: u32, length: u8, hop: u32) {
        self.table.add(address, length, hop).unwrap();
    }

    fn withdraw(&mut self, address: u32, length: u8) {
        self.table.remove(address, length).unwrap();
    }

    fn settle(&mut self) {
        Self::settle(self);
    }

    fn one(&mut self, address: u32) -> u32 {
        self.table.lookup(&[address], &mut self.hops[..1]);
        self.hops[0] as u32
    }

    fn bulk(&mut self, addresses: &[u32], hops: &mut [u32]) {
        for (addresses, hops) in addresses.chunks(VECTOR).zip(hops.chunks_mut(VECTOR)) {
            self.table.lookup(addresses, &mut self.hops);
            hops.iter_mut().zip(&self.hops).for_each(|(to, hop)| *to = *hop as u32);
        }
    }
}

impl Rival<u128> for Table<Fib6> {
    fn insert(&mut self, address: u128, length: u8, hop: u32) {
        self.table.add(address.to_be_bytes(), length, hop).unwrap();
    }

    fn withdraw(&mut self, address: u128, length: u8) {
        self.table.remove(address.to_be_bytes(), length).unwrap();
    }

    fn settle(&mut self) {
        Self::settle(self);
    }

    fn one(&mut self, address: u128) -> u32 {
        self.table.lookup(&[address.to_be_bytes()], &mut self.hops[..1]);
        self.hops[0] as u32
    }

    fn bulk(&mut self, addresses: &[u128], hops: &mut [u32]) {
        let mut bytes = [[0; 16]; VECTOR];
        for (addresses, hops) in addresses.chunks(VECTOR).zip(hops.chunks_mut(VECTOR)) {
            for (bytes, address) in bytes.iter_mut().zip(addresses) {
                *bytes = address.to_be_bytes();
            }
            self.table.lookup(&bytes[..addresses.len()], &mut self.hops);
            hops.iter_mut().zip(&self.hops).for_each(|(to, hop)| *to = *hop as u32);
        }
    }
}
