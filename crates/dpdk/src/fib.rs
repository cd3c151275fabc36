//! DPDK's own tables of routes (`rte_fib`, `rte_fib6`), to measure others by: routes enter, the next hops
//! of destinations leave. Next hop 0 stands for no route.

use std::ffi::CString;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::environment::Dpdk;
use crate::error::{Error, errno};
use crate::shim;

/// DIR-24-8: a table for the first 24 bits, and groups for the last eight.
#[derive(Debug)]
pub struct Fib4 {
    fib: NonNull<shim::rte_fib>,
    _dpdk: Arc<Dpdk>,
}

/// A table for the first 24 bits, and groups for each eight that follow.
#[derive(Debug)]
pub struct Fib6 {
    fib: NonNull<shim::rte_fib6>,
    _dpdk: Arc<Dpdk>,
}

impl Fib4 {
    /// A table of its own name, with room for so many routes and groups.
    ///
    /// # Errors
    /// [`Error::Fib`] when memory is short.
    pub fn new(dpdk: &Arc<Dpdk>, name: &str, routes: u32, groups: u32) -> Result<Self, Error> {
        let (name, mut error) = (text(name)?, 0);
        // SAFETY: DPDK is started; the name ends in zero and is copied.
        let fib = unsafe { shim::linerate_fib4(name.as_ptr(), routes as i32, groups, &raw mut error) };
        let fib = NonNull::new(fib).ok_or_else(|| refused(format!("{routes} routes"), error))?;
        Ok(Self { fib, _dpdk: Arc::clone(dpdk) })
    }

    /// Has addresses that begin with the first `length` bits of `address` go to `hop`.
    ///
    /// # Errors
    /// [`Error::Fib`] when there is no room.
    pub fn add(&mut self, address: u32, length: u8, hop: u32) -> Result<(), Error> {
        // SAFETY: the table lives as long as `self`.
        let result = unsafe { shim::linerate_fib4_add(self.fib.as_ptr(), address, length, hop.into()) };
        answer(result, || format!("{}/{length}", Ipv4Addr::from(address)))
    }

    /// Takes a route away.
    ///
    /// # Errors
    /// [`Error::Fib`] when there is none.
    pub fn remove(&mut self, address: u32, length: u8) -> Result<(), Error> {
        // SAFETY: the table lives as long as `self`.
        let result = unsafe { shim::linerate_fib4_delete(self.fib.as_ptr(), address, length) };
        answer(result, || format!("to forget {}/{length}", Ipv4Addr::from(address)))
    }

    /// The next hops of as many addresses as there are of both.
    pub fn lookup(&self, addresses: &[u32], hops: &mut [u64]) {
        let count = addresses.len().min(hops.len());
        // SAFETY: the table lives as long as `self`; `count` addresses are read and hops written.
        unsafe {
            let (addresses, hops) = (addresses.as_ptr(), hops.as_mut_ptr());
            shim::linerate_fib4_lookup(self.fib.as_ptr(), addresses, hops, count as u32);
        }
    }
}

impl Drop for Fib4 {
    fn drop(&mut self) {
        // SAFETY: nobody else has the table.
        unsafe { shim::linerate_fib4_free(self.fib.as_ptr()) };
    }
}

impl Fib6 {
    /// A table of its own name, with room for so many routes and groups.
    ///
    /// # Errors
    /// [`Error::Fib`] when memory is short.
    pub fn new(dpdk: &Arc<Dpdk>, name: &str, routes: u32, groups: u32) -> Result<Self, Error> {
        let (name, mut error) = (text(name)?, 0);
        // SAFETY: DPDK is started; the name ends in zero and is copied.
        let fib = unsafe { shim::linerate_fib6(name.as_ptr(), routes as i32, groups, &raw mut error) };
        let fib = NonNull::new(fib).ok_or_else(|| refused(format!("{routes} routes"), error))?;
        Ok(Self { fib, _dpdk: Arc::clone(dpdk) })
    }

    /// Has addresses that begin with the first `length` bits of `address` go to `hop`.
    ///
    /// # Errors
    /// [`Error::Fib`] when there is no room.
    pub fn add(&mut self, address: [u8; 16], length: u8, hop: u32) -> Result<(), Error> {
        let (fib, bytes) = (self.fib.as_ptr(), address.as_ptr());
        // SAFETY: the table lives as long as `self`; an address is 16 bytes.
        let result = unsafe { shim::linerate_fib6_add(fib, bytes, length, hop.into()) };
        answer(result, || format!("{}/{length}", Ipv6Addr::from(address)))
    }

    /// Takes a route away.
    ///
    /// # Errors
    /// [`Error::Fib`] when there is none.
    pub fn remove(&mut self, address: [u8; 16], length: u8) -> Result<(), Error> {
        // SAFETY: the table lives as long as `self`; an address is 16 bytes.
        let result = unsafe { shim::linerate_fib6_delete(self.fib.as_ptr(), address.as_ptr(), length) };
        answer(result, || format!("to forget {}/{length}", Ipv6Addr::from(address)))
    }

    /// The next hops of as many addresses as there are of both.
    pub fn lookup(&self, addresses: &[[u8; 16]], hops: &mut [u64]) {
        let count = addresses.len().min(hops.len());
        // SAFETY: the table lives as long as `self`; `count` addresses are read and hops written.
        unsafe {
            let (addresses, hops) = (addresses.as_ptr(), hops.as_mut_ptr());
            shim::linerate_fib6_lookup(self.fib.as_ptr(), addresses, hops, count as u32);
        }
    }
}

impl Drop for Fib6 {
    fn drop(&mut self) {
        // SAFETY: nobody else has the table.
        unsafe { shim::linerate_fib6_free(self.fib.as_ptr()) };
    }
}

fn text(name: &str) -> Result<CString, Error> {
    CString::new(name).map_err(|_| Error::Text(name.into()))
}

fn refused(what: String, result: i32) -> Error {
    Error::Fib { what, cause: errno(result) }
}

fn answer(result: i32, what: impl FnOnce() -> String) -> Result<(), Error> {
    if result < 0 { Err(refused(what(), result)) } else { Ok(()) }
}
