//! The protocol of the reader-writer lock of Rust's standard library on Linux. One word counts the
//! readers, and marks that threads sleep. Writers sleep at a second word.
//!
//! ```text
//!  state    bits 0-29  0 free | 1 to MAX_READERS that many readers | all set: WRITER, a writer
//!           bit 30     READERS_SLEEP: readers may sleep on this word
//!           bit 31     WRITERS_SLEEP: writers may sleep on the other word
//!  notify   how often a writer was to be woken
//!
//!  n -> n+1            lock_shared, if neither mark is set: readers do not overtake sleepers
//!  n -> n-1            unlock_shared; the last one, if writers sleep, goes on to `wake`
//!  0 -> WRITER         lock, whatever the marks: it leaves them, except that a writer that has
//!                      slept sets WRITERS_SLEEP, since it cannot know whether others still sleep
//!  WRITER -> 0         unlock; with a mark it goes on to `wake`
//!  WRITER -> 1         downgrade; clears READERS_SLEEP, and wakes all readers
//!  no mark -> mark     a waiter that is about to sleep
//!
//!  wake, while the lock is free:
//!  WRITERS_SLEEP -> 0                             and one writer is woken
//!  WRITERS_SLEEP|READERS_SLEEP -> READERS_SLEEP   the same; if no writer slept, also
//!  READERS_SLEEP -> 0                             and all readers are woken
//! ```
//! A waiter looks up to 100 times before each sleep, with a pause in between, as that of the
//! library's mutex ([`StdMutexTuning::looks`]). A writer stops looking when the lock is free, or
//! writers sleep. A reader stops when there is no writer, or somebody sleeps.
//!
//! 1. Only a writer that changes bits 0-29 from 0 to all set has the lock alone, and only that
//!    writer changes them back. A reader changes n to n+1 only if n is a number of readers.
//! 2. A reader that sleeps has seen READERS_SLEEP with a writer, or with a mark, and the word was
//!    the same when it fell asleep. The mark is cleared before all readers are woken.
//! 3. A writer reads `notify` while WRITERS_SLEEP is set, and looks at the state after that. The
//!    thread that clears WRITERS_SLEEP then changes `notify`, and wakes one writer. So the writer
//!    sees that the mark is cleared, or does not fall asleep, or is woken.
//! 4. While a mark is set and the lock is free, only a writer can enter. Its unlock wakes again. If
//!    `wake` cannot clear a mark, another thread has taken the lock.
//!
//! **An unlock may access the lock after another thread has it.** So the memory must not be freed
//! before `unlock` or `unlock_shared` returns. [`RawLock`] requires this anyway.
//!
//! Fairness: writers go before readers: no reader enters while a writer sleeps. A newcomer among
//! the writers may take the lock before one that was woken.
//!
//! **This is a model of the protocol**, for the simulator, and for comparisons with other
//! protocols. `nearlock bench` runs the library's own code under the name `std-rwlock`.
//! Differences: sleeping is the platform's, and no call is interrupted; panics poison nothing; no
//! compare-exchange fails spuriously. Source: Rust 1.95,
//! `library/std/src/sys/sync/rwlock/futex.rs` (Mara Bos and others), rewritten in our own words.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::std_mutex::StdMutexTuning;
use crate::events::LockEvent;
use crate::platform::{Atomic, AtomicInt, Park, Platform};
use crate::raw::{RawLock, RawRwLock, RawTryLock};
use crate::tuning::Standard;
use crate::unwinding::without_unwinding;

const READER: u32 = 1;
/// The bits that say who holds the lock.
const HOLDERS: u32 = (1 << 30) - 1;
const WRITER: u32 = HOLDERS;
const MAX_READERS: u32 = HOLDERS - 1;
const READERS_SLEEP: u32 = 1 << 30;
const WRITERS_SLEEP: u32 = 1 << 31;

/// See the [module](self). 8 bytes natively; all zero: unlocked.
#[repr(C)]
pub struct StdRwLock<P: Platform, T: StdMutexTuning = Standard> {
    state: P::U32,
    notify: P::U32,
    tuning: PhantomData<T>,
}

