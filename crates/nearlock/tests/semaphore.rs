//! What `Semaphore` promises. The order of waiters is tested beside the code (`src/semaphore`).

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use nearlock::{Cancellation, Cancelled, Semaphore};

const SHORT: Duration = Duration::from_millis(1);

/// Waits until a thread waits: then even a permit that is there cannot be had.
fn await_waiter(semaphore: &Semaphore) {
    while semaphore.try_acquire().is_some() {
        thread::yield_now();
    }
}

#[test]
fn a_large_request_is_served_before_small_ones_that_come_later() {
    let semaphore = Semaphore::new(2);
    let first = semaphore.acquire();
    let (tell, told) = channel();
    thread::scope(|scope| {
        let large = tell.clone();
        let semaphore = &semaphore;
        scope.spawn(move || {
            let both = semaphore.acquire_many(2);
            large.send(2).unwrap();
            drop(both);
        });
        await_waiter(semaphore);
        assert_eq!(semaphore.available_permits(), 1);
        assert!(semaphore.try_acquire_for(SHORT).is_none(), "it would overtake");
        scope.spawn(move || {
            let one = semaphore.acquire();
            tell.send(1).unwrap();
            drop(one);
        });
        drop(first);
    });
    assert_eq!(told.iter().collect::<Vec<_>>(), [2, 1]);
    assert_eq!(semaphore.available_permits(), 2);
}

#[test]
fn who_gives_up_lets_those_behind_it_go_on() {
    let (semaphore, cancellation) = (Semaphore::new(1), Cancellation::new());
    thread::scope(|scope| {
        let large = scope.spawn(|| semaphore.acquire_many_cancellable(2, &cancellation).map(drop));
        await_waiter(&semaphore);
        let small = scope.spawn(|| semaphore.acquire().permits());
        cancellation.cancel();
        assert_eq!(large.join().unwrap(), Err(Cancelled));
        assert_eq!(small.join().unwrap(), 1);
    });
    thread::scope(|scope| {
        let large =
            scope.spawn(|| semaphore.try_acquire_many_until(2, Instant::now() + 20 * SHORT).is_none());
        let small = scope.spawn(|| semaphore.acquire().permits());
        assert!(large.join().unwrap());
        assert_eq!(small.join().unwrap(), 1);
    });
}

#[test]
fn attempts_fail_without_permits_and_without_a_trace() {
    let semaphore = Semaphore::new(1);
    let permit = semaphore.acquire();
    assert!(semaphore.try_acquire().is_none() && semaphore.try_acquire_many(2).is_none());
    assert!(semaphore.try_acquire_for(SHORT).is_none());
    assert!(semaphore.try_acquire_until(Instant::now()).is_none());
    let cancelled = Cancellation::new();
    cancelled.cancel();
    assert_eq!(semaphore.acquire_cancellable(&cancelled).err(), Some(Cancelled));
    assert_eq!(semaphore.available_permits(), 0);
    drop(permit);
    assert_eq!(semaphore.available_permits(), 1);
    assert_eq!(semaphore.acquire_many(0).permits(), 0);
}

#[test]
fn a_permit_may_be_returned_by_another_thread() {
    let semaphore = Semaphore::new(1);
    let permit = semaphore.acquire();
    thread::scope(|scope| {
        scope.spawn(move || drop(permit));
        drop(semaphore.acquire());
    });
}

#[test]
fn permits_are_added_and_removed() {
    let semaphore = Semaphore::new(0);
    thread::scope(|scope| {
        let waiters: Vec<_> = (1..4).map(|n| (n, scope.spawn(|| semaphore.acquire().forget()))).collect();
        semaphore.add_permits(3);
        waiters.into_iter().for_each(|(_, waiter)| waiter.join().unwrap());
    });
    assert_eq!(semaphore.available_permits(), 0);
    semaphore.add_permits(usize::MAX);
    let one = semaphore.acquire();
    let added = catch_unwind(AssertUnwindSafe(|| semaphore.add_permits(1)));
    assert!(added.is_err(), "the permit in use counts");
    assert_eq!(semaphore.available_permits(), usize::MAX - 1);
    one.forget();
    semaphore.add_permits(1);
    assert_eq!(semaphore.available_permits(), usize::MAX);
}

#[test]
fn a_semaphore_tells_its_permits() {
    let semaphore = Semaphore::new(3);
    let two = semaphore.acquire_many(2);
    assert_eq!(format!("{semaphore:?}"), "Semaphore { available_permits: 1 }");
    assert_eq!(format!("{two:?}"), "SemaphoreGuard { permits: 2, .. }");
}
