//! What can be asked for by name: locks, machines, workloads, tables.

use nearlock_collection::subjects::Subject;
use nearlock_sim::spec::{Confidence, MachineSpec, SpecError};
use strsim::osa_distance;

pub use crate::locks::lock;

use crate::simulate::{AnyWorkload, workloads};

/// A lock that this project had.
struct Retired {
    name: &'static str,
    /// Why it was removed, after "since".
    reason: &'static str,
    /// The lock that replaces it.
    replacement: &'static str,
}

/// All of them. Their names are not used again.
const RETIRED: &[Retired] = &[
    Retired {
        name: "near-mutex-biased",
        reason: "it forgot that it was held when it was moved",
        replacement: "near-mutex",
    },
    Retired {
        name: "near-mutex-biased-eager",
        reason: "it was a form of `near-mutex-biased` for tests",
        replacement: "near-mutex",
    },
];

/// The names of the locks of others that `nearlock bench` compares with.
pub const PEERS: &[&str] = &[
    "std",
    "parking-lot-0.12",
    "parking-lot-0.13",
    "usync",
    "spin",
    "pthread-mutex",
    "pthread-adaptive",
    "pthread-spin",
    "tbb-mutex",
    "tbb-spin",
    "ck-fas",
    "ck-ticket",
    "ck-mcs",
    "nsync",
    "absl",
    "near-mutex-called",
    "std-rwlock",
    "parking-lot-0.12-rwlock",
];

/// A name that stands for nothing.
#[derive(Debug, thiserror::Error)]
#[error("there is no {kind} `{name}`{}; there are: {}", remark(kind, name, known), known.join(", "))]
pub struct UnknownName {
    /// What was asked for: lock, machine, ...
    pub kind: &'static str,
    /// The name.
    pub name: String,
    /// The names that there are.
    pub known: Vec<&'static str>,
}

/// The workload of this name, with its defaults.
///
/// # Errors
///
/// If there is none.
pub fn workload(name: &str) -> Result<&'static dyn AnyWorkload, UnknownName> {
    workloads().find(|workload| workload.name() == name).ok_or_else(|| no_workload(name))
}

/// The error for a workload name that is unknown.
pub(crate) fn no_workload(name: &str) -> UnknownName {
    let known = workloads().map(|workload| workload.name()).collect();
    UnknownName { kind: "workload", name: name.to_owned(), known }
}

/// Why a machine cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// It does not exist.
    #[error("{0}; or give the path of a machine file")]
    Unknown(UnknownName),
    /// Its file cannot be used.
    #[error(transparent)]
    Spec(SpecError),
}

/// The built-in machine of this name, or the one that the file of this path describes.
///
/// # Errors
///
/// If there is neither, or if the file describes no machine.
pub fn machine(name_or_path: &str) -> Result<MachineSpec, MachineError> {
    MachineSpec::load(name_or_path).map_err(|error| match error {
        SpecError::UnknownMachine { name, known } => {
            MachineError::Unknown(UnknownName { kind: "machine", name, known })
        }
        error => MachineError::Spec(error),
    })
}

/// How far the latencies of a machine can be trusted, in a few words.
pub fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Measured => "measured",
        Confidence::MeasuredCrowd => "measured by volunteers",
        Confidence::Proxy => "of a relative",
        Confidence::Estimate => "estimated",
    }
}

/// What the name stands for elsewhere, or else a [`suggestion`].
fn remark(kind: &str, name: &str, known: &[&str]) -> String {
    if ["lock", "peer", "lock or peer"].contains(&kind)
        && let Some(Retired { reason, replacement, .. }) = RETIRED.iter().find(|retired| retired.name == name)
    {
        return format!(" (it was removed, since {reason}; `{replacement}` replaces it)");
    }
    match kind {
        "lock" if PEERS.contains(&name) => " (it is a peer, for `nearlock bench --peers` only)".to_owned(),
        "peer" if Subject::named(name).is_some() => " (it is a lock: name it with --locks)".to_owned(),
        _ => suggestion(name, known),
    }
}

/// ` (did you mean ...?)`, or nothing if no known name begins like it or is near.
pub(crate) fn suggestion(name: &str, known: &[&str]) -> String {
    let longer = known.iter().find(|known| !name.is_empty() && known.starts_with(name));
    let nearest = known.iter().min_by_key(|known| osa_distance(name, known));
    let near = nearest.filter(|known| osa_distance(name, known) <= 1 + name.chars().count() / 4);
    match longer.or(near) {
        Some(known) => format!(" (did you mean `{known}`?)"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_understood_and_nonsense_is_not() {
        let message = lock("qspinlok").unwrap_err().to_string();
        assert!(
            message.starts_with("there is no lock `qspinlok` (did you mean `qspinlock`?); there are: tas, "),
            "{message}"
        );
        for (name, expected) in [
            ("cna", " (did you mean `cna-v13`?)"),
            ("mcz", " (did you mean `mcs`?)"),
            ("msc", " (did you mean `mcs`?)"),
        ] {
            assert_eq!(suggestion(name, &["mcs", "cna-v13", "cna-v13-no-sro"]), expected);
        }
        for nonsense in ["", "zzz", "\u{1f512}"] {
            assert!(!lock(nonsense).unwrap_err().to_string().contains("did you mean"), "{nonsense}");
        }
        assert!(lock("mcs").is_ok());
    }

    #[test]
    fn locks_and_peers_are_told_from_each_other() {
        let message = lock("std").unwrap_err().to_string();
        assert!(message.contains("`std` (it is a peer, for `nearlock bench --peers` only)"), "{message}");
        let unknown = UnknownName { kind: "peer", name: "mcs".to_owned(), known: PEERS.to_vec() };
        let message = unknown.to_string();
        assert!(
            message.contains("`mcs` (it is a lock: name it with --locks); there are: std, "),
            "{message}"
        );
    }

    #[test]
    fn retired_locks_are_gone_and_what_replaces_them_is_there() {
        for Retired { name, replacement, .. } in RETIRED {
            assert!(Subject::named(name).is_none() && !PEERS.contains(name), "{name} is a lock");
            assert!(Subject::named(replacement).is_some(), "{replacement} is no lock");
        }
    }

    #[test]
    fn workloads_and_machines_have_names() {
        for each in workloads() {
            assert_eq!(workload(each.name()).unwrap().name(), each.name());
        }
        assert!(workload("frob").unwrap_err().to_string().contains("locktorture"));
        let message = machine("haswell-4s").unwrap_err().to_string();
        assert!(message.contains("haswell-ex-4s") && message.ends_with("machine file"), "{message}");
    }
}
