//! How a reader gets the lock, and how it releases it. The terms are those of the [lock](super).
//!
//! In the counted mode, a reader that finds the mutex free takes it (`alone.rs`). A reader that
//! finds it taken by a reader is counted. But if the mutex is monopolised and sections are short,
//! it waits in the queue of the mutex for its turn, as a writer does. To know how long sections
//! are, some such readers and writers watch the mutex for a microsecond (`price.rs`).
//!
//! A reader that finds a writer spins for a while, and then parks on the word of the mutex. Each
//! release of a writer wakes all such readers. They enter if the mutex is still free. A reader that
//! has waited for `PATIENCE_NS` waits in the queue of the mutex, as a writer does. So its wait has
//! the bound of the mutex (`near/mutex/releasing.rs`). When it has the mutex, it opens the lock for
//! the readers that arrive, enters, and releases the mutex.
//!
//! If a reader has the mutex and writers wait for it, other readers wait too. They park on the word
//! of the mutex. The writer that gets the mutex wakes them as above. If all writers give up, the
//! last one wakes them.

use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

use super::lines::{ALONE, COUNTED, IN, ReaderLine};
use super::mode::{COUNTED_MODE, FENCED, MODE};
use super::price::Pace;
use super::{NearRwLock, RwLockPlatform, lines};
use crate::events::LockEvent;
use crate::near::mutex::{NearMutex, Purpose};
use crate::parking::{GaveUp, Limit, RawTimedLock};
use crate::platform::{Atomic, AtomicInt};
use crate::raw::RawTryLock;
use crate::schedule::Spin;
use crate::unwinding::without_unwinding;

/// A writer sleeps until no reader is counted.
pub(super) const AWAITED: u32 = 1 << 31;
/// A reader parks on the word of the mutex. The next release of the mutex wakes all that do.
pub(super) const PARKED: u32 = 1 << 30;
/// How many writers wait for the mutex, as far as they can be counted.
pub(super) const WAITING: u32 = PARKED - ONE_WAITING;
pub(super) const ONE_WAITING: u32 = 1 << 24;
/// The number of counted readers.
pub(super) const READERS: u32 = ONE_WAITING - 1;

