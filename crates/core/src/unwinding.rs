//! Where nothing may unwind: waiters lie in queues on their stacks, and other threads write to them
//! there.

use core::mem;

/// Dropped by nobody but a panic.
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

/// Does `f`. If that unwinds, the process ends.
///
/// For what a user brings that is called where a thread cannot leave. Costs nothing where `f` is
/// seen not to unwind.
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
    fn what_returns_is_as_it_was() {
        assert_eq!(without_unwinding(|| 5), 5);
    }

    /// Here no other panic unwinds, so this one does not end the process.
    #[test]
    #[should_panic(expected = "a panic where a thread waits for a lock")]
    fn what_is_left_otherwise_panics_and_says_why() {
        drop(Unwound);
    }
}
