//! The light entry points: the methods of the lock traits.

use core::sync::atomic::Ordering::Relaxed;

use super::options::{Failure, Held, NoInterlock, Options, Sharing, Timeout};
use super::{EXCLUSIVE, FREE, LockMgr, is_free};
use crate::freebsd::FreeBsdPlatform;
use crate::freebsd::tuning::Tuning;
use crate::parking::{GaveUp, Limit, RawTimedLock, RawTimedRwLock};
use crate::platform::{Atomic, Platform};
use crate::raw::{RawLock, RawRwLock, RawTryLock};
use crate::schedule::ThreadId;

/// Panics on a deadlock, which a light entry point cannot report to its caller. The kernel panics
/// too, if an exclusive holder locks exclusively.
#[cold]
#[track_caller]
fn refused() -> ! {
    panic!("acquires a lock that it holds already")
}

impl<P: FreeBsdPlatform, T: Tuning> LockMgr<P, T> {
    /// [`own_slow`](Self::own_slow) without an interlock, so that the fast path need not pass one.
    #[cold]
    #[inline(never)]
    fn own_light_slow(&self, me: ThreadId, found: u64) {
        if self.own_slow(me, found, &Options::LIGHT, &mut Held::new(NoInterlock)).is_err() {
            refused();
        }
    }
}

// SAFETY: invariant 1; Release and Acquire on the word order the critical sections.
unsafe impl<P: FreeBsdPlatform, T: Tuning> RawLock for LockMgr<P, T> {
    type Node = ();

    /// `lockmgr_xlock`, which spins.
    #[inline]
    unsafe fn lock(&self, _node: &()) {
        let me = P::thread_id();
        if let Err(found) = self.own_fast(me) {
            self.own_light_slow(me, found);
        }
    }

    /// `lockmgr_unlock`, which finds out in which way the lock is held.
    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        self.release();
    }
}

// SAFETY: as above.
unsafe impl<P: FreeBsdPlatform, T: Tuning> RawTryLock for LockMgr<P, T> {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        let me = P::thread_id();
        loop {
            match self.own_fast(me) {
                Ok(()) => return true,
                // The exchange failed spuriously.
                Err(FREE) => {}
                Err(_) => return false,
            }
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        !is_free(self.word.load(Relaxed))
    }
}

// SAFETY: the word counts a sharer while it shares, and no thread holds it exclusively then
// (invariant 1).
unsafe impl<P: FreeBsdPlatform, T: Tuning> RawRwLock for LockMgr<P, T> {
    /// `lockmgr_slock`, which spins. Not for locks that cannot be shared.
    #[inline]
    unsafe fn lock_shared(&self, _node: &()) {
        debug_assert!(self.attributes().sharing == Sharing::Allowed, "shares a lock that cannot be shared");
        if self.share(&Options::LIGHT, &mut Held::new(NoInterlock)).is_err() {
            refused();
        }
    }

    #[inline]
    unsafe fn try_lock_shared(&self, _node: &()) -> bool {
        debug_assert!(self.attributes().sharing == Sharing::Allowed, "shares a lock that cannot be shared");
        self.share(&Options::new().no_wait(), &mut Held::new(NoInterlock)).is_ok()
    }

    #[inline]
    unsafe fn unlock_shared(&self, _node: &()) {
        self.release();
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.word.load(Relaxed) & EXCLUSIVE != 0
    }

    #[inline]
    unsafe fn downgrade(&self, _node: &()) {
        self.downgrade_exclusive();
    }
}

/// The options of the light entry points, with a limit.
const fn light<'a, P: Platform>(limit: &Limit<'a, P>) -> Options<'a, P> {
    let timeout = match limit.until_ns {
        Some(ns) => Timeout::At(ns),
        None => Timeout::Never,
    };
    Options { cancellation: limit.cancellation, timeout, ..Options::LIGHT }
}

/// Why a wait within a limit ended.
fn gave_up(why: Failure) -> GaveUp {
    match why {
        Failure::TimedOut => GaveUp::TimedOut,
        Failure::Interrupted => GaveUp::Cancelled,
        Failure::Busy | Failure::SleepFail | Failure::Deadlock => refused(),
    }
}

// SAFETY: a thread that gives up is in no queue any more, and does not have the lock.
unsafe impl<P: FreeBsdPlatform, T: Tuning> RawTimedLock for LockMgr<P, T> {
    type Platform = P;

    #[inline]
    unsafe fn lock_within(&self, _node: &(), limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        self.own(&light(limit), &mut Held::new(NoInterlock)).map_err(gave_up)
    }
}

// SAFETY: as above.
unsafe impl<P: FreeBsdPlatform, T: Tuning> RawTimedRwLock for LockMgr<P, T> {
    #[inline]
    unsafe fn lock_shared_within(&self, _node: &(), limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        self.share(&light(limit), &mut Held::new(NoInterlock)).map_err(gave_up)
    }
}
