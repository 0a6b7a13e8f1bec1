//! Statistics of figures.

use hdrhistogram::Histogram;

/// Precision of histograms: values are exact to 1 %.
const SIGNIFICANT_DIGITS: u8 = 2;
/// Largest value of a histogram: 1000 s. Longer waits count as this long.
const HIGHEST_NS: u64 = 1_000_000_000_000;

/// The value at the share `at` (0 to 1) of sorted figures, interpolated between neighbours; `None`
/// without figures.
fn quantile(sorted: &[f64], at: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = at * last as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    // Without interpolation, so that infinity remains infinity.
    Some(if place.fract() == 0.0 || below == above { below } else { below + (above - below) * place.fract() })
}

/// Quartiles of figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quartiles {
    /// A quarter of the figures is below.
    pub low: f64,
    /// Half of the figures are below.
    pub median: f64,
    /// A quarter of the figures is above.
    pub high: f64,
}

impl Quartiles {
    /// The quartiles of these figures; `None` without figures.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |share| quantile(&sorted, share);
        Some(Self { low: at(0.25)?, median: at(0.5)?, high: at(0.75)? })
    }

    /// Width of the middle half, as a share of the median; `None` if the median is 0.
    pub fn spread(&self) -> Option<f64> {
        (self.median > 0.0).then(|| (self.high - self.low) / self.median)
    }
}

/// The median; `None` without figures.
pub fn median(figures: impl IntoIterator<Item = f64>) -> Option<f64> {
    Quartiles::of(figures).map(|quartiles| quartiles.median)
}

/// Jain's index of fairness: 1 if all shares are equal, 1/n if one of n has everything; `None` if
/// all shares are 0.
///
/// Source: Jain, Chiu and Hawe, DEC TR-301, 1984.
pub fn jain(shares: &[u64]) -> Option<f64> {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| (share as f64).powi(2)).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// A histogram of waits, in ns.
#[derive(Clone, Debug)]
pub struct Waits {
    histogram: Histogram<u64>,
    max: Option<u64>,
}

impl Default for Waits {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, HIGHEST_NS, SIGNIFICANT_DIGITS);
        Self { histogram: histogram.expect("bounds and digits are legal"), max: None }
    }
}

impl Waits {
    /// Adds a wait.
    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
        self.max = self.max.max(Some(ns));
    }

    /// Adds all waits of another histogram.
    pub fn add(&mut self, other: &Waits) {
        self.histogram.add(&other.histogram).expect("both have the same bounds");
        self.max = self.max.max(other.max);
    }

    /// The longest wait, exactly.
    pub fn max(&self) -> Option<u64> {
        self.max
    }

    /// The wait that this share (0 to 1) of all waits does not exceed.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let max = self.max?;
        Some(self.histogram.value_at_quantile(share).min(max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_neighbours() {
        let figures = [4.0, 1.0, 3.0, 2.0];
        let expected = Quartiles { low: 1.75, median: 2.5, high: 3.25 };
        assert_eq!(Quartiles::of(figures), Some(expected));
        assert_eq!(expected.spread(), Some(0.6));
        assert_eq!(Quartiles::of([7.0]), Some(Quartiles { low: 7.0, median: 7.0, high: 7.0 }));
        assert_eq!(median([1.0, f64::INFINITY, f64::INFINITY, 2.0]), Some(f64::INFINITY));
        assert_eq!(Quartiles::of([f64::INFINITY; 4]).map(|all| all.high), Some(f64::INFINITY));
        assert_eq!(Quartiles::of([]), None);
        assert_eq!(Quartiles::of([0.0]).and_then(|zero| zero.spread()), None);
        assert_eq!(median([5.0, 1.0, 9.0]), Some(5.0));
    }

    #[test]
    fn jain_is_one_for_equal_shares_and_least_for_one_taker() {
        assert_eq!(jain(&[5, 5, 5]), Some(1.0));
        assert_eq!(jain(&[8, 0, 0, 0]), Some(0.25));
        assert_eq!(jain(&[0, 0]), None);
        assert_eq!(jain(&[]), None);
    }

    #[test]
    fn waits_keep_their_longest_exactly() {
        let (mut all, mut other) = (Waits::default(), Waits::default());
        assert_eq!((all.max(), all.quantile(0.5)), (None, None));
        (1..=999).for_each(|_| all.record(100));
        other.record(123_456_789);
        all.add(&other);
        assert_eq!(all.max(), Some(123_456_789));
        assert_eq!((all.quantile(0.5), all.quantile(0.999)), (Some(100), Some(100)));
        assert_eq!(all.quantile(1.0), Some(123_456_789));
        all.record(0);
        all.record(u64::MAX);
        assert_eq!(all.max(), Some(u64::MAX));
    }
}
