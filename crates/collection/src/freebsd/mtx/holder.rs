//! Queries about the owner.

use core::sync::atomic::Ordering::Relaxed;

use super::{Mtx, RECURSED, owner_of};
use crate::freebsd::FreeBsdPlatform;
use crate::freebsd::tuning::Tuning;
use crate::platform::Atomic;
use crate::schedule::ThreadId;

impl<P: FreeBsdPlatform, T: Tuning> Mtx<P, T> {
    /// The owner. Stale by the time it is known, unless it is the caller.
    pub fn owner(&self) -> Option<ThreadId> {
        owner_of(self.word.load(Relaxed))
    }

    /// How often the caller, which must hold the mutex, has locked it again.
    pub fn depth(&self) -> u32 {
        self.depth.get()
    }

    /// Whether the caller holds it.
    pub fn is_owned(&self) -> bool {
        owner_of(self.word.load(Relaxed)) == Some(P::thread_id())
    }

    /// Whether the caller, which must hold the mutex, has locked it more than once.
    pub fn is_recursed(&self) -> bool {
        debug_assert!(self.is_owned(), "queries a mutex that it does not hold");
        self.word.load(Relaxed) & RECURSED != 0
    }
}
