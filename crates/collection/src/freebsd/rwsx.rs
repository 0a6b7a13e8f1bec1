//! The common part of FreeBSD's reader-writer locks: [`rw`](super::rw), whose waiters lend their
//! priority in the kernel, and [`sx`](super::sx), whose waiters may give up. Waiters spin while
//! there is reason to, and sleep in a [chain](crate::parking::chain).
//!
//! ```text
//! word   bits 5-63 readers, or a writing thread's id
//!        | 4 RECURSED | 3 SPINNER | 2 WRITE_WAITERS | 1 READ_WAITERS | 0 WRITTEN
//!        (In the kernel, WRITTEN has the opposite value, so that the free word is 1.)
//! depth  how often the writer has locked it again; only the writer accesses it
//!
//! (readers or t; WRITTEN, SPINNER, WRITE_WAITERS, READ_WAITERS); * is anything;
//! [c]: the thread holds the chain's lock
//!  r;0,0,0,*  -> r+1;0,0,0,*    a reader                                  `add_reader`
//!  r;0,*,*,*  -> r+1;0,*,*,*    a reader that holds others, or only tries `add_reader`
//!  r;0,*,*,*  -> r-1;0,*,*,*    unlock; others read, or no thread waits   `drop_reader`
//!  1;0,*,w,r  -> 0;0,*,0,r      [c] the last reader; wakes writers        `unlock_shared_slow`
//!  1;0,*,0,1  -> 0;0,*,0,0      [c] the same; wakes readers
//!  0;0,*,0,0  -> t;1,0,0,0      a writer                                  `attempt`
//!  0;0,*,*,*  -> t;1,0,*,*      [c] a writer                              `sleep_to_write`
//!  r;0,0,*,*  -> r;0,1,*,*      a writer begins to spin for readers       `spin_to_write`
//!  *;*,*,*,*  -> *;*,0,1,*      [c] a writer is about to sleep            `sleep_to_write`
//!  *;*,*,*,0  -> *;*,*,*,1      [c] a reader is about to sleep            `sleep_to_read`
//!  t;1,0,*,*  -> t|RECURSED..   the writer locks it again; and back       `recurse`, `unlock_slow`
//!  t;1,0,0,0  -> 0;0,0,0,0      unlock                                    `release`
//!  t;1,0,w,r  -> 0;0,0,0,*      [c] unlock; wakes one queue               `release_contested`
//!  t;1,0,0,0  -> 1;0,0,0,0      downgrade                                 `share`
//!  t;1,0,*,*  -> 1;0,0,*,*      [c] downgrade                             `downgrade_contested`
//!  1;0,*,*,*  -> t;1,0,*,*      upgrade                                   `try_upgrade`
//!  0;0,0,0,0  -> 0;1,0,1,1      destroy: for ever
//! ```
//! RECURSED is set only beside a writer, exactly while depth is not 0. SPINNER is set beside
//! readers, or alone. Waiter bits may be set in a word that is free otherwise: an unlock leaves the
//! bit of the queue that it does not wake. Then readers may lock. Writers may lock too, but under
//! the chain's lock. With [`Precedence::Readers`] the two waiter bits exchange their roles in
//! unlocks, readers check WRITTEN only, and no thread sets SPINNER.
//!
//! 1. WRITTEN is set only in a word without readers, except the one that upgrades. The writer that
//!    the word names clears it. No thread becomes a reader while it is set.
//! 2. Waiter bits are set and cleared under the chain's lock. A thread that clears one wakes its
//!    queue. So an unlock that finds no bit leaves no thread asleep.
//! 3. A waiter bit stands for a queue that is not empty, unless all its waiters have given up. An
//!    unlock believes the bit of the queue that it prefers only after a look at that queue
//!    ([`StaleBits`]). Otherwise it would wake no thread, and leave the other queue asleep at a
//!    free lock. It wakes the other queue without a look.
//! 4. While SPINNER is set, the writer that has set it is awake. This writer is about to take the
//!    lock, or to clear the bit as it goes to sleep. Any writer may take the lock in its place. A
//!    writer that takes the lock from waiters keeps their bits. So a thread that sleeps because of
//!    SPINNER is woken in the end.
//! 5. After the step that makes the lock free, the unlock accesses only the chain and the waiters,
//!    and nothing in the lock. So a thread that finds the lock free may free its memory.
//!
//! A writer that spins for readers is in a section ([`Sections`](crate::schedule::Sections)). It
//! enters this before it sets SPINNER, and leaves it when it has the lock or the bit is gone. In
//! the kernel such a writer is not preempted, and readers wait for it without a bound. No section
//! keeps a program's thread on its processor. So readers wait for the writer as for others that
//! run, until they have spun for long enough. Then they yield their processor once, and sleep.
//!
//! Fairness: none. An unlock makes all waiters of one queue runnable, and they compete with
//! newcomers. Writers go before readers, which can starve. Writers can starve as well, since
//! SPINNER is one bit for all of them: readers may get ahead of it when a writer unlocks. Readers
//! that hold another lock of the kind ignore it.
//!
//! A thread that reads may read again, any number of times. A writer may write again where that is
//! permitted ([`lock_recursive`](RwSx::lock_recursive)). It is a mistake of a thread to read a lock
//! that it writes, or to write a lock that it reads. With debug assertions the former panics. So do
//! an unlock of a lock that the thread does not hold, and a downgrade by a writer that has locked
//! it twice.
//!
//! These locks know [`CasValue`](super::tuning::CasValue)'s `Found`, and treat both other values as
//! `Reread`.
//!
//! Differences from the kernel: those of [`mtx`](super::mtx). And an upgrade past waiters does not
//! lock the chain, since there is no turnstile to claim.
//! Source: FreeBSD's `kern_rwlock.c` (Baldwin; Guzik) and `kern_sx.c` (Evans; Rao; Guzik), written
//! from descriptions in our own words.

