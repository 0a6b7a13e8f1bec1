//! The kernel's reader-writer semaphore since 2019: readers add themselves, writers set a bit, and
//! a waiter that has waited for long is not overtaken any more.
//!
//! ```text
//! count   bit 0 WRITER | 1 WAITERS | 2 HANDOFF | 3-7 unused | 8-63 readers
//!
//! (readers, HANDOFF, WAITERS, WRITER)
//!  r,0,0,0 -> r+1,0,0,0   a reader: `lock_shared`, `try_lock_shared`
//!  r,*,*,* -> r+1,*,*,*   the attempt of a reader, which goes ahead of sleepers or takes it back
//!  r,*,*,0 -> r-1,*,*,0   `unlock_shared`
//!  0,0,0,0 -> 0,0,0,1     a writer: `lock`, `try_lock`
//!  0,0,*,0 -> 0,0,*,1     a writer that spins                           `try_ahead_of_queue`
//!  0,*,1,0 -> 0,0,*,1     a queued writer; WAITERS stays if others wait `try_queued`
//!  *,0,1,* -> *,1,1,*     a waiter has waited for too long              `try_queued`, `wake_first`
//!  *,*,*,1 -> *,*,*,0     `unlock`
//!  0,*,*,1 -> 1,*,*,0     `downgrade`
//!  r,*,1,0 -> r+n,0,*,0   a waker lets n readers in                     `wake_first`
//!  *,*,1,* -> *,0,0,*     the last waiter has given up                  `leave`
//! ```
//! owner: bit 0 OWNED_BY_READERS | 1 NOT_FOR_SPINNERS | the writing thread's id. It is a hint for
//! spinners: readers say only that there are some, and do not take it back. NOT_FOR_SPINNERS: a
//! thread has spun for readers for too long.
//!
//! 1. For a thread that holds `wait_lock`, WAITERS is set if and only if the queue is not empty.
//!    HANDOFF is set only while WAITERS is.
//! 2. WAITERS and HANDOFF change only under `wait_lock`.
//! 3. While HANDOFF is set, only waiters take the lock. If the first waiter is marked, no other
//!    writer takes it.
//! 4. Readers that are let in are taken out of the queue, marked and counted before the first of
//!    them is granted the lock. That reader may release it at once.
//! 5. A release that leaves waiters, but no holder, wakes the first waiter. A first waiter that
//!    gives up wakes the next.
//! 6. Readers in the count do not prove that a reader holds the lock. An attempt counts too, for a
//!    moment.
//!
//! `unlock`, `unlock_shared` and `downgrade` may lock `wait_lock` after other threads may hold the
//! lock, or have released it. **A thread that frees a semaphore must know that all of these calls
//! have returned.** It is not enough that it was the last to lock it.
//!
//! Fairness: a waiter may be overtaken for 4 ms ([`RwsemTuning::handoff_ns`]). After that, it is
//! not overtaken any more as soon as it, or a thread that wakes it, looks. Then it is next after
//! the present holders. Readers are let in together, 256 at a time.
//! Source: the algorithm of Linux' `kernel/locking/rwsem.c` (Long, 2019 and later), written from a
//! description in our own words.

mod queue;
mod spin;
mod tuning;

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::osq::{self, Osq};
use crate::classic::ticket::TicketLock;
use crate::parking::{GaveUp, Limit, RawTimedLock, RawTimedRwLock, WaitList, WaitLock};
use crate::platform::{Atomic, AtomicInt, LocalNodes, ParkTimeout, Platform, Priority};
use crate::raw::{RawLock, RawRwLock, RawTryLock};
use crate::schedule::{Schedule, ThreadId};
use crate::tuning::Standard;

use queue::Whom;
pub use tuning::{
    LeadingReaders, NoHandoff, NoReaderSteal, NoSpin, NoSpinForReaders, RwsemTuning, SWITCHES,
    SpinningReaders,
};

