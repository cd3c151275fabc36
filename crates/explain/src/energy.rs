//! What forwarding costs in energy and money: a record with its gauges enters, microjoules a packet and prices leave.
//! Pure.

use results::Record;
use results::record::{GaugeReading, Phase, Sample};

/// Hours of a year, on average.
const HOURS_A_YEAR: f64 = 24.0 * 365.25;
/// The share of a load's time that readings of power must cover.
const COVERED: f64 = 0.5;

/// The power and the energy of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EnergyUse {
    /// During the warm-up, whose load is hardly any; absent where it was shorter than a reading.
    pub idle: Option<Draw>,
    /// While the load was held; in a search during its trials, in a run that only rises while it rose.
    pub loaded: Draw,
    /// What the energy of a year costs for each million packets a second, by `loaded`.
    pub price_per_year: Option<f64>,
    /// What the device costs for each million packets a second.
    pub device_price: Option<f64>,
}

/// Power at a load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Draw {
    /// The mean power, in watts.
    pub watts: f64,
    /// Packets that came back, all directions added up, in a second.
    pub pps: f64,
}

impl Draw {
    /// Microjoules for each packet; `None` without packets.
    #[must_use]
    pub fn microjoules(&self) -> Option<f64> {
        (self.pps > 0.0).then(|| self.watts / self.pps * 1e6)
    }
}

impl EnergyUse {
    /// Microjoules that each packet takes beyond what the machine takes idle; not by a fixed power, which tells no difference.
    #[must_use]
    pub fn above_idle(&self) -> Option<f64> {
        let idle = self.idle?;
        let packets = self.loaded.pps - idle.pps;
        let watts = self.loaded.watts - idle.watts;
        (packets > 0.0 && watts > 0.0).then(|| watts / packets * 1e6)
    }

    /// What `record` tells; `None` where nobody told the power while it was loaded, or nothing came back.
    #[must_use]
    pub fn of(record: &Record) -> Option<Self> {
        let gauges = record.gauges.as_deref()?;
        let draw = |phase: Phase| {
            draw(record.samples.iter().filter(|sample| sample.phase == phase), &gauges.readings)
        };
        let loaded = [Phase::Hold, Phase::Trial, Phase::Ramp]
            .into_iter()
            .find_map(draw)
            .filter(|draw| draw.pps > 0.0)?;
        let mpps = loaded.pps / 1e6;
        let price_per_year =
            gauges.price_per_kwh.map(|price| loaded.watts / 1e3 * HOURS_A_YEAR * price / mpps);
        let device_price = gauges.device_price.map(|price| price / mpps);
        Some(Self { idle: draw(Phase::WarmUp), loaded, price_per_year, device_price })
    }
}

/// The power during `samples`, by the readings that lie over them; `None` where too few do.
fn draw<'a>(samples: impl Iterator<Item = &'a Sample>, readings: &[GaugeReading]) -> Option<Draw> {
    let (mut joules, mut covered, mut seconds, mut packets) = (0.0, 0.0, 0.0, 0.0);
    for sample in samples {
        let (begin, end) = (sample.at_s, sample.at_s + sample.duration_s);
        for reading in readings {
            let shared = (reading.at_s + reading.duration_s).min(end) - reading.at_s.max(begin);
            if let Some(watts) = reading.watts.filter(|_| shared > 0.0) {
                joules += watts * shared;
                covered += shared;
            }
        }
        seconds += sample.duration_s;
        packets += sample.directions.iter().map(|direction| direction.forwarded as f64).sum::<f64>();
    }
    (covered > 0.0 && covered >= seconds * COVERED)
        .then(|| Draw { watts: joules / covered, pps: packets / seconds })
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;
    use results::record::Gauges;

    use super::*;

    /// A router of 1.1 Mpps that takes 12 W in the warm-up's three seconds, and `watts` after.
    fn router(watts: impl Fn(usize) -> Option<f64>) -> Record {
        let mut record = Scenario::default().record();
        let reading = |at: usize| GaugeReading {
            at_s: at as f64,
            duration_s: 1.0,
            watts: if at < 3 { Some(12.0) } else { watts(at) },
            ..GaugeReading::default()
        };
        let gauges = Gauges {
            readings: (0..90).map(reading).collect(),
            price_per_kwh: Some(0.30),
            device_price: Some(699.0),
            ..Gauges::default()
        };
        record.gauges = Some(Box::new(gauges));
        record
    }

    #[test]
    fn energy_per_packet_and_prices_follow_from_the_power() {
        let found = EnergyUse::of(&router(|_| Some(19.0))).unwrap();
        assert!(
            (found.loaded.watts - 19.0).abs() < 1e-9 && (found.loaded.pps / 1.1e6 - 1.0).abs() < 0.02,
            "{found:?}"
        );
        let microjoules = found.loaded.microjoules().unwrap();
        assert!((microjoules / (19.0 / 1.1) - 1.0).abs() < 0.02, "{microjoules}");
        assert!((found.idle.unwrap().watts - 12.0).abs() < 1e-9);
        assert!((found.above_idle().unwrap() / (7.0 / 1.1) - 1.0).abs() < 0.02, "{found:?}");
        // 19 W are 166.6 kWh a year.
        assert!((found.price_per_year.unwrap() / (166.55 * 0.30 / 1.1) - 1.0).abs() < 0.02, "{found:?}");
        assert!((found.device_price.unwrap() / (699.0 / 1.1) - 1.0).abs() < 0.02);
    }

    #[test]
    fn without_readings_during_the_load_there_is_no_result() {
        assert_eq!(EnergyUse::of(&router(|_| None)), None);
        let mut stopped = router(|_| Some(19.0));
        stopped.samples.iter_mut().flat_map(|sample| &mut sample.directions).for_each(|it| it.forwarded = 0);
        assert_eq!(EnergyUse::of(&stopped), None);
        assert_eq!(EnergyUse::of(&Scenario::default().record()), None);
        let short = router(|at| (at > 88).then_some(19.0));
        assert_eq!(EnergyUse::of(&short), None);
    }
}
