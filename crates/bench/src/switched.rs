//! Locks of the list on this machine. Their switches are process-wide.

use std::sync::{Mutex, MutexGuard, PoisonError};

use nearlock_collection::subjects::Subject;
use nearlock_core::platform::SWITCHES_MAX;
use nearlock_os::switches;

/// The switches of a lock that threads may still use after its run.
struct LeftBehind(Mutex<Option<[u64; SWITCHES_MAX]>>);

static LEFT_BEHIND: LeftBehind = LeftBehind::new();

/// Calls `f` with the switches of this lock set for locks of the list. One caller at a time.
///
/// # Panics
///
/// If the lock [cannot be switched](can_switch).
pub(crate) fn switched<R>(lock: &Subject, f: impl FnOnce() -> R) -> R {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(can_switch(lock), "threads use locks with other switches");
    // SAFETY: native code uses locks of the list only in here. `f` makes its locks and no longer
    // uses them when it returns. Threads that still use one have been reported (`leave_behind`),
    // and use these switches. The values are within their limits (`Subject::switches`).
    unsafe { switches::set(lock.switches()) };
    f()
}

/// Records that threads may still use this lock after [`switched`] has returned. From then on,
/// locks with other switches are refused.
pub(crate) fn leave_behind(lock: &Subject) {
    LEFT_BEHIND.leave(lock);
}

/// Whether no thread uses a lock with other switches.
pub(crate) fn can_switch(lock: &Subject) -> bool {
    LEFT_BEHIND.allows(lock)
}

impl LeftBehind {
    const fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn leave(&self, lock: &Subject) {
        if !lock.algorithm.switches.is_empty() {
            *self.switches() = Some(lock.switches());
        }
    }

    fn allows(&self, lock: &Subject) -> bool {
        self.switches().is_none_or(|switches| switches == lock.switches())
    }

    fn switches(&self) -> MutexGuard<'_, Option<[u64; SWITCHES_MAX]>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_are_left_behind_keep_their_switches() {
        let lock = |name| Subject::named(name).expect("is on the list");
        let left = LeftBehind::new();
        left.leave(lock("lock-lost-wakeup"));
        assert!(left.allows(lock("cna-preemptible")), "a lock without switches asks for none");
        left.leave(lock("linux-mutex-no-handoff"));
        assert!(left.allows(lock("linux-mutex-no-handoff")) && !left.allows(lock("linux-mutex")));
    }
}
