//! A parking place with a timeout.

use core::time::Duration;

use nearlock_core::parking::parker;

use crate::{Os, futex, sys};

/// A parking place for one thread, whose token is never lost: see
/// [`nearlock_core::parking::parker`]. It has four bytes.
///
/// One thread at a time, the owner, may park here; any thread may unpark it. On systems without a
/// futex the owner yields instead of sleeping.
///
/// ```
/// let place = nearlock_os::Parker::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| place.unpark());
///     place.park();
/// });
/// assert!(!place.park_timeout(std::time::Duration::from_millis(1)));
/// ```
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Parker(parker::Parker<Os>);

impl Parker {
    /// A parking place without a token.
    pub const fn new() -> Self {
        Self(parker::Parker::new())
    }

    /// Sleeps until there is a token, and takes it. What happened before the token was set is
    /// visible afterwards.
    #[inline]
    pub fn park(&self) {
        self.0.park();
    }

    /// As [`park`](Self::park), with a limit of `timeout` by the monotonic clock. Returns whether a
    /// token was taken. A token that is already there is taken even if the timeout is zero.
    pub fn park_timeout(&self, timeout: Duration) -> bool {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let end_ns = sys::now_ns().saturating_add(timeout_ns);
        self.0.park_while(|word, asleep| {
            let left_ns = end_ns.saturating_sub(sys::now_ns());
            if left_ns > 0 {
                futex::wait(word, asleep, Some(Duration::from_nanos(left_ns)));
            }
            left_ns > 0
        })
    }

    /// Sets the token, and wakes up the owner if it sleeps. Several calls set one token.
    #[inline]
    pub fn unpark(&self) {
        self.0.unpark();
    }

    /// As [`unpark`](Self::unpark), for a parker that its owner may free as soon as it has the
    /// token.
    ///
    /// # Safety
    ///
    /// `place` is alive until this call has set its token.
    #[inline]
    pub unsafe fn unpark_at(place: *const Self) {
        // SAFETY: the layout is the same, and the condition of this function holds.
        unsafe { parker::Parker::<Os>::unpark_at(place.cast()) };
    }
}

const _: () = assert!(size_of::<Parker>() == 4);

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr;
    use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
    use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};
    use std::time::Instant;

    const RUN: Duration = Duration::from_millis(if cfg!(miri) { 2 } else { 200 });

    #[test]
    fn a_token_that_was_there_before_is_not_lost() {
        let place = Parker::new();
        place.unpark();
        place.park();
        place.unpark();
        assert!(place.park_timeout(Duration::ZERO));
        assert!(!place.park_timeout(Duration::ZERO));
    }

    #[test]
    fn without_a_token_the_time_passes() {
        let (place, start) = (Parker::new(), Instant::now());
        let timeout = Duration::from_millis(5);
        assert!(!place.park_timeout(timeout));
        assert!(start.elapsed() >= timeout);
        place.unpark();
        assert!(place.park_timeout(Duration::MAX), "more than the clock can count");
    }

    #[test]
    fn a_wake_up_without_a_token_is_no_token() {
        let place = Parker::new();
        std::thread::scope(|scope| {
            let owner = scope.spawn(|| place.park());
            for _ in 0..100 {
                // A stale wake-up at this address does the same.
                futex::wake(word(&place), u32::MAX);
                sys::sched_yield();
            }
            assert!(!owner.is_finished());
            place.unpark();
        });
    }

    fn word(place: &Parker) -> &core::sync::atomic::AtomicU32 {
        // SAFETY: the parker is its word.
        unsafe { &*ptr::from_ref(place).cast() }
    }

    /// Two threads wake each other up alternately. A lost token would stop both.
    #[test]
    fn tokens_go_to_and_fro() {
        let (ping, pong) = (Parker::new(), Parker::new());
        let (count, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let turns = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut expected = 0;
                while !stop.load(Relaxed) {
                    ping.park();
                    expected += 1;
                    // Relaxed: the token provides the ordering.
                    assert!(count.load(Relaxed) == expected || stop.load(Relaxed));
                    pong.unpark();
                }
            });
            let (start, mut turns) = (Instant::now(), 0);
            while start.elapsed() < RUN {
                turns += 1;
                count.store(turns, Relaxed);
                ping.unpark();
                // Alternates between no timeout and a timeout that never expires.
                if turns % 2 == 0 {
                    pong.park();
                } else {
                    assert!(pong.park_timeout(Duration::from_secs(3600)));
                }
            }
            stop.store(true, Relaxed);
            ping.unpark();
            turns
        });
        assert!(turns > 0);
    }

    /// The parker lies on the stack of a function that returns as soon as it has the token.
    #[test]
    fn the_owner_may_take_the_parker_away() {
        #[inline(never)]
        fn wait_at(published: &AtomicPtr<Parker>) {
            let place = Parker::new();
            published.store(ptr::from_ref(&place).cast_mut(), Release);
            place.park();
        }
        let (published, stop) = (AtomicPtr::new(ptr::null_mut()), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    wait_at(&published);
                }
            });
            let start = Instant::now();
            loop {
                let place = published.swap(ptr::null_mut(), Acquire);
                if place.is_null() {
                    sys::sched_yield();
                    continue;
                }
                let last = start.elapsed() >= RUN;
                stop.store(last, Relaxed);
                // SAFETY: published once, by an owner that waits for this token.
                unsafe { Parker::unpark_at(place) };
                if last {
                    return;
                }
            }
        });
    }
}
