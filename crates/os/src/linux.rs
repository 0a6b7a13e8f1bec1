//! The functions of Linux that the platform uses.

mod c;
mod file;
mod membarrier;
mod nodes;
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

use core::ffi::c_long;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::AtomicU32;
use core::time::Duration;
use std::alloc::Layout;
use std::io;

use crate::futex::WaitResult;

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

/// See [`futex::wait`](crate::futex::wait).
pub fn futex_wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> WaitResult {
    /// The time that this system call takes: two longs. `c::timespec` is the type that the C
    /// library takes, and its seconds may be longer on a 32-bit processor. As the timeout is
    /// relative, 31 bits of seconds suffice.
    #[repr(C)]
    struct KernelTime {
        s: c_long,
        ns: c_long,
    }
    // A timeout of more seconds than the kernel can count means no limit.
    let timeout = timeout.and_then(|timeout| {
        Some(KernelTime { s: timeout.as_secs().try_into().ok()?, ns: timeout.subsec_nanos() as c_long })
    });
    // The C library's type for the time, by which Miri knows the argument.
    let limit = timeout.as_ref().map_or(ptr::null(), ptr::from_ref).cast::<c::timespec>();
    // SAFETY:
    // * the word is a live, aligned 32-bit word;
    // * the limit is null or a live time of the kernel's layout.
    let result = unsafe {
        c::syscall(c::SYS_futex, word.as_ptr(), c::FUTEX_WAIT | c::FUTEX_PRIVATE_FLAG, expected, limit)
    };
    if result == 0 {
        return WaitResult::Woken;
    }
    match io::Error::last_os_error().raw_os_error() {
        Some(c::EAGAIN) => WaitResult::Mismatch,
        Some(c::ETIMEDOUT) => WaitResult::TimedOut,
        error => {
            debug_assert_eq!(error, Some(c::EINTR), "futex wait");
            WaitResult::Interrupted
        }
    }
}

/// See [`futex::wake`](crate::futex::wake).
pub fn futex_wake(word: *const AtomicU32, n: u32) -> u32 {
    // The kernel takes a signed number.
    let n = i32::try_from(n).unwrap_or(i32::MAX);
    // The call declares no types, so the word has the type that it has in `futex_wait`.
    let word = word.cast::<u32>().cast_mut();
    // SAFETY: a private wake-up uses only the address, and reads nothing there.
    let woken = unsafe { c::syscall(c::SYS_futex, word, c::FUTEX_WAKE | c::FUTEX_PRIVATE_FLAG, n) };
    // The waiter may have woken up before, and may have freed the word. The kernel then finds no
    // sleeper, but Miri rejects the address.
    let is_freed = || cfg!(miri) && io::Error::last_os_error().raw_os_error() == Some(c::EFAULT);
    debug_assert!(woken >= 0 || is_freed(), "futex wake");
    u32::try_from(woken).unwrap_or(0)
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
