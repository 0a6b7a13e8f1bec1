//! The functions of Linux that the platform uses.

mod c;
mod file;
mod futex;
mod membarrier;
mod nodes;
#[allow(non_upper_case_globals, reason = "named as elsewhere")]
mod numbers;
mod parallelism;
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod rseq;
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
mod rseq {
    //! For targets on which the thread pointer is not used.

    pub fn offset() -> Option<i32> {
        None
    }

    pub fn slice_control() -> Option<*mut u8> {
        None
    }

    pub fn slice_yield() {}

    /// # Safety
    ///
    /// None.
    pub unsafe fn node(_offset: i32) -> Option<u32> {
        None
    }
}
mod thread;

use core::mem::MaybeUninit;
use std::alloc::Layout;

pub use futex::{futex_wait, futex_wake};
pub use membarrier::{membarrier, register_membarrier};
pub use nodes::{
    KNOWS_NODES, affinity, last_level_cache, numa_node, numa_node_by_rseq, numa_nodes, processor,
    several_last_level_caches,
};
pub use parallelism::{processors_of_process, processors_of_quota};
pub use rseq::{offset as rseq_offset, slice_control, slice_yield as rseq_slice_yield};
pub use thread::{TELLS_ENDS, at_fork, at_thread_exit, delete_exit_key, exit_key, has_ended, thread_id};

/// The time of the monotonic clock.
#[inline]
pub fn now_ns() -> u64 {
    let mut now = MaybeUninit::<c::timespec>::uninit();
    // SAFETY: `now` is writable and of the right type.
    let failed = unsafe { c::clock_gettime(c::CLOCK_MONOTONIC, now.as_mut_ptr()) };
    debug_assert_eq!(failed, 0);
    // SAFETY: the clock exists on every Linux, so the call has filled `now` in.
    let now = unsafe { now.assume_init() };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Prints the message and aborts the process. The process cannot continue, and nothing may unwind.
#[cold]
fn die(message: &[u8]) -> ! {
    // SAFETY: the message is readable, and its length is passed.
    unsafe { c::write(c::STDERR_FILENO, message.as_ptr().cast(), message.len()) };
    std::process::abort();
}

/// Yields the processor to other threads.
#[inline]
pub fn sched_yield() {
    // SAFETY: has no conditions.
    unsafe { c::sched_yield() };
}

/// The number of processors that are online, at least 1. Asks the system, which takes some
/// microseconds.
pub fn processors() -> u32 {
    // SAFETY: has no conditions.
    let count = unsafe { c::sysconf(c::_SC_NPROCESSORS_ONLN) };
    u32::try_from(count).unwrap_or(1).max(1)
}

/// Zeroed memory that may be used forever, or null. It comes straight from the kernel, because the
/// program's allocator may use our locks.
pub fn zeroed(layout: Layout) -> *mut u8 {
    assert!(layout.align() <= 4096, "pages are not aligned any better");
    c::map_zeroed(layout.size()).cast()
}

/// Gives back what [`zeroed`] gave.
///
/// # Safety
///
/// `memory` is not null, came from `zeroed` with this `layout`, and no reference to it is left.
pub unsafe fn give_back(memory: *mut u8, layout: Layout) {
    // SAFETY: a mapping of ours of this size, by the condition of this function.
    unsafe { c::munmap(memory.cast(), layout.size()) };
}
