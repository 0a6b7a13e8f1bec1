//! The reader-writer lock of the C library (glibc), as far as a program can see it. All readers
//! write one word, phases of readers and of writers alternate, and readers go first.
//!
//! ```text
//!  readers  bit 0     WRITE_PHASE: no reader is in
//!           bit 1     WRITER: a writer is in, or waits for the readers that are in
//!           bit 2     unused
//!           bits 3-31 how many readers are in, or wait for the end of the write phase
//!  phase    bit 0     as WRITE_PHASE, a little later | bit 1 ASLEEP: a thread sleeps here until it
//!                     changes
//!  writers  bit 0     held: by the writer that has or will have WRITER | bit 1 ASLEEP: writers may
//!                     sleep here
//!
//!  readers  +READER                        lock_shared: in, unless it is a write phase
//!           WRITE_PHASE off                a reader that finds a write phase without a writer
//!           -READER                        unlock_shared
//!           WRITER -> WRITER|WRITE_PHASE   then, by the last reader: the waiting writer is in
//!           0 -> WRITER|WRITE_PHASE        lock, without readers
//!           WRITE_PHASE -> + WRITER        lock, in a write phase without a writer
//!           n -> + WRITER                  lock: waits for n readers to leave
//!           WRITER off                     unlock, if no reader waits: the write phase goes on
//!           WRITER, WRITE_PHASE off        unlock, if readers wait: they are in; downgrade
//!  phase    0 -> 1, 1 -> 0                 who has changed WRITE_PHASE, and wakes all if ASLEEP
//!           + ASLEEP                       a thread that is about to sleep
//!  writers  0 -> held                      lock, try_lock
//!           * -> held|ASLEEP               lock, if it was held: it sleeps, and tries again
//!           held -> 0                      unlock; wakes one if ASLEEP
//! ```
//! 1. Readers are in only while WRITE_PHASE is off. It is turned on when no reader is counted. It
//!    is turned off by the writer that is in, or while there is no writer.
//! 2. A writer is in if it has set WRITER and WRITE_PHASE is on. Only the holder of `writers` sets
//!    WRITER, and only that thread clears it.
//! 3. A counted reader that waits needs no other write phase to end: while it is counted, none
//!    begins.
//! 4. Each change of WRITE_PHASE is followed by the same change of `phase`, by the same thread. A
//!    change of `phase` waits for the previous one. So they happen in the same order.
//! 5. A thread that sleeps at `phase` has set ASLEEP there. It then waits for a change of
//!    WRITE_PHASE that has not reached `phase` yet. That change wakes all.
//!
//! **An unlock may access the lock after another thread has it.** So the memory must not be freed
//! before `unlock` or `unlock_shared` returns. [`RawLock`] requires this anyway.
//!
//! Fairness: readers go before writers, and may keep writers out for ever. This is the library's
//! default kind, `PTHREAD_RWLOCK_PREFER_READER_NP`. Among writers a newcomer may overtake.
//!
//! **This is a model of an access pattern**, for the simulator. It was written without the source
//! of the library. `nearlock bench` runs the library's own code under the name `pthread-rwlock`.
//! - *Observed* in glibc 2.36 on x86-64: the values of the three words in each state, and which
//!   thread goes first. They are the words 0, 2 and 3 of a `pthread_rwlock_t` before and after each
//!   call, with readers and writers that wait.
//! - *From its documentation*: the default kind, and that readers may be nested
//!   (pthread_rwlockattr_setkind_np(3)). That a reader spins without limit until a writer has
//!   written `phase`: <https://github.com/apache/celix/issues/739>.
//! - *Counted* by `nearlock bench --mode uncontended`: a read lock and unlock make two atomic
//!   read-modify-writes, as the model's. A write lock and unlock make three. The model makes four:
//!   it locks `writers` by one more, on the same cache line.
//! - *Assumed*: each change of `readers` is one read-modify-write, also where threads contend. The
//!   library may need several, but hardly fewer. The order of the accesses to the other words, and
//!   that no waiter spins before it sleeps.
//! - *Left out*: the kinds that prefer writers, the thread id of the writer, timeouts.
//! - *Added*: downgrade, which the library does not have.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::events::LockEvent;
use crate::platform::{Atomic, AtomicInt, Park, Platform};
use crate::raw::{RawLock, RawRwLock, RawTryLock};
use crate::unwinding::without_unwinding;

const WRITE_PHASE: u32 = 1;
const WRITER: u32 = 1 << 1;
const READER: u32 = 1 << 3;

