//! The locks that can be measured.

use nearlock_collection::subjects::{LockVisitor, Subject};
use nearlock_core::native::Wait;
use nearlock_core::near::mutex::NearMutex;
use nearlock_core::raw::RawTryLock;
use nearlock_core::settings::Setting;
use nearlock_os::{Os, OutOfRange, SpinThenYield};

use super::BenchError;
use super::atomics;
use super::mode::{Mode, Point};
use super::peers::{PEERS, Peer, Unfit};
use super::run::Run;
use super::sample::Outcome;
use super::start::{self, FirstLock};
use super::wait::SpinWhileMeasured;
use crate::switched::switched;
use crate::torture::Waiting;
use nearlock_lab::locks::{self, LockError};
use nearlock_lab::names::UnknownName;

/// The lock of the list that has a condition variable.
const NEAR_MUTEX: &str = "near-mutex";

/// A lock of the list, or a peer.
#[derive(Clone, Copy, Debug)]
pub enum Candidate {
    /// A lock of this library.
    Lock(&'static Subject),
    /// A lock of another library.
    Peer(&'static Peer),
}

impl Candidate {
    /// The peer with this name, or the lock with this notation.
    ///
    /// # Errors
    ///
    /// If neither exists.
    pub fn named(text: &str) -> Result<Self, LockError> {
        if let Ok(peer) = Peer::named(text) {
            return Ok(Self::Peer(peer));
        }
        locks::lock(text).map(Self::Lock).map_err(|error| match error {
            LockError::Unknown(UnknownName { name, known, .. }) => LockError::Unknown(UnknownName {
                kind: "lock or peer",
                name,
                known: known.into_iter().chain(PEERS.iter().map(|peer| peer.name)).collect(),
            }),
            error => error,
        })
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lock(lock) => lock.name,
            Self::Peer(peer) => peer.name,
        }
    }

    /// Whether several readers can hold it at the same time.
    pub fn has_readers(self) -> bool {
        match self {
            Self::Lock(lock) => lock.is_rw(),
            Self::Peer(peer) => peer.has_readers(),
        }
    }

    /// The reason why the mode cannot be measured with it, if it cannot.
    pub fn unfit_for(self, mode: Mode) -> Option<Unfit> {
        match (self, mode) {
            (Self::Lock(lock), Mode::Condvar(_)) if lock.name != NEAR_MUTEX => Some(Unfit::NoCondvar),
            (Self::Lock(lock), Mode::Writer) if !lock.is_rw() => Some(Unfit::NoReaders),
            (Self::Lock(_), _) => None,
            (Self::Peer(peer), mode) => peer.unfit_for(mode),
        }
    }

    /// Whether the mode can be measured with it.
    pub fn suits(self, mode: Mode) -> bool {
        self.unfit_for(mode).is_none()
    }

    /// Size of the lock, without queue nodes.
    pub(super) fn size_bytes(self) -> usize {
        match self {
            Self::Lock(lock) => lock.visit::<Os, _>(Size),
            Self::Peer(peer) => peer.size_bytes(),
        }
    }

    /// Atomic read-modify-writes of an uncontended lock and unlock. Those of peers are not counted
    /// here.
    pub(super) fn rmw_per_pair(self, point: Point, settings: [u64; Setting::COUNT]) -> Option<f64> {
        match (self, point.read_percent) {
            (Self::Lock(lock), Some(100)) if lock.is_rw() => atomics::per_shared_pair(lock, settings),
            (Self::Lock(lock), _) => atomics::per_pair(lock, settings),
            (Self::Peer(_), _) => None,
        }
    }

    /// The time of the first lock and unlock of this process, in ns. Starts threads that sleep
    /// until the process ends.
    ///
    /// # Errors
    ///
    /// If a setting of the lock is out of its limits.
    pub fn first_lock_ns(self) -> Result<u64, BenchError> {
        match self {
            Self::Lock(lock) => Ok(with_settings(lock, || lock.visit::<Os, _>(FirstLock))?),
            Self::Peer(peer) => Ok(peer.first_lock_ns()),
        }
    }

    /// One run, with readers if both the situation and the lock have readers.
    pub(super) fn measure(self, run: Run<'_>) -> Outcome {
        if run.mode == Mode::Start {
            return start::measure(self.name(), run.helper, run.window);
        }
        match (self, run.waiting) {
            (Self::Lock(lock), Waiting::Spin) => visit::<SpinWhileMeasured>(lock, run),
            (Self::Lock(lock), Waiting::Yield) => visit::<SpinThenYield>(lock, run),
            (Self::Peer(peer), _) => peer.measure(run),
        }
    }
}

/// Measures a lock of the list with its own settings.
fn visit<W: Wait>(lock: &Subject, run: Run<'_>) -> Outcome {
    with_settings(lock, || match run.mode {
        Mode::Condvar(case) => run.of_condvar::<W, NearMutex<Os<W>>>(case),
        _ => lock.visit::<Os<W>, _>(run),
    })?
}

/// Calls `f` with the settings and switches of this lock. Restores the settings of all locks
/// afterwards.
fn with_settings<R>(lock: &Subject, f: impl FnOnce() -> R) -> Result<R, OutOfRange> {
    let of_all: Vec<_> =
        lock.set.iter().map(|&(setting, _)| (setting, nearlock_os::setting(setting))).collect();
    let set = |values: &[(Setting, u64)]| {
        values.iter().try_for_each(|&(setting, value)| nearlock_os::set_setting(setting, value))
    };
    set(lock.set)?;
    let result = switched(lock, f);
    set(&of_all)?;
    Ok(result)
}

/// The size of a lock.
struct Size;

impl LockVisitor<Os> for Size {
    type Output = usize;
    fn visit<L: RawTryLock>(self) -> usize {
        size_of::<L>()
    }
}
