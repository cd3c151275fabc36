//! Where a route leads: next hops with weights enter, places in a group of limited size leave.

use std::net::IpAddr;

/// The most members of a group of next hops.
const MEMBERS: usize = 256;

/// Where the packets of a route go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// By one of these next hops, in ascending order; packets are spread by weight.
    Through(Vec<Hop>),
    /// Nowhere, and nobody is told.
    Blackhole,
    /// Nowhere, and the sender is told that the destination is unreachable.
    Unreachable,
    /// Nowhere, and the sender is told that this is prohibited.
    Prohibit,
    /// To the kernel, which alone can do what the route asks (a tunnel, say).
    Kernel,
}

/// A next hop as the kernel names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hop {
    /// The kernel's index of the interface.
    pub interface: u32,
    /// The router to send to; without one the destination itself is a neighbour.
    pub gateway: Option<IpAddr>,
    /// Its share of the packets, compared with the others'; at least 1.
    pub weight: u16,
}

/// Where one next hop leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Towards {
    /// To a neighbour on an interface.
    Neighbour {
        /// The kernel's index of the interface; it may be none of the router's.
        interface: u32,
        /// The router there; without one the packet's destination is the neighbour.
        gateway: Option<IpAddr>,
    },
    /// Nowhere, and nobody is told.
    Blackhole,
    /// Nowhere, and the sender is told that the destination is unreachable.
    Unreachable,
    /// Nowhere, and the sender is told that this is prohibited.
    Prohibit,
    /// To the kernel.
    Kernel,
}

impl Path {
    /// By `hops`, in whichever order the kernel told them.
    #[must_use]
    pub fn through(mut hops: Vec<Hop>) -> Self {
        hops.sort_unstable();
        Self::Through(hops)
    }

    /// The next hops, if it has any.
    #[must_use]
    pub fn hops(&self) -> &[Hop] {
        if let Self::Through(hops) = self { hops } else { &[] }
    }

    /// Where its packets go, for a group of at most 256 members: each next hop as often as its weight asks.
    #[must_use]
    pub fn members(&self) -> Vec<Towards> {
        vec![match self {
            Self::Through(hops) => {
                // Nearly all routes have one.
                if let [Hop { interface, gateway, .. }] = hops[..] {
                    return vec![Towards::Neighbour { interface, gateway }];
                }
                let weights: Vec<u16> = hops.iter().map(|hop| hop.weight).collect();
                let shares = hops.iter().zip(places(&weights, MEMBERS));
                let members = shares.flat_map(|(&Hop { interface, gateway, .. }, places)| {
                    std::iter::repeat_n(Towards::Neighbour { interface, gateway }, places)
                });
                return members.collect();
            }
            Self::Blackhole => Towards::Blackhole,
            Self::Unreachable => Towards::Unreachable,
            Self::Prohibit => Towards::Prohibit,
            Self::Kernel => Towards::Kernel,
        }]
    }

    /// Whether all it leads to, `other` leads to as well.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Through(hops), Self::Through(others)) => hops.iter().all(|hop| others.contains(hop)),
            _ => self == other,
        }
    }

    /// What is left without the next hops of `other`; `None` if that is nothing.
    pub(super) fn without(&self, other: &Self) -> Option<Self> {
        if self.is_within(other) {
            return None;
        }
        match self {
            Self::Through(hops) => {
                let left = hops.iter().filter(|hop| !other.hops().contains(hop));
                Some(Self::Through(left.copied().collect()))
            }
            _ => Some(self.clone()),
        }
    }
}

/// How many of at most `most` places each weight gets: at least one, and as nearly in proportion as
/// places go; where there are more weights than places, only the first get one. Weights that fit as
/// they are, divided by what they have in common, are exact; others are rounded as in elections (the
/// method of Sainte-Laguë, with one place for each from the start).
fn places(weights: &[u16], most: usize) -> Vec<usize> {
    let weights = &weights[..weights.len().min(most)];
    let common = weights.iter().fold(0, |divisor, weight| common_divisor(divisor, *weight)).max(1);
    let exact: Vec<usize> = weights.iter().map(|weight| usize::from((weight / common).max(1))).collect();
    if exact.iter().sum::<usize>() <= most {
        return exact;
    }
    let mut places = vec![1; weights.len()];
    for _ in weights.len()..most {
        let claim = |at: &usize| exact[*at] as f64 / (2 * places[*at] + 1) as f64;
        if let Some(next) = (0..weights.len()).max_by(|a, b| claim(a).total_cmp(&claim(b))) {
            places[next] += 1;
        }
    }
    places
}

fn common_divisor(a: u16, b: u16) -> u16 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn hop(interface: u32) -> Hop {
        Hop { interface, gateway: None, weight: 1 }
    }

    #[test]
    fn the_order_of_next_hops_does_not_matter() {
        assert_eq!(Path::through(vec![hop(2), hop(1)]), Path::through(vec![hop(1), hop(2)]));
    }

    #[test]
    fn a_path_without_another() {
        let path = |hops: &[u32]| Path::through(hops.iter().copied().map(hop).collect());
        assert_eq!(path(&[1, 2, 3]).without(&path(&[2])), Some(path(&[1, 3])));
        assert_eq!(path(&[1]).without(&path(&[1, 2])), None);
        assert_eq!(Path::Blackhole.without(&path(&[1])), Some(Path::Blackhole));
        assert_eq!(Path::Blackhole.without(&Path::Blackhole), None);
    }

    #[test]
    fn weights_become_places() {
        assert_eq!(places(&[1, 1], 256), [1, 1]);
        assert_eq!(places(&[10, 20], 256), [1, 2]);
        assert_eq!(places(&[256, 1], 256), [255, 1]);
        assert_eq!(places(&[200, 100], 256), [2, 1]);
        assert_eq!(places(&[3; 300], 256), [1; 256]);
        assert_eq!(places(&[201, 100], 256), [171, 85]);
        assert_eq!(places(&[], 256), [0; 0]);
    }

    proptest! {
        #[test]
        fn places_are_in_proportion(weights in vec(1..=256u16, 1..80)) {
            let places = places(&weights, 256);
            let (given, total) = (places.iter().sum::<usize>(), weights.iter().map(|w| usize::from(*w)).sum::<usize>());
            prop_assert!(given <= 256 && places.iter().all(|place| *place >= 1));
            for (a, b) in (0..weights.len()).zip(1..weights.len()) {
                prop_assert!((weights[a] < weights[b]) <= (places[a] <= places[b]));
            }
            // One place for each may take from those with more; without that nobody is off by two.
            if weights.iter().all(|weight| usize::from(*weight) * 256 >= total) {
                for (place, weight) in places.iter().zip(&weights) {
                    let due = usize::from(*weight) as f64 * given as f64 / total as f64;
                    prop_assert!((*place as f64 - due).abs() < 2.0, "{place} instead of {due}");
                }
            }
        }
    }
}
