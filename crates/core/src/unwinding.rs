//! Code that must not unwind: the records of waiters lie on their stacks, where other threads write
//! to them.

use core::mem;

/// Dropped only by a panic.
struct Unwound;

impl Drop for Unwound {
    #[cold]
    fn drop(&mut self) {
        // A panic while a panic unwinds ends the process.
        panic!(
            "a panic where a thread waits for a lock: others refer to its stack, so that it cannot be unwound"
        );
    }
}

/// Calls `f`. If it unwinds, the process ends.
///
/// For a user's function that is called where a thread cannot leave. Costs nothing where the
/// compiler sees that `f` does not unwind.
#[inline(always)]
pub fn without_unwinding<R>(f: impl FnOnce() -> R) -> R {
    let unwound = Unwound;
    let r = f();
    mem::forget(unwound);
    r
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_returned_as_it_is() {
        assert_eq!(without_unwinding(|| 5), 5);
    }

    /// No other panic unwinds here, so this one does not end the process.
    #[test]
    #[should_panic(expected = "a panic where a thread waits for a lock")]
    fn leaving_otherwise_panics_and_says_why() {
        drop(Unwound);
    }
}
