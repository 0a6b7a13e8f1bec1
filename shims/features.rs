//! What the features of the crate select: which guards can be sent to another thread, and which
//! deadlocks are found.

use parking_lot::{
    Condvar, FairMutex, FairMutexGuard, MappedFairMutexGuard, MappedMutexGuard, MappedReentrantMutexGuard,
    MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex, MutexGuard, ReentrantMutex, ReentrantMutexGuard,
    RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard,
};
#[cfg(feature = "send_guard")]
use static_assertions::assert_impl_all;
use static_assertions::assert_not_impl_any;

/// Asserts it of all guards whose feature is `send_guard`.
macro_rules! of_all_guards {
    ($assert:ident) => {
        $assert!(MutexGuard<'static, u32>: Send);
        $assert!(MappedMutexGuard<'static, u32>: Send);
        $assert!(FairMutexGuard<'static, u32>: Send);
        $assert!(MappedFairMutexGuard<'static, u32>: Send);
        $assert!(RwLockReadGuard<'static, u32>: Send);
        $assert!(RwLockWriteGuard<'static, u32>: Send);
        $assert!(RwLockUpgradableReadGuard<'static, u32>: Send);
        $assert!(MappedRwLockReadGuard<'static, u32>: Send);
        $assert!(MappedRwLockWriteGuard<'static, u32>: Send);
    };
}

#[cfg(feature = "send_guard")]
of_all_guards!(assert_impl_all);
#[cfg(not(feature = "send_guard"))]
of_all_guards!(assert_not_impl_any);
// Only with data that can be sent.
assert_not_impl_any!(MutexGuard<'static, std::rc::Rc<u32>>: Send);
// A thread that has locked it may lock it again, so the guard stays with that thread.
assert_not_impl_any!(ReentrantMutexGuard<'static, u32>: Send);
assert_not_impl_any!(MappedReentrantMutexGuard<'static, u32>: Send);

/// Each operation once, so that each goes to the selected lock.
#[test]
fn the_locks_work() {
    let (mutex, fair, again) = (Mutex::new(1), FairMutex::new(2), ReentrantMutex::new(3));
    *mutex.lock() += 1;
    MutexGuard::unlock_fair(mutex.lock());
    assert!(mutex.try_lock_for(std::time::Duration::ZERO).is_some() && !mutex.is_locked());
    drop(MappedMutexGuard::map(MutexGuard::map(mutex.lock(), |value| value), |value| value));
    FairMutexGuard::bump(&mut fair.lock());
    assert!(fair.try_lock().is_some() && !fair.is_locked());
    let both = (again.lock(), again.lock());
    assert_eq!((*mutex.lock(), *fair.lock(), *both.0 + *both.1), (2, 2, 6));
    let lock = RwLock::new(1);
    let (first, second) = (lock.read(), lock.try_read().expect("is free"));
    assert!(lock.is_locked() && lock.try_write().is_none());
    drop((first, second));
    let read = RwLockWriteGuard::downgrade(lock.write());
    assert!(!lock.is_locked_exclusive() && lock.try_upgradable_read().is_some());
    drop(read);
    let mut upgradable = lock.upgradable_read();
    upgradable.with_upgraded(|value| *value += 1);
    let write = RwLockUpgradableReadGuard::try_upgrade(upgradable).expect("no other reader");
    drop(RwLockUpgradableReadGuard::downgrade(RwLockWriteGuard::downgrade_to_upgradable(write)));
    RwLockReadGuard::unlock_fair(lock.read());
    assert_eq!(lock.into_inner(), 2);
}

#[test]
fn a_thread_waits_for_a_notification() {
    let (mutex, changed) = (Mutex::new(0), Condvar::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            *mutex.lock() = 1;
            changed.notify_all();
        });
        let mut value = mutex.lock();
        changed.wait_while(&mut value, |value| *value == 0);
        assert_eq!(*value, 1);
        let none = changed.wait_for(&mut value, std::time::Duration::from_millis(1));
        assert!(none.timed_out() && mutex.is_locked());
    });
}

#[cfg(feature = "send_guard")]
#[test]
fn another_thread_unlocks() {
    let (mutex, fair, lock) = (Mutex::new(1), FairMutex::new(1), RwLock::new(1));
    let guards = (mutex.lock(), fair.lock(), lock.read());
    std::thread::scope(|scope| {
        scope.spawn(move || drop(guards));
    });
    assert!(mutex.try_lock().is_some() && fair.try_lock().is_some());
    let write = lock.try_write().expect("is free");
    std::thread::scope(|scope| {
        scope.spawn(move || drop(RwLockWriteGuard::downgrade_to_upgradable(write)));
    });
    assert!(!lock.is_locked());
}

#[cfg(feature = "deadlock_detection")]
mod deadlocks {
    use std::collections::HashSet;
    use std::sync::{Arc, Barrier};
    use std::thread::{self, ThreadId};

    use parking_lot::deadlock::check_deadlock;

    use super::{FairMutex, Mutex, ReentrantMutex, RwLock};

    /// The next deadlock.
    fn next() -> HashSet<ThreadId> {
        loop {
            let found = check_deadlock();
            if let [threads] = &found[..] {
                assert!(threads.iter().all(|thread| !thread.backtrace().frames().is_empty()));
                return threads.iter().map(|thread| thread.thread_id()).collect();
            }
            assert!(found.is_empty());
            thread::yield_now();
        }
    }

    /// Two threads each hold a lock, and then lock the other one.
    fn cross<L: Send + Sync + 'static>(new: fn() -> L, lock_both: fn(&L, &Barrier, &L)) {
        let (locks, barrier) = (Arc::new([new(), new()]), Arc::new(Barrier::new(2)));
        let threads = [0, 1].map(|index| {
            let (locks, barrier) = (locks.clone(), barrier.clone());
            let act = move || lock_both(&locks[index], &barrier, &locks[1 - index]);
            thread::spawn(act).thread().id()
        });
        assert_eq!(next(), HashSet::from(threads));
        assert!(check_deadlock().is_empty(), "it is reported once");
    }

    /// One test, because the deadlocks are those of the process. The threads stay until it ends.
    #[test]
    fn deadlocks_of_all_locks_are_found() {
        assert!(check_deadlock().is_empty());
        let new = || Mutex::new(());
        cross(new, |own, all, other| {
            let _own = own.lock();
            all.wait();
            drop(other.lock());
        });
        let new = || FairMutex::new(());
        cross(new, |own, all, other| {
            let _own = own.lock();
            all.wait();
            drop(other.lock());
        });
        let new = || ReentrantMutex::new(());
        cross(new, |own, all, other| {
            let _own = own.lock();
            all.wait();
            drop(other.lock());
        });
        let new = || RwLock::new(());
        cross(new, |own, all, other| {
            let _own = own.read();
            all.wait();
            drop(other.write());
        });
    }
}
