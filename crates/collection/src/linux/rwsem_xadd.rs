//! The kernel's reader-writer semaphore of 2013. All threads count in one word, by additions.
//!
//! ```text
//! count   low 32 bits: the number of active threads, which hold the semaphore or try to
//!         the whole, signed: less than 0 if a thread waits or writes
//!
//! with W = -2^32:
//!  0          free
//!  n          n readers
//!  W+1        a writer; or, with sleepers, one reader
//!  W+n        n readers, and sleepers
//!  W          sleepers, and no active thread
//!  2W+1       a writer, and sleepers
//!
//!  c -> c+1       `lock_shared`: a reader, if the result is not less than 0
//!  c -> c-1       `unlock_shared`; an attempt that failed (and +W, if it is the first to queue)
//!  c -> c+W+1     `lock`: a writer, if c was 0
//!  c -> c-W-1     `unlock`; an attempt that failed
//!  c -> c-W       `downgrade`; the last waiter has left the queue
//!  c -> c+W       the first waiter has entered the queue
//!  W -> W+1, ...  a waker lets n readers in
//!  W -> 2W+1      a queued writer takes it, with others still queued; or a spinning one
//!  W -> W+1       a queued writer takes it, and was the only one
//! ```
//! The values are compared as signed numbers. As unsigned numbers, every sleeper would look like
//! very many readers.
//!
//! - owner: the writing thread, if it has said so. A hint for spinners.
//! - waking: 0 no thread wakes | 1 a thread wakes | 2 it must do so again
//!   ([`XaddTuning::single_waker`]).
//!
//! 1. For a thread that holds `wait_lock`, the count has W for the queue if and only if the queue
//!    is not empty.
//! 2. A thread that makes the count W, or fails and leaves it W, wakes the first waiter or tries
//!    itself.
//! 3. A reader that is let in has been counted before its signal is set. All readers of a group are
//!    counted before the first signal, since a reader may release at once.
//! 4. Readers are let in together up to the next writer. A writer is only told to try: other
//!    threads may take the lock before it does.
//!
//! `unlock`, `unlock_shared` and `downgrade` may access `wait_lock` and `waking` after other
//! threads may hold the lock, or have released it. **A thread that frees a semaphore must know that
//! all of these calls have returned.** It is not enough that it was the last to lock it.
//!
//! Fairness: none. Writers that arrive may overtake all waiters, for ever.
//! Source: the algorithm of Linux' `lib/rwsem.c` of versions 3.10 to 3.12, and of the series "rwsem
//! performance optimizations", version 8 (Chen, Shi, Low, Long; October 2013). Written from
//! descriptions in our own words. The single waker is in a form that loses no wake-up.

mod spin;
mod tuning;

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::classic::ticket::TicketLock;
use crate::events::LockEvent;
use crate::linux::mcs_spinlock::SpinnerQueue;
use crate::parking::{Signal, WaitList, WaitLock, Waiter, WakeList, locked};
use crate::platform::{Atomic, AtomicInt, Park, Platform, Priority};
use crate::raw::{RawLock, RawRwLock, RawTryLock};
use crate::schedule::Schedule;
use crate::tuning::Standard;

pub use tuning::{Base, SWITCHES, SingleWaker, Spinners, WriterSpin, XaddTuning};

/// A value of `waking` in [`RwsemXadd`]: no release wakes.
const IDLE: u32 = 0;
const WAKING: u32 = 1;
const WAKE_AGAIN: u32 = 2;

/// One reader, or an attempt of one.
const ACTIVE: u64 = 1;
const ACTIVE_MASK: u64 = u32::MAX as u64;
/// Added to the count while the queue is not empty; W in the diagram.
const WAITING: u64 = !ACTIVE_MASK;
/// A writer, or an attempt of one.
const WRITER: u64 = WAITING + ACTIVE;

const _: () = assert!(signed(WAITING) == -(1 << 32) && WAITING & ACTIVE_MASK == 0);

const fn signed(count: u64) -> i64 {
    count as i64
}

/// Whether no writer is active; there may be readers. For a count with sleepers in it.
const fn no_writer(count: u64) -> bool {
    signed(count) >= signed(WAITING)
}

/// Values of [`Waiter::note`].
const READER: u32 = 0;
const WRITES: u32 = 1;

