//! The raw locks that the features of the crate select. They implement the traits of `lock_api`
//! 0.5.

#[cfg(not(any(feature = "send_guard", feature = "deadlock_detection")))]
pub use nearlock::{RawCondvar, RawFairMutex, RawMutex, RawRwLock};

#[cfg(feature = "send_guard")]
pub use nearlock::send::{RawCondvar, RawFairMutex, RawMutex, RawRwLock};

#[cfg(all(feature = "deadlock_detection", not(feature = "send_guard")))]
pub use nearlock::deadlock::{RawCondvar, RawFairMutex, RawMutex, RawRwLock};
