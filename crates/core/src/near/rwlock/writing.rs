//! How a writer gets the lock, and how it releases it. The terms are those of the [lock](super).
//!
//! A writer takes the mutex. From then on no reader enters, except one that holds the lock already.
//! Then the writer waits for the readers that are in. So it waits for other writers as long as the
//! mutex lets it, and then for the longest section of a reader, however many readers arrive.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use super::lines::{self, ReaderLine};
use super::mode::{BIASED, COUNTED_MODE, FENCED, MODE, UNIT_SHIFT};
use super::reading::{AWAITED, ONE_WAITING, PARKED, READERS, WAITING};
use super::{NearRwLock, RwLockPlatform};
use crate::near::mutex::NearMutex;
use crate::parking::{GaveUp, Limit, RawTimedLock};
use crate::platform::{Atomic, AtomicInt};
use crate::raw::{RawLock, RawTryLock};
use crate::schedule::Spin;

/// How often a writer looks whether a reader has left, before it yields its processor. The delays
/// are those of a reader.
const LOOKS: u32 = 16;
const STRIDE_NS: u32 = 80;
/// How often it yields its processor before it sleeps.
pub(super) const YIELDS: u32 = 7;
/// How long a writer sleeps at most before it passes the heavy side of the fence, in ns: as
/// `ALARM_NS` of the mutex. A reader that leaves may not see before that that it has to wake it.
const ALARM_NS: u64 = 1_300_000;
/// How long a writer that can be cancelled sleeps at most before it looks whether it was, in ns. (A
/// cancellation wakes the waiters of the mutex, and a writer that waits for readers is none.) A
/// hundred looks per second take about 0.1 percent of a processor, at 10 us each (estimated). With
/// a second, a cancellation may take a second.
const CANCELLABLE_NS: u64 = 10_000_000;

impl<P: RwLockPlatform> NearRwLock<P> {
    /// Acquires the lock exclusively, within the limit.
    #[inline(always)]
    pub(super) fn write_within(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        if !self.mutex.take() {
            return self.lock_slow(limit);
        }
        // Ordering: SeqCst, for Dekker's pattern, as in `lock_slow`.
        P::fence_after_rmw(SeqCst);
        if self.is_empty_for_sure() { Ok(()) } else { self.drain(limit) }
    }

    /// Whether no reader is in, as far as the holder of the mutex can tell without reading lines.
    /// It has passed a fence since it took the mutex.
    #[inline(always)]
    fn is_empty_for_sure(&self) -> bool {
        let is_empty = self.mode.load(Relaxed) == COUNTED_MODE && !self.has_counted();
        if is_empty {
            self.spend_reads();
        }
        is_empty
    }

    /// Waits for the mutex, and then for readers.
    #[cold]
    #[inline(never)]
    fn lock_slow(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        if self.mutex.is_open() && (self.are_slow().is_none() || Self::watches_again()) {
            // A lock with one reader at a time has no reader that finds another one.
            _ = self.watch();
        }
        let is_noted = self.begins_to_wait();
        // SAFETY: the caller releases it.
        let result = unsafe { self.mutex.lock_within(&(), limit) };
        if is_noted {
            self.ends_to_wait();
        }
        if result.is_err() && !self.has_waiting_writers() {
            self.wake_parked();
        }
        result?;
        // Ordering: SeqCst, for Dekker's pattern, with `enters_by_count` and `enters_fenced`: we
        // have the mutex before it, and read the count and the lines after it.
        P::fence(SeqCst);
        if self.is_empty_for_sure() { Ok(()) } else { self.drain(limit) }
    }

    /// Notes that the caller waits for the mutex, so that no more readers enter beside one that has
    /// it. Returns false if too many threads wait to be counted.
    pub(super) fn begins_to_wait(&self) -> bool {
        let mut readers = self.readers.load(Relaxed);
        while readers & WAITING != WAITING {
            // Relaxed: nothing is read through the value.
            match self.readers.compare_exchange_weak(readers, readers + ONE_WAITING, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => readers = now,
            }
        }
        false
    }

    /// The caller has been counted, and waits no more.
    pub(super) fn ends_to_wait(&self) {
        self.readers.fetch_sub(ONE_WAITING, Relaxed);
    }

