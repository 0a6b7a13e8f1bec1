//! Reader-writer lock whose readers share no cache line: the lock for data that are mostly read.
//!
//! A read lock of most locks writes to the lock. So readers take its cache line from each other,
//! and with more processors they do not read more often. Here a reader writes only to a line of its
//! own thread ([`lines`]): it *publishes* the lock's id there, and then looks whether a writer has
//! the lock. A writer takes the lock, and then looks for the id in the lines of all threads. This
//! is Dekker's pattern. What it costs to order the two is a matter of the lock's *mode*:
//!
//! | mode | a reader | a writer |
//! |---|---|---|
//! | counted | takes the mutex (`alone.rs`), or adds 1 to a count in the lock | reads the count |
//! | fenced | publishes, passes a strong fence, looks | reads the count and the lines |
//! | biased | publishes, passes the light side, looks | passes the heavy side, reads as if fenced |
//!
//! ```text
//! mutex    held by the writer; by an upgradable reader; open, by a reader in the counted mode; by
//!          any other reader for a moment. A [`NearMutex`]
//! mode     bits 0-1  0 counted | 1 fenced | 2 biased
//!          bit 2     open: the holder of the mutex lets readers in
//!          bit 3     draining: a writer waits for readers
//! readers  bits 0-23 how many readers are counted
//!          bits 24-29 how many writers wait for the mutex, up to 63 of them
//!          bit 30    readers park on the word of the mutex
//!          bit 31    a writer sleeps until no reader is counted
//! reads    bits 0-15 how many reads there were, roughly; they wrap around
//!          bits 16-31 how many of them had the mutex
//! spent    bits 0-15 how many of them writes have spent; bits 16-31 the price (`rwlock/price.rs`)
//! id       0 before the first read; then a number that no other lock of the process ever has
//! revoked  when a writer last passed the heavy side, in units of 1024 ns
//!
//!  mode     counted -> fenced   there are more reads than pay for the writes (`rwlock/price.rs`)
//!           fenced -> biased    there are so many that at least `biased-reads` (a setting) have
//!                               followed the last write, and no heavy side for `REVOKED_UNITS`
//!           biased -> fenced    by a writer
//!           fenced -> counted   by a writer for which too few reads pay
//!           open                by an upgradable reader, and by a reader that has the mutex closed
//!           draining            by a writer that is about to sleep, until it enters or gives up
//! ```
//! Only the holder of the mutex writes to the mode.
//!
//! **Exclusion.** A reader that has published or is counted looks at the mutex, and then at the
//! mode. It is in if the mutex is free, and the mode is the one in which it has published, or a
//! stronger one in the order biased, fenced. A counted reader is in whatever the mode is.
//!
//! 1. *Counted, and fenced.* The reader's store comes before its strong fence, and its look at the
//!    mutex after that. The writer has taken the mutex before its own strong fence, and reads the
//!    count and the lines after that. So the reader sees that the mutex is held, or the writer sees
//!    the reader.
//! 2. *Biased.* The same with an asymmetric fence, if the writer passes its heavy side. It does
//!    unless it finds the mode counted or fenced. The mode changes only under the mutex. A reader
//!    that finds the mode biased, and the mutex free before, has looked before a writer changed the
//!    mode. That writer passes the heavy side after the change. So it sees the reader.
//! 3. *An old look.* Let a reader find the mutex free, before a writer takes it. The reader then
//!    reads the mode, which that writer may have changed. If the reader finds the mutex free by the
//!    release of that writer, it sees that change, since the look is an Acquire. So it does not
//!    enter in a mode in which later writers do not look for it.
//! 4. *Open, or draining.* Before a writer enters, it or another thread ends that, passes a fence,
//!    and reads the count again. A counted reader that has found the lock open or draining has
//!    passed its fence before. So it is seen.
//! 5. *A reader that has the mutex.* A writer waits for the mutex. If it was taken over from the
//!    reader, the reader is counted by then. A counted reader that has found the mutex open has
//!    passed its fence before, as in 4.
//!
//! **Nested reads** never wait. A slot says which lock the thread holds. A thread that has more
//! holds than slots only knows their number. As long as that is not 0, it passes writers that wait
//! for readers (*draining*), since they may wait for itself. So does a thread without a line, and a
//! *recursive* reader (`rwlock/recursive.rs`).
//!
//! **Reads that any thread may release** (`counted.rs`) are counted, and noted in no line. Such a
//! nested read waits for a waiting writer, and so for itself. In a lock whose reads are all of this
//! kind the mode stays counted.
//!
//! **Ids, not addresses.** A reader may leave its id behind: its guard was forgotten, and the lock
//! dropped. If lines had addresses, the writer of a new lock at that address would wait for ever.
//!
//! **The lock may be gone.** A reader that has left does not access the lock: the next writer may
//! free its memory. It looks at its own line only, where a writer that sleeps has left a mark. A
//! writer that has released the mutex looks at a table of the platform.
//!
//! **Patents.** See docs/internals/rwlock.md. In the locks that these protect, a reader looks at a
//! mark of the lock, and publishes only if that says so. Here a reader publishes first.
//!
//! Sources: own. Readers with lines of their own: brlock of Linux 2.4, 1999; Dice and Shavit,
//! "TLRW: return of the read-write lock", SPAA 2010. The asymmetric fence: Dice, Huang, Yang,
//! "Asymmetric Dekker synchronization", 2001. Readers that publish, and writers that force them to
//! be seen: Liu, Zhang, Chen, "Scalable read-mostly synchronization using passive reader-writer
//! locks", USENIX ATC 2014.

