//! How a waiting thread passes the time.

use core::hint::spin_loop;

use nearlock_core::lockstat::Unwatched;
use nearlock_core::native::Wait;

use crate::sys;

/// Pauses for a while, then offers the processor to other threads at every turn.
///
/// For programs that may have more runnable threads than processors: whoever the others wait for
/// gets to run before the scheduler would take the processor away. Needs no wake-up, so an unlock
/// costs nothing more.
#[derive(Debug)]
pub struct SpinThenYield;

impl SpinThenYield {
    /// Turns of pausing before the first yield.
    ///
    /// Long enough for a hand-over between sockets and a short critical section, and no longer than
    /// being switched out and in again: at 9 ns (measured in a virtual Xeon) to 50 ns (140
    /// cycles, Skylake) a pause this is 1 to 6 us. At 0 every turn yields (170 ns for the call
    /// alone, and the kernel's run queue in the way of every hand-over); at the maximum it is
    /// [`Spin`](crate::Spin) for minutes.
    pub const SPIN_TURNS_MAX: u32 = 128;
}

impl Wait for SpinThenYield {
    type Hooks = Unwatched;

    #[inline(always)]
    fn turn(turn: u32) {
        if turn < Self::SPIN_TURNS_MAX {
            spin_loop();
        } else {
            sys::sched_yield();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_turn_returns() {
        for turn in [0, SpinThenYield::SPIN_TURNS_MAX - 1, SpinThenYield::SPIN_TURNS_MAX, u32::MAX] {
            SpinThenYield::turn(turn);
        }
    }
}
