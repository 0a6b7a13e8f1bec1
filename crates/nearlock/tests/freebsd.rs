//! What FreeBSD's locks promise beyond an ordinary mutex: owners, upgrades, recursion, errors.

mod helpers;

use std::cell::{Cell, RefCell};
use std::mem::forget;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use nearlock::Cancellation;
use nearlock::freebsd::{
    Checked, Destroy, Interruptible, LockError, LockMgr, LockMgrOptions, LongSpin, Mtx, Ownership, RawMtx,
    RawRecursiveLock, RawRw, RawSpinMtx, RawSx, RecursiveGuard, RecursiveMtx, RecursiveMutex,
    RecursiveReadGuard, RecursiveRw, RecursiveSpinMtx, RecursiveWriteGuard, Rw, RwChecked, RwWriteGuard,
    SpinMtx, Sx, SxReadGuard, TooLong, TryUpgrade, tuning,
};
use nearlock::lock_api::{self, RwLock};
use nearlock::process::{Setting, set_setting, setting, thread_id};
use nearlock_core::schedule::Sections;
use nearlock_os::Os;

use helpers::{elsewhere, mistake};

const THREADS: usize = 4;
const ROUNDS: u32 = if cfg!(miri) { 20 } else { 2000 };

fn counts<R: lock_api::RawMutex + Send + Sync>() {
    let lock = lock_api::Mutex::<R, u32>::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..ROUNDS).for_each(|_| *lock.lock() += 1));
        }
    });
    assert_eq!(lock.into_inner(), THREADS as u32 * ROUNDS);
}

#[test]
fn every_preset_excludes() {
    counts::<RawMtx>();
    counts::<RawMtx<tuning::Era2014>>();
    counts::<RawMtx<tuning::Preloaded>>();
    counts::<RawMtx<tuning::NotAdaptive>>();
    counts::<RawSpinMtx>();
    counts::<RawSpinMtx<tuning::PreReadEverywhere>>();
}

fn writers_and_readers<R: lock_api::RawRwLock + Send + Sync>() {
    let lock = RwLock::<R, (u32, u32)>::new((0, 0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let mut pair = lock.write();
                    pair.0 += 1;
                    pair.1 += 1;
                }
            });
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let pair = lock.read();
                    assert_eq!(pair.0, pair.1);
                }
            });
        }
    });
    assert_eq!(lock.into_inner(), (2 * ROUNDS, 2 * ROUNDS));
}

#[test]
fn writers_exclude_readers() {
    writers_and_readers::<RawRw>();
    writers_and_readers::<RawRw<tuning::Era2014>>();
    writers_and_readers::<RawSx>();
    writers_and_readers::<RawSx<tuning::Fcmpset2017>>();
}

#[test]
fn a_lock_knows_its_holder() {
    let (mtx, spin, rw) = (Mtx::new(()), SpinMtx::new(()), Rw::new(()));
    let guards = (mtx.lock(), spin.lock(), rw.write());
    assert!(mtx.is_owned() && spin.is_owned() && rw.is_owned());
    let me = Some(thread_id());
    elsewhere(|| {
        assert!(!mtx.is_owned() && !spin.is_owned() && !rw.is_owned());
        assert_eq!([mtx.holder(), spin.holder(), rw.holder()], [me; 3]);
    });
    drop(guards);
    let _reads = rw.read();
    assert_eq!([mtx.holder(), spin.holder(), rw.holder()], [None; 3]);
}

#[test]
fn an_upgrade_needs_the_only_reader() {
    let lock = Rw::new(0);
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        let reads = lock.read();
        scope.spawn(|| {
            let _other = lock.read();
            barrier.wait();
            barrier.wait();
        });
        barrier.wait();
        let reads = reads.try_upgrade().expect_err("another thread reads");
        assert_eq!(*reads, 0, "and the guard reads on");
        barrier.wait();
        let mut guard = Err(reads);
        while let Err(reads) = guard {
            thread::yield_now();
            guard = reads.try_upgrade();
        }
        let mut writes = guard.unwrap();
        assert!(lock.is_owned() && elsewhere(|| lock.try_read().is_none()));
        *writes += 1;
        let reads = RwWriteGuard::downgrade(writes);
        assert!(!lock.is_owned() && elsewhere(|| lock.try_read().is_some()));
        assert_eq!(*reads, 1);
    });
    assert!(lock.try_write().is_some(), "every share is given back");
}

