//! How a reader gets the lock, and how it releases it. The terms are those of the [lock](super).
//!
//! A reader that finds a writer spins for a while, and then parks on the word of the mutex. Each
//! release of a writer wakes all such readers. They enter if the mutex is still free. A reader that
//! has waited for `PATIENCE_NS` waits in the queue of the mutex, as a writer does. So its wait has
//! the bound of the mutex (`near/mutex/releasing.rs`). When it has the mutex, it opens the lock for
//! the readers that arrive, enters, and releases the mutex.

use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

use super::lines::{COUNTED, IN, ReaderLine};
use super::mode::{COUNTED_MODE, FENCED, MODE};
use super::{Attempt, NearRwLock, RwLockPlatform, lines};
use crate::events::LockEvent;
use crate::near::mutex::NearMutex;
use crate::parking::{GaveUp, Limit, RawTimedLock};
use crate::platform::{Atomic, AtomicInt};
use crate::raw::RawTryLock;
use crate::schedule::Spin;
use crate::unwinding::without_unwinding;

/// A writer sleeps until no reader is counted.
pub(super) const AWAITED: u32 = 1 << 31;
/// The number of counted readers.
pub(super) const READERS: u32 = AWAITED - 1;

/// How often a reader that finds a writer reads the mutex before it yields its processor.
const LOOKS: u32 = 8;
/// The delay between two such reads, at most, in ns.
const STRIDE_NS: u32 = 80;
/// How often it yields its processor before it parks.
const YIELDS: u32 = 7;
/// How long a reader waits before it joins the queue of the mutex, in ns.
const PATIENCE_NS: u64 = 500_000;
/// How long a reader waits in the queue of the mutex before it looks for the first time whether the
/// lock is open, in ns. Then it joins the queue again, for `SLICES_GROW` times as long, up to
/// `SLICE_MAX_NS`.
const SLICE_NS: u64 = 2_000_000;
const SLICES_GROW: u64 = 4;
/// Two such looks per second cost nothing.
const SLICE_MAX_NS: u64 = 512_000_000;

/// The threads that may release a shared acquisition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Releaser {
    /// The thread that has acquired it. It is noted in the line of that thread.
    Reader,
    /// Any thread. It is counted, and noted nowhere (`counted.rs`).
    Anyone,
}

impl<P: RwLockPlatform> NearRwLock<P> {
    /// The lock's id, which it gets now if it has none.
    fn known_id(&self) -> u64 {
        match self.id.load(Relaxed) {
            0 => self.first_id(),
            id => id,
        }
    }

    /// The line of the caller, who gets one now if it has none and can have one.
    pub(super) fn own_line<'a>() -> &'a ReaderLine<P> {
        if P::line().is_full() {
            P::register_line();
        }
        P::line()
    }

    #[cold]
    fn first_id(&self) -> u64 {
        let new = P::new_id();
        // Relaxed: nothing is read through the value.
        match self.id.compare_exchange(0, new, Relaxed, Relaxed) {
            Ok(_) => new,
            Err(first) => first,
        }
    }

    /// Goes on after an attempt without success.
    #[cold]
    #[inline(never)]
    pub(super) fn lock_shared_slow(&self, attempt: Attempt, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        P::in_slow_path(|| match self.enters(attempt) {
            true => Ok(()),
            false => self.wait_to_enter(Releaser::Reader, limit),
        })
    }

    /// The same, without waiting for writers.
    #[cold]
    #[inline(never)]
    pub(super) fn try_lock_shared_slow(&self, attempt: Attempt) -> bool {
        P::in_slow_path(|| {
            // The holder of the mutex may be a reader that is about to release it.
            let by = Releaser::Reader;
            self.enters(attempt) || self.spins_until_free(by) && self.enters_again(by)
        })
    }

    /// Enters if no writer has the lock, or if the caller holds it shared already.
    pub(super) fn enters_again(&self, by: Releaser) -> bool {
        if by == Releaser::Anyone {
            return self.enters_unnoted();
        }
        match self.attempt() {
            Attempt::In => true,
            attempt => self.enters(attempt),
        }
    }

