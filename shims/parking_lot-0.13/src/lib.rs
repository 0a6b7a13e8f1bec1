//! The interface of parking_lot 0.13 with the locks of nearlock.
//!
//! A program uses it without a change to its source. Its `Cargo.toml` gets:
//!
//! ```toml
//! [patch.crates-io]
//! parking_lot = { path = "NEARLOCK/shims/parking_lot-0.13" }
//! ```
//!
//! `NEARLOCK` is a checkout of nearlock. Cargo then uses this crate in the whole program, in all
//! crates that depend on parking_lot 0.13. `docs/guide/parking-lot.md` says how to use it together
//! with the crate for parking_lot 0.12, and what differs from parking_lot.
//!
//! The types are those of nearlock, whose documentation describes them.
//!
//! # Features
//!
//! The features are those of parking_lot. `arc_lock`, `owning_ref` and `serde` do what they do
//! there. Two select other locks, and exclude each other as there:
//!
//! - `deadlock_detection`: the locks of `nearlock::deadlock`, except [`Once`]. The functions of the
//!   module `deadlock` find their deadlocks.
//! - `send_guard`: the locks of `nearlock::send`, whose guards can be sent to other threads.
//!
//! `nightly` changes nothing: nothing here needs it.
//!
//! ```
//! use parking_lot::{Condvar, Mutex, RwLock};
//!
//! static TOTAL: Mutex<u32> = Mutex::new(0);
//! *TOTAL.lock() += 1;
//! assert_eq!(TOTAL.lock().to_string(), "1");
//! assert!(RwLock::new(1).try_read().is_some());
//! assert!(!Condvar::new().notify_one());
//! ```

#[cfg(all(feature = "send_guard", feature = "deadlock_detection"))]
compile_error!("the features `send_guard` and `deadlock_detection` exclude each other, as in parking_lot");

#[cfg(nearlock_count)]
#[path = "../../count.rs"]
mod count;
#[cfg(nearlock_count)]
mod counted;
#[cfg(any(nearlock_count, feature = "send_guard", feature = "deadlock_detection"))]
#[allow(missing_docs)] // nearlock's documentation describes the types
mod selected;

#[cfg(feature = "deadlock_detection")]
#[path = "../../deadlock.rs"]
pub mod deadlock;

pub use lock_api;
#[cfg(feature = "arc_lock")]
pub use lock_api::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};
pub use nearlock::{Once, OnceState, RawThreadId, WaitTimeoutResult};

#[cfg(not(any(nearlock_count, feature = "send_guard", feature = "deadlock_detection")))]
pub use nearlock::{
    Condvar, FairMutex, FairMutexGuard, MappedFairMutexGuard, MappedMutexGuard,
    MappedRecursiveRwLockReadGuard, MappedRecursiveRwLockWriteGuard, MappedReentrantMutexGuard,
    MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex, MutexGuard, RawCondvar, RawFairMutex, RawMutex,
    RawRwLock, RawRwLockRecursive, RecursiveRwLock, RecursiveRwLockReadGuard,
    RecursiveRwLockUpgradableReadGuard, RecursiveRwLockWriteGuard, ReentrantMutex, ReentrantMutexGuard,
    RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard,
};
#[cfg(any(nearlock_count, feature = "send_guard", feature = "deadlock_detection"))]
pub use selected::*;
