//! The Rust names of the locks, in addition to those on the command line.

use nearlock_collection::subjects::{SUBJECTS, Subject};

use super::nearest::folded;

/// A lock that programs name by a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RustName {
    /// The path of the type within the crate: `linux::SpinLock`.
    pub path: &'static str,
    /// The name of the lock on the command line.
    pub lock: &'static str,
    /// The purpose, in a few words.
    pub purpose: &'static str,
}

/// The types of the crate `nearlock`, with the recommended ones first.
pub const RUST_NAMES: &[RustName] = &{
    const fn row(path: &'static str, lock: &'static str, purpose: &'static str) -> RustName {
        RustName { path, lock, purpose }
    }
    [
        row(
            "Mutex",
            "near-mutex",
            "sections and waits of any length, any number of threads: begin with this",
        ),
        row("RwLock", "near-rwlock", "the same, for data that are mostly read"),
        row("Condvar", "near-condvar", "waiting for a condition under `Mutex`"),
        row(
            "linux::SpinLock",
            "qspinlock-preemptible",
            "short sections, many waiters, any number of threads",
        ),
        row("linux::CnaLock", "cna-preemptible", "the same, with threads of several NUMA nodes"),
        row("linux::FifoSpinLock", "qspinlock", "first come, first served; a processor for each thread"),
        row("linux::RwSem", "rwsem", "Linux' reader-writer semaphore"),
        row("linux::Mutex", "linux-mutex", "Linux' sleeping mutex, which spins while the owner runs"),
        row("linux::CounterMutex", "linux-counter-mutex", "Linux' mutex of 2013"),
        row("freebsd::Mtx", "freebsd-mtx", "FreeBSD's sleeping mutex with an owner"),
        row("freebsd::SpinMtx", "freebsd-spin-mtx", "FreeBSD's spin mutex"),
        row("freebsd::Rw", "freebsd-rw", "FreeBSD's reader-writer lock that spins first"),
        row("freebsd::Sx", "freebsd-sx", "FreeBSD's shared and exclusive lock, whose waiters may give up"),
        row("freebsd::LockMgr", "freebsd-lockmgr", "FreeBSD's lock of vnodes and buffers"),
        row("classic::McsLock", "mcs", "the MCS queue lock"),
        row("classic::ClhLock", "clh", "the CLH queue lock"),
        row("classic::GlibcMutex", "glibc-mutex", "the protocol of the C library's mutex"),
        row("classic::RawTicketLock", "ticket", "a ticket lock"),
        row("classic::TtasLock", "ttas", "test and test-and-set"),
        row("classic::RawTasLock", "tas", "test-and-set"),
    ]
};

/// The number of recommended types.
const RECOMMENDED: usize = 6;

/// The locks from which a program should choose. The first is right for most programs.
pub fn recommended() -> &'static [RustName] {
    &RUST_NAMES[..RECOMMENDED]
}

impl RustName {
    /// The type of this lock, if programs can name it.
    pub fn of(lock: &str) -> Option<&'static RustName> {
        RUST_NAMES.iter().find(|name| name.lock == lock)
    }

    /// The last part of the path: `SpinLock`.
    pub(super) fn type_name(&self) -> &'static str {
        self.path.rsplit("::").next().unwrap_or(self.path)
    }
}

/// The lock with this name. Case, hyphens and path of the name are ignored: `CNA` is `cna`,
/// `SpinLock` and `nearlock::linux::SpinLock` are `qspinlock-preemptible`. Names on the command
/// line take precedence over names of types.
pub fn forgiven(name: &str) -> Option<&'static Subject> {
    let given = folded(name.strip_prefix("nearlock::").unwrap_or(name));
    if given.is_empty() {
        return None;
    }
    let by_lock = SUBJECTS.iter().find(|subject| folded(subject.name) == given);
    // `TicketLock` is understood, too, where there is only the raw lock.
    let type_of = |row: &RustName| {
        let name = row.type_name();
        name.strip_prefix("Raw").unwrap_or(name)
    };
    let by_type = || {
        let is_named = |row: &&RustName| folded(row.path) == given || folded(type_of(row)) == given;
        RUST_NAMES.iter().find(is_named).and_then(|row| Subject::named(row.lock))
    };
    by_lock.or_else(by_type)
}
