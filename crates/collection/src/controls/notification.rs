//! A waiter that is notified, gives up, and keeps the notification.

use crate::near::NearPlatform;
use crate::near::condvar::monitor::Condition;
use crate::near::condvar::{NearCondvar, Unnotified};
use crate::near::mutex::NearMutex;
use crate::parking::Limit;
use crate::platform::Platform;

/// Loses a notification. A wait that was notified checks its limit once more when it has locked the
/// mutex again. If the limit is reached, it reports that it has given up. Then no waiter has got
/// the notification.
///
/// A later notification repairs this. So the fault shows if none follows, or if a program counts
/// notifications.
pub struct LostNotification<P: Platform>(NearCondvar<P>);

impl<P: Platform> Default for LostNotification<P> {
    fn default() -> Self {
        Self(NearCondvar::default())
    }
}

// SAFETY: waits as `NearCondvar`. Only its report of a wait is wrong.
unsafe impl<P: NearPlatform> Condition<P> for LostNotification<P> {
    unsafe fn wait(&self, mutex: &NearMutex<P>, limit: &Limit<'_, P>) -> Result<(), Unnotified> {
        // SAFETY: upheld by the caller.
        unsafe { self.0.wait(mutex, limit) }?;
        // The control adds this check.
        limit.is_reached().map_or(Ok(()), |why| Err(Unnotified::GaveUp(why)))
    }
    fn notify_one(&self) -> bool {
        self.0.notify_one()
    }
    fn notify_all(&self) -> usize {
        self.0.notify_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::LockEvent::{CondvarGiveUp, CondvarReturn, CondvarSent};
    use crate::near::condvar::monitor::{Monitor, MonitorTuning, Notifies};
    use crate::parking::{Cancellation, GaveUp, RawTimedLock};
    use crate::raw::RawLock;
    use crate::testing::{OneThread, events_of, meanwhile, others_are_done};
    use crate::tuning::Standard;
    use std::boxed::Box;

    crate::tuning! {
        /// An unlock notifies all waiters.
        struct NotifiesAll: MonitorTuning {
            notifies: Notifies = Notifies::All;
        }
    }

    /// Cancels and notifies a waiter at the same time. Returns how its wait ends, and how many more
    /// notifications were sent than waits were ended by one.
    fn notified_and_cancelled<T: MonitorTuning, C: Condition<OneThread>>() -> (Result<(), GaveUp>, u64) {
        let monitor: &Monitor<OneThread, T, C> = Box::leak(Box::default());
        let cancellation: &Cancellation<OneThread> = Box::leak(Box::default());
        let before = [CondvarSent, CondvarReturn].map(events_of);
        let given_up = events_of(CondvarGiveUp);
        // SAFETY: free, and unlocked by the other thread.
        unsafe { monitor.lock(&()) };
        // When the waiter has unlocked the mutex, and sleeps.
        meanwhile(|| ());
        meanwhile(move || {
            // SAFETY: locked above.
            unsafe { monitor.unlock(&()) };
            cancellation.cancel();
        });
        let limit = Limit { until_ns: None, cancellation: Some(cancellation) };
        // SAFETY: no thread unlocks the monitor afterwards, and none drops it.
        let result = unsafe { monitor.lock_within(&(), &limit) };
        assert!(others_are_done());
        assert_eq!(events_of(CondvarGiveUp), given_up, "it did not give up in the queue");
        (result, events_of(CondvarSent) - before[0] - (events_of(CondvarReturn) - before[1]))
    }

    #[test]
    fn it_keeps_the_notification_of_a_wait_that_it_gives_up() {
        fn is_lost<T: MonitorTuning>() {
            assert_eq!(notified_and_cancelled::<T, NearCondvar<_>>(), (Ok(()), 0));
            assert_eq!(notified_and_cancelled::<T, LostNotification<_>>(), (Err(GaveUp::Cancelled), 1));
        }
        is_lost::<Standard>();
        is_lost::<NotifiesAll>();
    }
}
