//! The reader-writer semaphores.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering::{self, Relaxed, Release};

use nearlock_collection::linux::osq::Osq;
use nearlock_collection::linux::rwsem::{NoSpin, Rwsem, RwsemTuning};
use nearlock_collection::linux::rwsem_xadd::{Base, RwsemXadd, SingleWaker};
use nearlock_core::parking::{GaveUp, Limit, RawTimedLock};
use nearlock_core::platform::{Atomic, AtomicInt};
use nearlock_core::raw::{RawLock, RawRwLock, RawTryLock};
use nearlock_model::engine::{Engine, Thread};
use nearlock_model::exclusion::held_at_first;
use nearlock_model::loom::{Loom, LoomU32, LoomU64};
use nearlock_model::model::Model;
use nearlock_model::mutate::Half;
use nearlock_model::readers::Act::{self, Read, Write};
use nearlock_model::readers::{acting, written_at_first};

use crate::words::{Kind, Same, Words};
use crate::{NO_END, Place, SECTIONS, caught, caught_without};

/// A model in which a writer holds the lock when the others come.
fn written<L: RawRwLock>(name: &str, acts: &'static [&'static [Act]], preemptions: usize) -> Model {
    written_at_first::<Loom, L>(name, acts, Some(preemptions))
}

const WRITERS: &[&[Act]] = &[&[Write], &[Write]];
const BOTH: &[&[Act]] = &[&[Write], &[Read]];

#[test]
fn rwsem_xadd_wake_up_left_to_no_thread() {
    /// A flag says that a wake-up is pending, and an unlock that sees it returns. The wake-up that
    /// the unlock leaves to the waker is lost.
    struct Flag;
    impl Kind for Flag {
        fn exchange(word: &LoomU32, old: u32, new: u32, ok: Ordering, err: Ordering) -> Result<u32, u32> {
            // The waker's last step, by which it would see that another unlock has come.
            if (old, new, ok) == (1, 0, Relaxed) {
                word.store(0, Release);
                return Ok(1);
            }
            word.compare_exchange(old, new, ok, err)
        }
    }
    fn model<K: Kind>() -> Model {
        written::<RwsemXadd<Words<K>, SingleWaker>>("rwsem-xadd-single-waker", WRITERS, 2)
    }
    caught("rwsem_xadd_wake_up_left_to_no_thread", &model::<Same>(), &model::<Flag>(), NO_END);
}

const XADD: &str = "linux/rwsem_xadd.rs";

#[test]
fn rwsem_xadd_waker_that_stores() {
    let place = Place { file: XADD, function: "wake_alone", operation: "swap" };
    let model = written::<RwsemXadd<Loom, SingleWaker>>("rwsem-xadd-single-waker", BOTH, 2);
    caught_without("rwsem_xadd_waker_that_stores", Half::Acquire, place, &model, NO_END);
}

#[test]
fn rwsem_xadd_compared_as_unsigned() {
    /// A reader takes no count to be below 0.
    struct Unsigned;
    impl Kind for Unsigned {
        fn add_long(word: &LoomU64, v: u64, order: Ordering) -> u64 {
            let old = word.fetch_add(v, order);
            if v == 1 { old & (u64::MAX >> 1) } else { old }
        }
    }
    fn model<K: Kind>() -> Model {
        acting::<Loom, RwsemXadd<Words<K>, Base>>("rwsem-xadd-base", &[&[Write], &[Read]], Some(3))
    }
    caught("rwsem_xadd_compared_as_unsigned", &model::<Same>(), &model::<Unsigned>(), SECTIONS);
}

#[test]
fn rwsem_xadd_attempt_in_the_way() {
    /// A reader that takes its attempt back assumes that another thread is active, and wakes no
    /// thread up.
    struct WakesNoThread;
    impl Kind for WakesNoThread {
        fn add_long(word: &LoomU64, v: u64, order: Ordering) -> u64 {
            let old = word.fetch_add(v, order);
            if v == 1_u64.wrapping_neg() { old + 1 } else { old }
        }
    }
    fn model<K: Kind>() -> Model {
        written::<RwsemXadd<Words<K>, Base>>("rwsem-xadd-base", BOTH, 2)
    }
    caught("rwsem_xadd_attempt_in_the_way", &model::<Same>(), &model::<WakesNoThread>(), NO_END);
}

/// The unit of one reader in the count of the current semaphore, and the bit of a writer.
const READER: u64 = 1 << 8;
const WRITER: u64 = 1;
const WAITERS: u64 = 1 << 1;
const HANDOFF: u64 = 1 << 2;