/// How often a reader that finds a writer reads the mutex before it yields its processor, beside
/// the looks for lines. The value was chosen; no comparison with others is kept.
const LOOKS: u32 = 8;
/// A reader makes one more look for this many lines. A writer reads all lines to find readers, and
/// then writes: readers that park meanwhile are late, and the writer has to wake them. Simulated,
/// 142 threads, 99 % reads: 1 and 2 give the same within 2 %, on three machines. With 4 the lock
/// does 3 % less on haswell-ex-4s. It does a third less on epyc-genoa-2s, and 60 % less on
/// skylake-sp-8s. `nearlock simulate --machine skylake-sp-8s --workload rw-section --lock
/// near-rwlock --threads 142 --set rw-section.read-percent=99`
const LINES_PER_LOOK: usize = 2;
/// The delay between two such reads, at most, in ns.
const STRIDE_NS: u32 = 80;
/// How often it yields its processor before it parks.
const YIELDS: u32 = 7;
/// How long a reader waits before it joins the queue of the mutex, in ns.
const PATIENCE_NS: u64 = 500_000;
/// How long a reader waits in the queue of the mutex before it looks for the first time whether the
/// lock is open, in ns. Then it joins the queue again, for `SLICES_GROW` times as long, up to
/// `SLICE_MAX_NS`. With 2 ms, readers that wait for the turns of eight threads lose their places.
const SLICE_NS: u64 = 8_000_000;
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
    pub(super) fn lock_shared_slow(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        P::in_slow_path(|| match self.enters_unless_monopolised() {
            true => Ok(()),
            false => self.wait_to_enter(Releaser::Reader, limit),
        })
    }

    /// The same, without waiting for writers.
    #[cold]
    #[inline(never)]
    pub(super) fn try_lock_shared_slow(&self) -> bool {
        P::in_slow_path(|| {
            // The holder of the mutex may be a reader that is about to open or release it.
            let by = Releaser::Reader;
            self.enters() || self.is_free_soon() && self.enters_again(by)
        })
    }

    /// Enters if no writer has the lock, or if the caller holds it shared already.
    pub(super) fn enters_again(&self, by: Releaser) -> bool {
        match by {
            Releaser::Anyone => self.enters_by_count(Self::own_line()),
            Releaser::Reader => self.attempt() || self.enters(),
        }
    }

    /// The same. But if one thread uses the mutex again and again, for short sections, the caller
    /// does not enter beside it. It waits for its turn, and then uses it again and again itself.
    fn enters_unless_monopolised(&self) -> bool {
        let line = Self::own_line();
        if !self.mutex.is_locked() || line.may_hold_others() || line.held(self.known_id()).is_some() {
            return self.enters();
        }
        let is_monopolised = self.mutex.is_monopolised();
        if !self.mutex.is_open() {
            return !is_monopolised && self.enters();
        }
        let enters_at_once = self.are_slow().is_some_and(|are_slow| are_slow || !is_monopolised);
        if enters_at_once && !Self::watches_again() {
            return self.enters();
        }
        match self.watch() {
            Pace::Slow => self.enters(),
            Pace::Medium => !is_monopolised && self.enters(),
            Pace::Fast => {
                self.mutex.note_monopolised();
                false
            }
        }
    }

    /// Enters if no writer has the lock, or if the caller holds it shared already.
    fn enters(&self) -> bool {
        let id = self.known_id();
        let line = Self::own_line();
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

    /// The caller, whose line this is, has published the lock in this slot. It enters unless a
    /// writer has the lock. Otherwise the lock is published no more.
    #[inline(never)]
    pub(super) fn enters_unbiased(&self, line: &ReaderLine<P>, index: usize, id: u64) -> bool {
        let is_in = match self.mode.load(Relaxed) & MODE {
            COUNTED_MODE => self.enters_alone(line, index, id),
            _ => self.enters_fenced(line, index, id),
        };
        if !is_in {
            line.leave(index);
        }
        is_in
    }

    /// The same, by passing a fence.
    #[inline(always)]
    fn enters_fenced(&self, line: &ReaderLine<P>, index: usize, id: u64) -> bool {
        if self.mutex.is_locked() {
            return false;
        }
        // Again, since this is a fence on x86-64.
        line.slot(index).swap(id, Relaxed);
        // Ordering: SeqCst, for Dekker's pattern, with `drain`: the lock was published before it,
        // and we look after it.
        P::fence_after_rmw(SeqCst);
        let is_in = self.is_free_in(FENCED);
        if is_in {
            line.slot(index).store(id | IN, Relaxed);
            self.note_read(line);
        }
        is_in
    }

    /// Enters by adding to the count, unless a writer has the lock.
    fn enters_counted(&self, line: &ReaderLine<P>, id: u64) -> bool {
        let is_in = self.enters_by_count(line);
        if is_in {
            self.note_counted(line, id);
            self.note_read(line);
        }
        is_in
    }

    /// Enters by adding to the count, unless the caller, whose line this is, stays out.
    #[inline(always)]
    pub(super) fn enters_by_count(&self, line: &ReaderLine<P>) -> bool {
        if self.stays_out(line) {
            return false;
        }
        self.count_reader();
        // Ordering: SeqCst, for Dekker's pattern, with `drain`: we are counted before it, and look
        // after it.
        P::fence_after_rmw(SeqCst);
        let is_in = !self.stays_out(line);
        if !is_in {
            Self::discount_reader(self);
        }
        is_in
    }

    /// Whether a reader whose line this is has to wait. It may wait for a writer that has the
    /// mutex. Or a reader has the mutex, and a writer waits for it. Then the caller waits behind
    /// that writer, unless it may hold the lock already.
    #[inline(always)]
    fn stays_out(&self, line: &ReaderLine<P>) -> bool {
        if self.mutex.is_closed() {
            return !self.lets_in(line);
        }
        self.is_closed_by_waiters() && !line.may_hold_others()
    }

    /// Whether writers wait for the mutex.
    #[inline(always)]
    pub(super) fn has_waiting_writers(&self) -> bool {
        self.readers.load(Relaxed) & WAITING != 0
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
        if unsafe { &*readers }.fetch_sub(1, Release) & (AWAITED | READERS) == AWAITED | 1 {
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

    /// Releases the lock. This slot is the first choice for the lock in the line of the caller. It
    /// does not say that the caller has published the lock, and holds it once.
    #[inline(never)]
    pub(super) fn unlock_unbiased(&self, line: &ReaderLine<P>, first: usize, id: u64) {
        if line.slot(first).load(Relaxed) == id | IN | ALONE {
            self.unlock_alone(line, first);
        } else {
            self.unlock_shared_slow(line, id);
        }
    }

    #[cold]
    #[inline(never)]
    fn unlock_shared_slow(&self, line: &ReaderLine<P>, id: u64) {
        let Some(index) = line.held(id) else {
            line.end_unnoted();
            return Self::discount_reader(self);
        };
        let slot = line.slot(index);
        match slot.load(Relaxed) {
            value if value == id | IN => line.leave(index),
            value if value == id | IN | ALONE => self.unlock_alone(line, index),
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
        let purpose = self.mutex.purpose_of_newcomer();
        loop {
            if (purpose == Purpose::Probe || self.mutex.is_monopolised())
                && !Self::own_line().may_hold_others()
            {
                return self.enter_from_queue(by, purpose, limit);
            }
            if self.spins_until_free() && self.enters_again(by) {
                return Ok(());
            }
            if let Some(why) = limit.is_reached() {
                return Err(why);
            }
            P::assert_may_sleep();
            if self.mutex.is_open() {
                self.park_behind_writers(limit);
            } else if P::now_ns() >= until_ns {
                return self.enter_from_queue(by, purpose, limit);
            } else if self.enters_after_park(by, until_ns) {
                return Ok(());
            }
            P::cpu_relax(turn);
            turn += 1;
        }
    }

    /// Looks again and again, and then yields the processor some times. Returns whether the caller
    /// need no longer wait.
    pub(super) fn spins_until_free(&self) -> bool {
        self.spins_for(LOOKS + (P::lines().size_hint().0 / LINES_PER_LOOK) as u32, YIELDS)
    }

    /// Whether the caller need no longer wait for a holder of the mutex who is about to release it.
    pub(super) fn is_free_soon(&self) -> bool {
        self.spins_for(LOOKS, 0)
    }

    fn spins_for(&self, looks: u32, yields: u32) -> bool {
        let mut spin = Spin::default();
        let mut stride_ns = STRIDE_NS / 8;
        for look in 0..looks + yields {
            if P::should_give_way(&mut spin) {
                return false;
            }
            if look < looks {
                NearMutex::<P>::pause(stride_ns, &mut spin);
                stride_ns = (stride_ns * 2).min(STRIDE_NS);
            } else {
                P::sched_yield();
            }
            if !self.stays_out(Self::own_line()) {
                return true;
            }
        }
        false
    }

    /// Parks on the word of the mutex while a reader has it and writers wait for it, within the
    /// limit. The last of them wakes the caller, when it releases the mutex or gives up. (It may
    /// not see that it has to. So the caller looks again after `SLICE_NS`.)
    pub(super) fn park_behind_writers(&self, limit: &Limit<'_, P>) {
        let is_behind = self.readers.fetch_or(PARKED, Relaxed) & WAITING != 0;
        if let Some((word, _)) = self.mutex.open_word()
            && is_behind
        {
            let slice = Slices::default().next(limit);
            Self::sleep(self.mutex.word(), word, Self::next_look(&slice));
        }
    }

    /// Parks on the word of the mutex, until a writer releases it, or until this time. (The release
    /// may not see that it has to wake this thread.) Then enters if no writer has the lock.
    fn enters_after_park(&self, by: Releaser, until_ns: u64) -> bool {
        let waiting = P::waiting_readers(self.known_id());
        waiting.fetch_add(1, Relaxed);
        self.readers.fetch_or(PARKED, Relaxed);
        if let Some(word) = self.mutex.closed_word()
            && !self.lets_in(Self::own_line())
        {
            P::park_until(self.mutex.word(), word, until_ns);
        }
        let enters = self.enters_again(by);
        // Only now, so that a fair release can tell.
        waiting.fetch_sub(1, Relaxed);
        enters
    }

    /// Enters with the mutex, for which the caller waits as a newcomer that does this.
    fn enter_from_queue(&self, by: Releaser, purpose: Purpose, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        let mut slices = Slices::default();
        let mut purpose = Some(purpose);
        loop {
            let slice = slices.next(limit);
            let result = match purpose.take() {
                Some(purpose) => self.mutex.lock_for(Some(purpose), &slice),
                // SAFETY: the mutex is unlocked below.
                None => unsafe { self.mutex.lock_within(&(), &slice) },
            };
            match result {
                Ok(()) => {
                    self.enter_and_release(by);
                    return Ok(());
                }
                Err(GaveUp::Cancelled) => return Err(GaveUp::Cancelled),
                Err(GaveUp::TimedOut) if self.enters_again(by) => return Ok(()),
                Err(GaveUp::TimedOut) => {}
            }
            if let Some(why) = limit.is_reached() {
                return Err(why);
            }
        }
    }

    /// The caller, who has the mutex, enters, and releases the mutex.
    fn enter_and_release(&self, by: Releaser) {
        self.open();
        self.enter_with_mutex(by);
        self.close();
        // SAFETY: we hold it.
        unsafe { self.release() };
    }
}

/// The times for which a thread waits in the queue of the mutex, before it looks whether it must
/// wait at all.
pub(super) struct Slices {
    slice_ns: u64,
}

impl Default for Slices {
    fn default() -> Self {
        Self { slice_ns: SLICE_NS }
    }
}

impl Slices {
    /// The next slice, within the limit.
    pub(super) fn next<'a, P: RwLockPlatform>(&mut self, limit: &Limit<'a, P>) -> Limit<'a, P> {
        let end_ns = P::now_ns().saturating_add(self.slice_ns);
        self.slice_ns = (self.slice_ns * SLICES_GROW).min(SLICE_MAX_NS);
        let until_ns = limit.until_ns.map_or(end_ns, |until_ns| until_ns.min(end_ns));
        Limit { until_ns: Some(until_ns), cancellation: limit.cancellation }
    }
}
