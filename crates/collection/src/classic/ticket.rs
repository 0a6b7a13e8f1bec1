//! Ticket lock: two counters in one word, as in a shop where customers draw numbers.
//!
//! ```text
//! bits 0-15 serving | 16-31 next
//!
//! (next, serving)
//!  s  ,s -> s+1,s     lock, try_lock: no thread holds the lock
//!  n  ,s -> n+1,s     lock: draws the ticket n, and waits until serving is n
//!  n  ,s -> n  ,s+1   unlock
//! ```
//! serving: the ticket of the holder. Only the holder writes it.
//! next: the ticket that the next thread will draw. Equal to serving: unlocked.
//! Both count modulo 2^16.
//!
//! 1. The holder and the waiters have the tickets from serving on, up to the last one before next.
//!    Each ticket belongs to one thread, as long as there are at most 2^16 threads. One more would
//!    draw the holder's ticket: **a process may not have more threads than that at one such lock.**
//!
//! Waiters look at the word without back-off, so each unlock costs a line transfer to each of them.
//! (Mellor-Crummey and Scott propose a pause proportional to the number of threads ahead. No lock
//! knows how long each of these will hold it.)
//!
//! Fairness: first come, first served, in the order in which tickets are drawn. A waiter that has
//! no processor delays all waiters behind it.
//! Source: Reed and Kanodia, "Synchronization with eventcounts and sequencers", CACM 22(2), 1979;
//! Mellor-Crummey and Scott, ACM TOCS 9(1), 1991, Figure 2. The narrow store of the unlock is that
//! of Linux 2.6.25.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::parking::WaitLock;
use crate::platform::{Atomic, AtomicInt, Platform, SplitWord};
use crate::raw::{RawLock, RawTryLock};

const NEXT_SHIFT: u32 = 16;
const ONE_TICKET: u32 = 1 << NEXT_SHIFT;

const fn serving(word: u32) -> u16 {
    word as u16
}

const fn next(word: u32) -> u16 {
    (word >> NEXT_SHIFT) as u16
}

/// See the [module](self). At most 2^16 threads may hold and wait for it at a time.
#[repr(transparent)]
pub struct TicketLock<P: Platform> {
    word: P::U32,
}

impl<P: Platform> TicketLock<P> {
    /// An unlocked lock, in `const`.
    pub const fn new() -> Self {
        Self { word: Atomic::ZERO }
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self, ticket: u16) {
        // Ordering: Acquire, pairs with the Release in `unlock`: the previous critical section
        // happens before ours. (Others may have drawn tickets since that Release; they prolong its
        // release sequence.)
        P::wait_until(&self.word, Acquire, |word| serving(word) == ticket);
    }
}

impl<P: Platform> Default for TicketLock<P> {
    fn default() -> Self {
        Self { word: Atomic::new(0) }
    }
}

// SAFETY: the lock belongs to the ticket that serving names. By invariant 1 one thread has this
// ticket, and only its `unlock` increments serving. Release and Acquire on the word order the
// critical sections.
unsafe impl<P: Platform> RawLock for TicketLock<P> {
    type Node = ();

    #[inline]
    unsafe fn lock(&self, _node: &()) {
        // n,s -> n+1,s
        // Ordering: Acquire, pairs with the Release in `unlock`, for the case that our ticket is
        // served already.
        let word = self.word.fetch_add(ONE_TICKET, Acquire);
        let ticket = next(word);
        if serving(word) != ticket {
            self.lock_slow(ticket);
        }
    }

    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        // Relaxed: only the holder writes serving. It is read from the word and not kept in a node,
        // so that any thread may unlock.
        let holder = serving(self.word.load(Relaxed));
        // n,s -> n,s+1. Only this half is written: no carry into next.
        // Ordering: Release, pairs with the Acquires above: our critical section happens before the
        // next.
        self.word.store_low_half(holder.wrapping_add(1), Release);
    }
}

// SAFETY: as above; the exchange locks only if no thread holds the lock or waits.
unsafe impl<P: Platform> RawTryLock for TicketLock<P> {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        let word = self.word.load(Relaxed);
        // s,s -> s+1,s
        // Ordering: Acquire, pairs with the Release in `unlock`. Relaxed on failure, where nothing
        // is read through the value.
        serving(word) == next(word)
            && self.word.compare_exchange(word, word.wrapping_add(ONE_TICKET), Acquire, Relaxed).is_ok()
    }

    #[inline]
    fn is_locked(&self) -> bool {
        let word = self.word.load(Relaxed);
        serving(word) != next(word)
    }
}

/// The kernel's `wait_lock` until 2014. For at most 2^16 threads.
impl<P: Platform> WaitLock for TicketLock<P> {
    const FREE: Self = Self::new();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Native;

    const _: () = assert!(size_of::<TicketLock<Native>>() == 4);

    fn word(next: u16, serving: u16) -> u32 {
        u32::from(next) << NEXT_SHIFT | u32::from(serving)
    }

    /// What a test does to the lock.
    #[derive(Clone, Copy)]
    enum Step {
        Lock,
        /// Another thread draws a ticket.
        Draw,
        FailToTry,
        Try,
        Unlock,
    }
    use Step::{Draw, FailToTry, Lock, Try, Unlock};

    fn words_after<const N: usize>(steps: [Step; N], begin: u32) -> [u32; N] {
        let lock = TicketLock::<Native> { word: Atomic::new(begin) };
        steps.map(|step| {
            // SAFETY: one thread, and the steps unlock only what is locked.
            unsafe {
                match step {
                    Lock => lock.lock(&()),
                    Draw => _ = lock.word.fetch_add(ONE_TICKET, Relaxed),
                    FailToTry => assert!(!lock.try_lock(&()) && lock.is_locked()),
                    Try => assert!(!lock.is_locked() && lock.try_lock(&())),
                    Unlock => lock.unlock(&()),
                }
            }
            lock.word.load(Relaxed)
        })
    }

    #[test]
    fn tickets_are_served_in_turn() {
        let words = words_after([Lock, Draw, FailToTry, Unlock, FailToTry, Unlock, Try, Unlock], 0);
        let expected = [(1, 0), (2, 0), (2, 0), (2, 1), (2, 1), (2, 2), (3, 2), (3, 3)];
        assert_eq!(words, expected.map(|(next, serving)| word(next, serving)));
    }

    #[test]
    fn both_counters_wrap_without_a_carry() {
        const LAST: u16 = u16::MAX;
        let words = words_after([Lock, Draw, Unlock, Unlock, Try, Unlock], word(LAST, LAST));
        let expected = [(0, LAST), (1, LAST), (1, 0), (1, 1), (2, 1), (2, 2)];
        assert_eq!(words, expected.map(|(next, serving)| word(next, serving)));
        let words = words_after([Try, FailToTry, Unlock], word(LAST, LAST));
        assert_eq!(words, [word(0, LAST), word(0, LAST), 0]);
    }

    #[test]
    fn a_full_lock_has_tickets_for_all() {
        // 2^16 - 1 tickets are in use, and the thread that draws now makes 2^16.
        let lock = TicketLock::<Native> { word: Atomic::new(word(4, 5)) };
        let drawn = lock.word.fetch_add(ONE_TICKET, Relaxed);
        assert_ne!(next(drawn), serving(drawn), "the last of 2^16 waits");
        let one_too_many = lock.word.fetch_add(ONE_TICKET, Relaxed);
        assert_eq!(next(one_too_many), serving(one_too_many), "the limit is as documented");
    }
}
