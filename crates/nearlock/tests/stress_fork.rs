//! Processes made by fork, and by fork in those, while the forking thread holds locks. This runs
//! without the test harness, whose threads would exist at the fork.
//!
//! Would find:
//! * a thread that the child does not know, or that has another number there;
//! * a lock that can only be unlocked in the parent;
//! * a fence for which only the parent is registered;
//! * a queue, or a table of threads, that the parent's other threads have left unusable;
//! * two holders, with few threads and with many more than processors.

#[path = "../../os/tests/helpers/emulator.rs"]
mod emulator;
#[path = "stress/support.rs"]
mod support;

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use nearlock::freebsd::{Mtx, Ownership};
use nearlock::{Condvar, Mutex};

use support::{Random, Sections, Watchdog, run_time};

/// Threads in the first process, in its child, and in the child of that.
const THREADS: [u64; 3] = [4, 64, 4];

static MUTEX: Mutex<u64> = Mutex::new(0);
static IN_MUTEX: Sections = Sections::new();
static CHANGED: Condvar = Condvar::new();
/// A lock that knows its holder by the thread's number.
static MTX: Mtx<u64> = Mtx::new(0);
static IN_MTX: Sections = Sections::new();

/// Threads that use both locks, for a while.
fn crowd(threads: u64, time: Duration) {
    let _watchdog = Watchdog::new("threads wait for a lock in a process that was forked, or has forked");
    let end = Instant::now() + time;
    thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let mut random = Random::new(thread);
                while Instant::now() < end {
                    for _ in 0..random.below(50) {
                        IN_MUTEX.pass(&mut MUTEX.lock(), || ());
                        IN_MTX.pass(&mut MTX.lock(), || ());
                    }
                    match random.below(16) {
                        0 => thread::sleep(Duration::from_micros(50)),
                        1 => _ = CHANGED.wait_for(&mut MUTEX.lock(), Duration::from_micros(50)),
                        2 => _ = CHANGED.notify_all(),
                        _ => {}
                    }
                }
            });
        }
    });
    assert_eq!(IN_MUTEX.fault(*MUTEX.lock()), None);
    assert_eq!(IN_MTX.fault(*MTX.lock()), None);
}

/// Leaves threads that have used the locks, and are idle now. A child does not have them.
fn leave_idle_threads() {
    const IDLE: u32 = 3;
    static READY: AtomicU32 = AtomicU32::new(0);
    READY.store(0, Relaxed);
    for _ in 0..IDLE {
        thread::spawn(|| {
            for _ in 0..1000 {
                IN_MUTEX.pass(&mut MUTEX.lock(), || ());
                IN_MTX.pass(&mut MTX.lock(), || ());
            }
            READY.fetch_add(1, Relaxed);
            loop {
                thread::park();
            }
        });
    }
    while READY.load(Relaxed) < IDLE {
        thread::yield_now();
    }
}

/// Forks with both locks held, and continues in both processes.
fn generation(number: usize) {
    let time = run_time() / THREADS.len() as u32;
    crowd(THREADS[number], time);
    if number + 1 == THREADS.len() {
        return;
    }
    leave_idle_threads();
    let held = (MUTEX.lock(), MTX.lock());
    // SAFETY: no other thread of this process is in a lock or allocates: all that are left are
    // idle.
    let child = unsafe { libc::fork() };
    assert!(MTX.is_owned(), "the thread is the same in either process");
    drop(held);
    if child == 0 {
        generation(number + 1);
        // SAFETY: nothing is left to do in the child. The code that runs at the end of a program is
        // for the parent.
        unsafe { libc::_exit(0) };
    }
    crowd(THREADS[number], time);
    let mut status = 0;
    // SAFETY: the status is writable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "a child ends by {status:#x}");
}

fn main() {
    if emulator::emulator().is_some() {
        // QEMU fails assertions of its own (`cpu == current_cpu`) in a child that has fewer threads
        // than its parent.
        println!("not tried: the emulator does not go on after a fork among threads");
    } else if cfg!(not(miri)) {
        // The interpreter has one process.
        generation(0);
        println!("{} sections of the first process", *MUTEX.lock());
    }
}
