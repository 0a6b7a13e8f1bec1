//! The protocol of parking_lot's reader-writer lock: a count of readers and three marks, and
//! waiters that sleep in a table of buckets.
//!
//! ```text
//! word     bit 0 PARKED: a thread sleeps in the bucket, or is about to
//!          bit 1 WRITER_PARKED: the writer sleeps until the readers have left, or is about to
//!          bit 2 unused (upgradable) | bit 3 WRITER | bits 4-31 number of readers
//! bucket   that of the mutex: gate, lock | queue | queue of the writer    found by the address
//!
//!  + READER                lock_shared, if WRITER is clear
//!  - READER                unlock_shared; the last one, with WRITER_PARKED, wakes the writer
//!  WRITER clear -> set     lock, whether or not there are readers; then no more readers come in,
//!                          and it waits for those that are in. try_lock, from 0 only
//!  WRITER -> READER        downgrade; with PARKED, wakes as unlock does
//!  WRITER clear            unlock; with PARKED, locks the bucket, and wakes the first waiters:
//!                          readers, up to and including the first writer
//!  + PARKED                a waiter that finds WRITER set, and goes to the bucket
//!  - PARKED                a release, in the bucket, if no thread sleeps there any more
//!  + WRITER_PARKED         the writer, and it goes to its queue in the bucket
//!  - WRITER_PARKED         the last reader, in the bucket
//! ```
//! A waiter looks. While no thread sleeps it has ten rounds before it parks, as for the mutex. The
//! writer that waits for readers has ten rounds in any case. After a sleep there are ten rounds
//! again. A reader that loses a race for the word pauses, twice as long each time, up to 512
//! pauses. Waiters check the word once more under the bucket's lock.
//!
//! 1. A reader enters only while WRITER is clear. A writer is in once it has set WRITER and has
//!    seen no readers after that.
//! 2. PARKED is cleared under the bucket's lock, when no thread sleeps there. A thread that is
//!    about to sleep then finds it cleared, and sets it again. It sleeps only if WRITER is set.
//!    So the thread that clears WRITER later finds PARKED.
//! 3. WRITER_PARKED is set only while there are readers. The last of them finds it. The writer
//!    sleeps only if it is still set under the bucket's lock.
//!
//! Fairness: a writer that has set WRITER lets no new reader in. Before that it has no precedence:
//! newcomers may overtake it and sleeping readers. Sleepers are woken in the order of arrival.
//!
//! **A release writes the word after it has unlocked the lock.** So the memory must not be freed
//! before `unlock` or `unlock_shared` returns. [`RawLock`] requires this anyway.
//!
//! **This is a model of the protocol**, for the simulator, and for comparisons with other
//! protocols. `nearlock bench` runs the crate's own code under the name `parking-lot-0.13-rwlock`.
//! The model differs from it as that of the [mutex](super::parking_lot_mutex) does, and:
//! - The word has four bytes, not eight.
//! - The writer that waits for readers sleeps in the same bucket as the others, in a queue of its
//!   own. The crate uses the next address for it, which usually is in another bucket.
//! - There are no upgradable readers, and no recursive ones.
//!
//! Source: parking_lot 0.13.0 with parking_lot_core 0.10.0 (Amanieu d'Antras), rewritten in our own
//! words.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::parking_lot_mutex::{Locked, ParkingLotPlatform, ParkingLotTuning, in_bucket, pass};
use crate::events::LockEvent;
use crate::parking::chain::Queue;
use crate::parking::wait_list::WakeList;
use crate::parking::{Signal, Waiter};
use crate::platform::{Atomic, AtomicInt, Platform};
use crate::raw::{RawLock, RawRwLock, RawTryLock};
use crate::tuning::Standard;
use crate::unwinding::without_unwinding;

const PARKED: u32 = 1;
const WRITER_PARKED: u32 = 1 << 1;
const WRITER: u32 = 1 << 3;
const READER: u32 = 1 << 4;
const READERS: u32 = !(READER - 1);

/// A reader that loses races pauses for 1, 2, 4, ... and at most 2^9 pauses. From the source.
const LOST_RACES_MAX: u32 = 9;

/// See the [module](self). 4 bytes natively; all zero: unlocked.
#[repr(transparent)]
pub struct ParkingLotRwLock<P: Platform, T: ParkingLotTuning = Standard> {
    word: P::U32,
    tuning: PhantomData<T>,
}