/// Set while a writer holds the lock.
const WRITER: u64 = 1;
/// Set while there are waiters in the queue.
const WAITERS: u64 = 1 << 1;
/// Set while no thread may overtake the queue.
const HANDOFF: u64 = 1 << 2;
/// One reader.
const READER: u64 = 1 << 8;
const READERS: u64 = !(READER - 1);
/// The bits that a writer waits for.
const HELD: u64 = WRITER | READERS;
/// The bits that send a reader into the slow path.
const READ_FAILS: u64 = WRITER | WAITERS | HANDOFF;

/// In the owner word: readers hold the lock, or held it.
const OWNED_BY_READERS: u32 = 1;
/// In the owner word: readers have held the lock for so long that no thread should spin for them.
const NOT_FOR_SPINNERS: u32 = 1 << 1;
const OWNER_SHIFT: u32 = 2;

const _: () = assert!(ThreadId::BITS + OWNER_SHIFT <= u32::BITS && READ_FAILS & READERS == 0);

/// The capabilities that a [`Rwsem`] requires of its platform.
pub trait RwsemPlatform: ParkTimeout + Schedule + Priority + LocalNodes<osq::Node<Self>> {}

impl<P: ParkTimeout + Schedule + Priority + LocalNodes<osq::Node<P>>> RwsemPlatform for P {}

/// See the [module](self). 40 bytes with the default `W`.
///
/// `W` is the lock of the queue. The default is a ticket lock, as in the kernel: a thread that has
/// preempted its holder waits for it without bound. With a [`QueueLock`](crate::parking::QueueLock)
/// it sleeps after a bounded time.
#[repr(C)]
pub struct Rwsem<P: Platform, T: RwsemTuning = Standard, W: WaitLock = TicketLock<P>> {
    count: P::U64,
    owner: P::U32,
    /// The queue of spinners. Only the first of them looks at the count.
    spinners: Osq<P>,
    list: WaitList<P>,
    wait_lock: W,
    switches: PhantomData<T>,
}

impl<P: Platform, T: RwsemTuning, W: WaitLock> Rwsem<P, T, W> {
    /// An unlocked lock, in `const`.
    pub const fn new() -> Self {
        Self {
            count: Atomic::ZERO,
            owner: Atomic::ZERO,
            spinners: Osq::new(),
            list: WaitList::new(),
            wait_lock: W::FREE,
            switches: PhantomData,
        }
    }
}

impl<P: Platform, T: RwsemTuning, W: WaitLock> Default for Rwsem<P, T, W> {
    fn default() -> Self {
        Self {
            count: Atomic::new(0),
            owner: Atomic::new(0),
            spinners: Osq::default(),
            list: WaitList::default(),
            wait_lock: W::default(),
            switches: PhantomData,
        }
    }
}

impl<P: RwsemPlatform, T: RwsemTuning, W: WaitLock> Rwsem<P, T, W> {
    #[inline(always)]
    fn lock_with(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        // 0,0,0,0 -> 0,0,0,1
        // Ordering: Acquire, pairs with the Releases in `unlock` and `unlock_shared`: the sections
        // before happen before ours.
        if self.count.compare_exchange(0, WRITER, Acquire, Relaxed).is_err() {
            return self.lock_slow(limit);
        }
        self.note_writer(P::thread_id());
        Ok(())
    }

    #[inline(always)]
    fn lock_shared_with(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        // r,... -> r+1,...
        // Ordering: Acquire, pairs with the Releases in `unlock` and `downgrade`: the last writer's
        // section happens before ours.
        let count = self.count.fetch_add(READER, Acquire).wrapping_add(READER);
        if count & READ_FAILS != 0 {
            return self.lock_shared_slow(count, limit);
        }
        self.note_readers();
        Ok(())
    }

    /// Says in the owner word that the caller writes from now on.
    #[inline(always)]
    fn note_writer(&self, me: ThreadId) {
        self.owner.store(me.get() << OWNER_SHIFT, Relaxed);
    }

