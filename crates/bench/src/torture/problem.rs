//! What a run finds wrong with a lock, and the verdict.

use std::time::Duration;

use serde::Serialize;

/// Misbehaviour of a lock.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// Two threads held the lock at the same time, and not both as readers.
    #[error("exclusion violated: {failures} times another holder of the lock was seen at the same time")]
    Exclusion {
        /// Number of observations.
        failures: u64,
    },
    /// A plain counter that is incremented under the lock is too small.
    #[error("{lost} of {total} increments under the lock were lost")]
    LostUpdates {
        /// Number of lost increments.
        lost: u64,
        /// Number of increments.
        total: u64,
    },
    /// No thread gets the lock.
    #[error("hang: no acquisition for {idle:.1?}; {waiting} of {threads} threads wait for the lock")]
    Hang {
        /// Time without an acquisition.
        idle: Duration,
        /// Number of waiting threads.
        waiting: usize,
        /// Number of threads.
        threads: usize,
    },
    /// No thread gets the lock, because all of them sleep.
    #[error(
        "lost wake-up: no acquisition for {idle:.1?}; no thread has the lock, and all threads that wait for it \
         sleep: {waiting}"
    )]
    LostWakeUp {
        /// Time without an acquisition.
        idle: Duration,
        /// Number of waiting threads.
        waiting: usize,
    },
    /// Waits were to be cancelled, but no wait was cancelled.
    #[error("calm: no wait was cancelled for {idle:.1?}, and {cancelled} of {wanted} before that")]
    Calm {
        /// Time without a cancellation.
        idle: Duration,
        /// Number of waits that were cancelled before.
        cancelled: u64,
        /// Number of waits that were to be cancelled.
        wanted: u64,
    },
    /// The number of notifications differs from the number of waits that ended with a notification.
    #[error(
        "lost: {sent} notifications were sent to threads that waited for the condition, and {returned} waits have \
         ended with one"
    )]
    LostNotifications {
        /// Number of notifications that were sent.
        sent: u64,
        /// Number of waits that report a notification.
        returned: u64,
    },
    /// A quantity that must stay constant has grown.
    #[error("memory: {what} grew from {from} to {to}, though the numbers of threads and locks did not")]
    Growth {
        /// The quantity.
        what: &'static str,
        /// Its value after the warm-up.
        from: String,
        /// Its value at the end.
        to: String,
    },
    /// The lock was not tortured.
    #[error(
        "not tortured: threads of an earlier lock have not ended, and may use other switches; torture it in a \
         separate run"
    )]
    OthersLeftBehind,
    /// A thread panicked.
    #[error("{threads} threads panicked")]
    Panicked {
        /// Number of threads that panicked.
        threads: usize,
    },
}

impl Problem {
    /// Whether there are threads that never end, since they wait for the lock.
    pub(super) fn leaves_threads_behind(&self) -> bool {
        matches!(self, Self::Hang { .. } | Self::LostWakeUp { .. })
    }
}

/// Whether the lock passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// It did.
    Success,
    /// It did not.
    Failure,
}

impl Verdict {
    /// The name, as in locktorture.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Success => "SUCCESS",
            Verdict::Failure => "FAILURE",
        }
    }
}
