//! What the variants of the main types promise: `ReentrantMutex`, `FairMutex`, `RecursiveRwLock`,
//! recursive reads, `Once` and `Barrier`.

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use nearlock::lock_api::GetThreadId;
use nearlock::{
    Barrier, FairMutex, Once, OnceState, RawThreadId, ReadRecursive, RecursiveRwLock, ReentrantMutex,
    ReentrantMutexGuard, RwLock,
};

const SHORT: Duration = Duration::from_millis(1);
const THREADS: usize = 4;

/// Runs `act` in another thread, and returns its result.
fn elsewhere<R: Send>(act: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(act).join().unwrap())
}

#[test]
fn a_holder_may_lock_a_reentrant_mutex_again() {
    let mutex = ReentrantMutex::new(RefCell::new(1));
    let first = mutex.lock();
    let (second, third) =
        (mutex.try_lock().expect("the holder"), mutex.try_lock_for(SHORT).expect("the holder"));
    *second.borrow_mut() += 1;
    assert!(mutex.is_owned_by_current_thread());
    assert!(elsewhere(|| mutex.try_lock().is_none() && mutex.try_lock_until(Instant::now()).is_none()));
    drop((first, second));
    assert!(elsewhere(|| !mutex.is_owned_by_current_thread() && mutex.try_lock().is_none()));
    let mapped = ReentrantMutexGuard::map(third, |data| data);
    assert_eq!(*mapped.borrow(), 2);
    drop(mapped);
    assert_eq!(elsewhere(|| *mutex.lock().borrow()), 2);
}

#[test]
fn threads_exclude_each_other_from_a_reentrant_mutex() {
    let count = ReentrantMutex::new(Cell::new(0));
    let rounds = if cfg!(miri) { 20 } else { 2_000 };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..rounds {
                    let outer = count.lock();
                    let inner = count.lock();
                    inner.set(inner.get() + 1);
                    drop(outer);
                }
            });
        }
    });
    assert_eq!(count.into_inner().get(), THREADS * rounds);
}

/// Also in the destructors of thread-local data.
#[test]
fn a_thread_has_one_name_of_its_own() {
    thread_local! {
        static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    }
    struct Last(usize);
    impl Drop for Last {
        fn drop(&mut self) {
            assert_eq!(RawThreadId.nonzero_thread_id().get(), self.0);
            let mutex = ReentrantMutex::new(1);
            assert_eq!(*mutex.lock() + *mutex.lock(), 2);
        }
    }
    let barrier = Barrier::new(THREADS);
    let mut names: Vec<_> = thread::scope(|scope| {
        let name = || {
            let name = RawThreadId.nonzero_thread_id().get();
            LAST.set(Some(Last(name)));
            barrier.wait();
            name
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(name)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), THREADS);
}

#[test]
fn threads_exclude_each_other_from_a_fair_mutex() {
    let count = FairMutex::new(0);
    let rounds = if cfg!(miri) { 20 } else { 500 };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..rounds).for_each(|_| *count.lock() += 1));
        }
    });
    let guard = count.try_lock().expect("is free");
    assert!(count.try_lock_for(SHORT).is_none() && count.try_lock_until(Instant::now()).is_none());
    assert_eq!(*guard, THREADS * rounds);
}

/// Waits until a writer waits: then a thread that does not read cannot read.
fn await_writer<T: Send + Sync>(lock: &RwLock<T>) {
    while elsewhere(|| lock.try_read().is_some()) {
        thread::yield_now();
    }
}

#[test]
fn a_recursive_read_of_another_thread_passes_a_waiting_writer() {
    for reads in [0, 1, 100, 2_000, 5_000] {
        let lock = RwLock::new(0);
        (0..reads).for_each(|_| drop(lock.read()));
        let read = lock.read();
        thread::scope(|scope| {
            scope.spawn(|| *lock.write() += 1);
            await_writer(&lock);
            assert_eq!(elsewhere(|| *lock.read_recursive()), 0);
            assert!(elsewhere(|| lock.try_read_for(SHORT).is_none()), "other reads wait");
            // An attempt with a limit may end before the writer has begun to wait. It has by now.
            assert_eq!(elsewhere(|| lock.try_read_recursive().map(|value| *value)), Some(0));
            let long = Duration::from_secs(1000);
            assert_eq!(elsewhere(|| lock.try_read_recursive_for(long).map(|value| *value)), Some(0));
            let moment = Instant::now() + long;
            assert_eq!(elsewhere(|| lock.try_read_recursive_until(moment).map(|value| *value)), Some(0));
            drop(read);
        });
        assert_eq!(*lock.read_recursive(), 1);
    }
}

