//! Connections that the kernel tracks (conntrack): how many there are in the calling thread's namespace, how many there may
//! be, and what their objects take of the machine's memory leave.

use std::fs;

use crate::settings;

/// The connections of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracked {
    /// How many there are.
    pub count: u64,
    /// The most that there may be.
    pub limit: u64,
    /// Buckets of the hash table that they are found by.
    pub buckets: Option<u64>,
}

/// The connections of the calling thread's namespace; `None` where none are tracked.
#[must_use]
pub fn read() -> Option<Tracked> {
    let number = |name: &str| settings::get(&format!("netfilter/{name}"))?.parse().ok();
    Some(Tracked {
        count: number("nf_conntrack_count").filter(|count| *count > 0)?,
        limit: number("nf_conntrack_max")?,
        buckets: number("nf_conntrack_buckets"),
    })
}

/// Bytes of the objects that connections of all namespaces are, without what hangs on them; `None` where the kernel does not
/// say.
#[must_use]
pub fn memory() -> Option<u64> {
    object_bytes(&fs::read_to_string("/proc/slabinfo").ok()?, "nf_conntrack")
}

/// Bytes of the active objects of `cache` in the text of `/proc/slabinfo`.
fn object_bytes(text: &str, cache: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(cache)?.strip_prefix(' '))?;
    let mut words = line.split_whitespace().map(str::parse::<u64>);
    let (active, _, size) = (words.next()?.ok()?, words.next()?.ok()?, words.next()?.ok()?);
    active.checked_mul(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_connections_is_their_number_times_their_size() {
        let text = "slabinfo - version: 2.1\n# name <active_objs> <num_objs> <objsize> …\n\
                    nf_conntrack_expect 1 36 216 18 1 : tunables\n\
                    nf_conntrack   1000000 1000016    256   16    1 : tunables    0    0    0\n";
        assert_eq!(object_bytes(text, "nf_conntrack"), Some(256_000_000));
        assert_eq!(object_bytes(text, "nf_flow"), None);
        assert_eq!(object_bytes("nf_conntrack many 1 2", "nf_conntrack"), None);
    }
}
