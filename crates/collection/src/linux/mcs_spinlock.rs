//! The queue of those who spin for a lock that sleeps: only its head looks at the lock, the others
//! look at their own nodes.
//!
//! ```text
//!  lock's words <--looks-- [head] --next--> [spinner] --next--> [spinner]
//!  tail ------------------------------------------------------------^
//! ```
//! The queue is the MCS lock of [`classic::mcs`](crate::classic::mcs), which is Linux' of January
//! 2014: acquire on the wait for the grant, release on the hand-over. A spinner brings its node on
//! its stack, and cannot leave until it has been the head.
//!
//! 1. At most one thread at a time is the head. So of those who spin by the queue one touches the
//!    lock's words.
//!
//! Fairness: first come, first served among those in the queue. A spinner that is off its processor
//! holds up all behind it, but not the lock, which anybody else may take.
//! Source: Linux' mutexes of 3.10 (Long, 2013) and `mcs_spinlock.h` of 3.15 (Low, Chen and Long),
//! from a description in own words.

use crate::classic::mcs::{McsLock, McsTuning, Node};
use crate::platform::Platform;
use crate::raw::RawLock;
use crate::tuning::Standard;

/// See the [module](self). One pointer wide; zero bytes: empty.
#[repr(transparent)]
pub struct SpinnerQueue<P: Platform, T: McsTuning = Standard>(McsLock<P, T>);

impl<P: Platform, T: McsTuning> SpinnerQueue<P, T> {
    /// Without spinners, in `const`.
    pub const fn new() -> Self {
        Self(McsLock::new())
    }

    /// Waits to become the head, does `f`, and lets the next be the head.
    ///
    /// # Safety
    ///
    /// `f` does not unwind: the caller's node would stay in the queue, on a stack frame that is
    /// gone.
    ///
    /// ```compile_fail,E0133
    /// # use nearlock_collection::linux::mcs_spinlock::SpinnerQueue;
    /// # use nearlock_core::native::Native;
    /// SpinnerQueue::<Native>::new().as_head(|| -> u32 { panic!() });
    /// ```
    #[inline]
    pub unsafe fn as_head<R>(&self, f: impl FnOnce() -> R) -> R {
        P::with_record(|node: &Node<P>| {
            // SAFETY: the record is the caller's until the end of this closure, and unlock follows lock.
            unsafe { self.0.lock(node) };
            let r = f();
            // SAFETY: as above.
            unsafe { self.0.unlock(node) };
            r
        })
    }
}

impl<P: Platform, T: McsTuning> Default for SpinnerQueue<P, T> {
    fn default() -> Self {
        Self(McsLock::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Native;
    use crate::raw::RawTryLock;

    const _: () = assert!(size_of::<SpinnerQueue<Native>>() == size_of::<usize>());

    #[test]
    fn there_is_one_head_and_then_none() {
        let queue = SpinnerQueue::<Native>::new();
        for _ in 0..2 {
            // SAFETY: a look does not unwind.
            let was_held = unsafe { queue.as_head(|| queue.0.is_locked()) };
            let node = Node::new();
            assert!(was_held);
            // SAFETY: the node outlives the acquisition.
            unsafe {
                assert!(queue.0.try_lock(&node), "nobody is left in the queue");
                queue.0.unlock(&node);
            }
        }
    }
}
