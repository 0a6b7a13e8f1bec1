//! Numbers as users write them: with underscores, and times with a unit.

/// Units of time, in picoseconds. `s` comes last, since the other names end in it.
const UNITS_PS: [(&str, u128); 6] = [
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("\u{b5}s", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
];

/// Reads a whole number of `unit`. `1_000` is 1000. If `unit` is a unit of time, `1.5ms` is
/// converted to it, provided that the result is a whole number.
pub fn read(text: &str, unit: &str) -> Option<u64> {
    let text = text.trim().replace('_', "");
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let (_, unit_ps) = UNITS_PS.into_iter().find(|(name, _)| *name == unit)?;
    let (number, given_ps) =
        UNITS_PS.into_iter().find_map(|(name, ps)| Some((text.strip_suffix(name)?.trim_end(), ps)))?;
    let (numerator, denominator) = fraction(number)?;
    let ps = numerator.checked_mul(given_ps)?;
    let divisor = denominator.checked_mul(unit_ps)?;
    (ps % divisor == 0).then(|| ps / divisor)?.try_into().ok()
}

/// What [`read`] accepts for a unit of time. `None` for other units, whose numbers have no forms.
pub fn forms(unit: &str) -> Option<String> {
    let is_time = UNITS_PS.iter().any(|(name, _)| *name == unit);
    is_time.then(|| format!("a whole number of {unit}, or a time with its unit: ps, ns, us, ms or s"))
}

/// Reads a decimal number as a fraction: `1.5` is 15 / 10.
fn fraction(text: &str) -> Option<(u128, u128)> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{decimals}");
    // There must be no sign, and at least one digit.
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let denominator = 10_u128.checked_pow(decimals.len().try_into().ok()?)?;
    is_number.then_some((digits.parse().ok()?, denominator))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_other_numbers_have_none() {
        for (text, unit, expected) in [
            ("100", "ns", Some(100)),
            ("1_000", "lines", Some(1000)),
            ("1ms", "ns", Some(1_000_000)),
            ("1.5us", "ns", Some(1500)),
            ("2 s", "ns", Some(2_000_000_000)),
            (".5s", "ms", Some(500)),
            ("3ns", "ps", Some(3000)),
            ("5\u{b5}s", "ns", Some(5000)),
            ("0.5ns", "ns", None),
            ("1ms", "lines", None),
            ("1 minute", "ns", None),
            ("ms", "ns", None),
            ("-1ms", "ns", None),
            ("1.2.3ms", "ns", None),
            ("", "ns", None),
            ("99999999999999999999s", "ns", None),
            (&format!("1.{}ms", "0".repeat(50)), "ns", None),
        ] {
            assert_eq!(read(text, unit), expected, "{text} {unit}");
        }
    }

    #[test]
    fn the_forms_name_all_units() {
        let forms = forms("s").unwrap();
        assert!(UNITS_PS.iter().all(|(name, _)| forms.contains(name) || !name.is_ascii()), "{forms}");
        assert_eq!(super::forms("lines"), None);
    }
}
