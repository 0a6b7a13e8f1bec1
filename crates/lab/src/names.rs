//! Look-up by name of locks, machines, workloads and tables.
//!
//! Case and hyphens of a name are ignored. A lock can also be named by its Rust type: `CNA` is
//! `cna`, and `SpinLock` is `qspinlock-preemptible`.
//!
//! | module | contents |
//! |---|---|
//! | `echo` | a user's text, as messages repeat it |
//! | `nearest` | the known names that are nearest to a mistyped name |
//! | `rust` | the types of the crate `nearlock`, and their locks |

mod echo;
mod nearest;
mod rust;

use nearlock_sim::spec::{Confidence, MachineSpec, SpecError};

pub use echo::{echoed, escaped};
pub use nearest::{Known, folded, nearest};
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
    "bare-exchange",
    "bare-compare-exchange",
    "std-rwlock",
    "parking-lot-0.12-rwlock",
    "parking-lot-0.13-rwlock",
    "pthread-rwlock",
    "pthread-rwlock-writers",
    "usync-rwlock",
    "spin-rwlock",
];

/// The peer with this name. Case and hyphens of the name are ignored.
pub fn peer(name: &str) -> Option<&'static str> {
    PEERS.iter().copied().find(|peer| is_same(peer, name))
}

/// A peer, and the lock of the list that is a model of its protocol.
struct Model {
    peer: &'static str,
    lock: &'static str,
    /// The name of the peer's type in a program.
    path: &'static str,
}

/// All models. Of those with the same path, the newest comes first.
const MODELS: [Model; 7] = [
    Model { peer: "std", lock: "std-mutex-protocol", path: "std::sync::Mutex" },
    Model { peer: "parking-lot-0.13", lock: "parking-lot-0.13-protocol", path: "parking_lot::Mutex" },
    Model { peer: "parking-lot-0.12", lock: "parking-lot-0.12-protocol", path: "parking_lot::Mutex" },
    Model { peer: "pthread-mutex", lock: "glibc-mutex", path: "pthread_mutex_t" },
    Model { peer: "std-rwlock", lock: "std-rwlock-protocol", path: "std::sync::RwLock" },
    Model {
        peer: "parking-lot-0.13-rwlock",
        lock: "parking-lot-0.13-rwlock-protocol",
        path: "parking_lot::RwLock",
    },
    Model { peer: "pthread-rwlock", lock: "glibc-rwlock", path: "pthread_rwlock_t" },
];

/// A name that is not known.
#[derive(Debug, thiserror::Error)]
#[error("there is no {kind} `{}`{}", echoed(name), remark(kind, name, known))]
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
    #[error("{0}; or give the path of a machine file, which `nearlock measure` writes")]
    Unknown(UnknownName),
    /// Its file cannot be used.
    #[error("{}", in_lines(.0))]
    Spec(SpecError),
}

