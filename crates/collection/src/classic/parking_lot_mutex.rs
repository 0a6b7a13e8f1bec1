//! The protocol of parking_lot's mutex: two bits, and waiters that sleep in a table of buckets.
//!
//! ```text
//! word     bit 0 LOCKED | 1 PARKED: a thread sleeps in the bucket, or is about to
//! bucket   gate, lock | queue | fair from       found by the mutex's address
//!
//!  LOCKED clear -> set      lock (from 0), try_lock, and a waiter that looks: a mutex that is not
//!                           held is taken, whether or not threads sleep
//!  LOCKED -> LOCKED|PARKED  a waiter that has looked without success, and goes to the bucket
//!  LOCKED -> 0              unlock
//!
//!  with PARKED, 0.12: unlock locks the bucket and takes the first waiter out; only then it
//!      -> 0, PARKED         frees the mutex, and wakes the waiter; PARKED stays if more sleep
//!      -> LOCKED, the same  or hands over: if it is time (fair from), wakes the waiter as the
//!                           holder, and draws the time of the next hand-over
//!  with PARKED, 0.13:
//!      -> PARKED            unlock frees the mutex first
//!      PARKED -> 0          and then locks the bucket, takes the first waiter out, and clears
//!                           PARKED if no more sleep
//! ```
//! A bucket is a [`chain`] here. A waiter that finds the mutex held and no thread asleep has ten
//! rounds before it parks. In the first three it pauses, twice as long each time. In the other
//! seven it yields its processor. After a sleep it has ten rounds again. It checks the word once
//! more under the bucket's lock, and sleeps only if the word is LOCKED|PARKED.
//!
//! 1. Only a thread that sets LOCKED, or is handed the mutex, holds it. Only the holder clears
//!    LOCKED.
//! 2. PARKED is cleared under the bucket's lock, when no thread sleeps there any more for this
//!    mutex. A thread that is about to sleep then finds it cleared, and sets it again. (0.12: while
//!    PARKED is set, LOCKED is cleared under the bucket's lock, too.)
//! 3. So a thread that sleeps has seen LOCKED|PARKED under that lock. The holder's unlock locks the
//!    bucket later. In 0.12 it had not cleared LOCKED. In 0.13 it clears LOCKED while PARKED is
//!    set, which tells it that it must lock the bucket.
//!
//! Fairness: 0.12 hands the mutex over at some unlocks that find sleepers in the bucket. It does so
//! at the first of them after a random time, 0 to 1 ms, since the bucket's last hand-over. Sleepers
//! are first come, first served; newcomers overtake them in between. 0.13: none.
//!
//! **0.13 writes the word after it has unlocked the mutex.** So the memory of a mutex must not be
//! freed before its `unlock` returns. [`RawLock`] requires this anyway.
//!
//! **This is a model of the protocol**, for the simulator, and for comparisons with other
//! protocols. `nearlock bench` runs the crates' own code under the names `parking-lot-0.12` and
//! `parking-lot-0.13`. The model differs from it as follows:
//! - The lock of a bucket is the chain's gate, a mutex of this protocol ([`OfBucket`]). A thread
//!   locks the gate before the chain's lock, so no other thread contends for the latter. The
//!   crate's lock of a bucket keeps its sleepers in its word. It looks, barges, sleeps and wakes as
//!   the mutex of 0.13 does.
//! - The table does not grow.
//! - A thread that is taken out of a bucket before it sleeps costs no system call.
//! - Random bits are those of the thread, not of the bucket.
//! - The word has four bytes, not one.
//! - No compare-exchange fails spuriously.
//! - There are no timeouts, no fair unlock by request, no deadlock detection.
//!
//! Source: parking_lot 0.12.5 with parking_lot_core 0.9.12, and 0.13.0 with 0.10.0 (Amanieu
//! d'Antras), rewritten in our own words. The idea: WebKit's `WTF::ParkingLot`.

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::events::LockEvent;
use crate::parking::chain::{self, Chains, Family, Queue};
use crate::parking::{Call, Signal, Waiter};
use crate::platform::{Atomic, AtomicInt, Clock, Park, Platform, Random};
use crate::raw::{RawLock, RawTryLock};
use crate::schedule::{Schedule, Sections};
use crate::tuning::Standard;

