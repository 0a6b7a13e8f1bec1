//! Writers that do not get the lock at once, and unlocks and downgrades with waiters.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{
    FREE, Kind, READER, RECURSED, RwSx, SPINNER, SpinState, WAITERS, WRITE_WAITERS, is_free, is_written,
    owned_by, readers_of, writer_of,
};
use crate::events::LockEvent;
use crate::freebsd::exchange::Exchange;
use crate::freebsd::recursion::Recursion;
use crate::freebsd::tuning::{CasValue, Precedence, ReleaseOrder, Tuning, WaiterCasFail};
use crate::freebsd::{Abandoned, FreeBsdPlatform, lock_chain, lock_delay};
use crate::parking::chain::Queue;
use crate::parking::{GaveUp, Limit, WakeList};
use crate::platform::{Atomic, AtomicInt};
use crate::schedule::{Sections, ThreadId};

/// A section in which the caller should keep its processor, until this is dropped.
struct Section<P: Sections>(PhantomData<P>);

impl<P: Sections> Section<P> {
    fn enter() -> Self {
        P::enter_section();
        Self(PhantomData)
    }
}

impl<P: Sections> Drop for Section<P> {
    fn drop(&mut self) {
        P::leave_section();
    }
}

/// The holders for which a writer spun last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whom {
    Writer,
    Readers,
}

/// The state of a writer's wait.
struct Wait<P: Sections> {
    me: ThreadId,
    state: SpinState,
    whom: Whom,
    /// Present while this writer may be the one that has set SPINNER.
    section: Option<Section<P>>,
}

