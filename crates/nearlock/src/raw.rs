//! The locks without data, and the adapters that make them mutexes of [`lock_api`].
//!
//! - [`Nodeless`] is the adapter of locks whose acquisitions need nothing from the caller. Its
//!   guards contain nothing. It implements `lock_api` 0.4 too (feature `lock_api_04`). It is a
//!   timed lock or a reader-writer lock if the lock is one.
//! - `Pooled` (feature `collection`) is the adapter of locks whose acquisitions need a queue node
//!   from the caller. Its guards contain a node from the thread's pool.
//!
//! [`Unpreempted`] wraps the result of either, and makes a mutex whose holder asks for a longer
//! time slice.
//!
//! Code that is generic over the raw lock uses these types. They also give guards to other raw
//! locks:
//!
//! ```
//! use nearlock::lock_api::{Mutex, RawMutex};
//!
//! struct Account<R> {
//!     balance: Mutex<R, i64>,
//! }
//!
//! impl<R: RawMutex> Account<R> {
//!     fn deposit(&self, amount: i64) -> i64 {
//!         let mut balance = self.balance.lock();
//!         *balance += amount;
//!         *balance
//!     }
//! }
//!
//! let account = Account::<nearlock::RawMutex> { balance: Mutex::new(1) };
//! assert_eq!(account.deposit(2), 3);
//! ```
//!
//! Guards of both adapters are not `Send`. Any thread could unlock these locks, except those of
//! FreeBSD, which know their holder. But a guard that cannot leave its thread cannot be held across
//! an `.await` of a task that moves between threads. And a spinning waiter must not wait for a task
//! that is suspended.

mod shared;
pub(crate) mod timed;
mod unpreempted;

use nearlock_core::near::mutex::NearMutex;
use nearlock_core::near::rwlock::NearRwLock;
use nearlock_core::platform::Platform;
#[cfg(feature = "lock_api_04")]
use nearlock_core::unwinding::without_unwinding;

pub use nearlock_core::parking::{RawTimedLock, RawTimedRwLock};
pub use nearlock_core::raw::{RawLock, RawRwLock, RawTryLock};

use crate::lock_api::{GuardNoSend, RawMutex};
#[cfg(feature = "collection")]
pub use crate::pool::{Pooled, PooledNode};
pub use unpreempted::Unpreempted;

/// A lock that can be a `static`, and that can have guards. The [`Default`] of [`RawLock`] is not
/// `const`.
///
/// # Safety
///
/// The lock may be moved or dropped while it is held and no thread waits for it, as happens after a
/// guard was forgotten. Nothing points into the lock. Its own words alone say whether it is held.
pub unsafe trait Unlocked: RawLock {
    /// An unlocked lock.
    #[allow(clippy::declare_interior_mutable_const)] // a template to copy from, never borrowed
    const UNLOCKED: Self;
}

/// One entry for each lock: its type parameters, and the type.
macro_rules! unlocked {
    ($([$($parameter:tt)*] $lock:ty;)*) => {
        // SAFETY: the lock consists of words. They say whether it is held, and point only to nodes
        // of acquisitions or to waiters, if to anything.
        $(unsafe impl<$($parameter)*> Unlocked for $lock
        where
            Self: RawLock,
        {
            const UNLOCKED: Self = Self::new();
        })*
    };
}

unlocked! {
    [P: Platform] NearMutex<P>;
    [P: Platform] NearRwLock<P>;
}

// After the macro, which it uses.
#[cfg(feature = "collection")]
mod collection;

/// Makes a [`lock_api`] mutex, of the same size, from a lock whose acquisitions need no queue node.
/// If the lock has readers, it makes a reader-writer lock as well.
///
/// See the [module](self) for an example.
///
/// The lock must be [`Unlocked`]. Locks that are broken on purpose are not:
///
/// ```compile_fail,E0599
/// use nearlock::raw::Nodeless;
/// use nearlock_collection::controls::Busted;
/// use nearlock_os::Os;
///
/// let broken = nearlock::lock_api::Mutex::<Nodeless<Busted<Os>>, _>::new(1);
/// ```
#[derive(Default)]
#[repr(transparent)]
pub struct Nodeless<L>(pub(crate) L);

// SAFETY: the lock provides exclusion and orderings (`RawLock`). The guard state owns nothing and
// cannot unlock, so forgetting it is safe. Nothing points to the lock, so it may be moved or
// dropped while it is locked and no thread waits. The lock's operations do not unwind.
unsafe impl<L: RawTryLock<Node = ()> + Unlocked> RawMutex for Nodeless<L> {
    const INIT: Self = Self(L::UNLOCKED);
    type Guard = GuardNoSend;

    #[inline]
    fn lock(&self) -> GuardNoSend {
        // SAFETY: the node is (), which any number of acquisitions may share.
        unsafe { self.0.lock(&()) };
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardNoSend> {
        // SAFETY: as above.
        unsafe { self.0.try_lock(&()) }.then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock(&self, _guard: GuardNoSend) {
        // SAFETY: the caller holds the lock.
        unsafe { self.0.unlock(&()) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

// SAFETY: as above. In this version `unlocked` locks the mutex again when it ends. If this panics,
// the guard unlocks the mutex although it does not hold it. So a panic ends the process.
#[cfg(feature = "lock_api_04")]
unsafe impl<L: RawTryLock<Node = ()> + Unlocked> lock_api_04::RawMutex for Nodeless<L> {
    const INIT: Self = Self(L::UNLOCKED);
    type GuardMarker = lock_api_04::GuardNoSend;

    #[inline]
    fn lock(&self) {
        // SAFETY: the node is (), which any number of acquisitions may share.
        without_unwinding(|| unsafe { self.0.lock(&()) });
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // SAFETY: as above.
        unsafe { self.0.try_lock(&()) }
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: the caller holds the lock.
        unsafe { self.0.unlock(&()) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}
