//! Threads that end all the time, and use locks while their thread-local data is destroyed. They
//! use them before and after the destruction of the data that nearlock keeps for a thread.
//!
//! Would find:
//! * traces of a thread in a lock or a queue;
//! * a place in the table of threads that is given to the next thread too early, or never;
//! * a holder that is known by the number of its thread, and is taken for another one, or not
//!   recognised;
//! * two holders.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Instant;

use nearlock::Mutex;
use nearlock::freebsd::{Mtx, MtxGuard, Ownership, RecursiveGuard, RecursiveMtx};
use nearlock::process::{register_thread, thread_slots};
use nearlock_collection::freebsd::mtx;
use nearlock_os::Os;

use crate::support::{Sections, Watchdog, run_time};

/// Threads that start other threads, one after the other.
const PARENTS: u64 = 6;
const LOCKS: usize = 3;

static MUTEXES: [Mutex<u64>; LOCKS] = [const { Mutex::new(0) }; LOCKS];
static IN_MUTEXES: [Sections; LOCKS] = [const { Sections::new() }; LOCKS];
/// Locks that know their holder by its thread's number.
static MTX: Mtx<u64> = Mtx::new(0);
static IN_MTX: Sections = Sections::new();
static RECURSIVE: RecursiveMtx<Cell<u64>> = RecursiveMtx::new(Cell::new(0));
static IN_RECURSIVE: Sections = Sections::new();

/// The messages of panics in threads that were about to end. A panic that leaves the destructor
/// would end the program, and its message would be lost.
static PANICS: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

/// Runs its closures when the thread's data is destroyed.
struct AtEnd(RefCell<Vec<Box<dyn FnOnce()>>>);

impl AtEnd {
    const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    fn add(&self, act: impl FnOnce() + 'static) {
        self.0.borrow_mut().push(Box::new(act));
    }
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        for act in self.0.get_mut().drain(..) {
            let Err(panic) = catch_unwind(AssertUnwindSafe(act)) else { continue };
            let said = panic.downcast::<&str>().map(|said| said.to_string());
            let said = said.or_else(|panic| panic.downcast::<String>().map(|said| *said));
            PANICS.lock().unwrap().push(said.unwrap_or_else(|_| "something that is no text".to_owned()));
        }
    }
}

thread_local! {
    // With any order of destruction, one is destroyed before nearlock's data of the thread, and the
    // other after it.
    static FIRST: AtEnd = const { AtEnd::new() };
    static LAST: AtEnd = const { AtEnd::new() };
    /// Whether one of the two has guards. It needs no destruction, and so exists at the end.
    static KEEPS_GUARDS: Cell<bool> = const { Cell::new(false) };
}

fn count_mtx(guard: &mut MtxGuard<'_, u64>) {
    assert!(MTX.is_owned(), "the holder is not recognised");
    IN_MTX.pass(guard, || ());
}

fn count_recursive(guard: &RecursiveGuard<'_, mtx::Mtx<Os>, Cell<u64>>) {
    // The holder locks it once more, whatever other threads wait for it.
    let again = RECURSIVE.lock();
    let mut count = guard.get();
    IN_RECURSIVE.pass(&mut count, || ());
    again.set(count);
}

/// Uses all locks. While the thread keeps guards, uses those for which it need not wait.
fn use_locks_at_end() {
    if !KEEPS_GUARDS.get() {
        for (mutex, sections) in MUTEXES.iter().zip(&IN_MUTEXES) {
            sections.pass(&mut mutex.lock(), || ());
        }
        count_mtx(&mut MTX.lock());
        count_recursive(&RECURSIVE.lock());
    }
    for (mutex, sections) in MUTEXES.iter().zip(&IN_MUTEXES) {
        if let Some(mut guard) = mutex.try_lock() {
            sections.pass(&mut guard, || ());
        }
    }
    if let Some(mut guard) = MTX.try_lock() {
        count_mtx(&mut guard);
    }
    if let Some(guard) = RECURSIVE.try_lock() {
        count_recursive(&guard);
    }
}

/// Holds guards of this mutex and of the other locks until `at_end` runs its closures.
fn keep_guards(of: usize, at_end: &AtEnd) {
    // In the same order everywhere.
    let (mut guard, mut mtx, recursive) = (MUTEXES[of].lock(), MTX.lock(), RECURSIVE.lock());
    KEEPS_GUARDS.set(true);
    at_end.add(move || {
        IN_MUTEXES[of].pass(&mut guard, thread::yield_now);
        count_mtx(&mut mtx);
        count_recursive(&recursive);
        drop((guard, mtx, recursive));
        KEEPS_GUARDS.set(false);
    });
}

fn live_and_end(number: u64) {
    if number.is_multiple_of(2) {
        FIRST.with(|_| ());
    }
    register_thread();
    LAST.with(|_| ());
    for section in 0..20 {
        let of = (number + section / 7) as usize % LOCKS;
        IN_MUTEXES[of].pass(&mut MUTEXES[of].lock(), || ());
    }
    let of = (number / 2) as usize % LOCKS;
    match number % 3 {
        0 => FIRST.with(|at_end| keep_guards(of, at_end)),
        1 => LAST.with(|at_end| keep_guards(of, at_end)),
        _ => IN_MUTEXES[of].pass(&mut MUTEXES[of].lock(), || ()),
    }
    for at_end in [&FIRST, &LAST] {
        at_end.with(|at_end| at_end.add(use_locks_at_end));
    }
}

#[test]
fn threads_that_end_lock_to_the_last() {
    let _watchdog = Watchdog::new("threads that are about to end wait for a lock");
    let threads = AtomicU64::new(0);
    let end = Instant::now() + run_time();
    thread::scope(|scope| {
        for parent in 0..PARENTS {
            let threads = &threads;
            scope.spawn(move || {
                let mut number = parent;
                while Instant::now() < end && PANICS.lock().unwrap().is_empty() {
                    thread::spawn(move || live_and_end(number)).join().unwrap();
                    threads.fetch_add(1, Relaxed);
                    number += 1;
                }
            });
        }
    });
    assert_eq!(PANICS.lock().unwrap()[..], [""; 0]);
    for (mutex, sections) in MUTEXES.iter().zip(&IN_MUTEXES) {
        assert_eq!(sections.fault(*mutex.lock()), None);
    }
    assert_eq!(IN_MTX.fault(*MTX.lock()), None);
    assert_eq!(IN_RECURSIVE.fault(RECURSIVE.lock().get()), None);
    let (threads, slots) = (threads.into_inner(), thread_slots());
    println!("{threads} threads have ended; {slots} slots");
    // The threads of this program's other tests have some slots too.
    assert!(u64::from(slots) < 64.max(threads / 2), "slots of {threads} threads are not given back: {slots}");
}
