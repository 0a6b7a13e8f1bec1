//! Reader-writer lock for long critical sections, FreeBSD's `sx`. Its holders may sleep, and its
//! waiters may give up.
//!
//! The state machine is that of [`rwsx`](super::rwsx): see there for the word, the transitions, the
//! invariants and the fairness. Rules of sx alone:
//!
//! - A waiter may give up after a time, or because a thread cancels its wait (in the kernel: a
//!   signal).
//! - So a waiter bit may be set although no thread waits, and an unlock looks into the queue
//!   ([`StaleBits`]). The kernel's last reader does not. Suppose that one thread reads and a writer
//!   waits. Then a reader waits as well, since the writer goes first. The writer gives up. The last
//!   reader sees the writer's bit, and wakes no thread. So the other reader sleeps at a free lock
//!   until another thread uses the lock.
//! - A writer that has slept spins for readers only as often as it has tries left.
//! - A downgrade wakes readers although a writer waits. Most of them sleep again.
//! - In FreeBSD 10.1, and as far as is remembered until 2018, readers did not wait behind waiting
//!   writers, and an unlock woke readers first ([`Precedence::Readers`]).
//!
//! The kernel's reader never counts its rounds of spinning for readers, and so has no limit for
//! them. Ours counts them. Source: FreeBSD's `kern_sx.c` (Evans; Rao; Guzik), written from a
//! description in our own words.

use super::FreeBsdPlatform;
use super::recursion::Recursion;
use super::rwsx::{Kind, RwSx};
use super::tuning::{Precedence, StaleBits, Tuning};
use crate::parking::{GaveUp, Limit, RawTimedLock, RawTimedRwLock};
use crate::shared_holds::SharedLock;
use crate::tuning::Standard;

/// The lock. 16 bytes natively; all zero: unlocked.
pub type Sx<P, T = Standard> = RwSx<P, T, SxKind>;

/// The kind that makes a [`RwSx`] an sx.
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

// SAFETY: a thread that gives up is in no queue any more, and does not have the lock.
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