const fn is_free(state: u32) -> bool {
    state & HOLDERS == 0
}

/// Whether a reader may enter: there is room for it, no writer, and nobody sleeps.
const fn lets_readers_in(state: u32) -> bool {
    state & HOLDERS < MAX_READERS && state & (READERS_SLEEP | WRITERS_SLEEP) == 0
}

/// Whether a reader that has slept may enter because a writer has become a reader. Then it does
/// not matter that writers sleep.
const fn lets_sleepers_in(state: u32) -> bool {
    state & HOLDERS < MAX_READERS && state & READERS_SLEEP == 0 && !is_free(state)
}

impl<P: Platform, T: StdMutexTuning> StdRwLock<P, T> {
    /// An unlocked lock, in `const`.
    pub const fn new() -> Self {
        Self { state: Atomic::ZERO, notify: Atomic::ZERO, tuning: PhantomData }
    }

    /// n -> n+1 or 0 -> WRITER, from the `seen` state.
    ///
    /// # Errors
    ///
    /// The state, if it was not the one that was seen.
    #[inline(always)]
    fn take(&self, seen: u32, new: u32) -> Result<u32, u32> {
        // Ordering: Acquire, pairs with the Releases in `unlock`, `unlock_shared` and `downgrade`:
        // the sections before happen before ours. Relaxed on failure: nothing is locked.
        self.state.compare_exchange(seen, new, Acquire, Relaxed)
    }
}

impl<P: Park, T: StdMutexTuning> StdRwLock<P, T> {
    fn look(&self, done: impl Fn(u32) -> bool) -> u32 {
        P::wait_until_bounded(&self.state, Relaxed, T::looks(), done)
    }

    fn look_as_reader(&self) -> u32 {
        self.look(|state| {
            state & HOLDERS != WRITER || state & READERS_SLEEP != 0 || state & WRITERS_SLEEP != 0
        })
    }

    fn look_as_writer(&self) -> u32 {
        self.look(|state| is_free(state) || state & WRITERS_SLEEP != 0)
    }

    /// Sets a mark in the state, which was `seen`.
    fn mark(&self, seen: u32, mark: u32) -> Result<u32, u32> {
        if seen & mark != 0 {
            return Ok(seen);
        }
        self.state.compare_exchange(seen, seen | mark, Relaxed, Relaxed)
    }

    #[cold]
    #[inline(never)]
    fn lock_shared_slow(&self) {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            let (mut state, mut has_slept) = (self.look_as_reader(), false);
            loop {
                if lets_readers_in(state) || has_slept && lets_sleepers_in(state) {
                    match self.take(state, state + READER) {
                        Ok(_) => return,
                        Err(seen) => state = seen,
                    }
                    continue;
                }
                if state & HOLDERS == MAX_READERS {
                    without_unwinding(|| panic!("too many readers: guards have been forgotten"));
                }
                if let Err(seen) = self.mark(state, READERS_SLEEP) {
                    state = seen;
                    continue;
                }
                P::count(LockEvent::RwsemSleepReader);
                P::park(&self.state, state | READERS_SLEEP);
                has_slept = true;
                state = self.look_as_reader();
            }
        });
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self) {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            let (mut state, mut others_sleep) = (self.look_as_writer(), 0);
            loop {
                if is_free(state) {
                    match self.take(state, state | WRITER | others_sleep) {
                        Ok(_) => return,
                        Err(seen) => state = seen,
                    }
                    continue;
                }
                if let Err(seen) = self.mark(state, WRITERS_SLEEP) {
                    state = seen;
                    continue;
                }
                others_sleep = WRITERS_SLEEP;
                // Ordering: Acquire, pairs with the Release in `wake_writer`: if we read its
                // value, we see in the state that the mark is cleared.
                let notified = self.notify.load(Acquire);
                state = self.state.load(Relaxed);
                if is_free(state) || state & WRITERS_SLEEP == 0 {
                    continue;
                }
                P::count(LockEvent::RwsemSleepWriter);
                P::park(&self.notify, notified);
                state = self.look_as_writer();
            }
        });
    }

    /// Wakes sleepers of the lock, which was free with this `state`.
    #[cold]
    #[inline(never)]
    fn wake(&self, mut state: u32) {
        let becomes = |seen, new| self.state.compare_exchange(seen, new, Relaxed, Relaxed);
        if state == WRITERS_SLEEP {
            match becomes(state, 0) {
                Ok(_) => {
                    self.wake_writer();
                    return;
                }
                // A reader may sleep now, too.
                Err(seen) => state = seen,
            }
        }
        if state == READERS_SLEEP | WRITERS_SLEEP {
            if becomes(state, READERS_SLEEP).is_err() || self.wake_writer() {
                return;
            }
            // The writer was about to sleep, or there is none.
            state = READERS_SLEEP;
        }
        if state == READERS_SLEEP && becomes(state, 0).is_ok() {
            P::count(LockEvent::RwsemWakeReader);
            P::unpark(&self.state, u32::MAX);
        }
    }

    /// Returns whether it has woken a writer.
    fn wake_writer(&self) -> bool {
        P::count(LockEvent::RwsemWakeWriter);
        // Ordering: Release, pairs with the Acquire in `lock_slow`: the mark was cleared before.
        self.notify.fetch_add(1, Release);
        P::unpark_one(&self.notify)
    }
}

