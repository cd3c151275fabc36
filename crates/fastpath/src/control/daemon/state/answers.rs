//! What is asked of the main thread and changes nothing but counters: a question enters, a table leaves.

use std::net::IpAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::State;
use crate::control::config::IpPrefix;
use crate::control::daemon::devices::Opened;
use crate::control::daemon::facts;
use crate::control::protocol::{Answer, Clear, IpVersion, Show, Version};
use crate::control::router::Asked;
use crate::control::show::{
    bridge, errors, fib, flows, graph, hardware, interfaces, metrics, neighbours, runtime, runtime_max, trace,
};
use crate::control::snapshot::Snapshot;
use crate::control::threads;
use crate::dataplane::counters::Counters;

/// The most routes that are shown at once.
const MOST_ROUTES: usize = 1000;
/// The most states of flows that are shown at once, for how long workers may take to list them, and how often is
/// looked.
const MOST_FLOWS: usize = 100;
const PATIENCE: Duration = Duration::from_millis(200);
const MOMENT: Duration = Duration::from_micros(200);
/// The most stations of a bridge that are shown at once.
const MOST_STATIONS: usize = 1000;

impl State {
    pub(super) fn show(&self, show: &Show) -> Result<Answer> {
        Ok(match show {
            Show::Runtime => {
                let threads = self.show_runtime().into_iter().map(|(thread, _)| thread).collect();
                Answer::Runtime(runtime::Runtime { threads })
            }
            Show::RuntimeMax => {
                let threads = self.show_runtime().into_iter();
                let threads =
                    threads.map(|(thread, counted)| runtime_max::thread(thread, &counted)).collect();
                Answer::RuntimeMax(runtime_max::RuntimeMax { threads })
            }
            Show::Bridge => {
                let bridges = &self.config.bridges;
                let name = |number: u16| bridges.get(usize::from(number)).map(|bridge| bridge.name.clone());
                Answer::Bridge(bridge::bridges(
                    self.router.forwarding(),
                    |number| name(number).unwrap_or_default(),
                    MOST_STATIONS,
                ))
            }
            Show::Interfaces => {
                let counted = self.interfaces.of_all(&self.with_shortcuts());
                Answer::Interfaces(interfaces::interfaces(self.router.forwarding(), &counted))
            }
            Show::Acl { name } => Answer::Acl(self.access_lists.show(&self.router, name.as_deref())?),
            Show::Flows => Answer::Flows(self.show_flows()),
            Show::Errors => Answer::Errors(errors::errors(&self.errors.of_all(&self.counters))),
            Show::Metrics => Answer::Metrics(self.metrics()),
            Show::Threads => Answer::Threads(facts::threads(&self.placed)),
            Show::Cpu => Answer::Cpu(facts::cpu(self.start)),
            Show::Hardware => Answer::Hardware(hardware::Hardware {
                devices: self.devices.iter().map(Opened::show).collect(),
                taps: self.kernel.show(),
            }),
            Show::Graph => Answer::Graph(graph::graph()),
            Show::Fib { version, of } => Answer::Fib(self.show_fib(*version, of.as_deref())?),
            Show::Neighbours => Answer::Neighbours(neighbours::neighbours(&self.router)),
            Show::Trace => {
                let traces = self.router.traces();
                let packets = traces.list(self.router.forwarding());
                Answer::Trace(trace::Trace { packets, wanted: traces.wanted() })
            }
            Show::Version => Answer::Version(Version {
                program: env!("CARGO_PKG_NAME").into(),
                version: env!("CARGO_PKG_VERSION").into(),
                process: std::process::id(),
                seconds: self.start.time.elapsed().as_secs(),
            }),
        })
    }

    /// What all workers counted since they started, in Prometheus's text format.
    pub fn metrics(&self) -> metrics::Metrics {
        let counted = self.counters.iter().map(|counters| Snapshot::of(counters)).enumerate();
        let workers = counted.map(|(number, counted)| (threads::name(number), counted));
        let shortcuts =
            self.counted_shortcuts().map(|counters| ("shortcuts".to_owned(), Snapshot::of(&counters)));
        let workers: Vec<_> = workers.chain(shortcuts).collect();
        metrics::metrics(self.router.forwarding(), &workers, self.start.time.elapsed().as_secs_f64())
    }

    /// What took shortcuts until now, if there are any.
    fn counted_shortcuts(&self) -> Option<Arc<Counters>> {
        self.shortcuts.count(&self.router);
        self.shortcuts.counters()
    }

