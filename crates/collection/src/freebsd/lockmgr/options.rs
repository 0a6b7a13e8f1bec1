//! What is asked of a lockmgr, how, and why it was not done.

use core::fmt;

use super::super::recursion::Recursion;
use crate::parking::{Cancellation, GaveUp, Limit};
use crate::platform::{Clock, Platform};

/// What is asked of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// To hold it together with others that do (`LK_SHARED`). [`Failure::Deadlock`] if the caller
    /// holds it exclusively.
    Shared,
    /// To hold it alone (`LK_EXCLUSIVE`). The holder holds it once more, if that is permitted; if
    /// not, [`Failure::Busy`] where it must not sleep, and a mistake otherwise:
    /// [`Failure::Deadlock`].
    Exclusive,
    /// To make the caller's share an exclusive hold (`LK_UPGRADE`): at once, past all that wait, if
    /// nobody else shares. If others do, the share is released first, and others may hold the
    /// lock exclusively in between. **With an error the caller holds nothing.**
    Upgrade,
    /// The same, if nobody else shares (`LK_TRYUPGRADE`). If others do, [`Failure::Busy`], and the
    /// caller has its share as before.
    TryUpgrade,
    /// To make the exclusive hold a share, with nobody in between (`LK_DOWNGRADE`). Sharers that
    /// sleep stay asleep until a release. Never fails.
    Downgrade,
    /// To release what the caller holds, shared or exclusive, or what somebody has disowned
    /// (`LK_RELEASE`). Never fails.
    Unlock,
    /// To hold it alone as soon as nobody holds it and nobody sleeps for it (`LK_DRAIN`): those
    /// that do are woken first, and then compete with it. Heeds no limit. Who frees the lock
    /// afterwards knows by other means that nobody comes any more.
    Drain,
}

/// Why the lock was not acquired, with the name of the kernel's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It would have had to wait, and must not; or others share what is to be upgraded (`EBUSY`).
    Busy,
    /// It has waited, and was to fail after that (`ENOLCK`).
    SleepFail,
    /// The time has passed (`EWOULDBLOCK`).
    TimedOut,
    /// The wait was cancelled (`EINTR`; the kernel has `ERESTART` too, for signals after which a
    /// system call begins anew).
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
            Self::SleepFail => "the caller has waited, and was to fail after that",
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
    /// Who asks for a share has it exclusively. It is neither upgraded nor downgraded then: both do
    /// nothing.
    Disabled,
}

/// What a lock is for its life: the flags of `lockinit`. (Those for `WITNESS` and lock profiling
/// have nothing to say here; priorities neither.)
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

    /// The exclusive holder may acquire it again (`LK_CANRECURSE`), 2^32 - 1 times.
    pub const fn can_recurse(mut self) -> Self {
        self.recursion = Recursion::Permitted;
        self
    }

    /// What is exclusive is not acquired again, but by whoever says so. As it is at first.
    pub const fn cannot_recurse(mut self) -> Self {
        self.recursion = Recursion::Forbidden;
        self
    }

    /// How long those wait at most, in ns, who ask for [`Timeout::OfLock`]. 0: for ever.
    pub const fn timeout_ns(mut self, ns: u64) -> Self {
        self.timeout_ns = ns;
        self
    }
}

/// Until when a wait lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timeout {
    /// For ever.
    #[default]
    Never,
    /// As long as is an [attribute](Attributes::timeout_ns) of the lock, from the beginning of the
    /// wait.
    OfLock,
    /// Until this moment of the platform's clock, in ns.
    At(u64),
}

/// Which sharers do not wait for those that wait to hold it exclusively.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bypass {
    /// Those that hold any lock of this kind shared: they may be who the others wait for.
    #[default]
    Holders,
    /// None (`LK_NODDLKTREAT`): the caller says that it holds none of them.
    Nobody,
    /// The caller, whatever it holds (the thread flag `TDP_DEADLKTREAT`).
    Caller,
}

/// How something is asked for. A lock that is free, and that nobody waits for, is acquired whatever
/// they say. If somebody may, who must not sleep and would have it exclusively is told that it is
/// busy, though it is free: only the chain tells, and it does not lock that.
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
    /// Those of the light entry points (`lockmgr_slock`, `lockmgr_xlock`).
    pub(super) const LIGHT: Self = Self::new().adaptive();

    /// To sleep as long as it takes.
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

    /// Not to sleep: [`Failure::Busy`] (`LK_NOWAIT`). Neither for a release nor for a downgrade.
    pub const fn no_wait(mut self) -> Self {
        self.sleeps = false;
        self
    }

    /// To fail after a sleep, once it has been woken: [`Failure::SleepFail`] (`LK_SLEEPFAIL`). So
    /// it acquires what it need not sleep for, or learns that the lock has been released.
    /// Neither for a release nor for a downgrade; a drain does not heed it.
    pub const fn sleep_fail(mut self) -> Self {
        self.sleep_fails = true;
        self
    }

    /// Not to wait beyond this: [`Failure::TimedOut`] (`LK_TIMELOCK`).
    pub const fn timeout(mut self, timeout: Timeout) -> Self {
        self.timeout = timeout;
        self
    }

    /// To wait until this is cancelled: [`Failure::Interrupted`] (`PCATCH`, where signals do it).
    pub const fn interruptible(mut self, cancellation: &'a Cancellation<P>) -> Self {
        self.cancellation = Some(cancellation);
        self
    }

    /// To acquire exclusively again what one holds so (`LK_CANRECURSE`), whatever the lock says of
    /// it.
    pub const fn can_recurse(mut self) -> Self {
        self.recursion = Recursion::Permitted;
        self
    }

    /// To spin first, as long as a thread that runs holds it exclusively and nobody else waits
    /// (`LK_ADAPTIVE`). Not with an interlock.
    pub const fn adaptive(mut self) -> Self {
        self.spins = true;
        self
    }

    /// Not to spin: as at first.
    pub const fn not_adaptive(mut self) -> Self {
        self.spins = false;
        self
    }

    /// Whether a share waits for those that wait to hold it exclusively.
    pub const fn bypass(mut self, bypass: Bypass) -> Self {
        self.bypass = bypass;
        self
    }

    /// Whether it is for an operation that never waits.
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
/// released exactly once, before the caller sleeps, at the latest on return, with every outcome;
/// and never taken again. It should not panic: what was acquired is lost then.
///
/// A function is one: what it does is the release.
pub trait Interlock {
    /// Whether there is one.
    const IS_HELD: bool;

    /// Releases it.
    fn release(self);
}

/// None.
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

/// What is to be released exactly once.
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
