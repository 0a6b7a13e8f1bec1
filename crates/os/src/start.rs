//! What is done once, best before the process has a second thread.
//!
//! ```text
//! word  0 not begun | 1 begun
//! ```
//! An entry of `.init_array` has the dynamic linker, or the start-up code of a static binary, call
//! [`begin`] before `main`; of a library that is loaded later, when it is loaded. Where there is no
//! such entry, or it has not run yet, the first slow path of the process does it: then membarrier's
//! registration takes milliseconds if there are several threads, as the kernel waits for a grace
//! period.
//!
//! `tests/start` shows it of a binary, a shared object, and a static library in a C program.
//!
//! A lock works before any of this is done: until then fences are strong, and a slot is known to be
//! free when the kernel does not know its thread any more.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use crate::{chains, fences, sys, thread};

static BEGUN: AtomicBool = AtomicBool::new(false);

/// Has the system call [`begin`] at start-up.
#[cfg(all(target_os = "linux", not(miri)))]
#[used]
// SAFETY: the section is an array of pointers to functions that are called once each. The number
// has it come before initialisers without one, which may start threads, and after those of the C
// library.
#[unsafe(link_section = ".init_array.00101")]
static AT_START: extern "C" fn() = {
    extern "C" fn at_start() {
        begin();
    }
    at_start
};

/// Has the system call this when the library is unloaded, or the process ends: threads that end
/// later would call what is not there any more. (The C library itself takes the handler of `fork`
/// off the list.)
#[cfg(all(target_os = "linux", not(miri)))]
#[used]
// SAFETY: as above, of functions that are called at the end.
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = {
    extern "C" fn at_end() {
        sys::delete_exit_key();
    }
    at_end
};

/// Does it, unless it has been done.
#[cold]
#[inline(never)]
pub fn begin() {
    // References to the entries, so that a linker that takes from an archive what is referred to
    // takes them.
    #[cfg(all(target_os = "linux", not(miri)))]
    core::hint::black_box((&AT_START, &AT_END));
    // Relaxed: a second call does what the first is about to do, or does nothing.
    if BEGUN.swap(true, Relaxed) {
        return;
    }
    thread::watch_ends();
    sys::at_fork(after_fork);
    fences::register_membarrier();
}

/// In the child, which has one thread: the one that has forked. The others are gone, with what they
/// were at.
extern "C" fn after_fork() {
    // SAFETY: the child has one thread. That it has not forked in a slow path is its own to see to.
    unsafe { chains::forget_all() };
    thread::after_fork();
}
