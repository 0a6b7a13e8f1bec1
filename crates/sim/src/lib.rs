//! A simulator of cache coherence. It runs unchanged lock source on machines that are not at hand.
//!
//! ```text
//! spec        a machine as a file describes it: topology, latencies, parameters of the model
//! machine     Machine: memory, tasks, and the run
//! arena       simulated memory: a fixed layout, so that runs repeat under address randomisation
//! engine      the event loop: tasks ask for lines, lines serve first come, first served
//!   issue       the progress of a task's accesses        service  lines serve their requests
//!   line        the directory's entry of one line        costs    the time that a transfer takes
//!   access      one memory operation                     events   the queue of future events
//!   waiting     waits for a line to change               jitter   random variation of times
//!   parking     the futex                                fences   membarrier
//!   ticks       interrupts by the timer
//!   stores      the store buffer of a task
//! scheduler   which task has which CPU: run queues, turns, idle CPUs, spinning on owners
//! nodes       the queue nodes of the CPUs
//! account     accounts of the time of tasks
//!   marks       regions and waits that tasks mark
//! platform    Sim: the platform that locks are instantiated with
//!   words       its atomics
//! placement   which CPUs the threads run on
//! checker     exclusion, deadlock, livelock, starvation, and the statistics of acquisitions
//! ```
//! Each thread is a coroutine. All of them run on the caller's thread, one at a time, in the order
//! of virtual time. The model has these parts:
//!
//! - A request for a line waits in the line's queue. It takes the line from its holder at the
//!   *grab* and has it at the *done*.
//! - Stores drain from a buffer, in order.
//! - Atomics wait until the buffer is empty (total store order).
//!
//! Capacity misses, prefetchers and the bandwidth of links are not modelled.
//!
//! The same seed gives the same run, in every process.

mod access;
pub mod account;
mod arena;
pub mod checker;
mod costs;
mod engine;
mod events;
mod fences;
mod fill_buffers;
mod issue;
mod jitter;
mod line;
mod machine;
mod nodes;
mod parking;
pub mod placement;
mod platform;
mod scheduler;
mod service;
pub mod spec;
mod stores;
mod task;
mod ticks;
mod waiting;
mod words;

pub use arena::{LINE, Placed};
pub use engine::Counters;
pub use machine::{Machine, Pause};
pub use platform::Sim;
