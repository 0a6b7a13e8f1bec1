//! The names of `parking_lot` 0.12 over `lock_api` 0.4: a program for it compiles, and does the
//! same. The command for all of it: `cargo test -p nearlock --all-features`.

#![cfg(all(feature = "lock_api_04", feature = "arc_lock", feature = "serde"))]

use std::mem::forget;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nearlock::parking_lot_012 as parking_lot;
use parking_lot::lock_api::{GetThreadId, RawMutex as _};
use parking_lot::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard, Condvar, FairMutex, FairMutexGuard, MappedFairMutexGuard, MappedMutexGuard,
    MappedReentrantMutexGuard, MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex, MutexGuard, Once,
    OnceState, RawFairMutex, RawMutex, RawRwLock, RawThreadId, ReentrantMutex, ReentrantMutexGuard, RwLock,
    RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard, WaitTimeoutResult, const_fair_mutex,
    const_mutex, const_reentrant_mutex, const_rwlock,
};

const SHORT: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(1000);

static MUTEX: Mutex<u32> = const_mutex(0);
static FAIR: FairMutex<u32> = const_fair_mutex(0);
static TABLE: RwLock<u32> = const_rwlock(0);
static AGAIN: ReentrantMutex<u32> = const_reentrant_mutex(0);
static START: Once = Once::new();

/// Runs `act` in another thread, and returns its result.
fn elsewhere<R: Send>(act: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(act).join().unwrap())
}

#[test]
fn the_constructors_are_const() {
    START.call_once(|| *MUTEX.lock() += 1);
    assert_eq!(START.state(), OnceState::Done);
    assert_eq!((*MUTEX.lock(), *FAIR.lock(), *TABLE.read(), *AGAIN.lock()), (1, 0, 0, 0));
}

#[test]
fn mutexes_have_all_methods() {
    let mutex = Mutex::new((1, 2));
    let mut guard: MutexGuard<'_, _> = mutex.lock();
    MutexGuard::bump(&mut guard);
    MutexGuard::unlocked(&mut guard, || assert!(mutex.try_lock().is_some()));
    assert!(mutex.try_lock_for(SHORT).is_none() && mutex.try_lock_until(Instant::now()).is_none());
    let first: MappedMutexGuard<'_, _> = MutexGuard::map(guard, |pair| &mut pair.0);
    MappedMutexGuard::unlock_fair(first);
    forget(mutex.lock());
    // SAFETY: the guard was forgotten.
    unsafe { mutex.force_unlock_fair() };
    let fair = FairMutex::new((1, 2));
    let mut guard: FairMutexGuard<'_, _> = fair.try_lock_for(SHORT).expect("is free");
    FairMutexGuard::bump(&mut guard);
    let second: MappedFairMutexGuard<'_, _> = FairMutexGuard::map(guard, |pair| &mut pair.1);
    assert!(fair.is_locked() && fair.try_lock().is_none() && fair.try_lock_until(Instant::now()).is_none());
    assert_eq!(*second, 2);
    drop(second);
    FairMutexGuard::unlock_fair(fair.lock());
    assert!(!fair.is_locked());
}

#[test]
fn a_reentrant_mutex_knows_its_holder() {
    let mutex = ReentrantMutex::new((1, 2));
    let (first, mut second) = (mutex.lock(), mutex.try_lock_for(SHORT).expect("the holder"));
    assert!(elsewhere(|| mutex.try_lock().is_none()));
    ReentrantMutexGuard::bump(&mut second);
    let mapped: MappedReentrantMutexGuard<'_, _> = ReentrantMutexGuard::map(first, |pair| &pair.1);
    drop(second);
    assert!(mutex.is_owned_by_current_thread() && *mapped == 2);
    drop(mapped);
    assert!(elsewhere(|| mutex.try_lock().is_some()));
    assert_ne!(elsewhere(|| RawThreadId.nonzero_thread_id()), RawThreadId.nonzero_thread_id());
}

