//! Numbers as C's `printf` writes them with `%g` (C11 7.21.6.1): a number enters, its text leaves.

/// `value` in `digits` significant digits, trailing zeros left out; with an exponent where it is
/// below −4 or not below `digits`.
pub fn general(value: f64, digits: usize) -> String {
    if value.is_nan() {
        // The root of a negative number, as rounding may leave one for a variance, has a sign on x86.
        return "-nan".to_owned();
    }
    if value.is_infinite() {
        return value.to_string();
    }
    let digits = digits.max(1);
    // Rounds to that many digits; the exponent is that of the rounded number.
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let behind = usize::try_from(digits as i64 - 1 - i64::from(exponent));
    match behind {
        Ok(behind) if exponent >= -4 => without_zeros(&format!("{value:.behind$}")).to_owned(),
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs())
        }
    }
}

fn without_zeros(number: &str) -> &str {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_in_c() {
        let cases = [
            (0.0, 6, "0"),
            (98_524.2, 6, "98524.2"),
            (1_136_710.9, 6, "1.13671e+06"),
            (999_999.5, 6, "1e+06"),
            (0.000_1, 6, "0.0001"),
            (0.000_012_345_67, 6, "1.23457e-05"),
            (-17.093_5, 6, "-17.0935"),
            (5_801_231.5, 8, "5801231.5"),
            (123_456_789.0, 8, "1.2345679e+08"),
            (1e100, 8, "1e+100"),
            (2.5, 1, "2"),
            (f64::NEG_INFINITY, 6, "-inf"),
            (f64::NAN, 6, "-nan"),
        ];
        for (value, digits, right) in cases {
            assert_eq!(general(value, digits), right, "{value} in {digits} digits");
        }
    }
}
