//! Statistics of locks: how long each acquisition waited, and how.
//!
//! The caller of a lock knows when it asks for the lock, and when it has it. The platform does the
//! waiting in between, and calls [`Hooks`]. They do nothing unless a type implements them. So
//! statistics work for every lock. No lock has an instruction for them, nor has a platform that
//! uses [`Unwatched`].

/// Hooks for what a thread does while it waits for a lock. Every method does nothing unless
/// implemented. As with the functions of a [`Wait`](crate::native::Wait), a panic in a method ends
/// the process, and no method may use a lock.
pub trait Hooks: Send + Sync + 'static {
    /// The caller has looked without success, and stays awake until its next look.
    #[inline(always)]
    fn turned() {}

    /// Calls `sleep`, in which the caller sleeps.
    #[inline(always)]
    fn asleep<R>(sleep: impl FnOnce() -> R) -> R {
        sleep()
    }
}

/// No statistics: the hooks do nothing, and have no instructions.
#[derive(Debug)]
pub struct Unwatched;

impl Hooks for Unwatched {}

/// How a thread has waited, for all locks since it began; or for one acquisition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Looks without success, each followed by a pause of some kind.
    pub turns: u64,
    /// Sleeps.
    pub sleeps: u64,
    /// The total time of the sleeps, in ns.
    pub slept_ns: u64,
}

impl Waited {
    /// The difference since `earlier`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            turns: self.turns - earlier.turns,
            sleeps: self.sleeps - earlier.sleeps,
            slept_ns: self.slept_ns - earlier.slept_ns,
        }
    }

    /// Whether the thread has waited at all.
    pub const fn has_waited(self) -> bool {
        self.turns > 0 || self.sleeps > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::{Native, Wait};
    use crate::platform::Platform;
    use core::cell::Cell;
    use core::sync::atomic::AtomicU32;
    use core::sync::atomic::Ordering::Relaxed;
    use std::thread_local;

    thread_local! {
        static TURNS: Cell<u64> = const { Cell::new(0) };
    }

    /// Counts the thread's looks without success.
    struct Counted;

    impl Hooks for Counted {
        fn turned() {
            TURNS.set(TURNS.get() + 1);
        }
    }

    /// Counts, and does not wait.
    struct Impatient;

    impl Wait for Impatient {
        type Hooks = Counted;
        fn turn(_turn: u32) {}
    }

    #[test]
    fn an_acquisition_calls_the_hook_once_for_each_look_without_success() {
        type P = Native<Impatient>;
        let word = AtomicU32::new(0);
        P::wait_until(&word, Relaxed, |value| value == 0);
        assert_eq!(TURNS.get(), 0, "no thread has waited");
        let looks = Cell::new(0);
        P::wait_until(&word, Relaxed, |_| {
            looks.set(looks.get() + 1);
            looks.get() == 4
        });
        assert_eq!(TURNS.replace(0), 3);
        P::wait_until_bounded(&word, Relaxed, 5, |v| v == 1);
        assert_eq!(TURNS.replace(0), 5);
        P::pause(7, 0);
        assert_eq!(TURNS.replace(0), 7);
    }

    #[test]
    fn an_unwatched_sleep_is_done_all_the_same() {
        Unwatched::turned();
        assert_eq!(Unwatched::asleep(|| 5), 5);
    }

    #[test]
    fn a_difference_is_that_of_each_field() {
        let earlier = Waited { turns: 1, sleeps: 2, slept_ns: 30 };
        let later = Waited { turns: 4, sleeps: 2, slept_ns: 30 };
        assert_eq!(later.since(earlier), Waited { turns: 3, sleeps: 0, slept_ns: 0 });
        assert!(later.since(earlier).has_waited() && !later.since(later).has_waited());
        assert!(Waited { sleeps: 1, ..Waited::default() }.has_waited());
    }
}
