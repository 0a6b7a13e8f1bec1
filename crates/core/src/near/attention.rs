//! Attention: tells the release of a mutex, in one word, whether it must look after waiters.
//!
//! ```text
//! word   0 no thread is in a queue of the chain's mutexes | 1 otherwise
//!
//!  0 -> 1   `raise`: the first thread has joined
//!  1 -> 0   `lower`: the last one has left
//! ```
//! Each chain of the [near](super) family has such a word. It changes under the chain's lock, with
//! the queue. A release reads it without the lock. Only if it is not 0, the release reads the
//! chain, whose filter (`mutex/filter.rs`) tells the mutexes apart. While threads wait all the
//! time, nothing writes to the word. So releases find it in their caches.
//!
//! **Why the words have a table of their own.** Each release reads one. A program with many mutexes
//! has the words of many chains in its caches. In the chains, each word would take a cache line of
//! 64 bytes. In the table, 16 words share a line. The price: a wait for a mutex in one chain takes
//! the line from processors that release mutexes of 15 other chains. `nearlock bench --mode many`
//! measures a million mutexes.
//!
//! **Why there is not a bit for each count of the filter.** A test for 0 takes fewer instructions.
//! With a million mutexes, the processor fetches the cache lines of the next mutexes while it waits
//! for the line of this one. How many it fetches depends on the number of instructions for each
//! mutex.
//!
//! Source: own.

use core::sync::atomic::Ordering::Relaxed;

use crate::platform::{Atomic, Platform};

/// The table of attention words.
///
/// # Safety
///
/// The word of an address is always the same, and valid as long as the platform instance. It is 0
/// at first, and in a child made by `fork`. Addresses have the same word only if they have the same
/// [chain](crate::parking::chain::Chains::chain) of the [near](super) family.
pub unsafe trait AttentionTable: Platform {
    /// The attention word of the lock at this address. The pointer is not dereferenced.
    fn attention(lock: *const ()) -> *const Self::U32;
}

/// An attention word.
pub(super) struct Attention<'a, P: Platform>(&'a P::U32);

impl<P: AttentionTable> Attention<'_, P> {
    /// The attention word of the lock at this address.
    #[inline(always)]
    pub(super) fn of(lock: *const ()) -> Self {
        // SAFETY: valid as long as the platform instance, which outlives its threads.
        Self(unsafe { &*P::attention(lock) })
    }
}

impl<P: Platform> Attention<'_, P> {
    /// Whether threads wait for a mutex of the chain. Relaxed: the fences of the mutex make sure
    /// that a release sees a thread that has made a wake request.
    #[inline(always)]
    pub(super) fn is_raised(&self) -> bool {
        self.0.load(Relaxed) != 0
    }

    /// 0 -> 1. Relaxed, as all changes, which are made under the chain's lock.
    pub(super) fn raise(&self) {
        self.0.store(1, Relaxed);
    }

    /// 1 -> 0.
    pub(super) fn lower(&self) {
        self.0.store(0, Relaxed);
    }
}
