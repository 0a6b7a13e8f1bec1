//! The machine settings that are counts.

use super::super::error::Problem;
use super::super::resolve::{self, CORES_MAX, Counts, DOMAINS_MAX, SMT_MAX};
use super::super::{MachineSpec, Provenance};

/// A setting that is a whole number.
pub(super) struct Count {
    pub(super) name: &'static str,
    /// The minimum on any machine.
    pub(super) low: usize,
    /// The maximum on any machine.
    pub(super) high: usize,
    /// The maximum on this machine, if machines differ.
    pub(super) own_high: Option<fn(&MachineSpec) -> usize>,
    pub(super) summary: &'static str,
    pub(super) get: fn(&MachineSpec) -> usize,
    /// Sets the count to a value within the limits, or tells which of these this machine can have.
    pub(super) set: fn(&mut MachineSpec, usize) -> Result<(), String>,
    /// The values within the limits that this machine can have, for listings.
    pub(super) range: fn(&MachineSpec) -> String,
}

pub(super) const STORE_BUFFER_ENTRIES_MAX: usize = 1024;
/// The maximum of `same-socket-bypasses`. Many more would keep the line from other sockets for
/// good.
pub(super) const BYPASSES_MAX: usize = 1000;

/// All counts.
pub(super) const COUNTS: &[Count] = &[
    Count {
        name: "machine.nodes",
        low: 1,
        high: DOMAINS_MAX,
        own_high: Some(|spec| spec.sockets),
        summary: "Use only the first sockets (NUMA nodes); also called `sockets`.",
        get: |spec| spec.sockets,
        set: set_sockets,
        range: |spec| format!("1 to {}", spec.sockets),
    },
    Count {
        name: "machine.cores-per-socket",
        low: 1,
        high: CORES_MAX,
        own_high: None,
        summary: "Cores of each socket: whole cache domains, or part of one.",
        get: |spec| spec.cores_per_socket,
        set: set_cores_per_socket,
        range: cores_per_socket_range,
    },
    Count {
        name: "machine.smt",
        low: 1,
        high: SMT_MAX,
        own_high: None,
        summary: "Hardware threads of each core.",
        get: |spec| spec.smt,
        set: |spec, threads| {
            spec.smt = threads;
            check_counts(spec)
        },
        range: |_| format!("1 to {SMT_MAX}"),
    },
    Count {
        name: "machine.store-buffer-entries",
        low: 1,
        high: STORE_BUFFER_ENTRIES_MAX,
        own_high: None,
        summary: "Stores that a hardware thread can hold back; with 1, it waits for each store.",
        get: |spec| spec.model.store_buffer_entries,
        set: |spec, entries| {
            spec.model.store_buffer_entries = entries;
            Ok(())
        },
        range: |_| format!("1 to {STORE_BUFFER_ENTRIES_MAX}"),
    },
    Count {
        name: "machine.same-socket-bypasses",
        low: 0,
        high: BYPASSES_MAX,
        own_high: None,
        summary: "Requests for a line from the socket that had it last, served in a row ahead of older ones.",
        get: |spec| spec.model.same_socket_bypasses,
        set: |spec, bypasses| {
            spec.model.same_socket_bypasses = bypasses;
            Ok(())
        },
        range: |_| format!("0 to {BYPASSES_MAX}"),
    },
];

impl Count {
    /// The value, or what would be right on this machine.
    pub(super) fn within(&self, spec: &MachineSpec, value: u64) -> Result<usize, String> {
        let high = self.own_high.map_or(self.high, |high| high(spec));
        let value = usize::try_from(value).ok().filter(|value| (self.low..=high).contains(value));
        value.ok_or_else(|| whole_number(self.low, high))
    }
}

fn set_sockets(spec: &mut MachineSpec, sockets: usize) -> Result<(), String> {
    spec.sockets = sockets;
    spec.hops.truncate(sockets);
    spec.hops.iter_mut().for_each(|row| row.truncate(sockets));
    Ok(())
}

fn set_cores_per_socket(spec: &mut MachineSpec, cores: usize) -> Result<(), String> {
    if cores > 1 && spec.latency_ns.provenance == Provenance::MemoryOnly {
        return Err("must be 1: the machine file has no latencies between cores".to_owned());
    }
    if spec.cores_per_domain == spec.cores_per_socket || cores < spec.cores_per_domain {
        spec.cores_per_domain = cores;
    }
    spec.cores_per_socket = cores;
    check_counts(spec)
}

fn cores_per_socket_range(spec: &MachineSpec) -> String {
    if spec.latency_ns.provenance == Provenance::MemoryOnly {
        return "1: the file has no latencies between cores".to_owned();
    }
    if spec.cores_per_domain == spec.cores_per_socket {
        return format!("1 to {}", CORES_MAX / spec.sockets);
    }
    format!("up to {0}, or a multiple of {0}", spec.cores_per_domain)
}

fn check_counts(spec: &MachineSpec) -> Result<(), String> {
    resolve::check_counts(&Counts {
        sockets: spec.sockets,
        cores_per_socket: spec.cores_per_socket,
        cores_per_domain: spec.cores_per_domain,
        smt: spec.smt,
    })
    .map_err(|Problem { key, problem }| format!("{key} {problem}"))
}

/// The error message with the range.
pub(super) fn whole_number(low: usize, high: usize) -> String {
    format!("must be a whole number from {low} to {high}")
}
