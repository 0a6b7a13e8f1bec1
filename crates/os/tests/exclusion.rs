//! Every lock that is supposed to work excludes on this machine, with every waiting policy and with
//! all its switches.
//!
//! Runs are bounded by time, so that a lock that hands over once per scheduling quantum passes too.

use std::cell::UnsafeCell;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::time::{Duration, Instant};

use nearlock_collection::linux::cna::{CnaLock, NoShuffleReduction};
use nearlock_collection::linux::cna_v13::CnaV13Lock;
use nearlock_collection::subjects::{ALGORITHMS, LockVisitor, Subject};
use nearlock_core::events::LockEvent;
use nearlock_core::native::Wait;
use nearlock_core::raw::{RawLock, RawRwLock, RawTryLock};
use nearlock_core::tuning::{OFF, Position, SwitchInfo, Values};
use nearlock_os::{Os, Spin, SpinThenYield, events, sched_yield, set_numa_node};

#[path = "helpers/switched.rs"]
mod switched;

use switched::switched;

/// Length of a run, unless `NEARLOCK_EXCLUSION_MS` says another one.
const RUN: Duration = Duration::from_millis(20);

fn run_length() -> Duration {
    number("NEARLOCK_EXCLUSION_MS").map_or(RUN, Duration::from_millis)
}

/// The value of an environment variable, if it is set.
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}")))
}

/// An event that must happen has happened long before this, however loaded the machine is.
const PATIENCE: Duration = Duration::from_secs(300);

/// More threads than processors.
fn too_many_threads() -> u32 {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    (cpus + 2).min(16)
}

/// A counter that is correct only if the lock excludes.
#[derive(Default)]
struct Guarded<L> {
    lock: L,
    count: UnsafeCell<u64>,
    inside: AtomicU32,
    /// How often a thread came in while another was inside. Checked at the end, because a thread
    /// that panics inside leaves the others waiting.
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
            // With few processors, other threads come while the lock is held only if the holder
            // yields.
            if (*self.count.get()).is_multiple_of(16) {
                sched_yield();
            }
            self.inside.fetch_sub(1, Relaxed);
            self.lock.unlock(node);
        }
    }

    /// A reader checks that no writer is inside.
    fn look(&self) {
        if self.inside.load(Relaxed) != 0 {
            self.overlaps.fetch_add(1, Relaxed);
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
    run: Duration,
}

impl Excludes {
    /// Each of the threads calls `act` over and over, with its own node and a count that increases.
    /// `act` returns how many exclusive sections it has executed.
    fn over_and_over<L: RawLock>(self, act: impl Fn(&Guarded<L>, &L::Node, u64) -> u64 + Sync) {
        let guarded = Guarded::<L>::default();
        let total = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..self.threads {
                let (guarded, total, stop, act) = (&guarded, &total, &stop, &act);
                scope.spawn(move || {
                    set_numa_node((self.numa_nodes > 1).then_some(thread % self.numa_nodes));
                    let node = L::Node::default();
                    let (mut times, mut own) = (u64::from(thread), 0);
                    loop {
                        own += act(guarded, &node, times);
                        times += 1;
                        if stop.load(Relaxed) {
                            break;
                        }
                    }
                    total.fetch_add(own, Relaxed);
                });
            }
            std::thread::sleep(self.run);
            stop.store(true, Relaxed);
        });
        guarded.assert_count(total.into_inner());
    }
}

impl<W: Wait> LockVisitor<Os<W>> for Excludes {
    type Output = ();
    fn visit<L: RawTryLock>(self) {
        self.over_and_over::<L>(|guarded, node, _| {
            guarded.add_one(node);
            1
        });
    }
    /// One section in three is a reader's.
    fn visit_rw<L: RawRwLock>(self) {
        self.over_and_over::<L>(|guarded, node, times| {
            if !times.is_multiple_of(3) {
                guarded.add_one(node);
                return 1;
            }
            // SAFETY: the node is the calling thread's, and unlock follows lock.
            unsafe {
                guarded.lock.lock_shared(node);
                guarded.look();
                sched_yield();
                guarded.look();
                guarded.lock.unlock_shared(node);
            }
            0
        });
    }
}

