//! The effect of a forgotten guard, which safe code permits: its own lock stays held, and no other
//! one.

use std::mem::forget;
use std::time::Duration;

use nearlock::freebsd::{Destroy, Interruptible, LockError, LockMgr, LockMgrOptions, Ownership, SpinMtx, Sx};
use nearlock::{Condvar, Mutex};

const SHORT: Duration = Duration::from_millis(2);

/// Sleeps in locks that another guard of the caller holds, each for a short time.
fn sleep_in_other_locks() {
    let mutex = Mutex::new(1);
    let mut held = mutex.lock();
    assert!(mutex.try_lock_for(SHORT).is_none());
    assert!(Condvar::new().wait_for(&mut held, SHORT).timed_out());

    let sx = Sx::new(1);
    let held = sx.read();
    assert_eq!(sx.write_timed(SHORT).unwrap_err(), LockError::TimedOut);
    drop(held);

    let lockmgr = LockMgr::new(1);
    let held = lockmgr.read();
    let error = lockmgr.write_with(&LockMgrOptions::new().timeout(SHORT)).unwrap_err();
    assert_eq!(error, LockError::TimedOut);
    drop(held);
}

/// Would find: a thread that counts for ever as one that must not sleep. A debug assertion of its
/// next lock would panic.
#[test]
fn a_forgotten_spin_mutex_costs_no_other_lock() {
    let spin = SpinMtx::new(1);
    forget(spin.lock());
    sleep_in_other_locks();
    assert!(spin.is_owned());
    assert_eq!(spin.destroy(), 1);
    sleep_in_other_locks();
}
