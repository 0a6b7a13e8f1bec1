//! Condition variables: threads that wait for what other threads do under a mutex.
//!
//! | file | contents |
//! |---|---|
//! | `case.rs` | the list of cases |
//! | `monitor.rs` | data, the lock that protects them, and condition variables |
//! | `ping_pong.rs`, `queue.rs`, `broadcast.rs` | the threads of the cases |
//!
//! A run ends through the condition variables that it measures. A thread that sees the end of the
//! run says so under the lock, and notifies all. So a lost notification shows as a hang.

mod broadcast;
mod case;
mod monitor;
mod near;
mod ping_pong;
mod queue;

use std::time::Duration;

use nearlock_core::native::Wait;
use nearlock_core::raw::RawLock;

use super::crew::Members;
use super::sample::Outcome;
pub use case::{CONDVAR_CASES, CondvarCase};
pub(super) use case::{Kind, Place};

/// A lock that has a condition variable. All bits of a condition variable's default are its initial
/// state, so it may be moved until its first use.
///
/// # Safety
///
/// A wait releases the lock, and the caller holds it again when the wait returns.
pub(super) unsafe trait WithCondvar: RawLock {
    /// The condition variable.
    type Condvar: Default + Send + Sync + 'static;

    /// Releases the lock, waits for a notification, and locks again. May return without a
    /// notification.
    ///
    /// # Safety
    ///
    /// The caller holds the lock with this node. All waits for the condition variable are with this
    /// lock, and it stays in place.
    unsafe fn wait(&self, node: &Self::Node, condvar: &Self::Condvar);

    /// Notifies one thread that waits.
    fn notify_one(condvar: &Self::Condvar);

    /// Notifies all threads that wait.
    fn notify_all(condvar: &Self::Condvar);
}

/// One run of one lock in a case.
pub fn measure<W: Wait, L: WithCondvar>(case: &CondvarCase, members: Members, window: Duration) -> Outcome {
    match case.kind {
        Kind::PingPong(when, _) => ping_pong::measure::<W, L>(members, when, window),
        Kind::Queue(queue) => queue::measure::<W, L>(queue, window),
        Kind::Broadcast => broadcast::measure::<W, L>(members, window),
    }
}

#[cfg(test)]
mod tests;
