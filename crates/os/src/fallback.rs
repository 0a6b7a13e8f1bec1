//! For systems that nearlock does not know: uses only the standard library.

use core::cell::Cell;
use core::ffi::c_void;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use std::alloc::{self, Layout};
use std::sync::OnceLock;
use std::thread_local;
use std::time::Instant;

use crate::futex::WaitResult;
use crate::thread::RENAMED;

/// Nanoseconds since the first call.
pub fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// A function that is called at the end of a thread, with the thread's own argument.
pub type AtExit = unsafe extern "C" fn(*mut c_void);

/// Whether the system tells that a thread has ended.
pub const TELLS_ENDS: bool = false;

/// A number that no other thread of the process has or has had; below [`RENAMED`].
///
/// After that many threads have asked, the process is aborted. A panic would unwind a waiter that
/// stands in a queue.
pub fn thread_id() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    next_after(&LAST).unwrap_or_else(|| std::process::abort())
}

/// Counts up to the number before [`RENAMED`].
fn next_after(last: &AtomicU32) -> Option<u32> {
    let mut seen = last.load(Relaxed);
    while seen < RENAMED - 1 {
        match last.compare_exchange(seen, seen + 1, Relaxed, Relaxed) {
            Ok(_) => return Some(seen + 1),
            Err(now) => seen = now,
        }
    }
    None
}

/// Not known here.
pub fn has_ended(_thread: u32) -> bool {
    false
}

/// There is no such key.
pub fn exit_key(_at_exit: AtExit) -> Option<u32> {
    None
}

/// Calls `at_exit` when the calling thread's local data is destroyed. Returns false if it has been
/// destroyed already.
pub fn at_thread_exit(at_exit: AtExit, argument: *mut c_void) -> bool {
    struct Call(Cell<Option<(AtExit, *mut c_void)>>);
    impl Drop for Call {
        fn drop(&mut self) {
            if let Some((at_exit, argument)) = self.0.take() {
                // SAFETY: the caller of `at_thread_exit` has promised that this call is allowed.
                unsafe { at_exit(argument) };
            }
        }
    }
    thread_local! {
        static CALL: Call = const { Call(Cell::new(None)) };
    }
    CALL.try_with(|call| call.0.set(Some((at_exit, argument)))).is_ok()
}

/// Processes are not forked.
pub fn at_fork(_in_child: unsafe extern "C" fn()) {}

/// Whether the system tells of NUMA nodes.
pub const KNOWS_NODES: bool = false;

/// Not known.
pub fn processor() -> Option<u32> {
    None
}

/// One NUMA node for all.
pub fn numa_node() -> u32 {
    0
}

/// There is no such area.
pub fn rseq_offset() -> Option<i32> {
    None
}

/// There is no word to ask for longer time slices.
pub fn slice_control() -> Option<*mut u8> {
    None
}

/// Does nothing: no thread has been granted a longer time slice.
pub fn rseq_slice_yield() {}

/// One NUMA node for all.
pub fn numa_node_by_rseq(_offset: i32) -> u32 {
    0
}

/// How many NUMA nodes have processors.
pub fn numa_nodes() -> u32 {
    1
}

/// One cache for all.
pub fn last_level_cache() -> u32 {
    0
}

/// Whether there are at least two last-level caches.
pub fn several_last_level_caches() -> bool {
    false
}

/// There is no membarrier.
pub fn register_membarrier() -> bool {
    false
}

/// Never called: the process is not registered.
pub fn membarrier() {
    unreachable!("the process is not registered");
}

/// No thread is bound to processors.
pub fn affinity() -> Option<impl Iterator<Item = u32>> {
    None::<core::iter::Empty<u32>>
}

/// Yields the processor to other threads.
pub fn sched_yield() {
    std::thread::yield_now();
}

/// Yields once: a wake-up for no reason.
pub fn futex_wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> WaitResult {
    if word.load(Relaxed) != expected {
        return WaitResult::Mismatch;
    }
    match timeout {
        None => std::thread::yield_now(),
        Some(timeout) => {
            // Sleeps in short pieces, since a missed wake-up would otherwise cost the whole
            // timeout.
            const PIECE: Duration = Duration::from_millis(1);
            std::thread::sleep(timeout.min(PIECE));
            if timeout <= PIECE {
                return WaitResult::TimedOut;
            }
        }
    }
    WaitResult::Woken
}

