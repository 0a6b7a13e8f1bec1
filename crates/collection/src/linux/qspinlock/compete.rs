//! Waiters that may be preempted: newcomers that steal the lock, and waiters that sleep.
//!
//! A queue makes no progress while its next waiter has no processor. There are two remedies, each a
//! switch of [`QSpinTuning`]. Newcomers, which are running, may steal the lock. And waiters sleep
//! rather than spin, so that few of them can be preempted. The head then competes for the lock.
//!
//! ```text
//! bits 0-7  0 free | 1 held | 3 held, and the head sleeps on the word
//! bit 8     pending: the head looks, and no thread may steal. (No waiter without a node sets it.)
//!
//! (tail, pending, locked)
//!  n,0,0 -> n,0,1   a newcomer steals                                `steal`
//!  n,0,* -> n,1,*   the head begins to look                          `compete`
//!  n,1,0 -> n,0,1   the head takes the lock                          `take_as_head`
//!  n,1,* -> n,0,*   the head has looked for a while                  `compete`
//!  n,*,1 -> n,*,3   the head goes to sleep                           `park_head`
//!  n,*,0 -> n,*,3 -> n,0,1   the head finds the lock free instead    `park_head`
//!  n,*,3 -> n,*,0   unlock; wakes the head                           `unlock_and_wake`
//! ```
//! 1. Only the head sets or clears pending, and only the head changes 1 (or 0) to 3.
//! 2. A thread that sleeps on the word has seen 3 in it. The thread that changes 3 to 0 wakes it.
//!
//! Fairness: the queue itself is first come, first served. Newcomers overtake it while its head
//! does not look. After `head_stretches_max` series of looks without success, the head leaves
//! pending set, and no thread overtakes the queue any more. Source: the paravirtual form of Linux'
//! qspinlock (Long; stealing 2015, hybrid 2017), written from a description in our own words.
//! There, the unlock finds the head through a hash table. Here, the head sleeps on the word itself.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{LOCKED, LOCKED_MASK, Node, PENDING, QSpinLock, QSpinTuning, QueuePolicy, TAIL_MASK};
use crate::events::LockEvent;
use crate::platform::{Atomic, AtomicInt, LocalNodes, Park, SplitWord};

/// The low byte of the word while the lock is held and the head sleeps.
const SLEEPING: u32 = 3;

const _: () = assert!(SLEEPING & LOCKED == LOCKED && SLEEPING & LOCKED_MASK == SLEEPING);

words! {
    /// Whether newcomers may take a free lock ahead of the queue.
    pub enum Stealing {
        /// Never: first come, first served.
        Off "off",
        /// By one attempt, when they arrive. (Linux 4.4.)
        Once "once",
        /// By further attempts, as long as there is a queue whose head does not look. (Linux 4.15.)
        Hybrid "hybrid",
    }
}

crate::tuning! {
    /// Newcomers steal by one attempt. No thread sleeps.
    pub struct StealOnce: QSpinTuning {
        stealing: Stealing = Stealing::Once;
    }
}

crate::tuning! {
    /// Newcomers steal for as long as the head does not look. No thread sleeps.
    pub struct StealHybrid: QSpinTuning {
        stealing: Stealing = Stealing::Hybrid;
    }
}

crate::tuning! {
    /// Waiters and the head sleep. No thread steals.
    pub struct ParkOnly: QSpinTuning {
        park_turns: Option<u32> = Some(super::TURNS_WITHOUT_YIELD);
        park_head: bool = true;
    }
}

crate::tuning! {
    /// Recommended for programs that may have more threads than processors: newcomers steal,
    /// waiters and the head sleep.
    pub struct Preemptible: QSpinTuning {
        stealing: Stealing = Stealing::Hybrid;
        park_turns: Option<u32> = Some(super::TURNS_WITHOUT_YIELD);
        park_head: bool = true;
    }
}

crate::tuning! {
    /// As [`Preemptible`], but a waiter sleeps only after all of its own looks.
    pub struct WaitLate: QSpinTuning {
        stealing: Stealing = Stealing::Hybrid;
        park_turns: Option<u32> = Some(super::TURNS_WITHOUT_YIELD);
        wait_early: bool = false;
        park_head: bool = true;
    }
}