    fn enters(&self, attempt: Attempt) -> bool {
        let id = self.known_id();
        let line = Self::own_line();
        if attempt == Attempt::Published && self.enters_fenced(line, id) {
            return true;
        }
        match line.held(id) {
            Some(index) if line.hold_again(index) => true,
            Some(_) => {
                self.count_reader();
                line.begin_unnoted();
                true
            }
            None => self.enters_counted(line, id),
        }
    }

    /// Enters in the slot in which the lock is published, unless the mode is counted or a writer
    /// has the lock. Otherwise the lock is published no more.
    fn enters_fenced(&self, line: &ReaderLine<P>, id: u64) -> bool {
        let index = line.first(id);
        if self.mutex.is_locked() || self.mode.load(Relaxed) & MODE == COUNTED_MODE {
            line.leave(index);
            return false;
        }
        // Ordering: SeqCst, for Dekker's pattern, with `drain`: the lock was published before it,
        // and we look after it.
        P::fence(SeqCst);
        let is_in = self.is_free_in(FENCED);
        if is_in {
            line.slot(index).store(id | IN, Relaxed);
            self.note_read(line);
        } else {
            line.leave(index);
        }
        is_in
    }

    /// Enters by adding to the count, unless a writer has the lock.
    fn enters_counted(&self, line: &ReaderLine<P>, id: u64) -> bool {
        let is_in = self.enters_if(|| self.lets_in(line));
        if is_in {
            self.note_counted(line, id);
            self.note_read(line);
        }
        is_in
    }

    /// Enters by adding to the count, unless a writer has the lock who does not let the caller in.
    #[inline(always)]
    pub(super) fn enters_if(&self, lets_in: impl Fn() -> bool) -> bool {
        if self.mutex.is_locked() && !lets_in() {
            return false;
        }
        self.count_reader();
        // Ordering: SeqCst, for Dekker's pattern, with `drain`: we are counted before it, and look
        // after it.
        P::fence_after_rmw(SeqCst);
        let is_in = self.mutex.is_free() || lets_in();
        if !is_in {
            Self::discount_reader(self);
        }
        is_in
    }

    /// n -> n+1
    pub(super) fn count_reader(&self) {
        // Relaxed: a fence follows, or the caller has the mutex.
        let before = self.readers.fetch_add(1, Relaxed);
        if before & READERS > READERS / 2 {
            without_unwinding(|| panic!("too many readers: guards have been forgotten"));
        }
    }

    /// n -> n-1. It may be the last access to the lock.
    pub(super) fn discount_reader(lock: *const Self) {
        // SAFETY: the caller is counted, so no writer is in, which might free the memory.
        let readers = unsafe { &raw const (*lock).readers };
        // Ordering: Release, pairs with the Acquire in `wait_for_counted`: our section happens
        // before the writer's.
        // SAFETY: as above.
        if unsafe { &*readers }.fetch_sub(1, Release) == AWAITED | 1 {
            P::unpark(readers, u32::MAX);
        }
    }

    /// 0 -> id|1|counted, if there is a free slot.
    pub(super) fn note_counted(&self, line: &ReaderLine<P>, id: u64) {
        match line.free_slot(id) {
            Some(index) => line.slot(index).store(id | IN | COUNTED, Relaxed),
            None => line.begin_unnoted(),
        }
    }

    /// Enters as the holder of the mutex.
    pub(super) fn enter_with_mutex(&self, by: Releaser) {
        if by == Releaser::Anyone {
            return self.count_reader();
        }
        let id = self.known_id();
        let line = Self::own_line();
        let slot = line.free_slot(id).filter(|_| self.mode.load(Relaxed) & MODE != COUNTED_MODE);
        match slot {
            // Relaxed: a writer takes the mutex after us.
            Some(index) => line.slot(index).store(id | IN, Relaxed),
            None => {
                self.count_reader();
                self.note_counted(line, id);
            }
        }
        self.note_read(line);
    }

