//! What is neither an ordinary acquisition nor a release.

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
    /// As [`lock`](crate::raw::RawLock::lock); or, if the caller writes it, counts: as many unlocks
    /// are needed. At most 2^32 - 1 times.
    ///
    /// # Safety
    ///
    /// As [`lock`](crate::raw::RawLock::lock). The sections of one thread may lie in each other.
    #[inline]
    pub unsafe fn lock_recursive(&self) {
        let acquired = self.lock_with(Recursion::Permitted, &Limit::NONE);
        debug_assert!(acquired.is_ok(), "no limit");
    }

    /// As [`lock_recursive`](Self::lock_recursive), if it is free or the caller writes it.
    ///
    /// # Safety
    ///
    /// As there, if it returns true.
    #[inline]
    pub unsafe fn try_lock_recursive(&self) -> bool {
        if self.is_owned() {
            self.recurse();
            return true;
        }
        // SAFETY: the caller's.
        unsafe { self.try_lock(&()) }
    }

    /// Makes the caller's share an exclusive acquisition, if nobody else reads; goes past writers
    /// that wait. Never waits. If it returns false, the caller has its share as before.
    ///
    /// # Safety
    ///
    /// The caller holds the lock shared, once.
    #[inline]
    pub unsafe fn try_upgrade(&self) -> bool {
        let me = P::thread_id();
        let mut seen = self.word.load(Relaxed);
        while readers_of(seen) == 1 {
            // 1 reader -> t; waiters stay, and SPINNER goes.
            // Ordering: Acquire, pairs with the Releases of readers in `drop_reader`: their sections happen
            // before ours.
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

    /// Who writes it. Stale by the time it is known, unless that is the caller.
    pub fn writer(&self) -> Option<ThreadId> {
        writer_of(self.word.load(Relaxed))
    }

    /// How often the caller, who must write it, has locked it again.
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

    /// From now on it must not be used any more, which debug assertions see to.
    ///
    /// # Errors
    ///
    /// Why it cannot be destroyed: unlike a mutex not by its holder either.
    pub fn destroy(&self) -> Result<(), InUse> {
        // Relaxed: whoever frees it knows by other means that it is out of use.
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
