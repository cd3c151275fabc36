//! What can go wrong, each with its cause and what to do about it.

/// Why a table does not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A prefix is longer than an address.
    #[error("a prefix of {length} bits: addresses have {most}, so give at most that")]
    Length {
        /// As asked for.
        length: u8,
        /// Bits of an address.
        most: u8,
    },
    /// A prefix has bits set beyond its length.
    #[error("{written} has bits set beyond its length: is {network} meant?")]
    HostBits {
        /// As asked for.
        written: String,
        /// The prefix that holds it.
        network: String,
    },
    /// The index of a next hop is too high.
    #[error("next hop {index}: a table has room for those up to {}", super::NextHop::MOST)]
    NextHop {
        /// As asked for.
        index: u32,
    },
    /// No room is left.
    #[error("all {capacity} {what} are used: make the table with a larger capacity")]
    Full {
        /// Of what.
        what: &'static str,
        /// How many there are.
        capacity: u32,
    },
    /// Too few or too many next hops in a group.
    #[error("a group of {count} next hops: give it 1 to {}", super::group::BUCKETS)]
    Members {
        /// How many were given.
        count: usize,
    },
    /// The group was removed, or belongs to another table.
    #[error("this table has no group {group}: add it first")]
    NoGroup {
        /// Its number.
        group: u32,
    },
    /// A group cannot be removed.
    #[error("{routes} routes go through group {group}: withdraw them first")]
    GroupInUse {
        /// Its number.
        group: u32,
        /// How many.
        routes: usize,
    },
    /// The kernel gives no address space.
    #[error("no memory for the table: {0}; make it with a smaller capacity, or raise the limit (ulimit -v)")]
    Memory(#[from] std::io::Error),
}
