//! Negative controls: locks that are broken on purpose, so that every test and checker can be seen
//! to fail. Never use them.

mod cancel;
mod none;
mod notification;
mod rw;

use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::platform::{Atomic, AtomicInt, Platform};
use crate::raw::{RawLock, RawTryLock};

pub use cancel::LostCancel;
pub use none::NoLock;
pub use notification::LostNotification;
pub use rw::BustedRw;

/// Excludes no thread. Locktorture calls it `lock_busted`.
pub struct Busted<P: Platform>(P::U32);

impl<P: Platform> Default for Busted<P> {
    fn default() -> Self {
        Self(Atomic::new(0))
    }
}

// SAFETY: none: this is the control that the checkers of exclusion must catch.
unsafe impl<P: Platform> RawLock for Busted<P> {
    type Node = ();
    unsafe fn lock(&self, _node: &()) {
        self.0.store(1, Relaxed);
    }
    unsafe fn unlock(&self, _node: &()) {
        self.0.store(0, Relaxed);
    }
}

// SAFETY: none, as above.
unsafe impl<P: Platform> RawTryLock for Busted<P> {
    unsafe fn try_lock(&self, _node: &()) -> bool {
        self.0.store(1, Relaxed);
        true
    }
}

/// Deadlocks: `unlock` does not wake the waiters, which sleep on another word, the bell.
pub struct LostWakeup<P: Platform> {
    word: P::U32,
    bell: P::U32,
}

impl<P: Platform> Default for LostWakeup<P> {
    fn default() -> Self {
        Self { word: Atomic::new(0), bell: Atomic::new(0) }
    }
}

// SAFETY: excludes as a test-and-set lock does; only progress is missing.
unsafe impl<P: Platform> RawLock for LostWakeup<P> {
    type Node = ();
    unsafe fn lock(&self, _node: &()) {
        // Ordering: Acquire, pairs with the Release in `unlock`.
        while self.word.swap(1, Acquire) != 0 {
            P::wait_until(&self.bell, Relaxed, |rung| rung != 0);
        }
    }
    unsafe fn unlock(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquire in `lock`.
        self.word.store(0, Release);
    }
}

// SAFETY: as above.
unsafe impl<P: Platform> RawTryLock for LostWakeup<P> {
    unsafe fn try_lock(&self, _node: &()) -> bool {
        // Ordering: Acquire, as in `lock`.
        self.word.swap(1, Acquire) == 0
    }
}

/// Livelocks: as long as there are two waiters, each of them gives way to the other.
pub struct AfterYou<P: Platform> {
    word: P::U32,
    waiters: P::U32,
}

impl<P: Platform> Default for AfterYou<P> {
    fn default() -> Self {
        Self { word: Atomic::new(0), waiters: Atomic::new(0) }
    }
}

// SAFETY: excludes as a test-and-set lock does; only progress is missing.
unsafe impl<P: Platform> RawLock for AfterYou<P> {
    type Node = ();
    unsafe fn lock(&self, _node: &()) {
        self.waiters.fetch_add(1, Relaxed);
        let mut turn = 0;
        // Ordering: Acquire, pairs with the Release in `unlock`.
        while self.waiters.load(Relaxed) > 1 || self.word.swap(1, Acquire) != 0 {
            P::cpu_relax(turn);
            turn = turn.saturating_add(1);
        }
        self.waiters.fetch_sub(1, Relaxed);
    }
    unsafe fn unlock(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquire in `lock`.
        self.word.store(0, Release);
    }
}

// SAFETY: as above.
unsafe impl<P: Platform> RawTryLock for AfterYou<P> {
    unsafe fn try_lock(&self, _node: &()) -> bool {
        // Ordering: Acquire, as in `lock`.
        self.word.swap(1, Acquire) == 0
    }
}

/// Starves: last come, first served. The oldest waiter waits on while others keep arriving.
///
/// ```text
/// top   null unlocked   LOCKED locked, no thread waits   n locked, n came last
/// ```
pub struct Lifo<P: Platform> {
    top: P::Ptr<LifoNode<P>>,
}

/// A node in the stack of waiters.
#[repr(C)]
pub struct LifoNode<P: Platform> {
    below: P::Ptr<LifoNode<P>>,
    granted: P::U32,
}

impl<P: Platform> Default for LifoNode<P> {
    fn default() -> Self {
        Self { below: Atomic::new(ptr::null_mut()), granted: Atomic::new(0) }
    }
}

impl<P: Platform> Default for Lifo<P> {
    fn default() -> Self {
        Self { top: Atomic::new(ptr::null_mut()) }
    }
}

impl<P: Platform> Lifo<P> {
    /// An address that no node has.
    const LOCKED: *mut LifoNode<P> = ptr::without_provenance_mut(1);
}

// SAFETY: only the exchange that finds null, or the grant of the previous holder, locks. Only the
// holder takes nodes from the stack, so no node can return to it meanwhile (no ABA).
unsafe impl<P: Platform> RawLock for Lifo<P> {
    type Node = LifoNode<P>;