mod alone;
mod counted;
pub mod lines;
mod mode;
mod price;
mod reading;
mod recursive;
mod upgrading;
mod writing;

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use self::lines::{IN, ReaderLines};
use self::mode::{BIASED, MODE, OPEN};
use self::reading::Releaser;
use super::NearPlatform;
use super::mutex::NearMutex;
use crate::parking::{GaveUp, Limit, RawTimedLock, RawTimedRwLock};
use crate::platform::{Atomic, Platform, Settings};
use crate::raw::{RawLock, RawRwLock, RawTryLock};
use crate::schedule::ThreadId;

/// The capabilities that the lock needs of a platform.
pub trait RwLockPlatform: NearPlatform + ReaderLines + Settings {}

impl<P: NearPlatform + ReaderLines + Settings> RwLockPlatform for P {}

/// See the [module](self). 32 bytes natively; all zero: unlocked.
#[repr(C)]
pub struct NearRwLock<P: Platform> {
    mutex: NearMutex<P>,
    mode: P::U32,
    readers: P::U32,
    reads: P::U32,
    id: P::U64,
    revoked: P::U32,
    spent: P::U32,
}

impl<P: Platform> NearRwLock<P> {
    /// An unlocked lock, in `const`.
    pub const fn new() -> Self {
        Self {
            mutex: NearMutex::new(),
            mode: Atomic::ZERO,
            readers: Atomic::ZERO,
            reads: Atomic::ZERO,
            id: Atomic::ZERO,
            revoked: Atomic::ZERO,
            spent: Atomic::ZERO,
        }
    }
}

impl<P: Platform> Default for NearRwLock<P> {
    fn default() -> Self {
        Self {
            mutex: NearMutex::default(),
            mode: Atomic::new(0),
            readers: Atomic::new(0),
            reads: Atomic::new(0),
            id: Atomic::new(0),
            revoked: Atomic::new(0),
            spent: Atomic::new(0),
        }
    }
}

impl<P: RwLockPlatform> NearRwLock<P> {
    /// Whether this thread keeps readers out, for sure: it has the lock exclusively, or waits until
    /// the readers that are in have left. The result may be out of date at once, unless the thread
    /// does not run.
    pub fn is_closed_by(&self, thread: ThreadId) -> bool {
        !self.is_open() && self.mutex.is_held_by(thread)
    }
}

