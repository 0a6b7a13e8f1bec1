//! How threads sleep and are woken.
//!
//! | module | contents |
//! |---|---|
//! | [`parker`] | a token that wakes the thread it belongs to |
//! | [`waiter`] | the record of a thread that sleeps in the queue of a lock |
//! | [`wait_list`] | the queue, and waiters that have been taken out of it |
//! | [`wait_lock`], [`queue_lock`] | the lock of the queue |
//! | [`cancellation`], [`limit`] | how a wait ends without the lock |
//! | [`timed`] | the interface of locks with such waits |
//! | [`chain`], [`room`] | queues in a table of the platform, found by a lock's address |
//!
//! Every family of locks builds on these modules. They do not depend on any family.

pub mod cancellation;
pub mod chain;
pub mod limit;
pub mod parker;
pub mod queue_lock;
pub mod room;
pub mod timed;
pub mod wait_list;
pub mod wait_lock;
pub mod waiter;

pub use cancellation::Cancellation;
pub use limit::{GaveUp, Limit};
pub use parker::Parker;
pub use queue_lock::QueueLock;
pub use room::Room;
pub use timed::{RawTimedLock, RawTimedRwLock};
pub use wait_list::{WaitList, WakeList};
pub use wait_lock::{WaitLock, locked};
pub use waiter::{Call, Signal, SleepState, Waiter};
