//! Threads that get the id of a thread that has ended: the kernel's id. This test has a process to
//! itself, since threads of other tests would get the id.
//!
//! The kernel gives out ids in ascending order, so an id returns after thousands of threads. A
//! process can ask the kernel for an id (`/proc/sys/kernel/ns_last_pid`), which requires
//! privileges. Without them the tests print this, and show nothing.

#![cfg(target_os = "linux")]

use std::cell::Cell;
use std::fs;
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread;

use nearlock::freebsd::{Destroy, Ownership, RecursiveMtx, RecursiveSx, SpinMtx};
use nearlock::process::{ThreadId, thread_id};

/// Runs `act` in another thread, and returns its result.
fn elsewhere<R: Send>(act: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(act).join().unwrap())
}

/// Runs `act` in new threads until one of them has the id of a thread that has ended. Prints a line
/// if none gets it.
fn until_a_thread_gets_the_name(name: ThreadId, act: impl Fn() + Sync) {
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

/// Another thread gets the id in the word. It must not take itself for the holder.
#[test]
fn a_guard_that_is_left_behind_does_not_let_the_next_thread_in() {
    let (mtx, sx) = (RecursiveMtx::new(Cell::new(1)), RecursiveSx::new(1));
    let left_by = elsewhere(|| {
        forget((mtx.lock(), sx.write()));
        thread_id()
    });
    until_a_thread_gets_the_name(left_by, || {
        assert!(mtx.try_lock().is_none() && sx.try_write().is_none());
        assert!(!mtx.is_owned() && !sx.is_owned());
        if thread_id() == left_by {
            assert!(catch_unwind(AssertUnwindSafe(|| mtx.lock().get())).is_err());
            assert!(catch_unwind(AssertUnwindSafe(|| drop(sx.write()))).is_err());
        }
    });
}

/// A thread that destroys the lock must not leave a section that it has not entered. Its count
/// would be below zero when it unlocks another spin mutex.
#[test]
fn the_end_of_a_spin_mutex_that_a_namesake_has_left_costs_no_other_lock() {
    let left = SpinMtx::new(7);
    let left_by = elsewhere(|| {
        forget(left.lock());
        thread_id()
    });
    let left = Mutex::new(Some(left));
    until_a_thread_gets_the_name(left_by, || {
        let other = SpinMtx::new(1);
        let held = other.lock();
        if thread_id() == left_by {
            let left = left.lock().unwrap().take().expect("is ended once");
            assert_eq!((left.holder(), left.destroy()), (Some(left_by), 7));
        }
        drop(held);
    });
}