/// See the [module](self). 48 bytes with the default `W`.
///
/// `W` is the lock of the queue. The default is a ticket lock, as in the kernel: a thread that has
/// preempted its holder waits for it without bound. With a [`QueueLock`](crate::parking::QueueLock)
/// it sleeps after a bounded time.
#[repr(C)]
pub struct RwsemXadd<P: Platform, T: XaddTuning = Standard, W: WaitLock = TicketLock<P>> {
    count: P::U64,
    wait_lock: W,
    waking: P::U32,
    list: WaitList<P>,
    owner: P::U32,
    /// The queue of spinning writers. Only the first of them looks at the count.
    spinners: SpinnerQueue<P, Spinners<T>>,
    switches: PhantomData<T>,
}

impl<P: Platform, T: XaddTuning, W: WaitLock> RwsemXadd<P, T, W> {
    /// An unlocked lock, in `const`.
    pub const fn new() -> Self {
        Self {
            count: Atomic::ZERO,
            wait_lock: W::FREE,
            waking: Atomic::ZERO,
            list: WaitList::new(),
            owner: Atomic::ZERO,
            spinners: SpinnerQueue::new(),
            switches: PhantomData,
        }
    }
}

impl<P: Platform, T: XaddTuning, W: WaitLock> Default for RwsemXadd<P, T, W> {
    fn default() -> Self {
        Self {
            count: Atomic::new(0),
            wait_lock: W::default(),
            waking: Atomic::new(0),
            list: WaitList::default(),
            owner: Atomic::new(0),
            spinners: SpinnerQueue::default(),
            switches: PhantomData,
        }
    }
}

/// The waiters that a waker may wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whom {
    /// The first waiter, whether it reads or writes.
    Any,
    /// Readers, if they are first.
    Readers,
    /// Readers, if they are first. The caller holds the lock as a reader, so that no writer can
    /// take it meanwhile.
    FellowReaders,
}

impl<P: Park + Schedule + Priority, T: XaddTuning, W: WaitLock> RwsemXadd<P, T, W> {
    /// The slow path of a reader, after a failed attempt.
    #[cold]
    #[inline(never)]
    fn lock_shared_slow(&self) {
        P::in_slow_path(|| {
            P::with_record(|me: &Waiter<P>| {
                me.note.store(READER, Relaxed);
                locked(&self.wait_lock, || {
                    let is_first = self.list.is_empty();
                    let change = if is_first { WAITING.wrapping_sub(ACTIVE) } else { ACTIVE.wrapping_neg() };
                    // SAFETY: under wait_lock; the record stays until the grant.
                    unsafe { self.list.push(me) };
                    // Relaxed: if no thread is active, `admit` orders.
                    let count = self.count.fetch_add(change, Relaxed).wrapping_add(change);
                    if count == WAITING || is_first && no_writer(count) {
                        // SAFETY: under wait_lock, and the queue is not empty.
                        unsafe { self.wake_first(Whom::Any) };
                    }
                });
                P::count(LockEvent::RwsemSleepReader);
                while me.park() != Signal::Granted {}
                P::count(LockEvent::RwsemRlock);
            });
        });
    }

    /// The slow path of a writer, after a failed attempt.
    #[cold]
    #[inline(never)]
    fn lock_slow(&self) {
        P::in_slow_path(|| {
            // Relaxed: nothing is published.
            self.count.fetch_sub(WRITER, Relaxed);
            let spins = T::writer_spin() == WriterSpin::BeforeQueue;
            if !spins || !self.spin(|| self.try_ahead_of_queue()) {
                P::with_record(|me| self.lock_queued(me));
            }
        });
    }

    fn lock_queued(&self, me: &Waiter<P>) {
        me.note.store(WRITES, Relaxed);
        let mut taken = locked(&self.wait_lock, || {
            let is_first = self.list.is_empty();
            // SAFETY: under wait_lock; the record stays until we have removed it.
            unsafe { self.list.push(me) };
            if is_first {
                self.count.fetch_add(WAITING, Relaxed);
            } else {
                let count = self.count.load(Relaxed);
                if count != WAITING && no_writer(count) {
                    // Readers hold the lock. Other readers that are first must not wait because of
                    // us.
                    // SAFETY: under wait_lock, and the queue is not empty.
                    unsafe { self.wake_first(Whom::Readers) };
                }
            }
            self.try_queued(me)
        });
        while !taken {
            let spins = T::writer_spin() == WriterSpin::Queued;
            if !spins || !self.spin(|| self.is_inactive()) {
                P::count(LockEvent::RwsemSleepWriter);
                // By invariant 2 the thread that is active now will wake us, or the first waiter.
                while me.park() != Signal::Woken || !self.is_inactive() {}
            }
            taken = locked(&self.wait_lock, || self.try_queued(me));
        }
        P::count(LockEvent::RwsemWlock);
    }

