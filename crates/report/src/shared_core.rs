//! Whether the tester receives on the device's core, which lowers the device's rates: records enter; a
//! sentence for the top of a report leaves.

use results::Record;

/// A share of the core that is less is not named: it would read as 0 %.
const WORTH_NAMING: f64 = 0.005;

/// What a reader must know before any rate; `None` where no device shared its core with the receiver.
pub fn warning(records: &[Record]) -> Option<String> {
    let shared: Vec<&Record> = records.iter().filter(|record| is_shared(record)).collect();
    let first = shared.first()?;
    let cores = first.environment.cores;
    let why = if cores <= 2 { format!("Only {cores} cores: the") } else { "The".to_owned() };
    let core = first.dut.core.map_or_else(String::new, |core| format!(" {core}"));
    let most = shared.iter().filter_map(|record| share(record)).reduce(f64::max);
    let taken = most
        .filter(|share| *share >= WORTH_NAMING)
        .map_or_else(String::new, |share| format!("; receiving takes up to {:.0} % of it", share * 100.0));
    Some(format!(
        "{why} tester's receiver shares the device's core{core}, so the device's rates are understated{taken}."
    ))
}

fn is_shared(record: &Record) -> bool {
    record.tester.receive_core.is_some() && record.tester.receive_core == record.dut.core
}

/// The share of the core that receiving took at the highest rate that came back, where its cost is known.
fn share(record: &Record) -> Option<f64> {
    let received: f64 = record.directions.iter().map(|direction| direction.max_forwarded_pps).sum();
    let share = record.tester.receive_cost_ns? * received / 1e9;
    (share > 0.0 && share <= 1.0).then_some(share)
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;

    use super::*;

    #[test]
    fn a_shared_core_is_said_with_what_receiving_takes_of_it() {
        let mut record = Scenario::default().record();
        let text = warning(std::slice::from_ref(&record)).unwrap();
        assert_eq!(
            text,
            "Only 2 cores: the tester's receiver shares the device's core 1, so the device's rates are \
             understated; receiving takes up to 5 % of it."
        );
        record.tester.receive_cost_ns = Some(2_000.0);
        assert!(warning(std::slice::from_ref(&record)).unwrap().ends_with("understated."));
        record.tester.receive_core = Some(2);
        assert_eq!(warning(&[record]), None);
    }
}
