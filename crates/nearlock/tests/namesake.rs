//! Threads that get the name of one that has ended: the kernel's id. Alone in its process, where
//! other tests' threads would get it.
//!
//! The kernel gives ids out in a row, so a name comes again after thousands of threads, unless the
//! kernel is asked for it (`/proc/sys/kernel/ns_last_pid`), which takes privileges. Without these
//! the tests say so, and show nothing.

#![cfg(target_os = "linux")]

use std::cell::Cell;
use std::fs;
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread;

use nearlock::freebsd::{Destroy, Ownership, RecursiveMtx, RecursiveSx, SpinMtx};
use nearlock::process::{ThreadId, thread_id};

/// What another thread finds.
fn elsewhere<R: Send>(act: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(act).join().unwrap())
}

/// Has threads do this until one of them has the name of a thread that has ended, and says so.
fn until_one_is_called(name: ThreadId, act: impl Fn() + Sync) {
    const TRIES: u32 = if cfg!(miri) { 100 } else { 2000 };
    let mut is_asked = true;
    for _ in 0..TRIES {
        // Another process may get the id that is asked for.
        is_asked &=
            !cfg!(miri) && fs::write("/proc/sys/kernel/ns_last_pid", (name.get() - 1).to_string()).is_ok();
        let is_namesake = elsewhere(|| {
            act();
            thread_id() == name
        });
        if is_namesake {
            return;
        }
    }
    assert!(!is_asked, "no thread has had the name");
    println!("no thread has had the name: the kernel is not asked for it without privileges");
}

/// The name in the word is given to another thread, who must not take itself for the holder.
#[test]
fn a_guard_that_is_left_behind_does_not_let_the_next_thread_in() {
    let (mtx, sx) = (RecursiveMtx::new(Cell::new(1)), RecursiveSx::new(1));
    let left_by = elsewhere(|| {
        forget((mtx.lock(), sx.write()));
        thread_id()
    });
    until_one_is_called(left_by, || {
        assert!(mtx.try_lock().is_none() && sx.try_write().is_none());
        assert!(!mtx.is_owned() && !sx.is_owned());
        if thread_id() == left_by {
            assert!(catch_unwind(AssertUnwindSafe(|| mtx.lock().get())).is_err());
            assert!(catch_unwind(AssertUnwindSafe(|| drop(sx.write()))).is_err());
        }
    });
}

/// The thread that ends the lock leaves no section by it that it has not entered: its count would
/// be below zero when it unlocks another spin mutex.
#[test]
fn the_end_of_a_spin_mutex_that_a_namesake_has_left_costs_no_other_lock() {
    let left = SpinMtx::new(7);
    let left_by = elsewhere(|| {
        forget(left.lock());
        thread_id()
    });
    let left = Mutex::new(Some(left));
    until_one_is_called(left_by, || {
        let other = SpinMtx::new(1);
        let held = other.lock();
        if thread_id() == left_by {
            let left = left.lock().unwrap().take().expect("is ended once");
            assert_eq!((left.holder(), left.destroy()), (Some(left_by), 7));
        }
        drop(held);
    });
}
