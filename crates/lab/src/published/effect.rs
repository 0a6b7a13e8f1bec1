//! Whether a difference counts.

use super::Published;

/// Runs that stand behind a published mean with its standard deviation.
const RUNS: f64 = 25.0;

/// A relative difference that may be chance where no deviations are published. What AIM7's tables
/// say of themselves.
const INSIGNIFICANT: f64 = 0.05;

/// What a variant does, compared with what it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// More, by so much that it counts.
    Gain,
    /// No difference that counts.
    None,
    /// Less.
    Loss,
}

impl Effect {
    /// Of a ratio, if a relative difference up to `insignificant` does not count.
    pub fn of(ratio: f64, insignificant: f64) -> Self {
        if ratio > 1.0 + insignificant {
            Effect::Gain
        } else if ratio < 1.0 - insignificant {
            Effect::Loss
        } else {
            Effect::None
        }
    }

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Effect::Gain => "gain",
            Effect::None => "none",
            Effect::Loss => "loss",
        }
    }
}

/// The greatest relative difference of two published figures that does not count: two standard
/// errors of their ratio where both have a standard deviation, and else 5 %.
pub fn insignificant(of: Published, to: Published) -> f64 {
    let error = |value: Published| value.sd.map(|sd| sd / RUNS.sqrt() / value.mean);
    error(of).zip(error(to)).map_or(INSIGNIFICANT, |(of, to)| 2.0 * of.hypot(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_within_the_margin_is_no_effect() {
        for (ratio, expected) in [
            (1.06, Effect::Gain),
            (1.04, Effect::None),
            (0.96, Effect::None),
            (0.94, Effect::Loss),
            (f64::NAN, Effect::None),
        ] {
            assert_eq!(Effect::of(ratio, 0.05), expected, "{ratio}");
        }
    }

    #[test]
    fn deviations_make_the_margin_where_both_are_known() {
        let known = Published { mean: 10.0, sd: Some(0.5) };
        assert!((insignificant(known, known) - 2.0 * 0.01 * 2.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(insignificant(known, Published { sd: None, ..known }), 0.05);
    }
}