mod convert;
mod read;
mod write;

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::exchange::Exchange;
use super::freeable::Freeable;
use super::lock_delay;
use super::recursion::{Depth, Recursion};
use super::spinning::Spinning;
use super::tuning::{Precedence, ReaderWait, StaleBits, Tuning};
use super::{FreeBsdPlatform, Locked};
use crate::parking::Limit;
use crate::parking::chain::Queue;
use crate::platform::{Atomic, Platform};
use crate::raw::{RawLock, RawRwLock, RawTryLock};
use crate::schedule::{OwnerState, Stop, ThreadId};
use crate::shared_holds::{self as holds, SharedLock};

/// No thread holds the lock, and no thread waits.
const FREE: u64 = 0;
/// The bit of a writer.
pub const WRITTEN: u64 = 1;
/// The bit of waiting readers in the chain.
pub const READ_WAITERS: u64 = 1 << 1;
/// The bit of waiting writers in the chain.
pub const WRITE_WAITERS: u64 = 1 << 2;
/// The bit of a writer that spins until the readers have unlocked.
pub const SPINNER: u64 = 1 << 3;
/// The bit of a writer that has locked it more than once.
pub const RECURSED: u64 = 1 << 4;
/// One reader.
const READER: u64 = 1 << 5;
const WAITERS: u64 = READ_WAITERS | WRITE_WAITERS;
/// The lock must not be used any more.
const DESTROYED: u64 = WRITTEN | WAITERS;

const _: () = assert!((WRITTEN | WAITERS | SPINNER | RECURSED) & READER == 0 && READER.is_power_of_two());
const _: () = assert!(READER.trailing_zeros() + ThreadId::BITS <= u64::BITS);

const fn owned_by(thread: ThreadId) -> u64 {
    (thread.get() as u64 * READER) | WRITTEN
}

const fn is_written(word: u64) -> bool {
    word & WRITTEN != 0
}

/// The writer that the word names, if there is one.
const fn writer_of(word: u64) -> Option<ThreadId> {
    if is_written(word) { ThreadId::new((word / READER) as u32) } else { None }
}

/// The number of readers; 0 while a thread writes.
const fn readers_of(word: u64) -> u64 {
    if is_written(word) { 0 } else { word / READER }
}

/// Whether no thread holds the lock. Others may wait.
const fn is_free(word: u64) -> bool {
    !is_written(word) && word < READER
}

/// Which of the two locks it is, and what differs.
pub trait Kind: Send + Sync + 'static {
    /// As which kind of lock the shared holds of a thread are counted.
    const HOLDS: SharedLock;
    /// Whether a downgrade wakes readers although writers wait.
    const DOWNGRADE_WAKES_READERS: bool;
    /// Whether a writer that has slept spins for readers as often as before.
    const SLEEP_REFRESHES_WRITERS: bool;

    /// Whether readers or writers go first.
    fn precedence<T: Tuning>() -> Precedence;
    /// Which unlocks do not believe a waiter bit without a look at the queue. `None`: none need to.
    fn stale_bits<T: Tuning>() -> Option<StaleBits>;
}

