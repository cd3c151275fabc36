//! How far testers are apart: what their clocks said and when, and when they started, enter; words leave.

use std::time::Duration;

/// One reading of a server's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// When it was read, by this machine's clock.
    pub at: Duration,
    /// What is to be added to this machine's time, in seconds.
    pub offset_s: f64,
    /// By how much that may be wrong at most, in seconds: half of the time that the answer took.
    pub error_s: f64,
}

impl Reading {
    /// A clock that said `ts` seconds in an answer to what was asked at `asked` and came at `answered`.
    pub fn new(ts: f64, asked: Duration, answered: Duration) -> Option<Self> {
        let middle = f64::midpoint(asked.as_secs_f64(), answered.as_secs_f64());
        let error_s = answered.saturating_sub(asked).as_secs_f64() / 2.0;
        ts.is_finite().then_some(Self { at: answered, offset_s: ts - middle, error_s })
    }
}

/// What is known of the clocks and starts of testers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Apart {
    /// What users call the testers.
    pub servers: Vec<String>,
    /// Of each tester the first and the last reading of its clock, where it tells the time.
    pub clocks: Vec<Option<[Reading; 2]>>,
    /// The largest time between the first and the last tester's start of one load, and by how much that may be wrong,
    /// in seconds, where all of them tell.
    pub starts: Option<(f64, f64)>,
}

impl Apart {
    /// Of testers that users call so.
    pub fn new(servers: Vec<String>) -> Self {
        let clocks = vec![None; servers.len()];
        Self { servers, clocks, starts: None }
    }

    /// A tester's clock was read. The first readings follow each other fast: the best of them counts.
    pub fn read(&mut self, tester: usize, reading: Reading) {
        let Some(clock) = self.clocks.get_mut(tester) else { return };
        let settling = Duration::from_millis(500);
        match clock {
            None => *clock = Some([reading; 2]),
            Some([first, last]) if reading.at.saturating_sub(first.at) < settling => {
                if reading.error_s < first.error_s {
                    (*first, *last) = (reading, reading);
                }
            }
            Some([_, last]) => *last = reading,
        }
    }

    /// All testers were told to start, and said by their clocks when: `None` of one that does not say.
    pub fn started(&mut self, told: &[Option<f64>]) {
        let times: Option<Vec<(f64, f64)>> = told
            .iter()
            .zip(&self.clocks)
            .map(|(told, clock)| {
                let [_, last] = (*clock)?;
                Some(((*told)? - last.offset_s, last.error_s))
            })
            .collect();
        let Some(times) = times else { return };
        let of =
            |pick: fn(f64, f64) -> f64, from: f64| times.iter().fold(from, |all, (time, _)| pick(all, *time));
        let width = of(f64::max, f64::NEG_INFINITY) - of(f64::min, f64::INFINITY);
        let error = 2.0 * times.iter().fold(0.0, |all, (_, error)| f64::max(all, *error));
        if width.is_finite() && self.starts.is_none_or(|(widest, _)| width > widest) {
            self.starts = Some((width, error));
        }
    }

    /// How far the clocks ran apart, in parts in a million, and by how much that may be wrong; `None` where one does
    /// not tell, or was read for less than a second.
    pub fn drift_ppm(&self) -> Option<(f64, f64)> {
        let drifts: Option<Vec<(f64, f64)>> = self
            .clocks
            .iter()
            .map(|clock| {
                let [first, last] = (*clock)?;
                let elapsed = last.at.saturating_sub(first.at).as_secs_f64();
                let ppm = |seconds: f64| seconds / elapsed * 1e6;
                let drift = (ppm(last.offset_s - first.offset_s), ppm(first.error_s + last.error_s));
                (elapsed >= 1.0).then_some(drift)
            })
            .collect();
        let drifts = drifts.filter(|drifts| !drifts.is_empty())?;
        let most = drifts.iter().fold(f64::NEG_INFINITY, |all, (drift, _)| all.max(*drift));
        let least = drifts.iter().fold(f64::INFINITY, |all, (drift, _)| all.min(*drift));
        Some((most - least, 2.0 * drifts.iter().fold(0.0, |all, (_, error)| f64::max(all, *error))))
    }

    /// The same in words; `None` of a single tester.
    pub fn note(&self) -> Option<String> {
        if self.servers.len() < 2 {
            return None;
        }
        let starts = match self.starts {
            Some((width, error)) => {
                format!("one load began at most {:.1} ms apart (known to {:.1} ms)", width * 1e3, error * 1e3)
            }
            None => "how far apart one load began is not known".to_owned(),
        };
        let clocks = match self.drift_ppm() {
            Some((drift, error)) => {
                format!("their clocks ran apart by {drift:.0} ppm (known to {error:.0} ppm)")
            }
            None => "how far their clocks ran apart is not known".to_owned(),
        };
        Some(format!("testers {}: {starts}; {clocks}", self.servers.join(" and ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at_s: f64, offset_s: f64) -> Reading {
        Reading { at: Duration::from_secs_f64(at_s), offset_s, error_s: 0.000_1 }
    }

    #[test]
    fn starts_and_clocks_are_told_in_this_machine_s_time() {
        let mut apart = Apart::new(vec!["a".to_owned(), "b".to_owned()]);
        assert!(apart.note().unwrap().contains("not known"));
        for (tester, drift) in [(0, 0.0), (1, 0.001)] {
            apart.read(tester, reading(0.0, 100.0 * tester as f64));
            apart.read(tester, reading(10.0, 100.0 * tester as f64 + drift));
        }
        let (drift, error) = apart.drift_ppm().unwrap();
        assert!((drift - 100.0).abs() < 1e-6 && (error - 40.0).abs() < 1e-6, "{drift} {error}");
        apart.started(&[Some(11.0), Some(111.004)]);
        apart.started(&[Some(12.0), Some(112.002)]);
        apart.started(&[Some(13.0), None]);
        let (width, _) = apart.starts.unwrap();
        assert!((width - 0.003).abs() < 1e-6, "{width}");
        let note = apart.note().unwrap();
        assert!(note.contains("3.0 ms apart") && note.contains("100 ppm"), "{note}");
    }

    #[test]
    fn a_clock_is_read_in_the_middle_of_its_answer() {
        let [asked, answered] = [1_000, 1_002].map(Duration::from_millis);
        let reading = Reading::new(51.001, asked, answered).unwrap();
        assert!((reading.offset_s - 50.0).abs() < 1e-9 && (reading.error_s - 0.001).abs() < 1e-9);
        assert_eq!(Reading::new(f64::NAN, asked, answered), None);
    }
}
