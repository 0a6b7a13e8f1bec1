//! Threads that get the name of one that has ended. Alone in its process, where other tests' threads would get it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use nearlock::freebsd::{RecursiveMtx, RecursiveSx};
use nearlock::process::thread_id;

/// What another thread finds.
fn elsewhere<R: Send>(act: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(act).join().unwrap())
}

/// The name in the word is given to another thread, who must not take itself for the holder.
#[test]
fn a_guard_that_is_left_behind_does_not_let_the_next_thread_in() {
    let (mtx, sx) = (RecursiveMtx::new(Cell::new(1)), RecursiveSx::new(1));
    let left_by = elsewhere(|| {
        std::mem::forget((mtx.lock(), sx.write()));
        thread_id()
    });
    for _ in 0..100 {
        let is_namesake = elsewhere(|| {
            assert!(mtx.try_lock().is_none() && sx.try_write().is_none());
            assert!(!mtx.is_owned() && !sx.is_owned());
            let is_namesake = thread_id() == left_by;
            if is_namesake {
                assert!(catch_unwind(AssertUnwindSafe(|| mtx.lock().get())).is_err());
                assert!(catch_unwind(AssertUnwindSafe(|| drop(sx.write()))).is_err());
            }
            is_namesake
        });
        if is_namesake {
            return;
        }
    }
    panic!("no thread has had the name");
}
