//! Peers: locks of other libraries, for comparison with ours. They run only natively, since their
//! source is not written over a platform. Their waiters wait as the peer's own code does.

mod bare;
mod called;
#[cfg(target_os = "linux")]
mod foreign;
mod mutexes;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod pthread;
mod rwlocks;
/// Systems without dynamic loading of shims.
#[cfg(not(target_os = "linux"))]
mod foreign {
    use super::Lock;

    pub const TBB_MUTEX: Option<Lock> = None;
    pub const TBB_SPIN: Option<Lock> = None;
    pub const CK_FAS: Option<Lock> = None;
    pub const CK_TICKET: Option<Lock> = None;
    pub const CK_MCS: Option<Lock> = None;
    pub const NSYNC_MU: Option<Lock> = None;
    pub const ABSL_MUTEX: Option<Lock> = None;
}
/// Systems with another C library.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod pthread {
    use super::Lock;

    pub const NORMAL: Option<Lock> = None;
    pub const ADAPTIVE: Option<Lock> = None;
    pub const SPIN: Option<Lock> = None;
    pub const RWLOCK: Option<Lock> = None;
    pub const RWLOCK_WRITERS: Option<Lock> = None;
}

use nearlock_core::raw::{RawLock, RawRwLock};
use nearlock_lab::names::{self, UnknownName};
use nearlock_os::SpinThenYield;

use super::condvar::{CondvarCase, WithCondvar};
use super::mode::Mode;
use super::run::Run;
use super::sample::Outcome;
use super::start;

/// A lock of another library.
#[derive(Debug)]
pub struct Peer {
    /// Its name on the command line.
    pub name: &'static str,
    /// A description in one sentence.
    pub summary: &'static str,
    /// What its waiters do after a long wait.
    pub waiters: Waiters,
    /// The lock itself; `None` if it is not available on this system.
    lock: Option<Lock>,
}

/// What waiters do after a long wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiters {
    /// They sleep or yield.
    Leave,
    /// They keep the CPU. With more threads than CPUs, the lock makes no progress until the
    /// scheduler runs the one thread that can go on.
    Stay,
}

/// The reason why a mode cannot be measured with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Unfit {
    /// Only uncontended modes are for controls.
    #[error("it is a control for --mode uncontended")]
    Control,
    /// It has no readers.
    #[error("it has no readers")]
    NoReaders,
    /// It has no condition variable.
    #[error("it has no condition variable")]
    NoCondvar,
}

