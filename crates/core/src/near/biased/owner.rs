//! What a thread shows of the locks that are biased to it.
//!
//! ```text
//! places   0 | lock | lock + HELD     four of them; a lock's is found by its address
//! wanted   1: somebody sleeps until the thread leaves a lock
//!
//!  0, other -> lock+HELD   the thread has the lock by its mutex, and the lock is biased to it: it releases the mutex then
//!  lock -> lock+HELD       it takes the lock by bias, if it still may
//!  lock+HELD -> lock       it releases it
//!  lock+HELD -> 0          it may not any more; or a guard was forgotten here, and its lock is gone
//!
//!  0 -> 1   `sleep_until_left`, under the lock of the line's chain
//!  1 -> 0   `answer`, under the same
//! ```
//! 1. Only its thread writes a place; but one that says HELD is written only by whoever holds that lock. (So a thread that ends
//!    in between leaves it to whoever has its number next, who finds the place taken.)
//! 2. A place that says held is nobody else's: a lock that finds its place taken so is held by its mutex, and only then.
//! 3. So a place says `lock` only while its thread does not hold that lock.
//! 4. A line is never freed. So who has released a lock may look at it, whatever has become of the lock.
//!
//! The addresses are compared, and never followed.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::events::LockEvent;
use crate::freebsd::chain::{Abandoned, Locked, Queue};
use crate::near::Host;
use crate::platform::{Atomic, Platform};
use crate::schedule::Spin;
use crate::waiter::{GaveUp, Limit};

/// Places in a line. With fewer, locks that one thread uses in turns drive each other out more often, which costs each of them the
/// way through its mutex; with more a line would take two cache lines. A power of two, so that a hash is a shift.
pub const PLACES: usize = 4;

/// Pauses between two looks of one that waits for a lock to be left, at most.
const STRIDE_MAX: u32 = 32;

const HELD: usize = 1;

/// A lock's address.
type Lock = *mut ();

/// The same, held.
#[inline(always)]
fn held(lock: Lock) -> Lock {
    lock.wrapping_byte_add(HELD)
}

fn says_held(place: Lock) -> bool {
    place.addr() & HELD != 0
}

/// See the module. Zero bytes: none is biased to the thread.
#[repr(C, align(64))]
pub struct OwnerLine<P: Platform> {
    places: [P::Ptr<()>; PLACES],
    wanted: P::U32,
}

impl<P: Platform> Default for OwnerLine<P> {
    fn default() -> Self {
        Self { places: core::array::from_fn(|_| Atomic::new(ptr::null_mut())), wanted: Atomic::new(0) }
    }
}

/// The line of a thread, and what stands for the thread in the words of locks.
pub struct Owner<P: Platform> {
    /// From 1 to [`NodeId::SLOTS`](crate::platform::NodeId::SLOTS). One that ends leaves it, and its line, to another.
    pub number: u32,
    /// Valid as long as the platform instance.
    pub line: *const OwnerLine<P>,
}

/// The table of lines.
///
/// # Safety
///
/// No two threads have the same number at a time, and what a thread did happens before what the next does that has its number. A
/// line belongs to its number for ever, and is valid as long as the platform instance.
pub unsafe trait OwnerLines: Platform {
    /// The caller's, if it has been asked to [`register`](Self::register).
    fn owner() -> Option<Owner<Self>>;

    /// The caller's; `None` if it can have none.
    fn register() -> Option<Owner<Self>>;

    /// The line of a number that somebody has or had.
    fn line(number: u32) -> *const OwnerLine<Self>;

    /// Which of its places a line has for the lock at this address: below [`PLACES`], and always the same.
    fn place_of(lock: *const ()) -> usize;
}

/// Fibonacci hashing: neighbours, and locks at the same place of equal objects, have different places.
/// Source: Knuth, "The Art of Computer Programming", volume 3, section 6.4.
#[inline(always)]
pub const fn place_by_address(address: u64) -> usize {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    (address.wrapping_mul(GOLDEN) >> (u64::BITS - PLACES.trailing_zeros())) as usize
}

const _: () = assert!(PLACES.is_power_of_two());

