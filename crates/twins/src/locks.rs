//! The twins. Their fast paths are written for one lock only. Their slow paths must be correct, but
//! need not be fast, since only a test runs them.

mod owners;
mod plain;
mod queues;
mod words;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use std::arch::asm;
use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU16, AtomicU32};
use std::thread::yield_now;

use nearlock::raw::{RawLock, RawTryLock};

pub use owners::{Managed, Owned, SpinOwned, Written};
pub use plain::PlainRelease;
pub use queues::{Clh, Mcs, McsNode};
pub use words::{RELEASED, release_low_byte, release_low_half};

/// Test-and-set.
#[derive(Default)]
pub struct Tas(AtomicU32);

impl Tas {
    #[cold]
    #[inline(never)]
    fn lock_slow(&self) {
        while self.0.swap(1, Acquire) != 0 {
            yield_now();
        }
    }
}

// SAFETY: only the swap that finds 0 locks.
unsafe impl RawLock for Tas {
    type Node = ();
    #[inline]
    unsafe fn lock(&self, _node: &()) {
        if self.0.swap(1, Acquire) != 0 {
            self.lock_slow();
        }
    }
    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        self.0.store(0, Release);
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for Tas {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        self.0.swap(1, Acquire) == 0
    }
}

/// Test-and-test-and-set.
#[derive(Default)]
pub struct Ttas(Tas);

impl Ttas {
    #[inline]
    fn attempt(&self) -> bool {
        self.0.0.load(Relaxed) == 0 && self.0.0.swap(1, Acquire) == 0
    }
}

// SAFETY: as for `Tas`.
unsafe impl RawLock for Ttas {
    type Node = ();
    #[inline]
    unsafe fn lock(&self, _node: &()) {
        if !self.attempt() {
            self.0.lock_slow();
        }
    }
    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        self.0.0.store(0, Release);
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for Ttas {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        self.attempt()
    }
}

/// The tickets: next in the upper half, serving in the lower.
#[derive(Default)]
pub struct Ticket(AtomicU32);

impl Ticket {
    #[cold]
    #[inline(never)]
    fn lock_slow(&self, ticket: u16) {
        while self.0.load(Acquire) as u16 != ticket {
            yield_now();
        }
    }

    /// The half that only the holder writes.
    #[inline]
    fn serving(&self) -> &AtomicU16 {
        let place = usize::from(cfg!(target_endian = "big"));
        // SAFETY: a half of a live word, with sufficient alignment. Accesses of both sizes to one
        // word are what the real lock does in assembly.
        unsafe { AtomicU16::from_ptr(self.0.as_ptr().cast::<u16>().add(place)) }
    }
}

// SAFETY: each ticket is served once.
unsafe impl RawLock for Ticket {
    type Node = ();
    #[inline]
    unsafe fn lock(&self, _node: &()) {
        let word = self.0.fetch_add(1 << 16, Acquire);
        let ticket = (word >> 16) as u16;
        if word as u16 != ticket {
            self.lock_slow(ticket);
        }
    }
    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        // This loads the whole word, since no platform has a load of a half. (With such a load,
        // x86-64 could do both in one instruction without the lock prefix.)
        let serving = self.0.load(Relaxed) as u16;
        self.serving().store(serving.wrapping_add(1), Release);
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for Ticket {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        let word = self.0.load(Relaxed);
        word as u16 == (word >> 16) as u16
            && self.0.compare_exchange(word, word.wrapping_add(1 << 16), Acquire, Relaxed).is_ok()
    }
}

/// A word that is locked from 0, and whose low byte is cleared by the unlock: qspinlock without its
/// queue.
#[derive(Default)]
pub struct ByteRelease(AtomicU32);

impl ByteRelease {
    #[cold]
    #[inline(never)]
    fn lock_slow(&self, mut val: u32) {
        while val != 0 || self.0.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            yield_now();
            val = self.0.load(Relaxed);
        }
    }

    /// Clears the low byte, which only the holder writes. In assembly, as in the real lock: Rust
    /// does not define a store that races with accesses of another size.
    #[inline]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn release(&self) {
        let p = self.0.as_ptr();
        // SAFETY: the address is that of a live word, whose low byte this is (little endian).
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!("mov byte ptr [{p}], 0", p = in(reg) p, options(nostack, preserves_flags));
            #[cfg(target_arch = "aarch64")]
            asm!("stlrb wzr, [{p}]", p = in(reg) p, options(nostack, preserves_flags));
        }
    }

    /// For targets on which nothing is compared.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn release(&self) {
        self.0.fetch_and(!0xff, Release);
    }
}

