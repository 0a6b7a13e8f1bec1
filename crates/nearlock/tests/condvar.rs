//! The condition variable: the results of its waits and notifications, and that no notification is
//! lost.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use nearlock::{Cancellation, Cancelled, Condvar, Mutex, WaitCancellable};

const SHORT: Duration = Duration::from_millis(1);
/// Longer than any test.
const LONG: Duration = Duration::from_secs(1_000_000);

/// The number of waiters, and whether they may continue.
#[derive(Default)]
struct Gate {
    waiting: usize,
    is_open: bool,
}

/// Waits until so many threads wait. It reads their number under the mutex.
fn await_waiters(gate: &Mutex<Gate>, waiters: usize) {
    while gate.lock().waiting < waiters {
        thread::yield_now();
    }
}

#[test]
fn notifications_return_how_many_they_have_notified() {
    const WAITERS: usize = 5;
    let (gate, opened) = (Mutex::new(Gate::default()), Condvar::new());
    assert!(!opened.notify_one());
    assert_eq!(opened.notify_all(), 0);
    thread::scope(|scope| {
        for _ in 0..WAITERS {
            scope.spawn(|| {
                let mut gate = gate.lock();
                gate.waiting += 1;
                opened.wait_while(&mut gate, |gate| !gate.is_open);
                gate.waiting -= 1;
            });
        }
        await_waiters(&gate, WAITERS);
        // All of them wait while this thread holds the mutex: they check the gate only with the
        // mutex locked.
        let mut opening = gate.lock();
        opening.is_open = true;
        assert!(opened.notify_one());
        assert_eq!(opened.notify_all(), WAITERS - 1);
        assert_eq!(opened.notify_all(), 0, "each is notified once");
        assert_eq!(opening.waiting, WAITERS, "and waits for the mutex");
        drop(opening);
    });
    assert_eq!(gate.lock().waiting, 0);
}

#[test]
fn a_limit_ends_a_wait() {
    let (mutex, never) = (Mutex::new(1), Condvar::new());
    let mut guard = mutex.lock();
    for time in [Duration::ZERO, SHORT] {
        let begin = Instant::now();
        assert!(never.wait_for(&mut guard, time).timed_out());
        assert!(begin.elapsed() >= time, "not earlier");
    }
    assert!(never.wait_until(&mut guard, Instant::now()).timed_out());
    assert!(never.wait_while_for(&mut guard, |value| *value == 1, SHORT).timed_out());
    assert!(!never.wait_while_for(&mut guard, |value| *value == 0, SHORT).timed_out(), "it is met");
    assert!(never.wait_while_until(&mut guard, |_| true, Instant::now()).timed_out());
    assert!(mutex.is_locked(), "the guard has the mutex");
}

#[test]
fn a_notification_in_time_is_no_time_out() {
    for time in [LONG, Duration::MAX] {
        let (done, changed) = (Mutex::new(false), Condvar::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                *done.lock() = true;
                changed.notify_one();
            });
            let mut done = done.lock();
            while !*done {
                assert!(!changed.wait_for(&mut done, time).timed_out());
            }
        });
    }
}

#[test]
fn a_cancellation_ends_a_wait_now_or_later() {
    let (mutex, never, cancellation) = (Mutex::new(()), Condvar::new(), Cancellation::new());
    thread::scope(|scope| {
        let waiters: [_; 3] =
            [(); 3].map(|()| scope.spawn(|| never.wait_cancellable(&mut mutex.lock(), &cancellation)));
        cancellation.cancel();
        waiters.into_iter().for_each(|waiter| assert_eq!(waiter.join().unwrap(), Err(Cancelled)));
    });
    let mut guard = mutex.lock();
    assert_eq!(never.wait_cancellable(&mut guard, &cancellation), Err(Cancelled));
    assert!(mutex.is_locked());
}

#[test]
fn waiting_with_two_mutexes_panics_and_keeps_the_mutex() {
    let (gate, opened, other) = (Mutex::new(Gate::default()), Condvar::new(), Mutex::new(()));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut gate = gate.lock();
            gate.waiting += 1;
            opened.wait_while(&mut gate, |gate| !gate.is_open);
        });
        await_waiters(&gate, 1);
        let mut guard = other.lock();
        // The other thread waits as soon as the mutex is free.
        drop(gate.lock());
        let panic = catch_unwind(AssertUnwindSafe(|| opened.wait(&mut guard))).unwrap_err();
        let said = panic.downcast_ref::<&str>().unwrap();
        assert_eq!(*said, "attempted to use a condition variable with more than one mutex");
        assert!(other.is_locked());
        gate.lock().is_open = true;
        assert_eq!(opened.notify_all(), 1);
    });
    assert!(opened.wait_for(&mut other.lock(), SHORT).timed_out(), "no other thread waits now");
}

