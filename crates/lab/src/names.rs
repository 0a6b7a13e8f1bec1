//! Look-up by name of locks, machines, workloads and tables.
//!
//! Case and hyphens of a name are ignored. A lock can also be named by its Rust type: `CNA` is
//! `cna`, and `SpinLock` is `qspinlock-preemptible`.
//!
//! | module | contents |
//! |---|---|
//! | `nearest` | the known names that are nearest to a mistyped name |
//! | `rust` | the types of the crate `nearlock`, and their locks |

mod nearest;
mod rust;

use nearlock_collection::subjects::Subject;
use nearlock_sim::spec::{Confidence, MachineSpec, SpecError};

pub use crate::locks::lock;
pub use nearest::folded;
pub(crate) use nearest::nearest;
pub(crate) use rust::forgiven;
pub use rust::{RUST_NAMES, RustName, recommended};

use crate::settings::any_of;
use crate::simulate::{AnyWorkload, workloads};

/// A lock that was removed from this project.
struct Retired {
    name: &'static str,
    /// The reason for the removal, after "since".
    reason: &'static str,
    /// The lock that replaces it.
    replacement: &'static str,
}

/// All removed locks. Their names are not used again.
const RETIRED: &[Retired] = &[
    Retired {
        name: "near-mutex-biased",
        reason: "it forgot that it was held when it was moved",
        replacement: "near-mutex",
    },
    Retired {
        name: "near-mutex-biased-eager",
        reason: "it was a variant of `near-mutex-biased` for tests",
        replacement: "near-mutex",
    },
];

/// The names of the peers, locks of other projects that `nearlock bench` compares with.
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

/// Peers, and the locks of the list that are models of their protocols.
const MODELS: [(&str, &str); 4] = [
    ("std", "std-mutex-protocol"),
    ("parking-lot-0.12", "parking-lot-0.12-protocol"),
    ("parking-lot-0.13", "parking-lot-0.13-protocol"),
    ("pthread-mutex", "glibc-mutex"),
];

/// A name that is not known.
#[derive(Debug, thiserror::Error)]
#[error("there is no {kind} `{name}`{}", remark(kind, name, known))]
pub struct UnknownName {
    /// The kind of thing that was asked for: lock, machine, ...
    pub kind: &'static str,
    /// The name.
    pub name: String,
    /// The known names.
    pub known: Vec<&'static str>,
}

/// The workload with this name, with its defaults.
///
/// # Errors
///
/// If it does not exist.
pub fn workload(name: &str) -> Result<&'static dyn AnyWorkload, UnknownName> {
    workloads().find(|workload| is_same(workload.name(), name)).ok_or_else(|| no_workload(name))
}

/// Whether two names are equal except for case and hyphens.
pub fn is_same(one: &str, other: &str) -> bool {
    folded(one) == folded(other)
}

/// The error for an unknown workload name.
pub(crate) fn no_workload(name: &str) -> UnknownName {
    let known = workloads().map(|workload| workload.name()).collect();
    UnknownName { kind: "workload", name: name.to_owned(), known }
}

/// Why a machine is not available.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// It does not exist.
    #[error("{0}; or give the path of a machine file")]
    Unknown(UnknownName),
    /// Its file cannot be used.
    #[error(transparent)]
    Spec(SpecError),
}

