//! Locks that their owner may lock again.

use core::sync::atomic::Ordering::Relaxed;

use crate::platform::{Atomic, Platform};

/// Whether the owner of a lock may lock it again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Recursion {
    /// Locking it again is a mistake.
    #[default]
    Forbidden,
    /// The owner may lock it again, any number of times, and unlocks it as often.
    Permitted,
}

/// How often the owner of a lock has locked it again. Only the owner accesses this number, so all
/// accesses are relaxed.
#[repr(transparent)]
pub(super) struct Depth<P: Platform>(P::U32);

impl<P: Platform> Depth<P> {
    /// Not locked again, in `const`.
    pub const ZERO: Self = Self(Atomic::ZERO);

    pub fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }

    /// Adds 1. Returns the new depth.
    pub fn deepen(&self) -> u32 {
        let depth = self.get() + 1;
        self.0.store(depth, Relaxed);
        depth
    }

    /// Subtracts 1 if the depth is not 0. Returns whether it was not 0.
    pub fn unwind_if_deep(&self) -> bool {
        let depth = self.get();
        if depth != 0 {
            self.0.store(depth - 1, Relaxed);
        }
        depth != 0
    }

    /// Subtracts 1. Returns the new depth.
    pub fn unwind(&self) -> u32 {
        let depth = self.get() - 1;
        self.0.store(depth, Relaxed);
        depth
    }
}

impl<P: Platform> Default for Depth<P> {
    fn default() -> Self {
        Self(Atomic::new(0))
    }
}
