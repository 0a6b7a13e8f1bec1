//! How those who spin for the owner of a mutex keep out of each other's way.

use crate::linux::mcs_spinlock::SpinnerQueue;
use crate::platform::Platform;

/// What one turn of spinning has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The mutex is the caller's.
    Taken,
    /// It is time to sleep.
    Stop,
    /// Neither.
    Again,
}

/// The spinners of a mutex.
///
/// # Safety
///
/// The mutex believes what [`spin`](Self::spin) says: that a turn has taken it.
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
///     unsafe fn spin(&self, _may_begin: impl FnOnce() -> bool, _turn: impl FnMut() -> Turn) -> bool {
///         true
///     }
/// }
/// ```
pub unsafe trait Spinners<P: Platform>: Default + Send + Sync + 'static {
    /// There are none.
    #[allow(clippy::declare_interior_mutable_const)] // a template to copy from, never borrowed
    const NONE: Self;

    /// Spins by turns; whether one has taken the mutex, which is the last then. `may_begin` says
    /// whether there is any point in queueing.
    ///
    /// # Safety
    ///
    /// Neither of the two unwinds.
    unsafe fn spin(&self, may_begin: impl FnOnce() -> bool, turn: impl FnMut() -> Turn) -> bool;
}

/// Takes turns until one is the last; whether it has taken the mutex.
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

/// All of them look at owner and count: Linux until 3.9.
#[derive(Debug, Default)]
pub struct Crowd;

// SAFETY: says what the last turn has said.
unsafe impl<P: Platform> Spinners<P> for Crowd {
    const NONE: Self = Self;

    #[inline]
    unsafe fn spin(&self, _may_begin: impl FnOnce() -> bool, turn: impl FnMut() -> Turn) -> bool {
        repeat::<P>(turn)
    }
}

/// Who waits sleeps: Linux until 2.6.28.
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

/// They queue again for each turn: Linux 3.10.
///
/// A spinner waits for its turn without a bound, and does not leave the queue before. So a thread
/// of high priority that has preempted the spinner in front keeps it from running.
pub struct InTurns<P: Platform>(SpinnerQueue<P>);

impl<P: Platform> Default for InTurns<P> {
    fn default() -> Self {
        Self(SpinnerQueue::default())
    }
}

// SAFETY: says what the last turn has said.
unsafe impl<P: Platform> Spinners<P> for InTurns<P> {
    const NONE: Self = Self(SpinnerQueue::new());

    #[inline]
    unsafe fn spin(&self, may_begin: impl FnOnce() -> bool, mut turn: impl FnMut() -> Turn) -> bool {
        // SAFETY: the caller's.
        may_begin() && repeat::<P>(|| unsafe { self.0.as_head(&mut turn) })
    }
}

/// They queue once, and the head spins until it has the mutex or sleeps: Linux 3.15, but that
/// nobody leaves the queue before it has been the head.
///
/// A spinner waits for its turn without a bound, and does not leave the queue before. So a thread
/// of high priority that has preempted the spinner in front keeps it from running.
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
