//! Locks of the list on this machine: they have their switches from the process.

use std::sync::{Mutex, PoisonError};

use nearlock_collection::subjects::Subject;
use nearlock_os::switches;

/// Does `f`, during which locks of the list are switched as this one. One caller at a time.
pub(crate) fn switched<R>(lock: &Subject, f: impl FnOnce() -> R) -> R {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: whoever uses a lock of the list natively does so in here: in `f` it makes it, and has
    // done with it. (What a lock that hangs has left behind waits for ever, or until the process
    // ends.)
    unsafe { switches::set(lock.switches()) };
    f()
}
