//! The protocol of parking_lot's mutex: two bits, and waiters that sleep in a table of buckets.
//!
//! ```text
//! word     bit 0 LOCKED | 1 PARKED: somebody sleeps in the bucket, or is about to
//! bucket   gate, lock | queue | fair from       that of the mutex's address
//!
//!  LOCKED clear -> set      lock (from 0), try_lock, a waiter that looks: whatever is not held is taken, with or without sleepers
//!  LOCKED -> LOCKED|PARKED  a waiter that has looked in vain, and goes to the bucket
//!  LOCKED -> 0              unlock
//!
//!  with PARKED, 0.12: unlock locks the bucket and takes out whoever is first there, and only then
//!      -> 0, PARKED         frees the mutex, and wakes it; PARKED stays if more sleep
//!      -> LOCKED, the same  or hands over: wakes it as the holder, if it is time (fair from), and draws when it is next
//!  with PARKED, 0.13:
//!      -> PARKED            unlock frees the mutex first
//!      PARKED -> 0          and then locks the bucket, takes out whoever is first there, and clears PARKED if no more sleep
//! ```
//! A bucket is a [`chain`] here. A waiter that finds the mutex held and nobody asleep has ten
//! rounds before it parks: three of pauses, twice as many each time, and seven that yield its
//! processor. After a sleep it has them again. It looks at the word once more under the bucket's
//! lock, and sleeps only if that is LOCKED|PARKED.
//!
//! 1. Only whoever sets LOCKED, or is handed the mutex, holds it. LOCKED is cleared by the holder
//!    only.
//! 2. PARKED is cleared under the bucket's lock, when no thread sleeps there any more for this
//!    mutex. A thread that comes to sleep then finds it cleared, and sets it again. (0.12: while it
//!    is set, LOCKED is cleared there, too.)
//! 3. So a thread that sleeps has seen LOCKED|PARKED under that lock. The holder's release locks the
//!    bucket later. In 0.12 it had not cleared LOCKED. In 0.13 it clears LOCKED while PARKED is set,
//!    which says that it must lock the bucket.
//!
//! Fairness: 0.12 hands over at the first release that comes to a bucket with sleepers a random
//! time after this bucket's last hand-over, 0 to 1 ms. Sleepers are first come, first served;
//! newcomers overtake them in between. 0.13: none.
//!
//! **After the release** 0.13 writes the word: a mutex must not die before its `unlock` returns, as
//! [`RawLock`] asks anyway.
//!
//! **A model of the protocol**, for the simulator and side by side with other protocols; the
//! crates' own code is what `nearlock bench` calls `parking-lot-0.12` and `parking-lot-0.13`.
//! Differences: the lock of a bucket is the chain's gate, a mutex of this protocol ([`OfBucket`])
//! that is passed before the chain's lock, for which nobody else contends then. The crate's own
//! keeps its sleepers in its word, and looks, barges, sleeps and wakes as the mutex of 0.13 does.
//! The table does not grow. Who is taken out of a bucket before it sleeps costs no call. Bits are
//! random by the thread, not by the bucket. The word has four bytes, not one. No attempt fails for
//! no reason. There are no timeouts, no fair release by request, no deadlock detection.
//! Source: parking_lot 0.12.5 with parking_lot_core 0.9.12, and 0.13.0 with 0.10.0 (Amanieu
//! d'Antras), in own words; the idea: WebKit's `WTF::ParkingLot`.

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

/// The first rounds, which pause; the others yield. The sources' own, as the other numbers.
const PAUSING_ROUNDS: u32 = 3;
/// The next hand-over of a bucket comes so many ns after the last, at most.
const FAIR_NS: u32 = 1_000_000;

/// What stands in the note of a waiter that was taken out: it has been handed the mutex.
const HANDED_OVER: u32 = 1;

words! {
    /// What a release does that finds PARKED.
    pub enum Unlock {
        /// It goes to the bucket, where it frees the mutex, or hands it over.
        AtBucket "at-bucket",
        /// It frees the mutex, and goes to the bucket then.
        First "first",
    }
}

words! {
    /// How the lock of a bucket is waited for.
    pub enum BucketLock {
        /// As this very mutex: the chain's gate, an [`OfBucket`].
        Sleeping "sleeping",
        /// By spinning for the chain's lock.
        Spinning "spinning",
    }
}

switches! {
    /// What differs between the versions of [`ParkingLotMutex`].
    pub trait ParkingLotTuning;
    SWITCHES from 8;

    /// When a release with sleepers frees the mutex.
    fn unlock("unlock") -> Unlock as word = Unlock::First;
    /// How it waits for the lock of its bucket.
    fn bucket("bucket") -> BucketLock as word = BucketLock::Sleeping;
    /// Rounds in which a waiter looks before it parks. At 0 it parks at once.
    fn rounds("rounds") -> u32 as number(0, 20) = 10;
    /// Pauses of its first round.
    fn first_pauses("first-pauses") -> u32 as number(1, 1 << 10) = 1;
}

crate::tuning! {
    /// Of 0.12.
    pub struct EventuallyFair: ParkingLotTuning {
        unlock: Unlock = Unlock::AtBucket;
        first_pauses: u32 = 2;
    }
}

crate::tuning! {
    /// Of the lock of a bucket, whose own sleepers are where it costs no such lock to find them.
    pub struct OfBucket: ParkingLotTuning {
        bucket: BucketLock = BucketLock::Spinning;
    }
}

/// The family of this mutex, whose chains are buckets.
#[derive(Debug)]
pub struct ParkingLot;