#[test]
fn an_upgrade_goes_past_a_writer_that_waits() {
    let lock = Sx::new(Vec::new());
    thread::scope(|scope| {
        let reads = lock.read();
        scope.spawn(|| lock.write().push("the other"));
        // The writer may wait by now, or is about to wait, or has not begun.
        thread::sleep(Duration::from_millis(10));
        reads.try_upgrade().expect("one reader").push("mine");
    });
    assert_eq!(lock.into_inner(), ["mine", "the other"]);
}

#[test]
fn mistakes_are_errors_for_callers_that_ask() {
    let (mtx, spin, sx) = (Mtx::new(1), SpinMtx::new(1), Sx::new(1));
    {
        let _held = (mtx.lock_checked().unwrap(), spin.lock_checked().unwrap(), sx.write_checked().unwrap());
        assert_eq!(mtx.lock_checked().unwrap_err(), LockError::Deadlock);
        assert_eq!(mtx.try_lock_checked().unwrap_err(), LockError::Deadlock);
        assert_eq!(spin.try_lock_checked().unwrap_err(), LockError::Deadlock);
        assert_eq!(sx.read_checked().unwrap_err(), LockError::Deadlock);
        assert_eq!(sx.write_checked().unwrap_err(), LockError::Deadlock);
        assert_eq!(sx.try_write_checked().unwrap_err(), LockError::Deadlock);
        assert_eq!(sx.read_timed(Duration::ZERO).unwrap_err(), LockError::Deadlock);
        assert_eq!(sx.write_sig(&Cancellation::new()).unwrap_err(), LockError::Deadlock);
        elsewhere(|| {
            assert_eq!(mtx.try_lock_checked().unwrap_err(), LockError::Busy);
            assert_eq!(spin.try_lock_checked().unwrap_err(), LockError::Busy);
            assert_eq!(sx.try_read_checked().unwrap_err(), LockError::Busy);
            assert_eq!(sx.try_write_checked().unwrap_err(), LockError::Busy);
        });
    }
    let reads = sx.try_read_checked().unwrap();
    assert_eq!(sx.try_write_checked().unwrap_err(), LockError::Busy);
    drop(reads);
    assert_eq!((*mtx.lock_checked().unwrap(), *spin.try_lock_checked().unwrap(), sx.destroy()), (1, 1, 1));
}

#[test]
fn waits_for_an_sx_end_by_time_and_by_interruption() {
    let (lock, by) = (Sx::new(5), Cancellation::new());
    let time = Duration::from_millis(1);
    let writes = lock.write();
    elsewhere(|| {
        assert_eq!(lock.read_timed(time).unwrap_err(), LockError::TimedOut);
        assert_eq!(lock.write_timed(time).unwrap_err(), LockError::TimedOut);
        assert!(lock.try_read_for(time).is_none(), "lock_api's form");
    });
    thread::scope(|scope| {
        let reader = scope.spawn(|| lock.read_sig(&by).map(|value| *value));
        let writer = scope.spawn(|| lock.write_sig(&by).map(|value| *value));
        by.cancel();
        assert_eq!(reader.join().unwrap(), Err(LockError::Interrupted));
        assert_eq!(writer.join().unwrap(), Err(LockError::Interrupted));
    });
    drop(writes);
    // A free lock is locked.
    assert_eq!(*lock.write_sig(&by).unwrap(), 5);
    assert_eq!((*lock.read_sig(&by).unwrap(), *lock.read_timed(Duration::ZERO).unwrap()), (5, 5));
    assert_eq!(lock.destroy(), 5);
}

#[test]
fn errors_have_the_kernels_names() {
    let names = [LockError::Busy, LockError::Deadlock, LockError::Interrupted, LockError::TimedOut]
        .map(LockError::errno_name);
    assert_eq!(names, ["EBUSY", "EDEADLK", "EINTR", "EWOULDBLOCK"]);
}

#[test]
fn a_spin_mutex_is_a_section() {
    let (outer, inner) = (SpinMtx::new(()), SpinMtx::new(()));
    let first = outer.lock();
    let second = inner.try_lock().unwrap();
    assert_eq!(<Os>::section_depth(), 2);
    assert!(elsewhere(|| outer.try_lock().is_none() && <Os>::section_depth() == 0));
    drop(first);
    drop(second);
    assert_eq!(<Os>::section_depth(), 0);
}

