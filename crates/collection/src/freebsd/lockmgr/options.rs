//! Operations on a lockmgr, their options, and the reasons why they fail.

use core::fmt;

use super::super::recursion::Recursion;
use crate::parking::{Cancellation, GaveUp, Limit};
use crate::platform::{Clock, Platform};

/// An operation on the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Locks it shared, together with other sharers (`LK_SHARED`). [`Failure::Deadlock`] if the
    /// caller holds it exclusively.
    Shared,
    /// Locks it exclusively (`LK_EXCLUSIVE`). The holder locks it once more, if that is permitted.
    /// If not, the result is [`Failure::Busy`] if the caller must not sleep. Otherwise this is a
    /// mistake: [`Failure::Deadlock`].
    Exclusive,
    /// Makes the caller's share an exclusive hold (`LK_UPGRADE`). If no other thread shares the
    /// lock, this is done at once, past all waiters. Otherwise the share is released first, and
    /// others may hold the lock exclusively in between. **With an error the caller holds nothing.**
    Upgrade,
    /// The same, if no other thread shares the lock (`LK_TRYUPGRADE`). Otherwise [`Failure::Busy`],
    /// and the caller keeps its share.
    TryUpgrade,
    /// Makes the exclusive hold a share (`LK_DOWNGRADE`). No other thread holds the lock
    /// exclusively in between. Sharers that sleep stay asleep until an unlock. Never fails.
    Downgrade,
    /// Unlocks what the caller holds, shared or exclusive, or what a thread has disowned
    /// (`LK_RELEASE`). Never fails.
    Unlock,
    /// Locks it exclusively as soon as no thread holds it and no thread sleeps for it (`LK_DRAIN`).
    /// Threads that sleep are woken first, and then compete with the drain. Ignores limits. A
    /// thread that frees the lock afterwards knows by other means that no further thread will use
    /// it.
    Drain,
}

/// Why an operation failed, with the name of the kernel's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The caller would have to wait, and must not. Or others share a lock that was to be upgraded
    /// (`EBUSY`).
    Busy,
    /// The caller has waited, and asked to fail after that (`ENOLCK`).
    SleepFail,
    /// The time has passed (`EWOULDBLOCK`).
    TimedOut,
    /// The wait was cancelled (`EINTR`; the kernel has `ERESTART` too, for signals after which a
    /// system call begins again).
    Interrupted,
    /// The caller holds it exclusively (`EDEADLK`).
    Deadlock,
}

impl Failure {
    /// The name of the kernel's error.
    pub const fn errno(self) -> &'static str {
        match self {
            Self::Busy => "EBUSY",
            Self::SleepFail => "ENOLCK",
            Self::TimedOut => "EWOULDBLOCK",
            Self::Interrupted => "EINTR",
            Self::Deadlock => "EDEADLK",
        }
    }
}

impl From<GaveUp> for Failure {
    fn from(why: GaveUp) -> Self {
        match why {
            GaveUp::TimedOut => Self::TimedOut,
            GaveUp::Cancelled => Self::Interrupted,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self {
            Self::Busy => "the lock is held, and the caller must not wait",
            Self::SleepFail => "the caller has waited, and asked to fail after that",
            Self::TimedOut => "the time has passed",
            Self::Interrupted => "the wait was cancelled",
            Self::Deadlock => "the caller holds the lock exclusively",
        };
        write!(f, "{why} ({})", self.errno())
    }
}

impl core::error::Error for Failure {}

/// Whether the lock can be shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Sharing {
    /// It can.
    #[default]
    Allowed,
    /// A request for a share locks exclusively. Upgrades and downgrades do nothing.
    Disabled,
}

/// The properties of a lock that never change: the flags of `lockinit`. (The flags for `WITNESS`
/// and for lock profiling have no meaning here, nor do priorities.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "this only says how the lock is to be"]
pub struct Attributes {
    pub(super) sharing: Sharing,
    pub(super) recursion: Recursion,
    pub(super) timeout_ns: u64,
}

impl Attributes {
    /// Shareable, not recursive, without a time limit.
    pub const fn new() -> Self {
        Self { sharing: Sharing::Allowed, recursion: Recursion::Forbidden, timeout_ns: 0 }
    }

    /// Not shareable (`LK_NOSHARE`): shares are exclusive, upgrades and downgrades do nothing.
    pub const fn no_share(mut self) -> Self {
        self.sharing = Sharing::Disabled;
        self
    }

    /// The exclusive holder may lock it again (`LK_CANRECURSE`), `2^32 - 1` times.
    pub const fn can_recurse(mut self) -> Self {
        self.recursion = Recursion::Permitted;
        self
    }

    /// The exclusive holder may not lock it again, unless an operation permits that. The default.
    pub const fn cannot_recurse(mut self) -> Self {
        self.recursion = Recursion::Forbidden;
        self
    }

    /// The longest wait of operations with [`Timeout::OfLock`], in ns. 0: for ever.
    pub const fn timeout_ns(mut self, ns: u64) -> Self {
        self.timeout_ns = ns;
        self
    }
}

/// When a wait ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timeout {
    /// Never.
    #[default]
    Never,
    /// As long after its beginning as an [attribute](Attributes::timeout_ns) of the lock says.
    OfLock,
    /// At this moment of the platform's clock, in ns.
    At(u64),
}

/// Which sharers overtake threads that wait to lock exclusively.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bypass {
    /// Threads that hold any lock of this kind shared, since the exclusive waiters may wait for
    /// them.
    #[default]
    Holders,
    /// None (`LK_NODDLKTREAT`): the caller says that it holds none of these locks.
    Nobody,
    /// The caller, whatever it holds (the thread flag `TDP_DEADLKTREAT`).
    Caller,
}

