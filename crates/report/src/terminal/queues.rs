//! Which queues packets take, as a table that is drawn again every interval, or as a line.

use explain::queues::{Balance, Place, PlaceUse, Source, Usage};
use wire::human::pps;

use super::Look;
use super::columns::{Align, Columns, Text};

/// Characters of the longest bar.
const BAR: usize = 24;

/// One interval of the interface `name`: a row for each queue, or each core, and what they come to.
#[must_use]
pub fn queues(name: &str, usage: &Usage, colour: bool) -> String {
    use Align::{Left, Right};
    let title = Look::Title.paint(name, colour);
    let mut text = format!("{title}: {}, over {:.2} s\n", usage.source, usage.seconds);
    let mut columns = Columns::new([Right, Right, Left, Left, Right, Right, Right]);
    let head = ["packets", "share", "", "served by", "dropped", "squeezed", "soft interrupts"];
    let shown = |at: usize| match at {
        3 => usage.source != Source::Softnet,
        4 => usage.places.iter().any(|place| place.dropped_pps.is_some()),
        5 => usage.places.iter().any(|place| place.squeezed_per_s.is_some()),
        6 => usage.places.iter().any(|place| place.soft_interrupts_per_s.is_some()),
        _ => true,
    };
    let head = head.iter().enumerate().map(|(at, name)| if shown(at) { *name } else { "" });
    columns.row(Text::plain(""), head.map(|name| Text::new(name, Look::Faint)));
    for place in &usage.places {
        columns.row(Text::plain(&format!("  {}", place.place)), figures(place, usage));
    }
    text.push_str(&columns.render(colour));
    for line in balances(usage) {
        text.push_str(&format!("  {line}\n"));
    }
    for missing in &usage.missing {
        text.push_str(&format!("  {}\n", Look::Faint.paint(&format!("note: {missing}"), colour)));
    }
    text
}

/// One interval as one line, like the tool of FreeBSD's routers prints it.
#[must_use]
pub fn queues_line(usage: &Usage) -> String {
    let places = usage.places.iter().map(|place| format!("[{} {}]", place.place, pps(place.pps)));
    let mut parts: Vec<String> = places.collect();
    parts.extend(balances(usage));
    parts.join(" ")
}

fn figures(place: &PlaceUse, usage: &Usage) -> [Text; 7] {
    let busiest = usage.places.iter().map(|place| place.pps).fold(0.0, f64::max);
    let length = if busiest > 0.0 { (place.pps / busiest * BAR as f64).round() as usize } else { 0 };
    let rate = |rate: Option<f64>, warn: bool| {
        let look = if warn && rate.is_some_and(|rate| rate > 0.0) { Look::Warning } else { Look::Plain };
        Text::new(&rate.map_or(String::new(), |rate| format!("{rate:.0}/s")), look)
    };
    [
        Text::plain(&pps(place.pps)),
        Text::plain(&format!("{:.1} %", place.share * 100.0)),
        Text::new(&"█".repeat(length.min(BAR)), Look::Forwarded),
        served_by(place),
        rate(place.dropped_pps, true),
        rate(place.squeezed_per_s, true),
        rate(place.soft_interrupts_per_s, false),
    ]
}

fn served_by(place: &PlaceUse) -> Text {
    match (place.place, place.cores.as_slice()) {
        (Place::Core(_), _) => Text::plain(""),
        (_, []) => Text::new("not known", Look::Faint),
        (_, [core]) => Text::plain(&format!("core {core}")),
        (_, cores) => {
            let cores: Vec<String> = cores.iter().map(ToString::to_string).collect();
            Text::plain(&format!("one of cores {}", cores.join(", ")))
        }
    }
}

fn balances(usage: &Usage) -> impl Iterator<Item = String> {
    let line = |name: &str, balance: Balance| {
        let Balance { pps: sum, imbalance, efficiency } = balance;
        let left = efficiency * 100.0;
        format!("{name} {}, imbalance {imbalance:.2}: {left:.0} % of the ideal speed-up is left", pps(sum))
    };
    let receive = usage.receive.map(|balance| line("received", balance));
    receive.into_iter().chain(usage.send.map(|balance| line("sent", balance)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage() -> Usage {
        let place = |place, pps, share, cores: &[usize]| PlaceUse {
            place,
            pps,
            share,
            cores: cores.to_vec(),
            dropped_pps: None,
            squeezed_per_s: None,
            soft_interrupts_per_s: None,
        };
        let mut lossy = place(Place::Receive(1), 250e3, 0.25, &[0, 1]);
        lossy.dropped_pps = Some(12.0);
        Usage {
            source: Source::Netdev,
            seconds: 1.0,
            places: vec![
                place(Place::Receive(0), 750e3, 0.75, &[1]),
                lossy,
                place(Place::Send(0), 0.0, 0.0, &[]),
            ],
            receive: Balance::of(&[750e3, 250e3]),
            send: None,
            missing: Vec::new(),
        }
    }

    #[test]
    fn each_queue_has_its_row_and_the_balance_is_in_words() {
        insta::assert_snapshot!(queues("eth0", &usage(), false), @r"
        eth0: the kernel's counters of each queue (netdev-genl), over 1.00 s
                    packets   share                            served by          dropped
          rx 0  750.00 kpps  75.0 %  ████████████████████████  core 1
          rx 1  250.00 kpps  25.0 %  ████████                  one of cores 0, 1     12/s
          tx 0        0 pps   0.0 %                            not known
          received 1.00 Mpps, imbalance 0.50: 67 % of the ideal speed-up is left
        ");
        insta::assert_snapshot!(queues_line(&usage()), @"[rx 0 750.00 kpps] [rx 1 250.00 kpps] [tx 0 0 pps] received 1.00 Mpps, imbalance 0.50: 67 % of the ideal speed-up is left");
    }

    #[test]
    fn cores_are_shown_with_what_only_they_have() {
        let core = PlaceUse {
            place: Place::Core(1),
            pps: 0.0,
            share: 0.0,
            cores: vec![1],
            dropped_pps: Some(0.0),
            squeezed_per_s: Some(3.0),
            soft_interrupts_per_s: Some(1_000.0),
        };
        let usage = Usage {
            source: Source::Softnet,
            places: vec![core],
            receive: None,
            missing: vec!["no statistics of each queue from the driver: it has none".to_owned()],
            ..usage()
        };
        insta::assert_snapshot!(queues("lo", &usage, false), @r"
        lo: what each core took in of all interfaces (/proc/net/softnet_stat, /proc/softirqs), over 1.00 s
                  packets  share      dropped  squeezed  soft interrupts
          core 1    0 pps  0.0 %          0/s       3/s           1000/s
          note: no statistics of each queue from the driver: it has none
        ");
    }
}
