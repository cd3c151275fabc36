//! What a forwarded frame cost the device, load by load.

use results::record::{Basis, Cost, LoadCost};
use wire::human::pps;

use super::Look;
use super::columns::{Align, Columns, Text};

/// A row for each load, and below what the figures include and what is missing.
pub fn table(found: &Cost, colour: bool) -> String {
    let mut columns = Columns::new([Align::Right; 7]);
    let head = ["offered", "forwarded", "core busy", "per frame", "cycles", "clock", "energy"];
    columns.row(Text::plain(""), head.map(|name| Text::new(name, Look::Faint)));
    for load in &found.loads {
        columns.row(Text::plain(&format!("  {}", load.name)), figures(load));
    }
    let mut text = columns.render(colour);
    let mut line = |words: &str| text.push_str(&format!("  {}\n", Look::Faint.paint(words, colour)));
    line(match found.basis {
        Basis::WithoutIdlePolling => {
            "basis: without idle polling, the device sleeps when it has nothing to do"
        }
        Basis::WithIdlePolling => {
            "basis: with idle polling, the device never sleeps and looks for work in vain"
        }
    });
    found.energy_source.iter().for_each(|source| line(&format!("energy: {source}")));
    found.missing.iter().for_each(|missing| line(&format!("not available: {missing}")));
    text
}

fn figures(load: &LoadCost) -> [Text; 7] {
    let look = if load.disturbed.is_some() { Look::Warning } else { Look::Plain };
    let figure = |value: Option<f64>, show: fn(f64) -> String| match value {
        Some(value) => Text::new(&show(value), look),
        None => Text::new("-", Look::Faint),
    };
    [
        figure(Some(load.offered_pps), pps),
        figure(Some(load.forwarded_pps), pps),
        figure(Some(load.busy), |busy| format!("{:.1} %", busy * 100.0)),
        figure(load.ns_per_frame, |ns| format!("{ns:.0} ns")),
        figure(load.cycles_per_frame, |cycles| format!("{cycles:.0}")),
        figure(load.clock_hz, |hz| format!("{:.2} GHz", hz / 1e9)),
        figure(load.uj_per_frame, |uj| format!("{uj:.2} uJ")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_load_has_its_row_and_what_is_missing_is_named() {
        let load = |name: &str, forwarded_pps: f64, ns: f64| LoadCost {
            name: name.to_owned(),
            duration_s: 10.0,
            offered_pps: forwarded_pps,
            forwarded_pps,
            forwarded: (forwarded_pps * 10.0) as u64,
            busy: forwarded_pps * ns / 1e9,
            ns_per_frame: Some(ns),
            ..LoadCost::default()
        };
        let mut fast = load("saturation", 5.01e6, 199.4);
        (fast.cycles_per_frame, fast.clock_hz, fast.uj_per_frame) = (Some(437.9), Some(2.194e9), Some(3.79));
        let found = Cost {
            basis: Basis::WithoutIdlePolling,
            loads: vec![load("low", 1e3, 4_943.0), fast],
            energy_source: Some("19 W, as given".to_owned()),
            missing: vec!["cycles: there is no counter".to_owned()],
        };
        insta::assert_snapshot!(table(&found, false), @r"
                        offered  forwarded  core busy  per frame  cycles     clock   energy
          low         1.00 kpps  1.00 kpps      0.5 %    4943 ns       -         -        -
          saturation  5.01 Mpps  5.01 Mpps     99.9 %     199 ns     438  2.19 GHz  3.79 uJ
          basis: without idle polling, the device sleeps when it has nothing to do
          energy: 19 W, as given
          not available: cycles: there is no counter
        ");
    }
}