/// Options of an operation. A free lock for which no thread waits is locked whatever they say. If
/// the word says that threads may wait, [`no_wait`](Options::no_wait) makes an exclusive
/// acquisition fail as busy although the lock is free. Only the chain tells whether threads wait,
/// and such an acquisition does not lock the chain.
///
/// ```
/// use nearlock_collection::freebsd::lockmgr::Options;
/// use nearlock_core::native::Native;
///
/// let in_turn = Options::<Native>::new().no_wait().can_recurse();
/// ```
#[must_use = "these only say how something is to be done"]
pub struct Options<'a, P: Platform> {
    pub(super) sleeps: bool,
    pub(super) sleep_fails: bool,
    pub(super) timeout: Timeout,
    pub(super) cancellation: Option<&'a Cancellation<P>>,
    pub(super) recursion: Recursion,
    pub(super) spins: bool,
    pub(super) bypass: Bypass,
}

impl<P: Platform> Clone for Options<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform> Copy for Options<'_, P> {}

impl<P: Platform> Default for Options<'_, P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a, P: Platform> Options<'a, P> {
    /// The options of the light entry points (`lockmgr_slock`, `lockmgr_xlock`).
    pub(super) const LIGHT: Self = Self::new().adaptive();

    /// Sleeps as long as it takes.
    pub const fn new() -> Self {
        Self {
            sleeps: true,
            sleep_fails: false,
            timeout: Timeout::Never,
            cancellation: None,
            recursion: Recursion::Forbidden,
            spins: false,
            bypass: Bypass::Holders,
        }
    }

    /// Does not sleep, and fails with [`Failure::Busy`] instead (`LK_NOWAIT`). Not for an unlock or
    /// a downgrade.
    pub const fn no_wait(mut self) -> Self {
        self.sleeps = false;
        self
    }

    /// Fails after a sleep, once it has been woken: [`Failure::SleepFail`] (`LK_SLEEPFAIL`). So the
    /// caller locks without a sleep, or learns that the lock has been unlocked. Not for an unlock
    /// or a downgrade. A drain ignores it.
    pub const fn sleep_fail(mut self) -> Self {
        self.sleep_fails = true;
        self
    }

    /// Does not wait beyond this: [`Failure::TimedOut`] (`LK_TIMELOCK`).
    pub const fn timeout(mut self, timeout: Timeout) -> Self {
        self.timeout = timeout;
        self
    }

    /// Gives up when this is cancelled: [`Failure::Interrupted`] (`PCATCH`, where signals do it).
    pub const fn interruptible(mut self, cancellation: &'a Cancellation<P>) -> Self {
        self.cancellation = Some(cancellation);
        self
    }

    /// Lets the exclusive holder lock exclusively again (`LK_CANRECURSE`), whatever the attributes
    /// of the lock say.
    pub const fn can_recurse(mut self) -> Self {
        self.recursion = Recursion::Permitted;
        self
    }

    /// Spins first, as long as a running thread holds it exclusively and no other thread waits
    /// (`LK_ADAPTIVE`). Not with an interlock.
    pub const fn adaptive(mut self) -> Self {
        self.spins = true;
        self
    }

    /// Does not spin. The default.
    pub const fn not_adaptive(mut self) -> Self {
        self.spins = false;
        self
    }

    /// Says whether a share waits for threads that wait to lock exclusively.
    pub const fn bypass(mut self, bypass: Bypass) -> Self {
        self.bypass = bypass;
        self
    }

    /// Whether they suit an operation that never waits.
    pub(super) fn is_patient(&self) -> bool {
        self.sleeps && !self.sleep_fails
    }
}

impl<'a, P: Clock> Options<'a, P> {
    /// The limit of a wait that begins now.
    pub(super) fn limit(&self, of: &Attributes) -> Limit<'a, P> {
        let until_ns = match self.timeout {
            Timeout::OfLock if of.timeout_ns > 0 => Some(P::now_ns().saturating_add(of.timeout_ns)),
            Timeout::OfLock | Timeout::Never => None,
            Timeout::At(ns) => Some(ns),
        };
        Limit { until_ns, cancellation: self.cancellation }
    }
}

/// Another lock that the caller holds, and that is released on its behalf: `LK_INTERLOCK`. It is
/// released exactly once, with every outcome: before the caller sleeps, at the latest on return. It
/// is never locked again. The release should not panic, since the lock that was acquired is lost
/// then.
///
/// A function is an interlock: a call of the function is the release.
pub trait Interlock {
    /// Whether there is one.
    const IS_HELD: bool;

    /// Releases it.
    fn release(self);
}

/// No interlock.
#[derive(Clone, Copy, Debug)]
pub struct NoInterlock;

impl Interlock for NoInterlock {
    const IS_HELD: bool = false;

    fn release(self) {}
}

impl<F: FnOnce()> Interlock for F {
    const IS_HELD: bool = true;

    fn release(self) {
        self();
    }
}

/// An interlock that is released exactly once.
pub(super) struct Held<I: Interlock>(Option<I>);

impl<I: Interlock> Held<I> {
    pub(super) fn new(interlock: I) -> Self {
        Self(Some(interlock))
    }

    /// Whether it has not been released.
    pub(super) fn is_held(&self) -> bool {
        I::IS_HELD && self.0.is_some()
    }

    /// Releases it, if that has not been done.
    pub(super) fn release(&mut self) {
        if let Some(interlock) = self.0.take() {
            interlock.release();
        }
    }
}

impl<I: Interlock> Drop for Held<I> {
    fn drop(&mut self) {
        self.release();
    }
}
