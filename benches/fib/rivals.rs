//! The tables that are compared, all as one trait.

use fastpath::fib::{Address, Capacity, Fib, NextHop, Prefix, Reader, VECTOR};
use poptrie::Poptrie;
use prefix_trie::PrefixMap;

use crate::pages;

/// A table of routes whose next hops are numbers.
pub trait Rival<A: Copy> {
    fn insert(&mut self, address: A, length: u8, hop: u32);
    fn withdraw(&mut self, address: A, length: u8);
    /// All at once, into an empty table.
    fn load(&mut self, routes: &[(A, u8, u32)]) {
        for &(address, length, hop) in routes {
            self.insert(address, length, hop);
        }
    }
    /// After loading, before lookups.
    fn settle(&mut self) {}
    fn one(&mut self, address: A) -> u32;
    /// As many as a router would, [`VECTOR`] at a time.
    fn bulk(&mut self, addresses: &[A], hops: &mut [u32]) {
        for (address, hop) in addresses.iter().zip(hops) {
            *hop = self.one(*address);
        }
    }
}

/// Those that have an entry for every value of the first 24 bits.
const DIRECT: [&str; 2] = ["fastpath", "rte_fib, huge pages"];

/// Their names, after the table's.
pub fn rows() -> Vec<String> {
    let mut rivals = vec!["fastpath", "fastpath, 4 KiB pages"];
    if cfg!(feature = "dpdk") {
        rivals.extend(["rte_fib", "rte_fib, huge pages"]);
    }
    rivals.extend(["poptrie, huge pages", "prefix-trie, huge pages"]);
    let named = |table: &str, rivals: &[&str]| -> Vec<String> {
        rivals.iter().map(|rival| format!("{table}: {rival}")).collect()
    };
    // Where addresses are looked up in two steps, those whose first step is the same.
    let two_steps: Vec<&str> = rivals.iter().copied().filter(|rival| DIRECT.contains(rival)).collect();
    [named("IPv4", &rivals), named("IPv4 and longer", &two_steps), named("IPv6", &rivals)].concat()
}

pub fn ip4(name: &str) -> Box<dyn Rival<u32>> {
    match name {
        #[cfg(feature = "dpdk")]
        _ if name.starts_with("rte_fib") => Box::new(crate::dpdk_tables::ip4(name.contains("huge"))),
        _ => any(name),
    }
}

pub fn ip6(name: &str) -> Box<dyn Rival<u128>> {
    match name {
        #[cfg(feature = "dpdk")]
        _ if name.starts_with("rte_fib") => Box::new(crate::dpdk_tables::ip6(name.contains("huge"))),
        _ => any(name),
    }
}

fn any<A: Address>(name: &str) -> Box<dyn Rival<A>>
where
    (A, u8): prefix_trie::Prefix + poptrie::Prefix<ADDRESS = A>,
{
    match name {
        "fastpath" => Box::new(Ours::new()),
        "fastpath, 4 KiB pages" => {
            pages::only_small();
            Box::new(Ours::new())
        }
        "poptrie, huge pages" => Box::new(PopTrie(Poptrie::<(A, u8), u32>::new())),
        _ => Box::new(PrefixTrie(PrefixMap::<(A, u8), u32>::new())),
    }
}

struct Ours<A: Address> {
    fib: Fib<A>,
    reader: Reader<A>,
    hops: [NextHop; VECTOR],
}

impl<A: Address> Ours<A> {
    fn new() -> Self {
        let fib = Fib::new(Capacity::of::<A>()).unwrap();
        Self { reader: fib.reader(), fib, hops: [NextHop::NONE; VECTOR] }
    }
}

impl<A: Address> Rival<A> for Ours<A> {
    fn insert(&mut self, address: A, length: u8, hop: u32) {
        self.fib.insert(Prefix::new(address, length).unwrap(), NextHop::new(hop).unwrap()).unwrap();
    }

    fn withdraw(&mut self, address: A, length: u8) {
        self.fib.withdraw(Prefix::new(address, length).unwrap()).unwrap();
    }

    fn one(&mut self, address: A) -> u32 {
        self.reader.pass().lookup(address, 0).index()
    }

    fn bulk(&mut self, addresses: &[A], hops: &mut [u32]) {
        for (addresses, hops) in addresses.chunks(VECTOR).zip(hops.chunks_mut(VECTOR)) {
            self.reader.pass().lookup_bulk(addresses, |_| 0, &mut self.hops);
            hops.iter_mut().zip(&self.hops).for_each(|(to, hop)| *to = hop.index());
        }
    }
}

struct PrefixTrie<A>(PrefixMap<(A, u8), u32>)
where
    (A, u8): prefix_trie::Prefix;

impl<A: Address> Rival<A> for PrefixTrie<A>
where
    (A, u8): prefix_trie::Prefix,
{
    fn insert(&mut self, address: A, length: u8, hop: u32) {
        self.0.insert((address, length), hop);
    }

    fn withdraw(&mut self, address: A, length: u8) {
        self.0.remove(&(address, length)).unwrap();
    }

    fn settle(&mut self) {
        pages::make_huge();
    }

    fn one(&mut self, address: A) -> u32 {
        self.0.get_lpm(&(address, A::WIDTH)).map_or(0, |(_, hop)| *hop)
    }
}

struct PopTrie<A>(Poptrie<(A, u8), u32>)
where
    (A, u8): poptrie::Prefix;

impl<A: Address> Rival<A> for PopTrie<A>
where
    (A, u8): poptrie::Prefix<ADDRESS = A>,
{
    fn insert(&mut self, address: A, length: u8, hop: u32) {
        self.0.insert((address, length), hop);
    }

    fn withdraw(&mut self, address: A, length: u8) {
        self.0.remove((address, length)).unwrap();
    }

    /// As it advises: one by one a million routes would take minutes.
    fn load(&mut self, routes: &[(A, u8, u32)]) {
        self.0 = routes.iter().map(|&(address, length, hop)| ((address, length), hop)).collect();
    }

    fn settle(&mut self) {
        pages::make_huge();
    }

    fn one(&mut self, address: A) -> u32 {
        self.0.lookup(address).copied().unwrap_or(0)
    }
}
