//! Stacks that are used again.
//!
//! loom runs each thread of each execution on a new stack, and unmaps it at the end. That takes
//! three system calls and the faults of three pages, which is two fifths of the time of the models.
//! This module answers these calls for stacks that the calling thread has had before. All other
//! calls go to the kernel.
//!
//! ```text
//!            mmap                mprotect
//!  unknown --------> in use ----------------> in use, guarded
//!                      ^                          |
//!                      | mmap of the same size    | munmap
//!                      +-------- kept <-----------+
//! ```
//! A kept stack has its guard, so `mprotect` has nothing to do. The stack still contains the writes
//! of its former thread.

use core::cell::Cell;
use core::ptr;

use libc::{MAP_ANONYMOUS, MAP_STACK, PROT_NONE, c_int, c_void, off_t, size_t};

/// The number of stacks that a thread knows. An execution has up to six.
const STACKS_MAX: usize = 16;

/// A mapping for a stack that this thread has made.
#[derive(Clone, Copy)]
struct Stack {
    /// Null if there is none.
    at: *mut c_void,
    bytes: size_t,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    InUse,
    Guarded,
    Kept,
}

const NONE: Stack = Stack { at: ptr::null_mut(), bytes: 0, state: State::InUse };

thread_local! {
    static STACKS: [Cell<Stack>; STACKS_MAX] = const { [const { Cell::new(NONE) }; STACKS_MAX] };
}

/// Calls `f` with the first stack for which `is` returns true, and returns the result.
fn with<T>(is: impl Fn(Stack) -> bool, f: impl FnOnce(&Cell<Stack>) -> T) -> Option<T> {
    // Does nothing after the thread's destructors.
    STACKS.try_with(|stacks| stacks.iter().find(|stack| is(stack.get())).map(f)).ok().flatten()
}

/// The result of a system call that returns an address.
fn address(result: libc::c_long) -> *mut c_void {
    ptr::with_exposed_provenance_mut(result as usize)
}

/// Replaces the function of the C library, and does the same.
///
/// # Safety
///
/// As for the function of the C library.
#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(
    at: *mut c_void,
    bytes: size_t,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: off_t,
) -> *mut c_void {
    const OF_STACKS: c_int = MAP_STACK | MAP_ANONYMOUS;
    let is_stack = at.is_null() && flags & OF_STACKS == OF_STACKS;
    let reuse = |stack: &Cell<Stack>| {
        stack.set(Stack { state: State::Guarded, ..stack.get() });
        stack.get().at
    };
    let is_kept = |stack: Stack| is_stack && stack.state == State::Kept && stack.bytes == bytes;
    if let Some(kept) = with(is_kept, reuse) {
        return kept;
    }
    // SAFETY: the caller's.
    let made = address(unsafe { libc::syscall(libc::SYS_mmap, at, bytes, protection, flags, file, offset) });
    if is_stack && made != libc::MAP_FAILED {
        with(|stack| stack.at.is_null(), |stack| stack.set(Stack { at: made, bytes, state: State::InUse }));
    }
    made
}

/// Replaces the function of the C library, and does the same.
///
/// # Safety
///
/// As for the function of the C library.
#[unsafe(no_mangle)]
unsafe extern "C" fn mprotect(at: *mut c_void, bytes: size_t, protection: c_int) -> c_int {
    let is_guard = |stack: Stack| stack.at == at && protection == PROT_NONE;
    if with(|stack| is_guard(stack) && stack.state == State::Guarded, |_| ()).is_some() {
        return 0;
    }
    // SAFETY: the caller's.
    let result = unsafe { libc::syscall(libc::SYS_mprotect, at, bytes, protection) } as c_int;
    if result == 0 {
        with(is_guard, |stack| stack.set(Stack { state: State::Guarded, ..stack.get() }));
    }
    result
}

/// Replaces the function of the C library. It does the same, except that a stack with a guard is
/// kept.
///
/// # Safety
///
/// As for the function of the C library. A stack is unmapped by the thread that has mapped it, as
/// loom does.
#[unsafe(no_mangle)]
unsafe extern "C" fn munmap(at: *mut c_void, bytes: size_t) -> c_int {
    let is_it = |stack: Stack| stack.at == at && !at.is_null();
    let keep = |stack: &Cell<Stack>| {
        let is_kept = stack.get().state == State::Guarded && stack.get().bytes == bytes;
        stack.set(if is_kept { Stack { state: State::Kept, ..stack.get() } } else { NONE });
        is_kept
    };
    if with(is_it, keep) == Some(true) {
        return 0;
    }
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_munmap, at, bytes) as c_int }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 1 << 15;

    fn map() -> *mut u8 {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | MAP_STACK | MAP_ANONYMOUS);
        // SAFETY: a new mapping.
        unsafe { mmap(ptr::null_mut(), BYTES, protection, flags, -1, 0) }.cast()
    }

    #[test]
    fn a_stack_with_a_guard_is_used_again_and_others_are_unmapped() {
        let stack = map();
        // SAFETY: mapped above, with this length; also below.
        unsafe {
            assert_eq!(mprotect(stack.cast(), 4096, PROT_NONE), 0);
            stack.add(4096).write(7);
            assert_eq!(munmap(stack.cast(), BYTES), 0);
            assert_eq!(map(), stack);
            assert_eq!(stack.add(4096).read(), 7, "the same memory");
            assert_eq!(mprotect(stack.cast(), 4096, PROT_NONE), 0);
            let other = map();
            assert_ne!(other, stack);
            other.write(1);
            assert_eq!(munmap(other.cast(), BYTES), 0);
            assert_eq!(libc::madvise(other.cast(), BYTES, libc::MADV_NORMAL), -1, "it is gone");
            assert_eq!(munmap(stack.cast(), BYTES), 0);
        }
    }
}