/// The message, whose lines may be those of a file, without control characters.
fn in_lines(error: &SpecError) -> String {
    error.to_string().lines().map(escaped).collect::<Vec<_>>().join("\n")
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
        SpecError::Unreadable { path, source } => {
            MachineError::Spec(SpecError::Unreadable { path: escaped(&path), source })
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
        && let Some(Retired { reason, replacement, .. }) =
            RETIRED.iter().find(|retired| is_same(retired.name, name))
    {
        return format!(": it was removed, since {reason}; `{replacement}` replaces it");
    }
    match kind {
        "lock" if let Some(peer) = peer(name) => {
            let model = MODELS.iter().find(|model| model.peer == peer);
            let model = model
                .map_or_else(String::new, |model| format!("; `{}` is a model of its protocol", model.lock));
            format!(": it is a peer, for `nearlock bench` only{model}")
        }
        "peer" if forgiven(name).is_some() => ": it is a lock; name it with --lock".to_owned(),
        _ => {
            let lists = match kind {
                "lock or peer" => "`nearlock list locks` and `nearlock list peers` show all".to_owned(),
                kind => format!("`nearlock list {kind}s` shows all"),
            };
            match did_you_mean(&nearest_of(kind, name, known)) {
                none if none.is_empty() && known.len() <= FEW => format!("; there are: {}", known.join(", ")),
                none if none.is_empty() => format!("; {lists}"),
                near => format!("{near} {lists}"),
            }
        }
    }
}

/// The nearest known names of a kind, each with the spelling that is near if it is another one.
fn nearest_of(kind: &str, name: &str, known: &[&str]) -> Vec<String> {
    let descriptions = match kind {
        "machine" => known.iter().map(|name| description_of_machine(name)).collect(),
        "workload" => workloads().map(|workload| workload.summary().to_owned()).collect(),
        _ => Vec::new(),
    };
    let described = known.iter().enumerate().map(|(index, &name)| {
        let description = descriptions.get(index).map_or("", String::as_str);
        Known { description, ..Known::name(name) }
    });
    let spellings = other_spellings().filter(|other| known.contains(&other.name));
    let show = |near: &Known| match near.spelling {
        same if same == near.name => format!("`{same}`"),
        other => format!("`{}` ({other})", near.name),
    };
    nearest(name, spellings.chain(described)).iter().map(show).collect()
}

/// The names that locks have in programs, and those of peers for their models.
fn other_spellings<'a>() -> impl Iterator<Item = Known<'a>> {
    let paths = MODELS.iter().flat_map(|model| [model.peer, model.lock].map(|of| (of, model.path)));
    let peers = MODELS.iter().map(|model| (model.lock, model.peer));
    let types = RUST_NAMES.iter().map(|row| (row.lock, row.type_name()));
    paths.chain(types).chain(peers).map(|(name, spelling)| Known::spelled(name, spelling))
}

fn description_of_machine(name: &str) -> String {
    MachineSpec::builtin(name).map_or_else(|_| String::new(), |machine| machine.description)
}

/// Lists of at most this many names are shown in full if no name is near.
const FEW: usize = 8;

/// `; did you mean ...?` with the nearest names, the nearest first. Empty if no name is near.
pub fn suggestion(name: &str, known: &[&str]) -> String {
    let near = nearest(name, known.iter().copied().map(Known::name));
    did_you_mean(&near.iter().map(|near| format!("`{}`", near.name)).collect::<Vec<_>>())
}

/// `; did you mean ...?` with these names. Empty without names.
pub(crate) fn did_you_mean(quoted: &[String]) -> String {
    let near: Vec<&str> = quoted.iter().map(String::as_str).collect();
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", any_of(&near)) }
}

#[cfg(test)]
mod tests {
    use nearlock_collection::subjects::Subject;

    use super::*;
    use crate::locks::lock;

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
        for Model { peer, lock, .. } in MODELS {
            assert!(PEERS.contains(&peer) && Subject::named(lock).is_some(), "{peer}, {lock}");
        }
        let message = lock("PTHREAD_mutex").unwrap_err().to_string();
        assert!(message.ends_with("`glibc-mutex` is a model of its protocol"), "{message}");
        for name in ["mcs", "Mutex"] {
            let unknown = UnknownName { kind: "peer", name: name.to_owned(), known: PEERS.to_vec() };
            let message = unknown.to_string();
            assert!(message.ends_with(&format!("`{name}`: it is a lock; name it with --lock")), "{message}");
        }
        assert_eq!(peer("Parking_Lot-0.13"), Some("parking-lot-0.13"));
        for name in PEERS {
            assert!(forgiven(name).is_none(), "{name} is a lock and a peer");
        }
    }

    #[test]
    fn the_names_of_programs_lead_to_locks() {
        for (name, expected) in [
            ("mutx", "`near-mutex` (Mutex), `linux-mutex` (Mutex) or "),
            ("mutex2", "`near-mutex` (Mutex), `linux-mutex` (Mutex) or "),
            ("spinlok", "`qspinlock-preemptible` (SpinLock), "),
            ("pthread", "`glibc-mutex` (pthread"),
            ("std::sync::Mutex", "`std-mutex-protocol` (std::sync::Mutex), `near-mutex` (Mutex) or "),
            ("parking_lot::Mutex", "`parking-lot-0.13-protocol` (parking_lot::Mutex), "),
        ] {
            let message = lock(name).unwrap_err().to_string();
            assert!(message.contains(&format!("; did you mean {expected}")), "{message}");
        }
    }

    #[test]
    fn a_machine_and_a_workload_are_found_by_their_descriptions() {
        for (name, expected) in [
            ("xeon", "`westmere-ex-8s`, "),
            ("AMD", "`epyc-rome-2s` or `epyc-genoa-2s`?"),
            ("raspberry-pi", "`cortex-a7-quad`?"),
        ] {
            let message = machine(name).unwrap_err().to_string();
            assert!(message.contains(&format!("; did you mean {expected}")), "{message}");
        }
        let message = workload("leveldb").unwrap_err().to_string();
        assert!(message.contains("; did you mean `readrandom`?"), "{message}");
    }

    #[test]
    fn a_name_is_repeated_without_its_control_characters() {
        let message = lock(&"\u{1b}".repeat(1000)).unwrap_err().to_string();
        assert!(!message.contains('\u{1b}') && message.len() < 200, "{message}");
        let message = machine("\u{1b}[31m\n/x").unwrap_err().to_string();
        assert!(message.contains("\\u{1b}[31m\\n/x") && !message.contains('\u{1b}'), "{message}");
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
        assert!(message.contains("haswell-ex-4s") && message.ends_with("measure` writes"), "{message}");
    }
}