crate::tuning! {
    /// As [`Preemptible`], but the head never sleeps, so that an unlock is a byte store.
    pub struct WakefulHead: QSpinTuning {
        stealing: Stealing = Stealing::Hybrid;
        park_turns: Option<u32> = Some(super::TURNS_WITHOUT_YIELD);
    }
}

impl<P: Park + LocalNodes<Node<P, Q::Part>>, Q: QueuePolicy<P>, T: QSpinTuning> QSpinLock<P, Q, T> {
    /// The attempts of a newcomer to take the lock ahead of the queue.
    pub(super) fn steal(&self) -> bool {
        match T::stealing() {
            Stealing::Off => false,
            Stealing::Once => self.try_take_over(LOCKED_MASK | PENDING),
            Stealing::Hybrid => {
                for turn in 0..T::steal_turns_max() {
                    if self.try_take_over(LOCKED_MASK | PENDING) {
                        return true;
                    }
                    let val = self.word.load(Relaxed);
                    if val & TAIL_MASK == 0 || val & PENDING != 0 {
                        return false;
                    }
                    P::cpu_relax(turn);
                }
                false
            }
        }
    }

    /// Takes the lock as the head, in competition with other threads. Returns the word that it
    /// leaves.
    pub(super) fn compete(&self) -> u32 {
        let mut stretch = 0;
        loop {
            // Relaxed, here and below: the bit publishes nothing.
            self.word.fetch_or(PENDING, Relaxed);
            if let Some(word) = self.take_as_head() {
                return word;
            }
            if stretch < T::head_stretches_max() {
                self.word.fetch_and(!PENDING, Relaxed);
            }
            if !T::park_head() {
                P::cpu_relax(stretch.saturating_mul(T::head_turns()));
            } else if let Some(word) = self.park_head() {
                return word;
            }
            stretch = stretch.saturating_add(1);
        }
    }

    /// Takes one series of looks, and the lock if it becomes free. Returns the word in that case.
    fn take_as_head(&self) -> Option<u32> {
        let mut val = P::wait_until_bounded(&self.word, Relaxed, T::head_turns(), |v| v & LOCKED_MASK == 0);
        while val & LOCKED_MASK == 0 {
            let taken = val & !PENDING | LOCKED;
            // Ordering: Acquire, pairs with the Release in `unlock`: the previous section happens
            // before ours. Relaxed on failure, where the loop only tries again.
            match self.word.compare_exchange(val, taken, Acquire, Relaxed) {
                Ok(_) => return Some(taken),
                Err(seen) => val = seen,
            }
        }
        None
    }

    /// Sleeps until an unlock. If the lock is free, takes it instead, and returns the word.
    pub(super) fn park_head(&self) -> Option<u32> {
        // Ordering: Acquire, pairs with the Release in `unlock`, for the case that the lock is
        // free.
        let old = self.word.fetch_or(SLEEPING, Acquire);
        if old & LOCKED_MASK == 0 {
            // Relaxed: we publish nothing before `unlock`.
            let val = self.word.fetch_and(!(SLEEPING ^ LOCKED | PENDING), Relaxed);
            return Some(val & !(SLEEPING ^ LOCKED | PENDING));
        }
        P::count(LockEvent::WaitHead);
        let mut val = old | SLEEPING;
        while val & LOCKED_MASK == SLEEPING {
            P::park(&self.word, val);
            val = self.word.load(Relaxed);
        }
        None
    }

    /// Releases the lock, and wakes the head if it sleeps.
    #[inline]
    pub(super) fn unlock_and_wake(&self) {
        // First, a compare-exchange of the whole word, for the case without waiters. A byte access
        // would cost more: the next access, to the whole word, would have to wait for it.
        // Ordering: Release, as in `unlock`. Relaxed on failure, where nothing is released.
        if self.word.compare_exchange(LOCKED, 0, Release, Relaxed).is_err() {
            self.unlock_contended();
        }
    }

    #[cold]
    #[inline(never)]
    fn unlock_contended(&self) {
        let address = ptr::from_ref(&self.word);
        // Ordering: Release, as in `unlock`.
        let low = self.word.swap_low_byte(0, Release);
        // From here on, the lock may have been freed. Only its address is used.
        if u32::from(low) == SLEEPING {
            P::count(LockEvent::KickUnlock);
            P::unpark(address, 1);
        }
    }
}
