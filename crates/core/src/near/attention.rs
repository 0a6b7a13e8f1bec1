//! Attention: tells the release of a mutex, in one word, whether it must look after waiters.
//!
//! ```text
//! word   bits 10-31 watched: how many queues of the chain have a first that does not rest
//!        2-9        left: how many releases may find nothing watched until the chain is weak
//!        1          strong: releases pass a strong fence; 0 if the chain is weak
//!        0          light: the light side of the fence is known to cost nothing
//!
//!  watched  n -> n+1  `watch`: a waiter is first in a queue, and does not rest (any more)
//!           n -> n-1  `unwatch`: it rests, or has left
//!  strong   0 -> 1    `begin_strong`: by a thread that is about to pass the heavy side
//!  left     0 -> 255  `become_strong`: by that thread, afterwards
//!           n -> n-1  `calm`: a release has found nothing watched
//!           n -> 255  `watch`, unless n is 0
//!  both     n -> 0    `weaken`; `calm`, if n is 1
//!  light    0 -> 1    `note_light`: a release has found out that the platform knows it
//! ```
//! Each chain of the [near](super) family has such a word. It changes under the chain's lock, with
//! the queues; only `light` does not. A change under the lock may undo that, and then a later
//! release sets it again. A release reads the word without the lock. Only if attention is
//! *raised*, which is if a bit other than `light` is set, the release reads the chain, whose filter
//! (`mutex/filter.rs`) tells the mutexes apart. While threads wait all the time and do not rest,
//! nothing writes to the word. So releases find it in their caches.
//!
//! **Light.** Where the platform has an asymmetric fence, its light side only restricts the
//! compiler. But a release must know that for sure. So the word says it. A release that finds the
//! word *quiet*, with nothing but `light`, stores 0 to its mutex and reads the word again. It reads
//! no other memory, and compares with a constant, [`QUIET`]. In the first release of each chain,
//! the bit is not set yet.
//!
//! **Strong chains.** A waiter that is about to sleep, and a release, each need a fence (see "No
//! wake-up is lost" in `mutex.rs`). As a rule, the release passes the light side, and the waiter
//! the heavy side, a system call that interrupts other threads. In a *strong* chain, both pass an
//! ordinary strong fence. That is cheaper if threads sleep for nearly each section. A release
//! learns from the word that the chain is strong, after it has stored 0. A waiter relies on that if
//! the chain is strong when it makes its wake request. To make a chain strong, a thread sets
//! `strong`, passes the heavy side, and then sets `left`. In between, releases pass the strong
//! fence already, and no waiter relies on it.
//!
//! Let a waiter rely on a strong chain, and find the mutex held by a thread H. Consider the last
//! time that the release of H reads the word.
//!
//! 1. *`strong` is set.* The release passes a strong fence after its store of 0. So the waiter
//!    saw the 0, or the release sees the request.
//! 2. *`strong` is not set.* A chain becomes weak only if there is no wake request in it. So it has
//!    been strong since the waiter made its request, and the release has read an older word. It has
//!    not seen what the thread that made the chain strong did before it passed the heavy side. By
//!    the contract of the fence, that thread and all that lock the chain after it see the store of
//!    0. So the waiter saw the 0.
//!
//! **Why the words have a table of their own.** Each release reads one. A program with many mutexes
//! has the words of many chains in its caches. In the chains, each word would take a cache line of
//! 64 bytes. In the table, 16 words share a line. The price: a wait for a mutex in one chain takes
//! the line from processors that release mutexes of 15 other chains. `nearlock bench --mode many`
//! measures a million mutexes.
//!
//! **Why there is not a bit for each count of the filter.** A comparison with a constant takes
//! fewer instructions. With a million mutexes, the processor fetches the cache lines of the next
//! mutexes while it waits for the line of this one. How many it fetches depends on the number of
//! instructions for each mutex.
//!
//! Source: own.

use core::sync::atomic::Ordering::Relaxed;

use crate::platform::{Atomic, AtomicInt, Platform};

