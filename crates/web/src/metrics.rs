//! Metrics in Prometheus's text format: names, labels and values enter, text leaves.

use std::fmt::{Display, Write};

/// The media type of such a text.
pub const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Metrics, one after the other.
#[derive(Default)]
pub struct Text(String);

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.0
    }
}

impl Text {
    /// Begins a metric of a kind, like `counter`.
    pub fn head(&mut self, name: &str, kind: &str, help: &str) {
        // A string takes all that is written to it.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A value of the metric that has begun, told from its others by labels.
    pub fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<_> =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_quoted() {
        let mut text = Text::default();
        text.head("a_total", "counter", "Of a.");
        text.line("a_total", &[], 1);
        text.line("a_total", &[("of", "a\"b\\\n"), ("other", "c")], 2.5);
        let expected = "# HELP a_total Of a.\n# TYPE a_total counter\na_total 1\n\
                        a_total{of=\"a\\\"b\\\\\\n\",other=\"c\"} 2.5\n";
        assert_eq!(String::from(text), expected);
    }
}
