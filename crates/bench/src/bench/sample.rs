//! The result of one run of one lock.

use super::statistics::Waits;
use super::{BenchError, Failure};

/// The result of one run of one lock. Figures that the mode does not measure are `None`.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    /// Infinite without operations; `None` if it is too small to be measured.
    pub ns_per_op: Option<f64>,
    pub jain: Option<f64>,
    pub cpu_ns_per_op: Option<f64>,
    pub waits: Option<Waits>,
    pub instructions_per_op: Option<f64>,
    pub rmw_per_op: Option<f64>,
    /// Calls by our own fences; those of peers are not known.
    pub membarriers_per_s: Option<f64>,
}

/// The result of one run, if the run was possible.
pub(super) type Outcome = Result<Result<Sample, Failure>, BenchError>;