#[test]
fn rwsem_attempt_in_the_way() {
    /// A reader that takes its attempt back assumes that a thread writes, and wakes no thread up.
    struct WakesNoThread;
    impl Kind for WakesNoThread {
        fn add_long(word: &LoomU64, v: u64, order: Ordering) -> u64 {
            let old = word.fetch_add(v, order);
            if v == READER.wrapping_neg() { old | WRITER } else { old }
        }
    }
    fn model<K: Kind>() -> Model {
        written::<Rwsem<Words<K>, NoSpin>>("rwsem-no-spin", BOTH, 2)
    }
    caught("rwsem_attempt_in_the_way", &model::<Same>(), &model::<WakesNoThread>(), NO_END);
}

#[test]
fn rwsem_reader_that_queues_without_acquire() {
    let place = Place { file: "linux/rwsem/queue.rs", function: "queue_reader", operation: "load" };
    let model = acting::<Loom, Rwsem<Loom>>("rwsem", &[&[Write], &[Read]], Some(3));
    caught_without("rwsem_reader_that_queues_without_acquire", Half::Acquire, place, &model, SECTIONS);
}

nearlock_core::tuning! {
    /// A semaphore whose writers ask for a hand-over at their first failed attempt.
    struct Insists: RwsemTuning {
        writer_spin: bool = false;
        handoff_spin: bool = false;
        handoff_ns: Option<u64> = Some(0);
    }
}

/// The semaphore is read when a writer comes that asks for a hand-over, and then gives up. In
/// addition there are `readers` more.
fn insisting<K: Kind>(readers: u32, until_ns: u64) -> Model {
    let title = format!("rwsem, insisting: a writer gives up, {readers} more readers");
    Model::new(title, 2 + readers, Some(2), move || {
        let lock = Arc::new(Rwsem::<Words<K>, Insists>::default());
        // SAFETY: unlocked below; so in the other threads.
        unsafe { lock.lock_shared(&()) };
        let writer = {
            let lock = lock.clone();
            Loom::spawn(Thread { slot: Some(1), ..Thread::default() }, move || {
                // SAFETY: as above.
                unsafe {
                    match lock.lock_within(&(), &Limit::until(until_ns)) {
                        Ok(()) => lock.unlock(&()),
                        Err(why) => assert_eq!(why, GaveUp::TimedOut),
                    }
                }
            })
        };
        let readers = (2..2 + readers).map(|slot| {
            let lock = lock.clone();
            Loom::spawn(Thread { slot: Some(slot), ..Thread::default() }, move || {
                // SAFETY: as above.
                unsafe {
                    lock.lock_shared(&());
                    lock.unlock_shared(&());
                }
            })
        });
        let readers: Vec<_> = readers.collect();
        // SAFETY: locked above.
        unsafe { lock.unlock_shared(&()) };
        writer.join().unwrap();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        // SAFETY: no other thread is there.
        assert!(unsafe { lock.try_lock(&()) }, "the lock is free at last");
    })
}

#[test]
fn rwsem_handoff_to_a_waiter_that_has_given_up() {
    /// The last waiter that gives up clears only its own mark.
    struct Leaves;
    impl Kind for Leaves {
        fn and_long(word: &LoomU64, v: u64, order: Ordering) -> u64 {
            word.fetch_and(v | HANDOFF, order)
        }
    }
    let test = "rwsem_handoff_to_a_waiter_that_has_given_up";
    caught(test, &insisting::<Same>(0, 0), &insisting::<Leaves>(0, 0), "the lock is free at last");
}

#[test]
fn rwsem_first_that_gives_up_wakes_no_thread() {
    /// A thread that gives up assumes that a thread writes, and lets no thread in.
    struct WakesNoThread;
    impl Kind for WakesNoThread {
        fn add_long(word: &LoomU64, v: u64, order: Ordering) -> u64 {
            match Loom::thread().slot {
                Some(1) => word.load(order) | WRITER,
                _ => word.fetch_add(v, order),
            }
        }
    }
    /// The semaphore is read until another thread has read too. A writer is ahead of that thread
    /// for a while.
    fn model<K: Kind>() -> Model {
        let title = "rwsem, insisting: read until another reads, a writer gives up";
        Model::new(title, 3, Some(2), || {
            let lock = Arc::new(Rwsem::<Words<K>, Insists>::default());
            // SAFETY: unlocked below; so in the other threads.
            unsafe { lock.lock_shared(&()) };
            let (writers, readers) = (lock.clone(), lock.clone());
            let writer = Loom::spawn(Thread { slot: Some(1), ..Thread::default() }, move || {
                // SAFETY: it fails, because the semaphore is read all the time.
                let result = unsafe { writers.lock_within(&(), &Limit::until(0)) };
                assert_eq!(result, Err(GaveUp::TimedOut));
            });
            let reader = Loom::spawn(Thread { slot: Some(2), ..Thread::default() }, move || {
                // SAFETY: as above.
                unsafe {
                    readers.lock_shared(&());
                    readers.unlock_shared(&());
                }
            });
            reader.join().unwrap();
            writer.join().unwrap();
            // SAFETY: locked above.
            unsafe { lock.unlock_shared(&()) };
            // SAFETY: no other thread is there.
            assert!(unsafe { lock.try_lock(&()) }, "the lock is free at last");
        })
    }
    let test = "rwsem_first_that_gives_up_wakes_no_thread";
    caught(test, &model::<Same>(), &model::<WakesNoThread>(), NO_END);
}

