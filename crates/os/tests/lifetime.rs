//! How long a lock must live. Miri runs these tests (`.ci/deep miri`), and must find the faults of
//! the ignored ones.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Barrier};
use std::thread;

use nearlock_collection::classic::ttas::TtasLock;
use nearlock_collection::freebsd::lockmgr::LockMgr;
use nearlock_collection::freebsd::mtx::{CONTESTED, Mtx};
use nearlock_collection::freebsd::rw::Rw;
use nearlock_collection::freebsd::rwsx::{Kind, RwSx, WRITE_WAITERS};
use nearlock_collection::freebsd::spin_mtx::SpinMtx;
use nearlock_collection::freebsd::sx::Sx;
use nearlock_collection::freebsd::tuning::{NotAdaptive, Tuning};
use nearlock_collection::linux::counter_mutex::{CounterMutex, Nobody, UnlockFirst};
use nearlock_collection::linux::mutex::{LinuxMutex, NoSpinning, WAITERS};
use nearlock_collection::linux::rwsem::{NoSpin, Rwsem};
use nearlock_collection::linux::rwsem_xadd::{Base, RwsemXadd};
use nearlock_core::near::mutex::NearMutex;
use nearlock_core::parking::WaitLock;
use nearlock_core::raw::{RawLock, RawRwLock, RawTryLock};
use nearlock_core::tuning::Standard;
use nearlock_os::Os;

const ROUNDS: u32 = if cfg!(miri) { 4 } else { 200 };

/// Locks without spinning, so that their waiters sleep in the queue. The tests use locks with
/// spinning too.
type Mutex = LinuxMutex<Os, NoSpinning>;
type OldMutex<T> = CounterMutex<Os, Nobody, T>;
type Semaphore = Rwsem<Os, NoSpin>;
type OldSemaphore = RwsemXadd<Os, Base>;

/// Locks and unlocks.
fn section<L: RawLock<Node = ()>>(lock: &L) {
    // SAFETY: unlock follows lock.
    unsafe {
        lock.lock(&());
        lock.unlock(&());
    }
}

/// The same, for so long that other threads arrive and wait.
fn long_section<L: RawLock<Node = ()>>(lock: &L) {
    // SAFETY: as above.
    unsafe {
        lock.lock(&());
        (0..8).for_each(|_| thread::yield_now());
        lock.unlock(&());
    }
}

fn shared_section<L: RawRwLock<Node = ()>>(lock: &L) {
    // SAFETY: as above.
    unsafe {
        lock.lock_shared(&());
        lock.unlock_shared(&());
    }
}

fn downgraded_section<L: RawRwLock<Node = ()>>(lock: &L) {
    // SAFETY: as above.
    unsafe {
        lock.lock(&());
        lock.downgrade(&());
        lock.unlock_shared(&());
    }
}

/// A lock that its last user frees, and the number of users that have yet to return from it.
struct Counted<L> {
    lock: Box<L>,
    left: AtomicUsize,
}

