//! The queue of threads that spin for a sleeping lock. Only its head looks at the lock. The others
//! spin on their own nodes.
//!
//! ```text
//!  lock's words <--looks-- [head] --next--> [spinner] --next--> [spinner]
//!  tail ------------------------------------------------------------^
//! ```
//! The queue is the MCS lock of [`classic::mcs`](crate::classic::mcs), in Linux' form of January
//! 2014: the wait for the grant is an acquire, and the hand-over is a release. A spinner's node is
//! on its stack. The spinner cannot leave the queue before it has been the head.
//!
//! 1. At most one thread at a time is the head. So of the threads that spin in the queue, only one
//!    accesses the lock's words.
//!
//! Fairness: first come, first served among the spinners in the queue. A spinner that has lost its
//! processor delays all spinners behind it. It does not delay threads outside of the queue, which
//! may take the lock. Source: Linux' mutexes of 3.10 (Long, 2013) and `mcs_spinlock.h` of 3.15
//! (Low, Chen and Long), written from a description in our own words.

use crate::classic::mcs::{McsLock, McsTuning, Node};
use crate::platform::Platform;
use crate::raw::RawLock;
use crate::tuning::Standard;

/// See the [module](self). It has the size of a pointer. Zero bytes are an empty queue.
#[repr(transparent)]
pub struct SpinnerQueue<P: Platform, T: McsTuning = Standard>(McsLock<P, T>);

impl<P: Platform, T: McsTuning> SpinnerQueue<P, T> {
    /// An empty queue, in `const`.
    pub const fn new() -> Self {
        Self(McsLock::new())
    }

    /// Waits to become the head, calls `f`, and makes the next spinner the head.
    ///
    /// # Safety
    ///
    /// `f` must not unwind. Otherwise the caller's node would stay in the queue, on a stack frame
    /// that is gone.
    ///
    /// ```compile_fail,E0133
    /// # use nearlock_collection::linux::mcs_spinlock::SpinnerQueue;
    /// # use nearlock_core::native::Native;
    /// SpinnerQueue::<Native>::new().as_head(|| -> u32 { panic!() });
    /// ```
    #[inline]
    pub unsafe fn as_head<R>(&self, f: impl FnOnce() -> R) -> R {
        P::with_record(|node: &Node<P>| {
            // SAFETY: the record is the caller's until the end of this closure. The unlock follows
            // the lock.
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
            // SAFETY: `is_locked` does not unwind.
            let was_held = unsafe { queue.as_head(|| queue.0.is_locked()) };
            let node = Node::new();
            assert!(was_held);
            // SAFETY: the node outlives the acquisition.
            unsafe {
                assert!(queue.0.try_lock(&node), "no thread is left in the queue");
                queue.0.unlock(&node);
            }
        }
    }
}
