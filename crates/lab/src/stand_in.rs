//! A port with a network stack of its own: a port enters; a namespace leaves in which one interface takes all of its frames
//! and has its MAC address.
//!
//! Two ports of one machine do not talk to each other over what is between them, because the kernel knows that it has both
//! addresses. Two stand-ins do. While there is one, the port itself hears nothing; when it is dropped, or this
//! process ends, the port is as it was.

use std::net::{IpAddr, Ipv4Addr};

use crate::error::Result;
use crate::lab::quiet_namespace;
use crate::namespace::{Namespace, on_own_thread};
use crate::netlink::Netlink;
use crate::ports::Port;

/// What a stand-in has of IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Its address.
    pub address: Ipv4Addr,
    /// The length of the prefix that it is reached by.
    pub prefix: u8,
    /// The router that it sends all else to.
    pub gateway: Option<Ipv4Addr>,
}

/// A stand-in for a port.
#[derive(Debug)]
pub struct StandIn(Namespace);

impl StandIn {
    /// A stand-in for `port`, which is in the namespace `home`, or where we are. Its interface is called as the port.
    ///
    /// # Errors
    /// [`crate::Error`], when the kernel refuses a step: it may have no macvlan, or the port has one already.
    pub fn start(port: &Port, home: Option<&Namespace>, stack: Stack) -> Result<Self> {
        let namespace = quiet_namespace("1")?;
        let add =
            |netlink: &Netlink| netlink.add_stand_in((&port.name, port.mtu), port.ifindex, namespace.fd());
        match home {
            Some(home) => home.netlink(add)?,
            // A netlink session has a runtime of its own, which must not meet the caller's.
            None => on_own_thread(|| add(&Netlink::open()?))?,
        }
        namespace.netlink(|netlink| {
            let index = netlink.expect_link(&port.name)?.index;
            netlink.set_up(index)?;
            netlink.add_address(index, stack.address.into(), stack.prefix)?;
            let everywhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
            stack.gateway.map_or(Ok(()), |gateway| netlink.add_route(everywhere, 0, gateway.into()))
        })?;
        Ok(Self(namespace))
    }

    /// Where programs have the port for themselves.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.0
    }
}
