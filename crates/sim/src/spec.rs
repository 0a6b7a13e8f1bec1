//! Machine descriptions: the number of CPUs, their distances, and the costs of line transfers.
//!
//! A machine is one TOML file. [`MachineSpec`] is its resolved form. It has every default filled
//! in, every latency derived that the file leaves out, and every value checked. All times are
//! nanoseconds.
//!
//! ```text
//! socket   0                    1               a socket is a NUMA node
//! domain   0         1          2         3     cores of a domain share a cache: CCX or socket
//! core     0    1    2    3     4    5    6  7  numbered socket by socket, domain by domain
//! cpu      0 1  2 3  4 5  6 7   8 9  ...        cpu = core * smt + thread
//! ```
//!
//! A *distance* is an index into [`MachineSpec::distances`] and into each latency array. Distance 0
//! leads to another core of the same domain. If a socket has several domains, distance 1 leads to
//! another domain of the socket. The remaining distances lead to other sockets: sockets `h` hops
//! apart have the `h`-th of them. Memory belongs to a socket, not to a domain. The memory of a
//! core's own socket is at the last distance inside the socket.
//!
//! The hardware threads of a core share its caches, so a line that moves between them moves no
//! distance.
//!
//! # Latencies that a file does not give
//!
//! Most published core-to-core figures are one number per distance: the latency of a
//! compare-and-swap that pulls a modified line. The table is derived from `latency_ns.cas` with the
//! ratios of measured Xeon latencies. (Source: David, Guerraoui and Trigonakis, "Everything You
//! Always Wanted to Know about Synchronization but Were Afraid to Ask", SOSP 2013, table 2, the
//! columns of the Xeon.) The values for the own cache and for DRAM are round figures of today's
//! machines:
//!
//! | value | rule |
//! |---|---|
//! | `load_modified` | 0.92 cas |
//! | `load_shared` | 0.40 cas inside a domain (its cache answers), 0.75 cas beyond |
//! | `load_memory` | 90 ns; in another socket 90 ns + (cas there - cas in the socket) |
//! | `store_modified`, `store_shared`, `atomic_shared` | 0.97 cas |
//! | `atomic_modified` | cas |
//! | `local_ns.l1` | 5 cycles |
//! | `local_ns.atomic_owned` | 20 cycles |
//!
//! A machine of one core has no other core to take a line from. For such a machine `load_memory` is
//! enough.

mod builtin;
mod error;
mod file;
mod measured;
mod model;
mod resolve;
mod settings;
#[cfg(test)]
mod tests;
mod write;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;

pub use error::SpecError;
pub use measured::{Measured, MeasuredFigure};
pub use model::{
    Balance, LoadOfModified, ModelParameters, NodeCount, OwnershipOverlap, Preemption, WakePlacement,
};
pub use resolve::{CORES_MAX, DOMAINS_MAX, LATENCY_MAX_NS};
pub use settings::{MachineSetting, Value};

/// The maximum size of a machine file in bytes, a hundred times the size of the built-in files. It
/// bounds the read if a user names some other file, which may be endless.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// How far the latencies of a machine can be trusted.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// A published table for exactly this machine, or `nearlock measure` on it.
    Measured,
    /// A crowd-sourced measurement of exactly this CPU.
    MeasuredCrowd,
    /// A measurement of another CPU of the same family.
    Proxy,
    /// Arithmetic from neighbouring machines, without a publication.
    Estimate,
}

impl std::fmt::Display for Confidence {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(match self {
            Self::Measured => "measured",
            Self::MeasuredCrowd => "measured-crowd",
            Self::Proxy => "proxy",
            Self::Estimate => "estimate",
        })
    }
}

/// Whether a table of latencies was given or derived from one figure per distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// The file has all seven rows.
    Given,
    /// The file has `latency_ns.cas` only. The rows follow from the ratios in this module's
    /// documentation.
    Derived,
    /// The file has `latency_ns.load_memory` only, and the machine has one core. No line moves
    /// between caches. The other rows hold the latency of memory.
    MemoryOnly,
}

