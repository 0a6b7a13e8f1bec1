//! A thread that finds the lock of a queue held spins for a bounded time, and then sleeps. It may
//! have preempted the holder, which then runs only when the thread sleeps.

#![cfg(all(target_os = "linux", not(miri)))]

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use nearlock_core::lockstat::Hooks;
use nearlock_core::native::Wait;
use nearlock_core::near::Near;
use nearlock_core::near::mutex::NearMutex;
use nearlock_core::parking::chain::Chains;
use nearlock_core::raw::RawLock;
use nearlock_os::{Os, futex};

/// Turns of waiting so far.
static TURNS: AtomicU32 = AtomicU32::new(0);
/// How many threads sleep in a lock at the moment.
static ASLEEP: AtomicU32 = AtomicU32::new(0);

struct Counted;

impl Hooks for Counted {
    fn turned() {
        TURNS.fetch_add(1, SeqCst);
    }
    fn asleep<R>(sleep: impl FnOnce() -> R) -> R {
        ASLEEP.fetch_add(1, SeqCst);
        let r = sleep();
        ASLEEP.fetch_sub(1, SeqCst);
        r
    }
}

/// Counts turns and sleeps, and pauses without yielding. A thread that runs at a higher priority
/// than the holder does the same.
struct Counting;

impl Wait for Counting {
    type Hooks = Counted;
    fn turn(_turn: u32) {
        std::hint::spin_loop();
    }
}

type Mutex = NearMutex<Os<Counting>>;

/// The word of the lock of this mutex's chain, which is the first field (`repr(C)`).
fn chain_lock(mutex: &Mutex) -> &AtomicU32 {
    let chain = <Os<Counting> as Chains<Near>>::chain(std::ptr::from_ref(mutex).cast());
    // SAFETY: a chain begins with that word, and lives forever.
    unsafe { &*chain.cast() }
}

#[test]
fn a_thread_that_finds_a_chain_locked_sleeps_after_a_bounded_spin() {
    /// The limit of `QueueLock`: twelve rounds, each of 128 looks and up to 1024 pauses. Some looks
    /// at the mutex come before.
    const TURNS_MAX: u32 = 5000;
    const HELD: u32 = 1;
    const SLEEPERS: u32 = 2;
    static MUTEX: Mutex = Mutex::new();
    let lock = chain_lock(&MUTEX);
    // SAFETY: unlocked below.
    unsafe { MUTEX.lock(&()) };
    // As if a thread had locked the chain and were preempted.
    assert_eq!(lock.swap(HELD, SeqCst), 0);
    let waiter = thread::spawn(|| {
        // The thread locks the chain to queue up.
        // SAFETY: unlock follows lock.
        unsafe {
            MUTEX.lock(&());
            MUTEX.unlock(&());
        }
    });
    while ASLEEP.load(SeqCst) == 0 && TURNS.load(SeqCst) <= TURNS_MAX {
        thread::yield_now();
    }
    let (turns, word) = (TURNS.load(SeqCst), lock.load(SeqCst));
    // The thread that has the chain locked continues, and so does the holder of the mutex.
    lock.store(0, SeqCst);
    futex::wake(lock, 1);
    // SAFETY: locked above.
    unsafe { MUTEX.unlock(&()) };
    waiter.join().expect("no panic");
    assert!(turns <= TURNS_MAX, "the waiter spins for a thread that does not run");
    assert_eq!(word, HELD | SLEEPERS, "the waiter sleeps for the chain");
}