/// The built-in machine with this name, or the machine in the file with this path.
///
/// # Errors
///
/// If neither exists, or if the file does not describe a machine.
pub fn machine(name_or_path: &str) -> Result<MachineSpec, MachineError> {
    let builtin = MachineSpec::builtin_names().into_iter().find(|known| is_same(known, name_or_path));
    MachineSpec::load(builtin.unwrap_or(name_or_path)).map_err(|error| match error {
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
        Confidence::Proxy => "of a related CPU",
        Confidence::Estimate => "estimated",
    }
}

/// The other meaning of the name, or else suggestions.
fn remark(kind: &str, name: &str, known: &[&str]) -> String {
    if ["lock", "peer", "lock or peer"].contains(&kind)
        && let Some(Retired { reason, replacement, .. }) = RETIRED.iter().find(|retired| retired.name == name)
    {
        return format!(": it was removed, since {reason}; `{replacement}` replaces it");
    }
    match kind {
        "lock" if PEERS.contains(&name) => {
            let model = MODELS.iter().find(|(peer, _)| *peer == name);
            let model =
                model.map_or_else(String::new, |(_, lock)| format!("; `{lock}` is a model of its protocol"));
            format!(": it is a peer, for `nearlock bench` only{model}")
        }
        "peer" if Subject::named(name).is_some() => ": it is a lock; name it with --lock".to_owned(),
        _ => {
            let lists = match kind {
                "lock or peer" => "`nearlock list locks` and `nearlock list peers` show all".to_owned(),
                kind => format!("`nearlock list {kind}s` shows all"),
            };
            match suggestion(name, known) {
                none if none.is_empty() && known.len() <= FEW => format!("; there are: {}", known.join(", ")),
                none if none.is_empty() => format!("; {lists}"),
                near => format!("{near} {lists}"),
            }
        }
    }
}

/// Lists of at most this many names are shown in full if no name is near.
const FEW: usize = 8;

/// `; did you mean ...?` with the nearest names, the nearest first. Empty if no name is near.
pub fn suggestion(name: &str, known: &[&str]) -> String {
    let near: Vec<_> = nearest(name, known.iter().copied()).iter().map(|name| format!("`{name}`")).collect();
    let near: Vec<&str> = near.iter().map(String::as_str).collect();
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", any_of(&near)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_understood_and_nonsense_is_not() {
        let message = lock("qspinlok").unwrap_err().to_string();
        assert!(message.starts_with("there is no lock `qspinlok`; did you mean `qspinlock`"), "{message}");
        assert!(message.ends_with("? `nearlock list locks` shows all"), "{message}");
        assert_eq!(suggestion("mcz", &["mcs", "cna"]), "; did you mean `mcs`?");
        assert_eq!(suggestion("mc", &["mcs", "mcs-own-grant"]), "; did you mean `mcs` or `mcs-own-grant`?");
        for nonsense in ["", "zzz", "\u{1f512}"] {
            let message = lock(nonsense).unwrap_err().to_string();
            assert_eq!(message, format!("there is no lock `{nonsense}`; `nearlock list locks` shows all"));
        }
        assert!(lock("mcs").is_ok());
    }

    #[test]
    fn case_hyphens_and_the_types_of_rust_are_understood() {
        for (name, expected) in [
            ("CNA", "cna"),
            ("QSpinLock", "qspinlock"),
            ("linux_mutex", "linux-mutex"),
            ("linux::Mutex", "linux-mutex"),
            ("Mutex", "near-mutex"),
            ("mutex", "near-mutex"),
            ("nearlock::Mutex", "near-mutex"),
            ("SpinLock", "qspinlock-preemptible"),
            ("spinlock", "qspinlock-preemptible"),
            ("linux::SpinLock", "qspinlock-preemptible"),
            ("CnaLock", "cna-preemptible"),
            ("RwSem", "rwsem"),
            ("McsLock", "mcs"),
            ("Condvar", "near-condvar"),
        ] {
            assert_eq!(lock(name).map(|lock| lock.name).unwrap_or("none"), expected, "{name}");
        }
        assert_eq!(lock("CNA[threshold-ns=1]").unwrap().name, "cna[threshold-ns=1]");
        assert_eq!(machine("Haswell-EX-4s").unwrap().name, "haswell-ex-4s");
        assert_eq!(workload("LockTorture").unwrap().name(), "locktorture");
    }

    #[test]
    fn names_of_locks_differ_without_case_and_hyphens() {
        let mut names: Vec<_> =
            nearlock_collection::subjects::SUBJECTS.iter().map(|subject| folded(subject.name)).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        for RustName { path, lock, .. } in RUST_NAMES {
            assert!(Subject::named(lock).is_some(), "{path} is no {lock}");
        }
    }

    #[test]
    fn locks_and_peers_are_told_from_each_other() {
        let message = lock("std").unwrap_err().to_string();
        assert!(message.contains("`std`: it is a peer, for `nearlock bench` only"), "{message}");
        assert!(message.ends_with("`std-mutex-protocol` is a model of its protocol"), "{message}");
        for (peer, lock) in MODELS {
            assert!(PEERS.contains(&peer) && Subject::named(lock).is_some(), "{peer}, {lock}");
        }
        let unknown = UnknownName { kind: "peer", name: "mcs".to_owned(), known: PEERS.to_vec() };
        let message = unknown.to_string();
        assert!(message.contains("`mcs`: it is a lock; name it with --lock"), "{message}");
    }

    #[test]
    fn retired_locks_do_not_exist_and_their_replacements_do() {
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
        assert!(workload("frob").unwrap_err().to_string().ends_with("; `nearlock list workloads` shows all"));
        let message = machine("haswell-4s").unwrap_err().to_string();
        assert!(message.contains("haswell-ex-4s") && message.ends_with("machine file"), "{message}");
    }
}