    fn is_inactive(&self) -> bool {
        self.count.load(Relaxed) & ACTIVE_MASK == 0
    }

    /// An attempt of a queued writer, under `wait_lock`.
    fn try_queued(&self, me: &Waiter<P>) -> bool {
        if self.count.load(Relaxed) != WAITING {
            return false;
        }
        // SAFETY: we are in the list, under its lock.
        let is_alone = self.list.is_first(me) && unsafe { self.list.after(me) }.is_null();
        let new = if is_alone { WRITER } else { WAITING.wrapping_add(WRITER) };
        // W -> W+1, W -> 2W+1
        // Ordering: Acquire, pairs with the Releases of the previous holders.
        if self.count.compare_exchange(WAITING, new, Acquire, Relaxed).is_err() {
            return false;
        }
        self.note_owner();
        // SAFETY: as above.
        unsafe { self.list.remove(me) };
        true
    }

    /// An attempt of a spinning writer that is in no queue.
    fn try_ahead_of_queue(&self) -> bool {
        let count = self.count.load(Relaxed);
        if count != 0 && count != WAITING {
            return false;
        }
        // 0 -> W+1, W -> 2W+1
        // Ordering: Acquire, as above.
        let taken = self.count.compare_exchange(count, count.wrapping_add(WRITER), Acquire, Relaxed).is_ok();
        if taken {
            self.note_owner();
        }
        taken
    }

    /// Wakes waiters after a release that has left some.
    #[cold]
    #[inline(never)]
    fn wake(&self, whom: Whom) {
        P::in_slow_path(|| {
            let wake = || {
                locked(&self.wait_lock, || {
                    if !self.list.is_empty() {
                        // SAFETY: under wait_lock, and the queue is not empty.
                        unsafe { self.wake_first(whom) };
                    }
                });
            };
            if T::single_waker() && whom == Whom::Any {
                self.wake_alone(wake);
            } else {
                wake();
            }
        });
    }

    /// Calls `wake`, or makes the thread that calls it at present call it once more.
    fn wake_alone(&self, wake: impl Fn()) {
        // * -> 2
        // Ordering: Release, pairs with the Acquire below: the thread that wakes sees the count
        // that we have left.
        if self.waking.swap(WAKE_AGAIN, Release) != IDLE {
            P::count(LockEvent::RwsemWakeSkipped);
            return;
        }
        loop {
            // 2 -> 1
            // Ordering: Acquire, pairs with the Release above, of all threads that have come so
            // far.
            self.waking.swap(WAKING, Acquire);
            wake();
            // 1 -> 0. Relaxed: the next thread wakes under `wait_lock`.
            if self.waking.compare_exchange(WAKING, IDLE, Relaxed, Relaxed).is_ok() {
                return;
            }
        }
    }

    /// Wakes a first writer, or lets in the first readers. Safety: the caller holds `wait_lock`,
    /// and the queue is not empty.
    unsafe fn wake_first(&self, whom: Whom) {
        // SAFETY: waiters in the list are alive.
        let first = unsafe { &*self.list.first() };
        if first.note.load(Relaxed) == WRITES {
            if whom == Whom::Any {
                P::count(LockEvent::RwsemWakeWriter);
                if let Some(call) = first.wake() {
                    call.make();
                }
            }
            return;
        }
        if whom != Whom::FellowReaders && !self.admit() {
            return;
        }
        let (mut readers, mut wake_list) = (0, WakeList::EMPTY);
        loop {
            let reader = self.list.first();
            // SAFETY: as above; taken out of the list, they stay until they are granted.
            unsafe {
                if reader.is_null() || (*reader).note.load(Relaxed) != READER {
                    break;
                }
                self.list.remove(reader);
                wake_list.push(reader);
            }
            P::count(LockEvent::RwsemWakeReader);
            readers += ACTIVE;
        }
        let counted = if whom == Whom::FellowReaders { 0 } else { ACTIVE };
        let sleepers = if self.list.is_empty() { WAITING } else { 0 };
        // Relaxed: `admit` has ordered us after the last writer, or we were the writer.
        self.count.fetch_add((readers - counted).wrapping_sub(sleepers), Relaxed);
        // Only now, by invariant 3.
        wake_list.grant();
    }

