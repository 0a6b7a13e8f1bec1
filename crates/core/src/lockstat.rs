//! Statistics of locks: how long each acquisition waited, and how.
//!
//! Who uses a lock sees when it asks and when it has it. What comes between is seen by the
//! platform, which does the waiting: it calls [`Hooks`], which are empty unless somebody implements
//! them. So statistics work for every lock, no lock has an instruction for them, and a platform
//! that names [`Unwatched`] has none either.

/// What a thread does while it waits for a lock. Every method is empty unless implemented. One that
/// panics ends the process, and none may use a lock, as the functions of a
/// [`Wait`](crate::native::Wait).
pub trait Hooks: Send + Sync + 'static {
    /// The caller has looked in vain, and waits awake until its next look.
    #[inline(always)]
    fn turned() {}

    /// Does `sleep`, in which the caller sleeps.
    #[inline(always)]
    fn asleep<R>(sleep: impl FnOnce() -> R) -> R {
        sleep()
    }
}

/// Nobody watches: nothing is done, by no instruction.
#[derive(Debug)]
pub struct Unwatched;

impl Hooks for Unwatched {}

/// How a thread has waited, for all locks since it began; or for one acquisition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Looks in vain, each followed by a pause of some kind.
    pub turns: u64,
    /// Sleeps.
    pub sleeps: u64,
    /// What they took together, in ns.
    pub slept_ns: u64,
}

impl Waited {
    /// What has come since `earlier`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            turns: self.turns - earlier.turns,
            sleeps: self.sleeps - earlier.sleeps,
            slept_ns: self.slept_ns - earlier.slept_ns,
        }
    }

    /// Whether it has waited at all.
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

    /// Counts what the thread waits.
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
    fn an_acquisition_calls_the_hook_once_for_each_look_in_vain() {
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
    fn what_nobody_watches_is_done_all_the_same() {
        Unwatched::turned();
        assert_eq!(Unwatched::asleep(|| 5), 5);
    }

    #[test]
    fn a_difference_is_that_of_everything() {
        let earlier = Waited { turns: 1, sleeps: 2, slept_ns: 30 };
        let later = Waited { turns: 4, sleeps: 2, slept_ns: 30 };
        assert_eq!(later.since(earlier), Waited { turns: 3, sleeps: 0, slept_ns: 0 });
        assert!(later.since(earlier).has_waited() && !later.since(later).has_waited());
        assert!(Waited { sleeps: 1, ..Waited::default() }.has_waited());
    }
}
