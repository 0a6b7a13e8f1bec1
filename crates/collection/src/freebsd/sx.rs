//! Reader-writer lock for long sections, FreeBSD's `sx`: its holders may sleep, and its waiters may
//! give up.
//!
//! The machine is that of [`rwsx`](super::rwsx): word, transitions, invariants and fairness stand
//! there. What is sx's own:
//!
//! - waiters may give up, by time or because somebody cancels their wait (in the kernel: a signal);
//! - so a waiter bit may stand for nobody, and releases look into the queue ([`StaleBits`]). The
//!   kernel's last reader does not. Let one read, a writer wait, and then a reader, since the
//!   writer goes first. The writer gives up. The last reader sees the writer's bit, wakes nobody,
//!   and the other reader sleeps at a free lock until somebody else comes by;
//! - a writer that has slept spins for readers only as often as is left of its tries;
//! - a downgrade wakes readers though a writer waits. They mostly sleep again;
//! - in FreeBSD 10.1, and as far as is remembered until 2018, readers did not heed writers that
//!   wait, and a release woke readers first ([`Precedence::Readers`]).
//!
//! The kernel's reader never counts its rounds of spinning for readers, and so has no limit of
//! them; ours counts. Source: FreeBSD's `kern_sx.c` (Evans; Rao; Guzik), from a description in own
//! words.

use super::FreeBsdPlatform;
use super::recursion::Recursion;
use super::rwsx::{Kind, RwSx};
use super::tuning::{Precedence, StaleBits, Tuning};
use crate::parking::{GaveUp, Limit, RawTimedLock, RawTimedRwLock};
use crate::shared_holds::SharedLock;
use crate::tuning::Standard;

/// The lock. 16 bytes natively; all zero: unlocked.
pub type Sx<P, T = Standard> = RwSx<P, T, SxKind>;

/// What makes a [`RwSx`] an sx.
#[derive(Debug)]
pub struct SxKind;

impl Kind for SxKind {
    const HOLDS: SharedLock = SharedLock::Sx;
    const DOWNGRADE_WAKES_READERS: bool = true;
    const SLEEP_REFRESHES_WRITERS: bool = false;

    fn precedence<T: Tuning>() -> Precedence {
        T::sx_precedence()
    }

    fn stale_bits<T: Tuning>() -> Option<StaleBits> {
        Some(T::sx_stale_bits())
    }
}

// SAFETY: whoever gives up is in no queue any more, and does not have the lock.
unsafe impl<P: FreeBsdPlatform, T: Tuning> RawTimedLock for Sx<P, T> {
    type Platform = P;

    #[inline]
    unsafe fn lock_within(&self, _node: &(), limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        self.lock_with(Recursion::Forbidden, limit)
    }
}

// SAFETY: as above.
unsafe impl<P: FreeBsdPlatform, T: Tuning> RawTimedRwLock for Sx<P, T> {
    #[inline]
    unsafe fn lock_shared_within(&self, _node: &(), limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        self.lock_shared_with(limit)
    }
}

#[cfg(test)]
mod tests;
