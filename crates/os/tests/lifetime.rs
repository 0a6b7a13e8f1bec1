//! How long a mutex must live. Miri runs these (`.ci/deep miri`), and must find the fault of the ignored one.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use nearlock_core::linux::mutex::{LinuxMutex, NoSpinning};
use nearlock_core::raw::RawLock;
use nearlock_os::Os;

const ROUNDS: u32 = if cfg!(miri) { 8 } else { 200 };

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

/// Threads that hold references.
const HOLDERS: u32 = 3;

/// A mutex, and how many references to it there are no more.
struct Counted {
    mutex: *const Mutex,
    gone: AtomicU32,
}

// SAFETY: as far as the mutex is alive: that is what goes wrong.
unsafe impl Sync for Counted {}

/// A mutex that protects the count of references to itself: who finds that it is the last frees it, though another's
/// `unlock` may still be about to wake somebody.
#[test]
#[ignore = "shows a fault on purpose, an access to freed memory: for tools that see it"]
fn freed_by_whoever_has_been_the_last_to_lock_it() {
    let leave = |counted: &Counted| {
        // SAFETY: it is alive when this begins, and unlock follows lock; that it is when `unlock` ends, nobody sees to.
        unsafe {
            let mutex = &*counted.mutex;
            mutex.lock(&());
            // Others come, and queue.
            (0..4).for_each(|_| thread::yield_now());
            let gone = counted.gone.fetch_add(1, Relaxed) + 1;
            mutex.unlock(&());
            if gone == HOLDERS {
                drop(Box::from_raw(counted.mutex.cast_mut()));
            }
        }
    };
    for _ in 0..ROUNDS {
        let counted = Counted { mutex: Box::into_raw(Box::new(Mutex::new())), gone: AtomicU32::new(0) };
        thread::scope(|scope| (0..HOLDERS).for_each(|_| _ = scope.spawn(|| leave(&counted))));
    }
}
