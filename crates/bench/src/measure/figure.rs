//! Samples, and the figures that represent them.

use nearlock_sim::spec::MeasuredFigure;

use crate::bench::Quartiles;

/// The kind of quantity of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// A time that varies by nature: all samples count.
    Typical,
    /// A time that is constant in the processor, so that interference only adds to it. The fastest
    /// quarter of the samples counts.
    Floor,
}

/// Quartiles of the samples that count; `None` if there are none, or if the time is not above 0.
///
/// Noise can make the difference of two times negative. Such a difference is not a figure.
pub fn figure(samples: &[f64], nature: Nature) -> Option<MeasuredFigure> {
    let mut sorted: Vec<f64> = samples.iter().copied().filter(|sample| sample.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let counted = match nature {
        Nature::Typical => sorted.len(),
        Nature::Floor => sorted.len().div_ceil(4),
    };
    sorted.truncate(counted);
    let Quartiles { low, median, high } = Quartiles::of(sorted.iter().copied())?;
    let [low, median, high] = [low, median, high].map(|value| rounded(value.max(0.0)));
    (median > 0.0).then_some(MeasuredFigure { low, median, high, samples: sorted.len() as u64 })
}

/// The value rounded to four digits, but no finer than a hundredth.
pub fn rounded(value: f64) -> f64 {
    let step = 10_f64.powf((value.abs().log10().floor() - 3.0).clamp(-2.0, 0.0));
    let steps = (value / step).round();
    // Division gives an exact last digit. A multiplication does not.
    steps / (1.0 / step).round()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_are_the_fastest_quarter() {
        let samples: Vec<f64> = (1..=16).rev().map(f64::from).collect();
        let all = figure(&samples, Nature::Typical).unwrap();
        assert_eq!((all.low, all.median, all.high, all.samples), (4.75, 8.5, 12.25, 16));
        let floor = figure(&samples, Nature::Floor).unwrap();
        assert_eq!((floor.low, floor.median, floor.high, floor.samples), (1.75, 2.5, 3.25, 4));
    }

    #[test]
    fn no_time_is_no_figure() {
        assert_eq!(figure(&[], Nature::Typical), None);
        assert_eq!(figure(&[-1.0, -2.0, 0.5], Nature::Typical), None);
        assert_eq!(figure(&[f64::NAN, 3.0], Nature::Floor).unwrap().median, 3.0);
    }

    #[test]
    fn figures_are_rounded_for_reading() {
        let cases = [
            (0.0, 0.0),
            (1.23456, 1.23),
            (98.7654, 98.77),
            (123.456, 123.5),
            (4321.9, 4322.0),
            (98765.4, 98765.0),
        ];
        for (value, expected) in cases {
            assert_eq!(rounded(value), expected);
        }
    }
}