const FREE: u32 = 0;
const LOCKED: u32 = 1;
const PARKED: u32 = 1 << 1;

/// The number of first rounds, which pause; the others yield. All these numbers are those of the
/// sources.
const PAUSING_ROUNDS: u32 = 3;
/// The next hand-over of a bucket is due at most so many ns after the last one.
const FAIR_NS: u32 = 1_000_000;

/// The note of a waiter that was dequeued, and has been handed the mutex.
const HANDED_OVER: u32 = 1;

words! {
    /// What an unlock that finds PARKED does first.
    pub enum Unlock {
        /// It locks the bucket, and there unlocks the mutex or hands it over.
        AtBucket "at-bucket",
        /// It unlocks the mutex, and then locks the bucket.
        First "first",
    }
}

words! {
    /// How a thread waits for the lock of a bucket.
    pub enum BucketLock {
        /// As for this mutex: by the chain's gate, an [`OfBucket`].
        Sleeping "sleeping",
        /// By spinning for the chain's lock.
        Spinning "spinning",
    }
}

switches! {
    /// The switches of [`ParkingLotMutex`], in which its versions differ.
    pub trait ParkingLotTuning;
    SWITCHES from 8;

    /// When an unlock with sleepers frees the mutex.
    fn unlock("unlock") -> Unlock as word = Unlock::First;
    /// How a thread waits for the lock of the mutex's bucket.
    fn bucket("bucket") -> BucketLock as word = BucketLock::Sleeping;
    /// Rounds in which a waiter looks before it parks. At 0 it parks at once.
    fn rounds("rounds") -> u32 as number(0, 20) = 10;
    /// Pauses of the first round.
    fn first_pauses("first-pauses") -> u32 as number(1, 1 << 10) = 1;
}

crate::tuning! {
    /// The switches of 0.12.
    pub struct EventuallyFair: ParkingLotTuning {
        unlock: Unlock = Unlock::AtBucket;
        first_pauses: u32 = 2;
    }
}

crate::tuning! {
    /// The switches of a bucket's lock. Its sleepers are found without a further lock of this kind.
    pub struct OfBucket: ParkingLotTuning {
        bucket: BucketLock = BucketLock::Spinning;
    }
}

/// The family of this mutex. Its chains are the buckets.
#[derive(Debug)]
pub struct ParkingLot;

// SAFETY: a mutex and a word, for each of which all zero is valid; no other family has this table.
unsafe impl Family for ParkingLot {
    type Beside<P: Platform> = Bucket<P>;
    const TABLE: usize = 2;
}

pub(super) type Locked<'a, P> = chain::Locked<'a, P, ParkingLot>;

/// The state of a bucket besides its queue.
#[repr(C)]
pub struct Bucket<P: Platform> {
    /// Locked before the chain's lock, by threads that should sleep rather than spin for the
    /// latter.
    gate: ParkingLotMutex<P, OfBucket>,
    /// The earliest time of the next hand-over, in ns of the platform's clock.
    fair_from_ns: P::U64,
}

impl<P: Platform> Default for Bucket<P> {
    fn default() -> Self {
        Self { gate: ParkingLotMutex::default(), fair_from_ns: Atomic::new(0) }
    }
}

/// The capabilities that the mutex needs from its platform.
pub trait ParkingLotPlatform: Chains<ParkingLot> + Park + Sections + Schedule + Clock + Random {}

impl<P: Chains<ParkingLot> + Park + Sections + Schedule + Clock + Random> ParkingLotPlatform for P {}

/// One round of waiting between two looks.
pub(super) fn pass<P: ParkingLotPlatform, T: ParkingLotTuning>(round: u32) {
    if round < PAUSING_ROUNDS {
        P::pause(T::first_pauses() << round, 0);
    } else {
        P::sched_yield();
    }
}

