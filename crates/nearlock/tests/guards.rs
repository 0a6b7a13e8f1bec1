//! The guarantees of guards, for each lock that has them.
//!
//! Runs are bounded by time, so that a lock which hands over once per scheduling quantum passes
//! too.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use nearlock::Mutex as NearMutex;
use nearlock::RawMutex as RawNearMutex;
use nearlock::classic::{ClhLock, GlibcMutex, LockWith, McsLock, RawCohortLock, RawTasLock, TtasLock};
use nearlock::linux::{CnaLock, CounterMutex, FifoSpinLock, Mutex as LinuxMutex, SpinLock};
use nearlock::lock_api::{MappedMutexGuard, Mutex, MutexGuard, RawMutex};
use nearlock::process::set_numa_node;
use nearlock::raw::{Nodeless, Pooled, Unpreempted};

type CohortLock<T> = Mutex<Pooled<RawCohortLock>, T>;
/// A mutex whose holder asks for a longer time slice, where that is switched on.
type UnpreemptedMutex<T> = Mutex<Unpreempted<RawNearMutex>, T>;
type TasLock<T> = Mutex<Nodeless<RawTasLock>, T>;

/// Length of a run.
const RUN: Duration = Duration::from_millis(if cfg!(miri) { 5 } else { 100 });

const THREADS: usize = 4;

/// Runs each test for a static of each lock.
macro_rules! for_each_lock {
    ($($test:ident)*) => {
        for_each_lock!(@ spin_lock SpinLock, $($test)*);
        for_each_lock!(@ fifo_spin_lock FifoSpinLock, $($test)*);
        for_each_lock!(@ cna_lock CnaLock, $($test)*);
        for_each_lock!(@ linux_mutex LinuxMutex, $($test)*);
        for_each_lock!(@ near_mutex NearMutex, $($test)*);
        for_each_lock!(@ unpreempted_mutex UnpreemptedMutex, $($test)*);
        for_each_lock!(@ counter_mutex CounterMutex, $($test)*);
        for_each_lock!(@ mcs_lock McsLock, $($test)*);
        for_each_lock!(@ clh_lock ClhLock, $($test)*);
        for_each_lock!(@ cohort_lock CohortLock, $($test)*);
        for_each_lock!(@ glibc_mutex GlibcMutex, $($test)*);
        for_each_lock!(@ ttas_lock TtasLock, $($test)*);
        for_each_lock!(@ tas_lock TasLock, $($test)*);
    };
    (@ $name:ident $lock:ident, $($test:ident)*) => {
        mod $name {
            use super::*;
            $(#[test]
            fn $test() {
                static LOCK: $lock<Data> = $lock::new(Data { left: 0, right: 0 });
                super::$test(&LOCK);
            })*

            #[test]
            fn may_guard_data_without_a_size() {
                let slice: &$lock<[u32]> = &$lock::new([1, 2, 3]);
                slice.lock()[1] += 5;
                assert_eq!(*slice.lock(), [1, 7, 3]);
                let debug: Box<$lock<dyn std::fmt::Debug + Send>> = Box::new($lock::new("anything"));
                assert_eq!(format!("{:?}", &*debug.lock()), "\"anything\"");
            }

            #[test]
            fn is_made_and_unmade_as_in_std() {
                let mut lock = $lock::from(3);
                *lock.get_mut() += 1;
                assert_eq!(format!("{lock:?}"), "Mutex { data: 4 }");
                {
                    let guard = lock.lock();
                    assert_eq!(format!("{lock:?}"), "Mutex { data: <locked> }");
                    assert_eq!(format!("{guard:?} {guard}"), "4 4");
                }
                assert_eq!(lock.into_inner(), 4);
                assert_eq!($lock::<u32>::default().into_inner(), 0);
            }
        }
    };
}

for_each_lock! {
    excludes
    tries_without_waiting
    is_released_by_a_panic
    is_released_through_a_mapped_guard
    stays_locked_when_a_guard_is_forgotten
    may_be_released_and_taken_in_between
    works_while_a_thread_is_being_destroyed
}

/// Two halves that are equal outside of critical sections.
#[derive(Debug, Default)]
struct Data {
    left: u64,
    right: u64,
}

type Lock<R> = Mutex<R, Data>;

fn excludes<R: RawMutex + Sync>(lock: &Lock<R>) {
    let stop = AtomicBool::new(false);
    let sections: u64 = std::thread::scope(|scope| {
        let count = |thread: usize| {
            // CNA has waiters to sort then, whatever the machine is. (And Miri cannot ask the
            // machine.)
            set_numa_node(Some(thread as u32 % 2));
            let mut own = 0;
            while !stop.load(Relaxed) {
                let mut data = lock.lock();
                let left = data.left;
                assert_eq!(left, data.right, "saw half of a section");
                data.left = left + 1;
                std::hint::spin_loop();
                data.right = left + 1;
                own += 1;
            }
            own
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || count(thread))).collect();
        std::thread::sleep(RUN);
        stop.store(true, Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(lock.lock().left, sections, "a section is lost");
}

fn tries_without_waiting<R: RawMutex + Sync>(lock: &Lock<R>) {
    let guard = lock.try_lock().expect("is free");
    assert!(lock.is_locked());
    assert!(lock.try_lock().is_none());
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(lock.try_lock().is_none()));
    });
    drop(guard);
    assert!(!lock.is_locked());
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(lock.try_lock().is_some()));
    });
    assert!(!lock.is_locked());
}

