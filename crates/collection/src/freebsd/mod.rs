//! The locks of the FreeBSD kernel, as user-space algorithms.
//!
//! Their waiters sleep in [chains](crate::parking::chain). The waiter bits of a lock's word are set
//! and cleared under the chain's lock:
//!
//! 1. A thread that wants to sleep locks the chain, and looks at the word again. If it can get the
//!    lock by then, it starts again.
//! 2. If not, it makes sure that the word has the waiter bit. It sets the bit by a
//!    compare-exchange, so the lock is held in that very step. Then it joins the queue, and unlocks
//!    the chain.
//! 3. A thread that unlocks a lock with a waiter bit locks the chain before it clears the bit, and
//!    takes **all** waiters of a queue out. It makes the lock free, and then wakes them. No waiter
//!    is granted anything: they compete with newcomers.
//!
//! So a compare-exchange that makes a lock without the bit free leaves no thread asleep. An unlock
//! that has read the bit locks the chain after the waiter that has set the bit, and finds that
//! waiter in the queue.
//!
//! FreeBSD's turnstiles also lend a waiter's priority to the holder, and its sleep queues do not.
//! Here no priority is lent, since threads of a program have none that this library knows. So one
//! chain serves for both.

#[cfg(test)]
#[macro_use]
mod forms;
#[cfg(test)]
mod sleepers;

mod exchange;
mod freeable;
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
use crate::shared_holds::SharedHolds;

/// The family of these locks. Their chains have nothing besides the queues.
#[derive(Debug)]
pub struct FreeBsd;

// SAFETY: there is nothing besides the queues, and no other family has this table.
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

/// The capabilities that these locks need from their platform.
pub trait FreeBsdPlatform:
    Chains<FreeBsd> + SharedHolds + ParkTimeout + Schedule + Sections + Settings + Random
{
}

impl<P: Chains<FreeBsd> + SharedHolds + ParkTimeout + Schedule + Sections + Settings + Random> FreeBsdPlatform
    for P
{
}
