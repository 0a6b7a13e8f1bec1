//! Initialisation that is done once, best before the process has a second thread.
//!
//! ```text
//! word  0 not done | 1 done
//! ```
//! An entry of `.init_array` makes the dynamic linker, or the start-up code of a static binary,
//! call [`begin`] before `main`. If a library is loaded later, the call is made when it is loaded.
//! If there is no such entry, or it has not run yet, the first slow path of the process calls
//! [`begin`]. Then the registration with membarrier takes milliseconds if there are several
//! threads, because the kernel waits for a grace period.
//!
//! `tests/start` checks this for a binary, a shared object, and a static library in a C program.
//!
//! It also writes to the pages of the words that the first lock will write: that of the fences, and
//! the attention words. Otherwise the first lock of the process would wait for page faults.
//!
//! Whether fences rely on membarrier is not decided here, but by the first fence (`fences.rs`),
//! because a program may install a filter of system calls in `main`.
//!
//! A lock works without the key and without membarrier. Each path that depends on the handler of
//! `fork` calls [`begin`] first. These are the lease of a slot, and the first use of a thread's
//! number.
//!
//! A library that is unloaded removes the key and the handler. The queue nodes of its threads stay
//! mapped, because another thread could still read one. A load, a lock operation and an unload
//! leave about 44 KB.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Release};

use crate::fences::kind;
use crate::{chains, sys, thread};

#[cfg(all(target_os = "linux", any(target_pointer_width = "64", target_arch = "arm")))]
mod entries;
#[cfg(not(all(target_os = "linux", any(target_pointer_width = "64", target_arch = "arm"))))]
mod entries {
    //! For systems on which no such entry is known.

    pub fn keep() {}
}

static DONE: AtomicBool = AtomicBool::new(false);

/// Does the initialisation, unless it has been done.
#[cold]
#[inline(never)]
pub fn begin() {
    entries::keep();
    // Ordering: Acquire, pairs with the Release below: the handler is installed before a fork that
    // follows.
    if DONE.load(Acquire) {
        return;
    }
    thread::watch_ends();
    sys::at_fork(after_fork);
    sys::register_membarrier();
    kind::map();
    chains::map_attention();
    // Last, so that a thread that calls this in the meantime does not continue without the handler.
    // The handler is then installed twice: its second call in a child finds nothing left to do.
    // Ordering: Release, as above.
    DONE.store(true, Release);
}

/// Runs in the child, which has one thread: the one that has forked. The other threads are gone,
/// together with the work that they were doing.
extern "C" fn after_fork() {
    // SAFETY: the child has one thread. The program is responsible for not forking in a slow path.
    unsafe { chains::forget_all() };
    thread::after_fork();
}
