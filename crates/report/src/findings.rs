//! What stands out in a run and why it matters, in sentences with their figures: a record enters, findings leave.
//!
//! A finding is told only where the record itself proves it, and each says what would change it.

mod energy;
mod machine;
mod traffic;

use results::Record;

/// Something that stands out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What kind it is, in a word or two, like `uneven workers`.
    pub kind: &'static str,
    /// What was found, with the figures, and what it means.
    pub text: String,
}

/// Finds what is of one kind, in sentences.
type Find = fn(&Record) -> Vec<String>;

/// Everything that stands out in `record`, the gravest for its figures first.
#[must_use]
pub fn findings(record: &Record) -> Vec<Finding> {
    let all: [(&str, Find); 14] = [
        ("limit of the tester", traffic::limited_by_tester),
        ("shared physical cores", machine::siblings),
        ("remote memory", machine::far_from_cards),
        ("interrupts beside generators", machine::interrupts_beside_generators),
        ("clocks do not add up", machine::impossible_clocks),
        ("throttling", energy::throttling),
        ("pause frames", traffic::pause_frames),
        ("uneven workers", |record| crate::workers::uneven(record).into_iter().collect()),
        ("uneven queues", traffic::uneven_queues),
        ("unused queues", traffic::unused_queues),
        ("soft interrupts on one core", traffic::crowded_core),
        ("cores of the device", traffic::idle_cores),
        ("where frames were dropped", traffic::drops),
        ("frequency governor", machine::governor),
    ];
    let told =
        |(kind, find): (&'static str, Find)| find(record).into_iter().map(move |text| Finding { kind, text });
    all.into_iter().flat_map(told).collect()
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;

    use super::*;

    #[test]
    fn a_run_in_which_nothing_stands_out_has_no_findings() {
        assert_eq!(findings(&Scenario::default().record()), []);
    }

    #[test]
    fn each_finding_has_its_kind() {
        let mut record =
            Scenario { tester_limit_pps: 2.2e6, capacity_pps: 9e6, ..Scenario::default() }.record();
        record.dut.core = Some(1);
        let kinds =
            |record: &Record| findings(record).into_iter().map(|finding| finding.kind).collect::<Vec<_>>();
        assert_eq!(kinds(&record), ["limit of the tester"]);
        let mut host = results::record::Host::default();
        host.governors.insert("powersave".to_owned());
        record.environment.host = Some(Box::new(host));
        assert_eq!(kinds(&record), ["limit of the tester", "frequency governor"]);
    }
}
