//! What counts without sending: ports, by which they are named, and an engine enter; what counts at them leaves.

use anyhow::Result;
use engine::af_xdp::{self, Options};
use engine::listening::Listener;
use engine::xdp::{PortRef, Receiver};
use lab::Namespace;
use wording::usage::misuse;

use crate::target::EngineName;
use crate::user_space::{dpdk, memif};

/// Where is counted, and by what.
pub struct Counting<'a> {
    /// One port or two: interfaces, or ports of user space as `--port0` names them.
    pub ports: Vec<String>,
    /// Where the interfaces are; `None` for here.
    pub namespace: Option<&'a Namespace>,
    /// What counts.
    pub engine: EngineName,
    /// The cores that receive in user space.
    pub cores: Vec<usize>,
    /// Twice: DPDK may take an interface even if it carries the default route or this login.
    pub force: u8,
}

impl Counting<'_> {
    /// Opens the ports and begins to count.
    ///
    /// # Errors
    /// Wrong use where there is no such port, or it is none for the engine; else why it cannot be opened.
    pub fn start(&self) -> Result<Box<dyn Listener>> {
        if self.namespace.is_some() && self.engine().is_in_user_space() {
            return Err(misuse(
                "a lab's ports are interfaces of the kernel: count there by --engine xdp or af_xdp",
            ));
        }
        match self.engine() {
            EngineName::Memif => memif::listen(&self.ports, &self.cores),
            EngineName::Dpdk => dpdk::listen(&self.ports, &self.cores, self.force),
            EngineName::Trex => Err(misuse("TRex servers count only what they send: choose another engine")),
            EngineName::AfXdp => {
                let ports = self.interfaces()?;
                let ports: Vec<&PortRef> = ports.iter().collect();
                let namespace = self.namespace.map(Namespace::fd);
                Ok(Box::new(af_xdp::listen(&ports, namespace, Options::default(), &self.cores)?))
            }
            EngineName::Xdp | EngineName::Auto => {
                let (streams, workers) = (engine::listening::STREAMS, engine::listening::WORKERS);
                let namespace = self.namespace.map(Namespace::fd);
                Ok(Box::new(Receiver::attach(&self.interfaces()?, namespace, streams, workers)?))
            }
        }
    }

    /// What counts; `auto` chooses by what is named.
    #[must_use]
    pub fn engine(&self) -> EngineName {
        match self.engine {
            EngineName::Auto if self.ports.iter().any(|port| port.starts_with("memif:")) => EngineName::Memif,
            EngineName::Auto => EngineName::Xdp,
            named => named,
        }
    }

    /// Why `auto` chose that.
    #[must_use]
    pub fn why(&self) -> Option<&'static str> {
        (self.engine == EngineName::Auto).then(|| match self.engine() {
            EngineName::Memif => "memif, because a memif is named",
            _ => "xdp, because it counts at every interface of the kernel",
        })
    }

    fn interfaces(&self) -> Result<Vec<PortRef>> {
        if let [zero, one] = self.ports.as_slice()
            && zero == one
        {
            return Err(misuse(format!("both ports are '{zero}': name two different interfaces")));
        }
        let find = || -> lab::Result<Vec<_>> { Ok(self.ports.iter().map(|name| interface(name)).collect()) };
        let found = match self.namespace {
            Some(namespace) => namespace.run(find)?,
            None => find()?,
        };
        found.into_iter().collect::<Result<_, String>>().map_err(misuse)
    }
}

/// The interface called `name` in the network namespace of the calling thread.
fn interface(name: &str) -> Result<PortRef, String> {
    let index = nix::net::if_::if_nametoindex(name)
        .map_err(|_| format!("there is no interface '{name}'. There are: {}", known()))?;
    Ok(PortRef { name: name.to_owned(), index })
}

/// The interfaces that there are.
fn known() -> String {
    let list = nix::net::if_::if_nameindex();
    let names = list.iter().flatten().map(|interface| interface.name().to_string_lossy().into_owned());
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(ports: &[&str], engine: EngineName) -> Counting<'static> {
        let ports = ports.iter().map(|port| (*port).to_owned()).collect();
        Counting { ports, namespace: None, engine, cores: vec![0], force: 0 }
    }

    #[test]
    fn auto_takes_the_engine_of_what_is_named() {
        let memif = counting(&["memif:socket=/run/a"], EngineName::Auto);
        assert_eq!(memif.engine(), EngineName::Memif);
        let interfaces = counting(&["eth1", "eth2"], EngineName::Auto);
        assert_eq!(interfaces.engine(), EngineName::Xdp);
        assert!(interfaces.why().is_some_and(|why| why.starts_with("xdp, because")));
        let named = counting(&["eth1"], EngineName::AfXdp);
        assert_eq!((named.engine(), named.why()), (EngineName::AfXdp, None));
    }

    #[test]
    fn ports_that_are_none_are_refused_with_what_there_is() {
        let refused = |ports: &[&str], engine| counting(ports, engine).start().err().unwrap().to_string();
        for engine in [EngineName::Auto, EngineName::Xdp, EngineName::AfXdp] {
            let text = refused(&["no-such"], engine);
            assert!(text.contains("'no-such'") && text.contains("lo"), "{text}");
            assert!(refused(&["lo", "lo"], engine).contains("two different"));
        }
        assert!(refused(&["eth1"], EngineName::Memif).contains("memif"));
    }
}
