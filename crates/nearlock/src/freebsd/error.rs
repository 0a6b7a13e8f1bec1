//! Why a lock was not acquired.

use std::error::Error;
use std::{fmt, io};

use nearlock_collection::freebsd::lockmgr::Failure;
use nearlock_core::parking::GaveUp;

/// Why a lock was not acquired: what FreeBSD's functions return as a number.
///
/// ```
/// use nearlock::freebsd::LockError;
///
/// assert_eq!(LockError::Deadlock.errno_name(), "EDEADLK");
/// assert_eq!(LockError::Busy.to_string(), "the lock is held by another (EBUSY)");
/// let error = std::io::Error::from(LockError::Interrupted);
/// assert_eq!(error.kind(), std::io::ErrorKind::Interrupted);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LockError {
    /// Others hold it, and the caller does not want to wait: `EBUSY`.
    Busy,
    /// The caller holds it, so that it would wait for itself: `EDEADLK`.
    Deadlock,
    /// Somebody has ended the wait: `EINTR`.
    Interrupted,
    /// The caller has slept for it, and was to fail after that: `ENOLCK`. Only of a
    /// [`LockMgr`](super::LockMgr), if asked for.
    SleepFail,
    /// The time has passed: `EWOULDBLOCK`.
    TimedOut,
}

impl LockError {
    /// The name of the number that FreeBSD returns.
    pub const fn errno_name(self) -> &'static str {
        match self {
            LockError::Busy => "EBUSY",
            LockError::Deadlock => "EDEADLK",
            LockError::Interrupted => "EINTR",
            LockError::SleepFail => "ENOLCK",
            LockError::TimedOut => "EWOULDBLOCK",
        }
    }

    const fn says(self) -> &'static str {
        match self {
            LockError::Busy => "the lock is held by another",
            LockError::Deadlock => "the caller holds the lock already",
            LockError::Interrupted => "the wait for the lock was interrupted",
            LockError::SleepFail => "the caller has waited for the lock, and was to fail then",
            LockError::TimedOut => "the time to wait for the lock has passed",
        }
    }
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.says(), self.errno_name())
    }
}

impl Error for LockError {}

impl From<GaveUp> for LockError {
    fn from(why: GaveUp) -> Self {
        match why {
            GaveUp::TimedOut => LockError::TimedOut,
            GaveUp::Cancelled => LockError::Interrupted,
        }
    }
}

impl From<Failure> for LockError {
    fn from(why: Failure) -> Self {
        match why {
            Failure::Busy => LockError::Busy,
            Failure::SleepFail => LockError::SleepFail,
            Failure::TimedOut => LockError::TimedOut,
            Failure::Interrupted => LockError::Interrupted,
            Failure::Deadlock => LockError::Deadlock,
        }
    }
}

/// Of the kind that the number has on this system.
impl From<LockError> for io::Error {
    fn from(error: LockError) -> Self {
        let kind = match error {
            LockError::Busy => io::ErrorKind::ResourceBusy,
            LockError::Deadlock => io::ErrorKind::Deadlock,
            LockError::Interrupted => io::ErrorKind::Interrupted,
            // No kind of its own.
            LockError::SleepFail => io::ErrorKind::Other,
            LockError::TimedOut => io::ErrorKind::WouldBlock,
        };
        Self::new(kind, error)
    }
}