/// The kind of an access and the state in which it finds the line: one row of the latency table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Load of a line that another core has modified.
    LoadModified,
    /// Load of a line that other caches hold unmodified.
    LoadShared,
    /// Load, store or atomic of a line that no cache holds: from the home's DRAM.
    LoadMemory,
    /// Store to a line that another core has modified.
    StoreModified,
    /// Store to a line that other caches hold unmodified.
    StoreShared,
    /// Atomic read-modify-write of a line that another core has modified.
    AtomicModified,
    /// Atomic read-modify-write of a line that other caches hold unmodified.
    AtomicShared,
}

/// Latencies of accesses that leave the core, in unscaled nanoseconds. Each has one value per
/// distance, nearest first.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyNs {
    /// Load of a line modified in another core, by distance of that core.
    pub load_modified: Vec<f64>,
    /// Load of a line held unmodified, by distance of the nearest cache that holds it.
    pub load_shared: Vec<f64>,
    /// Load from DRAM, by distance of the memory (see [`MachineSpec::memory_distance`]).
    pub load_memory: Vec<f64>,
    /// Store to a line modified in another core, by distance of that core.
    pub store_modified: Vec<f64>,
    /// Store to a line held unmodified, by distance of the farthest cache that holds it.
    pub store_shared: Vec<f64>,
    /// Atomic read-modify-write of a line modified in another core, by distance of that core.
    pub atomic_modified: Vec<f64>,
    /// Atomic read-modify-write of a line held unmodified, by distance of the farthest cache that
    /// holds it.
    pub atomic_shared: Vec<f64>,
    /// Whether the rows above were given or derived.
    pub provenance: Provenance,
}

/// Latencies that stay inside the core, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalNs {
    /// Load or store that hits the core's first-level cache.
    pub l1: f64,
    /// Atomic read-modify-write of a line that the core owns already.
    pub atomic_owned: f64,
    /// One turn of a spin loop's pause instruction.
    pub pause: f64,
}

/// A machine with every default filled in and every value checked.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineSpec {
    /// Name on the command line.
    pub name: String,
    /// One line: the CPU and the number of CPUs.
    pub description: String,
    /// Where the latencies come from.
    pub source: String,
    /// How far the latencies can be trusted.
    pub confidence: Confidence,
    /// Number of sockets; a socket is a NUMA node.
    pub sockets: usize,
    /// Cores of one socket.
    pub cores_per_socket: usize,
    /// Cores that share a cache; divides `cores_per_socket`.
    pub cores_per_domain: usize,
    /// Hardware threads of one core.
    pub smt: usize,
    /// Clock in GHz, to turn cycles into nanoseconds.
    pub ghz: f64,
    /// Names of the distances beyond the core itself, nearest first.
    pub distances: Vec<String>,
    /// How many of `distances` lie inside a socket: 1, or 2 where a socket holds several domains.
    pub local_distances: usize,
    /// Hops between sockets: 0 on the diagonal, `h` for the `h`-th distance beyond the socket.
    pub hops: Vec<Vec<usize>>,
    /// Latencies of accesses that leave the core.
    pub latency_ns: LatencyNs,
    /// Latencies inside the core.
    pub local_ns: LocalNs,
    /// Parameters of the simulator's model.
    pub model: ModelParameters,
    /// How the machine was measured, if the file tells.
    pub measured: Option<Measured>,
}

