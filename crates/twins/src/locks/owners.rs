//! Locks that name their owner: those of FreeBSD, without their chains and their ways of waiting.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::thread::yield_now;

use nearlock::raw::{RawLock, RawTryLock};
use nearlock_core::schedule::{Schedule, Sections};
use nearlock_core::shared_holds::{SharedHolds, SharedLock};
use nearlock_os::Os;

/// FreeBSD's mutex: a word that names the owner, and one for how often the owner has locked it
/// again.
#[derive(Default)]
pub struct Owned {
    word: AtomicU32,
    depth: AtomicU32,
}

impl Owned {
    /// The caller's id, as it is in the word.
    #[inline]
    fn me() -> u32 {
        <Os>::thread_id().get() << 3
    }
}

impl Owned {
    #[cold]
    #[inline(never)]
    fn lock_slow(&self, me: u32, _found: u32) {
        while self.word.compare_exchange(0, me, Acquire, Relaxed).is_err() {
            yield_now();
        }
    }

    #[cold]
    #[inline(never)]
    fn unlock_slow(&self, me: u32, _found: u32) {
        while self.depth.load(Relaxed) == 0 && self.word.compare_exchange(me, 0, Release, Relaxed).is_err() {
            yield_now();
        }
    }
}

// SAFETY: only the exchange from 0 locks.
unsafe impl RawLock for Owned {
    type Node = ();
    #[inline]
    unsafe fn lock(&self, _node: &()) {
        let me = Self::me();
        if let Err(found) = self.word.compare_exchange_weak(0, me, Acquire, Relaxed) {
            self.lock_slow(me, found);
        }
    }
    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        let me = Self::me();
        if let Err(found) = self.word.compare_exchange_weak(me, 0, Release, Relaxed) {
            self.unlock_slow(me, found);
        }
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for Owned {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        let me = Self::me();
        loop {
            match self.word.compare_exchange_weak(0, me, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(0) => {}
                Err(_) => return false,
            }
        }
    }
}

/// The same if the owner is in a section, and no other thread stores to the word: FreeBSD's spin
/// mutex.
#[derive(Default)]
pub struct SpinOwned {
    word: AtomicU32,
    depth: AtomicU32,
}

impl SpinOwned {
    #[cold]
    #[inline(never)]
    fn lock_slow(&self, me: u32, _found: u32) {
        while self.word.compare_exchange(0, me, Acquire, Relaxed).is_err() {
            yield_now();
        }
    }
}

// SAFETY: only the exchange from 0 locks.
unsafe impl RawLock for SpinOwned {
    type Node = ();
    #[inline]
    unsafe fn lock(&self, _node: &()) {
        let me = <Os>::thread_id().get();
        <Os>::enter_section();
        if let Err(found) = self.word.compare_exchange_weak(0, me, Acquire, Relaxed) {
            self.lock_slow(me, found);
        }
    }
    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        let depth = self.depth.load(Relaxed);
        if depth != 0 {
            self.depth.store(depth - 1, Relaxed);
        } else {
            self.word.store(0, Release);
        }
        <Os>::leave_section();
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for SpinOwned {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        let me = <Os>::thread_id().get();
        <Os>::enter_section();
        while self.word.load(Relaxed) == 0 {
            match self.word.compare_exchange_weak(0, me, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(0) => {}
                Err(_) => break,
            }
        }
        <Os>::leave_section();
        false
    }
}

/// FreeBSD's reader-writer locks for a writer: a word that names the writer.
#[derive(Default)]
pub struct Written {
    word: AtomicU64,
    depth: AtomicU32,
}

impl Written {
    /// A thread's id, as it is in the word.
    #[inline]
    fn owner(me: u32) -> u64 {
        u64::from(me) << 5 | 1
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self, me: u32, _found: u64) {
        while self.word.compare_exchange(0, Self::owner(me), Acquire, Relaxed).is_err() {
            yield_now();
        }
    }

    #[cold]
    #[inline(never)]
    fn unlock_slow(&self, me: u32, _found: u64) {
        while self.depth.load(Relaxed) == 0
            && self.word.compare_exchange(Self::owner(me), 0, Release, Relaxed).is_err()
        {
            yield_now();
        }
    }
}

// SAFETY: only the exchange from 0 locks.
unsafe impl RawLock for Written {
    type Node = ();
    #[inline]
    unsafe fn lock(&self, _node: &()) {
        let me = <Os>::thread_id().get();
        if let Err(found) = self.word.compare_exchange_weak(0, Self::owner(me), Acquire, Relaxed) {
            self.lock_slow(me, found);
        }
    }
    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        let me = <Os>::thread_id().get();
        if let Err(found) = self.word.compare_exchange_weak(Self::owner(me), 0, Release, Relaxed) {
            self.unlock_slow(me, found);
        }
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for Written {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        let me = <Os>::thread_id().get();
        loop {
            match self.word.compare_exchange_weak(0, Self::owner(me), Acquire, Relaxed) {
                Ok(_) => return true,
                Err(0) => {}
                Err(_) => return false,
            }
        }
    }
}

/// The same for a lock whose unlock checks in which way it is held: FreeBSD's lockmgr.
#[derive(Default)]
pub struct Managed(Written);

impl Managed {
    /// The bits of waiters, and one sharer.
    const WAITERS: u64 = 6;
    const SHARER: u64 = 32;

    /// The unlock of the last sharer if there are waiters.
    #[cold]
    #[inline(never)]
    fn unlock_shared_slow(&self) {
        self.0.word.fetch_sub(Self::SHARER, Release);
    }

    #[cold]
    #[inline(never)]
    fn unlock_slow(&self) {
        self.0.unlock_slow(<Os>::thread_id().get(), 0);
    }

    #[inline]
    fn unlock_shared(&self, mut seen: u64) {
        <Os>::with_shared_holds(SharedLock::LockMgr, |holds| holds.set(holds.get().saturating_sub(1)));
        loop {
            if seen < 2 * Self::SHARER && seen & Self::WAITERS != 0 {
                return self.unlock_shared_slow();
            }
            match self.0.word.compare_exchange_weak(seen, seen - Self::SHARER, Release, Relaxed) {
                Ok(_) => return,
                Err(found) => seen = found,
            }
        }
    }
}

// SAFETY: only the exchange from 0 locks.
unsafe impl RawLock for Managed {
    type Node = ();
    #[inline]
    unsafe fn lock(&self, node: &()) {
        // SAFETY: upheld by the caller.
        unsafe { self.0.lock(node) };
    }
    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        let seen = self.0.word.load(Relaxed);
        if seen & 1 == 0 {
            return self.unlock_shared(seen);
        }
        let owned = Written::owner(<Os>::thread_id().get());
        if seen != owned || self.0.word.compare_exchange_weak(owned, 0, Release, Relaxed).is_err() {
            self.unlock_slow();
        }
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for Managed {
    #[inline]
    unsafe fn try_lock(&self, node: &()) -> bool {
        // SAFETY: upheld by the caller.
        unsafe { self.0.try_lock(node) }
    }
}
