//! The format of a machine file, before defaults, derivation and checks.

use serde::Deserialize;

use super::{Confidence, Measured, ModelParameters};

/// A whole machine file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MachineFile {
    pub(super) schema: u32,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) source: String,
    pub(super) confidence: Confidence,
    pub(super) topology: TopologyTable,
    #[serde(default)]
    pub(super) latency_ns: LatencyTable,
    pub(super) local_ns: LocalTable,
    #[serde(default)]
    pub(super) model: ModelParameters,
    pub(super) measured: Option<Measured>,
}

/// `[topology]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TopologyTable {
    pub(super) sockets: usize,
    pub(super) cores_per_socket: usize,
    /// Default: the whole socket.
    pub(super) cores_per_domain: Option<usize>,
    #[serde(default = "one")]
    pub(super) smt: usize,
    pub(super) ghz: f64,
    pub(super) distances: Vec<String>,
    /// Default: every other socket one hop away.
    pub(super) hops: Option<Vec<Vec<usize>>>,
}

/// `[latency_ns]`: `cas` alone, or all other keys, or `load_memory` alone for one core. Each key
/// has one value per distance.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LatencyTable {
    pub(super) cas: Option<Vec<f64>>,
    pub(super) load_modified: Option<Vec<f64>>,
    pub(super) load_shared: Option<Vec<f64>>,
    pub(super) load_memory: Option<Vec<f64>>,
    pub(super) store_modified: Option<Vec<f64>>,
    pub(super) store_shared: Option<Vec<f64>>,
    pub(super) atomic_modified: Option<Vec<f64>>,
    pub(super) atomic_shared: Option<Vec<f64>>,
}

/// `[local_ns]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LocalTable {
    /// Default: 5 cycles.
    pub(super) l1: Option<f64>,
    /// Default: 20 cycles.
    pub(super) atomic_owned: Option<f64>,
    pub(super) pause: f64,
}

fn one() -> usize {
    1
}