fn every_lock_excludes<W: Wait>(threads: u32, numa_nodes: u32) {
    for subject in Subject::working() {
        println!("{} with {threads} threads", subject.name);
        let excludes = Excludes { threads, numa_nodes, run: run_length() };
        switched(subject, || subject.visit::<Os<W>, _>(excludes));
    }
}

/// At least this many combinations of its switches are tried of each algorithm, besides those of
/// its presets, each for half of a run. `NEARLOCK_EXCLUSION_SEED` draws others.
const COMBINATIONS: u64 = 40;

/// If an algorithm has at most this many combinations of words, all are tried.
const COMBINATIONS_OF_WORDS_MAX: u64 = 64;

/// How many combinations of words there are.
fn combinations_of_words(switches: &[&SwitchInfo]) -> u64 {
    let words = switches.iter().map(|switch| match switch.values {
        Values::Words(words) => words.len() as u64,
        Values::Number { .. } | Values::OffOrNumber { .. } => 1,
    });
    words.product()
}

/// The value of a switch for this choice. A number takes one of its limits, a small value, or its
/// default.
fn value(switch: &SwitchInfo, choice: u64) -> u64 {
    let numbers = |min: u64, max: u64| [min, max, max.min(4), switch.default];
    match switch.values {
        Values::Words(words) => choice % words.len() as u64,
        Values::Number { min, max } => numbers(min, max)[choice as usize % 4],
        Values::OffOrNumber { max } => [OFF, 0, 4, max][choice as usize % 4],
    }
}

/// The positions of the combinations, which live for ever. A leak detector reports none of them.
static KEPT: Mutex<Vec<&[Position]>> = Mutex::new(Vec::new());

/// An example of a fault that this finds: whether the head of a qspinlock competes was a separate
/// switch, which could contradict the others.
#[test]
#[cfg_attr(miri, ignore = "by the clock")]
fn combinations_of_switches_exclude() {
    // Knuth's 64-bit multiplier: the upper bits are well spread.
    let seed = number("NEARLOCK_EXCLUSION_SEED").unwrap_or(1);
    println!("NEARLOCK_EXCLUSION_SEED={seed}");
    let mut state = seed;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    for algorithm in ALGORITHMS.iter().filter(|algorithm| !algorithm.switches.is_empty()) {
        let of_words = combinations_of_words(algorithm.switches);
        let all_words = of_words <= COMBINATIONS_OF_WORDS_MAX;
        for combination in 0..if all_words { COMBINATIONS.max(of_words) } else { COMBINATIONS } {
            let mut rest = combination;
            let positions: Vec<_> = algorithm
                .switches
                .iter()
                .map(|&switch| match switch.values {
                    Values::Words(words) if all_words => {
                        let value = rest % words.len() as u64;
                        rest /= words.len() as u64;
                        Position { switch, value }
                    }
                    _ => Position { switch, value: value(switch, draw()) },
                })
                .collect();
            let positions = &*positions.leak();
            KEPT.lock().expect("is not poisoned").push(positions);
            let subject = Subject { positions, ..*Subject::named(algorithm.name).expect("is on the list") };
            println!("{}: {:?}", subject.name, subject.positions);
            let excludes = Excludes { threads: 3, numa_nodes: 2, run: run_length() / 2 };
            switched(&subject, || subject.visit::<Os, _>(excludes));
        }
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

/// The lock is held until all threads have come, so that there is a queue to be sorted. One round
/// may not suffice, because the scheduler determines the order of the queue.
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

/// The two run one after the other, because they count the same events.
#[test]
fn cna_sorts_waiters_of_two_numa_nodes() {
    sorts_waiters_of_two_numa_nodes::<CnaLock<Os, NoShuffleReduction>>();
    sorts_waiters_of_two_numa_nodes::<CnaV13Lock<Os, NoShuffleReduction>>();
}

struct FindsOut;

impl LockVisitor<Os> for FindsOut {
    type Output = bool;
    /// Whether two threads were ever inside at the same time.
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

/// The negative control: the fault that the tests above look for can be seen.
#[test]
fn a_lock_that_does_not_exclude_is_detected() {
    let busted = Subject::named("lock-busted").unwrap();
    assert!(switched(busted, || busted.visit::<Os, _>(FindsOut)));
}
