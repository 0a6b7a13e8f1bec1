//! A waiter that was notified, gives up, and keeps the notification.

use crate::near::NearPlatform;
use crate::near::condvar::monitor::Condition;
use crate::near::condvar::{NearCondvar, Unnotified};
use crate::near::mutex::NearMutex;
use crate::parking::Limit;
use crate::platform::Platform;

/// Loses a notification: a wait that was notified looks at its limit once more when it has the
/// mutex again, and says that it has given up if that is reached. The notification has gone to
/// nobody then.
///
/// Later notifications make good for it: so it shows where none comes, or where somebody counts
/// them.
pub struct LostNotification<P: Platform>(NearCondvar<P>);

impl<P: Platform> Default for LostNotification<P> {
    fn default() -> Self {
        Self(NearCondvar::default())
    }
}

// SAFETY: waits as `NearCondvar`; what it gets wrong is what it says of a wait.
unsafe impl<P: NearPlatform> Condition<P> for LostNotification<P> {
    unsafe fn wait(&self, mutex: &NearMutex<P>, limit: &Limit<'_, P>) -> Result<(), Unnotified> {
        // SAFETY: the caller's.
        unsafe { self.0.wait(mutex, limit) }?;
        // That is what the control adds.
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
        /// An unlock notifies all who wait.
        struct NotifiesAll: MonitorTuning {
            notifies: Notifies = Notifies::All;
        }
    }

    /// What comes of a waiter that is cancelled and notified at once: how its wait ends, and how
    /// many more notifications were sent than waits ended by one.
    fn notified_and_cancelled<T: MonitorTuning, C: Condition<OneThread>>() -> (Result<(), GaveUp>, u64) {
        let monitor: &Monitor<OneThread, T, C> = Box::leak(Box::default());
        let cancellation: &Cancellation<OneThread> = Box::leak(Box::default());
        let before = [CondvarSent, CondvarReturn].map(events_of);
        let given_up = events_of(CondvarGiveUp);
        // SAFETY: free, and unlocked by the other.
        unsafe { monitor.lock(&()) };
        // When the waiter has released the mutex, and sleeps.
        meanwhile(|| ());
        meanwhile(move || {
            // SAFETY: locked above.
            unsafe { monitor.unlock(&()) };
            cancellation.cancel();
        });
        let limit = Limit { until_ns: None, cancellation: Some(cancellation) };
        // SAFETY: it is unlocked by nobody, as it is dropped by nobody.
        let result = unsafe { monitor.lock_within(&(), &limit) };
        assert!(others_are_done());
        assert_eq!(events_of(CondvarGiveUp), given_up, "the queue has let it go");
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
