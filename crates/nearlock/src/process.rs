//! State that all locks of the process share, and properties that a thread may claim.
//!
//! ```
//! use nearlock::linux::CnaLock;
//! use nearlock::process::{LockEvent, Setting, events, set_numa_node, set_setting};
//!
//! // For all CNA locks: waiters of other NUMA nodes wait for at most 0.1 ms at a time.
//! set_setting(Setting::CnaThresholdNs, 100_000).expect("within its limits");
//!
//! let lock = CnaLock::new(0);
//! std::thread::scope(|scope| {
//!     for thread in 0..4 {
//!         let lock = &lock;
//!         scope.spawn(move || {
//!             set_numa_node(Some(thread % 2)); // whichever it runs on
//!             for _ in 0..100 {
//!                 *lock.lock() += 1;
//!             }
//!         });
//!     }
//! });
//! assert_eq!(*lock.lock(), 400);
//! println!("{} acquisitions had to wait", events()[LockEvent::Slowpath as usize]);
//! ```

pub use nearlock_core::events::LockEvent;
pub use nearlock_core::platform::NUMA_NODES_MAX;
pub use nearlock_core::schedule::ThreadId;
pub use nearlock_core::settings::{Setting, SettingInfo};
pub use nearlock_os::{
    OutOfRange, TimeSlices, events, register_membarrier, register_thread, set_numa_node, set_setting,
    set_time_slices, setting, thread_slots,
};

#[cfg(feature = "collection")]
pub use crate::pool::queue_nodes;

use nearlock_core::schedule::Schedule;
use nearlock_os::Os;

/// Returns the id by which locks that know their owner name the calling thread. It is unique among
/// the threads that are alive. After the thread has ended, a new thread may get it.
pub fn thread_id() -> ThreadId {
    <Os>::thread_id()
}
