//! Power, frequency and temperature of a run in words, and what a packet takes: a record enters; names and texts leave.

use explain::energy::{Draw, EnergyUse};
use results::Record;
use results::record::GaugeReading;
use wire::human::pps;

/// What is known of it, a name and a text each; nothing of a run without gauges.
#[must_use]
pub fn lines(record: &Record) -> Vec<(&'static str, String)> {
    let Some(gauges) = record.gauges.as_deref() else { return Vec::new() };
    let mut lines = Vec::new();
    if let Some(found) = EnergyUse::of(record) {
        lines.push(("energy under load", draw(&found.loaded)));
        lines.extend(found.idle.map(|idle| ("energy in the warm-up", draw(&idle))));
        lines.extend(found.above_idle().map(|each| ("energy above the warm-up", joules(each))));
        let money = |amount: f64| {
            format!("{amount:.2} for each million packets a second, in the currency of the price")
        };
        lines.extend(found.price_per_year.map(|price| ("price of the energy of a year", money(price))));
        lines.extend(found.device_price.map(|price| ("price of the device", money(price))));
    }
    lines.extend(gauges.watts_source.clone().map(|source| ("source of the power", source)));
    let range = |of: fn(&GaugeReading) -> Option<f64>, unit: &str| {
        let values = || gauges.readings.iter().filter_map(of);
        let (least, most) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
        let (least, most) = (format!("{least:.0}"), format!("{most:.0}"));
        Some(if least == most { format!("{least} {unit}") } else { format!("{least} to {most} {unit}") })
    };
    lines.extend(range(|it| it.watts, "W").map(|text| ("power", text)));
    lines.extend(range(|it| it.mhz, "MHz").map(|text| ("frequency of the slowest core in use", text)));
    lines.extend(range(|it| it.celsius, "°C").map(|text| ("temperature of the hottest sensor", text)));
    lines.extend(gauges.missing.iter().map(|why| ("not available", why.clone())));
    lines
}

/// An energy of so many microjoules, with three digits or more.
fn joules(micro: f64) -> String {
    match micro {
        micro if micro < 1e3 => format!("{micro:.2} µJ per packet"),
        micro => format!("{:.2} mJ per packet", micro / 1e3),
    }
}

fn draw(draw: &Draw) -> String {
    let each = draw.microjoules().map_or_else(String::new, |each| format!(", {}", joules(each)));
    format!("{:.1} W at {}{each}", draw.watts, pps(draw.pps))
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;
    use results::record::Gauges;

    use super::*;

    #[test]
    fn a_run_with_a_meter_says_what_a_packet_takes() {
        let mut record = Scenario::default().record();
        let reading = |at: usize| GaugeReading {
            at_s: at as f64,
            duration_s: 1.0,
            watts: Some(if at < 3 { 12.0 } else { 19.0 }),
            mhz: Some(2_200.0 - at as f64),
            celsius: None,
        };
        record.gauges = Some(Box::new(Gauges {
            watts_source: Some("a meter".to_owned()),
            missing: vec!["temperature: no sensor".to_owned()],
            price_per_kwh: Some(0.3),
            device_price: Some(699.0),
            readings: (0..80).map(reading).collect(),
        }));
        let text: Vec<String> =
            lines(&record).into_iter().map(|(name, text)| format!("{name}: {text}")).collect();
        insta::assert_snapshot!(text.join("\n"));
        assert_eq!(lines(&Scenario::default().record()), []);
    }
}
