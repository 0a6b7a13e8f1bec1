//! What is done once, best before the process has a second thread.
//!
//! ```text
//! word  0 not done | 1 done
//! ```
//! An entry of `.init_array` has the dynamic linker, or the start-up code of a static binary, call
//! [`begin`] before `main`; of a library that is loaded later, when it is loaded. Where there is no
//! such entry, or it has not run yet, the first slow path of the process does it: then membarrier's
//! registration takes milliseconds if there are several threads, as the kernel waits for a grace
//! period.
//!
//! `tests/start` shows it of a binary, a shared object, and a static library in a C program.
//!
//! Whether fences rely on membarrier is not decided here, but by the first fence (`fences.rs`): a
//! program may install a filter of system calls in `main`.
//!
//! A lock does without the key and membarrier, and each path that depends on the handler of `fork`
//! calls [`begin`] first: where a slot is leased, and where a thread gets its number.
//!
//! A library that is unloaded takes back the key and the handler. The queue nodes of its threads
//! stay mapped, as another thread could look at one: about 44 KB for a load, a lock and an unload.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Release};

use crate::{chains, sys, thread};

#[cfg(all(target_os = "linux", any(target_pointer_width = "64", target_arch = "arm")))]
mod entries;
#[cfg(not(all(target_os = "linux", any(target_pointer_width = "64", target_arch = "arm"))))]
mod entries {
    //! Where no such entry is known.

    pub fn keep() {}
}

static DONE: AtomicBool = AtomicBool::new(false);

/// Does it, unless it has been done.
#[cold]
#[inline(never)]
pub fn begin() {
    entries::keep();
    // Ordering: Acquire, pairs with the Release below: the handler is there for a fork that
    // follows.
    if DONE.load(Acquire) {
        return;
    }
    thread::watch_ends();
    sys::at_fork(after_fork);
    sys::register_membarrier();
    // Last, so that who calls this in the meantime does not go on without the handler. It is there
    // twice then: the second call in a child finds nothing left to do.
    // Ordering: Release, as above.
    DONE.store(true, Release);
}

/// In the child, which has one thread: the one that has forked. The others are gone, with what they
/// were at.
extern "C" fn after_fork() {
    // SAFETY: the child has one thread. That it has not forked in a slow path is its own to see to.
    unsafe { chains::forget_all() };
    thread::after_fork();
}
