//! FreeBSD's recursive locks: their destruction, and the ways to lock them.

mod helpers;

use std::cell::Cell;
use std::mem::forget;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use nearlock::Cancellation;
use nearlock::freebsd::{
    Destroy, InUse, Interruptible, LockError, Mtx, RawRecursiveLock, RecursiveMtx, RecursiveMutex,
    RecursiveRw, RecursiveRwLock, RecursiveSpinMtx, RecursiveSx, RecursiveWriteGuard, RwChecked, SpinMtx,
    WaitUnlocked,
};
use nearlock_os::Os;

use helpers::{elsewhere, mistake};

/// Destroys a mutex after `act`.
fn mutex_ends<L: RawRecursiveLock>(act: fn(&RecursiveMutex<L, Cell<u32>>)) -> u32 {
    let lock = RecursiveMutex::<L, _>::new(Cell::new(7));
    act(&lock);
    lock.destroy().get()
}

fn ends_as_a_mutex<L: RawRecursiveLock>() {
    assert_eq!(mutex_ends::<L>(|lock| drop((lock.lock(), lock.lock()))), 7);
    assert_eq!(mutex_ends::<L>(|lock| forget(lock.lock())), 7, "its holder may destroy it");
    elsewhere(|| {
        let recursed = format!("{:?}", InUse::Recursed);
        mistake(&recursed, || _ = mutex_ends::<L>(|lock| forget((lock.lock(), lock.lock()))));
    });
    let held = format!("{:?}", InUse::Held);
    mistake(&held, || _ = mutex_ends::<L>(|lock| elsewhere(|| forget(lock.lock()))));
}

#[test]
fn a_mutex_ends_unless_it_is_held_by_another_or_again() {
    ends_as_a_mutex::<nearlock_collection::freebsd::mtx::Mtx<Os>>();
    ends_as_a_mutex::<nearlock_collection::freebsd::spin_mtx::SpinMtx<Os>>();
}

fn writers_end<L: RawRecursiveLock>(write: fn(&RecursiveRwLock<L, u32>), read: fn(&RecursiveRwLock<L, u32>)) {
    let end = |act: &dyn Fn(&RecursiveRwLock<L, u32>)| {
        let lock = RecursiveRwLock::<L, _>::new(7);
        act(&lock);
        lock.destroy()
    };
    assert_eq!(end(&|_| ()), 7);
    let [held, recursed] = [InUse::Held, InUse::Recursed].map(|why| format!("{why:?}"));
    mistake(&held, || _ = end(&write));
    mistake(&held, || _ = end(&read));
    mistake(&recursed, || {
        _ = end(&|lock| {
            write(lock);
            write(lock);
        });
    });
}

#[test]
fn a_lock_with_readers_ends_unless_it_is_held() {
    writers_end::<nearlock_collection::freebsd::rw::Rw<Os>>(
        |lock| forget(lock.write()),
        |lock| forget(lock.read()),
    );
    writers_end::<nearlock_collection::freebsd::sx::Sx<Os>>(
        |lock| forget(lock.write()),
        |lock| forget(lock.read()),
    );
}

#[test]
fn bits_of_waiters_that_gave_up_do_not_prevent_the_end() {
    let lock = RecursiveSx::new(7);
    let reads = lock.read();
    elsewhere(|| assert_eq!(lock.write_timed(Duration::from_millis(1)).unwrap_err(), LockError::TimedOut));
    drop(reads);
    assert_eq!(lock.destroy(), 7);
}

#[test]
fn a_checked_read_reports_that_the_caller_writes() {
    let lock = RecursiveRw::new(1);
    let first = lock.write_checked().unwrap();
    let second = lock.try_write_checked().expect("a writer may write again");
    assert!(RecursiveWriteGuard::is_recursed(&first));
    assert_eq!(lock.read_checked().unwrap_err(), LockError::Deadlock);
    assert_eq!(lock.try_read_checked().unwrap_err(), LockError::Deadlock);
    elsewhere(|| {
        assert_eq!(lock.try_read_checked().unwrap_err(), LockError::Busy);
        assert_eq!(lock.try_write_checked().unwrap_err(), LockError::Busy);
    });
    drop((first, second));
    let reads = (lock.read_checked().unwrap(), lock.try_read_checked().unwrap());
    assert_eq!((*reads.0, *reads.1), (1, 1));
    assert_eq!(lock.try_write_checked().unwrap_err(), LockError::Busy, "a thread reads");
}

#[test]
fn a_writer_of_an_sx_writes_again_whatever_ends_other_waits() {
    let (lock, by) = (RecursiveSx::new(5), Cancellation::new());
    let time = Duration::from_millis(1);
    by.cancel();
    let first = lock.write_sig(&by).expect("a free lock is locked");
    let again = (lock.write_sig(&by).expect("without a wait"), lock.write_timed(Duration::ZERO).unwrap());
    assert!(lock.is_owned() && RecursiveWriteGuard::is_recursed(&first));
    assert_eq!(lock.read_sig(&by).unwrap_err(), LockError::Deadlock);
    assert_eq!(lock.read_timed(time).unwrap_err(), LockError::Deadlock);
    elsewhere(|| {
        assert_eq!(lock.read_timed(time).unwrap_err(), LockError::TimedOut);
        assert_eq!(lock.write_timed(time).unwrap_err(), LockError::TimedOut);
        assert_eq!(lock.read_sig(&by).unwrap_err(), LockError::Interrupted);
        assert_eq!(lock.write_sig(&by).unwrap_err(), LockError::Interrupted);
    });
    drop((first, again));
    assert!(!lock.is_owned());
    assert_eq!((*lock.read_sig(&by).unwrap(), *lock.read_timed(Duration::ZERO).unwrap()), (5, 5));
    let writes = lock.write_timed(time).expect("no thread holds it any more");
    lock.write().replace(6);
    assert_eq!(*writes.borrow(), 6, "and the guard knows its thread");
}

#[test]
fn threads_that_wait_for_a_release_see_what_was_done_before() {
    let (mtx, spin, begun) = (Mtx::new(1), SpinMtx::new(1), Barrier::new(2));
    mtx.wait_unlocked();
    spin.wait_unlocked();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut held = (mtx.lock(), spin.lock());
            begun.wait();
            (*held.0, *held.1) = (2, 2);
        });
        begun.wait();
        mtx.wait_unlocked();
        assert_eq!(mtx.try_lock().map(|value| *value), Some(2), "no thread holds it");
        spin.wait_unlocked();
        assert_eq!(spin.try_lock().map(|value| *value), Some(2));
    });
    elsewhere(|| {
        let _held = (mtx.lock(), spin.lock());
        mistake("waits for a mutex that it holds", || mtx.wait_unlocked());
        mistake("waits for a mutex that it holds", || spin.wait_unlocked());
    });
}

#[test]
fn the_mutexes_are_those_of_their_names() {
    fn is_destroyed<T>(lock: impl Destroy<Value = T>) -> T {
        lock.destroy()
    }
    let all = (RecursiveMtx::new(1), RecursiveSpinMtx::new(2), RecursiveRw::new(3), RecursiveSx::new(4));
    assert_eq!(
        (is_destroyed(all.0), is_destroyed(all.1), is_destroyed(all.2), is_destroyed(all.3)),
        (1, 2, 3, 4)
    );
}
