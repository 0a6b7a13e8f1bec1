//! How much of the requested work was done.

/// The number of cells, runs or tables that were done, and that were requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub done: usize,
    pub of: usize,
    /// The word for one of them, in the plural.
    pub unit: &'static str,
}

impl Extent {
    /// Whether results are missing.
    pub fn is_partial(self) -> bool {
        self.done < self.of
    }

    /// The mark of partial results. `None` if all was done.
    pub fn mark(self) -> Option<String> {
        let Self { done, of, unit } = self;
        self.is_partial().then(|| format!("PARTIAL: {done} of {of} {unit}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_partial_results_are_marked() {
        let extent = |done| Extent { done, of: 20, unit: "cells" };
        assert_eq!(extent(14).mark().as_deref(), Some("PARTIAL: 14 of 20 cells"));
        assert_eq!((extent(20).mark(), extent(20).is_partial()), (None, false));
    }
}
