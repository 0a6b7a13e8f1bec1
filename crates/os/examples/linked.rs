//! A lock behind a C function, built as a shared object and as a static library. `tests/start`
//! links it to C programs.

use nearlock_core::near::mutex::NearMutex;
use nearlock_core::raw::RawLock;
use nearlock_os::Os;

static LOCK: NearMutex<Os> = NearMutex::new();

/// Locks and unlocks. Afterwards the thread has a slot, which it gives back at its end.
#[unsafe(no_mangle)]
pub extern "C" fn linked_section() {
    nearlock_os::register_thread();
    // SAFETY: unlock follows lock.
    unsafe {
        LOCK.lock(&());
        LOCK.unlock(&());
    }
}
