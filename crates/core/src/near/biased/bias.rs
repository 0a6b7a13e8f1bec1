//! The word that says to whom a lock is biased.
//!
//! ```text
//! bits 0-13 thread (0: none) | 14-16 level | 17-31 streak, below 2^15 - 2; or REVOKED; or BIASED
//!
//!  (t, l, n) -> (t, l, n+1)          t has taken the lock through the mutex once more, with nobody else in between
//!  (t, l, n) -> (u, l, 1)            somebody else has: u, or 0 if it has no number
//!  (t, l, n) -> (t, l, BIASED)       n was long enough at this level
//!  (t, l, BIASED) -> (t, l, REVOKED)   another has the mutex: t does not take the lock by bias any more
//!  (t, l, REVOKED) -> (u, l+1, 1)    and does not hold it so any more either; l+1 is bounded by the tuning
//! ```
//! All of it is written by whoever holds the mutex; a thread that holds the lock by bias only reads.

use super::BiasTuning;
use crate::platform::NodeId;

const THREAD_MASK: u32 = (1 << 14) - 1;
const LEVEL_SHIFT: u32 = 14;
const LEVEL_MASK: u32 = 0b111 << LEVEL_SHIFT;
const STREAK_SHIFT: u32 = 17;
const STREAK_MASK: u32 = !(THREAD_MASK | LEVEL_MASK);
/// In place of the streak.
const BIASED: u32 = STREAK_MASK;
/// In place of the streak.
const REVOKED: u32 = STREAK_MASK - (1 << STREAK_SHIFT);

const LEVEL_MAX: u32 = LEVEL_MASK >> LEVEL_SHIFT;

const _: () = assert!(NodeId::SLOTS <= THREAD_MASK, "each thread's number has a place");

/// A value of the word. 0: nobody has locked yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bias(pub(super) u32);

impl Bias {
    const fn new(thread: u32, level: u32, streak: u32) -> Self {
        Self(thread | level << LEVEL_SHIFT | streak << STREAK_SHIFT)
    }

    /// The number of the thread; 0: none.
    pub(super) const fn thread(self) -> u32 {
        self.0 & THREAD_MASK
    }

    pub(super) const fn level(self) -> u32 {
        (self.0 & LEVEL_MASK) >> LEVEL_SHIFT
    }

    /// Whether the lock is biased to this thread.
    #[inline(always)]
    pub(super) const fn is_to(self, thread: u32) -> bool {
        self.0 & !LEVEL_MASK == BIASED | thread
    }

    pub(super) const fn is_biased(self) -> bool {
        self.0 & STREAK_MASK == BIASED
    }

    /// Whether its thread may hold the lock by bias: biased, or revoked.
    pub(super) const fn may_be_held(self) -> bool {
        self.0 & STREAK_MASK >= REVOKED
    }

    /// After one more acquisition through the mutex, by this thread. A streak that is long enough grows no longer.
    pub(super) const fn counted<T: BiasTuning>(self, thread: u32) -> Self {
        let (level, streak) = (self.level(), self.0 >> STREAK_SHIFT);
        if thread == 0 || thread != self.thread() {
            Self::new(thread, level, 1)
        } else if streak < Self::streak_at::<T>(level) {
            Self::new(thread, level, streak + 1)
        } else {
            self
        }
    }

    /// Whether the lock may be biased to the thread that has been counted.
    pub(super) const fn is_long_enough<T: BiasTuning>(self) -> bool {
        self.thread() != 0 && self.0 >> STREAK_SHIFT >= Self::streak_at::<T>(self.level())
    }

    const fn streak_at<T: BiasTuning>(level: u32) -> u32 {
        const { assert!(T::DOUBLINGS <= LEVEL_MAX && T::STREAK > 0) };
        const { assert!(T::STREAK << T::DOUBLINGS < REVOKED >> STREAK_SHIFT) };
        T::STREAK << level
    }

    pub(super) const fn biased(self) -> Self {
        Self(self.0 | BIASED)
    }

    pub(super) const fn revoked(self) -> Self {
        Self(self.0 & !STREAK_MASK | REVOKED)
    }

    /// Once its thread holds the lock no more: this one has it now.
    pub(super) const fn taken_over<T: BiasTuning>(self, thread: u32) -> Self {
        let level = self.level();
        Self::new(thread, if level < T::DOUBLINGS { level + 1 } else { level }, 1)
    }

    #[cfg(test)]
    pub(super) const fn at_level(self, level: u32) -> Self {
        Self(self.0 & !LEVEL_MASK | level << LEVEL_SHIFT)
    }
}