/// The spinning of one acquisition.
struct SpinState {
    spinning: Spinning,
    /// Rounds of spinning for readers.
    tries: u32,
    /// The thread has spun for long enough, and sleeps whatever the others do.
    is_tired: bool,
}

impl SpinState {
    /// It has not spun yet. A thread that must not spin is tired from the beginning.
    fn fresh<T: Tuning>() -> Self {
        Self { spinning: Spinning::default(), tries: 0, is_tired: !T::adaptive() }
    }
}

/// See the [module](self). 16 bytes natively; all zero: unlocked.
#[repr(C)]
pub struct RwSx<P: Platform, T: Tuning, K: Kind> {
    word: P::U64,
    depth: Depth<P>,
    _padding: Freeable<u32>,
    switches: PhantomData<(T, K)>,
}

impl<P: Platform, T: Tuning, K: Kind> RwSx<P, T, K> {
    /// An unlocked lock, in `const`.
    pub const fn new() -> Self {
        Self { word: Atomic::ZERO, depth: Depth::ZERO, _padding: Freeable::new(0), switches: PhantomData }
    }

    /// The word, for tests.
    ///
    /// # Safety
    ///
    /// The caller writes only what threads that use the lock could have written.
    #[doc(hidden)]
    pub unsafe fn word(&self) -> &P::U64 {
        &self.word
    }

    /// Whether a reader is admitted. `reads`: it holds another lock of the kind shared, or this
    /// one.
    #[inline(always)]
    fn admits(seen: u64, reads: bool) -> bool {
        let kept_out = match K::precedence::<T>() {
            Precedence::Writers if !reads => WRITTEN | WRITE_WAITERS | SPINNER,
            Precedence::Writers | Precedence::Readers => WRITTEN,
        };
        seen & kept_out == 0
    }

    /// r -> r+1, as long as `may_enter`. If not, returns the word.
    #[inline(always)]
    fn add_reader(&self, mut seen: u64, may_enter: impl Fn(u64) -> bool) -> Result<(), u64> {
        while may_enter(seen) {
            // Ordering: Acquire, pairs with the Releases of writers, in `release`,
            // `release_contested`, `share` and `downgrade_contested`: the last writer's critical
            // section happens before ours.
            match self.word.exchange::<T>(seen, seen + READER, Acquire) {
                Ok(()) => return Ok(()),
                Err(found) => seen = self.word.after_failure::<T>(found),
            }
        }
        Err(seen)
    }

    /// The first attempt of a writer.
    #[inline(always)]
    fn take_fast(&self, me: ThreadId) -> Result<(), u64> {
        if T::lock_pre_read() {
            let seen = self.word.load(Relaxed);
            if seen != FREE {
                return Err(seen);
            }
        }
        // 0 -> t
        // Ordering: Acquire, pairs with the Releases of earlier holders: their critical sections
        // happen before ours.
        self.word.exchange::<T>(FREE, owned_by(me), Acquire)
    }

    /// t -> 0, without waiters.
    #[inline(always)]
    fn release(&self, owned: u64) -> Result<(), u64> {
        // Ordering: Release, pairs with the Acquires of the next holders: our critical section
        // happens before theirs.
        self.word.exchange::<T>(owned, FREE, Release)
    }

    /// t -> 1 reader, without waiters.
    #[inline(always)]
    fn share(&self, owned: u64) -> Result<(), u64> {
        // Ordering: Release, pairs with the Acquires of later readers: our critical section happens
        // before theirs.
        self.word.exchange::<T>(owned, READER, Release)
    }
}

impl<P: Platform, T: Tuning, K: Kind> Default for RwSx<P, T, K> {
    fn default() -> Self {
        Self {
            word: Atomic::new(FREE),
            depth: Depth::default(),
            _padding: Freeable::default(),
            switches: PhantomData,
        }
    }
}

impl<P: FreeBsdPlatform, T: Tuning, K: Kind> RwSx<P, T, K> {
    /// Whether there is reason to wait awake: a thread writes, and runs.
    fn is_written_by_runner(seen: u64) -> bool {
        writer_of(seen).is_some_and(|writer| P::owner_state(writer) != OwnerState::Asleep)
    }

    /// Spins while threads that run write the lock. If owners are not followed, spins for this
    /// writer only. Returns the word then.
    fn spin_for_writer(&self, writer: ThreadId, state: &mut SpinState) -> u64 {
        state.spinning.follow::<P, T, _>(&self.word, writer, writer_of).unwrap_or_else(|why| {
            state.is_tired = why == Stop::GiveWay;
            self.word.load(Relaxed)
        })
    }

