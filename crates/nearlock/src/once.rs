//! One-time initialization.

use std::fmt;
use std::mem;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The state of a [`Once`].
///
/// ```
/// use nearlock::{Once, OnceState};
///
/// let once = Once::new();
/// assert_eq!(once.state(), OnceState::New);
/// once.call_once(|| assert_eq!(once.state(), OnceState::InProgress));
/// assert!(once.state().is_completed());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnceState {
    /// No closure has run yet.
    New,
    /// A closure has panicked, and no other has completed since.
    Poisoned,
    /// A thread is running a closure.
    InProgress,
    /// A closure has completed.
    Done,
}

impl OnceState {
    /// Whether a closure has panicked. [`Once::call_once_force`] passes the state from before to
    /// its closure.
    ///
    /// ```
    /// use nearlock::Once;
    ///
    /// static START: Once = Once::new();
    ///
    /// assert!(std::thread::spawn(|| START.call_once(|| panic!())).join().is_err());
    /// START.call_once_force(|state| assert!(state.is_poisoned()));
    /// assert!(!START.state().is_poisoned());
    /// ```
    #[inline]
    pub const fn is_poisoned(self) -> bool {
        matches!(self, Self::Poisoned)
    }

    /// As [`is_poisoned`](Self::is_poisoned), by its name in older versions of `parking_lot`.
    #[inline]
    pub const fn poisoned(self) -> bool {
        self.is_poisoned()
    }

    /// Whether a closure has completed.
    #[inline]
    pub const fn is_completed(self) -> bool {
        matches!(self, Self::Done)
    }

    /// As [`is_completed`](Self::is_completed), by its name in older versions of `parking_lot`.
    #[inline]
    pub const fn done(self) -> bool {
        self.is_completed()
    }
}

/// Runs an initialization once, whichever thread comes first.
///
/// It has the methods of `parking_lot`'s. It is a [`std::sync::Once`] that can tell its
/// [state](Self::state). Initialization happens once, and a later call is one load. So a lock of
/// this crate would gain nothing. [`OnceLock`](crate::OnceLock) also has a place for the value.
///
/// Space: 8 bytes on Linux.
///
/// Waiting: threads that come while a closure runs sleep until it has ended. Then all of them go on
/// at once.
///
/// Ordering: the closure that has completed happens before the return of each call.
///
/// A closure must not use the `Once` that runs it. Such a call panics or never returns.
///
/// In a child made by `fork`, a closure that another thread of the parent was running stays in
/// progress for ever.
///
/// ```
/// use nearlock::Once;
///
/// static START: Once = Once::new();
///
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| START.call_once(|| println!("started")));
///     }
/// });
/// assert!(START.is_completed());
/// ```
pub struct Once {
    /// An [`OnceState`]. Only the closure that runs changes it.
    state: AtomicU8,
    /// Not used if the state was done at first.
    once: std::sync::Once,
}

const NEW: u8 = 0;
const POISONED: u8 = 1;
const IN_PROGRESS: u8 = 2;
const DONE: u8 = 3;

/// Notes that a closure has panicked, unless it is forgotten.
struct Poisons<'a>(&'a AtomicU8);

impl Drop for Poisons<'_> {
    #[inline]
    fn drop(&mut self) {
        // Ordering: Release, pairs with the Acquire in `state`: what the closure did before it
        // panicked happens before what follows there.
        self.0.store(POISONED, Release);
    }
}

impl Once {
    /// Creates a `Once` for which no closure has run.
    #[inline]
    pub const fn new() -> Self {
        Self { state: AtomicU8::new(NEW), once: std::sync::Once::new() }
    }

    /// Creates a `Once` that is completed. It never runs a closure.
    ///
    /// ```
    /// use nearlock::{Once, OnceState};
    ///
    /// let once = Once::new_completed();
    /// once.call_once(|| unreachable!());
    /// assert_eq!(once.state(), OnceState::Done);
    /// ```
    #[inline]
    pub const fn new_completed() -> Self {
        Self { state: AtomicU8::new(DONE), once: std::sync::Once::new() }
    }

    /// The state at this moment. It may have changed before this returns.
    #[inline]
    pub fn state(&self) -> OnceState {
        // Ordering: Acquire, pairs with the Release in `run` and in `Poisons`: the closure happens
        // before what follows.
        match self.state.load(Acquire) {
            NEW => OnceState::New,
            POISONED => OnceState::Poisoned,
            IN_PROGRESS => OnceState::InProgress,
            _ => OnceState::Done,
        }
    }

    /// Whether a closure has completed. If this is false, it may be true before this returns.
    #[inline]
    pub fn is_completed(&self) -> bool {
        self.state().is_completed()
    }

    /// Runs `f`, unless a closure has completed. If another thread is running one, waits for it.
    ///
    /// # Panics
    ///
    /// If `f` panics, the `Once` is poisoned: further calls panic, except
    /// [`call_once_force`](Self::call_once_force).
    #[inline]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        if !self.is_completed() {
            self.once.call_once(|| self.run(f));
        }
    }

    /// As [`call_once`](Self::call_once), even if a closure has panicked. `f` gets the state from
    /// before: [`New`](OnceState::New) or [`Poisoned`](OnceState::Poisoned). If it does not panic,
    /// the `Once` is not poisoned any more.
    ///
    /// # Panics
    ///
    /// If `f` panics, the `Once` is poisoned.
    #[inline]
    pub fn call_once_force<F: FnOnce(OnceState)>(&self, f: F) {
        if !self.is_completed() {
            self.once.call_once_force(|before| {
                let state = if before.is_poisoned() { OnceState::Poisoned } else { OnceState::New };
                self.run(|| f(state));
            });
        }
    }

    /// Waits until a closure has completed.
    ///
    /// ```
    /// use nearlock::Once;
    ///
    /// let ready = Once::new();
    /// std::thread::scope(|scope| {
    ///     let waiter = scope.spawn(|| ready.wait());
    ///     ready.call_once(|| ());
    ///     waiter.join().unwrap();
    /// });
    /// ```
    ///
    /// # Panics
    ///
    /// If a closure has panicked, and no other has completed since.
    #[inline]
    pub fn wait(&self) {
        if !self.is_completed() {
            self.once.wait();
        }
    }

    /// As [`wait`](Self::wait). If a closure has panicked, it waits for another one.
    #[inline]
    pub fn wait_force(&self) {
        if !self.is_completed() {
            self.once.wait_force();
        }
    }

    /// Runs the closure, and notes the states. No other closure runs meanwhile.
    #[inline]
    fn run(&self, f: impl FnOnce()) {
        // Relaxed: nothing is read through it.
        self.state.store(IN_PROGRESS, Relaxed);
        let poisons = Poisons(&self.state);
        f();
        mem::forget(poisons);
        // Ordering: Release, pairs with the Acquire in `state`: the closure happens before what
        // follows there.
        self.state.store(DONE, Release);
    }
}

impl Default for Once {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

/// Has the state.
impl fmt::Debug for Once {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("state", &self.state()).finish()
    }
}