    /// The counters of all workers, and of shortcuts behind them.
    fn with_shortcuts(&self) -> Vec<Arc<Counters>> {
        self.counters.iter().cloned().chain(self.counted_shortcuts()).collect()
    }

    /// What each worker does, and all that it counted.
    fn show_runtime(&self) -> Vec<(runtime::Thread, Snapshot)> {
        let seconds = self.runtime.since.time.elapsed().as_secs_f64();
        let counted = self.runtime.of_each(&self.counters);
        let thread = |(number, (counted, (core, _))): (usize, (Snapshot, &(usize, i32)))| {
            (runtime::thread(number + 1, &threads::name(number), *core, seconds, &counted), counted)
        };
        counted.into_iter().zip(&self.placed).enumerate().map(thread).collect()
    }

    /// The states of all workers, as far as these list some in time.
    fn show_flows(&self) -> flows::Flows {
        let mailboxes = self.router.states();
        mailboxes.iter().for_each(|mailbox| mailbox.ask());
        let deadline = Instant::now() + PATIENCE;
        let listed = mailboxes.iter().map(|mailbox| {
            loop {
                match mailbox.told() {
                    Some(states) => break states,
                    None if Instant::now() > deadline => break Vec::new(),
                    None => thread::sleep(MOMENT),
                }
            }
        });
        let listed: Vec<_> = listed.collect();
        let workers = mailboxes.iter().zip(listed).enumerate();
        let workers =
            workers.map(|(number, (mailbox, states))| (threads::name(number), &mailbox.tally, states));
        flows::flows(workers, self.config.states.maximum, self.router.forwarding(), MOST_FLOWS)
    }

    /// The routes of a version of IP, or of what is asked for.
    fn show_fib(&self, version: IpVersion, of: Option<&str>) -> Result<fib::Fib> {
        let forwarding = self.router.forwarding();
        let other = || anyhow!("{} is of the other version of IP: ask for its", of.unwrap_or_default());
        let prefix = of.filter(|of| of.contains('/')).map(str::parse::<IpPrefix>).transpose()?;
        let address = of.filter(|of| !of.contains('/')).map(|of| {
            of.parse()
                .map_err(|_| anyhow!("'{of}' is no address and no prefix: write 10.0.0.1 or 10.0.0.0/8"))
        });
        let address: Option<IpAddr> = address.transpose()?;
        match version {
            IpVersion::Ip4 => {
                let asked = match (prefix, address) {
                    (Some(IpPrefix::Ip4(prefix)), _) => Asked::Within(prefix),
                    (_, Some(IpAddr::V4(address))) => Asked::To(address.to_bits()),
                    (None, None) => Asked::All,
                    _ => return Err(other()),
                };
                Ok(fib::fib(&self.router.routes4(asked, MOST_ROUTES), forwarding))
            }
            IpVersion::Ip6 => {
                let asked = match (prefix, address) {
                    (Some(IpPrefix::Ip6(prefix)), _) => Asked::Within(prefix),
                    (_, Some(IpAddr::V6(address))) => Asked::To(address.to_bits()),
                    (None, None) => Asked::All,
                    _ => return Err(other()),
                };
                Ok(fib::fib(&self.router.routes6(asked, MOST_ROUTES), forwarding))
            }
        }
    }

    pub(super) fn clear(&mut self, clear: Clear) -> Answer {
        let (baseline, what) = match clear {
            Clear::Trace => {
                self.router.traces().clear();
                return Answer::Done("traces forgotten".into());
            }
            Clear::Acl => {
                self.access_lists.clear();
                return Answer::Done(counted_from_now_on("access lists"));
            }
            Clear::Bridge => {
                let bridges = &self.router.forwarding().bridges;
                bridges.iter().for_each(|bridge| bridge.stations.retain(|_| false));
                return Answer::Done("stations forgotten".into());
            }
            Clear::Runtime => {
                let nodes = self.counters.iter().flat_map(|counters| &counters.nodes);
                nodes.for_each(|node| node.dearest.clear());
                (&mut self.runtime, "runtime")
            }
            Clear::Interfaces => {
                self.interfaces.begin(&self.with_shortcuts());
                return Answer::Done(counted_from_now_on("interfaces"));
            }
            Clear::Errors => (&mut self.errors, "errors"),
        };
        baseline.begin(&self.counters);
        Answer::Done(counted_from_now_on(what))
    }
}

fn counted_from_now_on(what: &str) -> String {
    format!("{what} counted from now on")
}
