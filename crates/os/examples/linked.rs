//! A lock behind a C function, as a shared object and as a static library: what `tests/start`
//! links to C programs.

use nearlock_core::near::mutex::NearMutex;
use nearlock_core::raw::RawLock;
use nearlock_os::Os;

static LOCK: NearMutex<Os> = NearMutex::new();

/// Takes the lock and releases it. The thread has a slot afterwards, which it gives back at its
/// end.
#[unsafe(no_mangle)]
pub extern "C" fn linked_section() {
    nearlock_os::register_thread();
    // SAFETY: unlock follows lock.
    unsafe {
        LOCK.lock(&());
        LOCK.unlock(&());
    }
}
