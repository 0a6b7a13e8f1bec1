//! A forgotten guard keeps its own lock held, wherever that lock is moved, and no other lock.
//!
//! Safe code can move a lock whose guard was forgotten. So the holder of a lock must not depend on
//! the address of the lock. The list at the end has each raw lock that implements `RawMutex`.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::mem;
use std::thread;
use std::time::Duration;

use nearlock::RawMutex as RawNearMutex;
use nearlock::classic::{RawClhLock, RawCohortLock, RawGlibcMutex, RawMcsLock, RawTasLock, RawTtasLock};
use nearlock::freebsd::{RawMtx, RawRw, RawSpinMtx, RawSx};
use nearlock::linux::{
    RawCnaLock, RawCnaV13Lock, RawCnaV15Lock, RawCounterMutex, RawFifoSpinLock, RawMutex as RawLinuxMutex,
    RawRwSem, RawSpinLock,
};
use nearlock::lock_api::{Mutex, RawMutex, RawMutexTimed, ReentrantMutex};
use nearlock::raw::{Nodeless, Pooled, Unpreempted};
use parking_lot_013::RawThreadId;

type Reentrant<R> = ReentrantMutex<R, RawThreadId, Cell<u32>>;

/// Critical sections before a guard is forgotten: a lock may learn from them which thread locks it.
/// Fewer for Miri, which is slow.
const SECTIONS: u32 = if cfg!(miri) { 8 } else { 300 };

/// How long a waiter waits for a lock that it does not get.
const SHORT: Duration = Duration::from_millis(3);

/// Runs `act` in another thread, and returns its result.
fn elsewhere<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(act).join().unwrap())
}

/// A lock that the calling thread holds, and that has been moved since it was locked.
fn held_and_moved<R: RawMutex>() -> Box<Reentrant<R>> {
    let lock = Reentrant::<R>::new(Cell::new(0));
    (0..SECTIONS).for_each(|_| drop(lock.lock()));
    mem::forget(lock.lock());
    Box::new(lock)
}

fn is_held_where_it_is_moved_to<R: RawMutex + Send + Sync>() {
    let lock = held_and_moved::<R>();
    assert!(lock.is_locked() && lock.is_owned_by_current_thread());
    assert!(elsewhere(|| lock.try_lock().is_none()), "two threads hold it");
    // Its thread still holds it, and can lock it again.
    lock.lock().set(1);
    assert!(lock.is_locked() && elsewhere(|| lock.try_lock().is_none()), "two threads hold it");
    // For some locks it is a mistake to destroy a lock that is held.
    mem::forget(*lock);
}

fn is_waited_for_where_it_is_moved_to<R>()
where
    R: RawMutexTimed<Duration = Duration> + Send + Sync,
{
    let lock = held_and_moved::<R>();
    assert!(elsewhere(|| lock.try_lock_for(SHORT).is_none()), "two threads hold it");
    assert!(lock.is_locked());
    mem::forget(*lock);
}

/// Two locks that have changed places: the first is free, and the second is held by the calling
/// thread.
fn swapped<R: RawMutex>() -> [Mutex<R, &'static str>; 2] {
    let mut locks = [Mutex::new("free"), Mutex::new("held")];
    locks.swap(0, 1);
    for lock in &locks {
        (0..SECTIONS).for_each(|_| drop(lock.lock()));
    }
    mem::forget(locks[0].lock());
    locks.swap(0, 1);
    locks
}

fn holds_no_lock_that_is_moved_to_its_place<R: RawMutex + Send + Sync>() {
    let locks = swapped::<R>();
    let [free, held] = &locks;
    assert!(!free.is_locked() && held.is_locked());
    assert_eq!(free.try_lock().as_deref(), Some(&"free"), "all of its guards were dropped");
    assert_eq!(elsewhere(|| *free.lock()), "free");
    assert!(elsewhere(|| held.try_lock().is_none()), "its guard was forgotten");
    assert!(!free.is_locked() && held.is_locked());
    mem::forget(locks);
}

fn keeps_no_thread_waiting_for_a_lock_that_is_moved_to_its_place<R>()
where
    R: RawMutexTimed<Duration = Duration> + Send + Sync,
{
    let locks = swapped::<R>();
    let [free, held] = &locks;
    let waits = Duration::from_secs(60);
    assert_eq!(free.try_lock_for(waits).as_deref(), Some(&"free"), "all of its guards were dropped");
    assert!(elsewhere(|| held.try_lock_for(SHORT).is_none()), "its guard was forgotten");
    mem::forget(locks);
}

/// Each test runs in a separate thread, which ends with the guards that it has forgotten.
macro_rules! tests {
    ($name:ident: $raw:ty; $($test:ident)*) => {
        mod $name {
            use super::*;
            $(#[test]
            fn $test() {
                elsewhere(super::$test::<$raw>);
            })*
        }
    };
}

macro_rules! locks {
    ($($name:ident: $raw:ty,)*) => {
        $(tests! { $name: $raw; is_held_where_it_is_moved_to holds_no_lock_that_is_moved_to_its_place })*
    };
}

macro_rules! timed_locks {
    ($($name:ident: $raw:ty,)*) => {
        $(tests! {
            $name: $raw;
            is_held_where_it_is_moved_to is_waited_for_where_it_is_moved_to
            holds_no_lock_that_is_moved_to_its_place keeps_no_thread_waiting_for_a_lock_that_is_moved_to_its_place
        })*
    };
}

locks! {
    tas: Nodeless<RawTasLock>,
    ttas: Nodeless<RawTtasLock>,
    glibc_mutex: Nodeless<RawGlibcMutex>,
    mcs: Pooled<RawMcsLock>,
    clh: Pooled<RawClhLock>,
    cohort: Pooled<RawCohortLock>,
    spin_lock: RawSpinLock,
    fifo_spin_lock: RawFifoSpinLock,
    cna: RawCnaLock,
    cna_v15: Nodeless<RawCnaV15Lock>,
    cna_v13: Nodeless<RawCnaV13Lock>,
    mtx: RawMtx,
    spin_mtx: RawSpinMtx,
    rw: RawRw,
}

timed_locks! {
    near_mutex: RawNearMutex,
    unpreempted: Unpreempted<RawNearMutex>,
    linux_mutex: RawLinuxMutex,
    counter_mutex: RawCounterMutex,
    rwsem: RawRwSem,
    sx: RawSx,
}
