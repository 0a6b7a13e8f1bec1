//! What makes a thread sleep and wake.
//!
//! | module | what |
//! |---|---|
//! | [`parker`] | a token that wakes the thread it belongs to |
//! | [`waiter`] | the record of a thread that sleeps in the queue of a lock, and the queue |
//! | [`queue_lock`] | the lock of such a queue |
//! | [`cancellation`] | the end of a wait, called for by another thread |
//! | [`chain`] | queues in a table of the platform, found by a lock's address |
//!
//! Every family of locks builds on these modules. They know none of the families.

pub mod cancellation;
pub mod chain;
pub mod parker;
pub mod queue_lock;
pub mod waiter;

pub use cancellation::Cancellation;
pub use parker::Parker;
pub use queue_lock::QueueLock;
pub use waiter::{Call, Chosen, GaveUp, Limit, Signal, WaitList, WaitLock, Waiter, locked};
