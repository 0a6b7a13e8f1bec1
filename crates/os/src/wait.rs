//! How a waiting thread passes the time.

use core::hint::spin_loop;

use nearlock_core::lockstat::Unwatched;
use nearlock_core::native::Wait;

use crate::sys;

/// Pauses for a while, then yields the processor to other threads at every turn.
///
/// For programs that may have more runnable threads than processors. The thread that the others
/// wait for can run before the scheduler would preempt a spinning waiter. No wake-up is needed, so
/// an unlock costs nothing more.
#[derive(Debug)]
pub struct SpinThenYield;

impl SpinThenYield {
    /// The number of pauses before the first yield.
    ///
    /// This is long enough for a hand-over between sockets and a short critical section, and no
    /// longer than a context switch out and in again. A pause takes 9 ns (measured in a virtual
    /// Xeon) to 50 ns (140 cycles, Skylake), so the pauses take 1 to 6 us. At 0 every turn yields:
    /// the call alone takes 170 ns, and the kernel's run queue delays every hand-over. At the
    /// maximum this policy is [`Spin`](crate::Spin) for minutes.
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
