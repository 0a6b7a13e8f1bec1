//! Reader-writer lock for short sections, FreeBSD's `rw`: waiters spin for whoever runs, then
//! sleep, and do not give up.
//!
//! The machine is that of [`rwsx`](super::rwsx): word, transitions, invariants and fairness stand
//! there. What is rw's own:
//!
//! - nobody may hold it while sleeping, nor give up waiting for it;
//! - a writer that has slept spins for readers as often as it did before;
//! - a downgrade leaves readers asleep if a writer waits.
//!
//! Source: FreeBSD's `kern_rwlock.c` (Baldwin; Guzik), from a description in own words.

use super::rwsx::{Kind, RwSx};
use super::tuning::{Precedence, StaleBits, Tuning};
use crate::shared_holds::SharedLock;
use crate::tuning::Standard;

/// The lock. 16 bytes natively; all zero: unlocked.
pub type Rw<P, T = Standard> = RwSx<P, T, RwKind>;

/// What makes a [`RwSx`] an rw.
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
