//! What the tests of FreeBSD's locks have in common.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// What debug assertions say of a mistake; nothing without them.
pub fn mistake(says: &str, act: impl FnOnce()) {
    if !cfg!(debug_assertions) {
        return;
    }
    let panic = catch_unwind(AssertUnwindSafe(act)).expect_err("a mistake that nobody has found");
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or(panic.downcast_ref::<&str>().copied()).expect("a panic with a text");
    assert!(said.contains(says), "{said}");
}

/// What another thread finds.
pub fn elsewhere<R: Send>(act: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(act).join().unwrap())
}
