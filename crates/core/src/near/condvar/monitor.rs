//! A lock made of a mutex and a condition variable, as a program would make it. With it, everything
//! that is done to locks in this workspace is also done to condition variables.
//!
//! ```text
//! held   0 free | 1 held        under the mutex
//! free   condition: held is 0
//!
//!  0 -> 1   lock: waits for the condition
//!  1 -> 0   unlock: notifies one waiter, or all (`notifies`)
//! ```
//! A thread that has given up a wait does not read `held` again. If it had consumed a notification,
//! another thread would sleep although the lock is free. Models and torture tests of locks look for
//! this.
//!
//! The monitor counts its notifications as a program could. Each notification that `notify_one` or
//! `notify_all` reports as sent is a [`CondvarSent`](LockEvent::CondvarSent). Each wait that
//! reports a notification is a [`CondvarReturn`](LockEvent::CondvarReturn). When no thread waits,
//! the two counts are equal, or a notification was lost.
//!
//! Fairness: none. A thread that has been notified competes with newcomers, and queues again if it
//! loses. Source: the monitors of Hoare, "Monitors: an operating system structuring concept", CACM
//! 1974, in the form of Lampson and Redell, "Experience with processes and monitors in Mesa", CACM
//! 1980.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;

use super::{NearCondvar, Unnotified};
use crate::events::LockEvent;
use crate::near::NearPlatform;
use crate::near::mutex::NearMutex;
use crate::parking::{GaveUp, Limit, RawTimedLock};
use crate::platform::{Atomic, Platform};
use crate::raw::{RawLock, RawTryLock};
use crate::tuning::Standard;

words! {
    /// Which threads an unlock notifies.
    pub enum Notifies {
        /// The one that has waited longest.
        One "one",
        /// All, of which one has the lock then.
        All "all",
    }
}

switches! {
    /// The switch of [`Monitor`].
    pub trait MonitorTuning;
    SWITCHES from 88;

    /// Which threads an unlock notifies.
    fn notifies("notifies") -> Notifies as word = Notifies::One;
}

/// A condition variable of [`NearMutex`].
///
/// # Safety
///
/// [`wait`](Self::wait) returns with the mutex held, whatever its result. [`Monitor`] relies on
/// that for exclusion. No function releases the mutex otherwise.
///
/// ```compile_fail,E0200
/// use nearlock_core::near::NearPlatform;
/// use nearlock_core::near::condvar::{Unnotified, monitor::Condition};
/// use nearlock_core::near::mutex::NearMutex;
/// use nearlock_core::raw::RawLock;
/// use nearlock_core::parking::Limit;
///
/// #[derive(Default)]
/// struct Releases;
///
/// impl<P: NearPlatform> Condition<P> for Releases {
///     unsafe fn wait(
///         &self,
///         mutex: &NearMutex<P>,
///         _limit: &Limit<'_, P>,
///     ) -> Result<(), Unnotified> {
///         unsafe { mutex.unlock(&()) };
///         Ok(())
///     }
///     fn notify_one(&self) -> bool {
///         false
///     }
///     fn notify_all(&self) -> usize {
///         0
///     }
/// }
/// ```
pub unsafe trait Condition<P: Platform>: Default + Send + Sync + 'static {
    /// See [`NearCondvar::wait`].
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Safety
    ///
    /// As there.
    unsafe fn wait(&self, mutex: &NearMutex<P>, limit: &Limit<'_, P>) -> Result<(), Unnotified>;
    /// See [`NearCondvar::notify_one`].
    fn notify_one(&self) -> bool;
    /// See [`NearCondvar::notify_all`].
    fn notify_all(&self) -> usize;
}

// SAFETY: a wait locks the mutex again before it returns.
unsafe impl<P: NearPlatform> Condition<P> for NearCondvar<P> {
    unsafe fn wait(&self, mutex: &NearMutex<P>, limit: &Limit<'_, P>) -> Result<(), Unnotified> {
        // SAFETY: the caller's.
        unsafe { self.wait(mutex, limit) }
    }
    fn notify_one(&self) -> bool {
        self.notify_one()
    }
    fn notify_all(&self) -> usize {
        self.notify_all()
    }
}

/// See the [module](self). All zero: unlocked.
pub struct Monitor<P: Platform, T = Standard, C = NearCondvar<P>> {
    free: C,
    mutex: NearMutex<P>,
    held: P::U32,
    switches: PhantomData<T>,
}

impl<P: Platform, T, C: Default> Default for Monitor<P, T, C> {
    fn default() -> Self {
        Self { free: C::default(), mutex: NearMutex::default(), held: Atomic::new(0), switches: PhantomData }
    }
}

impl<P: NearPlatform, T: MonitorTuning, C: Condition<P>> Monitor<P, T, C> {
    /// Calls `f` under the mutex.
    fn inside<R>(&self, f: impl FnOnce() -> R) -> R {
        // SAFETY: the node is (), and unlock follows lock.
        unsafe {
            self.mutex.lock(&());
            let r = f();
            self.mutex.unlock(&());
            r
        }
    }
}

// SAFETY: `held` is 1 from `lock` to `unlock`. It is read and changed under the mutex, which orders
// all of this.
unsafe impl<P: NearPlatform, T: MonitorTuning, C: Condition<P>> RawLock for Monitor<P, T, C> {
    type Node = ();

    unsafe fn lock(&self, _node: &()) {
        // SAFETY: the caller's. Without a limit it returns only with the lock.
        _ = unsafe { self.lock_within(&(), &Limit::NONE) };
    }

    unsafe fn unlock(&self, _node: &()) {
        // The notification is sent under the mutex. Afterwards another thread may hold the lock,
        // and may free it.
        self.inside(|| {
            self.held.store(0, Relaxed);
            let notified = match T::notifies() {
                Notifies::All => self.free.notify_all(),
                Notifies::One => usize::from(self.free.notify_one()),
            };
            (0..notified).for_each(|_| P::count(LockEvent::CondvarSent));
        });
    }
}

// SAFETY: as above.
unsafe impl<P: NearPlatform, T: MonitorTuning, C: Condition<P>> RawTryLock for Monitor<P, T, C> {
    /// Also false while another thread is about to lock or unlock it.
    unsafe fn try_lock(&self, _node: &()) -> bool {
        // SAFETY: the node is (), and unlock follows lock.
        unsafe {
            if !self.mutex.try_lock(&()) {
                return false;
            }
            let is_free = self.held.load(Relaxed) == 0;
            self.held.store(1, Relaxed);
            self.mutex.unlock(&());
            is_free
        }
    }

    fn is_locked(&self) -> bool {
        self.held.load(Relaxed) != 0
    }
}

// SAFETY: as above.
unsafe impl<P: NearPlatform, T: MonitorTuning, C: Condition<P>> RawTimedLock for Monitor<P, T, C> {
    type Platform = P;

    unsafe fn lock_within(&self, _node: &(), limit: &Limit<'_, P>) -> Result<(), GaveUp> {
        self.inside(|| {
            while self.held.load(Relaxed) != 0 {
                // SAFETY: the mutex is held.
                match unsafe { self.free.wait(&self.mutex, limit) } {
                    Ok(()) => P::count(LockEvent::CondvarReturn),
                    Err(Unnotified::GaveUp(why)) => return Err(why),
                    Err(Unnotified::OtherMutex) => unreachable!("a monitor has one mutex"),
                }
            }
            self.held.store(1, Relaxed);
            Ok(())
        })
    }
}