/// The values of `phase`.
const READS: u32 = 0;
const WRITES: u32 = 1;
/// In `phase` and `writers`: threads may sleep.
const ASLEEP: u32 = 1 << 1;

const FREE: u32 = 0;
const HELD: u32 = 1;

/// See the [module](self). 12 bytes natively; all zero: unlocked.
#[repr(C)]
pub struct GlibcRwLock<P: Platform> {
    readers: P::U32,
    phase: P::U32,
    writers: P::U32,
}

const fn has_readers(readers: u32) -> bool {
    readers >= READER
}

impl<P: Platform> GlibcRwLock<P> {
    /// An unlocked lock, in `const`.
    pub const fn new() -> Self {
        Self { readers: Atomic::ZERO, phase: Atomic::ZERO, writers: Atomic::ZERO }
    }

    /// Changes `readers` from the `seen` value so that the caller is in.
    #[inline(always)]
    fn enter(&self, seen: u32, new: u32) -> bool {
        // Ordering: Acquire, pairs with the Releases in `unlock`, `unlock_shared` and `downgrade`:
        // the sections before happen before ours. Relaxed on failure: nothing is locked.
        self.readers.compare_exchange(seen, new, Acquire, Relaxed).is_ok()
    }
}

impl<P: Park> GlibcRwLock<P> {
    /// Writes the new phase. Called by the thread that has changed WRITE_PHASE.
    fn set_phase(&self, new: u32) {
        let mut turn = 0;
        loop {
            let phase = self.phase.load(Relaxed);
            // Invariant 4.
            if phase & WRITES == new {
                P::cpu_relax(turn);
                turn = turn.saturating_add(1);
            } else if self.phase.compare_exchange(phase, new, Relaxed, Relaxed).is_ok() {
                if phase & ASLEEP != 0 {
                    P::unpark(&self.phase, u32::MAX);
                }
                return;
            }
        }
    }

    /// Sleeps until `phase` changes from this one, which WRITE_PHASE has shown. Returns at once if
    /// `phase` has not reached it yet.
    fn sleep_in(&self, phase: u32, event: LockEvent, turn: u32) {
        let seen = self.phase.load(Relaxed);
        if seen & WRITES != phase {
            P::cpu_relax(turn);
            return;
        }
        let asleep = phase | ASLEEP;
        if seen == asleep || self.phase.compare_exchange(seen, asleep, Relaxed, Relaxed).is_ok() {
            P::count(event);
            P::park(&self.phase, asleep);
        }
    }

    /// Waits as a counted reader that has found a write phase.
    #[cold]
    #[inline(never)]
    fn wait_as_reader(&self) {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            let mut turn = 0;
            loop {
                // Ordering: Acquire, pairs with the Releases in `unlock` and `downgrade`: the
                // writer's section happens before ours.
                let readers = self.readers.load(Acquire);
                if readers & WRITE_PHASE == 0 {
                    return;
                }
                if readers & WRITER == 0 {
                    // Relaxed: the value was loaded with Acquire, and does not come again.
                    let new = readers & !WRITE_PHASE;
                    if self.readers.compare_exchange(readers, new, Relaxed, Relaxed).is_ok() {
                        self.set_phase(READS);
                        return;
                    }
                } else {
                    self.sleep_in(WRITES, LockEvent::RwsemSleepReader, turn);
                }
                turn = turn.saturating_add(1);
            }
        });
    }

    /// The last reader that has left lets the writer in, unless another reader came.
    #[cold]
    #[inline(never)]
    fn hand_over(&self) {
        // Relaxed: the writer synchronizes with all readers that have left before.
        if self.readers.compare_exchange(WRITER, WRITER | WRITE_PHASE, Relaxed, Relaxed).is_ok() {
            P::count(LockEvent::RwsemWakeWriter);
            self.set_phase(WRITES);
        }
    }

    /// Locks `writers`.
    fn lock_writers(&self) {
        // Relaxed: `readers` orders the sections.
        if self.writers.compare_exchange(FREE, HELD, Relaxed, Relaxed).is_ok() {
            return;
        }
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            while self.writers.swap(HELD | ASLEEP, Relaxed) != FREE {
                P::count(LockEvent::RwsemSleepWriter);
                P::park(&self.writers, HELD | ASLEEP);
            }
        });
    }

    fn unlock_writers(&self) {
        if self.writers.swap(FREE, Relaxed) & ASLEEP != 0 {
            P::unpark(&self.writers, 1);
        }
    }

    /// Waits until the readers have left. The caller has set WRITER.
    #[cold]
    #[inline(never)]
    fn wait_for_readers(&self) {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            let mut turn = 0;
            // Ordering: Acquire, pairs with the Release in `unlock_shared`: the sections of the
            // readers happen before ours.
            while self.readers.load(Acquire) & WRITE_PHASE == 0 {
                self.sleep_in(READS, LockEvent::RwsemSleepWriter, turn);
                turn = turn.saturating_add(1);
            }
        });
    }

    /// Enters as a writer if no reader is in. The caller holds `writers`.
    ///
    /// # Errors
    ///
    /// The value of `readers`, if readers are in.
    fn enter_as_writer(&self) -> Result<(), u32> {
        let mut turn = 0;
        loop {
            let readers = self.readers.load(Relaxed);
            if readers & WRITER != 0 {
                // The last writer has cleared it, and this thread does not see it yet.
                P::cpu_relax(turn);
                turn = turn.saturating_add(1);
            } else if readers & WRITE_PHASE == 0 && has_readers(readers) {
                return Err(readers);
            } else if self.enter(readers, readers | WRITER | WRITE_PHASE) {
                if readers & WRITE_PHASE == 0 {
                    self.set_phase(WRITES);
                }
                return Ok(());
            }
        }
    }
}