impl<P: Platform, T: ParkingLotTuning> ParkingLotRwLock<P, T> {
    /// An unlocked lock, in `const`.
    pub const fn new() -> Self {
        Self { word: Atomic::ZERO, tuning: PhantomData }
    }

    /// Adds READER or WRITER to the word, which was `seen`.
    ///
    /// # Errors
    ///
    /// The word, if it was not `seen`.
    #[inline(always)]
    fn take(&self, seen: u32, as_what: u32) -> Result<u32, u32> {
        if as_what == READER && seen & READERS == READERS {
            without_unwinding(|| panic!("too many readers: guards have been forgotten"));
        }
        // Ordering: Acquire, pairs with the Releases in `unlock`, `unlock_shared` and `downgrade`:
        // the sections before happen before ours. Relaxed on failure: nothing is locked.
        self.word.compare_exchange(seen, seen + as_what, Acquire, Relaxed)
    }
}

impl<P: Platform, T: ParkingLotTuning> Default for ParkingLotRwLock<P, T> {
    fn default() -> Self {
        Self { word: Atomic::new(0), tuning: PhantomData }
    }
}

impl<P: ParkingLotPlatform, T: ParkingLotTuning> ParkingLotRwLock<P, T> {
    #[cold]
    #[inline(never)]
    fn lock_shared_slow(&self) {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            self.wait_to_take(READER, |mut word| {
                let mut lost = 0;
                while word & WRITER == 0 {
                    if self.take(word, READER).is_ok() {
                        return Ok(());
                    }
                    P::pause(1 << lost, 0);
                    lost = LOST_RACES_MAX.min(lost + 1);
                    word = self.word.load(Relaxed);
                }
                Err(word)
            });
        });
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self) {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            self.wait_to_take(WRITER, |mut word| {
                while word & WRITER == 0 {
                    match self.take(word, WRITER) {
                        Ok(_) => return Ok(()),
                        Err(seen) => word = seen,
                    }
                }
                Err(word)
            });
            self.wait_for_readers();
        });
    }

    /// Tries, looks, and sleeps until `attempt` succeeds. It fails with the word, with WRITER set.
    fn wait_to_take(&self, as_what: u32, attempt: impl Fn(u32) -> Result<(), u32>) {
        let (mut word, mut round) = (self.word.load(Relaxed), 0);
        loop {
            match attempt(word) {
                Ok(()) => return,
                Err(seen) => word = seen,
            }
            if word & (PARKED | WRITER_PARKED) == 0 && round < T::rounds() {
                pass::<P, T>(round);
                round += 1;
            } else {
                if let Err(seen) = self.mark(word, PARKED) {
                    word = seen;
                    continue;
                }
                self.park(Queue::Exclusive, as_what, |word| word & PARKED != 0 && word & WRITER != 0);
                round = 0;
            }
            word = self.word.load(Relaxed);
        }
    }

    /// Waits until the readers have left. The caller has set WRITER.
    fn wait_for_readers(&self) {
        let mut round = 0;
        loop {
            // Ordering: Acquire, pairs with the Release in `unlock_shared`: the sections of the
            // readers happen before ours.
            let word = self.word.load(Acquire);
            if word & READERS == 0 {
                return;
            }
            if round < T::rounds() {
                pass::<P, T>(round);
                round += 1;
            } else if self.mark(word, WRITER_PARKED).is_ok() {
                let readers_are_in = |word| word & READERS != 0 && word & WRITER_PARKED != 0;
                self.park(Queue::Shared, WRITER, readers_are_in);
            }
        }
    }

    /// Sets a mark in the word, which was `seen`.
    fn mark(&self, seen: u32, mark: u32) -> Result<u32, u32> {
        if seen & mark != 0 {
            return Ok(seen);
        }
        self.word.compare_exchange(seen, seen | mark, Relaxed, Relaxed)
    }

    /// Calls `f` while the lock of the bucket is held.
    fn in_bucket<R>(&self, f: impl FnOnce(&Locked<'_, P>) -> R) -> R {
        // SAFETY: this is the lock's own algorithm.
        unsafe { in_bucket(self, T::bucket(), f) }
    }

    /// Sleeps in a queue of the bucket, if `should` holds for the word.
    fn park(&self, queue: Queue, as_what: u32, should: impl FnOnce(u32) -> bool) {
        P::assert_may_sleep();
        P::with_record(|waiter: &Waiter<P>| {
            let sleeps = self.in_bucket(|bucket| {
                let sleeps = should(self.word.load(Relaxed));
                if sleeps {
                    waiter.note.store(as_what, Relaxed);
                    // SAFETY: a fresh record. It stays until the grant, after which it is in no
                    // queue.
                    unsafe { bucket.push(queue, waiter) };
                }
                sleeps
            });
            if !sleeps {
                P::count(LockEvent::ChainCancel);
                return;
            }
            P::count(match as_what {
                READER => LockEvent::RwsemSleepReader,
                _ => LockEvent::RwsemSleepWriter,
            });
            while waiter.park() != Signal::Granted {}
        });
    }

    /// The rest of an unlock or a downgrade that has found PARKED.
    #[cold]
    #[inline(never)]
    fn wake_waiters(&self) {
        P::in_slow_path(|| {
            let wake_list = self.in_bucket(|bucket| {
                let mut wake_list = WakeList::EMPTY;
                let is_reader = |waiter: &Waiter<P>| waiter.note.load(Relaxed) == READER;
                let readers = bucket.waiters(Queue::Exclusive).take_while(|waiter| is_reader(waiter)).count();
                bucket.take(Queue::Exclusive, readers + 1, &mut wake_list);
                if bucket.first(Queue::Exclusive).is_none() {
                    // Relaxed: the lock was unlocked before.
                    self.word.fetch_and(!PARKED, Relaxed);
                }
                wake_list
            });
            P::count(LockEvent::ChainWake);
            wake_list.grant();
        });
    }

    /// The rest of an unlock by the last reader, for which the writer sleeps.
    #[cold]
    #[inline(never)]
    fn wake_writer(&self) {
        P::in_slow_path(|| {
            let wake_list = self.in_bucket(|bucket| {
                let mut wake_list = WakeList::EMPTY;
                bucket.take(Queue::Shared, 1, &mut wake_list);
                // Relaxed: the writer synchronizes with the readers by their Releases.
                self.word.fetch_and(!WRITER_PARKED, Relaxed);
                wake_list
            });
            P::count(LockEvent::RwsemWakeWriter);
            wake_list.grant();
        });
    }
}