/// Threads execute these sections. The last one to return frees the lock at once, while the others
/// are still alive.
fn is_freed_when_all_have_returned<L: RawLock<Node = ()>>(sections: [fn(&L); 3]) {
    for _ in 0..ROUNDS {
        let counted = Box::into_raw(Box::new(Counted {
            lock: Box::<L>::default(),
            left: AtomicUsize::new(sections.len()),
        }));
        let all_have_left = Arc::new(Barrier::new(sections.len()));
        let threads: Vec<_> = sections
            .iter()
            .map(|section| {
                let (counted, section, all_have_left) = (Last(counted), *section, all_have_left.clone());
                thread::spawn(move || {
                    let Last(counted) = { counted };
                    // SAFETY: alive until the last thread has counted itself out; also below.
                    section(unsafe { &(*counted).lock });
                    // Ordering: AcqRel: the accesses of the others to the lock come before it is
                    // freed.
                    // SAFETY: as above.
                    if unsafe { &(*counted).left }.fetch_sub(1, AcqRel) == 1 {
                        // SAFETY: this is the last thread, and every unlock has returned.
                        drop(unsafe { Box::from_raw(counted.cast_mut()) });
                    }
                    // No thread ends before this.
                    all_have_left.wait();
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn a_mutex_may_go_when_every_unlock_has_returned() {
    is_freed_when_all_have_returned::<Mutex>([long_section, section, section]);
    is_freed_when_all_have_returned::<LinuxMutex<Os>>([long_section, section, section]);
    is_freed_when_all_have_returned::<OldMutex<Standard>>([long_section, section, section]);
    is_freed_when_all_have_returned::<OldMutex<UnlockFirst>>([long_section, section, section]);
    is_freed_when_all_have_returned::<CounterMutex<Os>>([long_section, section, section]);
}

/// Two of the readers usually get the lock together. The thread that grants it to the second one
/// may no longer access the first.
#[test]
fn a_semaphore_may_go_when_every_unlock_has_returned() {
    fn of<L: RawRwLock<Node = ()>>() {
        is_freed_when_all_have_returned::<L>([long_section, shared_section, shared_section]);
        is_freed_when_all_have_returned::<L>([downgraded_section, section, shared_section]);
    }
    of::<Semaphore>();
    of::<Rwsem<Os>>();
    of::<OldSemaphore>();
    of::<RwsemXadd<Os>>();
}

/// Locks whose sleepers are in chains, outside the lock.
type WordMutex = Mtx<Os, NotAdaptive>;
type WordRw = Rw<Os, NotAdaptive>;
type WordSx = Sx<Os, NotAdaptive>;
type WordLockMgr = LockMgr<Os, NotAdaptive>;

/// A pointer to a lock, for another thread.
struct Last<L>(*const L);

// SAFETY: the last thread that uses it frees it.
unsafe impl<L: Sync> Send for Last<L> {}

/// When the last thread frees the lock, the `unlock` that has woken it up may not have returned.
///
/// Safety: `unlock` unlocks what `lock` locks.
unsafe fn is_freed_by_the_last<L: RawLock<Node = ()>>(
    lock: unsafe fn(&L, &()),
    unlock: unsafe fn(&L, &()),
    is_waited_for: fn(&L) -> bool,
) {
    for _ in 0..ROUNDS {
        let it: *const L = Box::into_raw(Box::new(L::default()));
        // SAFETY: alive until the other thread has locked it, which it cannot do before the unlock
        // below.
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
fn a_lock_of_a_word_may_be_freed_by_its_last_holder() {
    fn is_waited_for<T: Tuning, K: Kind>(lock: &RwSx<Os, T, K>) -> bool {
        // SAFETY: the word is only read.
        unsafe { lock.word() }.load(Relaxed) & WRITE_WAITERS != 0
    }
    /// The lock does not tell. So this returns true after some looks, during which the other thread
    /// arrives, looks, or goes to sleep.
    fn may_be_waited_for<L>(_mutex: &L) -> bool {
        static LOOKS: AtomicU32 = AtomicU32::new(0);
        let looks = LOOKS.fetch_add(1, Relaxed);
        looks.is_multiple_of(1 + looks % 61)
    }
    // SAFETY: each unlocks what it locks.
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
    }
}

thread_local! {
    /// Whether this thread is late to lock the locks of queues.
    static DAWDLES: Cell<bool> = const { Cell::new(false) };
}

/// Whether the mutex has been freed.
static IS_FREED: AtomicBool = AtomicBool::new(false);

/// A lock for the queue. A thread that dawdles locks it only when the mutex has been freed, which
/// the scheduler could cause.
#[derive(Default)]
struct Late(TtasLock<Os>);

impl WaitLock for Late {
    const FREE: Self = Self(TtasLock::new());
}

// SAFETY: forwards to the lock inside; also below.
unsafe impl RawLock for Late {
    type Node = ();
    unsafe fn lock(&self, node: &()) {
        // Ordering: Acquire, pairs with the Release below.
        while DAWDLES.get() && !IS_FREED.load(Acquire) {
            thread::yield_now();
        }
        // SAFETY: the condition of the caller; also below.
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

/// A pointer for other threads.
struct SharedLock<L>(*const L);

impl<L> Clone for SharedLock<L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for SharedLock<L> {}

// SAFETY: points to a lock that is alive as long as no thread frees it. The fault that these tests
// show is that one does.
unsafe impl<L: Sync> Send for SharedLock<L> {}

impl<L> SharedLock<L> {
    fn lock<'a>(self) -> &'a L {
        // SAFETY: the lock is alive when this is called. Nothing ensures that it stays alive.
        unsafe { &*self.0 }
    }
}

/// Three threads lock a lock one after the other. The third knows that it is the last, and frees
/// the lock. But the first has not reached the end of its `unlock`.
fn is_freed_too_early<L: RawTryLock<Node = ()>>(is_waited_for: fn(&L) -> bool) {
    static ONE_AT_A_TIME: Mutex = Mutex::new();
    // SAFETY: unlocked at the end.
    unsafe { ONE_AT_A_TIME.lock(&()) };
    IS_FREED.store(false, Relaxed);
    let shared = SharedLock(Box::into_raw(Box::new(L::default())));
    // SAFETY: unlocked by this thread below; the same holds in the threads.
    unsafe { shared.lock().lock(&()) };
    let third = thread::spawn(move || {
        let shared = shared;
        section(shared.lock());
        // SAFETY: freed by no other thread.
        drop(unsafe { Box::from_raw(shared.0.cast_mut()) });
        // Ordering: Release, pairs with the Acquire in `lock`: the lock has been freed by then.
        IS_FREED.store(true, Release);
    });
    let second = thread::spawn(move || {
        let shared = shared;
        while shared.lock().is_locked() {
            thread::yield_now();
        }
        // It is ahead of the third thread, which sleeps.
        section(shared.lock());
    });
    while !is_waited_for(shared.lock()) {
        thread::yield_now();
    }
    DAWDLES.set(true);
    // SAFETY: locked above.
    unsafe { shared.lock().unlock(&()) };
    DAWDLES.set(false);
    second.join().unwrap();
    third.join().unwrap();
    // SAFETY: locked above.
    unsafe { ONE_AT_A_TIME.unlock(&()) };
}

#[test]
#[ignore = "shows a fault on purpose, an access to freed memory: for tools that see it"]
fn freed_by_its_last_holder() {
    is_freed_too_early::<LinuxMutex<Os, NoSpinning, Late>>(|mutex| {
        // SAFETY: the word is only read.
        unsafe { mutex.word() }.load(Relaxed) & WAITERS != 0
    });
}

/// The count of a semaphore, its first field (`repr(C)`).
fn count_of<L>(semaphore: &L) -> u64 {
    // SAFETY: a word of eight bytes.
    unsafe { &*ptr::from_ref(semaphore).cast::<AtomicU64>() }.load(Relaxed)
}

#[test]
#[ignore = "shows a fault on purpose, an access to freed memory: for tools that see it"]
fn semaphore_freed_by_its_last_holder() {
    /// Held by a writer, and the bit of waiters.
    const WAITED_FOR: u64 = 0b11;
    /// The bit by which a waiter asks for the lock, after 4 ms in the queue. On a slow machine the
    /// waiter sets it before the test looks.
    const HANDOFF: u64 = 0b100;
    is_freed_too_early::<Rwsem<Os, NoSpin, Late>>(|semaphore| count_of(semaphore) & !HANDOFF == WAITED_FOR);
}

#[test]
#[ignore = "shows a fault on purpose, an access to freed memory: for tools that see it"]
fn semaphore_of_2013_freed_by_its_last_holder() {
    /// Held by a writer, with sleepers. A writer counts for 1 and for -2^32, and sleepers count for
    /// another -2^32.
    const WAITED_FOR: i64 = -2 * (1 << 32) + 1;
    is_freed_too_early::<RwsemXadd<Os, Base, Late>>(|semaphore| count_of(semaphore) as i64 == WAITED_FOR);
}
