//! Sleeping until a word changes.
//!
//! The futexes are private to the process.

use core::sync::atomic::AtomicU32;
use core::time::Duration;

use crate::sys;

/// Why [`wait`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitResult {
    /// A wake-up. It may have been meant for an earlier use of the word's memory, and not for this
    /// waiter.
    Woken,
    /// The word did not have the expected value.
    Mismatch,
    /// The time has passed.
    TimedOut,
    /// A signal was handled meanwhile.
    Interrupted,
}

/// Sleeps while `word` has the value `expected`, until woken up, at most for `timeout` (by the
/// monotonic clock; `None`: without a limit). For [`wake`], the comparison and falling asleep are
/// one step.
///
/// Any result may be returned for no reason: read the word and, if needed, wait again.
#[inline]
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> WaitResult {
    sys::futex_wait(word, expected, timeout)
}

/// Wakes up at most `n` of the threads that sleep on `word`, in no guaranteed order. Returns how
/// many; 0 if the system cannot tell.
#[inline]
pub fn wake(word: &AtomicU32, n: u32) -> u32 {
    sys::futex_wake(word, n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::Ordering::Relaxed;

    #[test]
    fn a_mismatch_returns_at_once() {
        assert_eq!(wait(&AtomicU32::new(1), 2, None), WaitResult::Mismatch);
    }

    #[test]
    fn a_wait_times_out() {
        let word = AtomicU32::new(1);
        for timeout in [Duration::ZERO, Duration::from_millis(1)] {
            while wait(&word, 1, Some(timeout)) != WaitResult::TimedOut {}
        }
    }

    #[test]
    fn a_wake_up_without_sleepers_wakes_no_thread() {
        assert_eq!(wake(&AtomicU32::new(0), u32::MAX), 0);
    }

    #[test]
    fn a_waiter_sees_the_change_and_the_wake_up() {
        const SLEEPERS: usize = 3;
        let word = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..SLEEPERS {
                scope.spawn(|| {
                    while word.load(Relaxed) == 0 {
                        // A timeout of more nanoseconds than can be counted means no limit.
                        wait(&word, 0, Some(Duration::MAX));
                    }
                });
            }
            word.store(1, Relaxed);
            wake(&word, u32::MAX);
        });
        assert_eq!(word.load(Relaxed), 1);
    }

    #[test]
    fn wake_counts_the_woken() {
        let word = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| while wait(&word, 0, None) != WaitResult::Woken {});
            // The word keeps its value, so only a counted wake-up ends the wait (or one for no
            // reason).
            while wake(&word, 1) == 0 && !sleeper.is_finished() {
                crate::sched_yield();
            }
        });
    }
}
