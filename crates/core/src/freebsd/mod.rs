//! The locks of the FreeBSD kernel, as user-space algorithms.

#[cfg(test)]
#[macro_use]
mod forms;
#[cfg(test)]
mod sleepers;

mod exchange;
mod freeable;
pub mod holds;
pub mod lock_delay;
pub mod lockmgr;
pub mod mtx;
pub mod recursion;
pub mod rw;
pub mod rwsx;
pub mod spin_mtx;
mod spinning;
pub mod sx;
pub mod thread_lock;
pub mod tuning;

use crate::parking::chain::{self, Chains, Family};
use crate::platform::{ParkTimeout, Platform, Random, Settings};
use crate::schedule::{Schedule, Sections};

/// The family of these locks. Their chains have nothing beside the queues.
#[derive(Debug)]
pub struct FreeBsd;

// SAFETY: nothing; no other family has this table.
unsafe impl Family for FreeBsd {
    type Beside<P: Platform> = ();
    const TABLE: usize = 1;
}

type Locked<'a, P> = chain::Locked<'a, P, FreeBsd>;
type Abandoned<'a, P> = chain::Abandoned<'a, P, FreeBsd>;

/// Locks the chain of a lock of this family, for that lock itself.
fn lock_chain<P: Chains<FreeBsd>, L>(lock: &L) -> Locked<'_, P> {
    // SAFETY: only the locks of this family call it, each for itself.
    unsafe { Locked::of(lock) }
}

/// What these locks ask of a platform.
pub trait Host:
    Chains<FreeBsd> + holds::SharedHolds + ParkTimeout + Schedule + Sections + Settings + Random
{
}

impl<P: Chains<FreeBsd> + holds::SharedHolds + ParkTimeout + Schedule + Sections + Settings + Random> Host
    for P
{
}
