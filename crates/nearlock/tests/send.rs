//! Guards that another thread drops. No test depends on time: one that fails by a wait does not
//! end.

#![cfg(feature = "send_guard")]
#![forbid(unsafe_code)]

use std::mem;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use nearlock::send::{
    Condvar, FairMutex, FairMutexGuard, MappedFairMutexGuard, MappedMutexGuard, MappedRwLockReadGuard,
    MappedRwLockWriteGuard, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard,
    RwLockWriteGuard,
};
use static_assertions::{assert_impl_all, assert_not_impl_any};

assert_impl_all!(MutexGuard<'static, u32>: Send, Sync);
assert_impl_all!(MappedMutexGuard<'static, u32>: Send, Sync);
assert_impl_all!(FairMutexGuard<'static, u32>: Send, Sync);
assert_impl_all!(MappedFairMutexGuard<'static, u32>: Send, Sync);
assert_impl_all!(RwLockReadGuard<'static, u32>: Send, Sync);
assert_impl_all!(RwLockWriteGuard<'static, u32>: Send, Sync);
assert_impl_all!(RwLockUpgradableReadGuard<'static, u32>: Send, Sync);
assert_impl_all!(MappedRwLockReadGuard<'static, u32>: Send, Sync);
assert_impl_all!(MappedRwLockWriteGuard<'static, u32>: Send, Sync);
assert_not_impl_any!(MutexGuard<'static, std::rc::Rc<u32>>: Send);
assert_not_impl_any!(RwLockReadGuard<'static, std::cell::Cell<u32>>: Send);
// Those of the crate's root are not affected.
assert_not_impl_any!(nearlock::MutexGuard<'static, u32>: Send);
assert_not_impl_any!(nearlock::RwLockReadGuard<'static, u32>: Send);

/// Another thread takes a guard, and does this with it.
fn elsewhere<G: Send, T: Send>(guard: G, act: impl FnOnce(G) -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(move || act(guard)).join().unwrap())
}

#[test]
fn another_thread_drops_a_guard_of_a_mutex() {
    let mutex = Mutex::new((0, 0));
    elsewhere(mutex.lock(), |mut guard| guard.0 += 1);
    elsewhere(mutex.try_lock().expect("is free"), MutexGuard::unlock_fair);
    elsewhere(mutex.try_lock_for(Duration::ZERO).expect("is free"), |mut guard| MutexGuard::bump(&mut guard));
    elsewhere(MutexGuard::map(mutex.lock(), |pair| &mut pair.1), |mut guard| *guard += 1);
    let guard = elsewhere((), |()| mutex.lock());
    assert!(mutex.is_locked() && mutex.try_lock().is_none());
    assert_eq!(*guard, (1, 1));
    drop(guard);
    assert!(!mutex.is_locked());
}

#[test]
fn another_thread_drops_a_guard_of_a_fair_mutex() {
    let mutex = FairMutex::new(0);
    elsewhere(mutex.lock(), |mut guard| *guard += 1);
    elsewhere(mutex.try_lock_for(Duration::ZERO).expect("is free"), FairMutexGuard::unlock_fair);
    let guard = elsewhere((), |()| mutex.lock());
    assert!(mutex.is_locked() && mutex.try_lock().is_none() && *guard == 1);
    drop(guard);
    assert!(!mutex.is_locked());
}

#[test]
fn another_thread_drops_each_guard_of_a_reader_writer_lock() {
    let lock = RwLock::new((0, 0));
    for _ in 0..3 {
        elsewhere((lock.read(), lock.read()), |(first, second)| assert_eq!(*first, *second));
        elsewhere(RwLockReadGuard::map(lock.read(), |pair| &pair.0), drop);
        elsewhere(lock.try_read_for(Duration::ZERO).expect("is free"), RwLockReadGuard::unlock_fair);
        elsewhere(lock.write(), |mut write| write.0 += 1);
        elsewhere(lock.write(), RwLockWriteGuard::unlock_fair);
        elsewhere(RwLockWriteGuard::map(lock.write(), |pair| &mut pair.1), |mut write| *write += 1);
        let read = elsewhere(lock.try_write().expect("is free"), RwLockWriteGuard::downgrade);
        assert!(lock.try_write().is_none() && lock.try_read().is_some());
        elsewhere(read, drop);
        let read = elsewhere(lock.upgradable_read(), |read| read);
        assert!(lock.try_write().is_none() && lock.try_upgradable_read().is_none());
        assert!(lock.try_read().is_some());
        let write = elsewhere(read, RwLockUpgradableReadGuard::upgrade);
        assert!(lock.try_read().is_none());
        let read = elsewhere(write, RwLockWriteGuard::downgrade_to_upgradable);
        let read = elsewhere(read, RwLockUpgradableReadGuard::downgrade);
        assert!(lock.try_upgradable_read().is_some() && lock.try_write().is_none());
        elsewhere(read, drop);
        elsewhere(lock.upgradable_read(), drop);
        assert!(!lock.is_locked());
    }
    assert_eq!(lock.into_inner(), (3, 3));
}

/// The writer waits for a reader whose guard a third thread drops. A thread that reads is not
/// known, so it cannot read again meanwhile.
#[test]
fn a_writer_waits_for_a_read_that_another_thread_ends() {
    let lock = RwLock::new(0);
    for _ in 0..100 {
        thread::scope(|scope| {
            let read = lock.read();
            let writer = scope.spawn(|| *lock.write() += 1);
            while lock.try_read().is_some() {
                thread::yield_now();
            }
            assert!(lock.try_read_for(Duration::from_millis(1)).is_none());
            scope.spawn(move || drop(read));
            writer.join().unwrap();
            assert!(lock.try_read().is_some());
        });
    }
    assert_eq!(lock.into_inner(), 100);
}

enum Guard<'a> {
    Mutex(MutexGuard<'a, usize>),
    Read(#[allow(dead_code)] RwLockReadGuard<'a, usize>),
    Write(RwLockWriteGuard<'a, usize>),
    Upgradable(RwLockUpgradableReadGuard<'a, usize>),
}

const THREADS: usize = 4;
const ROUNDS: usize = 500;

fn lock_all<'a>(mutex: &'a Mutex<usize>, lock: &'a RwLock<usize>, thread: usize, to: &Sender<Guard<'a>>) {
    for round in 0..ROUNDS {
        let guard = match (thread + round) % 4 {
            0 => Guard::Mutex(mutex.lock()),
            1 => Guard::Read(lock.read()),
            2 => Guard::Write(lock.write()),
            _ => Guard::Upgradable(lock.upgradable_read()),
        };
        to.send(guard).unwrap_or_else(|_| unreachable!("it takes all"));
    }
}

/// Threads lock, and one thread unlocks all that they have locked.
#[test]
fn guards_go_through_a_channel_under_contention() {
    let (mutex, lock) = (Mutex::new(0), RwLock::new(0));
    thread::scope(|scope| {
        let (to, guards) = channel();
        for thread in 0..THREADS {
            let (to, mutex, lock) = (to.clone(), &mutex, &lock);
            scope.spawn(move || lock_all(mutex, lock, thread, &to));
        }
        drop(to);
        for guard in guards {
            match guard {
                Guard::Mutex(mut guard) => *guard += 1,
                Guard::Read(_) => {}
                Guard::Write(mut guard) => *guard += 1,
                // Readers are in, whose guards this thread has not received yet.
                Guard::Upgradable(guard) => drop(RwLockUpgradableReadGuard::try_upgrade(guard)),
            }
        }
    });
    assert_eq!((mutex.into_inner(), lock.into_inner()), (THREADS * ROUNDS / 4, THREADS * ROUNDS / 4));
}

/// The notifier has locked the mutex, and another thread unlocks it at the same time. A
/// notification that relied on the unlock of the notifier would be lost.
#[test]
fn a_notification_does_not_rely_on_the_notifiers_unlock() {
    const ROUNDS: usize = 40_000;
    let (mutex, changed, done) = (Mutex::new(0), Condvar::new(), AtomicUsize::new(0));
    let (received, begun) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let await_round = |number: &AtomicUsize, round| {
        while number.load(Relaxed) < round {
            thread::yield_now();
        }
    };
    thread::scope(|scope| {
        let (to, guards) = channel::<MutexGuard<'_, usize>>();
        let (changed, mutex, done, received, begun) = (&changed, &mutex, &done, &received, &begun);
        scope.spawn(move || {
            for (guard, round) in guards.into_iter().zip(1..) {
                received.store(round, Relaxed);
                await_round(begun, round);
                (0..round % 100).for_each(|_| std::hint::spin_loop());
                drop(guard);
            }
        });
        scope.spawn(move || {
            for round in 1..=ROUNDS {
                let mut guard = mutex.lock();
                changed.wait_while(&mut guard, |value| *value < round);
                drop(guard);
                done.store(round, Relaxed);
            }
        });
        for round in 1..=ROUNDS {
            let mut guard = mutex.lock();
            *guard = round;
            to.send(guard).unwrap();
            await_round(received, round);
            begun.store(round, Relaxed);
            changed.notify_all();
            await_round(done, round);
        }
    });
}

/// The thread that has locked may end.
#[test]
fn a_guard_outlives_its_thread() {
    let (mutex, lock) = (Mutex::new(1), RwLock::new(1));
    for _ in 0..50 {
        let (guard, read) = elsewhere((), |()| (mutex.lock(), lock.read()));
        assert_eq!(*guard + *read, 2);
        assert!(mutex.try_lock().is_none() && lock.try_write().is_none());
        drop((guard, read));
        assert!(mutex.try_lock().is_some() && lock.try_write().is_some());
    }
    mem::forget(lock.read());
    assert!(lock.try_write().is_none() && lock.try_read().is_some());
}
