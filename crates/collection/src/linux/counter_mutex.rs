//! Counter mutex: Linux' mutex from 2.6.16 to 4.8. A thread counts down to lock, and up to unlock.
//! A waiter spins while the owner runs, and sleeps in a queue when it does not.
//!
//! ```text
//! count      1 free | 0 held | below 0 held, and threads may sleep (the word is count - 1)
//! wait_lock  protects the queue
//! waiters    the queue of sleepers, first and last
//! owner      the thread that holds the mutex; 0: none, or it has not said so yet. A hint
//!
//! count, decrement flavour
//!   1 -> 0      lock of a free mutex
//!   n -> n-1    lock that fails: the mark of a waiter, if count was 0           `take_fast`
//!   0 -> 1      unlock, no mark
//!   n -> n+1    unlock of a marked count; then * -> 1                           `unlock_slow`
//! exchange flavour
//!   1 -> 0      lock of a free mutex
//!   n -> 0, then * -> -1    lock that fails; from 1 it has the mutex after all  `take_fast`
//!   n -> 1      unlock; if n was not 0, wakes a waiter
//! both
//!   1 -> 0      try_lock, and spinners                                          `try_take`
//!   * -> -1     waiters; from 1 they have the mutex                             `take_marking`
//!  -n -> 0      such a waiter that leaves the queue empty                       `enter`
//! ```
//! 1. Only a step that changes count from 1 to 0 or -1 takes the mutex. Only its holder makes count
//!    1.
//! 2. If there are waiters, and none of them is awake, count is below 0 or an unlock is about to
//!    wake the first. A waiter marks count, or sees it marked, under `wait_lock`, before it sleeps.
//!    If another thread takes the free mutex before a woken waiter does, count has no mark any
//!    more. So the woken waiter marks count again before it sleeps again or gives up.
//! 3. Only the holder takes a mark off, and it then locks `wait_lock`, or holds it. So a load of
//!    count under `wait_lock` that finds a mark is as good as an exchange: the unlock will find the
//!    waiter in the queue.
//! 4. A waiter that gives up leaves count as it is. A superfluous mark costs one slow unlock. A 0
//!    in its place could undo an unlock that is under way, and the mutex would be lost.
//!
//! A waiter with a limit checks it while it spins, but not while it queues for spinning
//! ([`InTurns`], [`OneSpins`]). No thread can leave that queue before it has been the head. So it
//! may wait for as long as the threads in front of it spin.
//!
//! `unlock` accesses the mutex after other threads may hold it. A thread that frees a mutex must
//! know that every `unlock` has returned.
//!
//! Fairness: none. The first waiter of the queue is woken, and competes with spinners and newcomers
//! each time.
//! Source: Molnar's mutex of 2006, with Zijlstra's spinning of 2009, as of Linux 3.7; Long's
//! pre-reads and queue of spinners of 2013. Written from a description in our own words.

mod spinners;

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::classic::ticket::TicketLock;
use crate::events::LockEvent;
use crate::parking::{GaveUp, Limit, RawTimedLock, WaitList, WaitLock, Waiter, locked};
use crate::platform::{Atomic, AtomicInt, ParkTimeout, Platform, Priority};
use crate::raw::{RawLock, RawTryLock};
use crate::schedule::{OwnerState, Schedule, Spin, ThreadId};
use crate::tuning::Standard;

pub use spinners::{Crowd, InTurns, Nobody, OneSpins, Spinners, Turn};

/// The word of a mutex whose count is 1.
const FREE: u32 = word_of(1);
const HELD: u32 = word_of(0);
const MARKED: u32 = word_of(-1);
/// A count below this is set to -1 again. Each thread that comes and gives up counts a held mutex
/// down, which must not make the mutex free by an overflow.
const LEAST_COUNT: i32 = -(1 << 30);

const _: () = assert!(FREE == 0 && count_of(MARKED) == -1);
// Each thread looks at count after it has counted down, so it counts down at most once below
// `LEAST_COUNT`.
const _: () = assert!((LEAST_COUNT as i64) - (1 << ThreadId::BITS) > i32::MIN as i64);

const fn word_of(count: i32) -> u32 {
    (count as u32).wrapping_sub(1)
}

const fn count_of(word: u32) -> i32 {
    word.wrapping_add(1) as i32
}

words! {
    /// How the fast paths take and release a mutex.
    pub enum FastPath {
        /// They count down and up. Linux on x86.
        Decrement "decrement",
        /// They swap in 0 and 1. Linux on processors without a counting instruction.
        Exchange "exchange",
    }
}