/// The table of attention words.
///
/// # Safety
///
/// The word of an address is always the same, and valid as long as the platform instance. At first,
/// and in a child made by `fork`, it is 0; or [`QUIET`], if the light side of the fence [is
/// free](crate::platform::AsymFence::is_light_free). Addresses have the same word only if they have
/// the same [chain](crate::parking::chain::Chains::chain) of the [near](super) family.
pub unsafe trait AttentionTable: Platform {
    /// The attention word of the lock at this address. The pointer is not dereferenced.
    fn attention(lock: *const ()) -> *const Self::U32;
}

const LIGHT: u32 = 1;
/// The value of an attention word that asks nothing of releases, and says that the light side of
/// the fence is free. An inline release compares with it.
pub const QUIET: u32 = LIGHT;
const STRONG: u32 = 1 << 1;
const LEFT_SHIFT: u32 = 2;
/// As many as fit. It is the number of releases that find nothing watched in a strong chain until
/// it is weak. Each of them locks the chain. Together they take longer than a heavy fence, which
/// takes some microseconds. With 1, the chain would become weak whenever no thread waits for a
/// moment, and the next sleep would need a heavy fence. With more, a mutex for which no thread
/// waits any more would be slower for longer.
const LEFT: u32 = 255 << LEFT_SHIFT;
const WATCHED_SHIFT: u32 = 10;
/// One queue. As many as fit: 2^22 - 1, as many as Linux has threads at most (`mutex/filter.rs`).
const WATCHED: u32 = 1 << WATCHED_SHIFT;

/// Which fence the releases of a chain pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strength {
    /// The light side, as far as a waiter can know.
    Weak,
    /// A strong fence.
    Strong,
}

/// An attention word.
pub(super) struct Attention<'a, P: Platform>(&'a P::U32);

/// The value of an attention word when it was read.
#[derive(Clone, Copy)]
pub(super) struct Attended(u32);

impl Attended {
    /// Whether a release need not read the chain, and may pass the light side [for
    /// free](crate::platform::AsymFence::free_light).
    #[inline(always)]
    pub(super) fn is_quiet(self) -> bool {
        self.0 == QUIET
    }

    /// Whether a release may pass the light side for free.
    #[inline(always)]
    pub(super) fn is_light(self) -> bool {
        self.0 & LIGHT != 0
    }

    /// Whether a release must read the chain.
    #[inline(always)]
    pub(super) fn is_raised(self) -> bool {
        self.0 & !LIGHT != 0
    }

    /// Whether a queue of the chain has a first that does not rest.
    #[inline(always)]
    pub(super) fn is_watched(self) -> bool {
        self.0 >= WATCHED
    }

    /// Whether a release must pass a strong fence.
    #[inline(always)]
    pub(super) fn needs_strong_fence(self) -> bool {
        self.0 & STRONG != 0
    }

    /// Which fence a waiter can rely on.
    pub(super) fn strength(self) -> Strength {
        if self.0 & LEFT != 0 { Strength::Strong } else { Strength::Weak }
    }
}

impl<P: AttentionTable> Attention<'_, P> {
    /// The attention word of the lock at this address.
    #[inline(always)]
    pub(super) fn of(lock: *const ()) -> Self {
        // SAFETY: valid as long as the platform instance, which outlives its threads.
        Self(unsafe { &*P::attention(lock) })
    }
}