    /// Counts the first reader, unless a writer is active, whose release will wake it.
    fn admit(&self) -> bool {
        loop {
            if T::wake_pre_read() && !no_writer(self.count.load(Relaxed)) {
                return false;
            }
            // Ordering: Acquire, pairs with the Release in `unlock`: what the last writer did is
            // visible to us, and by the grant to the readers.
            if no_writer(self.count.fetch_add(ACTIVE, Acquire)) {
                return true;
            }
            // Relaxed: nothing is published.
            if self.count.fetch_sub(ACTIVE, Relaxed) & ACTIVE_MASK != ACTIVE {
                return false;
            }
            // The writer has gone meanwhile. It saw us active, so it woke no waiter.
        }
    }

    /// Says that the caller writes.
    #[inline(always)]
    fn note_owner(&self) {
        if T::writer_spin() != WriterSpin::Never {
            self.owner.store(P::thread_id().get(), Relaxed);
        }
    }

    /// Says that the caller does not write any more.
    #[inline(always)]
    fn forget_owner(&self) {
        if T::writer_spin() != WriterSpin::Never {
            self.owner.store(0, Relaxed);
        }
    }
}

// SAFETY: only an add or exchange that finds no active thread makes a writer. Until the `unlock` of
// this writer, other threads find the count less than 0 or not 0. Release and Acquire on the count
// order the sections.
unsafe impl<P: Park + Schedule + Priority, T: XaddTuning, W: WaitLock> RawLock for RwsemXadd<P, T, W> {
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        // c -> c+W+1
        // Ordering: Acquire, pairs with the Releases in `unlock` and `unlock_shared`: the sections
        // before happen before ours.
        if self.count.fetch_add(WRITER, Acquire) == 0 {
            self.note_owner();
        } else {
            self.lock_slow();
        }
    }

    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        self.forget_owner();
        // c -> c-W-1
        // Ordering: Release, pairs with the Acquires of the next holders.
        if signed(self.count.fetch_sub(WRITER, Release).wrapping_sub(WRITER)) < 0 {
            self.wake(Whom::Any);
        }
    }
}

// SAFETY: as above.
unsafe impl<P: Park + Schedule + Priority, T: XaddTuning, W: WaitLock> RawTryLock for RwsemXadd<P, T, W> {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        if T::try_pre_read() && self.count.load(Relaxed) != 0 {
            return false;
        }
        // Ordering: Acquire, as in `lock`.
        let taken = self.count.compare_exchange(0, WRITER, Acquire, Relaxed).is_ok();
        if taken {
            self.note_owner();
        }
        taken
    }

    #[inline]
    fn is_locked(&self) -> bool {
        !self.is_inactive()
    }
}

// SAFETY: a reader is in the count while it reads, so that a writer's attempt finds it not 0. A
// reader that finds the count less than 0 takes itself out again, and is let in only when no writer
// is active.
unsafe impl<P: Park + Schedule + Priority, T: XaddTuning, W: WaitLock> RawRwLock for RwsemXadd<P, T, W> {
    #[inline]
    unsafe fn lock_shared(&self, _node: &()) {
        // c -> c+1
        // Ordering: Acquire, pairs with the Release in `unlock`: the last writer's section happens
        // before ours.
        if signed(self.count.fetch_add(ACTIVE, Acquire).wrapping_add(ACTIVE)) < 0 {
            self.lock_shared_slow();
        }
    }

    #[inline]
    unsafe fn try_lock_shared(&self, _node: &()) -> bool {
        let mut count = self.count.load(Relaxed);
        while signed(count.wrapping_add(ACTIVE)) > 0 {
            // Ordering: Acquire, as above.
            match self.count.compare_exchange(count, count.wrapping_add(ACTIVE), Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => count = now,
            }
        }
        false
    }

    #[inline]
    unsafe fn unlock_shared(&self, _node: &()) {
        // c -> c-1
        // Ordering: Release, pairs with the Acquires of the next writer.
        let count = self.count.fetch_sub(ACTIVE, Release).wrapping_sub(ACTIVE);
        if signed(count) < 0 && count & ACTIVE_MASK == 0 {
            self.wake(Whom::Any);
        }
    }

    #[inline]
    unsafe fn downgrade(&self, _node: &()) {
        self.forget_owner();
        // c -> c-W
        // Ordering: Release, pairs with the Acquires of the next readers.
        if signed(self.count.fetch_sub(WAITING, Release).wrapping_sub(WAITING)) < 0 {
            self.wake(Whom::FellowReaders);
        }
    }
}

#[cfg(test)]
mod tests;
