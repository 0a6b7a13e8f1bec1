//! Observes how native threads wait.

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_core::lockstat::{Hooks, Waited};
use nearlock_core::native::{Spin, Wait};
use nearlock_core::platform::Clock;
use nearlock_os::{Os, SpinThenYield};

use crate::torture::Waiting;

thread_local! {
    static WAITED: Cell<Waited> = const { Cell::new(Waited { turns: 0, sleeps: 0, slept_ns: 0 }) };
}

/// How the calling thread has waited so far, on platforms whose waiting policy is [`Watched`].
pub fn waited() -> Waited {
    WAITED.get()
}

/// Whether watched threads only spin.
static SPINS: AtomicBool = AtomicBool::new(false);

/// The platform of watched threads, which wait as [`Watched::choose`] says.
pub type OsWatched = Os<Watched>;

/// Waits like one of the other policies, and records it. The policy is read at each turn, so one
/// instance of every lock type is enough.
#[derive(Debug)]
pub struct Watched;

impl Watched {
    /// From now on, watched threads only spin, or wait like ordinary programs.
    pub fn choose(waiting: Waiting) {
        SPINS.store(waiting == Waiting::Spin, Relaxed);
    }
}

impl Wait for Watched {
    type Hooks = Self;

    #[inline]
    fn turn(turn: u32) {
        if SPINS.load(Relaxed) { Spin::turn(turn) } else { SpinThenYield::turn(turn) }
    }
}

impl Hooks for Watched {
    #[inline]
    fn turned() {
        let waited = WAITED.get();
        WAITED.set(Waited { turns: waited.turns + 1, ..waited });
    }

    fn asleep<R>(sleep: impl FnOnce() -> R) -> R {
        let began_ns = <Os>::now_ns();
        let r = sleep();
        let slept_ns = <Os>::now_ns().saturating_sub(began_ns);
        let waited = WAITED.get();
        WAITED.set(Waited { sleeps: waited.sleeps + 1, slept_ns: waited.slept_ns + slept_ns, ..waited });
        r
    }
}

#[cfg(test)]
mod tests;
