//! How long a mutex must live. Miri runs these (`.ci/deep miri`), and must find the fault of the ignored one.

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::thread;

use nearlock_core::classic::ttas::TtasLock;
use nearlock_core::freebsd::lockmgr::LockMgr;
use nearlock_core::freebsd::mtx::{CONTESTED, Mtx};
use nearlock_core::freebsd::rw::Rw;
use nearlock_core::freebsd::rwsx::{Kind, RwSx, WRITE_WAITERS};
use nearlock_core::freebsd::spin_mtx::SpinMtx;
use nearlock_core::freebsd::sx::Sx;
use nearlock_core::freebsd::tuning::{NotAdaptive, Tuning};
use nearlock_core::linux::mutex::{LinuxMutex, NoSpinning, WAITERS};
use nearlock_core::near::biased::{Eager, NearBiasedMutex};
use nearlock_core::near::mutex::NearMutex;
use nearlock_core::raw::{RawLock, RawRwLock, RawTryLock};
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

/// Those that have their sleepers elsewhere.
type WordMutex = Mtx<Os, NotAdaptive>;
type WordRw = Rw<Os, NotAdaptive>;
/// Held by bias, if there is membarrier.
type EagerMutex = NearBiasedMutex<Os, Eager>;
type WordSx = Sx<Os, NotAdaptive>;
type WordLockMgr = LockMgr<Os, NotAdaptive>;

/// A pointer to a lock, for another thread.
struct Last<L>(*const L);

// SAFETY: that thread is the last that uses it.
unsafe impl<L: Sync> Send for Last<L> {}

/// The `unlock` that has woken the last thread may not have returned when that one frees the lock.
///
/// Safety: `unlock` releases what `lock` takes.
unsafe fn is_freed_by_the_last<L: RawLock<Node = ()>>(
    lock: unsafe fn(&L, &()),
    unlock: unsafe fn(&L, &()),
    is_waited_for: fn(&L) -> bool,
) {
    for _ in 0..ROUNDS {
        let it: *const L = Box::into_raw(Box::new(L::default()));
        // SAFETY: alive until the other thread has locked it, which it cannot before the unlock below.
        unsafe { lock(&*it, &()) };
        let last = Last(it);
        let last = thread::spawn(move || {
            let Last(it) = { last };
            // SAFETY: alive until it is freed here; unlock follows lock.
            unsafe {
                (*it).lock(&());
                (*it).unlock(&());
                drop(Box::from_raw(it.cast_mut()));
            }
        });
        // SAFETY: as above.
        while !is_waited_for(unsafe { &*it }) {
            thread::yield_now();
        }
        // SAFETY: locked above.
        unsafe { unlock(&*it, &()) };
        last.join().unwrap();
    }
}

#[test]
fn a_lock_of_a_word_may_be_freed_by_whoever_has_been_the_last_to_lock_it() {
    fn is_waited_for<T: Tuning, K: Kind>(lock: &RwSx<Os, T, K>) -> bool {
        lock.word().load(Relaxed) & WRITE_WAITERS != 0
    }
    /// Nothing tells: so after some looks, during which the other comes, looks, or goes to sleep.
    fn may_be_waited_for<L>(_mutex: &L) -> bool {
        static LOOKS: AtomicU32 = AtomicU32::new(0);
        let looks = LOOKS.fetch_add(1, Relaxed);
        looks.is_multiple_of(1 + looks % 61)
    }
    // SAFETY: each releases what it takes.
    unsafe {
        is_freed_by_the_last(WordMutex::lock, WordMutex::unlock, |mutex| {
            mutex.word().load(Relaxed) & CONTESTED != 0
        });
        is_freed_by_the_last(WordRw::lock, WordRw::unlock, is_waited_for);
        is_freed_by_the_last(WordRw::lock_shared, WordRw::unlock_shared, is_waited_for);
        is_freed_by_the_last(WordSx::lock, WordSx::unlock, is_waited_for);
        is_freed_by_the_last(WordSx::lock_shared, WordSx::unlock_shared, is_waited_for);
        is_freed_by_the_last(WordLockMgr::lock, WordLockMgr::unlock, WordLockMgr::has_waiters);
        is_freed_by_the_last(WordLockMgr::lock_shared, WordLockMgr::unlock_shared, WordLockMgr::has_waiters);
        is_freed_by_the_last(SpinMtx::<Os>::lock, SpinMtx::<Os>::unlock, may_be_waited_for);
        is_freed_by_the_last(NearMutex::<Os>::lock, NearMutex::<Os>::unlock, may_be_waited_for);
        is_freed_by_the_last(EagerMutex::lock, EagerMutex::unlock, may_be_waited_for);
    }
}

/// Holds a lock until the thread's data is destroyed.
struct Holds(&'static EagerMutex);

impl Holds {
    fn new(mutex: &'static EagerMutex) -> Self {
        // SAFETY: released when this is dropped.
        unsafe { mutex.lock(&()) };
        Self(mutex)
    }
}

impl Drop for Holds {
    fn drop(&mut self) {
        // SAFETY: locked by `new`.
        unsafe { self.0.unlock(&()) };
    }
}

#[test]
fn a_thread_that_has_lost_its_slot_releases_what_it_holds_by_bias() {
    static LOCKS: [EagerMutex; 2] = [EagerMutex::new(), EagerMutex::new()];
    thread_local! {
        static EARLY: Cell<Option<Holds>> = const { Cell::new(None) };
        static LATE: Cell<Option<Holds>> = const { Cell::new(None) };
    }
    for _ in 0..ROUNDS {
        // Whichever the order of destruction, one of them comes after the slot.
        thread::spawn(|| {
            EARLY.set(None);
            LATE.set(Some(Holds::new(&LOCKS[0])));
            EARLY.set(Some(Holds::new(&LOCKS[1])));
        })
        .join()
        .unwrap();
        assert!(LOCKS.iter().all(|lock| !lock.is_locked()));
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