    /// Says in the owner word that the caller reads from now on, or lets readers in.
    #[inline(always)]
    fn note_readers(&self) {
        let owner = self.owner.load(Relaxed);
        if owner & !NOT_FOR_SPINNERS != OWNED_BY_READERS {
            self.owner.store_hint(owner & NOT_FOR_SPINNERS | OWNED_BY_READERS);
        }
    }
}

// SAFETY: a writer sets WRITER from a count without WRITER and readers. Only its `unlock` or
// `downgrade` clears it. Release and Acquire on the count order the sections.
unsafe impl<P: RwsemPlatform, T: RwsemTuning, W: WaitLock> RawLock for Rwsem<P, T, W> {
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        let acquired = self.lock_with(&Limit::NONE);
        debug_assert!(acquired.is_ok(), "no limit");
    }

    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        self.owner.store(0, Relaxed);
        // Ordering: Release, pairs with the Acquires of the next holders.
        if self.count.fetch_sub(WRITER, Release) & WAITERS != 0 {
            self.wake(Whom::Any);
        }
    }
}

// SAFETY: as above.
unsafe impl<P: RwsemPlatform, T: RwsemTuning, W: WaitLock> RawTryLock for Rwsem<P, T, W> {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        // Ordering: Acquire, as in `lock_with`.
        let taken = self.count.compare_exchange(0, WRITER, Acquire, Relaxed).is_ok();
        if taken {
            self.note_writer(P::thread_id());
        }
        taken
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.count.load(Relaxed) & HELD != 0
    }
}

// SAFETY: a reader is in the count while it reads, and was put there, or is let in, only from a
// count without WRITER.
unsafe impl<P: RwsemPlatform, T: RwsemTuning, W: WaitLock> RawRwLock for Rwsem<P, T, W> {
    #[inline]
    unsafe fn lock_shared(&self, _node: &()) {
        let acquired = self.lock_shared_with(&Limit::NONE);
        debug_assert!(acquired.is_ok(), "no limit");
    }

    #[inline]
    unsafe fn try_lock_shared(&self, _node: &()) -> bool {
        let mut count = self.count.load(Relaxed);
        while count & READ_FAILS == 0 {
            // Ordering: Acquire, as in `lock_shared_with`.
            match self.count.compare_exchange(count, count + READER, Acquire, Relaxed) {
                Ok(_) => {
                    self.note_readers();
                    return true;
                }
                Err(now) => count = now,
            }
        }
        false
    }

    #[inline]
    unsafe fn unlock_shared(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquires of the next writer.
        let count = self.count.fetch_sub(READER, Release).wrapping_sub(READER);
        if count & (HELD | WAITERS) == WAITERS {
            self.readers_have_gone();
            self.wake(Whom::Any);
        }
    }

    fn is_locked_exclusive(&self) -> bool {
        self.count.load(Relaxed) & WRITER != 0
    }

    #[inline]
    unsafe fn downgrade(&self, _node: &()) {
        self.note_readers();
        // 0,*,*,1 -> 1,*,*,0
        // Ordering: Release, pairs with the Acquires of the next readers.
        if self.count.fetch_add(READER - WRITER, Release) & WAITERS != 0 {
            self.wake(Whom::FellowReaders);
        }
    }
}

// SAFETY: as above; a waiter that gives up has left the queue, and has not been let in.
unsafe impl<P: RwsemPlatform, T: RwsemTuning, W: WaitLock> RawTimedLock for Rwsem<P, T, W> {
    type Platform = P;

    #[inline]
    unsafe fn lock_within(&self, _node: &(), limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        self.lock_with(limit)
    }
}

// SAFETY: as above.
unsafe impl<P: RwsemPlatform, T: RwsemTuning, W: WaitLock> RawTimedRwLock for Rwsem<P, T, W> {
    #[inline]
    unsafe fn lock_shared_within(&self, _node: &(), limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        self.lock_shared_with(limit)
    }
}

#[cfg(test)]
mod tests;
