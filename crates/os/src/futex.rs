//! Sleeping until a word changes.
//!
//! The futexes are private to the process.

use core::sync::atomic::AtomicU32;
use core::time::Duration;

use crate::sys;

/// Why [`wait`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitResult {
    /// A wake-up, meant for this waiter or, as the word's memory may have had another use before,
    /// not.
    Woken,
    /// The word did not have the expected value.
    Mismatch,
    /// The time has passed.
    TimedOut,
    /// A signal was handled meanwhile.
    Interrupted,
}

/// Sleeps while `word` has the value `expected`, until woken, at most for `timeout` (by the
/// monotonic clock; `None`: for ever). The comparison and falling asleep are one step for [`wake`].
///
/// Any result may come for no reason: look at the word and, if need be, wait again.
#[inline]
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> WaitResult {
    sys::futex_wait(word, expected, timeout)
}

/// Wakes at most `n` of those that sleep on `word`, in no promised order. Returns how many; where
/// the system cannot tell, 0.
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
    fn waking_nobody_wakes_nobody() {
        assert_eq!(wake(&AtomicU32::new(0), u32::MAX), 0);
    }

    #[test]
    fn whoever_waits_sees_the_change_and_the_wake_up() {
        const SLEEPERS: usize = 3;
        let word = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..SLEEPERS {
                scope.spawn(|| {
                    while word.load(Relaxed) == 0 {
                        // A timeout longer than there are nanoseconds means for ever.
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
            // The word keeps its value, so only a counted wake-up ends the wait (or one for no reason).
            while wake(&word, 1) == 0 && !sleeper.is_finished() {
                crate::sched_yield();
            }
        });
    }
}