/// Wakes up no thread: no thread sleeps for long.
pub fn futex_wake(_word: *const AtomicU32, _n: u32) -> u32 {
    0
}

/// How many processors there are, at least 1.
pub fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX))
}

/// No thread is bound to processors.
pub fn processors_of_process() -> Option<u32> {
    None
}

/// There is no quota except the one that [`processors`] knows of.
pub fn processors_of_quota() -> u32 {
    processors()
}

/// Zeroed memory that may be used for ever, or null.
pub fn zeroed(layout: Layout) -> *mut u8 {
    assert!(layout.size() != 0);
    // SAFETY: the size is not 0.
    unsafe { alloc::alloc_zeroed(layout) }
}

/// Gives back what [`zeroed`] gave.
///
/// # Safety
///
/// `memory` is not null, came from `zeroed` with this `layout`, and no reference to it is left.
pub unsafe fn give_back(memory: *mut u8, layout: Layout) {
    // SAFETY: by the condition of this function.
    unsafe { alloc::dealloc(memory, layout) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_what_every_lock_needs() {
        let before = now_ns();
        sched_yield();
        assert!(now_ns() >= before);
        assert_eq!((numa_node(), numa_node_by_rseq(0), last_level_cache()), (0, 0, 0));
        assert_eq!(processor(), None);
        assert_eq!((numa_nodes(), several_last_level_caches(), KNOWS_NODES), (1, false, false));
        assert!(processors() > 0 && processors_of_quota() > 0 && processors_of_process().is_none());
        assert_eq!((rseq_offset(), affinity().is_none(), register_membarrier()), (None, true, false));
        assert_eq!((slice_control(), rseq_slice_yield()), (None, ()));
    }

    #[test]
    fn threads_have_different_numbers_and_their_ends_are_reported() {
        static ENDED: AtomicU32 = AtomicU32::new(0);
        unsafe extern "C" fn at_exit(argument: *mut c_void) {
            ENDED.fetch_add(argument.addr() as u32, Relaxed);
        }
        let other = std::thread::spawn(|| {
            assert!(at_thread_exit(at_exit, core::ptr::without_provenance_mut(7)));
            thread_id()
        });
        assert_ne!(other.join().unwrap(), thread_id());
        assert_eq!((ENDED.load(Relaxed), has_ended(1), TELLS_ENDS), (7, false, false));
        assert!(exit_key(at_exit).is_none());
        at_fork({
            extern "C" fn never() {
                unreachable!();
            }
            never
        });
    }

    #[test]
    fn numbers_end_where_those_of_renamed_threads_begin() {
        let last = AtomicU32::new(RENAMED - 3);
        assert_eq!([(); 4].map(|()| next_after(&last)), [Some(RENAMED - 2), Some(RENAMED - 1), None, None]);
    }

    #[test]
    #[should_panic(expected = "not registered")]
    fn a_fence_in_other_threads_is_refused() {
        membarrier();
    }

    #[test]
    fn a_futex_waits_in_turns() {
        let word = AtomicU32::new(0);
        assert_eq!(futex_wait(&word, 1, None), WaitResult::Mismatch);
        assert_eq!(futex_wait(&word, 0, None), WaitResult::Woken);
        assert_eq!(futex_wait(&word, 0, Some(Duration::ZERO)), WaitResult::TimedOut);
        assert_eq!(futex_wait(&word, 0, Some(Duration::MAX)), WaitResult::Woken);
        assert_eq!(futex_wake(&word, 1), 0);
    }

    #[test]
    fn memory_is_zeroed_and_aligned() {
        let layout = Layout::from_size_align(256, 64).unwrap();
        let memory = zeroed(layout);
        assert!(!memory.is_null() && memory.addr().is_multiple_of(64));
        // SAFETY: just allocated with this size and layout, and not used afterwards.
        unsafe {
            assert!(std::slice::from_raw_parts(memory, 256).iter().all(|&byte| byte == 0));
            give_back(memory, layout);
        }
    }
}
