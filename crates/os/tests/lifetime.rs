//! How long a mutex must live. Miri runs these (`.ci/deep miri`), and must find the fault of the ignored one.

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;

use nearlock_core::classic::ttas::TtasLock;
use nearlock_core::freebsd::mtx::{CONTESTED, Mtx};
use nearlock_core::freebsd::tuning::NotAdaptive;
use nearlock_core::linux::mutex::{LinuxMutex, NoSpinning, WAITERS};
use nearlock_core::raw::{RawLock, RawTryLock};
use nearlock_core::waiter::WaitLock;
use nearlock_os::Os;

const ROUNDS: u32 = if cfg!(miri) { 4 } else { 200 };

/// A mutex without spinners, so that its sleepers are in the queue.
type Mutex = LinuxMutex<Os, NoSpinning>;

fn section(mutex: &Mutex) {
    // SAFETY: unlock follows lock.
    unsafe {
        mutex.lock(&());
        mutex.unlock(&());
    }
}

#[test]
fn a_mutex_may_go_when_every_unlock_has_returned() {
    for _ in 0..ROUNDS {
        let mutex = Box::new(Mutex::new());
        thread::scope(|scope| (0..3).for_each(|_| _ = scope.spawn(|| section(&mutex))));
        drop(mutex);
    }
}

/// One that has its sleepers elsewhere.
type WordMutex = Mtx<Os, NotAdaptive>;

/// A pointer to it, for another thread.
struct Last(*const WordMutex);

// SAFETY: that thread is the last that uses it.
unsafe impl Send for Last {}

/// The `unlock` that has woken the last thread may not have returned when that one frees the mutex.
#[test]
fn a_mutex_of_a_word_may_be_freed_by_whoever_has_been_the_last_to_lock_it() {
    for _ in 0..ROUNDS {
        let mutex: *const WordMutex = Box::into_raw(Box::new(WordMutex::new()));
        // SAFETY: alive until the other thread has locked it, which it cannot before the unlock below.
        unsafe { (*mutex).lock(&()) };
        let last = Last(mutex);
        let last = thread::spawn(move || {
            let Last(mutex) = { last };
            // SAFETY: alive until it is freed here; unlock follows lock.
            unsafe {
                (*mutex).lock(&());
                (*mutex).unlock(&());
                drop(Box::from_raw(mutex.cast_mut()));
            }
        });
        // SAFETY: as above.
        while unsafe { (*mutex).word() }.load(Relaxed) & CONTESTED == 0 {
            thread::yield_now();
        }
        // SAFETY: locked above.
        unsafe { (*mutex).unlock(&()) };
        last.join().unwrap();
    }
}

thread_local! {
    /// Whether this thread comes late to locks of queues.
    static DAWDLES: Cell<bool> = const { Cell::new(false) };
}

/// Whether the mutex is gone.
static IS_FREED: AtomicBool = AtomicBool::new(false);

/// A lock for the queue to which a thread that dawdles comes when the mutex is gone: the scheduler could have it so.
#[derive(Default)]
struct Late(TtasLock<Os>);

impl WaitLock for Late {
    const FREE: Self = Self(TtasLock::new());
}

// SAFETY: is the lock inside; so below.
unsafe impl RawLock for Late {
    type Node = ();
    unsafe fn lock(&self, node: &()) {
        // Ordering: Acquire, pairs with the Release below.
        while DAWDLES.get() && !IS_FREED.load(Acquire) {
            thread::yield_now();
        }
        // SAFETY: the caller's; so below.
        unsafe { self.0.lock(node) };
    }
    unsafe fn unlock(&self, node: &()) {
        // SAFETY: as above.
        unsafe { self.0.unlock(node) };
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for Late {
    unsafe fn try_lock(&self, node: &()) -> bool {
        // SAFETY: as above.
        unsafe { self.0.try_lock(node) }
    }
}

type Fragile = LinuxMutex<Os, NoSpinning, Late>;

/// A pointer for other threads.
#[derive(Clone, Copy)]
struct Shared(*const Fragile);

// SAFETY: to a mutex, which is alive as long as nobody frees it: that is what goes wrong.
unsafe impl Send for Shared {}

impl Shared {
    fn mutex<'a>(self) -> &'a Fragile {
        // SAFETY: it is alive when this is called; that it stays so, nobody sees to.
        unsafe { &*self.0 }
    }
}

/// Three threads have a mutex one after the other, and the third frees it, knowing to be the last. But the first has not come
/// to the end of its `unlock`.
#[test]
#[ignore = "shows a fault on purpose, an access to freed memory: for tools that see it"]
fn freed_by_whoever_has_been_the_last_to_lock_it() {
    let shared = Shared(Box::into_raw(Box::new(Fragile::new())));
    // SAFETY: unlocked by this thread below; so in the threads.
    unsafe { shared.mutex().lock(&()) };
    let third = thread::spawn(move || {
        let shared = shared;
        // SAFETY: as above; freed by nobody else.
        unsafe {
            shared.mutex().lock(&());
            shared.mutex().unlock(&());
            drop(Box::from_raw(shared.0.cast_mut()));
        }
        // Ordering: Release, pairs with the Acquire in `lock`: it is free by then.
        IS_FREED.store(true, Release);
    });
    let second = thread::spawn(move || {
        let shared = shared;
        while shared.mutex().is_locked() {
            thread::yield_now();
        }
        // It is ahead of the third, which sleeps.
        // SAFETY: as above.
        unsafe {
            shared.mutex().lock(&());
            shared.mutex().unlock(&());
        }
    });
    while shared.mutex().word().load(Relaxed) & WAITERS == 0 {
        thread::yield_now();
    }
    DAWDLES.set(true);
    // SAFETY: locked above.
    unsafe { shared.mutex().unlock(&()) };
    second.join().unwrap();
    third.join().unwrap();
}