/// Calls `f` while the lock of the bucket of this lock is held.
///
/// Safety: as [`Locked::of`].
pub(super) unsafe fn in_bucket<P: ParkingLotPlatform, L, R>(
    lock: &L,
    how: BucketLock,
    f: impl FnOnce(&Locked<'_, P>) -> R,
) -> R {
    // SAFETY: the caller's.
    let chain = || unsafe { Locked::of(lock) };
    if how == BucketLock::Spinning {
        return f(&chain());
    }
    // SAFETY: a chain is valid as long as the platform instance.
    let gate = &unsafe { &*P::chain_to_lock(ptr::from_ref(lock).cast()) }.beside().gate;
    // SAFETY: the node is (), and unlock follows lock.
    unsafe {
        gate.lock(&());
        let r = f(&chain());
        gate.unlock(&());
        r
    }
}

/// How a waiter leaves the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// With the mutex.
    HandedOver,
    /// To try again.
    Awake,
}

/// See the [module](self). 4 bytes natively; all zero: unlocked.
#[repr(transparent)]
pub struct ParkingLotMutex<P: Platform, T: ParkingLotTuning = Standard> {
    word: P::U32,
    tuning: PhantomData<T>,
}

impl<P: Platform, T: ParkingLotTuning> ParkingLotMutex<P, T> {
    /// An unlocked mutex, in `const`.
    pub const fn new() -> Self {
        Self { word: Atomic::ZERO, tuning: PhantomData }
    }

    /// Sets LOCKED in the word, which was `seen` without LOCKED.
    ///
    /// # Errors
    ///
    /// The value of the word, if it was not `seen`.
    #[inline(always)]
    fn take(&self, seen: u32) -> Result<u32, u32> {
        // Ordering: Acquire, pairs with the Releases in `unlock` and `leave`: the last critical
        // section happens before ours. Relaxed on failure: the mutex is not locked.
        self.word.compare_exchange(seen, seen | LOCKED, Acquire, Relaxed)
    }
}

impl<P: Platform, T: ParkingLotTuning> Default for ParkingLotMutex<P, T> {
    fn default() -> Self {
        Self { word: Atomic::new(FREE), tuning: PhantomData }
    }
}

