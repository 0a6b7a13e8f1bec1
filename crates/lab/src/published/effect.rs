//! Whether a difference is significant.

use super::Published;

/// The number of runs behind a published mean with standard deviation.
const RUNS: f64 = 25.0;

/// A relative difference that may be chance, if no deviations are published. The publications with
/// AIM7's tables state this limit.
const INSIGNIFICANT: f64 = 0.05;

/// The effect of a variant, compared with its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A significant gain.
    Gain,
    /// No significant difference.
    None,
    /// A significant loss.
    Loss,
}

impl Effect {
    /// The effect for a ratio, if relative differences up to `insignificant` do not count.
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

/// The largest insignificant relative difference of two published figures. It is two standard
/// errors of their ratio if both have a standard deviation, otherwise 5 %.
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
