//! Flags that say who tells the power, and what energy costs.

use monitor::gauges::{Wanted, Watts};

/// What the user says of energy.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Energy")]
pub struct Energy {
    /// The power of the device in watts, as a meter shows it [default: what this host's processors count]
    #[arg(long, value_name = "W", value_parser = watts, conflicts_with = "watts_command", hide_short_help = true)]
    watts: Option<f64>,
    /// A shell command that prints the power of the device in watts; it is run once a second
    #[arg(long, value_name = "COMMAND", hide_short_help = true)]
    watts_command: Option<String>,
    /// The price of a kilowatt hour: the report then says what a million packets a second cost to run
    #[arg(long, value_name = "PRICE", value_parser = price, hide_short_help = true)]
    price_per_kwh: Option<f64>,
    /// The price of the device: the report then says what a million packets a second cost to buy
    #[arg(long, value_name = "PRICE", value_parser = price, hide_short_help = true)]
    device_price: Option<f64>,
}

impl Energy {
    /// What is said.
    pub fn wanted(&self) -> Wanted {
        let watts = match (self.watts, &self.watts_command) {
            (Some(watts), _) => Watts::Given(watts),
            (None, Some(command)) => Watts::Command(command.clone()),
            (None, None) => Watts::Counted,
        };
        Wanted { watts, price_per_kwh: self.price_per_kwh, device_price: self.device_price }
    }
}

/// Reads a power such as `19` or `19.5W`.
fn watts(text: &str) -> Result<f64, String> {
    above_zero(text.trim_end_matches(['w', 'W']))
        .ok_or_else(|| format!("'{text}' is no power: write watts above 0, as in 19 or 19.5W"))
}

fn price(text: &str) -> Result<f64, String> {
    above_zero(text).ok_or_else(|| format!("'{text}' is no price: write a number above 0, as in 0.30"))
}

fn above_zero(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_and_prices_are_read() {
        assert_eq!((watts("19"), watts("19.5 W"), price("0.30")), (Ok(19.0), Ok(19.5), Ok(0.3)));
        for text in ["", "0", "-1", "inf", "NaN", "much"] {
            assert!(watts(text).unwrap_err().contains("is no power"), "{text}");
            assert!(price(text).unwrap_err().contains("is no price"), "{text}");
        }
    }
}
