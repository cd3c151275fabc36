//! Where the frames went: our counters beside the kernel's enter; the places on the way of each
//! direction leave, with bars of what came there.

use results::Record;
use results::record::{CrossCheck, Point};
use wire::human::count;

/// The way of one direction.
pub struct Way {
    pub direction: String,
    pub agrees: bool,
    pub places: Vec<Place>,
}

/// One place on the way.
pub struct Place {
    pub name: String,
    /// What went on from here, in percent of the most that came to any place.
    pub bar: f64,
    /// What was dropped here, in the same.
    pub dropped_bar: f64,
    pub frames: String,
    /// What was dropped here, if anything.
    pub dropped: String,
    /// What did not come here from the place before.
    pub missing: String,
    /// What the tester counted, if it counts here.
    pub ours: String,
    /// By how much the two counts differ.
    pub apart: String,
}

pub fn ways(record: &Record) -> Vec<Way> {
    record.cross_check.iter().filter(|check| !check.points.is_empty()).map(way).collect()
}

fn way(check: &CrossCheck) -> Way {
    let most = check.points.iter().map(Point::came).max().unwrap_or(0).max(1) as f64;
    let before = std::iter::once(None).chain(check.points.iter().map(Some));
    Way {
        direction: check.direction.replace("->", "→"),
        agrees: check.agrees,
        places: before.zip(&check.points).map(|(before, point)| place(before, point, most)).collect(),
    }
}

fn place(before: Option<&Point>, point: &Point, most: f64) -> Place {
    let share = |frames: u64| frames as f64 / most * 100.0;
    let some = |frames: u64| if frames == 0 { String::new() } else { count(frames) };
    // What a place that receives has dropped came there too.
    let dropped = point.dropped;
    let arrived = point.frames.max(point.came());
    Place {
        name: point.place.clone(),
        bar: share(point.frames),
        dropped_bar: share(dropped).min(100.0 - share(point.frames)),
        frames: count(point.frames),
        dropped: some(dropped),
        missing: some(before.map_or(0, |before| before.frames.saturating_sub(arrived))),
        ours: point.ours.map_or_else(String::new, count),
        apart: point.ours.map_or_else(String::new, |ours| apart(point.came(), ours)),
    }
}

/// How much more the kernel counted than we did.
fn apart(theirs: u64, ours: u64) -> String {
    let sign = if theirs > ours { "+" } else { "−" };
    match theirs.abs_diff(ours) {
        0 => "0".to_owned(),
        apart => format!("{sign}{}", count(apart)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(place: &str, frames: u64, dropped: u64, ours: Option<u64>) -> Point {
        Point { place: place.to_owned(), frames, dropped, ours }
    }

    #[test]
    fn what_is_missing_is_told_where_it_went_missing() {
        let way = way(&CrossCheck {
            direction: "0->1".to_owned(),
            points: vec![
                point("sent by port0", 900, 100, Some(1000)),
                point("received by dut0", 900, 0, None),
                point("sent by dut1", 600, 0, None),
                point("received by port1", 602, 0, Some(600)),
            ],
            agrees: true,
        });
        let told: Vec<_> = way
            .places
            .iter()
            .map(|place| [&place.frames, &place.dropped, &place.missing, &place.ours, &place.apart])
            .collect();
        assert_eq!(told[0], ["900", "100", "", "1,000", "0"]);
        assert_eq!(told[1], ["900", "", "", "", ""]);
        assert_eq!(told[2], ["600", "", "300", "", ""]);
        assert_eq!(told[3], ["602", "", "", "600", "+2"]);
        assert_eq!((way.places[0].bar, way.places[0].dropped_bar), (90.0, 10.0));
    }
}
