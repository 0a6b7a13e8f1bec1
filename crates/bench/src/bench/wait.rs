//! Waiting by pausing alone, in a run that must end.

use std::hint::spin_loop;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_core::lockstat::Unwatched;
use nearlock_core::native::Wait;

/// How many runs of this process are ending.
static ENDING: AtomicU32 = AtomicU32::new(0);

/// Pauses while it is measured; yields once a run is ending. A lock that is handed to waiters in
/// turn goes through all of them before the last can leave, and with more threads than processors
/// each hand-over to one that is off its processor takes a slice of the scheduler's: seconds to
/// minutes in all.
///
/// The look at the flag is a load from a line that nobody writes, beside a pause.
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

/// While it lives, a run is ending.
pub struct Ending(());

impl Ending {
    pub fn begin() -> Self {
        // Relaxed: it is seen soon enough.
        ENDING.fetch_add(1, Relaxed);
        Self(())
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        ENDING.fetch_sub(1, Relaxed);
    }
}