#[test]
fn a_rwlock_has_all_methods() {
    let lock = RwLock::new((1, 2));
    let mut read: RwLockReadGuard<'_, _> = lock.read();
    RwLockReadGuard::bump(&mut read);
    let mapped: MappedRwLockReadGuard<'_, _> = RwLockReadGuard::map(read, |pair| &pair.0);
    assert_eq!(*mapped, 1);
    assert!(lock.try_write_for(SHORT).is_none() && lock.try_write_until(Instant::now()).is_none());
    MappedRwLockReadGuard::unlock_fair(mapped);

    let mut upgradable: RwLockUpgradableReadGuard<'_, _> = lock.upgradable_read();
    assert!(lock.try_upgradable_read_for(SHORT).is_none() && lock.try_read_for(SHORT).is_some());
    RwLockUpgradableReadGuard::bump(&mut upgradable);
    let read = lock.read();
    let upgradable = RwLockUpgradableReadGuard::try_upgrade(upgradable).expect_err("a reader is in");
    let upgradable = RwLockUpgradableReadGuard::try_upgrade_for(upgradable, SHORT).expect_err("also now");
    drop(read);
    let mut write: RwLockWriteGuard<'_, _> = RwLockUpgradableReadGuard::upgrade(upgradable);
    RwLockWriteGuard::bump(&mut write);
    write.0 = 3;
    assert!(lock.is_locked_exclusive() && elsewhere(|| lock.try_read_recursive().is_none()));
    let upgradable = RwLockWriteGuard::downgrade_to_upgradable(write);
    let read = RwLockUpgradableReadGuard::downgrade(upgradable);
    assert_eq!(read.0, 3);
    drop(read);
    let mapped: MappedRwLockWriteGuard<'_, _> = RwLockWriteGuard::map(lock.write(), |pair| &mut pair.1);
    drop(mapped);
    RwLockWriteGuard::unlock_fair(lock.write());
    RwLockUpgradableReadGuard::unlock_fair(lock.try_upgradable_read_until(Instant::now()).expect("is free"));
    forget(lock.read());
    // SAFETY: the guard was forgotten.
    unsafe { lock.force_unlock_read() };
    assert!(!lock.is_locked());
}

#[test]
fn recursive_reads_pass_a_waiting_writer() {
    let lock = RwLock::new(0);
    let read = lock.read();
    thread::scope(|scope| {
        scope.spawn(|| *lock.write() += 1);
        while elsewhere(|| lock.try_read().is_some()) {
            thread::yield_now();
        }
        assert_eq!(elsewhere(|| *lock.read_recursive()), 0);
        assert_eq!(elsewhere(|| lock.try_read_recursive().map(|value| *value)), Some(0));
        assert_eq!(elsewhere(|| lock.try_read_recursive_for(LONG).map(|value| *value)), Some(0));
        let moment = Instant::now() + LONG;
        assert_eq!(elsewhere(|| lock.try_read_recursive_until(moment).map(|value| *value)), Some(0));
        drop(read);
    });
    assert_eq!(lock.into_inner(), 1);
}

type Wait<'a> = dyn Fn(&mut MutexGuard<'_, u32>) + Sync + 'a;

