//! The words that tables are made of.
//!
//! ```text
//! 1 node(31)                                  go on in this node
//! 0 length(8) 0 next hop(22)                  a route of this length, with one next hop
//! 0 length(8) 1 group(22)                     a route of this length, with several
//! ```
//!
//! The length of the route that filled an entry says which routes may replace it.

use super::Error;

const NODE: u32 = 1 << 31;
const LENGTH_SHIFT: u32 = 23;
const VIA: u32 = (1 << LENGTH_SHIFT) - 1;
const GROUP: u32 = 1 << 22;

/// A next hop: the index of what the caller knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NextHop(pub(super) u32);

impl NextHop {
    /// What lookups find where no route leads. A route through it discards its packets.
    pub const NONE: Self = Self(0);
    /// The highest index.
    pub const MOST: u32 = GROUP - 1;

    /// The next hop of this index; 0 is [`Self::NONE`].
    ///
    /// # Errors
    /// [`Error::NextHop`] above [`Self::MOST`].
    pub fn new(index: u32) -> Result<Self, Error> {
        if index <= Self::MOST { Ok(Self(index)) } else { Err(Error::NextHop { index }) }
    }

    /// Its index.
    #[must_use]
    pub fn index(self) -> u32 {
        self.0
    }
}

/// Several next hops over which packets are spread by flow; of the [`super::Fib`] that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Group(pub(super) u32);

/// What packets go through: a [`NextHop`] or a [`Group`]. Above these bits is the mark of the routes' owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Via(u32);

impl Via {
    /// The next hop, if it is one.
    #[must_use]
    #[inline(always)]
    pub fn next_hop(self) -> Option<NextHop> {
        (self.0 & GROUP == 0).then_some(NextHop(self.0 & VIA))
    }

    /// The group, if it is one.
    #[must_use]
    #[inline(always)]
    pub fn group(self) -> Option<Group> {
        (self.0 & GROUP != 0).then_some(Group(self.0 & VIA & !GROUP))
    }

    /// The same with a mark, which is kept with the exact route and which no packet sees; 0 is none.
    #[must_use]
    pub fn marked(self, mark: u8) -> Self {
        Self(u32::from(mark) << LENGTH_SHIFT | self.0 & VIA)
    }

    /// Its mark.
    #[must_use]
    pub fn mark(self) -> u8 {
        (self.0 >> LENGTH_SHIFT) as u8
    }
}

impl From<NextHop> for Via {
    fn from(hop: NextHop) -> Self {
        Self(hop.0)
    }
}

impl From<Group> for Via {
    fn from(group: Group) -> Self {
        Self(GROUP | group.0)
    }
}

/// One word of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry(pub(super) u32);

impl Entry {
    /// No route: as if one of length 0 led to [`NextHop::NONE`].
    pub const NONE: Self = Self(0);

    pub fn leaf(length: u8, via: Via) -> Self {
        Self(u32::from(length) << LENGTH_SHIFT | via.0 & VIA)
    }

    pub const fn to_node(node: u32) -> Self {
        Self(NODE | node)
    }

    #[inline(always)]
    pub fn is_node(self) -> bool {
        self.0 & NODE != 0
    }

    /// The node that it leads to; of an entry that leads to one.
    #[inline(always)]
    pub fn node(self) -> u32 {
        self.0 & !NODE
    }

    /// The length of the route that filled it; of an entry that leads to no node.
    pub fn length(self) -> u8 {
        (self.0 >> LENGTH_SHIFT) as u8
    }

    /// What packets go through; of an entry that leads to no node.
    #[inline(always)]
    pub fn via(self) -> Via {
        Via(self.0 & VIA)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let most = NextHop::new(NextHop::MOST).unwrap();
        for (length, via) in [(0, most.into()), (128, most.into()), (32, Via::from(Group(4095)))] {
            let leaf = Entry::leaf(length, via);
            assert_eq!((leaf.is_node(), leaf.length(), leaf.via()), (false, length, via));
        }
        assert_eq!(Via::from(most).next_hop(), Some(most));
        assert_eq!(Via::from(Group(7)).group(), Some(Group(7)));
        assert_eq!((Via::from(most).group(), Via::from(Group(7)).next_hop()), (None, None));
        for via in [most.into(), Via::from(Group(7))] {
            let marked = via.marked(255);
            assert_eq!((marked.mark(), via.mark(), marked.marked(0)), (255, 0, via));
            assert_eq!((marked.next_hop(), marked.group()), (via.next_hop(), via.group()));
            assert_eq!(Entry::leaf(24, marked), Entry::leaf(24, via));
        }
        assert!(Entry::to_node(5).is_node() && Entry::to_node(5).node() == 5);
        assert_eq!(Entry::NONE.via().next_hop(), Some(NextHop::NONE));
        assert!(NextHop::new(NextHop::MOST + 1).is_err());
    }
}
