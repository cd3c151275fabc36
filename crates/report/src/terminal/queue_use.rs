//! Which queues the frames of a run took, a line for each interface that has several.

use results::record::InterfaceQueues;

/// The line; nothing where there was no choice.
pub fn line(interface: &InterfaceQueues) -> Option<String> {
    let ways = [
        ("rx", interface.receive_imbalance),
        ("core", interface.receive_imbalance),
        ("tx", interface.send_imbalance),
    ];
    let told = ways.into_iter().filter_map(|(kind, imbalance)| {
        let of_kind = || interface.queues.iter().filter(|queue| queue.place.starts_with(kind));
        let (count, imbalance) = (of_kind().count(), imbalance?);
        let busiest = of_kind().max_by(|a, b| a.pps.total_cmp(&b.pps)).filter(|_| count > 1)?;
        Some(format!(
            "{} took {:.0} % of {count}, imbalance {imbalance:.2}",
            busiest.place,
            busiest.share * 100.0
        ))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| format!("queues of {}: {}", interface.interface, told.join("; ")))
}

#[cfg(test)]
mod tests {
    use results::record::QueueUse;

    use super::*;

    #[test]
    fn the_busiest_is_told_where_there_was_a_choice() {
        let queue = |place: &str, pps: f64, share| QueueUse {
            place: place.to_owned(),
            pps,
            share,
            cores: Vec::new(),
            dropped_pps: None,
        };
        let one = InterfaceQueues {
            interface: "dut0".to_owned(),
            source: "netdev-genl".to_owned(),
            queues: vec![queue("rx 0", 3e5, 0.75), queue("rx 1", 1e5, 0.25), queue("tx 0", 0.0, 0.0)],
            receive_imbalance: Some(0.5),
            send_imbalance: None,
        };
        assert_eq!(line(&one).unwrap(), "queues of dut0: rx 0 took 75 % of 2, imbalance 0.50");
        let single = InterfaceQueues { queues: vec![queue("rx 0", 3e5, 1.0)], ..one };
        assert_eq!(line(&single), None);
    }
}
