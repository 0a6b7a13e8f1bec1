//! Locks that their owner may acquire again.

use core::sync::atomic::Ordering::Relaxed;

use crate::platform::{Atomic, Platform};

/// Whether the owner of a lock may acquire it again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Recursion {
    /// Acquiring it again is a mistake.
    #[default]
    Forbidden,
    /// It may, as often as it likes, and releases it as often.
    Permitted,
}

/// How often the owner of a lock has acquired it again. The owner's alone, so that all accesses are
/// relaxed.
#[repr(transparent)]
pub(super) struct Depth<P: Platform>(P::U32);

impl<P: Platform> Depth<P> {
    /// It has not, in `const`.
    pub const ZERO: Self = Self(Atomic::ZERO);

    pub fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }

    /// Once more; how often then.
    pub fn deepen(&self) -> u32 {
        let depth = self.get() + 1;
        self.0.store(depth, Relaxed);
        depth
    }

    /// Once less, if it is not 0; whether that was so.
    pub fn unwind_if_deep(&self) -> bool {
        let depth = self.get();
        if depth != 0 {
            self.0.store(depth - 1, Relaxed);
        }
        depth != 0
    }

    /// Once less; how often then.
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