/// The functions that measure a lock.
#[derive(Debug)]
pub(super) struct Lock {
    /// Makes the lock available, or returns the reason why that is not possible.
    pub obtain: fn() -> Result<(), String>,
    pub size_bytes: fn() -> usize,
    pub measure: fn(Run<'_>) -> Outcome,
    pub first_lock_ns: fn() -> u64,
    /// Whether it is a control, which only the uncontended modes measure.
    pub is_control: bool,
    /// Measures with readers, if the lock has readers.
    pub measure_mixed: Option<fn(Run<'_>) -> Outcome>,
    /// Measures in a case of condition variables, if the lock has one.
    pub measure_condvar: Option<fn(Run<'_>, &CondvarCase) -> Outcome>,
}

use Waiters::{Leave, Stay};

/// All peers.
#[rustfmt::skip]
pub const PEERS: &[Peer] = &[
    peer("std", "std::sync::Mutex of the compiler's standard library", Leave, of_with_condvar::<mutexes::Std>()),
    peer("parking-lot-0.12", "parking_lot::Mutex of the crate parking_lot 0.12", Leave, of_with_condvar::<mutexes::ParkingLot012>()),
    peer("parking-lot-0.13", "parking_lot::Mutex of the crate parking_lot 0.13", Leave, of_with_condvar::<mutexes::ParkingLot013>()),
    peer("usync", "usync::Mutex of the crate usync 0.2", Leave, of::<mutexes::Usync>()),
    peer("spin", "spin::Mutex of the crate spin 0.12", Stay, of::<mutexes::Spin>()),
    peer("pthread-mutex", "pthread_mutex_t of the C library, of the default kind", Leave, pthread::NORMAL),
    peer("pthread-adaptive", "pthread_mutex_t of the C library, of the kind that spins first", Leave, pthread::ADAPTIVE),
    peer("pthread-spin", "pthread_spinlock_t of the C library", Stay, pthread::SPIN),
    peer("tbb-mutex", "tbb::mutex of oneTBB (C++)", Leave, foreign::TBB_MUTEX),
    peer("tbb-spin", "tbb::spin_mutex of oneTBB (C++), which yields", Leave, foreign::TBB_SPIN),
    peer("ck-fas", "ck_spinlock_fas of Concurrency Kit (C)", Stay, foreign::CK_FAS),
    peer("ck-ticket", "ck_spinlock_ticket of Concurrency Kit (C)", Stay, foreign::CK_TICKET),
    peer("ck-mcs", "ck_spinlock_mcs of Concurrency Kit (C)", Stay, foreign::CK_MCS),
    peer("nsync", "nsync_mu of nsync (C)", Leave, foreign::NSYNC_MU),
    peer("absl", "absl::Mutex of Abseil (C++)", Leave, foreign::ABSL_MUTEX),
    peer("near-mutex-called", "our near-mutex behind function calls, to show their cost", Leave, called::NEAR_MUTEX),
    peer("bare-exchange", "control: an exchange to lock and a store to unlock, for uncontended only", Stay, bare::EXCHANGE),
    peer("bare-compare-exchange", "control: a compare-exchange to lock and a store to unlock, for uncontended only", Stay, bare::COMPARE_EXCHANGE),
    peer("std-rwlock", "std::sync::RwLock of the compiler's standard library", Leave, of_rw::<rwlocks::Std>()),
    peer("parking-lot-0.12-rwlock", "parking_lot::RwLock of the crate parking_lot 0.12", Leave, of_rw::<rwlocks::ParkingLot012>()),
    peer("parking-lot-0.13-rwlock", "parking_lot::RwLock of the crate parking_lot 0.13", Leave, of_rw::<rwlocks::ParkingLot013>()),
    peer("pthread-rwlock", "pthread_rwlock_t of the C library, of the default kind, which prefers readers", Leave, pthread::RWLOCK),
    peer("pthread-rwlock-writers", "pthread_rwlock_t of the C library, of the kind that prefers writers", Leave, pthread::RWLOCK_WRITERS),
    peer("usync-rwlock", "usync::RwLock of the crate usync 0.2", Leave, of_rw::<rwlocks::Usync>()),
    peer("spin-rwlock", "spin::RwLock of the crate spin 0.12", Stay, of_rw::<rwlocks::Spin>()),
];

const fn peer(name: &'static str, summary: &'static str, waiters: Waiters, lock: Option<Lock>) -> Peer {
    Peer { name, summary, waiters, lock }
}

const fn of<L: RawLock>() -> Option<Lock> {
    let measure = |run: Run<'_>| run.of::<SpinThenYield, L>();
    Some(Lock {
        obtain: || Ok(()),
        size_bytes: || size_of::<L>(),
        measure,
        first_lock_ns: start::first_lock_ns::<L>,
        is_control: false,
        measure_mixed: None,
        measure_condvar: None,
    })
}

const fn of_with_condvar<L: WithCondvar>() -> Option<Lock> {
    let measure_condvar = |run: Run<'_>, case: &CondvarCase| run.of_condvar::<SpinThenYield, L>(case);
    match of::<L>() {
        Some(lock) => Some(Lock { measure_condvar: Some(measure_condvar), ..lock }),
        None => None,
    }
}

const fn of_rw<L: RawRwLock>() -> Option<Lock> {
    let measure_mixed = |run: Run<'_>| run.of_mixed::<SpinThenYield, L>();
    match of::<L>() {
        Some(lock) => Some(Lock { measure_mixed: Some(measure_mixed), ..lock }),
        None => None,
    }
}

/// A peer that is not available on this system.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("peer {name}: {reason}")]
pub struct MissingPeer {
    /// The peer's name.
    pub name: &'static str,
    /// The reason, and how to solve it.
    pub reason: String,
}

impl Peer {
    /// The peer with this name.
    ///
    /// # Errors
    ///
    /// If there is no such peer.
    pub fn named(name: &str) -> Result<&'static Peer, UnknownName> {
        PEERS.iter().find(|peer| peer.name == name).ok_or_else(|| UnknownName {
            kind: "peer",
            name: name.to_owned(),
            known: names::PEERS.to_vec(),
        })
    }

    /// Whether several readers can hold it at the same time.
    pub fn has_readers(&self) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.measure_mixed.is_some())
    }

