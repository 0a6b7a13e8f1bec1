//! Common parts of the tests of FreeBSD's locks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// Checks that debug assertions report a mistake. Does nothing without debug assertions.
pub fn mistake(says: &str, act: impl FnOnce()) {
    if !cfg!(debug_assertions) {
        return;
    }
    let panic = catch_unwind(AssertUnwindSafe(act)).expect_err("the mistake was not detected");
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or(panic.downcast_ref::<&str>().copied()).expect("a panic with a text");
    assert!(said.contains(says), "{said}");
}

/// Runs `act` in another thread, and returns its result.
pub fn elsewhere<R: Send>(act: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(act).join().unwrap())
}
