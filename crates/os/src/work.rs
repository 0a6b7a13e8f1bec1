//! The work of workloads between and inside their critical sections.

use core::hint::spin_loop;
use core::time::Duration;

use nearlock_core::native::Wait;
use nearlock_core::platform::{Clock, Work};

use crate::{Os, sys};

impl<W: Wait> Work for Os<W> {
    /// Spins for at least this long, and reads the clock after every pause.
    fn busy_ns(ns: u64) {
        let end_ns = Self::now_ns().saturating_add(ns);
        while Self::now_ns() < end_ns {
            spin_loop();
        }
    }

    #[inline]
    fn compute_ps(_ps: u64) {}

    fn sleep_ns(ns: u64) {
        std::thread::sleep(Duration::from_nanos(ns));
    }

    #[inline]
    fn preempt() {
        sys::sched_yield();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_its_time() {
        let before_ns = <Os>::now_ns();
        <Os>::busy_ns(100_000);
        let busy_ns = <Os>::now_ns();
        assert!(busy_ns - before_ns >= 100_000);
        <Os>::sleep_ns(100_000);
        assert!(<Os>::now_ns() - busy_ns >= 100_000);
        <Os>::compute_ns(u64::MAX);
        <Os>::preempt();
    }
}