    /// The reason why the mode cannot be measured with it, if it cannot.
    pub(super) fn unfit_for(&self, mode: Mode) -> Option<Unfit> {
        let lock = self.lock.as_ref()?;
        match mode {
            Mode::Uncontended | Mode::Stores(_) => None,
            _ if lock.is_control => Some(Unfit::Control),
            Mode::Writer if lock.measure_mixed.is_none() => Some(Unfit::NoReaders),
            Mode::Condvar(_) if lock.measure_condvar.is_none() => Some(Unfit::NoCondvar),
            _ => None,
        }
    }

    /// Makes the peer available for measurements.
    ///
    /// # Errors
    ///
    /// If the peer is not available on this system, or if something has to be installed first.
    pub fn obtain(&self) -> Result<(), MissingPeer> {
        let needs_linux = || Err("it needs Linux and glibc".to_owned());
        let obtained = self.lock.as_ref().map_or_else(needs_linux, |lock| (lock.obtain)());
        obtained.map_err(|reason| MissingPeer { name: self.name, reason })
    }

    /// Size of the lock, without queue nodes.
    pub(super) fn size_bytes(&self) -> usize {
        (self.lock().size_bytes)()
    }

    /// The time of the first lock and unlock of this process, in ns.
    pub(super) fn first_lock_ns(&self) -> u64 {
        (self.lock().first_lock_ns)()
    }

    /// One run, with readers if both the situation and the lock have readers.
    pub(super) fn measure(&self, run: Run<'_>) -> Outcome {
        let Lock { measure, measure_mixed, measure_condvar, .. } = self.lock();
        if let Mode::Condvar(case) = run.mode {
            return measure_condvar.expect("the lock suits the mode")(run, case);
        }
        let with_readers = measure_mixed.filter(|_| run.has_readers());
        with_readers.unwrap_or(*measure)(run)
    }

    fn lock(&self) -> &Lock {
        self.lock.as_ref().expect("it has been obtained")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_collection::subjects::SUBJECTS;

    #[test]
    fn the_laboratory_knows_the_names_of_all_peers() {
        assert!(PEERS.iter().map(|peer| peer.name).eq(names::PEERS.iter().copied()));
    }

    #[test]
    fn no_peer_has_the_name_of_another_peer_or_of_a_lock() {
        let mut names: Vec<_> = PEERS.iter().map(|peer| peer.name).collect();
        names.extend(SUBJECTS.iter().map(|subject| subject.name));
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    pub fn holds_and_releases<L: RawLock>(is_free: impl Fn(&L) -> bool) {
        let (lock, node) = (L::default(), L::Node::default());
        for _ in 0..2 {
            assert!(is_free(&lock));
            // SAFETY: the node is new or unused, and both stay in place.
            unsafe { lock.lock(&node) };
            assert!(!is_free(&lock));
            // SAFETY: locked above.
            unsafe { lock.unlock(&node) };
        }
        assert!(is_free(&lock));
    }
}