    /// Enters if neither writers nor readers are in.
    pub(super) fn try_write(&self) -> bool {
        // Most failures are found without a fence.
        if self.mutex.is_locked() || self.has_readers() || !self.mutex.take() {
            return false;
        }
        // Ordering: SeqCst, as in `lock_slow`.
        P::fence_after_rmw(SeqCst);
        let enters = self.is_empty_for_sure() || self.becomes_empty();
        if !enters {
            // SAFETY: we hold it.
            unsafe { self.release() };
        }
        enters
    }

    /// Makes sure that all readers can be seen. Enters if there is none. The caller has the mutex,
    /// and has passed a fence since it let no more readers in.
    pub(super) fn becomes_empty(&self) -> bool {
        let mode = self.revoke();
        let is_empty = !self.has_readers();
        if is_empty {
            self.choose_mode(mode);
        }
        is_empty
    }

    fn has_counted(&self) -> bool {
        // Ordering: Acquire, pairs with the Release in `discount_reader`.
        self.readers.load(Acquire) & READERS != 0
    }

    /// Whether readers are in, or are about to be. A reader that has the mutex does not count.
    pub(super) fn has_readers(&self) -> bool {
        let is_published = |id| lines::all::<P>().any(|line| line.published(id).is_some());
        let is_counted = self.mode.load(Relaxed) & MODE == COUNTED_MODE;
        self.has_counted() || !is_counted && is_published(self.id.load(Relaxed))
    }

    /// Waits until no reader is in. The caller has the mutex, and has passed a fence since. If it
    /// gives up, it releases the mutex.
    #[cold]
    #[inline(never)]
    pub(super) fn drain(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        P::in_slow_path(|| {
            self.wait_for_readers(limit).inspect_err(|_| {
                // SAFETY: we hold it.
                unsafe { self.release() };
            })
        })
    }

    /// As [`drain`](Self::drain). If the caller gives up, it still has the mutex.
    pub(super) fn wait_for_readers(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        let mode = self.revoke();
        let result = self.wait_for_slots(mode, limit).and_then(|()| self.wait_until_uncounted(limit));
        match result {
            Ok(()) => self.choose_mode(mode),
            Err(_) => _ = self.end_draining(),
        }
        result
    }

    /// Waits for the readers that are in slots.
    fn wait_for_slots(&self, mode: u32, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        if mode != COUNTED_MODE {
            let id = self.id.load(Relaxed);
            for line in lines::all::<P>() {
                while let Some(index) = line.published(id) {
                    self.wait_for_slot(line, index, id, limit)?;
                }
            }
        }
        Ok(())
    }

    /// Waits until no reader is counted, and no more can be.
    fn wait_until_uncounted(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        loop {
            self.wait_for_counted(limit)?;
            if !self.end_draining() {
                return Ok(());
            }
            // Ordering: SeqCst, for Dekker's pattern, with `enters_by_count`: no more readers are
            // let in before it, and the count is read after it.
            P::fence(SeqCst);
        }
    }

    /// Makes sure that all readers that were in before can be seen. Returns the mode before.
    fn revoke(&self) -> u32 {
        let mode = self.mode.load(Relaxed) & MODE;
        if mode == BIASED {
            self.set_mode(FENCED);
            self.revoked.store_hint((P::now_ns() >> UNIT_SHIFT) as u32);
            // Dekker's pattern, with `attempt`: we have the mutex before it, and read the lines
            // after it.
            P::heavy();
        }
        mode
    }

    /// Chooses the mode after a write, when no reader is in. `before` is that before the write. (As
    /// long as readers may be in a slot, the mode must be one in which writers read the lines.)
    fn choose_mode(&self, before: u32) {
        if before == COUNTED_MODE {
            return self.spend_reads();
        }
        let becomes_counted = before == FENCED && self.has_few_reads();
        self.spend_in_fenced_mode();
        if becomes_counted {
            self.set_mode(COUNTED_MODE);
            self.forget_price();
        }
    }

    /// Waits until a reader has left this slot.
    fn wait_for_slot(
        &self,
        line: &ReaderLine<P>,
        index: usize,
        id: u64,
        limit: &Limit<'_, P>,
    ) -> Result<(), GaveUp> {
        let is_left = || !line.has_published(index, id);
        if Self::spins_until(is_left) {
            return Ok(());
        }
        self.begin_draining();
        let mut alarm_ns = Some(ALARM_NS);
        loop {
            let want = line.mark(index);
            let until_ns = Self::before_sleep(&mut alarm_ns, limit)?;
            if is_left() {
                return Ok(());
            }
            Self::sleep(line.want(), want, until_ns);
            if is_left() {
                return Ok(());
            }
        }
    }