impl<P: Platform> Default for GlibcRwLock<P> {
    fn default() -> Self {
        Self { readers: Atomic::new(0), phase: Atomic::new(READS), writers: Atomic::new(FREE) }
    }
}

// SAFETY: invariants 1 and 2; Release and Acquire on `readers` order the critical sections.
unsafe impl<P: Park> RawLock for GlibcRwLock<P> {
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        self.lock_writers();
        while let Err(readers) = self.enter_as_writer() {
            if self.readers.compare_exchange(readers, readers | WRITER, Relaxed, Relaxed).is_ok() {
                return self.wait_for_readers();
            }
        }
    }

    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        const IN: u32 = WRITER | WRITE_PHASE;
        // Ordering: Release, pairs with the Acquires in `enter`, `wait_as_reader` and
        // `lock_shared`: our section happens before the next. Relaxed on failure: nothing is
        // unlocked.
        if self.readers.compare_exchange(IN, WRITE_PHASE, Release, Relaxed).is_err() {
            P::count(LockEvent::RwsemWakeReader);
            // Ordering: Release, as above.
            self.readers.fetch_sub(IN, Release);
            self.set_phase(READS);
        }
        self.unlock_writers();
    }
}

// SAFETY: as above.
unsafe impl<P: Park> RawTryLock for GlibcRwLock<P> {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        if self.writers.compare_exchange(FREE, HELD, Relaxed, Relaxed).is_err() {
            return false;
        }
        let is_in = self.enter_as_writer().is_ok();
        if !is_in {
            self.unlock_writers();
        }
        is_in
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.readers.load(Relaxed) & !WRITE_PHASE != 0
    }
}

// SAFETY: as above.
unsafe impl<P: Park> RawRwLock for GlibcRwLock<P> {
    #[inline]
    unsafe fn lock_shared(&self, _node: &()) {
        // Ordering: Acquire, pairs with the Releases in `unlock` and `downgrade`: the sections of
        // the writers happen before ours.
        let before = self.readers.fetch_add(READER, Acquire);
        if before > u32::MAX / 2 {
            without_unwinding(|| panic!("too many readers: guards have been forgotten"));
        }
        if before & WRITE_PHASE != 0 {
            self.wait_as_reader();
        }
    }

    #[inline]
    unsafe fn try_lock_shared(&self, _node: &()) -> bool {
        loop {
            let readers = self.readers.load(Relaxed);
            if readers & WRITE_PHASE == 0 {
                if self.enter(readers, readers + READER) {
                    return true;
                }
            } else if readers & WRITER != 0 {
                return false;
            } else if self.enter(readers, (readers + READER) & !WRITE_PHASE) {
                self.set_phase(READS);
                return true;
            }
        }
    }

    #[inline]
    unsafe fn unlock_shared(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquires in `enter` and `wait_for_readers`: our section
        // happens before that of the next writer.
        if self.readers.fetch_sub(READER, Release) == READER | WRITER {
            self.hand_over();
        }
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        const IN: u32 = WRITER | WRITE_PHASE;
        self.readers.load(Relaxed) & IN == IN
    }

    unsafe fn downgrade(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquires of readers: our section as a writer happens
        // before theirs.
        self.readers.fetch_add(READER - (WRITER | WRITE_PHASE), Release);
        self.set_phase(READS);
        self.unlock_writers();
    }
}

#[cfg(test)]
mod tests;
