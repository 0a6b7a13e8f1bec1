//! Reader-writer lock for short critical sections, FreeBSD's `rw`. Waiters spin while a holder
//! runs, then sleep, and do not give up.
//!
//! The state machine is that of [`rwsx`](super::rwsx): see there for the word, the transitions, the
//! invariants and the fairness. Rules of rw alone:
//!
//! - A thread must not sleep while it holds the lock, and cannot give up a wait for it.
//! - A writer that has slept spins for readers as often as before.
//! - A downgrade leaves readers asleep if a writer waits.
//!
//! Source: FreeBSD's `kern_rwlock.c` (Baldwin; Guzik), written from a description in our own words.

use super::rwsx::{Kind, RwSx};
use super::tuning::{Precedence, StaleBits, Tuning};
use crate::shared_holds::SharedLock;
use crate::tuning::Standard;

/// The lock. 16 bytes natively; all zero: unlocked.
pub type Rw<P, T = Standard> = RwSx<P, T, RwKind>;

/// The kind that makes a [`RwSx`] an rw.
#[derive(Debug)]
pub struct RwKind;

impl Kind for RwKind {
    const HOLDS: SharedLock = SharedLock::Rw;
    const DOWNGRADE_WAKES_READERS: bool = false;
    const SLEEP_REFRESHES_WRITERS: bool = true;

    fn precedence<T: Tuning>() -> Precedence {
        Precedence::Writers
    }

    fn stale_bits<T: Tuning>() -> Option<StaleBits> {
        None
    }
}
