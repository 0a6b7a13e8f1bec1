//! The raw mutex.

use std::time::{Duration, Instant};

use nearlock_core::near::mutex::NearMutex;
use nearlock_core::parking::{Limit, RawTimedLock};
use nearlock_core::raw::RawTryLock;
use nearlock_os::Os;

use super::known::Known;
use super::waits::{Awaited, Kind, wait};
use crate::lock_api::{self, GuardNoSend};
use crate::raw::timed::{until, within};
use crate::raw::{Nodeless, Unlocked};

/// A raw lock that knows its holder, and whose waits are in the list that `check_deadlock` reads.
/// Made from any lock of this crate whose waits can be cancelled.
///
/// ```
/// use nearlock::lock_api::Mutex;
/// use nearlock::deadlock::RawMutex;
///
/// let mutex = Mutex::<RawMutex, u32>::new(1);
/// *mutex.lock() += 1;
/// assert_eq!(mutex.into_inner(), 2);
/// ```
#[derive(Default)]
pub struct Detected<L> {
    pub(super) lock: Nodeless<L>,
    pub(super) known: Known,
}

/// The raw lock of [`Mutex`](super::Mutex).
pub type RawMutex = Detected<NearMutex<Os>>;

impl<L: RawTimedLock<Node = (), Platform = Os> + RawTryLock + Unlocked> Detected<L> {
    /// Notes the acquisition of the caller, if there is one.
    #[inline]
    pub(super) fn noted(&self, is_locked: bool) -> Option<GuardNoSend> {
        is_locked.then(|| {
            self.known.note_exclusive();
            GuardNoSend::new()
        })
    }

    #[inline]
    pub(super) fn try_exclusive(&self) -> bool {
        // SAFETY: the node is (), which any number of acquisitions may share.
        unsafe { self.lock.0.try_lock(&()) }
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self) {
        let awaited = Awaited { known: &self.known, closable: None };
        wait(awaited, Kind::Exclusive, |limit: &Limit<'_, Os>| self.lock.lock_within(limit));
    }
}

// SAFETY: it is the lock inside. The notes do not decide whether the lock is held. As there,
// nothing points into the lock unless a thread waits for it.
unsafe impl<L: RawTimedLock<Node = (), Platform = Os> + RawTryLock + Unlocked> lock_api::RawMutex
    for Detected<L>
{
    #[allow(clippy::declare_interior_mutable_const)] // as in the trait
    const INIT: Self = Self { lock: <Nodeless<L> as lock_api::RawMutex>::INIT, known: Known::new() };
    type Guard = GuardNoSend;

    #[inline]
    fn lock(&self) -> GuardNoSend {
        if !self.try_exclusive() {
            self.lock_slow();
        }
        self.known.note_exclusive();
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardNoSend> {
        self.noted(self.try_exclusive())
    }

    #[inline]
    unsafe fn unlock(&self, guard: GuardNoSend) {
        self.known.note_release();
        // SAFETY: upheld by the caller.
        unsafe { lock_api::RawMutex::unlock(&self.lock, guard) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        lock_api::RawMutex::is_locked(&self.lock)
    }
}

// SAFETY: as above. A wait with a limit ends by itself, so it is not in the list.
unsafe impl<L: RawTimedLock<Node = (), Platform = Os> + RawTryLock + Unlocked> lock_api::RawMutexTimed
    for Detected<L>
{
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.noted(self.lock.lock_within(&within(timeout)))
    }

    fn try_lock_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        self.noted(self.lock.lock_within(&until(timeout)))
    }
}

// SAFETY: as above.
unsafe impl<L> lock_api::RawMutexFair for Detected<L>
where
    L: RawTimedLock<Node = (), Platform = Os> + RawTryLock + Unlocked,
    Nodeless<L>: lock_api::RawMutexFair<Guard = GuardNoSend>,
{
    #[inline]
    unsafe fn unlock_fair(&self, guard: GuardNoSend) {
        self.known.note_release();
        // SAFETY: upheld by the caller.
        unsafe { lock_api::RawMutexFair::unlock_fair(&self.lock, guard) };
    }
}
