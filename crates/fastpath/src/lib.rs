//! fastpath will be a router that moves vectors of packets through a graph of nodes; today it is the
//! table that such a router looks destinations up in, [`fib`].

pub mod fib;
