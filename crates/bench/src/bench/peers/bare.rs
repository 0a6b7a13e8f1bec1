//! Controls: the least that a lock has to do, an atomic instruction to lock and a store to unlock.
//! They show how close a mutex is to that without contention.

use std::hint::spin_loop;
use std::marker::PhantomData;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use nearlock_core::raw::RawLock;

use super::{Lock, of};

pub const EXCHANGE: Option<Lock> = only_uncontended(of::<Bare<Exchange>>());
pub const COMPARE_EXCHANGE: Option<Lock> = only_uncontended(of::<Bare<CompareExchange>>());

const fn only_uncontended(lock: Option<Lock>) -> Option<Lock> {
    match lock {
        Some(lock) => Some(Lock { is_control: true, ..lock }),
        None => None,
    }
}

const FREE: u32 = 0;
const HELD: u32 = 1;

/// The atomic instruction of a lock.
trait Take: Send + Sync + 'static {
    /// Returns whether the word was free.
    fn take(word: &AtomicU32) -> bool;
}

struct Exchange;

impl Take for Exchange {
    #[inline(always)]
    fn take(word: &AtomicU32) -> bool {
        // Ordering: Acquire, pairs with the Release in `unlock`: the previous critical section
        // happens before ours.
        word.swap(HELD, Acquire) == FREE
    }
}

struct CompareExchange;

impl Take for CompareExchange {
    #[inline(always)]
    fn take(word: &AtomicU32) -> bool {
        // Ordering: Acquire, as for `Exchange`.
        word.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }
}

/// A word that is taken by an atomic instruction and freed by a store. Waiters spin.
struct Bare<T>(AtomicU32, PhantomData<T>);

impl<T> Default for Bare<T> {
    fn default() -> Self {
        Self(AtomicU32::new(FREE), PhantomData)
    }
}

// SAFETY: the thread that changes the word from free to held is its holder.
unsafe impl<T: Take> RawLock for Bare<T> {
    type Node = ();

    #[inline(always)]
    unsafe fn lock(&self, _node: &()) {
        while !T::take(&self.0) {
            spin_loop();
        }
    }

    #[inline(always)]
    unsafe fn unlock(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquire in `take`: our critical section happens before
        // the next.
        self.0.store(FREE, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::peers::tests::holds_and_releases;

    #[test]
    fn a_control_is_held_from_lock_to_unlock() {
        holds_and_releases::<Bare<Exchange>>(|lock| lock.0.load(Relaxed) == FREE);
        holds_and_releases::<Bare<CompareExchange>>(|lock| lock.0.load(Relaxed) == FREE);
    }
}
