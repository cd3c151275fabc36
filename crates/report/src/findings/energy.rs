//! What heat and power explain: a record enters, sentences leave.

use results::Record;
use results::record::{GaugeReading, Phase};

/// A core that is slower than this share of what it was is throttled, or its governor let it be.
const SLOWER: f64 = 0.9;
/// Degrees that tell heat from chance.
const HOTTER: f64 = 5.0;
/// Readings at each end of the run that are compared.
const PART: usize = 4;
/// Fewer readings than these show no course.
const FEW: usize = 12;

/// Cores that ran slower at the run's end than at its beginning under load.
pub fn throttling(record: &Record) -> Vec<String> {
    let Some(gauges) = record.gauges.as_deref() else { return Vec::new() };
    let loaded = || record.samples.iter().filter(|sample| sample.phase != Phase::WarmUp);
    let (Some(begin), Some(last)) = (loaded().next(), loaded().next_back()) else { return Vec::new() };
    let is_loaded =
        |it: &&GaugeReading| it.at_s >= begin.at_s && it.at_s + it.duration_s <= last.at_s + last.duration_s;
    let known = gauges.readings.iter().filter(|reading| reading.mhz.is_some()).filter(is_loaded);
    let known: Vec<GaugeReading> = known.copied().collect();
    if known.len() < FEW {
        return Vec::new();
    }
    // The first readings are of cores that wake up.
    let (first, last) = (&known[PART / 2..PART / 2 + PART], &known[known.len() - PART..]);
    let mean = |readings: &[GaugeReading], of: fn(&GaugeReading) -> Option<f64>| -> Option<f64> {
        let values: Vec<f64> = readings.iter().filter_map(of).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let Some((before, after)) = mean(first, |it| it.mhz).zip(mean(last, |it| it.mhz)) else {
        return Vec::new();
    };
    let is_hotter = mean(first, |it| it.celsius)
        .zip(mean(last, |it| it.celsius))
        .is_some_and(|(then, now)| now >= then + HOTTER);
    let is_held =
        record.environment.host.as_ref().is_some_and(|host| host.governors.iter().eq(["performance"]));
    // Another governor slows a core that has less to do.
    if after >= before * SLOWER || !(is_hotter || is_held) {
        return Vec::new();
    }
    let course = |of: fn(&GaugeReading) -> Option<f64>, unit: &str| {
        let values = mean(first, of).zip(mean(last, of));
        values.map(|(then, now)| format!(", {then:.0} → {now:.0} {unit}"))
    };
    let beside =
        [course(|it| it.celsius, "°C"), course(|it| it.watts, "W")].into_iter().flatten().collect::<String>();
    vec![format!(
        "the slowest core in use went from {before:.0} to {after:.0} MHz during the run{beside}: heat or a limit of power held \
         it back, so later rates are lower than earlier ones; cool the machine, or set a frequency that it can keep"
    )]
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;
    use results::record::Gauges;

    use super::*;

    fn course(mhz: impl Fn(usize) -> Option<f64>) -> Record {
        let reading = |at: usize| GaugeReading {
            at_s: at as f64,
            duration_s: 1.0,
            watts: Some(25.0 - at as f64 / 4.0),
            mhz: mhz(at),
            celsius: Some(60.0 + at as f64),
        };
        let mut record = Scenario::default().record();
        record.gauges =
            Some(Box::new(Gauges { readings: (0..40).map(reading).collect(), ..Gauges::default() }));
        record
    }

    #[test]
    fn a_core_that_becomes_slower_is_told_with_heat_and_power() {
        let said = throttling(&course(|at| Some(if at < 20 { 2_200.0 } else { 1_600.0 })));
        let start =
            "the slowest core in use went from 2200 to 1600 MHz during the run, 66 → 98 °C, 23 → 16 W: ";
        assert!(said[0].starts_with(start), "{said:?}");
    }

    #[test]
    fn a_core_that_keeps_its_frequency_is_not_told_of() {
        assert_eq!(throttling(&course(|_| Some(2_200.0))), [""; 0]);
        assert_eq!(throttling(&course(|at| Some(1_600.0 + at as f64))), [""; 0], "it became faster");
        assert_eq!(throttling(&course(|_| None)), [""; 0]);
        assert_eq!(throttling(&Scenario::default().record()), [""; 0]);
        let mut idle = course(|at| Some(if at < 20 { 2_200.0 } else { 1_600.0 }));
        idle.gauges.as_mut().unwrap().readings.iter_mut().for_each(|reading| reading.celsius = Some(50.0));
        assert_eq!(throttling(&idle), [""; 0], "its governor may have done it");
    }
}
