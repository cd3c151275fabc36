//! The queues of a connection: what a client offered, or a plan of our own, enters; rings with their
//! buffers leave, all of it checked.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::bell::{Bell, Chime};
use crate::closer::{Closer, Held};
use crate::config::Role;
use crate::error::Reason;
use crate::handshake::Offer;
use crate::layout::{AddRing, Direction, Plan};
use crate::queue::Link;
use crate::region::Region;
use crate::ring::{Buffers, Index, Ring, Spaced};

/// The queues of a connection, by direction and index.
pub struct Links {
    pub links: Vec<(Direction, u16, Arc<Link>)>,
    /// Whether nobody can take the memory away.
    pub sealed: bool,
}

impl Links {
    /// What a client offers; whether memory that it can take away is taken, too, `unsealed` says.
    ///
    /// # Errors
    /// When a ring or region is not as announced.
    pub fn accept(offer: Offer<Held>, unsealed: bool, bell: &Bell) -> Result<Self, Reason> {
        let regions = offer.regions.iter();
        let regions = regions.map(|(size, file)| Region::accept(file, *size, unsealed).map(Arc::new));
        let regions: Vec<Arc<Region>> = regions.collect::<Result<_, _>>()?;
        let sealed = regions.iter().all(|region| region.is_sealed());
        let link = |(ring, file)| {
            let link = peers_link(&regions, ring, bell.chime(file))?;
            Ok((ring.direction, ring.index, Arc::new(link)))
        };
        let links = offer.rings.into_iter().map(link).collect::<Result<_, Reason>>()?;
        Ok(Self { links, sealed })
    }

    /// What wakes the peer, by ring.
    pub fn chimes(&self) -> Vec<Arc<Chime>> {
        self.links.iter().map(|(_, _, link)| Arc::clone(&link.chime)).collect()
    }
}

fn peers_link(regions: &[Arc<Region>], ring: AddRing, chime: Arc<Chime>) -> Result<Link, Reason> {
    let region = regions.get(usize::from(ring.region)).ok_or(Reason::Refused("a ring in no region"))?;
    let direction = ring.direction;
    let ring = Ring::new(region, ring.offset as usize, ring.log2_size)
        .ok_or(Reason::Refused("a ring that is not all inside its region, or not aligned"))?;
    if !ring.is_marked() {
        return Err(Reason::Refused("a ring without memif's cookie"));
    }
    // Ours from now on.
    ring.publish(Index::Tail, 0);
    if direction == Direction::ToServer {
        ring.mask_interrupts();
    }
    let buffers = Buffers::Peers { regions: regions.to_vec(), spaced: Spaced::find(&ring, regions) };
    Ok(Link { ring, buffers, chime, role: Role::Server })
}

/// A client's memory, rings and event files.
pub struct Memory {
    file: File,
    links: Links,
}

impl Memory {
    /// Makes what is planned; the buffers' bytes are `fill`.
    ///
    /// # Errors
    /// When there is not so much memory, or no more files.
    pub fn new(plan: &Plan, fill: u8, wakers: (&Bell, &Closer)) -> Result<Self, Reason> {
        let (region, file) = Region::create(plan.size())?;
        let region = Arc::new(region);
        let rings = (0..plan.to_server)
            .map(|index| (Direction::ToServer, index))
            .chain((0..plan.to_client).map(|index| (Direction::ToClient, index)));
        let link = |(direction, index)| {
            Ok((direction, index, Arc::new(own_link(&region, plan, (direction, index), fill, wakers)?)))
        };
        let links = rings.map(link).collect::<Result<_, Reason>>()?;
        Ok(Self { file, links: Links { links, sealed: true } })
    }

    /// The region's file.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The event file of a ring.
    pub fn event(&self, direction: Direction, index: u16) -> Option<BorrowedFd<'_>> {
        let mut links = self.links.links.iter();
        let (_, _, link) = links.find(|link| (link.0, link.1) == (direction, index))?;
        Some(link.chime.as_fd())
    }

    /// The queues, once the server has them too: with all buffers of rings to us offered. Earlier, the
    /// server may still reset the index that says so.
    pub fn into_links(self) -> Links {
        for (direction, _, link) in &self.links.links {
            if *direction == Direction::ToClient {
                link.ring.publish(link.ours(), link.ring.size());
            }
        }
        self.links
    }
}

fn own_link(
    region: &Arc<Region>,
    plan: &Plan,
    (direction, index): (Direction, u16),
    fill: u8,
    (bell, closer): (&Bell, &Closer),
) -> Result<Link, Reason> {
    const IMPOSSIBLE: Reason = Reason::Refused("a plan that exceeds its region");
    let ring = Ring::new(region, plan.ring(direction, index), plan.log2_size).ok_or(IMPOSSIBLE)?;
    let first = plan.buffers(direction, index);
    let spaced = Spaced { region: 0, first, stride: plan.stride(), size: plan.buffer_size };
    let buffers = Buffers::own(region, spaced, &ring).ok_or(IMPOSSIBLE)?;
    buffers.describe(&ring);
    if fill != 0 {
        buffers.fill(&ring, fill);
    }
    if direction == Direction::ToClient {
        ring.mask_interrupts();
    }
    ring.mark();
    let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
    let chime = bell.chime(closer.hold(event.into()));
    Ok(Link { ring, buffers, chime, role: Role::Client })
}
