//! What Linux offers.

use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU16, AtomicU32};
use core::time::Duration;
use std::alloc::Layout;
use std::io;

use nearlock_core::platform::NUMA_NODES_MAX;

use crate::futex::WaitResult;

/// The monotonic clock.
#[inline]
pub fn now_ns() -> u64 {
    let mut now = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: `now` is writable and of the right type.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, now.as_mut_ptr()) };
    debug_assert_eq!(failed, 0);
    // SAFETY: the clock exists on every Linux, so the call has filled `now` in.
    let now = unsafe { now.assume_init() };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Processors whose NUMA node is remembered. The kernel of x86-64 has at most 8192; of one beyond, the node
/// is asked for each time. 0 would ask each time for all.
const CPUS_MAX: usize = 8192;

/// By processor: its NUMA node plus one, or 0 as long as it is not known. `sched_getcpu` reads the thread's
/// restartable-sequences area (1 ns, glibc 2.35), whereas the system call costs 100 ns.
static NUMA_NODES: [AtomicU16; CPUS_MAX] = [const { AtomicU16::new(0) }; CPUS_MAX];

/// The NUMA node of the processor that the caller runs on.
#[inline]
pub fn numa_node() -> u32 {
    // SAFETY: has no conditions.
    let cpu = unsafe { libc::sched_getcpu() };
    // A failure, -1, is beyond all processors.
    match NUMA_NODES.get(cpu as usize).map_or(0, |numa_node| numa_node.load(Relaxed)) {
        0 => ask_numa_node(),
        known => u32::from(known) - 1,
    }
}

/// Asks the kernel, and remembers. A kernel that does not tell (as in some sandboxes) has one node.
#[cold]
fn ask_numa_node() -> u32 {
    let (mut cpu, mut numa_node) = (u32::MAX, 0u32);
    // SAFETY: both pointers are writable and of the right type; the third is unused since Linux 2.6.24.
    unsafe {
        libc::syscall(libc::SYS_getcpu, &raw mut cpu, &raw mut numa_node, ptr::null_mut::<libc::c_void>())
    };
    let numa_node = numa_node.min(NUMA_NODES_MAX - 1);
    if let Some(known) = NUMA_NODES.get(cpu as usize) {
        known.store((numa_node + 1) as u16, Relaxed);
    }
    numa_node
}

const _: () = assert!(NUMA_NODES_MAX <= u16::MAX as u32);

/// Offers the processor to other threads.
#[inline]
pub fn sched_yield() {
    // SAFETY: has no conditions.
    unsafe { libc::sched_yield() };
}

/// See [`futex::wait`](crate::futex::wait).
pub fn futex_wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> WaitResult {
    // More seconds than the kernel can count are for ever.
    let timeout = timeout.and_then(|timeout| {
        Some(libc::timespec {
            tv_sec: i64::try_from(timeout.as_secs()).ok()?,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        })
    });
    // SAFETY:
    // * the word is a live, aligned 32-bit word;
    // * the timeout is null or a live timespec (of the kernel's layout, where pointers have 64 bits).
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            timeout.as_ref().map_or(ptr::null(), ptr::from_ref),
        )
    };
    if result == 0 {
        return WaitResult::Woken;
    }
    match io::Error::last_os_error().raw_os_error() {
        Some(libc::EAGAIN) => WaitResult::Mismatch,
        Some(libc::ETIMEDOUT) => WaitResult::TimedOut,
        error => {
            debug_assert_eq!(error, Some(libc::EINTR), "futex wait");
            WaitResult::Interrupted
        }
    }
}

/// See [`futex::wake`](crate::futex::wake).
pub fn futex_wake(word: *const AtomicU32, n: u32) -> u32 {
    // The kernel takes the number as signed.
    let n = i32::try_from(n).unwrap_or(i32::MAX);
    // SAFETY: a private wake-up looks at the address alone, and reads nothing there.
    let woken =
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, n) };
    debug_assert!(woken >= 0, "futex wake");
    u32::try_from(woken).unwrap_or(0)
}

/// Zeroed memory that may be used for ever, or null. Straight from the kernel: the program's allocator may
/// use our locks.
pub fn zeroed(layout: Layout) -> *mut u8 {
    assert!(layout.align() <= 4096, "pages are not aligned any better");
    // SAFETY: a new anonymous mapping touches no memory in use.
    let memory = unsafe {
        libc::mmap(
            ptr::null_mut(),
            layout.size(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED { ptr::null_mut() } else { memory.cast() }
}

/// Gives back what [`zeroed`] gave.
///
/// # Safety
///
/// `memory` is not null, came from `zeroed` with this `layout`, and nobody refers to it.
pub unsafe fn give_back(memory: *mut u8, layout: Layout) {
    // SAFETY: a mapping of ours of this size, by our own condition.
    unsafe { libc::munmap(memory.cast(), layout.size()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore)] // asks the kernel
    fn the_remembered_node_is_the_one_asked_for() {
        // On a machine with several nodes the thread may move in between, so it is given some chances.
        assert!((0..1000).any(|_| ask_numa_node() == numa_node()));
    }
}
