//! Readers that do not check whether there is a writer.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::platform::{Atomic, AtomicInt, Platform};
use crate::raw::{RawLock, RawRwLock, RawTryLock};

const WRITER: u32 = 1;
const READER: u32 = 2;

/// Excludes writers from each other, and from readers that hold the lock already. But readers lock
/// it although a writer holds it.
///
/// ```text
/// word   bit 0 a writer | the others: number of readers
/// ```
pub struct BustedRw<P: Platform>(P::U32);

impl<P: Platform> Default for BustedRw<P> {
    fn default() -> Self {
        Self(Atomic::new(0))
    }
}

// SAFETY: a writer locks only from 0, so writers exclude each other. Only readers are let in
// wrongly.
unsafe impl<P: Platform> RawLock for BustedRw<P> {
    type Node = ();
    unsafe fn lock(&self, node: &()) {
        // SAFETY: upheld by the caller.
        while !unsafe { self.try_lock(node) } {
            P::wait_until(&self.0, Relaxed, |word| word == 0);
        }
    }
    unsafe fn unlock(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquire in `try_lock`.
        self.0.fetch_sub(WRITER, Release);
    }
}

// SAFETY: as above.
unsafe impl<P: Platform> RawTryLock for BustedRw<P> {
    unsafe fn try_lock(&self, _node: &()) -> bool {
        // Ordering: Acquire, pairs with the Releases of the threads that unlock. Relaxed on
        // failure, where nothing is read.
        self.0.compare_exchange(0, WRITER, Acquire, Relaxed).is_ok()
    }

    fn is_locked(&self) -> bool {
        self.0.load(Relaxed) != 0
    }
}

// SAFETY: none: this is the control that the checkers of readers must catch.
unsafe impl<P: Platform> RawRwLock for BustedRw<P> {
    unsafe fn lock_shared(&self, _node: &()) {
        // Ordering: Acquire, pairs with the Release in `unlock`, if that came before.
        self.0.fetch_add(READER, Acquire);
    }
    unsafe fn try_lock_shared(&self, node: &()) -> bool {
        // SAFETY: upheld by the caller.
        unsafe { self.lock_shared(node) };
        true
    }
    unsafe fn unlock_shared(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquire in `try_lock`.
        self.0.fetch_sub(READER, Release);
    }
    unsafe fn downgrade(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquires of readers.
        self.0.fetch_add(READER - WRITER, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{OneThread, meanwhile, others_are_done};
    use std::boxed::Box;

    #[test]
    fn readers_come_in_beside_a_writer_and_writers_wait_for_readers() {
        let lock: &BustedRw<OneThread> = Box::leak(Box::default());
        // SAFETY: none for the reader that holds the lock together with a writer; it accesses
        // nothing. Each thread unlocks what it has locked.
        unsafe {
            lock.lock(&());
            assert!(lock.try_lock_shared(&()) && !lock.try_lock(&()));
            lock.unlock(&());
            assert!(!lock.try_lock(&()));
            meanwhile(|| lock.unlock_shared(&()));
            lock.lock(&());
            assert!(others_are_done());
            lock.downgrade(&());
            lock.lock_shared(&());
            lock.unlock_shared(&());
            assert!(lock.is_locked());
            lock.unlock_shared(&());
        }
        assert!(!lock.is_locked());
    }
}
