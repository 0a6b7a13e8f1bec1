//! How threads that spin for the owner of a mutex avoid contention with each other.

use crate::linux::mcs_spinlock::SpinnerQueue;
use crate::platform::Platform;

/// The result of one turn of spinning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The caller has taken the mutex.
    Taken,
    /// The caller should sleep.
    Stop,
    /// Neither.
    Again,
}

/// The spinners of a mutex.
///
/// # Safety
///
/// [`spin`](Self::spin) returns true only if a turn has taken the mutex. The mutex relies on it.
///
/// ```compile_fail,E0200
/// use nearlock_collection::linux::counter_mutex::{Spinners, Turn};
/// use nearlock_core::platform::Platform;
///
/// #[derive(Default)]
/// struct Hasty;
///
/// impl<P: Platform> Spinners<P> for Hasty {
///     const NONE: Self = Self;
///     unsafe fn spin(
///         &self,
///         _may_begin: impl FnOnce() -> bool,
///         _turn: impl FnMut() -> Turn,
///     ) -> bool {
///         true
///     }
/// }
/// ```
pub unsafe trait Spinners<P: Platform>: Default + Send + Sync + 'static {
    /// No spinners.
    #[allow(clippy::declare_interior_mutable_const)] // a template to copy from, never borrowed
    const NONE: Self;

    /// Spins turn by turn. Returns whether a turn has taken the mutex; it is the last one then.
    /// `may_begin` says whether queueing may be worth it.
    ///
    /// # Safety
    ///
    /// Neither `may_begin` nor `turn` unwinds.
    unsafe fn spin(&self, may_begin: impl FnOnce() -> bool, turn: impl FnMut() -> Turn) -> bool;
}

/// Calls `turn` until it says to end. Returns whether it has taken the mutex.
fn repeat<P: Platform>(mut turn: impl FnMut() -> Turn) -> bool {
    let mut turns = 0;
    loop {
        match turn() {
            Turn::Taken => return true,
            Turn::Stop => return false,
            Turn::Again => P::cpu_relax(turns),
        }
        turns = turns.saturating_add(1);
    }
}

/// All spinners look at owner and count: Linux until 3.9.
#[derive(Debug, Default)]
pub struct Crowd;

// SAFETY: returns what the last turn has said.
unsafe impl<P: Platform> Spinners<P> for Crowd {
    const NONE: Self = Self;

    #[inline]
    unsafe fn spin(&self, _may_begin: impl FnOnce() -> bool, turn: impl FnMut() -> Turn) -> bool {
        repeat::<P>(turn)
    }
}

/// No thread spins. Waiters sleep at once: Linux until 2.6.28.
#[derive(Debug, Default)]
pub struct Nobody;

// SAFETY: there is no turn.
unsafe impl<P: Platform> Spinners<P> for Nobody {
    const NONE: Self = Self;

    #[inline]
    unsafe fn spin(&self, _may_begin: impl FnOnce() -> bool, _turn: impl FnMut() -> Turn) -> bool {
        false
    }
}

/// Spinners queue again for each turn: Linux 3.10.
///
/// A spinner waits for its turn without a bound, and does not leave the queue before. So a spinner
/// of high priority that has preempted the one in front keeps it from running.
pub struct InTurns<P: Platform>(SpinnerQueue<P>);

impl<P: Platform> Default for InTurns<P> {
    fn default() -> Self {
        Self(SpinnerQueue::default())
    }
}

// SAFETY: returns what the last turn has said.
unsafe impl<P: Platform> Spinners<P> for InTurns<P> {
    const NONE: Self = Self(SpinnerQueue::new());

    #[inline]
    unsafe fn spin(&self, may_begin: impl FnOnce() -> bool, mut turn: impl FnMut() -> Turn) -> bool {
        // SAFETY: the caller's.
        may_begin() && repeat::<P>(|| unsafe { self.0.as_head(&mut turn) })
    }
}

/// Spinners queue once, and the head spins until it has the mutex or sleeps: Linux 3.15. Other than
/// there, no thread leaves the queue before it has been the head.
///
/// A spinner waits for its turn without a bound, and does not leave the queue before. So a spinner
/// of high priority that has preempted the one in front keeps it from running.
pub struct OneSpins<P: Platform>(SpinnerQueue<P>);

impl<P: Platform> Default for OneSpins<P> {
    fn default() -> Self {
        Self(SpinnerQueue::default())
    }
}

// SAFETY: as above.
unsafe impl<P: Platform> Spinners<P> for OneSpins<P> {
    const NONE: Self = Self(SpinnerQueue::new());

    #[inline]
    unsafe fn spin(&self, may_begin: impl FnOnce() -> bool, turn: impl FnMut() -> Turn) -> bool {
        // SAFETY: the caller's.
        may_begin() && unsafe { self.0.as_head(|| repeat::<P>(turn)) }
    }
}