    /// Waits until no reader is counted.
    fn wait_for_counted(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        if !self.has_counted() || Self::spins_until(|| !self.has_counted()) {
            return Ok(());
        }
        self.begin_draining();
        let result = loop {
            let readers = self.readers.fetch_or(AWAITED, Relaxed) | AWAITED;
            if readers & READERS == 0 {
                break Ok(());
            }
            if let Some(why) = limit.is_reached() {
                break Err(why);
            }
            Self::sleep(&self.readers, readers, Self::next_look(limit));
        };
        self.readers.fetch_and(!AWAITED, Relaxed);
        result
    }

    /// Prepares to sleep until a slot is left, which is marked. The first sleep has an alarm. Later
    /// ones follow the heavy side of the fence. Returns when the sleep ends at the latest.
    fn before_sleep(alarm_ns: &mut Option<u64>, limit: &Limit<'_, P>) -> Result<Option<u64>, GaveUp> {
        if let Some(why) = limit.is_reached() {
            return Err(why);
        }
        match alarm_ns.take() {
            Some(alarm_ns) => {
                let alarm_ns = P::now_ns().saturating_add(alarm_ns);
                Ok(Some(Self::next_look(limit).map_or(alarm_ns, |until_ns| until_ns.min(alarm_ns))))
            }
            None => {
                // Dekker's pattern, with `leave`: the slot was marked before it, and is read after
                // it.
                P::heavy();
                Ok(Self::next_look(limit))
            }
        }
    }

    /// When the limit may be reached, at the earliest.
    pub(super) fn next_look(limit: &Limit<'_, P>) -> Option<u64> {
        let look_ns = limit.cancellation.map(|_| P::now_ns().saturating_add(CANCELLABLE_NS));
        limit.until_ns.into_iter().chain(look_ns).min()
    }

    pub(super) fn sleep(word: &P::U32, expected: u32, until_ns: Option<u64>) {
        match until_ns {
            Some(until_ns) => P::park_until(word, expected, until_ns),
            None => P::park(word, expected),
        }
    }

    /// Looks again and again. Returns whether the condition holds.
    fn spins_until(holds: impl Fn() -> bool) -> bool {
        let mut spin = Spin::default();
        let mut stride_ns = STRIDE_NS / 8;
        for look in 0..LOOKS + YIELDS {
            if holds() {
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
        holds()
    }

    /// Releases the mutex, and wakes readers that wait for that.
    ///
    /// # Safety
    ///
    /// The caller holds the mutex.
    #[inline(always)]
    pub(super) unsafe fn release(&self) {
        let word = ptr::from_ref(self.mutex.word());
        let wakes = self.has_parked();
        // SAFETY: the caller's. The last access to the lock.
        unsafe { self.mutex.unlock(&()) };
        if wakes {
            P::unpark(word, u32::MAX);
        }
    }

    /// As [`release`](Self::release), but hands the mutex over to the first in its queue.
    ///
    /// # Safety
    ///
    /// The caller holds the mutex.
    pub(super) unsafe fn release_fair(&self) {
        let word = ptr::from_ref(self.mutex.word());
        let wakes = self.has_parked();
        // SAFETY: the caller's. The last access to the lock.
        unsafe { self.mutex.unlock_fair() };
        if wakes {
            P::unpark(word, u32::MAX);
        }
    }

    /// Whether readers are parked, or are about to be. The caller wakes them: it is told once.
    #[inline(always)]
    fn has_parked(&self) -> bool {
        // A reader notes that first, and then looks at the mutex. If both are too late, it wakes up
        // by itself.
        self.readers.load(Relaxed) & PARKED != 0 && self.forgets_parked()
    }

    #[cold]
    #[inline(never)]
    fn forgets_parked(&self) -> bool {
        self.readers.fetch_and(!PARKED, Relaxed) & PARKED != 0
    }

    /// Wakes the readers that are parked.
    pub(super) fn wake_parked(&self) {
        if self.has_parked() {
            P::unpark(self.mutex.word(), u32::MAX);
        }
    }
}