/// Threads pass a token round, each to the next. If one notification is lost, all of them wait for
/// ever.
#[test]
fn a_token_goes_round() {
    const THREADS: usize = 4;
    const ROUNDS: usize = if cfg!(miri) { 3 } else { 500 };
    let turn = Mutex::new(0);
    let turns: [Condvar; THREADS] = [const { Condvar::new() }; THREADS];
    thread::scope(|scope| {
        for me in 0..THREADS {
            let (turn, turns) = (&turn, &turns);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let mine = round * THREADS + me;
                    let mut turn = turn.lock();
                    turns[me].wait_while(&mut turn, |turn| *turn != mine);
                    *turn += 1;
                    turns[(me + 1) % THREADS].notify_one();
                }
            });
        }
    });
    assert_eq!(turn.into_inner(), THREADS * ROUNDS);
}

/// Some threads wait without a limit, others give up and come back. Each token is announced once.
/// If a thread gave up with a notification, another one would wait although there is a token.
#[test]
fn no_notification_is_lost_among_those_that_give_up() {
    const TAKERS: usize = 6;
    let time = if cfg!(miri) { Duration::ZERO } else { Duration::from_millis(300) };
    let (tokens, given, is_over) = (Mutex::new(0_u64), Condvar::new(), AtomicBool::new(false));
    let take = |taker: usize| {
        let mut taken = 0;
        for turn in 0_u64.. {
            let cancellation = Cancellation::new();
            let mut tokens = tokens.lock();
            while *tokens == 0 && !is_over.load(Relaxed) {
                let gives_up = match (taker as u64 + turn) % 3 {
                    0 => {
                        given.wait(&mut tokens);
                        false
                    }
                    1 => given.wait_for(&mut tokens, Duration::from_micros(turn % 50)).timed_out(),
                    _ => {
                        if turn.is_multiple_of(2) {
                            cancellation.cancel();
                        }
                        given.wait_cancellable(&mut tokens, &cancellation).is_err()
                    }
                };
                if gives_up {
                    break;
                }
            }
            if *tokens > 0 {
                *tokens -= 1;
                taken += 1;
            } else if is_over.load(Relaxed) {
                return taken;
            }
        }
        taken
    };
    thread::scope(|scope| {
        let take = &take;
        let takers: Vec<_> = (0..TAKERS).map(|taker| scope.spawn(move || take(taker))).collect();
        let (begin, mut sum) = (Instant::now(), 0_u64);
        while sum < 10 || begin.elapsed() < time {
            sum += 1;
            let mut tokens = tokens.lock();
            *tokens += 1;
            if sum.is_multiple_of(7) {
                given.notify_all();
            } else if sum.is_multiple_of(2) {
                given.notify_one();
            } else {
                drop(tokens);
                given.notify_one();
            }
        }
        // The waiters without a limit take all tokens before, since they are not told that it is
        // over.
        while *tokens.lock() > 0 {
            thread::yield_now();
        }
        let over = tokens.lock();
        is_over.store(true, Relaxed);
        given.notify_all();
        drop(over);
        assert_eq!(takers.into_iter().map(|taker| taker.join().unwrap()).sum::<u64>(), sum);
    });
}

/// The last waiter to return frees it, although the notifier has not returned yet.
#[test]
fn the_last_waiter_may_free_it() {
    const ROUNDS: usize = if cfg!(miri) { 4 } else { 300 };
    /// A pointer to memory that the last waiter frees.
    struct SharedGate(*mut (Mutex<Gate>, Condvar));
    // SAFETY: both are `Sync`, and freed once.
    unsafe impl Send for SharedGate {}
    for _ in 0..ROUNDS {
        let it = Box::into_raw(Box::new((Mutex::new(Gate::default()), Condvar::new())));
        let shared = [SharedGate(it), SharedGate(it)];
        let waiters = shared.map(|shared| {
            thread::spawn(move || {
                let it = { shared }.0;
                let is_last = {
                    // SAFETY: alive until the last waiter has come back.
                    let (gate, opened) = unsafe { &*it };
                    let mut gate = gate.lock();
                    gate.waiting += 1;
                    opened.wait_while(&mut gate, |gate| !gate.is_open);
                    gate.waiting -= 1;
                    gate.waiting == 0
                };
                if is_last {
                    // SAFETY: the notifier has unlocked the mutex, and the other waiter too.
                    drop(unsafe { Box::from_raw(it) });
                }
            })
        });
        // SAFETY: alive as long as a thread waits.
        let (gate, opened) = unsafe { &*it };
        await_waiters(gate, 2);
        gate.lock().is_open = true;
        // Both wait, and only this wakes them.
        assert_eq!(opened.notify_all(), 2);
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    }
}