// SAFETY: only the exchange from 0 locks.
unsafe impl RawLock for ByteRelease {
    type Node = ();
    #[inline]
    unsafe fn lock(&self, _node: &()) {
        if let Err(val) = self.0.compare_exchange(0, 1, Acquire, Relaxed) {
            self.lock_slow(val);
        }
    }
    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        self.release();
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for ByteRelease {
    #[inline]
    unsafe fn try_lock(&self, _node: &()) -> bool {
        self.0.load(Relaxed) == 0 && self.0.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }
}

/// The same, unlocked by a read-modify-write of the word.
#[derive(Default)]
pub struct WholeRelease(ByteRelease);

// SAFETY: as for `ByteRelease`.
unsafe impl RawLock for WholeRelease {
    type Node = ();
    #[inline]
    unsafe fn lock(&self, node: &()) {
        // SAFETY: upheld by the caller.
        unsafe { self.0.lock(node) };
    }
    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        self.0.0.fetch_and(!0xff, Release);
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for WholeRelease {
    #[inline]
    unsafe fn try_lock(&self, node: &()) -> bool {
        // SAFETY: upheld by the caller.
        unsafe { self.0.try_lock(node) }
    }
}

/// The same, unlocked by an exchange that shows whether a thread must be woken.
#[derive(Default)]
pub struct WakingRelease(ByteRelease);

impl WakingRelease {
    #[cold]
    #[inline(never)]
    fn unlock_slow(&self) {
        self.0.0.fetch_and(!0xff, Release);
    }
}

// SAFETY: as for `ByteRelease`.
unsafe impl RawLock for WakingRelease {
    type Node = ();
    #[inline]
    unsafe fn lock(&self, node: &()) {
        // SAFETY: upheld by the caller.
        unsafe { self.0.lock(node) };
    }
    #[inline]
    unsafe fn unlock(&self, _node: &()) {
        if self.0.0.compare_exchange(1, 0, Release, Relaxed).is_err() {
            self.unlock_slow();
        }
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for WakingRelease {
    #[inline]
    unsafe fn try_lock(&self, node: &()) -> bool {
        // SAFETY: upheld by the caller.
        unsafe { self.0.try_lock(node) }
    }
}

/// A number under a lock.
#[derive(Default)]
pub struct Guarded<L> {
    lock: L,
    number: UnsafeCell<u32>,
}

// SAFETY: only the holder of the lock accesses the number.
unsafe impl<L: Sync> Sync for Guarded<L> {}

impl<L: RawTryLock<Node = ()>> Guarded<L> {
    /// Waits for the lock, and adds one.
    #[inline]
    pub fn add(&self) {
        // SAFETY: locked before, and unlocked after, the access.
        unsafe {
            self.lock.lock(&());
            *self.number.get() += 1;
            self.lock.unlock(&());
        }
    }

    /// Adds one if the lock is free.
    #[inline]
    pub fn try_add(&self) -> bool {
        // SAFETY: as above.
        unsafe {
            let free = self.lock.try_lock(&());
            if free {
                *self.number.get() += 1;
                self.lock.unlock(&());
            }
            free
        }
    }
}

/// The negative control. It does more than its twin: one instruction and one call.
#[derive(Default)]
pub struct Control(Tas);

// SAFETY: as for `Tas`.
unsafe impl RawLock for Control {
    type Node = ();
    #[inline]
    unsafe fn lock(&self, node: &()) {
        self.0.0.load(Acquire);
        // SAFETY: upheld by the caller.
        unsafe { self.0.lock(node) };
    }
    #[inline]
    unsafe fn unlock(&self, node: &()) {
        #[inline(never)]
        fn nothing() {
            black_box(());
        }
        nothing();
        // SAFETY: upheld by the caller.
        unsafe { self.0.unlock(node) };
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for Control {
    #[inline]
    unsafe fn try_lock(&self, node: &()) -> bool {
        black_box(node);
        // SAFETY: upheld by the caller.
        unsafe { self.0.try_lock(node) }
    }
}

const _: () = assert!(size_of::<ByteRelease>() == size_of::<nearlock::linux::RawQSpinLock>());
const _: () = assert!(size_of::<McsNode>() == size_of::<nearlock::classic::RawMcsNode>());

#[cfg(test)]
mod tests {
    use super::*;

    /// The slow paths are correct, too: four threads lose no critical section.
    fn excludes<L: RawTryLock>() {
        let (lock, number) = (L::default(), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let node = L::Node::default();
                    for _ in 0..100 {
                        // SAFETY: the node is this thread's, and unlock follows lock.
                        unsafe {
                            lock.lock(&node);
                            let seen = number.load(Relaxed);
                            std::thread::yield_now();
                            number.store(seen + 1, Relaxed);
                            lock.unlock(&node);
                        }
                    }
                });
            }
        });
        assert_eq!(number.into_inner(), 400);
        let node = L::Node::default();
        // SAFETY: one thread, and unlock follows lock.
        unsafe {
            assert!(lock.try_lock(&node));
            lock.unlock(&node);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore)] // accesses of two sizes meet, on purpose
    fn the_twins_exclude() {
        excludes::<Tas>();
        excludes::<Ttas>();
        excludes::<Ticket>();
        excludes::<Mcs>();
        excludes::<Clh>();
        excludes::<ByteRelease>();
        excludes::<WholeRelease>();
        excludes::<WakingRelease>();
        excludes::<Owned>();
        excludes::<SpinOwned>();
        excludes::<Written>();
        excludes::<Managed>();
        excludes::<PlainRelease>();
        excludes::<Control>();
    }

    #[test]
    fn the_guarded_number_counts() {
        let guarded = Guarded::<ByteRelease>::default();
        guarded.add();
        assert!(guarded.try_add());
        assert_eq!(guarded.number.into_inner(), 2);
    }
}
