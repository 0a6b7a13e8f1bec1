//! Locks of the list, whose switches are those of the process.

use std::sync::{Mutex, PoisonError};

use nearlock_collection::subjects::Subject;
use nearlock_os::switches;

/// Calls `f` while the switches of the process are those of this lock. Meanwhile no other test has
/// locks of the list.
pub fn switched<R>(lock: &Subject, f: impl FnOnce() -> R) -> R {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: `f` makes the locks that it uses, and no other test has one meanwhile.
    unsafe { switches::set(lock.switches()) };
    f()
}
