//! Finds deadlocks, with the functions of parking_lot. `nearlock::deadlock` says what is found.
//!
//! Threads of a deadlock go on waiting after they have been reported.
//!
//! ```
//! use std::{thread, time::Duration};
//! use parking_lot::deadlock::check_deadlock;
//!
//! thread::spawn(|| loop {
//!     thread::sleep(Duration::from_secs(10));
//!     for threads in check_deadlock() {
//!         for thread in &threads {
//!             println!("{:?} waits at\n{:?}", thread.thread_id(), thread.backtrace());
//!         }
//!     }
//! });
//! ```

pub use nearlock::deadlock::{DeadlockedThread, check_deadlock};