impl<P: ParkingLotPlatform, T: ParkingLotTuning> ParkingLotMutex<P, T> {
    #[cold]
    #[inline(never)]
    fn lock_slow(&self) {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            let (mut word, mut round, mut how) = (self.word.load(Relaxed), 0, LockEvent::MutexOptLock);
            loop {
                if word & LOCKED == 0 {
                    match self.take(word) {
                        Ok(_) => return P::count(how),
                        Err(seen) => word = seen,
                    }
                } else if word & PARKED == 0 && round < T::rounds() {
                    pass::<P, T>(round);
                    round += 1;
                    word = self.word.load(Relaxed);
                } else if let Err(seen) = self.mark(word) {
                    word = seen;
                } else {
                    how = LockEvent::MutexAfterSleep;
                    if self.park() == Left::HandedOver {
                        return P::count(how);
                    }
                    (word, round) = (self.word.load(Relaxed), 0);
                }
            }
        });
    }

    /// LOCKED -> LOCKED|PARKED, unless PARKED is set already.
    fn mark(&self, word: u32) -> Result<u32, u32> {
        if word & PARKED != 0 {
            return Ok(word);
        }
        self.word.compare_exchange(word, word | PARKED, Relaxed, Relaxed)
    }

    /// Calls `f` while the lock of the mutex's bucket is held.
    fn in_bucket<R>(&self, f: impl FnOnce(&Locked<'_, P>) -> R) -> R {
        // SAFETY: this is the mutex' own algorithm.
        unsafe { in_bucket(self, T::bucket(), f) }
    }

    /// Sleeps in the bucket, if the word is LOCKED|PARKED.
    fn park(&self) -> Left {
        P::assert_may_sleep();
        P::with_record(|waiter: &Waiter<P>| {
            let sleeps = self.in_bucket(|bucket| {
                // Invariant 3.
                let sleeps = self.word.load(Relaxed) == LOCKED | PARKED;
                if sleeps {
                    // SAFETY: a fresh record. It stays until the grant, after which it is in no
                    // queue.
                    unsafe { bucket.push(Queue::Exclusive, waiter) };
                }
                sleeps
            });
            if !sleeps {
                P::count(LockEvent::ChainCancel);
                return Left::Awake;
            }
            P::count(LockEvent::MutexSleep);
            while waiter.park() != Signal::Granted {}
            if waiter.note.load(Relaxed) == HANDED_OVER { Left::HandedOver } else { Left::Awake }
        })
    }

    /// The rest of an unlock that has found PARKED.
    #[cold]
    #[inline(never)]
    fn unlock_slow(&self) {
        P::in_slow_path(|| {
            if let Some(call) = self.in_bucket(|bucket| self.release_in(bucket)) {
                P::count(LockEvent::MutexWake);
                call.make();
            }
        });
    }

    /// Dequeues the first waiter in the bucket, and brings the word up to date. Returns the call
    /// that wakes the waiter, if there is one.
    fn release_in(&self, bucket: &Locked<'_, P>) -> Option<Call<P>> {
        let Some(first) = bucket.first(Queue::Exclusive).map(ptr::from_ref) else {
            // The thread that has set PARKED has not locked the bucket yet, and will find PARKED
            // cleared.
            self.leave(PARKED);
            return None;
        };
        // SAFETY: the waiter is in the queue, whose lock we hold.
        unsafe { bucket.remove(Queue::Exclusive, first) };
        let cleared = if bucket.first(Queue::Exclusive).is_some() { 0 } else { PARKED };
        if T::unlock() == Unlock::AtBucket && Self::is_time(bucket) {
            P::count(LockEvent::MutexHandOver);
            // Relaxed: the grant orders the critical sections.
            self.word.store(LOCKED | (PARKED & !cleared), Relaxed);
            // SAFETY: the waiter waits for the grant.
            unsafe { &*first }.note.store(HANDED_OVER, Relaxed);
        } else {
            self.leave(cleared);
        }
        // SAFETY: the waiter waits for this grant, and stays until then.
        unsafe { Waiter::grant(first) }
    }

    /// Unlocks the mutex, if it is not unlocked yet, and clears these bits. The caller holds the
    /// bucket's lock.
    fn leave(&self, cleared: u32) {
        match T::unlock() {
            // Ordering: Release, pairs with the Acquire in `take`: our critical section happens
            // before the next. While PARKED is set, only the holder writes the word of a held
            // mutex, so a store is enough.
            Unlock::AtBucket => self.word.store(PARKED & !cleared, Release),
            Unlock::First if cleared == 0 => {}
            // Relaxed: the mutex was unlocked before. Another thread may hold it by now.
            Unlock::First => _ = self.word.fetch_and(!cleared, Relaxed),
        }
    }

    /// Whether this bucket hands over now. If so, draws the time of its next hand-over.
    fn is_time(bucket: &Locked<'_, P>) -> bool {
        let now_ns = P::now_ns();
        let is_time = now_ns > bucket.beside().fair_from_ns.load(Relaxed);
        if is_time {
            let next_ns = now_ns.saturating_add((P::random_u32() % FAIR_NS).into());
            bucket.beside().fair_from_ns.store(next_ns, Relaxed);
        }
        is_time
    }
}

// SAFETY: invariant 1; Release and Acquire on the word, or the grant, order the critical sections.
unsafe impl<P: ParkingLotPlatform, T: ParkingLotTuning> RawLock for ParkingLotMutex<P, T> {
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        if self.take(FREE).is_err() {
            self.lock_slow();
        }
    }

    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        let is_over = match T::unlock() {
            // Ordering: Release, pairs with the Acquire in `take`: our critical section happens
            // before the next. Relaxed on failure: the mutex is not unlocked yet.
            Unlock::AtBucket => self.word.compare_exchange(LOCKED, FREE, Release, Relaxed).is_ok(),
            // Ordering: Release, as above.
            Unlock::First => self.word.fetch_sub(LOCKED, Release) & PARKED == 0,
        };
        if !is_over {
            self.unlock_slow();
        }
    }
}

// SAFETY: as above.
unsafe impl<P: ParkingLotPlatform, T: ParkingLotTuning> RawTryLock for ParkingLotMutex<P, T> {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        let mut word = self.word.load(Relaxed);
        while word & LOCKED == 0 {
            match self.take(word) {
                Ok(_) => return true,
                Err(seen) => word = seen,
            }
        }
        false
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) & LOCKED != 0
    }
}

#[cfg(test)]
mod tests;
