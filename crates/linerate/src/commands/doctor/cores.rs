//! How far the machine's cores are from each other: nothing enters, a line leaves where there are several.

use std::time::Duration;

use lab::{Level, placement};

use super::Line;

/// Each takes 20 ms at most, and a second is not too long without progress.
const MOST: usize = 48;

/// How long a cache line takes from the first core to the others and back, or that it could not be timed; `None` where
/// there are no others.
pub fn core_to_core() -> Option<Line> {
    let cores = placement::online().ok()?;
    let (first, others) = cores.split_first().filter(|(_, others)| !others.is_empty())?;
    let way = |core: &usize| Some((monitor::core_distance([*first, *core])?, *core));
    let stride = others.len().div_ceil(MOST).max(1);
    let ways: Vec<(Duration, usize)> = others.iter().step_by(stride).filter_map(way).collect();
    let name = "core-to-core latency".to_owned();
    Some(match in_words(*first, &ways, others.len()) {
        Some(found) => Line { name, level: Level::Good, found, remedy: None },
        None => Line {
            name,
            level: Level::Degraded,
            found: "could not be timed: the cores were busy, or this user may not go before other tasks"
                .to_owned(),
            remedy: Some("Run linerate doctor as root while nothing else runs".to_owned()),
        },
    })
}

/// The nearest, and the farthest if there are several, of so many `others`.
fn in_words(first: usize, ways: &[(Duration, usize)], others: usize) -> Option<String> {
    let (nearest, near) = ways.iter().min()?;
    let (farthest, far) = ways.iter().max()?;
    let mut words =
        format!("a cache line takes {} ns from core {first} to core {near} and back", nearest.as_nanos());
    if near != far {
        words += &format!(", {} ns to core {far}", farthest.as_nanos());
    }
    if ways.len() < others {
        words += &format!(" ({} of {others} cores were timed)", ways.len());
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_and_the_farthest_core_are_named() {
        let way = |core, ns| (Duration::from_nanos(ns), core);
        assert_eq!(in_words(0, &[], 0), None);
        assert_eq!(
            in_words(0, &[way(1, 135)], 1).as_deref(),
            Some("a cache line takes 135 ns from core 0 to core 1 and back")
        );
        assert_eq!(
            in_words(2, &[way(3, 170), way(4, 85), way(9, 380)], 3).as_deref(),
            Some("a cache line takes 85 ns from core 2 to core 4 and back, 380 ns to core 9")
        );
        assert_eq!(
            in_words(0, &[way(1, 90), way(7, 300)], 12).as_deref(),
            Some(
                "a cache line takes 90 ns from core 0 to core 1 and back, 300 ns to core 7 (2 of 12 cores were timed)"
            )
        );
    }
}
