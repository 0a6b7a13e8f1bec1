//! Threads as the kernel and the C library know them: their ids, their ends, and fork.

use core::ffi::{c_uint, c_void};
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use super::{c, die};

/// A function that is called at the end of a thread, with the thread's own argument.
pub type AtExit = unsafe extern "C" fn(*mut c_void);

/// Whether the system tells that a thread has ended: see [`has_ended`].
pub const TELLS_ENDS: bool = !cfg!(miri);

/// The kernel's id of the calling thread. Not 0; below 2^22 (the kernel's `PID_MAX_LIMIT`).
///
/// If a filter of system calls refuses the call, this ends the process by a signal. A panic would
/// unwind a waiter that stands in a queue. The signal may be another than SIGABRT, because `abort`
/// may need the same call.
pub fn thread_id() -> u32 {
    // SAFETY: has no conditions.
    #[cfg(not(miri))]
    let id = unsafe { c::syscall(c::SYS_gettid) };
    // SAFETY: as above.
    #[cfg(miri)]
    let id = unsafe { c::gettid() };
    u32::try_from(id).unwrap_or_else(|_| {
        die(b"nearlock: gettid(2) is refused, by which locks know threads: let the filter (seccomp) allow it.\n")
    })
}

/// Whether there is no thread of this process with this id.
pub fn has_ended(thread: u32) -> bool {
    if !TELLS_ENDS {
        return false;
    }
    // SAFETY: no signal is sent; ids of other processes, or of none, are an error.
    let refused = unsafe { c::syscall(c::SYS_tgkill, c::getpid(), thread, 0) } != 0;
    refused && c::errno() == c::ESRCH
}

/// The key, plus one, of the thread-specific data whose destructor reports the end of a thread; 0
/// if there is none yet.
static EXIT_KEY: AtomicU32 = AtomicU32::new(0);

/// Makes the key, unless there is one. `None` if the process uses all the keys that it may have.
///
/// Before `main` there are few keys. The C library has room for the first 32 in each thread, so for
/// one of these [`at_thread_exit`] does not allocate.
pub fn exit_key(at_exit: AtExit) -> Option<c_uint> {
    let known = EXIT_KEY.load(Relaxed);
    if known != 0 {
        return Some(known - 1);
    }
    let mut key = 0;
    // SAFETY: the key is writable, and the destructor is a function that exists as long as the key.
    if unsafe { c::pthread_key_create(&raw mut key, Some(at_exit)) } != 0 {
        return None;
    }
    // Relaxed: a key is a number.
    match EXIT_KEY.compare_exchange(0, key + 1, Relaxed, Relaxed) {
        Ok(_) => Some(key),
        Err(earlier) => {
            // SAFETY: made above, and no other thread knows it.
            unsafe { c::pthread_key_delete(key) };
            Some(earlier - 1)
        }
    }
}

/// Deletes the key, before its destructor is unloaded. Threads that end later do not call it.
///
/// This runs at the end of the process too. A thread that is in [`at_thread_exit`] at that moment
/// sets a deleted key. The C library then returns an error, unless another library has been given
/// the same key in between.
pub fn delete_exit_key() {
    // Relaxed: a key is a number.
    if let Some(key) = EXIT_KEY.swap(0, Relaxed).checked_sub(1) {
        // SAFETY: made by `exit_key`, and deleted once.
        unsafe { c::pthread_key_delete(key) };
    }
}

/// Makes the key's destructor run at the end of the calling thread, after the destructors of
/// thread-local data. Returns false if that is impossible.
///
/// A request by a destructor of thread-specific data takes effect in one of the next rounds of
/// destructors. The C library has four rounds (`PTHREAD_DESTRUCTOR_ITERATIONS`), so a request in
/// the last one has no effect.
pub fn at_thread_exit(at_exit: AtExit, argument: *mut c_void) -> bool {
    // SAFETY: the key is valid until `delete_exit_key`, and then an error. Only the destructor uses
    // the argument.
    exit_key(at_exit).is_some_and(|key| unsafe { c::pthread_setspecific(key, argument) } == 0)
}

/// Registers a function that is called in each child made by `fork`, before `fork` returns there.
pub fn at_fork(in_child: unsafe extern "C" fn()) {
    if cfg!(miri) {
        // Miri has no fork.
        return;
    }
    // SAFETY: the function exists as long as the library is loaded. If there is no memory, it is
    // not registered. Then a child is as the documentation of the crate says of one without the
    // handler.
    unsafe { c::pthread_atfork(None, None, Some(in_child)) };
}
