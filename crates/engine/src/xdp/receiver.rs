//! The receiver: attached to ports, it counts our frames and passes all others to the kernel.
//!
//! Ports enter; counts per interval and direction leave.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use libbpf_rs::MapCore;
use stats::Histogram;
use traffic::Apart;
use xsk::{Attachment, Interface};

use super::program::{self, Loaded, receive};
use super::{DIRECTIONS, INTERVALS, PortRef, in_namespace};
use crate::apart::StreamReceived;
use crate::listening::{Listener, direction_at};
use crate::live::Received;
use crate::timeline::Bins;
use crate::{Error, StreamTotals, Totals, refusal};

/// The receiving program on one or two ports; detached and unloaded when dropped.
pub struct Receiver {
    // First: it is detached before it is unloaded.
    attached: Vec<(String, Attachment)>,
    skeleton: Loaded<receive::ReceiveSkel<'static>>,
    latency_streams: usize,
    /// When it was last seen whether it is still attached.
    checked: Instant,
}

/// How often that is looked at: the kernel takes the lock of all interfaces for it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Receiver {
    /// Attaches to `ports` in `namespace`; frames of up to `streams` streams from `workers`
    /// workers are told apart.
    ///
    /// # Errors
    /// When the kernel refuses the program, or a port has another XDP program already.
    pub fn attach(
        ports: &[PortRef],
        namespace: Option<BorrowedFd>,
        streams: usize,
        workers: usize,
    ) -> Result<Self, Error> {
        Self::attach_for(ports, namespace, streams, workers, Apart::default())
    }

    /// As [`Receiver::attach`]; these streams are counted apart.
    pub(super) fn attach_for(
        ports: &[PortRef],
        namespace: Option<BorrowedFd>,
        streams: usize,
        workers: usize,
        apart: Apart,
    ) -> Result<Self, Error> {
        // A single port is one that frames of direction 0 arrive at.
        let indexes = match ports {
            [port] => [0, port.index],
            ports => super::indexes(ports),
        };
        let mut receiver = Self::load(indexes, streams, workers, apart)?;
        ports.iter().try_for_each(|port| receiver.attach_to(port, namespace).map(drop))?;
        Ok(receiver)
    }

    /// Loads the program for the ports of these indexes; it is attached to neither yet.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub(crate) fn load(
        indexes: [u32; DIRECTIONS],
        streams: usize,
        workers: usize,
        apart: Apart,
    ) -> Result<Self, Error> {
        let skeleton = Loaded::load(receive::ReceiveSkelBuilder::default(), |open| {
            if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
                rodata.port_ifindex = indexes;
                rodata.worker_count = workers as u32;
                rodata.counted_streams = apart.streams as u32;
                rodata.latency_streams = apart.latencies as u32;
            }
            let cpus = libbpf_rs::num_possible_cpus()?;
            open.maps.received_bins.set_max_entries((cpus * DIRECTIONS) as u32)?;
            open.maps.stream_totals.set_max_entries((apart.streams * DIRECTIONS).max(1) as u32)?;
            open.maps.stream_latencies.set_max_entries((apart.latencies * DIRECTIONS).max(1) as u32)?;
            open.maps.seen.set_max_entries((streams * workers * DIRECTIONS) as u32)
        })?;
        let (attached, latency_streams) = (Vec::new(), apart.latencies);
        Ok(Self { attached, skeleton, latency_streams, checked: Instant::now() })
    }

    /// Attaches it to `port`, and says whether it runs in the driver.
    ///
    /// # Errors
    /// When the port does not take it, or has another.
    pub(crate) fn attach_to(&mut self, port: &PortRef, namespace: Option<BorrowedFd>) -> Result<bool, Error> {
        let skeleton = &self.skeleton;
        let attachment = in_namespace(namespace, || {
            Ok(Attachment::new(&Interface::find(&port.name)?, &skeleton.progs.receive, false)?)
        })?;
        let native = attachment.is_native();
        self.attached.push((port.name.clone(), attachment));
        Ok(native)
    }

    /// Whether the program is still at all ports.
    ///
    /// # Errors
    /// When it is not.
    pub fn check(&mut self) -> Result<(), Error> {
        if self.checked.elapsed() < LOOK_EVERY {
            return Ok(());
        }
        self.checked = Instant::now();
        let gone = self.attached.iter().find(|(_, attachment)| !attachment.is_there());
        gone.map_or(Ok(()), |(name, _)| Err(Error::Failed(refusal::program_removed(name))))
    }

    /// How each port runs the program: `native` (in its driver) or `generic` (slower).
    #[must_use]
    pub fn modes(&self) -> Vec<&'static str> {
        let mode = |native| if native { "native" } else { "generic" };
        self.attached.iter().map(|(_, attachment)| mode(attachment.is_native())).collect()
    }

    /// What came back of the frames of `interval` in `direction`.
    ///
    /// # Errors
    /// When the counters cannot be read.
    pub fn received(&self, interval: u64, direction: usize) -> Result<Received, Error> {
        let slot = (interval as usize % INTERVALS) * DIRECTIONS + direction;
        let cpus: Vec<receive::types::received> = program::read_per_cpu(&self.skeleton.maps.received, slot)?;
        let mut sum = Received { latency_min: u64::MAX, ..Received::default() };
        for cpu in cpus.iter().filter(|cpu| cpu.frames > 0) {
            sum.frames += cpu.frames;
            sum.bytes += cpu.bytes;
            sum.latency_min = sum.latency_min.min(cpu.latency_min.saturating_sub(1));
            sum.latency_max = sum.latency_max.max(cpu.latency_max);
            sum.latency_sum += cpu.latency_sum;
        }
        if sum.frames == 0 { Ok(Received::default()) } else { Ok(sum) }
    }

    /// Forgets the counts of the interval whose place `interval` will take.
    pub(crate) fn forget(&self, interval: u64) -> Result<(), Error> {
        let slot = (interval as usize % INTERVALS) * DIRECTIONS;
        (0..DIRECTIONS)
            .try_for_each(|direction| program::clear_per_cpu(&self.skeleton.maps.received, slot + direction))
    }

    /// What came back of the frames of `direction`, by when they left.
    ///
    /// # Errors
    /// When the counters cannot be read.
    pub fn bins(&self, direction: usize) -> Result<Vec<Bins>, Error> {
        let map = &self.skeleton.maps.received_bins;
        let cpus = map.max_entries() as usize / DIRECTIONS;
        (0..cpus).map(|cpu| program::bins(map, cpu * DIRECTIONS + direction)).collect()
    }

    /// What was received of `stream`, which is counted apart, in `direction`.
    ///
    /// # Errors
    /// When the counters cannot be read.
    pub fn stream(&self, stream: usize, direction: usize) -> Result<StreamTotals, Error> {
        let place = stream * DIRECTIONS + direction;
        let cpus: Vec<receive::types::stream_totals> =
            program::read_per_cpu(&self.skeleton.maps.stream_totals, place)?;
        let mut sum = StreamTotals::default();
        for cpu in cpus {
            sum.add_received(&StreamReceived {
                frames: cpu.frames,
                bytes: cpu.bytes,
                duplicates: cpu.duplicates,
                reordered: cpu.reordered,
                gaps: cpu.gaps,
                missing: cpu.missing,
                latency_min: cpu.latency_min,
                latency_max: cpu.latency_max,
                latency_sum: cpu.latency_sum,
                jitter: cpu.jitter,
            });
        }
        if stream < self.latency_streams {
            let cpus: Vec<receive::types::latencies> =
                program::read_per_cpu(&self.skeleton.maps.stream_latencies, place)?;
            cpus.iter().for_each(|cpu| sum.latency.add(&Histogram::from_counts(cpu.counts.to_vec())));
        }
        Ok(sum)
    }

    /// Everything received in `direction` since the start, as far as the receiver knows it.
    ///
    /// # Errors
    /// When the counters cannot be read.
    pub fn totals(&self, direction: usize) -> Result<Totals, Error> {
        let cpus: Vec<receive::types::totals> = program::read_per_cpu(&self.skeleton.maps.totals, direction)?;
        let mut sum = Totals::default();
        for cpu in cpus {
            sum.forwarded += cpu.frames;
            sum.duplicates += cpu.duplicates;
            sum.reordered += cpu.reordered;
            sum.returned += cpu.returned;
            sum.foreign += cpu.foreign;
            sum.latency.add(&Histogram::from_counts(cpu.latency.to_vec()));
        }
        Ok(sum)
    }
}

impl Listener for Receiver {
    fn engine(&self) -> &'static str {
        "xdp"
    }

    fn check(&mut self) -> Result<(), Error> {
        Self::check(self)
    }

    fn totals(&self, port: usize) -> Result<Totals, Error> {
        Self::totals(self, direction_at(port, self.attached.len()))
    }
}