    /// One round of spinning for readers, until `is_over`. Returns the word then, or `None` if the
    /// round has ended before.
    fn spin_for_readers(
        &self,
        mut seen: u64,
        state: &mut SpinState,
        is_over: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        state.tries = state.tries.saturating_add(1);
        let loops = lock_delay::loops::<P>();
        let mut paused = 0;
        while paused < loops {
            if state.spinning.is_over::<P>() {
                state.is_tired = true;
                return None;
            }
            let pauses = match T::reader_wait() {
                ReaderWait::OnePause => 1,
                ReaderWait::PausePerReader => readers_of(seen).clamp(1, loops.into()) as u32,
            };
            state.spinning.pause::<P>(pauses);
            paused = paused.saturating_add(pauses);
            seen = self.word.load(Relaxed);
            if is_over(seen) {
                return Some(seen);
            }
        }
        None
    }

    /// The queue that an unlock wakes if it leaves the lock free, and the waiter bits that stay.
    /// `looks`: the unlock does not believe the bit of the queue that goes first.
    fn next_queue(seen: u64, chain: &Locked<'_, P>, looks: impl Fn(StaleBits) -> bool) -> (Queue, u64) {
        let [(first, bit), (second, other_bit)] = match K::precedence::<T>() {
            Precedence::Writers => [(Queue::Exclusive, WRITE_WAITERS), (Queue::Shared, READ_WAITERS)],
            Precedence::Readers => [(Queue::Shared, READ_WAITERS), (Queue::Exclusive, WRITE_WAITERS)],
        };
        let is_believed = || !K::stale_bits::<T>().is_some_and(&looks) || chain.count(first) > 0;
        if seen & bit != 0 && is_believed() { (first, seen & other_bit) } else { (second, 0) }
    }
}

// SAFETY: invariant 1; Release and Acquire on the word order the critical sections.
unsafe impl<P: FreeBsdPlatform, T: Tuning, K: Kind> RawLock for RwSx<P, T, K> {
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        let acquired = self.lock_with(Recursion::Forbidden, &Limit::NONE);
        debug_assert!(acquired.is_ok(), "no limit");
    }

    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        let me = P::thread_id();
        if T::unlock_pre_read() {
            let seen = self.word.load(Relaxed);
            if seen != owned_by(me) {
                return self.unlock_slow(me, seen);
            }
        }
        if let Err(found) = self.release(owned_by(me)) {
            self.unlock_slow(me, found);
        }
    }
}

// SAFETY: as above.
unsafe impl<P: FreeBsdPlatform, T: Tuning, K: Kind> RawTryLock for RwSx<P, T, K> {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        let me = P::thread_id();
        loop {
            match self.take_fast(me) {
                Ok(()) => return true,
                // The exchange failed spuriously.
                Err(FREE) => {}
                Err(_) => return false,
            }
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        let word = self.word.load(Relaxed);
        writer_of(word).is_some() || readers_of(word) > 0
    }
}

// SAFETY: the word counts a reader while it reads, and no thread writes then (invariant 1).
unsafe impl<P: FreeBsdPlatform, T: Tuning, K: Kind> RawRwLock for RwSx<P, T, K> {
    #[inline]
    unsafe fn lock_shared(&self, _node: &()) {
        let acquired = self.lock_shared_with(&Limit::NONE);
        debug_assert!(acquired.is_ok(), "no limit");
    }

    /// Overtakes waiting writers.
    #[inline]
    unsafe fn try_lock_shared(&self, _node: &()) -> bool {
        let is_added = self.add_reader(self.word.load(Relaxed), |seen| !is_written(seen)).is_ok();
        if is_added {
            holds::add::<P>(K::HOLDS);
        }
        is_added
    }

    #[inline]
    unsafe fn unlock_shared(&self, _node: &()) {
        holds::remove::<P>(K::HOLDS);
        if self.drop_reader(self.word.load(Relaxed)).is_err() {
            self.unlock_shared_slow();
        }
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        writer_of(self.word.load(Relaxed)).is_some()
    }

    #[inline]
    unsafe fn downgrade(&self, _node: &()) {
        let me = P::thread_id();
        holds::add::<P>(K::HOLDS);
        if self.share(owned_by(me)).is_err() {
            self.downgrade_slow(me);
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
