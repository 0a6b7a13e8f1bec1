//! Locks with readers as reader-writer locks of `lock_api`.

use nearlock_core::raw::RawRwLock;
#[cfg(feature = "lock_api_04")]
use nearlock_core::unwinding::without_unwinding;

use super::{Nodeless, Unlocked};
use crate::lock_api::{self, GuardNoSend};

// SAFETY: the lock provides exclusion and orderings (`RawRwLock` of core): no other acquisition
// exists at the same time as an exclusive one. The guard states own nothing and cannot unlock, so
// forgetting one is safe. A lock that is held, and for which no thread waits, may be moved or
// dropped (`Unlocked`). The lock's operations do not unwind.
unsafe impl<L: RawRwLock<Node = ()> + Unlocked> lock_api::RawRwLock for Nodeless<L> {
    const INIT: Self = Self(L::UNLOCKED);
    type SharedGuard = GuardNoSend;
    type ExclusiveGuard = GuardNoSend;

    #[inline]
    fn lock_shared(&self) -> GuardNoSend {
        // SAFETY: the node is (), which any number of acquisitions may share. The same holds below.
        unsafe { self.0.lock_shared(&()) };
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<GuardNoSend> {
        // SAFETY: as above.
        unsafe { self.0.try_lock_shared(&()) }.then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock_shared(&self, _guard: GuardNoSend) {
        // SAFETY: the caller holds the lock shared.
        unsafe { self.0.unlock_shared(&()) };
    }

    #[inline]
    fn lock_exclusive(&self) -> GuardNoSend {
        // SAFETY: as above.
        unsafe { self.0.lock(&()) };
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<GuardNoSend> {
        // SAFETY: as above.
        unsafe { self.0.try_lock(&()) }.then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, _guard: GuardNoSend) {
        // SAFETY: the caller holds the lock exclusively.
        unsafe { self.0.unlock(&()) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.0.is_locked_exclusive()
    }
}

// SAFETY: core's `downgrade` lets no other writer in between.
unsafe impl<L: RawRwLock<Node = ()> + Unlocked> lock_api::RawRwLockDowngrade for Nodeless<L> {
    #[inline]
    unsafe fn downgrade(&self, guard: GuardNoSend) -> GuardNoSend {
        // SAFETY: the caller holds the lock exclusively.
        unsafe { self.0.downgrade(&()) };
        guard
    }
}

// SAFETY: as for version 0.5. A panic in an acquisition ends the process, as in the mutexes of this
// version.
#[cfg(feature = "lock_api_04")]
unsafe impl<L: RawRwLock<Node = ()> + Unlocked> lock_api_04::RawRwLock for Nodeless<L> {
    const INIT: Self = Self(L::UNLOCKED);
    type GuardMarker = lock_api_04::GuardNoSend;

    #[inline]
    fn lock_shared(&self) {
        // SAFETY: as for version 0.5. The same holds below.
        without_unwinding(|| unsafe { self.0.lock_shared(&()) });
    }

    #[inline]
    fn try_lock_shared(&self) -> bool {
        // SAFETY: as above.
        unsafe { self.0.try_lock_shared(&()) }
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        // SAFETY: as above.
        unsafe { self.0.unlock_shared(&()) };
    }

    #[inline]
    fn lock_exclusive(&self) {
        // SAFETY: as above.
        without_unwinding(|| unsafe { self.0.lock(&()) });
    }

    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        // SAFETY: as above.
        unsafe { self.0.try_lock(&()) }
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        // SAFETY: as above.
        unsafe { self.0.unlock(&()) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.0.is_locked_exclusive()
    }
}

// SAFETY: as for version 0.5.
#[cfg(feature = "lock_api_04")]
unsafe impl<L: RawRwLock<Node = ()> + Unlocked> lock_api_04::RawRwLockDowngrade for Nodeless<L> {
    #[inline]
    unsafe fn downgrade(&self) {
        // SAFETY: the caller holds the lock exclusively.
        unsafe { self.0.downgrade(&()) };
    }
}