#[test]
fn a_condition_variable_waits_and_notifies() {
    let (mutex, condvar) = (Mutex::new(0), Condvar::new());
    let moment = Instant::now() + LONG;
    let waits: [&Wait<'_>; 6] = [
        &|guard| condvar.wait(guard),
        &|guard| assert!(!condvar.wait_for(guard, LONG).timed_out()),
        &|guard| assert!(!condvar.wait_until(guard, moment).timed_out()),
        &|guard| condvar.wait_while(guard, |value| *value == 0),
        &|guard| assert!(!condvar.wait_while_for(guard, |value| *value == 0, LONG).timed_out()),
        &|guard| assert!(!condvar.wait_while_until(guard, |value| *value == 0, moment).timed_out()),
    ];
    thread::scope(|scope| {
        for wait in waits {
            let mutex = &mutex;
            let waiter = scope.spawn(move || {
                let mut guard = mutex.lock();
                wait(&mut guard);
                assert_eq!(*guard, 1, "the mutex is held again");
                *guard = 0;
            });
            // It finds the value 1 only if it has been notified before.
            let mut notified = 0;
            while notified == 0 {
                let mut guard = mutex.lock();
                notified = usize::from(condvar.notify_one()) + condvar.notify_all();
                *guard = u32::from(notified != 0);
            }
            assert_eq!(notified, 1);
            waiter.join().unwrap();
        }
    });
    let mut guard = mutex.lock();
    assert!(condvar.wait_for(&mut guard, SHORT).timed_out());
    let result: WaitTimeoutResult = condvar.wait_until(&mut guard, Instant::now());
    assert!(result.timed_out());
    assert!(condvar.wait_while_for(&mut guard, |_| true, SHORT).timed_out());
    assert!(!condvar.wait_while_for(&mut guard, |_| false, Duration::ZERO).timed_out());
    assert!(!condvar.notify_one() && condvar.notify_all() == 0);
    assert_eq!(format!("{condvar:?}"), "Condvar { .. }");
}

/// Raw locks as a program builds its own types from them.
#[test]
fn raw_locks_are_those_of_lock_api_04() {
    use parking_lot::lock_api::RawRwLock as _;
    struct Bare(RawMutex, RawFairMutex, RawRwLock);
    // A `RawRwLock` is a raw mutex too. So both traits have this constant.
    let rw = <RawRwLock as parking_lot::lock_api::RawRwLock>::INIT;
    let bare = Bare(RawMutex::INIT, RawFairMutex::INIT, rw);
    bare.0.lock();
    bare.1.lock();
    bare.2.lock_shared();
    assert!(!bare.0.try_lock() && !bare.1.try_lock() && !bare.2.try_lock_exclusive());
    // SAFETY: locked above.
    unsafe {
        bare.0.unlock();
        bare.1.unlock();
        bare.2.unlock_shared();
    }
    assert!(bare.0.try_lock() && bare.1.try_lock() && bare.2.try_lock_exclusive());
}

#[test]
fn guards_may_keep_their_lock_alive() {
    let (mutex, again, lock) =
        (Arc::new(Mutex::new(1)), Arc::new(ReentrantMutex::new(2)), Arc::new(RwLock::new(3)));
    let guard: ArcMutexGuard<RawMutex, u32> = mutex.lock_arc();
    let holder: ArcReentrantMutexGuard<RawMutex, RawThreadId, u32> = again.lock_arc();
    let read: ArcRwLockReadGuard<RawRwLock, u32> = lock.read_arc();
    let upgradable: ArcRwLockUpgradableReadGuard<RawRwLock, u32> = lock.upgradable_read_arc();
    assert!(lock.try_write_arc().is_none());
    drop(read);
    let write: ArcRwLockWriteGuard<RawRwLock, u32> = ArcRwLockUpgradableReadGuard::upgrade(upgradable);
    drop((mutex, again, lock));
    assert_eq!((*guard, *holder, *write), (1, 2, 3));
}

#[test]
fn locks_are_serialized_as_their_data() {
    let text = |result: Result<String, _>| result.unwrap();
    assert_eq!(text(serde_json::to_string(&Mutex::new(1))), "1");
    assert_eq!(text(serde_json::to_string(&FairMutex::new(1))), "1");
    assert_eq!(text(serde_json::to_string(&RwLock::new(1))), "1");
    assert_eq!(text(serde_json::to_string(&ReentrantMutex::new(1))), "1");
    let back: RwLock<u32> = serde_json::from_str("1").unwrap();
    assert_eq!(back.into_inner(), 1);
}