    unsafe fn lock(&self, node: &LifoNode<P>) {
        node.granted.store(0, Relaxed);
        let mut top = self.top.load(Relaxed);
        loop {
            node.below.store(top, Relaxed);
            let new = if top.is_null() { Self::LOCKED } else { ptr::from_ref(node).cast_mut() };
            // Ordering: AcqRel. Acquire pairs with the Release in `unlock`; Release publishes the
            // node. Relaxed on failure: the value is only used for the next attempt.
            match self.top.compare_exchange(top, new, AcqRel, Relaxed) {
                Ok(null) if null.is_null() => return,
                Ok(_) => break,
                Err(seen) => top = seen,
            }
        }
        // Ordering: Acquire, pairs with the Release store of `granted` in `unlock`.
        P::wait_until(&node.granted, Acquire, |granted| granted != 0);
    }

    unsafe fn unlock(&self, _node: &LifoNode<P>) {
        // Ordering: Acquire, pairs with the Release half of `lock`'s exchange: the node is
        // initialised.
        let mut top = self.top.load(Acquire);
        loop {
            let below = if top == Self::LOCKED {
                ptr::null_mut()
            } else {
                // SAFETY: a node in the stack waits for its grant, so it is in use.
                unsafe { &(*top).below }.load(Relaxed)
            };
            // Ordering: Release, pairs with the Acquire half of `lock`'s exchange. Acquire on
            // failure, as above.
            match self.top.compare_exchange(top, below, Release, Acquire) {
                Ok(taken) if taken == Self::LOCKED => return,
                Ok(taken) => {
                    // Ordering: Release, pairs with the Acquire wait in `lock`.
                    // SAFETY: the waiter waits for this store.
                    unsafe { &(*taken).granted }.store(1, Release);
                    return;
                }
                Err(seen) => top = seen,
            }
        }
    }
}

// SAFETY: as above; the exchange locks only from null.
unsafe impl<P: Platform> RawTryLock for Lifo<P> {
    unsafe fn try_lock(&self, _node: &LifoNode<P>) -> bool {
        // Ordering: Acquire, pairs with the Release in `unlock`. Relaxed on failure, where nothing
        // is read.
        self.top.compare_exchange(ptr::null_mut(), Self::LOCKED, Acquire, Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Native;
    use crate::testing::{OneThread, meanwhile, others_are_done};
    use core::cell::UnsafeCell;
    use std::boxed::Box;

    #[test]
    fn lifo_locks_and_unlocks() {
        let lock = Lifo::<Native>::default();
        let node = LifoNode::default();
        // SAFETY: one thread, and unlock follows lock.
        unsafe {
            lock.lock(&node);
            assert_eq!(lock.top.load(Relaxed), Lifo::<Native>::LOCKED);
            lock.unlock(&node);
        }
        assert!(lock.top.load(Relaxed).is_null());
    }

    #[test]
    fn the_other_controls_lock_when_alone() {
        fn cycle<L: RawTryLock>() {
            let (lock, node) = (L::default(), L::Node::default());
            // SAFETY: one thread, and unlock follows lock.
            unsafe {
                lock.lock(&node);
                lock.unlock(&node);
                assert!(lock.try_lock(&node));
                lock.unlock(&node);
            }
        }
        cycle::<Busted<Native>>();
        cycle::<LostWakeup<Native>>();
        cycle::<AfterYou<Native>>();
        cycle::<Lifo<Native>>();
    }

    /// The waits of the controls end if another thread makes their conditions true.
    #[test]
    fn a_bell_that_is_rung_ends_the_wait() {
        let lock: &LostWakeup<OneThread> = Box::leak(Box::default());
        lock.word.store(1, Relaxed);
        meanwhile(|| {
            lock.word.store(0, Relaxed);
            lock.bell.store(1, Relaxed);
        });
        // SAFETY: no other thread uses the lock.
        unsafe { lock.lock(&()) };
        assert!(others_are_done());
    }

    #[test]
    fn a_polite_waiter_locks_when_the_other_has_gone() {
        let lock: &AfterYou<OneThread> = Box::leak(Box::default());
        lock.waiters.store(1, Relaxed);
        meanwhile(|| {
            lock.waiters.fetch_sub(1, Relaxed);
        });
        // SAFETY: no other thread uses the lock.
        unsafe { lock.lock(&()) };
        assert!(others_are_done() && lock.waiters.load(Relaxed) == 0);
    }

    #[test]
    fn lifo_serves_the_last_first() {
        let lock: &Lifo<OneThread> = Box::leak(Box::default());
        let [holder, first, last]: &[LifoNode<OneThread>; 3] = Box::leak(Box::default());
        // SAFETY: the nodes live for ever, and each has one acquisition.
        unsafe {
            lock.lock(holder);
            meanwhile(|| {
                meanwhile(|| lock.unlock(holder));
                lock.lock(last);
                assert_eq!(first.granted.load(Relaxed), 0);
                lock.unlock(last);
            });
            lock.lock(first);
            lock.unlock(first);
        }
        assert!(others_are_done() && lock.top.load(Relaxed).is_null());
    }

    /// A data race on purpose, in plain memory.
    #[test]
    #[ignore = "undefined behaviour, to see that Miri reports it: .ci/deep"]
    fn busted_lets_threads_race() {
        #[derive(Default)]
        struct Plain(UnsafeCell<u32>);
        // SAFETY: none: this is the control that race detectors must catch.
        unsafe impl Sync for Plain {}
        let (lock, plain) = (Busted::<Native>::default(), Plain::default());
        let section = || {
            let plain = &plain;
            // SAFETY: none, as above.
            unsafe {
                lock.lock(&());
                *plain.0.get() += 1;
                lock.unlock(&());
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(section);
            scope.spawn(section);
        });
    }
}
