//! Readers that do not get the lock at once, and unlocks by the last reader.

use core::sync::atomic::Ordering::{Relaxed, Release};

use super::{
    FREE, Kind, READ_WAITERS, READER, RwSx, SPINNER, SpinState, WAITERS, is_free, is_written, readers_of,
    writer_of,
};
use crate::events::LockEvent;
use crate::freebsd::exchange::Exchange;
use crate::freebsd::tuning::{SpinnerBit, StaleBits, Tuning, WaiterCasFail};
use crate::freebsd::{Abandoned, FreeBsdPlatform, lock_chain, lock_delay};
use crate::parking::chain::Queue;
use crate::parking::{GaveUp, Limit};
use crate::platform::{Atomic, Platform};
use crate::shared_holds as holds;

/// Whether a writer that has spun is about to take the free lock.
const fn is_spoken_for(word: u64) -> bool {
    is_free(word) && word & SPINNER != 0
}

impl<P: Platform, T: Tuning, K: Kind> RwSx<P, T, K> {
    /// r -> r-1, unless that would leave waiters at a free lock. In that case returns the word.
    #[inline(always)]
    pub(super) fn drop_reader(&self, mut seen: u64) -> Result<(), u64> {
        loop {
            debug_assert!(readers_of(seen) > 0, "releases a share that no thread holds");
            let is_last = readers_of(seen) <= 1;
            if is_last && seen & WAITERS != 0 {
                return Err(seen);
            }
            let left = if is_last { Self::spinner_left(seen) } else { seen - READER };
            // Ordering: Release, pairs with the Acquires of the next writer: our critical section
            // happens before the writer's.
            match self.word.exchange::<T>(seen, left, Release) {
                Ok(()) => return Ok(()),
                Err(found) => seen = self.word.after_failure::<T>(found),
            }
        }
    }

    /// The word that the last reader leaves: SPINNER or free.
    fn spinner_left(seen: u64) -> u64 {
        match T::spinner_bit() {
            SpinnerBit::Cleared => FREE,
            SpinnerBit::Kept => seen & SPINNER,
        }
    }
}

impl<P: FreeBsdPlatform, T: Tuning, K: Kind> RwSx<P, T, K> {
    #[inline(always)]
    pub(in crate::freebsd) fn lock_shared_with(&self, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        if let Err(seen) = self.add_reader(self.word.load(Relaxed), |seen| Self::admits(seen, false)) {
            self.lock_shared_slow(seen, limit)?;
        }
        holds::add::<P>(K::HOLDS);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn lock_shared_slow(&self, mut seen: u64, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            debug_assert!(writer_of(seen) != Some(P::thread_id()), "reads a lock that it writes");
            let reads = holds::any::<P>(K::HOLDS);
            let mut state = SpinState::fresh::<T>();
            loop {
                match self.add_reader(seen, |seen| Self::admits(seen, reads)) {
                    Ok(()) => return Ok(()),
                    Err(now) => seen = now,
                }
                seen = match self.spin_to_read(seen, reads, &mut state) {
                    Some(seen) => seen,
                    None => self.sleep_to_read(reads, &mut state, limit)?,
                };
            }
        })
    }

    /// Spins, if there is reason to. Returns the word then, or `None` if the reader should sleep.
    fn spin_to_read(&self, seen: u64, reads: bool, state: &mut SpinState) -> Option<u64> {
        if state.is_tired {
            return None;
        }
        if let Some(writer) = writer_of(seen) {
            return Self::is_written_by_runner(seen).then(|| self.spin_for_writer(writer, state));
        }
        if is_spoken_for(seen) {
            return Some(self.spin_for_spinner(state));
        }
        if is_written(seen) || state.tries >= lock_delay::retries::<P>() {
            return None;
        }
        let is_over = |seen| is_written(seen) || is_free(seen) || Self::admits(seen, reads);
        self.spin_for_readers(seen, state, is_over)
    }

    /// Waits until a writer that has spun takes the free lock. Returns the word then.
    fn spin_for_spinner(&self, state: &mut SpinState) -> u64 {
        /// Pauses between two looks, as in the kernel.
        const PAUSES: u32 = 2;
        while !state.spinning.is_over::<P>() {
            state.spinning.pause::<P>(PAUSES);
            let seen = self.word.load(Relaxed);
            if !is_spoken_for(seen) {
                return seen;
            }
        }
        // The writer may need this processor.
        P::give_way();
        state.is_tired = true;
        self.word.load(Relaxed)
    }

    /// Sleeps in the chain, unless there is reason not to by now. Returns the word then.
    fn sleep_to_read(&self, reads: bool, state: &mut SpinState, limit: &Limit<'_, P>) -> Result<u64, GaveUp> {
        let chain = lock_chain::<P, _>(self);
        let mut seen = self.word.load(Relaxed);
        loop {
            let stays_awake = !state.is_tired && (Self::is_written_by_runner(seen) || is_spoken_for(seen));
            if stays_awake || Self::admits(seen, reads) {
                chain.cancel();
                return Ok(seen);
            }
            if seen & READ_WAITERS != 0 {
                break;
            }
            // Relaxed: an unlock that sees the bit locks the chain, which orders the two. An unlock
            // that does not see it makes this exchange fail.
            match self.word.exchange::<T>(seen, seen | READ_WAITERS, Relaxed) {
                Ok(()) => break,
                Err(found) => seen = self.word.after_failure::<T>(found),
            }
            if T::waiter_cas_fail() == WaiterCasFail::Restart {
                chain.restart();
                return Ok(seen);
            }
        }
        let slept = chain.sleep_within(Queue::Shared, limit);
        *state = SpinState::fresh::<T>();
        // The waiter bit may stay: invariant 3.
        slept.map(|()| self.word.load(Relaxed)).map_err(|Abandoned { why, .. }| why)
    }

    /// The last reader unlocks, and threads wait.
    #[cold]
    #[inline(never)]
    pub(super) fn unlock_shared_slow(&self) {
        P::in_slow_path(|| {
            let chain = lock_chain::<P, _>(self);
            let mut seen = self.word.load(Relaxed);
            loop {
                match self.drop_reader(seen) {
                    Ok(()) => return,
                    Err(now) => seen = now,
                }
                let (queue, left) = Self::next_queue(seen, &chain, |seen_by| seen_by == StaleBits::SeenByAll);
                // Ordering: Release, as in `drop_reader`.
                match self.word.exchange::<T>(seen, Self::spinner_left(seen) | left, Release) {
                    Ok(()) => return chain.wake_all(queue),
                    Err(found) => seen = self.word.after_failure::<T>(found),
                }
            }
        });
    }
}
