//! Routes: those of the router that were asked for enter.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::table::{self, Column};
use crate::control::router::Routes;
use crate::dataplane::forwarding::{Forwarding, Hop};
use crate::fib::Address;

/// The routes of one version of IP that were asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fib {
    /// By prefix.
    pub routes: Vec<Route>,
    /// How many were asked for besides.
    pub more: usize,
    /// How many routes the table has.
    pub total: usize,
    /// Bytes of the table.
    pub bytes: usize,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Of which destinations.
    pub prefix: String,
    /// Who says so: `connected`, `configured`, `kernel`, `neighbour` or `reserved`.
    pub source: String,
    /// Where their packets go, by flow; at least one.
    pub paths: Vec<Path>,
}

/// Where packets go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// `via` a gateway, `connected` to their subnet, `local` for the router, `link` for the
    /// router if it came from their own link, `punt` to the kernel, or `drop`.
    pub action: String,
    /// The gateway, the router's own address, or why they are dropped.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<String>,
    /// The interface that they leave by, or that the address is of.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interface: Option<String>,
    /// How many of 256 flows go there.
    pub share: usize,
}

/// The routes that were asked for, of which `forwarding` names the interfaces.
#[must_use]
pub fn fib<A: Address>(asked: &Routes<A>, forwarding: &Forwarding) -> Fib {
    let path = |(hop, share): &(Hop, usize)| path(*hop, *share, forwarding);
    let routes = asked.routes.iter().map(|route| Route {
        prefix: route.prefix.to_string(),
        source: route.source.name().to_owned(),
        paths: route.hops.iter().map(path).collect(),
    });
    Fib { routes: routes.collect(), more: asked.more, total: asked.usage.routes, bytes: asked.usage.bytes }
}

fn path(hop: Hop, share: usize, forwarding: &Forwarding) -> Path {
    let (action, interface, detail) = match hop {
        Hop::Neighbour(interface, gateway) => ("via", Some(interface), Some(gateway.to_string())),
        Hop::Glean(interface, _) => ("connected", Some(interface), None),
        Hop::Local(interface, address) => ("local", Some(interface), Some(address.to_string())),
        Hop::Link => ("link", None, None),
        Hop::Punt => ("punt", None, None),
        Hop::Drop(reason) => ("drop", None, Some(reason.text().to_owned())),
    };
    let name = |number: u16| Some(forwarding.interfaces.get(usize::from(number))?.name.clone());
    Path { action: action.to_owned(), detail, interface: interface.and_then(name), share }
}

impl fmt::Display for Fib {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Column::{Left, Right};
        let columns = [
            Left("Prefix"),
            Left("Source"),
            Left("Action"),
            Left("To"),
            Left("Interface"),
            Right("Share/256"),
        ];
        let rows = self.routes.iter().flat_map(|route| {
            route.paths.iter().enumerate().map(|(at, path)| {
                vec![
                    if at == 0 { route.prefix.clone() } else { String::new() },
                    if at == 0 { route.source.clone() } else { String::new() },
                    path.action.clone(),
                    path.detail.clone().unwrap_or_default(),
                    path.interface.clone().unwrap_or_default(),
                    path.share.to_string(),
                ]
            })
        });
        table::write(formatter, &columns, rows)?;
        if self.more > 0 {
            writeln!(formatter, "and {} more: ask for a prefix or an address", self.more)?;
        }
        writeln!(formatter, "{} routes in all, in {} bytes", self.total, self.bytes)
    }
}
