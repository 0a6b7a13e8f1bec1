//! Attempts of safe code to get a lock that another thread holds. They use policies and hooks that
//! panic, and waits that panic after they have unlocked the lock.
//!
//! Attempts that do not compile are documented at the traits, by `compile_fail`.
#![forbid(unsafe_code)]

#[path = "../../os/tests/helpers/emulator.rs"]
mod emulator;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{self, Relaxed};
use std::{env, mem, thread};

use nearlock::lock_api::{Mutex, RawMutex};
use nearlock::raw::{Nodeless, Pooled};
use nearlock_collection::classic::mcs::McsLock;
use nearlock_collection::linux::mutex::{LinuxMutex, NoSpinning};
use nearlock_core::lockstat::{Hooks, Unwatched};
use nearlock_core::native::{Native, Spin, Wait};
use nearlock_core::parking::QueueLock;
use nearlock_core::platform::{Atomic, Platform};
use nearlock_os::Os;

use emulator::this_program;

/// Set in a process that must end.
const ENDS: &str = "NEARLOCK_TEST_ENDS";

/// Runs `act` in a separate process. The process must end before `act` returns, because a waiter
/// would unwind.
fn ends_the_process(test: &str, act: impl FnOnce()) {
    if env::var_os(ENDS).is_some() {
        return act();
    }
    let mut again = this_program();
    again.args(["--exact", test, "--nocapture"]).envs([(ENDS, "1"), ("RUST_BACKTRACE", "0")]);
    let output = again.output().expect("this test again");
    let said = String::from_utf8_lossy(&output.stderr);
    let has_ended = !output.status.success() && said.contains("a panic where a thread waits for a lock");
    assert!(has_ended, "{}: {said}", output.status);
}

/// Waits, by policies that panic, for a lock that is never unlocked. `join` detects it if the wait
/// unwinds.
fn waits_and_panics<R: RawMutex + Send + Sync + 'static>() {
    let mutex: &Mutex<R, ()> = Box::leak(Box::new(Mutex::new(())));
    mem::forget(mutex.lock());
    assert!(thread::spawn(move || drop(mutex.lock())).join().is_err());
}

/// Policies and hooks that panic at one of their calls.
struct AtTurn;
struct BeforeSleep;
struct WhereTurned;
struct WhereAsleep;

impl Wait for AtTurn {
    type Hooks = Unwatched;
    fn turn(turn: u32) {
        assert!(turn < 9, "no patience");
    }
}

impl Wait for BeforeSleep {
    type Hooks = Unwatched;
    fn turn(_turn: u32) {}
    fn before_sleep() {
        panic!("not tired");
    }
}

impl Wait for WhereTurned {
    type Hooks = Self;
    fn turn(_turn: u32) {}
}

impl Hooks for WhereTurned {
    fn turned() {
        panic!("not to be seen");
    }
}

impl Wait for WhereAsleep {
    type Hooks = Self;
    fn turn(_turn: u32) {}
}

impl Hooks for WhereAsleep {
    fn asleep<R>(_sleep: impl FnOnce() -> R) -> R {
        panic!("not tired");
    }
}

/// A lock whose waiter has a queue node in its thread's pool.
type Queued<W> = Pooled<McsLock<Os<W>>>;
/// A lock whose waiter has a record on its stack.
type Sleeping<W> = Nodeless<LinuxMutex<Os<W>, NoSpinning, QueueLock<Os<W>>>>;

#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn a_turn_that_panics_ends_the_process() {
    let test = "a_turn_that_panics_ends_the_process";
    ends_the_process(test, waits_and_panics::<Queued<AtTurn>>);
}

#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn a_hook_that_panics_at_a_turn_ends_the_process() {
    let test = "a_hook_that_panics_at_a_turn_ends_the_process";
    ends_the_process(test, waits_and_panics::<Queued<WhereTurned>>);
}

#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn a_policy_that_panics_before_a_sleep_ends_the_process() {
    let test = "a_policy_that_panics_before_a_sleep_ends_the_process";
    ends_the_process(test, waits_and_panics::<Sleeping<BeforeSleep>>);
}

#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn a_hook_that_panics_at_a_sleep_ends_the_process() {
    let test = "a_hook_that_panics_at_a_sleep_ends_the_process";
    ends_the_process(test, waits_and_panics::<Sleeping<WhereAsleep>>);
}

/// The guards of `lock_api` 0.4 unlock when they are dropped, even if the mutex could not be locked
/// again for them.
#[cfg(feature = "lock_api_04")]
#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn a_guard_that_is_not_given_its_mutex_back_ends_the_process() {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use nearlock::freebsd::{LongSpin, RawSpinMtx, TooLong, tuning};
    use nearlock::lock_api_04;
    use nearlock::process::{Setting, set_setting};

    struct Impatient;
    impl LongSpin for Impatient {
        fn held_too_long(_wait: &TooLong) {
            panic!("no patience");
        }
    }
    ends_the_process("a_guard_that_is_not_given_its_mutex_back_ends_the_process", || {
        set_setting(Setting::FreebsdSpinLimit, 100).expect("a limit");
        let mutex = lock_api_04::Mutex::<RawSpinMtx<tuning::Current, Impatient>, ()>::new(());
        let unlocked = || {
            let mut guard = mutex.lock();
            lock_api_04::MutexGuard::unlocked(&mut guard, || {
                thread::scope(|scope| scope.spawn(|| mem::forget(mutex.lock())).join().unwrap())
            });
        };
        assert!(catch_unwind(AssertUnwindSafe(unlocked)).is_err());
    });
}

/// A program may wait for a word of its own type, which may have no size and no place in memory. If
/// the word were watched, this would fail on processors that can watch a cache line (aarch64).
#[test]
fn a_word_of_no_size_is_not_watched() {
    struct Nothing;
    impl Atomic<bool> for Nothing {
        const ZERO: Self = Self;
        fn new(_v: bool) -> Self {
            Self
        }
        fn load(&self, _order: Ordering) -> bool {
            true
        }
        fn store(&self, _v: bool, _order: Ordering) {}
        fn swap(&self, v: bool, _order: Ordering) -> bool {
            v
        }
        fn compare_exchange(&self, _: bool, v: bool, _: Ordering, _: Ordering) -> Result<bool, bool> {
            Err(v)
        }
    }
    let looks = AtomicU64::new(0);
    let is_seen = |v| v && looks.fetch_add(1, Relaxed) == 3;
    assert!(Native::<Spin>::wait_until(&*Box::new(Nothing), Relaxed, is_seen));
}
