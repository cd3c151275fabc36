//! Packet groups (`pg_id`): what engines counted of streams enters, what TRex's clients read leaves.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::StreamTotals;
use serde_json::{Map, Value, json};
use stats::Histogram;

use crate::statistics::{Counters, Rate, Rates};

/// The group that a stream's frames are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its `pg_id`.
    pub id: u32,
    /// Whether latency and order are counted, too.
    pub latency: bool,
}

/// A group as an engine's streams refer to it: one that was given up and made anew is another.
pub type Key = (u32, u64);

/// The groups that streams have.
#[derive(Debug, Default)]
pub struct Groups {
    known: BTreeMap<u32, Known>,
    newest: u64,
}

#[derive(Debug)]
struct Known {
    version: u64,
    latency: bool,
    /// What engines counted that are gone.
    before: Totals,
    rates: Rates,
    recent: Recent,
}

/// What was counted of a group.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    counters: [Counters; 2],
    /// Frames known to be lost.
    dropped: u64,
    /// Latency and order, of both directions.
    returned: StreamTotals,
}

/// Latencies of the frames that came last, as TRex shows them.
#[derive(Debug, Default)]
struct Recent {
    frames: u64,
    sum: u64,
    distribution: Histogram,
    /// Nanoseconds: the mean of the last half second in which frames came, and half of what it was before.
    average: Option<f64>,
    /// Nanoseconds: the longest of the last half second in which frames came, and of all that since it was told.
    max: u64,
    told: bool,
}

impl Groups {
    /// The groups that there are from now on, with whether latency is counted. Those that are gone are forgotten.
    pub fn set(&mut self, groups: &BTreeMap<u32, bool>) {
        self.known.retain(|id, known| groups.get(id) == Some(&known.latency));
        for (id, latency) in groups {
            self.known.entry(*id).or_insert_with(|| {
                self.newest += 1;
                Known {
                    version: self.newest,
                    latency: *latency,
                    before: Totals::default(),
                    rates: Rates::default(),
                    recent: Recent::default(),
                }
            });
        }
    }

    /// How an engine's streams refer to group `id`.
    pub fn key(&self, id: u32) -> Key {
        (id, self.known.get(&id).map_or(0, |known| known.version))
    }

    /// The numbers of all groups without and with latency.
    pub fn ids(&self) -> [Vec<u32>; 2] {
        let of = |latency| self.known.iter().filter(move |(_, known)| known.latency == latency);
        [false, true].map(|latency| of(latency).map(|(id, _)| *id).collect())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Keeps what an engine counted that is gone.
    pub fn keep(&mut self, counted: &BTreeMap<Key, Totals>) {
        for (id, known) in &mut self.known {
            if let Some(totals) = counted.get(&(*id, known.version)) {
                known.before.add(totals);
            }
        }
    }

    /// What was counted of each group, with what the engine that sends now has `counted`.
    pub fn totals(&self, counted: &BTreeMap<Key, Totals>) -> BTreeMap<u32, Totals> {
        let totals = self.known.iter().map(|(id, known)| {
            let mut totals = known.before.clone();
            if let Some(now) = counted.get(&(*id, known.version)) {
                totals.add(now);
            }
            (*id, totals)
        });
        totals.collect()
    }

    /// Takes what was counted until `now` into account.
    pub fn follow(&mut self, now: Duration, totals: &BTreeMap<u32, Totals>) {
        for (id, known) in &mut self.known {
            if let Some(totals) = totals.get(id) {
                known.rates.follow(now, totals.counters);
                known.recent.follow(&totals.returned);
            }
        }
    }

    /// What `get_pgid_stats` says of these groups; the first of them that does not exist otherwise.
    pub fn describe(&mut self, ids: &[u32], totals: &BTreeMap<u32, Totals>) -> Result<Value, u32> {
        let (mut flows, mut latencies, mut versions) = (Map::new(), Map::new(), Map::new());
        for id in ids {
            let (Some(known), Some(totals)) = (self.known.get_mut(id), totals.get(id)) else {
                return Err(*id);
            };
            flows.insert(id.to_string(), totals.flow(&known.rates.now));
            if known.latency {
                latencies.insert(id.to_string(), totals.latency(&known.recent));
                known.recent.told = true;
            }
            versions.insert(id.to_string(), json!(known.version));
        }
        if !latencies.is_empty() {
            latencies.insert("g".to_owned(), json!({"old_flow": 0, "bad_hdr": 0}));
        }
        Ok(json!({"flow_stats": flows, "latency": latencies, "ver_id": versions}))
    }
}

impl Totals {
    /// Adds a stream that left by `port`. Where `all_are_back`, what has not come back is lost.
    pub fn add_stream(&mut self, port: usize, stream: &StreamTotals, all_are_back: bool) {
        let from = &mut self.counters[port % 2];
        from.sent += stream.offered;
        from.sent_bytes += stream.offered_bytes;
        let to = &mut self.counters[(port + 1) % 2];
        to.received += stream.forwarded;
        to.received_bytes += stream.forwarded_bytes;
        let outstanding = stream.offered.saturating_sub(stream.forwarded);
        self.dropped += if all_are_back { outstanding } else { stream.missing.min(outstanding) };
        merge(&mut self.returned, stream);
    }

