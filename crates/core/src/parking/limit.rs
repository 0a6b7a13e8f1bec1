//! How long a waiter waits at most.

use super::cancellation::Cancellation;
use super::waiter::{ASLEEP, Signal, Waiter};
use crate::platform::{ParkTimeout, Platform};

/// Why a wait ended without the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GaveUp {
    /// The time has passed.
    TimedOut,
    /// The wait was cancelled.
    Cancelled,
}

/// How long a waiter waits at most.
pub struct Limit<'a, P: Platform> {
    /// Until this moment of the platform's clock, in ns. `None`: without a time limit.
    pub until_ns: Option<u64>,
    /// Until this is cancelled, if there is one.
    pub cancellation: Option<&'a Cancellation<P>>,
}

impl<P: Platform> Limit<'_, P> {
    /// Without a limit.
    pub const NONE: Self = Self { until_ns: None, cancellation: None };

    /// Until this moment of the platform's clock.
    pub const fn until(ns: u64) -> Self {
        Self { until_ns: Some(ns), cancellation: None }
    }
}

impl<P: ParkTimeout> Limit<'_, P> {
    /// Returns why the limit is reached, if it is. A cancellation takes precedence.
    pub fn is_reached(&self) -> Option<GaveUp> {
        if self.cancellation.is_some_and(Cancellation::is_cancelled) {
            return Some(GaveUp::Cancelled);
        }
        self.until_ns.filter(|until_ns| P::now_ns() >= *until_ns).map(|_| GaveUp::TimedOut)
    }

    /// Calls `f`. Meanwhile a cancellation wakes `waiter`.
    pub fn watch<R>(&self, waiter: &Waiter<P>, f: impl FnOnce() -> R) -> R {
        match self.cancellation {
            None => f(),
            Some(cancellation) => cancellation.watch(waiter, f),
        }
    }
}

impl<P: ParkTimeout> Waiter<P> {
    /// As [`park`](Self::park), within a limit.
    ///
    /// # Errors
    ///
    /// Why the waiter gave up. It is then still in the queue, or has been taken out meanwhile.
    pub fn park_within(&self, limit: &Limit<'_, P>) -> Result<Signal, GaveUp> {
        match self.take() {
            Some(signal) => Ok(signal),
            None => self.sleep_within(limit),
        }
    }

    /// As [`park_within`](Self::park_within), for a waiter that probably has no signal yet. This
    /// saves an atomic read-modify-write.
    ///
    /// # Errors
    ///
    /// As there. If the limit is reached, a signal that has arrived stays for the next call.
    pub fn sleep_within(&self, limit: &Limit<'_, P>) -> Result<Signal, GaveUp> {
        loop {
            if let Some(gave_up) = limit.is_reached() {
                return Err(gave_up);
            }
            if self.falls_asleep() {
                match limit.until_ns {
                    Some(until_ns) => P::park_until(&self.signal, ASLEEP, until_ns),
                    None => P::park(&self.signal, ASLEEP),
                }
            }
            if let Some(signal) = self.take() {
                return Ok(signal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NOW_NS, OneThread};

    type Place = Waiter<OneThread>;

    #[test]
    fn a_sleep_ends_when_its_time_has_passed() {
        let waiter = Place::default();
        NOW_NS.set(10);
        assert_eq!(waiter.park_within(&Limit::until(30)), Err(GaveUp::TimedOut));
        assert_eq!(NOW_NS.get(), 30);
    }
}
