//! Waiters of other threads, for unit tests.

use std::boxed::Box;

use super::lock_chain;
use crate::parking::chain::Queue;
use crate::parking::{Limit, Signal, Waiter};
use crate::testing::OneThread;

/// Puts a waiter of another thread into a queue of the lock.
pub fn sleeper_at<L>(lock: &L, queue: Queue) -> &'static Waiter<OneThread> {
    let waiter = Box::leak(Box::default());
    // SAFETY: the waiter lives for ever.
    unsafe { lock_chain::<OneThread, _>(lock).push(queue, waiter) };
    waiter
}

/// Whether an unlock has dequeued the waiter, and woken it.
pub fn is_awake(waiter: &Waiter<OneThread>) -> bool {
    waiter.park_within(&Limit::until(0)) == Ok(Signal::Granted)
}