#[test]
fn rwsem_wake_up_left_to_a_spinner() {
    nearlock_core::tuning! {
        /// Writers that ask for a hand-over at once, and spin before.
        struct SpinsAndInsists: RwsemTuning {
            handoff_spin: bool = false;
            handoff_ns: Option<u64> = Some(0);
        }
    }
    type Lock = Rwsem<Loom, SpinsAndInsists>;
    /// The first fields of such a lock (`repr(C)`).
    #[repr(C)]
    struct Words {
        count: LoomU64,
        owner: LoomU32,
        spinners: Osq<Loom>,
    }
    /// An unlock that sees a spinner wakes no thread up: the spinner will get the lock, and unlock
    /// it.
    #[derive(Default)]
    struct LeavesIt(Lock);
    // SAFETY: none: the bug may break it.
    unsafe impl RawLock for LeavesIt {
        type Node = ();
        unsafe fn lock(&self, node: &()) {
            // SAFETY: the condition of the caller; also below.
            unsafe { self.0.lock(node) };
        }
        unsafe fn unlock(&self, node: &()) {
            // SAFETY: the lock begins with these fields.
            let words = unsafe { &*ptr::from_ref(&self.0).cast::<Words>() };
            if words.spinners.has_spinner() {
                words.owner.store(0, Relaxed);
                // Ordering: Release, pairs with the Acquires of the threads that lock next.
                words.count.fetch_sub(WRITER, Release);
            } else {
                // SAFETY: as above.
                unsafe { self.0.unlock(node) };
            }
        }
    }
    fn model<L: RawLock>() -> Model {
        held_at_first::<Loom, L>("rwsem, insisting", 3, Some(2))
    }
    caught("rwsem_wake_up_left_to_a_spinner", &model::<Lock>(), &model::<LeavesIt>(), NO_END);
}

thread_local! {
    /// The count to which a reader is to be added when this many more readers have been let in.
    static LATE: Cell<(*const LoomU64, u32)> = const { Cell::new((ptr::null(), 0)) };
}

#[test]
fn rwsem_reader_let_in_before_all_are_counted() {
    /// The second of two readers is counted when both have been let in.
    struct CountsLate;
    impl Kind for CountsLate {
        fn add_long(word: &LoomU64, v: u64, order: Ordering) -> u64 {
            let is_late = v == READER - WAITERS;
            LATE.set(if is_late { (word, 2) } else { LATE.get() });
            word.fetch_add(if is_late { WAITERS.wrapping_neg() } else { v }, order)
        }
        fn or(word: &LoomU32, v: u32, order: Ordering) -> u32 {
            const GRANTED: u32 = 1 << 1;
            let old = word.fetch_or(v, order);
            if let (GRANTED, (count, left @ 1..)) = (v, LATE.get()) {
                LATE.set((count, left - 1));
                if left == 1 {
                    // SAFETY: the semaphore lives until the threads that are let in have been
                    // joined.
                    unsafe { &*count }.fetch_add(READER, Relaxed);
                }
            }
            old
        }
    }
    fn model<K: Kind>() -> Model {
        written::<Rwsem<Words<K>, NoSpin>>("rwsem-no-spin", &[&[Read, Write], &[Read]], 2)
    }
    let test = "rwsem_reader_let_in_before_all_are_counted";
    caught(test, &model::<Same>(), &model::<CountsLate>(), NO_END);
}

#[test]
fn rwsem_handoff_taken_off_twice() {
    /// A thread that lets readers in clears the bit once more.
    struct Twice;
    impl Kind for Twice {
        fn add_long(word: &LoomU64, v: u64, order: Ordering) -> u64 {
            let takes = [HANDOFF, HANDOFF | WAITERS].map(|bits| bits.wrapping_neg() & (READER - 1));
            let again = if takes.contains(&(v & (READER - 1))) { HANDOFF } else { 0 };
            word.fetch_add(v.wrapping_sub(again), order)
        }
    }
    let test = "rwsem_handoff_taken_off_twice";
    caught(test, &insisting::<Same>(1, 1), &insisting::<Twice>(1, 1), "the lock is free at last");
}