#[test]
fn a_recursive_read_waits_for_a_writer_that_has_the_lock() {
    let lock = RwLock::new(0);
    let mut write = lock.write();
    assert!(elsewhere(|| lock.try_read_recursive().is_none()));
    assert!(elsewhere(|| lock.try_read_recursive_for(SHORT).is_none()));
    assert!(elsewhere(|| lock.try_read_recursive_until(Instant::now()).is_none()));
    thread::scope(|scope| {
        let reader = scope.spawn(|| *lock.read_recursive());
        *write = 1;
        drop(write);
        assert_eq!(reader.join().unwrap(), 1);
    });
}

#[test]
fn all_reads_of_a_recursive_rwlock_pass_a_waiting_writer() {
    let lock = RecursiveRwLock::new(0);
    let read = lock.read();
    thread::scope(|scope| {
        scope.spawn(|| *lock.write() += 1);
        for _ in 0..20 {
            assert_eq!(elsewhere(|| *lock.read()), 0);
            thread::sleep(SHORT / 10);
        }
        let long = Duration::from_secs(1000);
        assert_eq!(elsewhere(|| lock.try_read_for(long).map(|value| *value)), Some(0));
        drop(read);
    });
    let upgradable = lock.upgradable_read();
    assert!(lock.is_locked() && !lock.is_locked_exclusive());
    assert!(elsewhere(|| lock.try_read().is_some() && lock.try_write().is_none()));
    drop(upgradable);
    assert_eq!(lock.into_inner(), 1);
}

#[test]
fn a_closure_runs_once_and_all_see_its_effects() {
    let (once, runs) = (Once::new(), AtomicU32::new(0));
    assert_eq!(format!("{once:?}"), "Once { state: New }");
    thread::scope(|scope| {
        for waits in [false, true].into_iter().cycle().take(2 * THREADS) {
            let (once, runs) = (&once, &runs);
            scope.spawn(move || {
                match waits {
                    true => once.wait(),
                    false => once.call_once(|| {
                        assert_eq!(once.state(), OnceState::InProgress);
                        thread::yield_now();
                        runs.fetch_add(1, Relaxed);
                    }),
                }
                assert_eq!(runs.load(Relaxed), 1);
                assert!(once.is_completed());
            });
        }
    });
    once.call_once_force(|_| unreachable!());
    assert_eq!(format!("{once:?}"), "Once { state: Done }");
    assert!(once.state().done() && !once.state().poisoned());
}

#[test]
fn a_panic_poisons_a_once_until_another_closure_completes() {
    let once = Once::new();
    let panics = |act: &dyn Fn()| catch_unwind(AssertUnwindSafe(act)).is_err();
    assert!(panics(&|| once.call_once(|| panic!("on purpose"))));
    assert_eq!(once.state(), OnceState::Poisoned);
    assert!(panics(&|| once.call_once(|| unreachable!())) && panics(&|| once.wait()));
    assert!(panics(&|| once.call_once_force(|state| {
        assert!(state.is_poisoned());
        panic!("on purpose");
    })));
    thread::scope(|scope| {
        scope.spawn(|| once.wait_force());
        once.call_once_force(|state| assert_eq!(state, OnceState::Poisoned));
    });
    once.call_once(|| unreachable!());
    once.wait();
    assert_eq!(Once::new_completed().state(), OnceState::Done);
    Once::new_completed().wait();
    Once::default().call_once_force(|state| assert_eq!(state, OnceState::New));
}

#[test]
fn a_barrier_can_be_used_again_and_has_one_leader_each_time() {
    const ROUNDS: usize = if cfg!(miri) { 5 } else { 200 };
    let (barrier, arrived, leaders) = (Barrier::new(THREADS), AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    arrived.fetch_add(1, Relaxed);
                    leaders.fetch_add(barrier.wait().is_leader().into(), Relaxed);
                    assert!(arrived.load(Relaxed) as usize >= THREADS * round, "all have arrived");
                }
            });
        }
    });
    assert_eq!(leaders.load(Relaxed) as usize, ROUNDS);
    let result = Barrier::new(0).wait();
    assert_eq!(format!("{result:?}"), "BarrierWaitResult { is_leader: true }");
    assert_eq!(format!("{barrier:?}"), "Barrier { .. }");
}