    #[cold]
    #[inline(never)]
    pub(super) fn unlock_shared_slow(&self) {
        let id = self.id.load(Relaxed);
        let line = P::line();
        let Some(index) = line.held(id) else {
            line.end_unnoted();
            return Self::discount_reader(self);
        };
        let slot = line.slot(index);
        match slot.load(Relaxed) {
            value if value == id | IN => line.leave(index),
            value if value == id | IN | COUNTED => {
                slot.store(lines::FREE, Relaxed);
                Self::discount_reader(self);
            }
            value => slot.store(value - IN, Relaxed),
        }
    }

    /// Waits for the writer that has the lock, within the limit.
    pub(super) fn wait_to_enter(&self, by: Releaser, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        P::count(LockEvent::Slowpath);
        let patience_ns = P::now_ns().saturating_add(PATIENCE_NS);
        let until_ns = limit.until_ns.map_or(patience_ns, |until_ns| until_ns.min(patience_ns));
        let mut turn = 0;
        loop {
            if self.spins_until_free(by) && self.enters_again(by) {
                return Ok(());
            }
            if let Some(why) = limit.is_reached() {
                return Err(why);
            }
            P::assert_may_sleep();
            if P::now_ns() >= until_ns {
                return self.enter_from_queue(by, limit);
            }
            if self.enters_after_park(by, until_ns) {
                return Ok(());
            }
            P::cpu_relax(turn);
            turn += 1;
        }
    }

    /// Reads the mutex again and again. Returns whether it is free, or the lock is open.
    pub(super) fn spins_until_free(&self, by: Releaser) -> bool {
        let mut spin = Spin::default();
        let mut stride_ns = STRIDE_NS / 8;
        for look in 0..LOOKS + YIELDS {
            if !self.mutex.is_locked() || self.lets_caller_in(by) {
                return true;
            }
            if P::should_give_way(&mut spin) {
                return false;
            }
            if look < LOOKS {
                NearMutex::<P>::pause(stride_ns, &mut spin);
                stride_ns = (stride_ns * 2).min(STRIDE_NS);
            } else {
                P::sched_yield();
            }
        }
        !self.mutex.is_locked() || self.lets_caller_in(by)
    }

    fn lets_caller_in(&self, by: Releaser) -> bool {
        match by {
            Releaser::Reader => self.lets_in(P::line()),
            Releaser::Anyone => self.is_open(),
        }
    }

    /// Parks on the word of the mutex, until a writer releases it, or until this time. (The release
    /// may not see that it has to wake this thread.) Then enters if no writer has the lock.
    fn enters_after_park(&self, by: Releaser, until_ns: u64) -> bool {
        let waiting = P::waiting_readers(self.known_id());
        waiting.fetch_add(1, Relaxed);
        if let Some(word) = self.mutex.held_word()
            && !self.lets_caller_in(by)
        {
            P::park_until(self.mutex.word(), word, until_ns);
        }
        let enters = self.enters_again(by);
        // Only now, so that a fair release can tell.
        waiting.fetch_sub(1, Relaxed);
        enters
    }

    /// Enters with the mutex.
    fn enter_from_queue(&self, by: Releaser, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        let mut slice_ns = SLICE_NS;
        loop {
            let slice_end_ns = P::now_ns().saturating_add(slice_ns);
            let until_ns = limit.until_ns.map_or(slice_end_ns, |until_ns| until_ns.min(slice_end_ns));
            let slice = Limit { until_ns: Some(until_ns), cancellation: limit.cancellation };
            // SAFETY: the mutex is unlocked below.
            match unsafe { self.mutex.lock_within(&(), &slice) } {
                Ok(()) => {
                    self.open();
                    self.enter_with_mutex(by);
                    self.close();
                    // SAFETY: we hold it.
                    unsafe { self.release() };
                    return Ok(());
                }
                Err(GaveUp::Cancelled) => return Err(GaveUp::Cancelled),
                Err(GaveUp::TimedOut) if self.enters_again(by) => return Ok(()),
                Err(GaveUp::TimedOut) => {}
            }
            if let Some(why) = limit.is_reached() {
                return Err(why);
            }
            // Also for a reader that passes a writer that waits for readers. With short slices, it
            // would never get to the front of a long queue.
            slice_ns = (slice_ns * SLICES_GROW).min(SLICE_MAX_NS);
        }
    }
}