/// Panics, without a message on standard error.
fn panic() -> ! {
    std::panic::resume_unwind(Box::new(()))
}

fn is_released_by_a_panic<R: RawMutex>(lock: &Lock<R>) {
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut data = lock.lock();
        data.left = 1;
        panic();
    }));
    assert!(panicked.is_err());
    assert_eq!(lock.try_lock().expect("is released").left, 1, "the data stays as it was left");
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        drop(MutexGuard::map(lock.lock(), |_data| -> &mut u64 { panic() }));
    }));
    assert!(panicked.is_err());
    assert!(lock.try_lock().is_some());
}

fn is_released_through_a_mapped_guard<R: RawMutex>(lock: &Lock<R>) {
    let mut right = MutexGuard::map(lock.lock(), |data| &mut data.right);
    *right = 3;
    assert!(lock.try_lock().is_none());
    let right = MappedMutexGuard::map(right, |right| right);
    assert!(lock.try_lock().is_none());
    drop(right);
    let refused = MutexGuard::try_map(lock.lock(), |_data| None::<&mut u64>);
    let guard = refused.expect_err("the closure returned none");
    assert_eq!((guard.left, guard.right), (0, 3));
    assert!(lock.try_lock().is_none());
    drop(guard);
    assert!(!lock.is_locked());
}

fn stays_locked_when_a_guard_is_forgotten<R: RawMutex + Sync>(lock: &Lock<R>) {
    std::thread::scope(|scope| {
        scope.spawn(|| std::mem::forget(lock.lock()));
    });
    // The thread has ended, and so has all that its guards could have pointed to.
    assert!(lock.is_locked());
    assert!(lock.try_lock().is_none());
}

fn may_be_released_and_taken_in_between<R: RawMutex>(lock: &Lock<R>) {
    let mut guard = lock.lock();
    MutexGuard::unlocked(&mut guard, || lock.try_lock().expect("is released").left = 2);
    assert_eq!(guard.left, 2);
    assert!(lock.try_lock().is_none());
}

fn works_while_a_thread_is_being_destroyed<R: RawMutex + Sync>(lock: &Lock<R>) {
    /// Runs when the thread's local data is destroyed.
    struct AtEnd(Cell<Option<Box<dyn FnOnce()>>>);
    impl Drop for AtEnd {
        fn drop(&mut self) {
            if let Some(end) = self.0.take() {
                end();
            }
        }
    }
    thread_local! {
        static EARLY: AtEnd = const { AtEnd(Cell::new(None)) };
        static LATE: AtEnd = const { AtEnd(Cell::new(None)) };
    }
    /// Safety: the thread ends before what the closure borrows.
    unsafe fn for_ever<'a>(end: Box<dyn FnOnce() + 'a>) -> Box<dyn FnOnce()> {
        // SAFETY: upheld by the caller.
        unsafe { std::mem::transmute(end) }
    }
    let count = || lock.lock().left += 1;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // With any order of destruction, one of the two runs after the destruction of the data
            // that the lock keeps for the thread.
            // SAFETY: the thread is joined below, with its local data.
            EARLY.with(|end| end.0.set(Some(unsafe { for_ever(Box::new(count)) })));
            count();
            // SAFETY: as above.
            LATE.with(|end| end.0.set(Some(unsafe { for_ever(Box::new(count)) })));
        });
        thread.join().unwrap();
    });
    assert_eq!(lock.lock().left, 3);
}

#[test]
fn guards_may_be_dropped_in_any_order() {
    let locks: [McsLock<usize>; 5] = std::array::from_fn(McsLock::new);
    for skip in 0..locks.len() {
        let mut guards: Vec<_> = locks.iter().map(|lock| lock.lock()).collect();
        guards.rotate_left(skip);
        while let Some(guard) = guards.pop() {
            let number = *guard;
            drop(guard);
            assert!(!locks[number].is_locked());
            assert_eq!(locks.iter().filter(|lock| lock.is_locked()).count(), guards.len());
        }
    }
}

#[test]
fn sections_with_a_node_on_the_stack_exclude_those_with_guards() {
    let lock = McsLock::new(Data::default());
    let stop = AtomicBool::new(false);
    let section = |data: &mut Data| {
        let left = data.left;
        assert_eq!(left, data.right, "saw half of a section");
        data.left = left + 1;
        std::hint::spin_loop();
        data.right = left + 1;
        1
    };
    let sections: u64 = std::thread::scope(|scope| {
        let count = |thread: usize| {
            let (lock, stop) = (&lock, &stop);
            move || {
                let mut own = 0;
                while !stop.load(Relaxed) {
                    own += match thread % 3 {
                        0 => lock.lock_with(section),
                        1 => section(&mut lock.lock()),
                        _ => lock.try_lock_with(section).unwrap_or(0),
                    };
                }
                own
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(count(thread))).collect();
        std::thread::sleep(RUN);
        stop.store(true, Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(lock.lock().left, sections, "a section is lost");
}

#[test]
fn a_section_with_a_node_on_the_stack_is_released_by_a_panic() {
    let lock = McsLock::new(1);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        lock.lock_with(|value| {
            *value = 2;
            panic()
        })
    }));
    assert!(panicked.is_err());
    let panicked = catch_unwind(AssertUnwindSafe(|| lock.try_lock_with(|_value| panic())));
    assert!(panicked.is_err());
    assert_eq!(lock.try_lock_with(|value| *value), Some(2));
    let _guard = lock.lock();
    assert_eq!(lock.try_lock_with(|value| *value), None);
}
