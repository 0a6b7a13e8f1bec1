//! How a waiter becomes first, and is told so.

use core::sync::atomic::Ordering::Relaxed;

use super::{RESTING, SINCE, WaitQueue};
use crate::near::NearPlatform;
use crate::parking::{Call, Waiter};
use crate::platform::Atomic;

impl<P: NearPlatform> WaitQueue<'_, P> {
    /// Tells a waiter that it has become first.
    pub(super) fn tell(&self, next: &Waiter<P>) -> Option<Call<P>> {
        self.stamp(next, self.now());
        next.wake()
    }

    /// As [`tell`](Self::tell). If the waiter is parked, it rests while it is being woken. So
    /// releases do not look after it meanwhile, which would double what they cost.
    pub(super) fn tell_resting(&self, next: &Waiter<P>) -> Option<Call<P>> {
        let call = self.tell(next);
        if call.is_some() {
            self.rest(next);
        }
        call
    }

    /// As [`tell`](Self::tell). But if the waiter is parked, its request is raised instead, and the
    /// next release of the mutex wakes it.
    pub(super) fn tell_or_raise(&self, next: &Waiter<P>) -> Option<Call<P>> {
        if next.is_asleep() {
            self.raise(next);
            None
        } else {
            // It may have parked since the check.
            self.tell(next)
        }
    }

    /// Makes the next waiter first, if there is one, and tells it, after the first has left.
    pub(super) fn make_first(
        &self,
        next: Option<&Waiter<P>>,
        left: &Waiter<P>,
        tell: impl FnOnce(&Waiter<P>) -> Option<Call<P>>,
    ) -> Option<Call<P>> {
        match (next, left.note.load(Relaxed) & RESTING != 0) {
            (Some(_), false) | (None, true) => {}
            (Some(_), true) => self.watch(),
            (None, false) => self.unwatch(),
        }
        let next = next?;
        next.note.store(next.note.load(Relaxed) & !SINCE, Relaxed);
        tell(next)
    }

    /// A first that was told so while it rested does not rest any more, if its thread has not
    /// noticed that yet. It may have no processor.
    pub(super) fn look_after_told(&self) {
        let told = self.first().filter(|first| Self::is_resting(first) && first.is_signalled());
        told.inspect(|first| self.end_rest(first));
    }
}
