//! What one run of one lock comes to.

use super::statistics::Waits;
use super::{BenchError, Failure};

/// What one run of one lock came to. What a mode does not measure is `None`.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    /// Infinite if there was no operation; `None` if it is too little to be measured.
    pub ns_per_op: Option<f64>,
    pub jain: Option<f64>,
    pub cpu_ns_per_op: Option<f64>,
    pub waits: Option<Waits>,
    pub instructions_per_op: Option<f64>,
    pub rmw_per_op: Option<f64>,
    /// Of our own fences; peers' are not known.
    pub membarriers_per_s: Option<f64>,
}

/// What one run came to, if it could be made.
pub(super) type Outcome = Result<Result<Sample, Failure>, BenchError>;