// SAFETY: invariant 1; Release and Acquire on the word order the critical sections.
unsafe impl<P: ParkingLotPlatform, T: ParkingLotTuning> RawLock for ParkingLotRwLock<P, T> {
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
        if self.word.fetch_sub(WRITER, Release) & PARKED != 0 {
            self.wake_waiters();
        }
    }
}

// SAFETY: as above.
unsafe impl<P: ParkingLotPlatform, T: ParkingLotTuning> RawTryLock for ParkingLotRwLock<P, T> {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        self.take(0, WRITER).is_ok()
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) & (WRITER | READERS) != 0
    }
}

// SAFETY: invariant 1; the word orders the sections of readers and writers.
unsafe impl<P: ParkingLotPlatform, T: ParkingLotTuning> RawRwLock for ParkingLotRwLock<P, T> {
    #[inline]
    unsafe fn lock_shared(&self, _node: &()) {
        let word = self.word.load(Relaxed);
        if word & WRITER != 0 || self.take(word, READER).is_err() {
            self.lock_shared_slow();
        }
    }

    #[inline]
    unsafe fn try_lock_shared(&self, _node: &()) -> bool {
        let mut word = self.word.load(Relaxed);
        while word & WRITER == 0 {
            match self.take(word, READER) {
                Ok(_) => return true,
                Err(seen) => word = seen,
            }
        }
        false
    }

    #[inline]
    unsafe fn unlock_shared(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquires in `take` and `wait_for_readers`: our section
        // happens before that of the next writer.
        let before = self.word.fetch_sub(READER, Release);
        if before & (READERS | WRITER_PARKED) == READER | WRITER_PARKED {
            self.wake_writer();
        }
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.word.load(Relaxed) & (WRITER | READERS) == WRITER
    }

    #[inline]
    unsafe fn downgrade(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquire in `take`: our section as a writer happens
        // before those of the readers.
        if self.word.fetch_add(READER - WRITER, Release) & PARKED != 0 {
            self.wake_waiters();
        }
    }
}

#[cfg(test)]
mod tests;