#[test]
fn a_wait_that_is_too_long_is_reported() {
    struct Told;
    static TOLD: AtomicBool = AtomicBool::new(false);
    impl LongSpin for Told {
        fn held_too_long(wait: &TooLong) {
            assert!(wait.owner.is_some() && wait.pauses > 0);
            TOLD.store(true, Relaxed);
        }
    }
    static LOCK: lock_api::Mutex<RawSpinMtx<tuning::Current, Told>, ()> = lock_api::Mutex::new(());
    let before = setting(Setting::FreebsdSpinLimit);
    set_setting(Setting::FreebsdSpinLimit, 1).unwrap();
    let held = LOCK.lock();
    thread::scope(|scope| {
        scope.spawn(|| drop(LOCK.lock()));
        while !TOLD.load(Relaxed) {
            thread::yield_now();
        }
        drop(held);
    });
    set_setting(Setting::FreebsdSpinLimit, before).unwrap();
}

fn recurses<L: RawRecursiveLock>(lock: &RecursiveMutex<L, Cell<u32>>) {
    let first = lock.lock();
    assert!(!RecursiveGuard::is_recursed(&first));
    let second = lock.lock();
    assert!(RecursiveGuard::is_recursed(&first) && lock.is_owned());
    second.set(first.get() + 1);
    drop(first); // in any order
    elsewhere(|| assert!(lock.try_lock().is_none() && !lock.is_owned()));
    drop(second);
    assert!(!lock.is_owned());
    assert_eq!(elsewhere(|| lock.try_lock().map(|count| count.get())), Some(1));
}

#[test]
fn a_holder_locks_again() {
    recurses(&RecursiveMtx::new(Cell::new(0)));
    recurses(&RecursiveSpinMtx::new(Cell::new(0)));
    let (mtx, spin) = (RecursiveMtx::new(0), RecursiveSpinMtx::new(0));
    let _held = (mtx.lock(), spin.lock());
    assert!(mtx.try_lock().is_some(), "mtx_trylock recurses");
    assert!(spin.try_lock().is_none(), "mtx_trylock_spin does not");
}

#[test]
fn recursive_sections_of_threads_exclude() {
    let lock = RecursiveMtx::new(RefCell::new((0, 0)));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let outer = lock.lock();
                    outer.borrow_mut().0 += 1;
                    lock.lock().borrow_mut().1 += 1;
                    assert_eq!(outer.borrow().0, outer.borrow().1);
                }
            });
        }
    });
    let all = THREADS as u32 * ROUNDS;
    assert_eq!(lock.into_inner().into_inner(), (all, all));
}

#[test]
fn a_writer_writes_again_and_borrows_once() {
    let lock = RecursiveRw::new(vec![1]);
    let first = lock.write();
    let second = lock.try_write().expect("the writer's own");
    second.borrow_mut().push(2);
    {
        let _borrowed = first.borrow();
        assert!(second.try_borrow_mut().is_err(), "no aliasing");
    }
    let first = RecursiveWriteGuard::downgrade(first).expect_err("there is another write guard");
    drop(second);
    assert!(elsewhere(|| lock.try_read().is_none()));
    let reads = RecursiveWriteGuard::downgrade(first).expect("the only one");
    assert_eq!(elsewhere(|| lock.try_read().map(|all| all.len())), Some(2));
    let other = lock.read();
    let reads = RecursiveReadGuard::try_upgrade(reads).expect_err("two read");
    drop(other);
    let writes = RecursiveReadGuard::try_upgrade(reads).expect("one reads");
    assert!(lock.is_owned() && !RecursiveWriteGuard::is_recursed(&writes));
    lock.write().borrow_mut().push(3);
    drop(writes);
    assert_eq!(lock.into_inner(), [1, 2, 3]);
}

#[test]
fn mistakes_are_found_by_debug_assertions() {
    let mtx = Mtx::new(());
    let held = mtx.lock();
    mistake("locks a mutex that it holds", || drop(mtx.lock()));
    assert!(mtx.is_owned(), "and nothing has changed");
    drop(held);
    let rw = Rw::new(());
    let held = rw.write();
    mistake("writes a lock that it writes already", || drop(rw.write()));
    mistake("reads a lock that it writes", || drop(rw.read()));
    drop(held);
    let sx = Sx::new(());
    let held = sx.write();
    mistake("writes a lock that it writes already", || drop(sx.write()));
    mistake("reads a lock that it writes", || drop(sx.read()));
    drop(held);
    let lockmgr = LockMgr::new(());
    let held = lockmgr.write();
    mistake("must not be acquired again", || drop(lockmgr.write()));
    mistake("drains a lock that it holds", || drop(lockmgr.drain(&LockMgrOptions::new())));
    drop(held);
    // The failed call must not leave the section.
    elsewhere(|| {
        let spin = SpinMtx::new(());
        let _held = spin.lock();
        mistake("locks a spin mutex that it holds", || drop(spin.lock()));
    });
}

