//! Figures as reports write them: numbers enter, short text leaves.

/// A duration in nanoseconds, three digits or more, in ASCII.
pub fn plain_duration(ns: f64) -> String {
    match ns {
        ns if ns < 999.5 => format!("{ns:.0} ns"),
        ns if ns < 999.95e3 => format!("{:.1} us", ns / 1e3),
        ns if ns < 999.95e6 => format!("{:.1} ms", ns / 1e6),
        ns => format!("{:.1} s", ns / 1e9),
    }
}

/// A duration in nanoseconds, three digits or more.
pub fn duration(ns: f64) -> String {
    plain_duration(ns).replace(" us", " µs")
}

/// A share of frames in percent to two digits: losses may be small.
pub fn loss(ratio: f64) -> String {
    let percent = ratio * 100.0;
    let decimals = if percent > 0.0 && percent < 10.0 { 1 - percent.log10().floor() as i32 } else { 0 };
    format!("{percent:.*}%", usize::try_from(decimals).unwrap_or(0))
}

/// `text` with a capital at its beginning.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Whole percent from ten on, one decimal below: `97%`, `4.4%`.
pub fn percent(value: f64) -> String {
    if value.abs() < 9.95 { format!("{value:.1}%") } else { format!("{value:.0}%") }
}
