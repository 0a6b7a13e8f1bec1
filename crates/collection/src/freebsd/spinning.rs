//! How a waiter of this family spins: the delays between its looks, and when it must stop.

use core::sync::atomic::Ordering::Relaxed;

use super::FreeBsdPlatform;
use super::lock_delay::{Backoff, LockDelay};
use super::tuning::{FollowOwner, Tuning};
use crate::platform::Atomic;
use crate::schedule::{OwnerState, Spin, Stop, ThreadId};

/// The spinning of one acquisition, from one sleep to the next.
#[derive(Debug, Default)]
pub(super) struct Spinning {
    delay: LockDelay,
    spin: Spin,
}

impl Spinning {
    /// Whether another thread needs the caller's processor, or the caller has spun for long enough.
    /// To be called at each turn.
    pub fn is_over<P: FreeBsdPlatform>(&mut self) -> bool {
        P::should_give_way(&mut self.spin)
    }

    /// One delay, longer than the last one.
    pub fn delay<P: FreeBsdPlatform, T: Tuning>(&mut self) {
        self.spin.paused(self.delay.wait::<P>(T::backoff()));
    }

    /// Waits for so many pauses.
    pub fn pause<P: FreeBsdPlatform>(&mut self, pauses: u32) {
        self.delay.pause::<P>(pauses);
        self.spin.paused(pauses);
    }

    /// Spins while the owner runs, until the word has no owner any more. If owners are not
    /// followed, it also stops when the word has another owner. Returns the word as it was seen
    /// then.
    ///
    /// # Errors
    ///
    /// Why the spinning has stopped before.
    pub fn follow<P: FreeBsdPlatform, T: Tuning, V: Copy>(
        &mut self,
        word: &impl Atomic<V>,
        mut owner: ThreadId,
        owner_of: impl Fn(V) -> Option<ThreadId>,
    ) -> Result<V, Stop> {
        loop {
            let seen = if T::backoff() == Backoff::None {
                let changed = |seen| owner_of(seen) != Some(owner);
                P::spin_on_owner(&mut self.spin, word, Relaxed, owner, changed)?
            } else {
                self.delay::<P, T>();
                word.load(Relaxed)
            };
            let is_followed = |now| now == owner || T::follow_owner() == FollowOwner::Any;
            match owner_of(seen) {
                Some(now) if is_followed(now) => owner = now,
                _ => return Ok(seen),
            }
            if P::owner_state(owner) == OwnerState::Asleep {
                return Err(Stop::OwnerSleeps);
            }
            if T::backoff() != Backoff::None && self.is_over::<P>() {
                return Err(Stop::GiveWay);
            }
        }
    }
}

#[cfg(test)]
mod tests;
