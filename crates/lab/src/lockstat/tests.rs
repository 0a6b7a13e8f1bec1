use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

use nearlock_collection::subjects::LockVisitor;
use nearlock_core::lockstat::Hooks;
use nearlock_core::native::Wait;
use nearlock_core::platform::{Park, Platform};
use nearlock_core::raw::RawTryLock;
use nearlock_os::{Os, SpinThenYield};

use super::*;
use crate::names;
use crate::switched::switched;

#[test]
fn a_wait_is_divided_into_sleep_and_the_rest() {
    let mut record = Record::default();
    record.acquired(5, Waited::default());
    record.acquired(1000, Waited { turns: 3, sleeps: 0, slept_ns: 0 });
    record.acquired(9000, Waited { turns: 1, sleeps: 2, slept_ns: 7000 });
    record.acquired(4000, Waited { turns: 0, sleeps: 1, slept_ns: 3500 });
    for hold_ns in [10, 20, 300] {
        record.released(hold_ns);
    }
    let statistics = record.statistics("mutex".to_owned(), Class::Adaptive, Mode::Writer).unwrap();
    assert_eq!((statistics.count, statistics.cnt_lock), (4, 3));
    assert_eq!((statistics.wait_max_ns, statistics.wait_total_ns), (9000, 14_005));
    assert_eq!((statistics.max_ns, statistics.total_ns), (300, 330));
    let [spin, block, hold] = &statistics.events[..] else { panic!("three events") };
    assert_eq!((&*spin.event, spin.count, spin.total_ns, spin.max_ns), ("adaptive-spin", 2, 3000, 2000));
    assert_eq!((&*block.event, block.count, block.total_ns), ("adaptive-block", 2, 10_500));
    assert_eq!((&*hold.event, hold.count), ("adaptive-hold", 3));
    let bucket = |from_ns, count| Bucket { from_ns, count };
    assert_eq!(hold.distribution, [bucket(8, 1), bucket(16, 1), bucket(256, 1)]);
}

#[test]
fn records_of_threads_add_up() {
    let mut sum = Record::default();
    assert!(sum.statistics(String::new(), Class::Rw, Mode::Reader).is_none(), "no acquisition, no row");
    let mut one = Record::default();
    one.acquired(7, Waited { turns: 1, ..Waited::default() });
    one.released(70_000_000_000);
    sum.add(&one);
    sum.add(&one);
    let statistics = sum.statistics("rw".to_owned(), Class::Rw, Mode::Reader).unwrap();
    assert_eq!((statistics.count, statistics.cnt_lock, statistics.total_ns), (2, 2, 140_000_000_000));
    assert_eq!(statistics.events[0].event, "rw-spin");
    assert_eq!(statistics.events[2].distribution.iter().map(|bucket| bucket.count).sum::<u64>(), 2);
}

#[test]
fn locks_are_of_the_class_that_comes_nearest() {
    let class = |name: &str| Class::of(names::lock(name).unwrap()).name();
    let names =
        ["freebsd-mtx", "linux-mutex", "freebsd-spin-mtx", "cna", "freebsd-rw", "freebsd-sx", "rwsem"];
    assert_eq!(names.map(class), ["adaptive", "adaptive", "spin", "spin", "rw", "sx", "sx"]);
}

static SEEN: AtomicU64 = AtomicU64::new(0);

/// Waits as programs do, and lets everybody see that somebody waits.
struct Seen;

impl Wait for Seen {
    type Hooks = Self;

    fn turn(turn: u32) {
        SpinThenYield::turn(turn);
    }
}

impl Hooks for Seen {
    fn turned() {
        SEEN.fetch_add(1, Relaxed);
    }

    fn asleep<R>(sleep: impl FnOnce() -> R) -> R {
        SEEN.fetch_add(1, Relaxed);
        sleep()
    }
}

/// Holds a lock until somebody is seen to wait for it. How often that was seen with nobody there, and whether then.
struct Contend;

impl LockVisitor<Os<Seen>> for Contend {
    type Output = (u64, bool);

    fn visit<L: RawTryLock>(self) -> (u64, bool) {
        /// Far longer than a thread takes to begin.
        const PATIENCE: Duration = Duration::from_secs(60);
        let (lock, node) = (L::default(), L::Node::default());
        SEEN.store(0, Relaxed);
        thread::scope(|scope| {
            // SAFETY: the nodes are each thread's own, and unlock follows lock; so below.
            unsafe { lock.lock(&node) };
            let alone = SEEN.load(Relaxed);
            let waits = || {
                let node = L::Node::default();
                // SAFETY: as above.
                unsafe {
                    lock.lock(&node);
                    lock.unlock(&node);
                }
            };
            scope.spawn(waits);
            let began = Instant::now();
            while SEEN.load(Relaxed) == 0 && began.elapsed() < PATIENCE {
                thread::yield_now();
            }
            let is_seen = SEEN.load(Relaxed) > 0;
            // SAFETY: as above.
            unsafe { lock.unlock(&node) };
            (alone, is_seen)
        })
    }
}

#[test]
fn every_lock_that_is_waited_for_calls_the_hooks() {
    for subject in Subject::working() {
        assert_eq!(
            switched(subject, || subject.visit::<Os<Seen>, _>(Contend)),
            (0, true),
            "{}",
            subject.name
        );
    }
}

#[test]
fn what_a_watched_thread_waits_is_noted() {
    const SLEEP: Duration = Duration::from_millis(2);
    thread::spawn(|| {
        assert_eq!(waited(), Waited::default());
        for turn in 0..3 {
            <Os<Watched>>::cpu_relax(turn);
        }
        let word = AtomicU32::new(0);
        <Os<Watched>>::park(&word, 1); // does not sleep for long: it is another
        let before = waited();
        assert_eq!((before.turns, before.sleeps), (3, 1));
        assert_eq!(Watched::asleep(|| thread::sleep(SLEEP)), ());
        let slept = waited().since(before);
        assert_eq!((slept.turns, slept.sleeps), (0, 1));
        assert!(slept.slept_ns >= SLEEP.as_nanos() as u64, "{slept:?}");
    })
    .join()
    .unwrap();
}
