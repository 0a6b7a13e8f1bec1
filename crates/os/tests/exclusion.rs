//! Every lock that means to work excludes, with every waiting policy, on this machine.
//!
//! Runs are bounded by time, so that a lock which hands over once per scheduling quantum passes too.

use std::cell::UnsafeCell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::time::{Duration, Instant};

use nearlock_core::events::LockEvent;
use nearlock_core::linux::cna::{CnaLock, NoShuffleReduction};
use nearlock_core::linux::cna_v13::CnaV13Lock;
use nearlock_core::native::Wait;
use nearlock_core::raw::{RawLock, RawTryLock};
use nearlock_core::subjects::{LockVisitor, Subject};
use nearlock_os::{Os, Spin, SpinThenYield, events, sched_yield, set_numa_node};

/// Length of a run.
const RUN: Duration = Duration::from_millis(150);

/// What must happen sooner or later has happened long before this, however loaded the machine is.
const PATIENCE: Duration = Duration::from_secs(300);

/// More threads than processors.
fn too_many_threads() -> u32 {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    (cpus + 2).min(16)
}

/// A counter that only exclusion keeps right.
#[derive(Default)]
struct Guarded<L> {
    lock: L,
    count: UnsafeCell<u64>,
    inside: AtomicU32,
    /// How often somebody came in while another was inside. Judged at the end: who panics inside leaves the
    /// others waiting.
    overlaps: AtomicU32,
}

// SAFETY: the cell is accessed by the lock's holder only.
unsafe impl<L: RawLock> Sync for Guarded<L> {}

impl<L: RawLock> Guarded<L> {
    fn add_one(&self, node: &L::Node) {
        // SAFETY: the node is the calling thread's, and unlock follows lock.
        unsafe {
            self.lock.lock(node);
            if self.inside.fetch_add(1, Relaxed) != 0 {
                self.overlaps.fetch_add(1, Relaxed);
            }
            *self.count.get() += 1;
            self.inside.fetch_sub(1, Relaxed);
            self.lock.unlock(node);
        }
    }

    fn assert_count(self, increments: u64) {
        assert_eq!(self.overlaps.into_inner(), 0, "two threads held the lock");
        assert_eq!(self.count.into_inner(), increments, "an increment is lost");
    }
}

struct Excludes {
    threads: u32,
    numa_nodes: u32,
}

impl<W: Wait> LockVisitor<Os<W>> for Excludes {
    type Output = ();
    fn visit<L: RawTryLock>(self) {
        let guarded = Guarded::<L>::default();
        let total = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..self.threads {
                let (guarded, total, stop) = (&guarded, &total, &stop);
                scope.spawn(move || {
                    set_numa_node((self.numa_nodes > 1).then_some(thread % self.numa_nodes));
                    let node = L::Node::default();
                    let mut own = 0;
                    loop {
                        guarded.add_one(&node);
                        own += 1;
                        if stop.load(Relaxed) {
                            break;
                        }
                    }
                    total.fetch_add(own, Relaxed);
                });
            }
            std::thread::sleep(RUN);
            stop.store(true, Relaxed);
        });
        guarded.assert_count(total.into_inner());
    }
}

fn every_lock_excludes<W: Wait>(threads: u32, numa_nodes: u32) {
    for subject in Subject::working() {
        println!("{} with {threads} threads", subject.name);
        subject.visit::<Os<W>, _>(Excludes { threads, numa_nodes });
    }
}

#[test]
fn with_more_threads_than_processors_and_yielding() {
    every_lock_excludes::<SpinThenYield>(too_many_threads(), 1);
}

#[test]
fn with_two_synthetic_numa_nodes() {
    every_lock_excludes::<SpinThenYield>(too_many_threads().max(4), 2);
}

#[test]
fn with_two_threads_and_spinning() {
    every_lock_excludes::<Spin>(2, 1);
}

/// The lock is held until all have come, so that there is a queue to be sorted. One round need not do: the
/// order of the queue is the scheduler's.
fn sorts_waiters_of_two_numa_nodes<L: RawLock<Node = ()>>() {
    const WAITERS: u32 = 6;
    let spliced = || events()[LockEvent::CnaSplice as usize];
    let (before, start) = (spliced(), Instant::now());
    while spliced() == before {
        assert!(start.elapsed() < PATIENCE, "no waiter is ever moved to the secondary queue");
        let guarded = Guarded::<L>::default();
        let coming = AtomicU32::new(0);
        // SAFETY: unlock follows in the scope below.
        unsafe { guarded.lock.lock(&()) };
        std::thread::scope(|scope| {
            for thread in 0..WAITERS {
                let (guarded, coming) = (&guarded, &coming);
                scope.spawn(move || {
                    set_numa_node(Some(thread % 2));
                    coming.fetch_add(1, Relaxed);
                    guarded.add_one(&());
                });
            }
            while coming.load(Relaxed) < WAITERS {
                sched_yield();
            }
            for _ in 0..100 {
                sched_yield();
            }
            // SAFETY: locked above, by this thread.
            unsafe { guarded.lock.unlock(&()) };
        });
        guarded.assert_count(u64::from(WAITERS));
    }
}

/// One after the other: they count the same events.
#[test]
fn cna_sorts_waiters_of_two_numa_nodes() {
    sorts_waiters_of_two_numa_nodes::<CnaLock<Os, NoShuffleReduction>>();
    sorts_waiters_of_two_numa_nodes::<CnaV13Lock<Os, NoShuffleReduction>>();
}

struct FindsOut;

impl LockVisitor<Os> for FindsOut {
    type Output = bool;
    /// Whether two threads were ever inside together.
    fn visit<L: RawTryLock>(self) -> bool {
        let (lock, inside, found) = (L::default(), AtomicU32::new(0), AtomicBool::new(false));
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let node = L::Node::default();
                    while !found.load(Relaxed) && start.elapsed() < PATIENCE {
                        // SAFETY: the node is the calling thread's, and unlock follows lock.
                        unsafe { lock.lock(&node) };
                        if inside.fetch_add(1, Relaxed) != 0 {
                            found.store(true, Relaxed);
                        }
                        sched_yield();
                        inside.fetch_sub(1, Relaxed);
                        // SAFETY: as above.
                        unsafe { lock.unlock(&node) };
                    }
                });
            }
        });
        found.into_inner()
    }
}

/// The negative control: what the tests above look for can be seen.
#[test]
fn a_lock_that_excludes_nobody_is_found_out() {
    let busted = Subject::named("lock-busted").unwrap();
    assert!(busted.visit::<Os, _>(FindsOut));
}