impl<P: FreeBsdPlatform, T: Tuning, K: Kind> RwSx<P, T, K> {
    #[inline(always)]
    pub(in crate::freebsd) fn lock_with(
        &self,
        recursion: Recursion,
        limit: &Limit<'_, P>,
    ) -> Result<(), GaveUp> {
        let me = P::thread_id();
        match self.take_fast(me) {
            Ok(()) => Ok(()),
            Err(found) => self.lock_slow(me, found, recursion, limit),
        }
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(
        &self,
        me: ThreadId,
        found: u64,
        recursion: Recursion,
        limit: &Limit<'_, P>,
    ) -> Result<(), GaveUp> {
        P::count(LockEvent::Slowpath);
        P::in_slow_path(|| {
            let mut seen = match T::cas_value() {
                CasValue::Found if found != FREE => found,
                // The attempt failed spuriously, or its value is not used.
                _ => self.word.load(Relaxed),
            };
            debug_assert!(
                !is_written(seen) || writer_of(seen).is_some(),
                "writes a lock that has been destroyed"
            );
            if writer_of(seen) == Some(me) && recursion == Recursion::Permitted {
                self.recurse();
                return Ok(());
            }
            debug_assert!(writer_of(seen) != Some(me), "writes a lock that it writes already");
            let mut wait = Wait { me, state: SpinState::fresh::<T>(), whom: Whom::Writer, section: None };
            loop {
                match self.attempt(me, seen) {
                    Ok(()) => return Ok(()),
                    Err(now) => seen = now,
                }
                let now = match self.spin_to_write(seen, &mut wait) {
                    None => self.sleep_to_write(&mut wait, limit)?,
                    now => now,
                };
                match now {
                    Some(now) => seen = now,
                    None => return Ok(()),
                }
            }
        })
    }

    /// One attempt of a waiter that has `seen` the word. Returns the word if the attempt fails.
    fn attempt(&self, me: ThreadId, seen: u64) -> Result<(), u64> {
        let seen = match T::cas_value() {
            CasValue::Found => seen,
            CasValue::Reread | CasValue::Kept if T::hard_pre_read() => self.word.load(Relaxed),
            // Whatever the word is.
            CasValue::Reread | CasValue::Kept => FREE,
        };
        if seen & !SPINNER != FREE {
            return Err(seen);
        }
        // 0 -> t, and SPINNER is cleared.
        // Ordering: Acquire, pairs with the Releases of earlier holders: their critical sections
        // happen before ours.
        self.word
            .exchange::<T>(seen, owned_by(me), Acquire)
            .map_err(|found| self.word.after_failure::<T>(found))
    }

    /// t -> t|RECURSED. The caller has checked that this is permitted.
    pub(super) fn recurse(&self) {
        if self.depth.deepen() == 1 {
            // A read-modify-write, since a waiter may set its bit at the same time. Relaxed:
            // nothing is published.
            self.word.fetch_or(RECURSED, Relaxed);
        }
    }

    /// Spins, if there is reason to. Returns the word then, or `None` if the writer should lock the
    /// chain.
    fn spin_to_write(&self, seen: u64, wait: &mut Wait<P>) -> Option<u64> {
        if is_written(seen) {
            // SPINNER is cleared.
            wait.section = None;
            wait.whom = Whom::Writer;
            let writer =
                writer_of(seen).filter(|_| !wait.state.is_tired && Self::is_written_by_runner(seen))?;
            return Some(self.spin_for_writer(writer, &mut wait.state));
        }
        if is_free(seen) {
            return None;
        }
        wait.whom = Whom::Readers;
        if wait.state.is_tired || wait.state.tries >= lock_delay::retries::<P>() {
            return None;
        }
        let shows_itself = K::precedence::<T>() == Precedence::Writers;
        if shows_itself && seen & SPINNER == 0 {
            let section = Section::enter();
            // r -> r, SPINNER. Relaxed: the bit holds readers back, and publishes nothing.
            if let Err(found) = self.word.exchange::<T>(seen, seen | SPINNER, Relaxed) {
                return Some(self.word.after_failure::<T>(found));
            }
            wait.section = Some(section);
        }
        let is_over = |seen| is_written(seen) || is_free(seen) || shows_itself && seen & SPINNER == 0;
        self.spin_for_readers(seen, &mut wait.state, is_over)
    }

    /// Sleeps in the chain, unless there is reason not to by now. Returns the word then, or `None`
    /// if the caller has locked there.
    fn sleep_to_write(&self, wait: &mut Wait<P>, limit: &Limit<'_, P>) -> Result<Option<u64>, GaveUp> {
        let chain = lock_chain::<P, _>(self);
        let mut seen = self.word.load(Relaxed);
        loop {
            // Readers hold the lock in place of the writer: this thread has not spun for them yet.
            let are_new = readers_of(seen) > 0 && wait.whom == Whom::Writer;
            if !wait.state.is_tired && (are_new || Self::is_written_by_runner(seen)) {
                chain.cancel();
                return Ok(Some(seen));
            }
            let found = if is_free(seen) {
                // 0 -> t; waiter bits stay, and SPINNER is cleared.
                // Ordering: Acquire, pairs with the Releases of earlier holders: their critical
                // sections happen before ours.
                match self.word.exchange::<T>(seen, owned_by(wait.me) | seen & WAITERS, Acquire) {
                    Ok(()) => return Ok(None),
                    Err(found) => found,
                }
            } else {
                let spinner = if wait.section.is_some() { SPINNER } else { 0 };
                let asleep = (seen | WRITE_WAITERS) & !spinner;
                if seen == asleep {
                    break;
                }
                // Relaxed: an unlock that sees the bit locks the chain, which orders the two. An
                // unlock that does not see it makes this exchange fail.
                match self.word.exchange::<T>(seen, asleep, Relaxed) {
                    Ok(()) => break,
                    Err(found) => found,
                }
            };
            seen = self.word.after_failure::<T>(found);
            if T::waiter_cas_fail() == WaiterCasFail::Restart {
                chain.restart();
                return Ok(Some(seen));
            }
        }
        wait.section = None;
        let slept = chain.sleep_within(Queue::Exclusive, limit);
        let tries = if K::SLEEP_REFRESHES_WRITERS { 0 } else { wait.state.tries };
        wait.state = SpinState { tries, ..SpinState::fresh::<T>() };
        // The waiter bit may stay: invariant 3.
        slept.map(|()| Some(self.word.load(Relaxed))).map_err(|Abandoned { why, .. }| why)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn unlock_slow(&self, me: ThreadId, found: u64) {
        P::in_slow_path(|| {
            let mut seen = self.word.after_failure::<T>(found);
            debug_assert!(writer_of(seen) == Some(me), "unlocks a lock that it does not write");
            if seen & RECURSED != 0 {
                if self.depth.unwind() == 0 {
                    // t|RECURSED -> t. Relaxed: as in `recurse`.
                    self.word.fetch_and(!RECURSED, Relaxed);
                }
                return;
            }
            while seen & WAITERS == 0 {
                match self.release(seen) {
                    Ok(()) => return,
                    Err(found) => seen = self.word.after_failure::<T>(found),
                }
            }
            self.release_contested();
        });
    }

    /// t -> 0 with waiters, of which one queue is woken.
    fn release_contested(&self) {
        let chain = lock_chain::<P, _>(self);
        // No other thread writes the word: waiter bits change under the chain's lock.
        let (queue, left) = Self::next_queue(self.word.load(Relaxed), &chain, |_| true);
        match T::release_order() {
            ReleaseOrder::FreeFirst => {
                // Ordering: Release, pairs with the Acquires of the next holders: our critical
                // section happens before theirs.
                self.word.store(left, Release);
                chain.wake_all(queue);
            }
            ReleaseOrder::CollectFirst => {
                let mut wake_list = WakeList::EMPTY;
                chain.take_all(queue, &mut wake_list);
                // Ordering: Release, as above.
                self.word.store(left, Release);
                chain.wake(wake_list);
            }
        }
    }

    /// t -> 1 reader, with waiters, or after an exchange that has failed spuriously.
    #[cold]
    #[inline(never)]
    pub(super) fn downgrade_slow(&self, me: ThreadId) {
        P::in_slow_path(|| {
            let mut seen = self.word.load(Relaxed);
            debug_assert!(writer_of(seen) == Some(me), "downgrades a lock that it does not write");
            debug_assert!(seen & RECURSED == 0, "downgrades a lock that it has locked more than once");
            while seen & WAITERS == 0 {
                match self.share(seen) {
                    Ok(()) => return,
                    Err(found) => seen = self.word.after_failure::<T>(found),
                }
            }
            self.downgrade_contested();
        });
    }

    fn downgrade_contested(&self) {
        let chain = lock_chain::<P, _>(self);
        // No other thread writes the word, as in `release_contested`.
        let bits = self.word.load(Relaxed) & WAITERS;
        let wakes = bits & WRITE_WAITERS == 0
            || K::DOWNGRADE_WAKES_READERS
            || K::precedence::<T>() == Precedence::Readers;
        let left = if wakes { bits & WRITE_WAITERS } else { bits };
        // Ordering: Release, pairs with the Acquires of later readers: our critical section happens
        // before theirs.
        self.word.store(READER | left, Release);
        if wakes {
            chain.wake_all(Queue::Shared);
        }
    }
}