impl<P: Platform, T: StdMutexTuning> Default for StdRwLock<P, T> {
    fn default() -> Self {
        Self { state: Atomic::new(0), notify: Atomic::new(0), tuning: PhantomData }
    }
}

// SAFETY: invariant 1; Release and Acquire on the state order the critical sections.
unsafe impl<P: Park, T: StdMutexTuning> RawLock for StdRwLock<P, T> {
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        if self.take(0, WRITER).is_err() {
            self.lock_slow();
        }
    }

    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquire in `take`: our section happens before the next.
        let state = self.state.fetch_sub(WRITER, Release) - WRITER;
        if state != 0 {
            self.wake(state);
        }
    }
}

// SAFETY: as above.
unsafe impl<P: Park, T: StdMutexTuning> RawTryLock for StdRwLock<P, T> {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        let mut state = self.state.load(Relaxed);
        while is_free(state) {
            match self.take(state, state | WRITER) {
                Ok(_) => return true,
                Err(seen) => state = seen,
            }
        }
        false
    }

    #[inline]
    fn is_locked(&self) -> bool {
        !is_free(self.state.load(Relaxed))
    }
}

// SAFETY: invariant 1; the state orders the sections of readers and writers.
unsafe impl<P: Park, T: StdMutexTuning> RawRwLock for StdRwLock<P, T> {
    #[inline]
    unsafe fn lock_shared(&self, _node: &()) {
        let state = self.state.load(Relaxed);
        if !lets_readers_in(state) || self.take(state, state + READER).is_err() {
            self.lock_shared_slow();
        }
    }

    #[inline]
    unsafe fn try_lock_shared(&self, _node: &()) -> bool {
        let mut state = self.state.load(Relaxed);
        while lets_readers_in(state) {
            match self.take(state, state + READER) {
                Ok(_) => return true,
                Err(seen) => state = seen,
            }
        }
        false
    }

    #[inline]
    unsafe fn unlock_shared(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquire in `take`: our section happens before that of
        // the next writer.
        let state = self.state.fetch_sub(READER, Release) - READER;
        if is_free(state) && state & WRITERS_SLEEP != 0 {
            self.wake(state);
        }
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.state.load(Relaxed) & HOLDERS == WRITER
    }

    #[inline]
    unsafe fn downgrade(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquire in `take`: our section as a writer happens
        // before those of the readers.
        let state = self.state.fetch_sub(WRITER - READER, Release);
        if state & READERS_SLEEP != 0 {
            // While a reader is in, only this thread clears the mark.
            self.state.fetch_sub(READERS_SLEEP, Relaxed);
            P::count(LockEvent::RwsemWakeReader);
            P::unpark(&self.state, u32::MAX);
        }
    }
}

#[cfg(test)]
mod tests;
