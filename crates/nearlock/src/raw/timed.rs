//! Timed locks of `lock_api`, whose waiters may give up.

use std::time::{Duration, Instant};

use nearlock_core::parking::{Limit, RawTimedLock, RawTimedRwLock};
use nearlock_core::platform::Clock;
use nearlock_os::Os;

use super::{Nodeless, Unlocked};
use crate::lock_api::{self, GuardNoSend};

/// The limit of a wait that begins now. There is no limit if the clock cannot count that far.
pub(crate) fn within(time: Duration) -> Limit<'static, Os> {
    let time_ns = u64::try_from(time.as_nanos()).ok();
    let until_ns = time_ns.and_then(|time_ns| <Os>::now_ns().checked_add(time_ns));
    Limit { until_ns, cancellation: None }
}

pub(crate) fn until(moment: Instant) -> Limit<'static, Os> {
    within(moment.saturating_duration_since(Instant::now()))
}

impl<L: RawTimedLock<Node = (), Platform = Os>> Nodeless<L> {
    #[inline]
    pub(crate) fn lock_within(&self, limit: &Limit<'_, Os>) -> bool {
        // SAFETY: the node is (), which any number of acquisitions may share.
        unsafe { self.0.lock_within(&(), limit) }.is_ok()
    }
}

impl<L: RawTimedRwLock<Node = (), Platform = Os>> Nodeless<L> {
    #[inline]
    pub(crate) fn lock_shared_within(&self, limit: &Limit<'_, Os>) -> bool {
        // SAFETY: as above.
        unsafe { self.0.lock_shared_within(&(), limit) }.is_ok()
    }
}

// SAFETY: a waiter that gives up has no acquisition, by core's `RawTimedLock`. Otherwise as
// `RawMutex`.
unsafe impl<L: RawTimedLock<Node = (), Platform = Os> + Unlocked> lock_api::RawMutexTimed for Nodeless<L> {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    fn try_lock_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.lock_within(&within(timeout)).then(GuardNoSend::new)
    }

    #[inline]
    fn try_lock_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        self.lock_within(&until(timeout)).then(GuardNoSend::new)
    }
}

// SAFETY: the same, for readers too.
unsafe impl<L: RawTimedRwLock<Node = (), Platform = Os> + Unlocked> lock_api::RawRwLockTimed for Nodeless<L> {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    fn try_lock_shared_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.lock_shared_within(&within(timeout)).then(GuardNoSend::new)
    }

    #[inline]
    fn try_lock_shared_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        self.lock_shared_within(&until(timeout)).then(GuardNoSend::new)
    }

    #[inline]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.lock_within(&within(timeout)).then(GuardNoSend::new)
    }

    #[inline]
    fn try_lock_exclusive_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        self.lock_within(&until(timeout)).then(GuardNoSend::new)
    }
}

// SAFETY: as for version 0.5.
#[cfg(feature = "lock_api_04")]
unsafe impl<L: RawTimedLock<Node = (), Platform = Os> + Unlocked> lock_api_04::RawMutexTimed for Nodeless<L> {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    fn try_lock_for(&self, timeout: Duration) -> bool {
        self.lock_within(&within(timeout))
    }

    #[inline]
    fn try_lock_until(&self, timeout: Instant) -> bool {
        self.lock_within(&until(timeout))
    }
}

// SAFETY: as for version 0.5.
#[cfg(feature = "lock_api_04")]
unsafe impl<L: RawTimedRwLock<Node = (), Platform = Os> + Unlocked> lock_api_04::RawRwLockTimed
    for Nodeless<L>
{
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    fn try_lock_shared_for(&self, timeout: Duration) -> bool {
        self.lock_shared_within(&within(timeout))
    }

    #[inline]
    fn try_lock_shared_until(&self, timeout: Instant) -> bool {
        self.lock_shared_within(&until(timeout))
    }

    #[inline]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
        self.lock_within(&within(timeout))
    }

    #[inline]
    fn try_lock_exclusive_until(&self, timeout: Instant) -> bool {
        self.lock_within(&until(timeout))
    }
}