impl MachineSpec {
    /// Names of the machines that come with the simulator.
    pub fn builtin_names() -> Vec<&'static str> {
        builtin::MACHINES.iter().map(|&(name, _)| name).collect()
    }

    /// The built-in machine called `name`.
    pub fn builtin(name: &str) -> Result<Self, SpecError> {
        match builtin::MACHINES.iter().find(|&&(known, _)| known == name) {
            Some((_, text)) => Self::parse(text, &format!("built-in machine {name}")),
            None => Err(SpecError::UnknownMachine { name: name.to_owned(), known: Self::builtin_names() }),
        }
    }

    /// The machine that the text of a machine file describes. `origin` names the text in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Self, SpecError> {
        let file = toml::from_str(text)
            .map_err(|error| SpecError::Syntax { origin: origin.to_owned(), message: error.to_string() })?;
        resolve::resolve(file, origin)
    }

    /// A built-in machine, or else the machine in the file with that path.
    ///
    /// A name that is not built in is taken for a path if it has a `/`, ends in `.toml` or exists.
    pub fn load(name_or_path: &str) -> Result<Self, SpecError> {
        let path = Path::new(name_or_path);
        let is_builtin = builtin::MACHINES.iter().any(|&(known, _)| known == name_or_path);
        let is_path = name_or_path.contains('/') || name_or_path.ends_with(".toml") || path.exists();
        if is_builtin || !is_path {
            return Self::builtin(name_or_path);
        }
        match text_of(path) {
            Ok(text) => Self::parse(&text, name_or_path),
            Err(source) => Err(SpecError::Unreadable { path: name_or_path.to_owned(), source }),
        }
    }

    /// Number of CPUs (hardware threads).
    pub fn cpus(&self) -> usize {
        self.cores() * self.smt
    }

    /// Number of cores.
    pub fn cores(&self) -> usize {
        self.sockets * self.cores_per_socket
    }

    /// Number of cache domains.
    pub fn domains(&self) -> usize {
        self.cores() / self.cores_per_domain
    }

    /// The core of a CPU.
    pub fn core_of_cpu(&self, cpu: usize) -> usize {
        cpu / self.smt
    }

    /// The number of a CPU's hardware thread within its core, from 0.
    pub fn thread_of_cpu(&self, cpu: usize) -> usize {
        cpu % self.smt
    }

    /// The cache domain of a core.
    pub fn domain_of_core(&self, core: usize) -> usize {
        core / self.cores_per_domain
    }

    /// The socket of a core.
    pub fn socket_of_core(&self, core: usize) -> usize {
        core / self.cores_per_socket
    }

    /// The socket of a CPU.
    pub fn socket_of_cpu(&self, cpu: usize) -> usize {
        self.socket_of_core(self.core_of_cpu(cpu))
    }

    /// The NUMA node of a CPU: its socket.
    pub fn numa_node_of_cpu(&self, cpu: usize) -> usize {
        self.socket_of_cpu(cpu)
    }

    /// The socket of a cache domain.
    pub fn socket_of_domain(&self, domain: usize) -> usize {
        self.socket_of_core(domain * self.cores_per_domain)
    }

    /// The distance between two domains, an index into the latency arrays. It is 0 if and only if
    /// the domains are the same.
    pub fn distance(&self, domain_a: usize, domain_b: usize) -> usize {
        if domain_a == domain_b {
            return 0;
        }
        self.distance_to_socket(self.socket_of_domain(domain_a), self.socket_of_domain(domain_b))
    }

    /// The distance from a domain to the memory of a socket, an index into the latency arrays.
    pub fn memory_distance(&self, domain: usize, home_socket: usize) -> usize {
        self.distance_to_socket(self.socket_of_domain(domain), home_socket)
    }

    /// The latency of an access over a distance, in nanoseconds, with the model's two scales
    /// applied.
    pub fn latency(&self, access: Access, distance: usize) -> f64 {
        let model = &self.model;
        let in_socket = distance < self.local_distances;
        let scale = if in_socket { model.same_socket_scale } else { model.cross_socket_scale };
        self.latency_ns.row(access)[distance] * scale
    }

    fn distance_to_socket(&self, from: usize, to: usize) -> usize {
        self.local_distances - 1 + self.hops[from][to]
    }
}

/// The text of a machine file.
fn text_of(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if read as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!(
            "it has more than {FILE_BYTES_MAX} bytes, and no machine needs so many"
        )));
    }
    Ok(text)
}

impl LatencyNs {
    /// The unscaled latencies of one kind of access, by distance.
    pub fn row(&self, access: Access) -> &[f64] {
        match access {
            Access::LoadModified => &self.load_modified,
            Access::LoadShared => &self.load_shared,
            Access::LoadMemory => &self.load_memory,
            Access::StoreModified => &self.store_modified,
            Access::StoreShared => &self.store_shared,
            Access::AtomicModified => &self.atomic_modified,
            Access::AtomicShared => &self.atomic_shared,
        }
    }
}