/// Destroys a lock after `hold` has forgotten a guard of it.
fn destroyed<L: Destroy>(lock: L, hold: fn(&L)) -> L::Value {
    hold(&lock);
    lock.destroy()
}

#[test]
fn the_end_of_a_lock_that_is_held_is_found() {
    fn in_use(act: fn()) {
        mistake("destroys a lock that is in use", act);
    }
    in_use(|| destroyed(Rw::new(()), |lock| forget(lock.write())));
    in_use(|| destroyed(Rw::new(()), |lock| forget(lock.read())));
    in_use(|| destroyed(Sx::new(()), |lock| forget(lock.write())));
    in_use(|| destroyed(Sx::new(()), |lock| forget(lock.read())));
    in_use(|| destroyed(LockMgr::new(()), |lock| forget(lock.write())));
    in_use(|| destroyed(LockMgr::new(()), |lock| forget(lock.read())));
    in_use(|| destroyed(SpinMtx::new(()), |lock| elsewhere(|| forget(lock.lock()))));
    in_use(|| destroyed(Mtx::new(()), |lock| elsewhere(|| forget(lock.lock()))));
    let mine = destroyed(Mtx::new(7), |lock| forget(lock.lock()));
    assert_eq!(mine, 7, "as in the kernel its holder may destroy a mutex");
    assert_eq!(destroyed(SpinMtx::new(8), |lock| forget(lock.lock())), 8, "and a spin mutex");
    assert_eq!(destroyed(LockMgr::new(7), |_| ()), 7);
}

#[test]
fn bits_of_waiters_that_gave_up_do_not_hide_that_a_lock_is_held() {
    let (lockmgr, sx) = (LockMgr::new(7), Sx::new(8));
    let held = (lockmgr.read(), sx.read());
    let time = Duration::from_millis(1);
    elsewhere(|| {
        assert!(lockmgr.write_with(&LockMgrOptions::new().timeout(time)).is_err());
        assert!(sx.write_timed(time).is_err());
    });
    assert!(lockmgr.has_waiters());
    forget(held);
    // The bits do not hide that the lock is held either.
    mistake("destroys a lock that is in use", || _ = lockmgr.destroy());
    mistake("destroys a lock that is in use", || _ = sx.destroy());
}

#[test]
fn a_release_by_another_thread_is_found() {
    let (mtx, spin, rw, sx) = (Mtx::new(()), SpinMtx::new(()), Rw::new(()), Sx::new(()));
    let held = (mtx.lock(), spin.lock(), rw.write(), sx.write());
    // SAFETY: nothing is unlocked, since debug assertions panic at these mistakes. Without debug
    // assertions the mistakes are not made. The same holds below.
    elsewhere(|| unsafe {
        mistake("unlocks a mutex that it does not hold", || {
            mtx.force_unlock(lock_api::GuardNoSend::new());
        });
        mistake("unlocks a spin mutex that it does not hold", || {
            spin.force_unlock(lock_api::GuardNoSend::new());
        });
        mistake("unlocks a lock that it does not write", || {
            rw.force_unlock_write(lock_api::GuardNoSend::new());
        });
        mistake("unlocks a lock that it does not write", || {
            sx.force_unlock_write(lock_api::GuardNoSend::new());
        });
    });
    drop(held);
    let held = (rw.read(), sx.read());
    // SAFETY: as above.
    elsewhere(|| unsafe {
        mistake("releases a share that it does not hold", || {
            rw.force_unlock_read(lock_api::GuardNoSend::new());
        });
        mistake("releases a share that it does not hold", || {
            sx.force_unlock_read(lock_api::GuardNoSend::new());
        });
    });
    drop(held);
    assert!(mtx.try_lock().is_some() && rw.try_write().is_some() && sx.try_write().is_some());
}

#[test]
fn a_reader_reads_again_past_a_writer_that_waits() {
    let lock = Sx::new(0);
    thread::scope(|scope| {
        let reads = lock.read();
        scope.spawn(|| *lock.write() += 1);
        thread::sleep(Duration::from_millis(10));
        let again = lock.read();
        assert!(!SxReadGuard::rwlock(&reads).is_locked_exclusive());
        assert_eq!(*reads + *again, 0);
    });
    assert_eq!(lock.into_inner(), 1);
}