impl<P: Platform> Attention<'_, P> {
    /// Reads the word. Relaxed: the fences of the mutex make sure that a release sees a waiter that
    /// has made a wake request. All changes are relaxed, too.
    #[inline(always)]
    pub(super) fn read(&self) -> Attended {
        Attended(self.0.load(Relaxed))
    }

    /// Notes that the light side of the fence [costs
    /// nothing](crate::platform::AsymFence::is_light_free).
    #[inline(always)]
    pub(super) fn note_light(&self) {
        self.0.fetch_or(LIGHT, Relaxed);
    }

    /// One more first does not rest.
    pub(super) fn watch(&self) {
        let before = Attended(self.0.add_alone(WATCHED));
        if before.strength() == Strength::Strong {
            self.become_strong();
        }
    }

    /// One first less does not rest.
    pub(super) fn unwatch(&self) {
        self.0.sub_alone(WATCHED);
    }

    /// Makes a weak chain become strong. Returns whether it was weak. Then the caller passes the
    /// heavy side of the fence, and calls [`become_strong`](Self::become_strong).
    pub(super) fn begin_strong(&self) -> bool {
        !Attended(self.0.fetch_or(STRONG, Relaxed)).needs_strong_fence()
    }

    /// Makes a chain strong that is becoming strong, or as strong as at first.
    pub(super) fn become_strong(&self) {
        self.0.fetch_or(LEFT, Relaxed);
    }

    /// Makes a strong chain weak, in which there is no wake request. A chain that is becoming
    /// strong stays so.
    pub(super) fn weaken(&self) {
        if self.read().strength() == Strength::Strong {
            self.0.fetch_and(!(STRONG | LEFT), Relaxed);
        }
    }

    /// Notes a release that has found nothing watched in the chain. So there is no wake request.
    pub(super) fn calm(&self) {
        match (self.read().0 & LEFT) >> LEFT_SHIFT {
            0 => {}
            1 => self.weaken(),
            _ => {
                self.0.sub_alone(1 << LEFT_SHIFT);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Native;

    #[test]
    fn a_chain_is_strong_until_enough_releases_have_found_nothing_watched() {
        let word = Atomic::new(0);
        let attention = Attention::<Native>(&word);
        let seen = || (attention.read().needs_strong_fence(), attention.read().strength());
        assert_eq!(seen(), (false, Strength::Weak));
        assert!(attention.begin_strong() && !attention.begin_strong());
        attention.weaken();
        attention.calm();
        assert_eq!(seen(), (true, Strength::Weak), "it is becoming strong");
        attention.become_strong();
        let calms = (0..10_000).take_while(|_| {
            attention.calm();
            attention.read().strength() == Strength::Strong
        });
        assert_eq!(calms.count() as u32 + 1, LEFT >> LEFT_SHIFT);
        assert!(!attention.read().is_raised());
    }

    #[test]
    fn a_waiter_renews_the_strength() {
        let word = Atomic::new(0);
        let attention = Attention::<Native>(&word);
        attention.begin_strong();
        attention.become_strong();
        for _ in 0..10 {
            (1..LEFT >> LEFT_SHIFT).for_each(|_| attention.calm());
            attention.watch();
            attention.unwatch();
            assert_eq!(attention.read().strength(), Strength::Strong);
            assert!(!attention.read().is_watched());
        }
        attention.watch();
        attention.weaken();
        assert!(attention.read().is_watched() && !attention.read().needs_strong_fence());
    }

    #[test]
    fn watched_queues_are_counted() {
        let word = Atomic::new(0);
        let attention = Attention::<Native>(&word);
        for strong in [false, true] {
            (0..5000).for_each(|_| attention.watch());
            for _ in 0..5000 {
                assert!(attention.read().is_watched() && attention.read().needs_strong_fence() == strong);
                attention.unwatch();
            }
            assert!(!attention.read().is_watched() && attention.read().is_raised() == strong);
            attention.begin_strong();
        }
    }

    #[test]
    fn that_the_light_side_costs_nothing_stays_known() {
        let word = Atomic::new(0);
        let attention = Attention::<Native>(&word);
        let seen = || {
            let attended = attention.read();
            (attended.is_quiet(), attended.is_light(), attended.is_raised())
        };
        assert_eq!(seen(), (false, false, false));
        attention.note_light();
        assert_eq!(seen(), (true, true, false));
        attention.watch();
        attention.begin_strong();
        attention.become_strong();
        assert_eq!(seen(), (false, true, true));
        attention.unwatch();
        attention.note_light();
        attention.weaken();
        assert_eq!(seen(), (true, true, false));
        attention.begin_strong();
        attention.become_strong();
        (0..LEFT >> LEFT_SHIFT).for_each(|_| attention.calm());
        assert_eq!(seen(), (true, true, false));
    }
}
