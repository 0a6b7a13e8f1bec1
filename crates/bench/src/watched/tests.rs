use std::sync::atomic::{AtomicU32, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

use nearlock_collection::subjects::{LockVisitor, Subject};
use nearlock_core::platform::{Park, Platform};
use nearlock_core::raw::RawTryLock;

use super::*;
use crate::switched::switched;

static SEEN: AtomicU64 = AtomicU64::new(0);

/// Waits like ordinary programs, and counts waits visibly for other threads.
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

/// Holds a lock until another thread is seen to wait for it. Returns the number of waits seen
/// before that thread started, and whether its wait was seen.
struct Contend;

impl LockVisitor<Os<Seen>> for Contend {
    type Output = (u64, bool);

    fn visit<L: RawTryLock>(self) -> (u64, bool) {
        /// Far longer than a thread takes to start.
        const PATIENCE: Duration = Duration::from_secs(60);
        let (lock, node) = (L::default(), L::Node::default());
        SEEN.store(0, Relaxed);
        thread::scope(|scope| {
            // SAFETY: each thread has its own node, and unlock follows lock, also below.
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
fn waits_of_a_watched_thread_are_recorded() {
    const SLEEP: Duration = Duration::from_millis(2);
    thread::spawn(|| {
        assert_eq!(waited(), Waited::default());
        for turn in 0..3 {
            <Os<Watched>>::cpu_relax(turn);
        }
        let word = AtomicU32::new(0);
        // Returns at once: the word has another value.
        <Os<Watched>>::park(&word, 1);
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