words! {
    /// When a waiter omits the exchange by which it tries to take the mutex.
    pub enum PreRead {
        /// Never: it does not read first.
        Off "off",
        /// If it reads -1. For any processor.
        Marked "marked",
        /// If it reads a count below 0. For x86, where failed attempts make count less than -1.
        Negative "negative",
    }
}

switches! {
    /// The switches of [`CounterMutex`]. The defaults are those of Linux 3.7.10 on x86, with both
    /// pre-reads of the patch of April 2013.
    pub trait CounterMutexTuning;
    SWITCHES from 32;

    /// How the fast paths take and release the mutex.
    fn fast_path("fast-path") -> FastPath as word = FastPath::Decrement;
    /// Whether a waiter reads before it swaps. This saves the cache line's transfer to the waiter
    /// and back to the holder, which needs it to unlock. Costs a read where the mutex is free.
    fn pre_read("waiter-preread") -> PreRead as word = PreRead::Negative;
    /// Whether a spinner reads before its compare-exchange, for the same reason.
    fn spinner_pre_read("spinner-preread") -> bool as flag = true;
    /// Whether the slow unlock makes count 1 before it locks `wait_lock`, as since Linux 3.15. If
    /// not, no thread can take the mutex while the unlock waits for `wait_lock`. (The exchange
    /// flavour has made it 1 already.)
    fn unlocks_first("unlocks-first") -> bool as flag = false;
    /// Whether an unlock wakes after it has released `wait_lock`, as since Linux 4.6.
    fn wakes_last("wakes-last") -> bool as flag = false;
}

crate::tuning! {
    /// No pre-read: Linux 3.7.10.
    pub struct NoPreRead: CounterMutexTuning {
        pre_read: PreRead = PreRead::Off;
        spinner_pre_read: bool = false;
    }
}

crate::tuning! {
    /// The pre-read of spinners only.
    pub struct SpinnerPreRead: CounterMutexTuning {
        pre_read: PreRead = PreRead::Off;
    }
}

crate::tuning! {
    /// The pre-read of waiters only.
    pub struct WaiterPreRead: CounterMutexTuning {
        spinner_pre_read: bool = false;
    }
}

crate::tuning! {
    /// The pre-reads in the form for any processor.
    pub struct MarkedPreRead: CounterMutexTuning {
        pre_read: PreRead = PreRead::Marked;
    }
}

crate::tuning! {
    /// The exchange flavour, with pre-reads.
    pub struct Exchange: CounterMutexTuning {
        fast_path: FastPath = FastPath::Exchange;
        pre_read: PreRead = PreRead::Marked;
    }
}

crate::tuning! {
    /// Unlocks without waiting for `wait_lock`, and wakes without holding it: Linux 4.6, except for
    /// its queue of spinners.
    pub struct UnlockFirst: CounterMutexTuning {
        unlocks_first: bool = true;
        wakes_last: bool = true;
    }
}

/// See the [module](self). 32 bytes, plus a pointer with a queue of spinners.
///
/// `W` is the lock of the queue. The default is a ticket lock, as in the kernel: a thread that has
/// preempted its holder waits for it without bound. With a [`QueueLock`](crate::parking::QueueLock)
/// it sleeps after a bounded time.
#[repr(C)]
pub struct CounterMutex<
    P: Platform,
    S: Spinners<P> = Crowd,
    T: CounterMutexTuning = Standard,
    W: WaitLock = TicketLock<P>,
> {
    word: P::U32,
    wait_lock: W,
    waiters: WaitList<P>,
    owner: P::U32,
    spinners: S,
    tuning: PhantomData<T>,
}

impl<P: Platform, S: Spinners<P>, T: CounterMutexTuning, W: WaitLock> CounterMutex<P, S, T, W> {
    /// An unlocked mutex, in `const`.
    pub const fn new() -> Self {
        Self {
            word: Atomic::ZERO,
            wait_lock: W::FREE,
            waiters: WaitList::new(),
            owner: Atomic::ZERO,
            spinners: S::NONE,
            tuning: PhantomData,
        }
    }

    /// Tries to take the mutex. If it is not free, leaves a mark.
    #[inline(always)]
    fn take_fast(&self) -> bool {
        match T::fast_path() {
            // Ordering: Acquire, pairs with the Releases in `release_fast` and `unlock_slow`: the
            // previous section happens before ours.
            FastPath::Decrement => self.word.fetch_sub(1, Acquire) == FREE,
            // The 0 may have replaced a mark.
            // Ordering: Acquire, as above, both times.
            FastPath::Exchange => self.word.swap(HELD, Acquire) == FREE || self.swap_mark(),
        }
    }

