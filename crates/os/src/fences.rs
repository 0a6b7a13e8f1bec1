//! Asymmetric fences: `light` restrains only the compiler; `heavy` interrupts every processor that
//! runs a thread of the process (membarrier). Where the kernel does not offer membarrier, both are
//! ordinary strong fences.
//!
//! ```text
//! word  0 not decided | 1 strong | 2 membarrier
//!
//!   0 -> 2   the process is registered         0 -> 1   the kernel has refused
//! ```
//! The word changes at most once. So it is sound to read it without any ordering:
//! 1. A heavy side never fences before the word is decided; it decides the word if needed. Its own
//!    attempt to register may be refused while that of another thread is not, since filters of
//!    system calls belong to threads. Even then it does what the word says.
//! 2. A light side that sees 2 leaves the fence to the heavy sides. The word is 2 forever, so by 1
//!    every heavy side, at any time, interrupts.
//! 3. A light side that sees 0 or 1 executes a fence itself, which is enough for either kind of
//!    heavy side.
//! 4. A heavy side executes a fence itself only if the word is 1. Then the word has never been 2
//!    and never will be, so by 3 every light side executes a fence itself.
//!
//! So a heavy side needs membarrier once the word is 2, and the kernel may still fail.
//! It may lack memory for the call. A filter of system calls that a thread has installed since may
//! refuse it. A process made by fork may not be registered. Linux has a remedy for each case
//! (`linux/membarrier.rs`). The heavy side tries again, registers again, or uses the command of
//! membarrier that needs no registration and takes milliseconds. If that is refused too, the
//! process prints on its standard error how this can be fixed, and aborts.
//!
//! Source: membarrier(2), commands `PRIVATE_EXPEDITED`, `REGISTER_PRIVATE_EXPEDITED` and `GLOBAL`.

pub mod kind;

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::compiler_fence;
use core::sync::atomic::{AtomicU32, AtomicU64};

use nearlock_core::native::Native;
use nearlock_core::strong_fences;

use crate::{start, sys};
use kind::{KIND, MEMBARRIER, STRONG, UNDECIDED};

/// How often a heavy side has interrupted every processor.
static MEMBARRIERS: AtomicU64 = AtomicU64::new(0);

/// See [`AsymFence::light`](nearlock_core::platform::AsymFence::light).
#[inline(always)]
pub fn light() {
    if is_light_free() {
        free_light();
    } else {
        light_by_itself();
    }
}

/// See [`AsymFence::is_light_free`](nearlock_core::platform::AsymFence::is_light_free).
#[inline(always)]
pub fn is_light_free() -> bool {
    KIND.load(Relaxed) == MEMBARRIER
}

/// See [`AsymFence::free_light`](nearlock_core::platform::AsymFence::free_light).
#[inline(always)]
pub fn free_light() {
    // Ordering: SeqCst, for the compiler alone: in the program that runs, our store comes before it
    // and our load after it, in this order. `heavy` puts a full fence between the two instructions,
    // before both, or after both.
    compiler_fence(SeqCst);
}

/// Also decides the word, so that the next light sides need not: there may never be a heavy side.
#[cold]
#[inline(never)]
fn light_by_itself() {
    strong_fences::light::<Native>();
    start::begin();
    register_membarrier();
}

/// See [`AsymFence::heavy`](nearlock_core::platform::AsymFence::heavy).
#[cold]
pub fn heavy() {
    if decided(&KIND, sys::register_membarrier) == MEMBARRIER {
        sys::membarrier();
        // Relaxed: a count, next to a call that takes some microseconds.
        MEMBARRIERS.fetch_add(1, Relaxed);
    } else {
        strong_fences::heavy::<Native>();
    }
}

/// The value of the word, which is decided now if needed.
fn decided(kind: &AtomicU32, register: impl FnOnce() -> bool) -> u32 {
    let known = kind.load(Relaxed);
    if known != UNDECIDED {
        return known;
    }
    let decision = if register() { MEMBARRIER } else { STRONG };
    match kind.compare_exchange(UNDECIDED, decision, Relaxed, Relaxed) {
        Ok(_) => decision,
        Err(earlier) => earlier,
    }
}

