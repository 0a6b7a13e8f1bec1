//! What a guard costs that is forgotten, as safe code may: its own lock, and no other one.

use std::mem::forget;
use std::thread;
use std::time::Duration;

use nearlock::freebsd::{Destroy, Interruptible, LockError, LockMgr, LockMgrOptions, Ownership, SpinMtx, Sx};
use nearlock::process::thread_id;
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

/// Its thread counted as one that must not sleep, for ever: a debug assertion of the next lock
/// panicked.
#[test]
fn a_forgotten_spin_mutex_costs_no_other_lock() {
    let spin = SpinMtx::new(1);
    forget(spin.lock());
    sleep_in_other_locks();
    assert!(spin.is_owned());
    assert_eq!(spin.destroy(), 1);
    sleep_in_other_locks();
}

/// The thread that ended the lock left a section by it that it had not entered. Its count was below
/// zero when it unlocked another spin mutex.
#[test]
fn the_end_of_a_spin_mutex_that_a_namesake_has_left_costs_no_other_lock() {
    // Threads of other tests may get the name meanwhile.
    let is_ended_by_a_namesake = || {
        let left = SpinMtx::new(7);
        thread::scope(|scope| scope.spawn(|| forget(left.lock())).join().unwrap());
        let ended_by_a_namesake = move || {
            let other = SpinMtx::new(1);
            let held = other.lock();
            let is_namesake = left.holder() == Some(thread_id());
            if is_namesake {
                assert_eq!(left.destroy(), 7);
            }
            drop(held);
            is_namesake
        };
        thread::spawn(ended_by_a_namesake).join().unwrap()
    };
    assert!((0..1000).any(|_| is_ended_by_a_namesake()), "no thread got the name of one that had ended");
}