    /// Makes a held mutex free. False if there is a mark: then a waiter may sleep, and with
    /// [`FastPath::Decrement`] the mutex is still held.
    #[inline(always)]
    fn release_fast(&self) -> bool {
        match T::fast_path() {
            // Ordering: Release, pairs with the Acquires that take the mutex: our section happens
            // before the next.
            FastPath::Decrement => self.word.fetch_add(1, Release) == HELD,
            // Ordering: Release, as above.
            FastPath::Exchange => self.word.swap(FREE, Release) == HELD,
        }
    }

    /// * -> -1. Whether that took the mutex.
    #[inline]
    fn swap_mark(&self) -> bool {
        // Ordering: Acquire, as in `take_fast`.
        self.word.swap(MARKED, Acquire) == FREE
    }

    /// 1 -> 0.
    #[inline]
    fn try_take(&self) -> bool {
        // Ordering: Acquire, as in `take_fast`; Relaxed on failure, where nothing is read through
        // the value.
        self.word.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    /// One attempt of a waiter, after which count is marked. Under `wait_lock`.
    fn take_marking(&self) -> bool {
        // Relaxed: invariant 3.
        let is_marked = match T::pre_read() {
            PreRead::Off => false,
            PreRead::Marked => self.word.load(Relaxed) == MARKED,
            PreRead::Negative => (LEAST_COUNT..0).contains(&count_of(self.word.load(Relaxed))),
        };
        !is_marked && self.swap_mark()
    }
}

impl<P, S: Spinners<P>, T: CounterMutexTuning, W: WaitLock> CounterMutex<P, S, T, W>
where
    P: ParkTimeout + Schedule + Priority,
{
    #[inline(always)]
    fn set_owner(&self) {
        // Relaxed: a hint, which only the holder writes.
        self.owner.store(P::thread_id().get(), Relaxed);
    }

    /// Safety: as [`RawLock::lock`], if it succeeds. The caller has marked count.
    #[cold]
    #[inline(never)]
    #[doc(hidden)] // public for tests of another fast path
    pub unsafe fn lock_slow(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            if self.spin(limit) {
                P::count(LockEvent::MutexOptLock);
                return Ok(());
            }
            P::with_record(|waiter| limit.watch(waiter, || self.wait(waiter, limit)))
        })
    }

    /// Spins as long as the owner runs, within the limit. Returns whether it has taken the mutex.
    fn spin(&self, limit: &Limit<'_, P>) -> bool {
        let mut spin = Spin::default();
        let may_begin = || {
            let owner = ThreadId::new(self.owner.load(Relaxed));
            owner.is_none_or(|owner| P::owner_state(owner) != OwnerState::Asleep)
        };
        // SAFETY: `may_begin` and `turn` do not unwind.
        let has_taken = unsafe { self.spinners.spin(may_begin, || self.turn(&mut spin, limit)) };
        if has_taken {
            self.set_owner();
        }
        has_taken
    }

    /// One turn of a spinner: waits until the owner says that it leaves, and tries to take the
    /// mutex.
    fn turn(&self, spin: &mut Spin, limit: &Limit<'_, P>) -> Turn {
        let is_over = || limit.is_reached().is_some();
        let owner = ThreadId::new(self.owner.load(Relaxed));
        if let Some(owner) = owner {
            let gone = P::spin_on_owner(spin, &self.owner, Relaxed, owner, |v| v != owner.get() || is_over());
            // Another owner has come: contention is high, so this spinner sleeps. Or the owner does
            // not run, or the limit is reached.
            if gone != Ok(0) {
                return Turn::Stop;
            }
        }
        if (!T::spinner_pre_read() || self.word.load(Relaxed) == FREE) && self.try_take() {
            return Turn::Taken;
        }
        // The holder may have been preempted just before it says that it is the owner. An urgent
        // thread on the same processor would keep it from saying so.
        if owner.is_none() && (P::should_give_way(spin) || P::is_priority()) || is_over() {
            return Turn::Stop;
        }
        Turn::Again
    }

    /// Waits in the queue.
    fn wait(&self, waiter: &Waiter<P>, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        let at_once = locked(&self.wait_lock, || {
            // SAFETY: under `wait_lock`; `look` takes it out before we return.
            unsafe { self.waiters.push(waiter) };
            // Two attempts: one before the loop, and one in it.
            self.take_marking().then(|| self.enter(waiter)).or_else(|| self.look(waiter, limit))
        });
        if let Some(outcome) = at_once {
            outcome.inspect(|()| P::count(LockEvent::MutexAtOnce))?;
            return Ok(());
        }
        loop {
            P::count(LockEvent::MutexSleep);
            // Whatever ended the sleep: only a failed attempt under `wait_lock` is a reason to give
            // up.
            let _ = waiter.park_within(limit);
            if let Some(outcome) = locked(&self.wait_lock, || self.look(waiter, limit)) {
                outcome.inspect(|()| P::count(LockEvent::MutexAfterSleep))?;
                return Ok(());
            }
        }
    }

    /// A waiter tries to take the mutex, and if that fails, checks whether it gives up. Under
    /// `wait_lock`.
    fn look(&self, waiter: &Waiter<P>, limit: &Limit<'_, P>) -> Option<Result<(), GaveUp>> {
        if self.take_marking() {
            return Some(self.enter(waiter));
        }
        let gave_up = limit.is_reached()?;
        // SAFETY: under `wait_lock`, and in the queue.
        unsafe { self.waiters.remove(waiter) };
        Some(Err(gave_up))
    }

    /// A waiter that has taken the mutex leaves the queue. Under `wait_lock`.
    fn enter(&self, waiter: &Waiter<P>) -> Result<(), GaveUp> {
        // SAFETY: under `wait_lock`, and in the queue.
        unsafe { self.waiters.remove(waiter) };
        self.set_owner();
        if self.waiters.is_empty() {
            // Relaxed: we hold the mutex. A thread that has marked count meanwhile will lock
            // `wait_lock`, and mark it again.
            self.word.store(HELD, Relaxed);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn unlock_slow(&self) {
        let is_held = T::fast_path() == FastPath::Decrement;
        if is_held && T::unlocks_first() {
            self.release();
        }
        let call = locked(&self.wait_lock, || {
            if is_held && !T::unlocks_first() {
                self.release();
            }
            let first = self.waiters.first();
            if first.is_null() {
                return None;
            }
            P::count(LockEvent::MutexWake);
            // SAFETY: in the queue, under `wait_lock`.
            let call = unsafe { &*first }.wake()?;
            if T::wakes_last() {
                return Some(call);
            }
            call.make();
            None
        });
        if let Some(call) = call {
            call.make();
        }
    }

    /// * -> 1, by the holder.
    fn release(&self) {
        // Ordering: Release, as in `release_fast`.
        self.word.store(FREE, Release);
    }
}

impl<P: Platform, S: Spinners<P>, T: CounterMutexTuning, W: WaitLock> Default for CounterMutex<P, S, T, W> {
    fn default() -> Self {
        Self {
            word: Atomic::new(FREE),
            wait_lock: W::default(),
            waiters: WaitList::default(),
            owner: Atomic::new(0),
            spinners: S::default(),
            tuning: PhantomData,
        }
    }
}

// SAFETY: invariant 1; Release and Acquire on the word order the sections.
unsafe impl<P, S: Spinners<P>, T: CounterMutexTuning, W: WaitLock> RawLock for CounterMutex<P, S, T, W>
where
    P: ParkTimeout + Schedule + Priority,
{
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        if self.take_fast() {
            return self.set_owner();
        }
        // SAFETY: the caller's.
        let locked = unsafe { self.lock_slow(&Limit::NONE) };
        debug_assert!(locked.is_ok(), "gave up without a limit");
    }

    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        self.owner.store(0, Relaxed);
        if !self.release_fast() {
            self.unlock_slow();
        }
    }
}

// SAFETY: as above.
unsafe impl<P, S: Spinners<P>, T: CounterMutexTuning, W: WaitLock> RawTryLock for CounterMutex<P, S, T, W>
where
    P: ParkTimeout + Schedule + Priority,
{
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        let has_taken = self.try_take();
        if has_taken {
            self.set_owner();
        }
        has_taken
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) != FREE
    }
}

// SAFETY: as above; invariants 2 and 4.
unsafe impl<P, S: Spinners<P>, T: CounterMutexTuning, W: WaitLock> RawTimedLock for CounterMutex<P, S, T, W>
where
    P: ParkTimeout + Schedule + Priority,
{
    type Platform = P;

    #[inline]
    unsafe fn lock_within(&self, _node: &(), limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        if self.take_fast() {
            self.set_owner();
            return Ok(());
        }
        // SAFETY: the caller's.
        unsafe { self.lock_slow(limit) }
    }
}

#[cfg(test)]
mod tests;
