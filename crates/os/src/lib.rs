//! The platform of nearlock's locks for programs on an operating system.
//!
//! | what | where |
//! |---|---|
//! | [`Os`] | the platform: the machine's words, and every capability that a lock may ask for |
//! | [`SpinThenYield`], [`Spin`] | how a waiting thread passes the time |
//! | [`register_thread`] | gives the calling thread its queue nodes ahead of time |
//! | [`set_numa_node`] | makes the calling thread claim another NUMA node |
//! | [`node_source`] | how the NUMA node of a thread that claims none is found |
//! | [`set_setting`], [`setting`] | settings of the locks |
//! | [`switches`] | switches of the locks that a laboratory runs |
//! | [`events`], [`events_of_slot`] | what the slow paths have counted |
//! | [`thread_slots`] | for how many threads queue nodes are kept |
//! | [`Parker`] | a parking place for one thread |
//! | [`register_membarrier`] | prepares cheap fences ahead of time |
//! | [`set_time_slices`] | lets threads that hold a lock ask for a longer time slice |
//! | [`pause_ns`] | what one turn of a spin loop costs |
//! | [`futex`], [`sched_yield`] | what the system offers for waiting |
//!
//! Everything belongs to the process: all locks of all types share one table of queue nodes, one of
//! settings and one of counters.
//!
//! Linux is supported with 64-bit pointers, and on 32-bit Arm. Elsewhere everything works, but
//! there is one NUMA node, a futex waits by yielding, and asymmetric fences are ordinary ones.
//!
//! # Signals and fork
//!
//! A signal handler may use locks. In one thread, up to
//! [`NodeId::NESTING`](nearlock_core::platform::NodeId::NESTING) slow paths can be nested; a deeper
//! one waits without a place in the queue. A thread whose handlers lock should call
//! [`register_thread`] first, because registering maps memory. A handler that interrupts a slow
//! path of a sleeping lock must not wait for a lock: the interrupted code may hold the lock of the
//! queue.
//!
//! A thread keeps one number, [`thread_id`](nearlock_core::schedule::Schedule::thread_id), as long
//! as it lives. It has this number in its last destructors and in a child made by `fork` too. So
//! the child may continue to use locks, and may unlock the locks that its thread held. This does
//! not apply to locks that other threads of the parent held, waited for, or were about to unlock at
//! the fork. A signal handler that interrupts a lock operation must not fork: that operation may be
//! getting queue nodes for the thread, and the child would lend them twice. A handler of
//! `pthread_atfork` empties the queues of sleepers in the child. It also frees the queue nodes of
//! the threads that the child does not have; nodes that were in use stay taken. A child made by
//! other means (`vfork`, `_Fork`, `clone`) must not lock before it calls `exec`.

mod asleep;
mod chains;
#[cfg(any(test, not(all(target_os = "linux", any(target_pointer_width = "64", target_arch = "arm")))))]
mod fallback;
mod fences;
pub mod futex;
#[cfg(all(target_os = "linux", any(target_pointer_width = "64", target_arch = "arm")))]
mod linux;
mod local;
mod numa;
mod os;
mod parker;
mod pause;
mod platform;
mod quota;
mod random;
mod ranges;
mod readers;
mod settings;
mod shortage;
mod slots;
mod start;
pub mod switches;
mod text;
mod thread;
mod time_slice;
mod wait;
mod work;

#[cfg(not(all(target_os = "linux", any(target_pointer_width = "64", target_arch = "arm"))))]
use fallback as sys;
#[cfg(all(target_os = "linux", any(target_pointer_width = "64", target_arch = "arm")))]
use linux as sys;

pub use fences::{membarriers, register_membarrier};
pub use nearlock_core::native::Spin;
pub use numa::{NodeSource, machine_node_source, node_source, set_numa_node};
pub use os::Os;
pub use parker::Parker;
pub use pause::pause_ns;
pub use quota::CpuQuota;
pub use ranges::ranges;
pub use settings::{OutOfRange, set_setting, setting};
pub use sys::{affinity, sched_yield};
pub use thread::{events, events_of_slot, register_thread, thread_slots};
pub use time_slice::{TimeSlices, begin_section, end_section, set_time_slices};
pub use wait::SpinThenYield;

/// The limit for cache levels and for the indices of a CPU's caches: both are below this number. No
/// machine has so many.
pub const CACHES_MAX: u32 = 16;
