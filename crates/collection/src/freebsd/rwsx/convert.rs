//! Operations other than ordinary acquisitions and unlocks.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::{DESTROYED, FREE, Kind, RECURSED, RwSx, WAITERS, is_free, owned_by, readers_of, writer_of};
use crate::freebsd::FreeBsdPlatform;
use crate::freebsd::exchange::Exchange;
use crate::freebsd::mtx::InUse;
use crate::freebsd::recursion::Recursion;
use crate::freebsd::tuning::Tuning;
use crate::parking::Limit;
use crate::platform::Atomic;
use crate::raw::RawTryLock;
use crate::schedule::ThreadId;
use crate::shared_holds as holds;

impl<P: FreeBsdPlatform, T: Tuning, K: Kind> RwSx<P, T, K> {
    /// As [`lock`](crate::raw::RawLock::lock), but a caller that writes the lock locks it again, at
    /// most `2^32 - 1` times. It has to unlock it as often.
    ///
    /// # Safety
    ///
    /// As [`lock`](crate::raw::RawLock::lock). The critical sections of one thread may be nested.
    #[inline]
    pub unsafe fn lock_recursive(&self) {
        let acquired = self.lock_with(Recursion::Permitted, &Limit::NONE);
        debug_assert!(acquired.is_ok(), "no limit");
    }

    /// As [`lock_recursive`](Self::lock_recursive), if it is free or the caller writes it.
    ///
    /// # Safety
    ///
    /// As for [`lock_recursive`](Self::lock_recursive), if it returns true.
    #[inline]
    pub unsafe fn try_lock_recursive(&self) -> bool {
        if self.is_owned() {
            self.recurse();
            return true;
        }
        // SAFETY: upheld by the caller.
        unsafe { self.try_lock(&()) }
    }

    /// Makes the caller's share an exclusive hold, if no other thread reads. Overtakes waiting
    /// writers. Never waits. If it returns false, the caller keeps its share.
    ///
    /// # Safety
    ///
    /// The caller holds the lock shared, once.
    #[inline]
    pub unsafe fn try_upgrade(&self) -> bool {
        let me = P::thread_id();
        let mut seen = self.word.load(Relaxed);
        while readers_of(seen) == 1 {
            // 1 reader -> t; waiter bits stay, and SPINNER is cleared.
            // Ordering: Acquire, pairs with the Releases of readers in `drop_reader`: their
            // critical sections happen before ours.
            match self.word.exchange::<T>(seen, owned_by(me) | seen & WAITERS, Acquire) {
                Ok(()) => {
                    holds::remove::<P>(K::HOLDS);
                    return true;
                }
                Err(found) => seen = self.word.after_failure::<T>(found),
            }
        }
        false
    }

    /// The writer. Stale by the time it is known, unless it is the caller.
    pub fn writer(&self) -> Option<ThreadId> {
        writer_of(self.word.load(Relaxed))
    }

    /// How often the caller, which must be the writer, has locked it again.
    pub fn depth(&self) -> u32 {
        self.depth.get()
    }

    /// Whether the caller writes it.
    #[inline]
    pub fn is_owned(&self) -> bool {
        writer_of(self.word.load(Relaxed)) == Some(P::thread_id())
    }

    /// Whether the caller writes it, and has locked it more than once.
    #[inline]
    pub fn is_recursed(&self) -> bool {
        self.is_owned() && self.word.load(Relaxed) & RECURSED != 0
    }

    /// Ends the use of the lock. Debug assertions detect a later use.
    ///
    /// # Errors
    ///
    /// Why it cannot be destroyed. Unlike a mutex, its holder cannot do that either.
    pub fn destroy(&self) -> Result<(), InUse> {
        // Relaxed: a thread that frees it knows by other means that it is out of use.
        match self.word.compare_exchange(FREE, DESTROYED, Relaxed, Relaxed) {
            Ok(_) => Ok(()),
            Err(DESTROYED) => Err(InUse::Destroyed),
            Err(found) if found & RECURSED != 0 && writer_of(found) == Some(P::thread_id()) => {
                Err(InUse::Recursed)
            }
            Err(found) if is_free(found) || found & WAITERS != 0 => Err(InUse::Contested),
            Err(_) => Err(InUse::Held),
        }
    }
}
