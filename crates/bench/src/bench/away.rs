//! A holder that is away: it sleeps in its section, again and again, while other threads want the
//! lock.
//!
//! ```text
//! holder   lock | barrier | sleep          | unlock         | barrier
//! waiter        | barrier | lock: waits ...         unlock  | barrier
//! ```
//! The operation is such a round. Its CPU time shows what the waiters do meanwhile.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use nearlock_core::native::Wait;
use nearlock_core::raw::RawLock;
use nearlock_workload::Observer;
use nearlock_workload::locktorture::OwnLine;

use super::crew::Members;
use super::sample::Outcome;
use super::throughput::{Done, Life, Witness, with_counted};

/// Threads that want the lock.
const WAITERS: usize = 8;
/// All threads.
pub const THREADS: usize = 1 + WAITERS;
/// The thread that sleeps. Only its sections count as operations.
const HOLDER: usize = 0;
/// Length of a sleep.
const SLEEP: Duration = Duration::from_millis(20);
/// The counted window is at least this long, so that it has some rounds.
pub const WINDOW_LEAST: Duration = Duration::from_millis(300);

struct Round<L> {
    lock: OwnLine<L>,
    /// Number of sections; only the holder of the lock accesses it.
    sections: OwnLine<AtomicU64>,
    /// All threads meet there before a round and after it.
    barrier: Barrier,
    is_over: AtomicBool,
}

impl<L: RawLock> Round<L> {
    /// A section that runs `inside`.
    fn section(&self, node: &L::Node, observer: &mut impl Observer, inside: impl FnOnce()) {
        observer.waiting();
        // SAFETY: the node is the calling thread's own, and is not in use.
        unsafe { self.lock.0.lock(node) };
        observer.acquired();
        // Relaxed: the lock orders its holders.
        let before = self.sections.0.load(Relaxed);
        inside();
        self.sections.0.store(before + 1, Relaxed);
        // SAFETY: locked above with this node.
        unsafe { self.lock.0.unlock(node) };
    }

    /// Returns the number of sections.
    fn hold<W: Wait>(&self, witness: &mut Witness<'_, W>) -> u64 {
        /// The holder does not wait: the lock is free when it begins a round.
        struct Unobserved;
        impl Observer for Unobserved {
            fn goes_on(&mut self) -> bool {
                true
            }
        }
        let node = L::Node::default();
        let mut sections = 0;
        loop {
            self.section(&node, &mut Unobserved, || {
                self.barrier.wait();
                std::thread::sleep(SLEEP);
            });
            self.barrier.wait();
            sections += 1;
            if !witness.goes_on() {
                break;
            }
        }
        // Relaxed: the barrier orders it.
        self.is_over.store(true, Relaxed);
        self.barrier.wait();
        sections
    }

    /// Returns the number of sections.
    fn want<W: Wait>(&self, witness: &mut Witness<'_, W>) -> u64 {
        let node = L::Node::default();
        let mut sections = 0;
        loop {
            self.barrier.wait();
            if self.is_over.load(Relaxed) {
                return sections;
            }
            self.section(&node, witness, || {});
            sections += 1;
            // Records the wait. The holder ends the run.
            _ = witness.goes_on();
            self.barrier.wait();
        }
    }
}

/// One run of one lock.
pub fn measure<W: Wait, L: RawLock>(window: Duration) -> Outcome {
    let round = Arc::new(Round::<L> {
        lock: OwnLine(L::default()),
        sections: OwnLine::default(),
        barrier: Barrier::new(THREADS),
        is_over: AtomicBool::new(false),
    });
    let worked = Arc::clone(&round);
    let life: Life<W> = Box::new(move |run, thread| {
        run.witnessed(thread, &mut |witness| {
            let counted = match thread {
                HOLDER => worked.hold(witness),
                _ => worked.want(witness),
            };
            Done { counted, ..Done::default() }
        });
    });
    with_counted(Members::Anywhere(THREADS), 1, window, life, &|| round.sections.0.load(Relaxed))
}