impl<P: RwLockPlatform> NearRwLock<P> {
    /// Whether writers wait for a reader with the mutex, and so keep readers out that come. The
    /// result may be out of date at once, unless these threads do not run.
    #[inline(always)]
    pub fn is_closed_by_waiters(&self) -> bool {
        self.has_waiting_writers() && self.mutex.is_open()
    }

    /// Whether no writer has the lock, and the mode is at least this one.
    #[inline(always)]
    fn is_free_in(&self, mode: u32) -> bool {
        // Ordering: Acquire, pairs with the Release in `set_mode`: the sections of writers before
        // the change of the mode happen before ours. (`is_free` does the same for the last one.)
        self.mutex.is_free() && self.mode.load(Acquire) & MODE >= mode
    }

    /// Publishes the lock, and enters if no writer has the lock, and that takes no look at other
    /// slots than the first. Otherwise nothing has changed.
    #[inline(always)]
    fn attempt(&self) -> bool {
        let id = self.id.load(Relaxed);
        let line = P::line();
        let index = line.first(id);
        let slot = line.slot(index);
        // 0 before the first read of all. The mode may already be biased, by other threads' reads
        // since.
        if id == 0 || slot.load(Relaxed) != lines::FREE {
            return false;
        }
        slot.store(id, Relaxed);
        // Dekker's pattern, with `drain`: the store is before the light side, and the looks after
        // it.
        P::free_light();
        if self.is_free_in(BIASED) {
            slot.store(id | IN, Relaxed);
            true
        } else {
            self.enters_unbiased(line, index, id)
        }
    }
}

// SAFETY: "Exclusion" above.
unsafe impl<P: RwLockPlatform> RawLock for NearRwLock<P> {
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        // Without a limit it returns only with the lock.
        _ = self.write_within(&Limit::NONE);
    }

    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        // SAFETY: the caller's.
        unsafe { self.release() };
    }
}

// SAFETY: as above.
unsafe impl<P: RwLockPlatform> RawTryLock for NearRwLock<P> {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        self.try_write()
    }

    /// An upgradable reader has the mutex, and is not counted.
    fn is_locked(&self) -> bool {
        self.mutex.is_locked() || self.has_readers()
    }
}

// SAFETY: as above.
unsafe impl<P: RwLockPlatform> RawRwLock for NearRwLock<P> {
    #[inline]
    unsafe fn lock_shared(&self, _node: &()) {
        if !self.attempt() {
            // Without a limit it returns only with the lock.
            _ = self.lock_shared_slow(&Limit::NONE);
        }
    }

    #[inline]
    unsafe fn try_lock_shared(&self, _node: &()) -> bool {
        self.attempt() || self.try_lock_shared_slow()
    }

    #[inline]
    unsafe fn unlock_shared(&self, _node: &()) {
        let id = self.id.load(Relaxed);
        let line = P::line();
        let first = line.first(id);
        if line.slot(first).load(Relaxed) == id | IN {
            line.leave(first);
        } else {
            self.unlock_unbiased(line, first, id);
        }
    }

    fn is_locked_exclusive(&self) -> bool {
        self.is_closed_by_waiters() || self.mutex.is_closed() && self.mode.load(Relaxed) & OPEN == 0
    }

    unsafe fn downgrade(&self, _node: &()) {
        self.downgrade_to_shared(Releaser::Reader);
    }
}

// SAFETY: a waiter that gives up holds nothing.
unsafe impl<P: RwLockPlatform> RawTimedLock for NearRwLock<P> {
    type Platform = P;

    unsafe fn lock_within(&self, _node: &(), limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        self.write_within(limit)
    }
}

// SAFETY: as above.
unsafe impl<P: RwLockPlatform> RawTimedRwLock for NearRwLock<P> {
    unsafe fn lock_shared_within(&self, _node: &(), limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        if self.attempt() { Ok(()) } else { self.lock_shared_slow(limit) }
    }
}

#[cfg(test)]
mod tests;
