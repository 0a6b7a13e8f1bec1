//! A read guard that is forgotten keeps its own lock shared, wherever that lock is moved, and no
//! other lock. The same for the guards of `LockMgr` and of recursive mutexes.
//!
//! The list at the end has each raw lock that implements `RawRwLock`. The raw locks that implement
//! `RawMutex` are in `forgotten.rs`.

#![forbid(unsafe_code)]

use std::mem;
use std::thread;

use nearlock::RawRwLock;
use nearlock::freebsd::{LockMgr, LockMgrOptions, RawRw, RawSx, RecursiveMtx};
use nearlock::linux::RawRwSem;
use nearlock::lock_api::{self, RwLock};

/// Runs `act` in another thread, and returns its result.
fn elsewhere<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(act).join().unwrap())
}

/// Two locks that have changed places: the first is free, and the calling thread reads the second.
fn swapped<R: lock_api::RawRwLock>() -> [RwLock<R, &'static str>; 2] {
    let mut locks = [RwLock::new("free"), RwLock::new("read")];
    locks.swap(0, 1);
    mem::forget(locks[0].read());
    locks.swap(0, 1);
    locks
}

fn is_shared_where_it_is_moved_to<R: lock_api::RawRwLock + Send + Sync>() {
    let lock = RwLock::<R, _>::new(1);
    mem::forget(lock.read());
    let lock = Box::new(lock);
    assert!(lock.is_locked() && !lock.is_locked_exclusive());
    assert!(elsewhere(|| lock.try_write().is_none()), "written while it is read");
    assert_eq!(elsewhere(|| lock.try_read().map(|value| *value)), Some(1), "readers share it");
    assert!(lock.try_write().is_none(), "its own thread reads it too");
    mem::forget(*lock);
}

fn shares_no_lock_that_is_moved_to_its_place<R: lock_api::RawRwLock + Send + Sync>() {
    let mut locks = swapped::<R>();
    let [free, read] = &mut locks;
    assert!(!free.is_locked() && read.is_locked());
    *free.try_write().expect("all of its guards were dropped") = "written";
    assert_eq!(elsewhere(|| *free.write()), "written");
    assert!(elsewhere(|| read.try_write().is_none()), "its guard was forgotten");
    mem::forget(locks);
}

macro_rules! locks {
    ($($name:ident: $raw:ty,)*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn is_shared_where_it_is_moved_to() {
                elsewhere(super::is_shared_where_it_is_moved_to::<$raw>);
            }

            #[test]
            fn shares_no_lock_that_is_moved_to_its_place() {
                elsewhere(super::shares_no_lock_that_is_moved_to_its_place::<$raw>);
            }
        })*
    };
}

locks! {
    near: RawRwLock,
    rw: RawRw,
    sx: RawSx,
    rwsem: RawRwSem,
}

#[test]
fn a_lockmgr_stays_held_where_it_is_moved_to() {
    elsewhere(|| {
        let mut locks = [LockMgr::new("shared"), LockMgr::new("exclusive"), LockMgr::new("free")];
        mem::forget(locks[0].read());
        mem::forget(locks[1].write());
        locks.rotate_left(1);
        let [exclusive, free, shared] = &locks;
        let at_once = LockMgrOptions::new().no_wait();
        assert!(elsewhere(
            || exclusive.read_with(&at_once).is_err() && exclusive.write_with(&at_once).is_err()
        ));
        assert_eq!(elsewhere(|| shared.read_with(&at_once).ok().map(|value| *value)), Some("shared"));
        assert!(elsewhere(|| shared.write_with(&at_once).is_err()));
        assert_eq!(elsewhere(|| free.write_with(&at_once).ok().map(|value| *value)), Some("free"));
    });
}

#[test]
fn a_recursive_mutex_stays_held_where_it_is_moved_to() {
    elsewhere(|| {
        let lock = RecursiveMtx::new(1);
        mem::forget(lock.lock());
        let lock = Box::new(lock);
        assert_eq!(*lock.lock(), 1, "its thread locks it again");
        assert!(elsewhere(|| lock.try_lock().is_none()), "two threads hold it");
    });
}
