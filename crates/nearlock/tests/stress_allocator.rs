//! A global allocator that locks. This is a separate program, since a program has one allocator.
//!
//! Would find: a lock that allocates while it waits, or while its thread begins or ends, and so
//! deadlocks; two threads in the allocator.

#[path = "stress/support.rs"]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use nearlock::Mutex;
use nearlock::freebsd::Mtx;

use support::{Random, Sections, Watchdog, run_time};

/// Counts its calls under one lock of each kind that a program's allocator may have.
struct Counting;

static CALLS: Mutex<u64> = Mutex::new(0);
static IN_CALLS: Sections = Sections::new();
/// It needs the number of the calling thread. A thread has one from its first lock on.
static CALLS_BY_OWNER: Mtx<u64> = Mtx::new(0);
static IN_CALLS_BY_OWNER: Sections = Sections::new();

fn count_call() {
    IN_CALLS.pass(&mut CALLS.lock(), || ());
    IN_CALLS_BY_OWNER.pass(&mut CALLS_BY_OWNER.lock(), || ());
}

// SAFETY: the system's allocator, except for two numbers that are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_call();
        // SAFETY: upheld by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count_call();
        // SAFETY: upheld by the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Threads that allocate, free a part of their blocks, and leave the rest to their neighbours.
fn crowd(round: u64) {
    const THREADS: u64 = 8;
    const BLOCKS: u64 = if cfg!(miri) { 10 } else { 300 };
    let (gives, takes): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::channel()).unzip();
    thread::scope(|scope| {
        for (thread, takes) in (0..THREADS).zip(takes) {
            let neighbour = gives[((thread + 1) % THREADS) as usize].clone();
            scope.spawn(move || {
                let mut random = Random::new(round * THREADS + thread);
                let mut kept = Vec::new();
                for block in 0..BLOCKS {
                    let new = vec![block; 1 + random.below(8) as usize];
                    match random.below(3) {
                        0 => drop(new),
                        1 => neighbour.send(new).expect("it takes until all have sent"),
                        _ => kept.push(new),
                    }
                }
                drop(neighbour);
                takes.into_iter().for_each(drop);
            });
        }
        drop(gives);
    });
}

#[test]
fn an_allocator_may_lock() {
    let _watchdog = Watchdog::new("a lock in the allocator is waited for");
    let end = Instant::now() + run_time();
    let mut rounds = 0;
    while Instant::now() < end {
        crowd(rounds);
        rounds += 1;
    }
    // Checked separately: a print may allocate, which must not happen in a critical section.
    let fault = IN_CALLS.fault(*CALLS.lock());
    let fault_by_owner = IN_CALLS_BY_OWNER.fault(*CALLS_BY_OWNER.lock());
    let calls = *CALLS.lock();
    assert_eq!((fault, fault_by_owner), (None, None));
    println!("{rounds} rounds, {calls} calls");
}