/// Decides now, rather than at the first fence of a lock, whether fences rely on membarrier.
/// Returns whether they do. If the kernel refuses, fences are ordinary ones.
///
/// The process is registered with the kernel before `main`, where that is possible. Otherwise this
/// takes some milliseconds if the process has several threads.
///
/// After this call the kernel should not refuse membarrier to any thread, because fences then take
/// milliseconds. If it refuses all forms of the call, the next fence aborts the process. A filter
/// of system calls should allow membarrier, or be installed before the decision: before any lock is
/// used.
pub fn register_membarrier() -> bool {
    decided(&KIND, sys::register_membarrier) == MEMBARRIER
}

/// How often a heavy side of this process has called membarrier.
pub fn membarriers() -> u64 {
    MEMBARRIERS.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicBool;
    use core::sync::atomic::Ordering::{Acquire, Release};
    use std::time::{Duration, Instant};

    #[test]
    fn the_first_decision_counts() {
        let kind = AtomicU32::new(UNDECIDED);
        assert_eq!(decided(&kind, || false), STRONG);
        assert_eq!(decided(&kind, || unreachable!("decided already")), STRONG);

        // Another thread registers while this one is being refused, and the other way round.
        for (earlier, own) in [(MEMBARRIER, false), (STRONG, true)] {
            let kind = AtomicU32::new(UNDECIDED);
            let decision = decided(&kind, || {
                kind.store(earlier, Relaxed);
                own
            });
            assert_eq!(decision, earlier);
        }
    }

    #[test]
    fn the_first_light_side_decides() {
        light();
        assert_ne!(KIND.load(Relaxed), UNDECIDED);
    }

    #[test]
    fn registering_is_asked_for_once() {
        assert_eq!(register_membarrier(), register_membarrier());
        heavy();
        light();
    }

    #[test]
    #[cfg(all(unix, not(miri)))]
    fn a_forked_process_can_fence_too() {
        register_membarrier();
        // SAFETY: the child calls nothing that depends on the state of another thread at the fork.
        let child = unsafe { libc::fork() };
        if child == 0 {
            heavy();
            // SAFETY: as above.
            unsafe { libc::_exit(7) };
        }
        let mut status = 0;
        // SAFETY: the status is writable.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status:#x}");
    }

    /// Dekker's pattern, again and again. The light side writes 1, 2, 3, ... to `x` without a stop,
    /// and reads `y` each time. The heavy side writes rounds to `y`, and reads `x`. If it reads
    /// `i`, it has missed the light side's write of `i + 1`. Then the light side's read after that
    /// write must have seen the round.
    struct Litmus {
        x: AtomicU32,
        y: AtomicU32,
        /// The value of `y` that the light side read after it had written i: at i modulo the
        /// length.
        seen: Vec<AtomicU32>,
        /// The light side has noted its reads up to this i.
        noted: AtomicU32,
        /// The heavy side no longer needs the notes up to this i.
        judged: AtomicU32,
        stop: AtomicBool,
    }

    const NOTES: u32 = 1 << 14;

    impl Litmus {
        fn light_side(&self) {
            let mut i = 0;
            while !self.stop.load(Relaxed) {
                if i - self.judged.load(Relaxed) >= NOTES / 2 {
                    sys::sched_yield();
                    continue;
                }
                i += 1;
                self.x.store(i, Relaxed);
                light();
                self.seen[(i % NOTES) as usize].store(self.y.load(Relaxed), Relaxed);
                self.noted.store(i, Release);
            }
        }

        /// Whether one of the two sides has seen the other.
        fn heavy_side(&self, round: u32) -> bool {
            self.y.store(round, Relaxed);
            heavy();
            let i = self.x.load(Relaxed);
            self.judged.store(i, Relaxed);
            while self.noted.load(Acquire) <= i {
                sys::sched_yield();
            }
            self.seen[((i + 1) % NOTES) as usize].load(Relaxed) >= round
        }
    }

    #[test]
    fn light_and_heavy_never_both_miss_the_other() {
        let [x, y, noted, judged] = [const { AtomicU32::new(0) }; 4];
        let seen = (0..NOTES).map(|_| AtomicU32::new(0)).collect();
        let litmus = Litmus { x, y, seen, noted, judged, stop: AtomicBool::new(false) };
        std::thread::scope(|scope| {
            scope.spawn(|| litmus.light_side());
            let start = Instant::now();
            let (mut rounds, mut missed) = (0, 0);
            while start.elapsed() < Duration::from_millis(if cfg!(miri) { 2 } else { 200 }) {
                rounds += 1;
                missed += u32::from(!litmus.heavy_side(rounds));
            }
            litmus.stop.store(true, Relaxed);
            assert_eq!(missed, 0, "of {rounds} rounds");
        });
    }
}