impl<P: Host + OwnerLines> OwnerLine<P> {
    /// Where those sleep who wait for the thread.
    fn chain(&self) -> Locked<'_, P> {
        Locked::of(self)
    }

    #[inline(always)]
    fn place(&self, lock: Lock) -> &P::Ptr<()> {
        &self.places[P::place_of(lock) % PLACES]
    }

    /// The one place where places are written.
    #[inline(always)]
    fn write(&self, lock: Lock, value: Lock) {
        // Ordering: Release, pairs with the Acquire in `has_left`: whoever finds that the thread has left a lock sees what it did
        // there; also by a later value, of another lock.
        self.place(lock).store(value, Release);
    }

    /// Whether the thread may take it by bias, as far as it knows itself.
    #[inline(always)]
    pub(super) fn knows(&self, lock: Lock) -> bool {
        ptr::eq(self.place(lock).load(Relaxed), lock)
    }

    /// Whether it is said to be held. Orders nothing.
    #[inline(always)]
    pub(super) fn holds(&self, lock: Lock) -> bool {
        ptr::eq(self.place(lock).load(Relaxed), held(lock))
    }

    /// To lock+HELD.
    #[inline(always)]
    pub(super) fn hold(&self, lock: Lock) {
        self.write(lock, held(lock));
    }

    /// lock+HELD -> lock.
    #[inline(always)]
    pub(super) fn leave(&self, lock: Lock) {
        self.write(lock, lock);
        self.tell();
    }

    /// lock+HELD -> 0.
    pub(super) fn forget(&self, lock: Lock) {
        self.write(lock, ptr::null_mut());
        self.tell();
    }

    /// 0, other -> lock+HELD, unless another lock is held there. Returns whether it is so now.
    pub(super) fn hold_if_free(&self, lock: Lock) -> bool {
        let is_free = !says_held(self.place(lock).load(Relaxed));
        if is_free {
            self.hold(lock);
        }
        is_free
    }

    /// The lock has been left; who waits for that, is to know.
    #[inline(always)]
    fn tell(&self) {
        // Dekker's pattern, with `sleep_until_left`: the place before it, the look at `wanted` after it.
        P::light();
        if self.wanted.load(Relaxed) != 0 {
            self.answer();
        }
    }

    /// 1 -> 0: wakes all that wait for this thread. Who waits for another of its locks asks anew.
    #[cold]
    #[inline(never)]
    fn answer(&self) {
        P::in_slow_path(|| {
            let chain = self.chain();
            self.wanted.store(0, Relaxed);
            chain.wake_all(Queue::Exclusive);
        });
    }

    fn has_left(&self, lock: Lock) -> bool {
        // Ordering: Acquire, pairs with the Release in `write`: the section of whoever held it by bias happens before ours.
        !ptr::eq(self.place(lock).load(Acquire), held(lock))
    }

    /// Waits until the thread does not hold the lock any more. It has been kept from taking it again.
    ///
    /// # Errors
    ///
    /// Why the wait ended before.
    pub(super) fn wait_until_left(&self, lock: Lock, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        let (mut spin, mut stride) = (Spin::default(), 1);
        while !self.has_left(lock) {
            if let Some(why) = limit.is_reached() {
                return Err(why);
            }
            if P::should_give_way(&mut spin) {
                return self.sleep_until_left(lock, limit);
            }
            P::pause(stride, 0);
            spin.paused(stride);
            stride = (stride * 2).min(STRIDE_MAX);
        }
        Ok(())
    }

    fn sleep_until_left(&self, lock: Lock, limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        loop {
            let chain = self.chain();
            self.wanted.store(1, Relaxed);
            drop(chain);
            // Dekker's pattern, with `tell`: `wanted` before it, the look at the place after it.
            P::heavy();
            let chain = self.chain();
            // Looked at under the chain's lock: whoever left the lock, and has answered by now, did so before.
            if self.has_left(lock) {
                return Ok(());
            }
            if self.wanted.load(Relaxed) == 0 {
                // Another lock has been left meanwhile.
                continue;
            }
            P::count(LockEvent::BiasSleep);
            if let Err(Abandoned { why, .. }) = chain.sleep_within(Queue::Exclusive, limit) {
                return Err(why);
            }
            if self.has_left(lock) {
                return Ok(());
            }
        }
    }
}
