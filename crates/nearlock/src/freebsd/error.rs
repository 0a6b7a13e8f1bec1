//! The reasons why a lock was not locked.

use std::error::Error;
use std::{fmt, io};

use nearlock_collection::freebsd::lockmgr::Failure;
use nearlock_core::parking::GaveUp;

/// The reason why a lock was not locked. FreeBSD's functions return it as an error number.
///
/// ```
/// use nearlock::freebsd::LockError;
///
/// assert_eq!(LockError::Deadlock.errno_name(), "EDEADLK");
/// assert_eq!(LockError::Busy.to_string(), "another thread holds the lock (EBUSY)");
/// let error = std::io::Error::from(LockError::Interrupted);
/// assert_eq!(error.kind(), std::io::ErrorKind::Interrupted);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LockError {
    /// Other threads hold the lock, and the caller must not wait: `EBUSY`.
    Busy,
    /// The caller holds the lock, and would deadlock: `EDEADLK`.
    Deadlock,
    /// The wait was cancelled: `EINTR`.
    Interrupted,
    /// The caller asked to fail after a sleep, and has slept for the lock: `ENOLCK`. Only a
    /// [`LockMgr`](super::LockMgr) returns it.
    SleepFail,
    /// The time has passed: `EWOULDBLOCK`.
    TimedOut,
}

impl LockError {
    /// Returns the name of the error number that FreeBSD returns.
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
            LockError::Busy => "another thread holds the lock",
            LockError::Deadlock => "the caller holds the lock already",
            LockError::Interrupted => "the wait for the lock was interrupted",
            LockError::SleepFail => "the caller asked to fail after a wait, and has waited",
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

/// The kind is that of the error number on this system.
impl From<LockError> for io::Error {
    fn from(error: LockError) -> Self {
        let kind = match error {
            LockError::Busy => io::ErrorKind::ResourceBusy,
            LockError::Deadlock => io::ErrorKind::Deadlock,
            LockError::Interrupted => io::ErrorKind::Interrupted,
            // There is no kind for this error.
            LockError::SleepFail => io::ErrorKind::Other,
            LockError::TimedOut => io::ErrorKind::WouldBlock,
        };
        Self::new(kind, error)
    }
}