    fn add(&mut self, other: &Self) {
        for (sum, other) in self.counters.iter_mut().zip(&other.counters) {
            sum.sent += other.sent;
            sum.sent_bytes += other.sent_bytes;
            sum.received += other.received;
            sum.received_bytes += other.received_bytes;
        }
        self.dropped += other.dropped;
        merge(&mut self.returned, &other.returned);
    }

    fn flow(&self, rates: &[Rate; 2]) -> Value {
        let count =
            |of: fn(&Counters) -> u64| json!({"0": of(&self.counters[0]), "1": of(&self.counters[1])});
        let rate = |of: fn(&Rate) -> f64| json!({"0": of(&rates[0]), "1": of(&rates[1])});
        json!({
            "tp": count(|it| it.sent), "tb": count(|it| it.sent_bytes),
            "rp": count(|it| it.received), "rb": count(|it| it.received_bytes),
            "tps": rate(|it| it.tx_pps), "tbs": rate(|it| it.tx_bps),
            "rps": rate(|it| it.rx_pps), "rbs": rate(|it| it.rx_bps),
        })
    }

    fn latency(&self, recent: &Recent) -> Value {
        let it = &self.returned;
        let mean = it.latency_sum as f64 / it.forwarded.max(1) as f64;
        json!({
            "lat": {
                "jit": microseconds(it.jitter), "average": recent.average.unwrap_or(mean) / 1e3,
                "total_min": it.latency_min / 1_000, "total_max": microseconds(it.latency_max),
                "last_max": microseconds(recent.max.min(it.latency_max)), "histogram": histogram(&it.latency),
            },
            "er": {"drp": self.dropped, "ooo": it.reordered, "dup": it.duplicates, "sth": it.gaps,
                "stl": it.reordered + it.duplicates},
        })
    }
}

/// Adds what came back of other frames.
fn merge(sum: &mut StreamTotals, other: &StreamTotals) {
    if other.forwarded > 0 {
        sum.latency_min =
            if sum.forwarded == 0 { other.latency_min } else { sum.latency_min.min(other.latency_min) };
        // That of the engine that counted last.
        sum.jitter = other.jitter;
    }
    sum.latency_max = sum.latency_max.max(other.latency_max);
    sum.latency_sum += other.latency_sum;
    sum.forwarded += other.forwarded;
    sum.duplicates += other.duplicates;
    sum.reordered += other.reordered;
    sum.gaps += other.gaps;
    sum.latency.add(&other.latency);
}

impl Recent {
    fn follow(&mut self, totals: &StreamTotals) {
        let frames = totals.forwarded.saturating_sub(self.frames);
        if frames == 0 {
            return;
        }
        let mean = totals.latency_sum.saturating_sub(self.sum) as f64 / frames as f64;
        self.average = Some(self.average.map_or(mean, |average| f64::midpoint(average, mean)));
        let came = totals.latency.since(&self.distribution).percentile(100.0).unwrap_or(0);
        // Clients make their maximum of those that they are told: none may be left out.
        self.max = if self.told { came } else { self.max.max(came) };
        self.told = false;
        (self.frames, self.sum) = (totals.forwarded, totals.latency_sum);
        self.distribution = totals.latency.clone();
    }
}

/// Whole microseconds, rounded up.
fn microseconds(nanoseconds: u64) -> u64 {
    nanoseconds.div_ceil(1_000)
}

/// A distribution as TRex tells it: frames by microseconds, of which one digit is kept; 0 is below 10.
fn histogram(latency: &Histogram) -> Value {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for (lowest, count) in latency.buckets() {
        let microseconds = lowest / 1_000;
        let digit = 10_u64.pow(microseconds.max(1).ilog10());
        let key = if microseconds < 10 { 0 } else { microseconds / digit * digit };
        *counts.entry(key).or_default() += count;
    }
    Value::Object(counts.into_iter().map(|(key, count)| (key.to_string(), json!(count))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(offered: u64, forwarded: u64, missing: u64) -> StreamTotals {
        let mut latency = Histogram::default();
        latency.record(5_000, 1);
        latency.record(25_000, forwarded.saturating_sub(2));
        latency.record(1_230_000, 1);
        StreamTotals {
            offered,
            offered_bytes: 64 * offered,
            forwarded,
            forwarded_bytes: 64 * forwarded,
            missing,
            latency_min: 5_000,
            latency_max: 1_230_000,
            latency_sum: 30_000 * forwarded,
            jitter: 1_500,
            latency,
            ..StreamTotals::default()
        }
    }

    #[test]
    fn groups_keep_their_counts_until_they_are_made_anew() {
        let mut groups = Groups::default();
        groups.set(&BTreeMap::from([(7, true), (8, false)]));
        assert_eq!(groups.ids(), [vec![8], vec![7]]);
        let key = groups.key(7);
        let mut counted: BTreeMap<Key, Totals> = BTreeMap::new();
        counted.entry(key).or_default().add_stream(0, &stream(100, 90, 4), false);
        groups.keep(&counted);
        let totals = groups.totals(&counted);
        groups.follow(Duration::from_secs(1), &totals);
        let said = groups.describe(&[7, 8], &totals).unwrap();
        let flow = &said["flow_stats"]["7"];
        assert_eq!((&flow["tp"], &flow["rp"]), (&json!({"0": 200, "1": 0}), &json!({"0": 0, "1": 180})));
        assert_eq!((&flow["tb"]["0"], &flow["rb"]["1"]), (&json!(12_800), &json!(11_520)));
        let latency = &said["latency"]["7"];
        // Frames that are still on their way are not lost.
        assert_eq!(latency["er"]["drp"], 8);
        let (lat, twice) = (&latency["lat"], |count: u64| json!(2 * count));
        assert_eq!(lat["histogram"], json!({"0": twice(1), "20": twice(88), "1000": twice(1)}));
        assert_eq!((&lat["total_min"], &lat["total_max"], &lat["jit"]), (&json!(5), &json!(1230), &json!(2)));
        assert_eq!(lat["average"], 30.0);
        assert!(lat["last_max"].as_u64().unwrap() >= 1_190, "{lat}");
        assert_eq!(said["latency"].get("8"), None);
        // The longest of all that came since it was told, in whichever half second.
        for (second, length) in [(2, 2_000_000), (3, 40_000)] {
            let mut more = stream(100, 90, 4);
            more.latency.record(length, 5);
            counted.entry(key).or_default().add_stream(0, &more, false);
            let totals = groups.totals(&counted);
            groups.follow(Duration::from_secs(second), &totals);
        }
        let mut now = groups.totals(&counted);
        now.get_mut(&7).unwrap().returned.latency_max = 2_000_000;
        let told = groups.describe(&[7], &now).unwrap()["latency"]["7"]["lat"]["last_max"].clone();
        assert!((1_900..=2_000).contains(&told.as_u64().unwrap()), "{told}");
        assert_eq!(groups.describe(&[9], &totals), Err(9));

        groups.set(&BTreeMap::from([(8, false)]));
        groups.set(&BTreeMap::from([(7, true), (8, false)]));
        assert_ne!(groups.key(7), key);
        assert_eq!(groups.totals(&counted)[&7].counters, [Counters::default(); 2]);
    }

    #[test]
    fn what_has_not_come_back_in_the_end_is_lost() {
        let mut totals = Totals::default();
        totals.add_stream(1, &stream(100, 90, 4), true);
        assert_eq!((totals.dropped, totals.counters[0].received, totals.counters[1].sent), (10, 90, 100));
    }
}
