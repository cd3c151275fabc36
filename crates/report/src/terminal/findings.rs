//! What stands out in a run, a paragraph each.

use results::Record;

use super::Look;
use crate::findings::findings;

/// The findings of `record`, or that there are none.
#[must_use]
pub fn table(record: &Record, colour: bool) -> String {
    let mut text = format!("{}\n", Look::Title.paint(&record.name, colour));
    let found = findings(record);
    for finding in &found {
        text += &format!("  {}: {}\n", Look::Warning.paint(finding.kind, colour), finding.text);
    }
    for (name, energy) in crate::energy::lines(record) {
        text += &format!("  {}\n", Look::Faint.paint(&format!("{name}: {energy}"), colour));
    }
    if found.is_empty() {
        text += "  nothing stands out in what this record holds\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use results::fixtures::Scenario;

    use super::*;

    #[test]
    fn each_finding_is_a_paragraph_and_their_absence_is_said() {
        let tester = Scenario { tester_limit_pps: 2.2e6, capacity_pps: 9e6, ..Scenario::default() };
        let text = table(&tester.record(), false);
        assert!(
            text.contains("\n  limit of the tester: 0→1: the tester, not the device, set the limit"),
            "{text}"
        );
        let sound = table(&Scenario::default().record(), false);
        assert!(sound.ends_with("\n  nothing stands out in what this record holds\n"), "{sound}");
    }
}
