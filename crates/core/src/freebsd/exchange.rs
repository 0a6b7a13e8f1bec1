//! How the locks with a word of 64 bits change it: as [`CasValue`] says.

use core::sync::atomic::Ordering::{self, Relaxed};

use super::tuning::{CasValue, Tuning};
use crate::platform::Atomic;

/// Changes the word; what was found if it was another. With [`CasValue::Found`] that may be `seen`.
#[inline(always)]
#[track_caller]
pub(super) fn exchange<T: Tuning>(
    word: &impl Atomic<u64>,
    seen: u64,
    to: u64,
    order: Ordering,
) -> Result<(), u64> {
    // Relaxed on failure, where it is only tried again.
    match T::CAS_VALUE {
        CasValue::Found => word.compare_exchange_weak(seen, to, order, Relaxed),
        CasValue::Reread | CasValue::Kept => word.compare_exchange(seen, to, order, Relaxed),
    }
    .map(drop)
}

/// What to go by after an exchange that failed, and has found this.
#[inline(always)]
pub(super) fn after_failure<T: Tuning>(word: &impl Atomic<u64>, found: u64) -> u64 {
    match T::CAS_VALUE {
        CasValue::Found => found,
        CasValue::Reread | CasValue::Kept => word.load(Relaxed),
    }
}
