//! Waiting that only spins, in a run that must end.

use std::hint::spin_loop;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_core::lockstat::Unwatched;
use nearlock_core::native::Wait;

/// Number of runs of this process that are ending.
static ENDING: AtomicU32 = AtomicU32::new(0);

/// Spins while a run is measured, and yields once it is ending.
///
/// Without the yield, the end of a run can take seconds to minutes. A FIFO lock is handed to all of
/// its waiters before the last one can leave. With more threads than CPUs, a hand-over to a waiter
/// that is not running takes a time slice of the scheduler.
///
/// The check of the flag is a load from a cache line that is not written meanwhile. It comes with a
/// pause instruction.
#[derive(Debug)]
pub struct SpinWhileMeasured;

impl Wait for SpinWhileMeasured {
    type Hooks = Unwatched;

    #[inline(always)]
    fn turn(_turn: u32) {
        if ENDING.load(Relaxed) == 0 {
            spin_loop();
        } else {
            nearlock_os::sched_yield();
        }
    }
}

/// A run is ending while this value lives.
pub struct Ending(());

impl Ending {
    pub fn begin() -> Self {
        // Relaxed: waiters see it soon enough.
        ENDING.fetch_add(1, Relaxed);
        Self(())
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        ENDING.fetch_sub(1, Relaxed);
    }
}
