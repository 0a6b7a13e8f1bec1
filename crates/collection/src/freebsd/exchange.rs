//! Compare-exchanges of these locks' words, as [`CasValue`] says.

use core::sync::atomic::Ordering::{self, Relaxed};

use super::tuning::{CasValue, Tuning};
use crate::platform::Atomic;

/// A word that is changed by compare-exchanges.
pub(super) trait Exchange<V: Copy>: Atomic<V> {
    /// Changes the word from `seen` to `to`. If this fails, returns the value found. With
    /// [`CasValue::Found`] this may be `seen`.
    #[inline(always)]
    #[track_caller]
    fn exchange<T: Tuning>(&self, seen: V, to: V, order: Ordering) -> Result<(), V> {
        // Relaxed on failure, after which the exchange is only tried again.
        match T::cas_value() {
            CasValue::Found => self.compare_exchange_weak(seen, to, order, Relaxed),
            CasValue::Reread | CasValue::Kept => self.compare_exchange(seen, to, order, Relaxed),
        }
        .map(drop)
    }

    /// The value to continue with after an exchange that has failed, and has found this value.
    #[inline(always)]
    #[track_caller]
    fn after_failure<T: Tuning>(&self, found: V) -> V {
        match T::cas_value() {
            CasValue::Found => found,
            CasValue::Reread | CasValue::Kept => self.load(Relaxed),
        }
    }
}

impl<V: Copy, A: Atomic<V>> Exchange<V> for A {}