// SAFETY: a mutex and a word, for each of which all zero is valid; no other family has this table.
unsafe impl Family for ParkingLot {
    type Beside<P: Platform> = Bucket<P>;
    const TABLE: usize = 2;
}

type Locked<'a, P> = chain::Locked<'a, P, ParkingLot>;

/// What a bucket has beside its queue.
#[repr(C)]
pub struct Bucket<P: Platform> {
    /// Locked before the chain is, by threads that rather sleep than spin for it.
    gate: ParkingLotMutex<P, OfBucket>,
    /// From when on a release hands its mutex over, in ns of the platform's clock.
    fair_from_ns: P::U64,
}

impl<P: Platform> Default for Bucket<P> {
    fn default() -> Self {
        Self { gate: ParkingLotMutex::default(), fair_from_ns: Atomic::new(0) }
    }
}

/// What the mutex asks of its platform.
pub trait ParkingLotPlatform: Chains<ParkingLot> + Park + Sections + Schedule + Clock + Random {}

impl<P: Chains<ParkingLot> + Park + Sections + Schedule + Clock + Random> ParkingLotPlatform for P {}

/// With what a waiter leaves the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// With the mutex.
    HandedOver,
    /// To look again.
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

    /// From `seen`, which is not held, to held.
    ///
    /// # Errors
    ///
    /// What the word was instead.
    #[inline(always)]
    fn take(&self, seen: u32) -> Result<u32, u32> {
        // Ordering: Acquire, pairs with the Releases in `unlock` and `leave`: the last section happens
        // before ours. Relaxed on failure: nothing is acquired.
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
                    Self::pass(round);
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

    /// A round between two looks.
    fn pass(round: u32) {
        if round < PAUSING_ROUNDS {
            P::pause(T::first_pauses() << round, 0);
        } else {
            P::sched_yield();
        }
    }

    /// LOCKED -> LOCKED|PARKED, unless it is that already.
    fn mark(&self, word: u32) -> Result<u32, u32> {
        if word & PARKED != 0 {
            return Ok(word);
        }
        self.word.compare_exchange(word, word | PARKED, Relaxed, Relaxed)
    }

    /// Does `f` while it holds the lock of the mutex's bucket.
    fn in_bucket<R>(&self, f: impl FnOnce(&Locked<'_, P>) -> R) -> R {
        // SAFETY: this is the mutex' own algorithm.
        let chain = || unsafe { Locked::of(self) };
        if T::bucket() == BucketLock::Spinning {
            return f(&chain());
        }
        // SAFETY: a chain is valid as long as the platform instance.
        let gate = &unsafe { &*P::chain_to_lock(ptr::from_ref(self).cast()) }.beside().gate;
        // SAFETY: the node is (), and unlock follows lock.
        unsafe {
            gate.lock(&());
            let r = f(&chain());
            gate.unlock(&());
            r
        }
    }

    /// Sleeps in the bucket, if the mutex is held and says that somebody sleeps there.
    fn park(&self) -> Left {
        P::assert_may_sleep();
        P::with_record(|waiter: &Waiter<P>| {
            let sleeps = self.in_bucket(|bucket| {
                // Invariant 3.
                let sleeps = self.word.load(Relaxed) == LOCKED | PARKED;
                if sleeps {
                    // SAFETY: fresh; it stays until the grant, after which it is in no queue.
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

    /// What is left of a release that has found PARKED.
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

    /// Takes out whoever is first in the bucket, and makes the word say what is so then. Who is to
    /// be called.
    fn release_in(&self, bucket: &Locked<'_, P>) -> Option<Call<P>> {
        let Some(first) = bucket.first(Queue::Exclusive).map(ptr::from_ref) else {
            // Whoever has set PARKED is still on its way here, and will find it cleared.
            self.leave(PARKED);
            return None;
        };
        // SAFETY: in the queue, whose lock we hold.
        unsafe { bucket.remove(Queue::Exclusive, first) };
        let cleared = if bucket.first(Queue::Exclusive).is_some() { 0 } else { PARKED };
        if T::unlock() == Unlock::AtBucket && Self::is_time(bucket) {
            P::count(LockEvent::MutexHandOver);
            // Relaxed: the grant orders.
            self.word.store(LOCKED | (PARKED & !cleared), Relaxed);
            // SAFETY: it waits for the grant.
            unsafe { &*first }.note.store(HANDED_OVER, Relaxed);
        } else {
            self.leave(cleared);
        }
        // SAFETY: it waits for this grant, and stays until then.
        unsafe { Waiter::grant(first) }
    }

    /// Frees the mutex, if it is not free yet, and clears these bits. The caller holds the bucket's
    /// lock.
    fn leave(&self, cleared: u32) {
        match T::unlock() {
            // Ordering: Release, pairs with the Acquire in `take`: our section happens before the next. With
            // PARKED nobody but its holder writes a word that is held, so a store will do.
            Unlock::AtBucket => self.word.store(PARKED & !cleared, Release),
            Unlock::First if cleared == 0 => {}
            // Relaxed: the mutex was free before. Others may have it by now.
            Unlock::First => _ = self.word.fetch_and(!cleared, Relaxed),
        }
    }

    /// Whether this bucket hands over now; if so, when it will do so next.
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

// SAFETY: invariant 1; Release and Acquire on the word, or the grant, order the sections.
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
            // Ordering: Release, pairs with the Acquire in `take`: our section happens before the next.
            // Relaxed on failure: it is not released yet.
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
