//! What safe code tries, to have a lock that another thread holds: switches of its own, policies
//! and hooks that panic, and waits that panic after the lock was released.
//!
//! What no program can do any more because it does not compile is shown beside the traits, by
//! `compile_fail`.
#![forbid(unsafe_code)]

#[path = "../../os/tests/helpers/emulator.rs"]
mod emulator;

use std::hint::spin_loop;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, mem, thread};

use nearlock::lock_api::{Mutex, RawMutex, RawRwLock, RwLock};
use nearlock::raw::{Nodeless, Pooled};
use nearlock_core::classic::mcs::McsLock;
use nearlock_core::classic::ttas::{TtasLock, TtasTuning};
use nearlock_core::freebsd::lock_delay::Backoff;
use nearlock_core::freebsd::mtx::Mtx;
use nearlock_core::freebsd::rw::Rw;
use nearlock_core::freebsd::spin_mtx::SpinMtx;
use nearlock_core::freebsd::sx::Sx;
use nearlock_core::freebsd::tuning::{
    CasValue, FollowOwner, Precedence, ReaderWait, ReleaseOrder, SpinnerBit, StaleBits, Tuning, WaiterCasFail,
};
use nearlock_core::linux::cna::{Cna, CnaTuning};
use nearlock_core::linux::cna_v13::CnaV13;
use nearlock_core::linux::counter_mutex::{
    CounterMutex, CounterMutexTuning, Crowd, FastPath, InTurns, Nobody, OneSpins, PreRead, Spinners,
};
use nearlock_core::linux::mutex::{LinuxMutex, MutexTuning, Spinning};
use nearlock_core::linux::qspinlock::{Fifo, QSpinLock, QSpinTuning, Stealing};
use nearlock_core::linux::rwsem::{ReaderSpin, Rwsem, RwsemTuning};
use nearlock_core::lockstat::{Hooks, Unwatched};
use nearlock_core::native::{Native, Spin, Wait};
use nearlock_core::platform::{Atomic, Platform};
use nearlock_core::tuning::WordAccess;
use nearlock_core::waiter::QueueLock;
use nearlock_os::Os;

use emulator::this_program;

/// A choice among all: which values a program gives the switches of a lock.
struct Any<const CHOICE: u64>;

impl<const CHOICE: u64> Any<CHOICE> {
    /// One of so many values. `place`: how many values the choice has for the switches before it.
    const fn of(place: u64, values: u64) -> u64 {
        CHOICE / place % values
    }
    const fn is(place: u64) -> bool {
        Self::of(place, 2) == 1
    }
}

/// What [`Any`] chooses from for a [`QSpinLock`]: 3 * 2^5 values.
impl<const CHOICE: u64> QSpinTuning for Any<CHOICE> {
    const STEALING: Stealing = match Self::of(1, 3) {
        0 => Stealing::Off,
        1 => Stealing::Once,
        _ => Stealing::Hybrid,
    };
    const PARK_HEAD: bool = Self::is(3);
    const PARK_TURNS: Option<u32> = if Self::is(6) { Some(4) } else { None };
    const WAIT_EARLY: bool = Self::is(12);
    const ACCESS: WordAccess = if Self::is(24) { WordAccess::Whole } else { WordAccess::Split };
    const PENDING_TURNS_MAX: u32 = if Self::is(48) { 0 } else { 1 << 9 };
    const STEAL_TURNS_MAX: u32 = if Self::is(48) { 0 } else { 1 << 7 };
    const HEAD_TURNS: u32 = if Self::is(48) { 0 } else { 1 << 7 };
    const HEAD_STRETCHES_MAX: u32 = if Self::is(48) { 0 } else { 1 << 10 };
}

impl<const CHOICE: u64> CnaTuning for Any<CHOICE> {
    const SHUFFLE_REDUCTION: bool = Self::is(1);
}

impl<const CHOICE: u64> TtasTuning for Any<CHOICE> {
    const PRE_READ: bool = Self::is(1);
}

impl<const CHOICE: u64> MutexTuning for Any<CHOICE> {
    const SPINNING: Spinning = match Self::of(1, 3) {
        0 => Spinning::Never,
        1 => Spinning::UnlessOwnerSleeps,
        _ => Spinning::Always,
    };
    const SPINNER_QUEUE: bool = Self::is(3);
    const WAITER_SPINS: bool = Self::is(6);
    const HAND_OVER: bool = Self::is(12);
    const YIELDS_BEFORE_QUEUE: bool = Self::is(24);
}

impl<const CHOICE: u64> CounterMutexTuning for Any<CHOICE> {
    const PRE_READ: PreRead = match Self::of(1, 3) {
        0 => PreRead::Off,
        1 => PreRead::Marked,
        _ => PreRead::Negative,
    };
    const FAST_PATH: FastPath = if Self::is(3) { FastPath::Exchange } else { FastPath::Decrement };
    const SPINNER_PRE_READ: bool = Self::is(6);
    const UNLOCKS_FIRST: bool = Self::is(12);
    const WAKES_LAST: bool = Self::is(24);
}

impl<const CHOICE: u64> RwsemTuning for Any<CHOICE> {
    const READER_OWNED_SPIN: Option<ReaderSpin> = match Self::of(1, 3) {
        0 => None,
        1 => Some(ReaderSpin { base_ns: 10_000, each_ns: 500, readers_max: 30 }),
        _ => Some(ReaderSpin { base_ns: u64::MAX, each_ns: u64::MAX, readers_max: u64::MAX }),
    };
    const HANDOFF_NS: Option<u64> = match Self::of(3, 3) {
        0 => None,
        1 => Some(0),
        _ => Some(4_000_000),
    };
    const WAKE_READERS_MAX: u64 = if Self::is(9) { 1 } else { u64::MAX };
    const WRITER_SPIN: bool = Self::is(18);
    const READER_SPIN: bool = Self::is(36);
    const READER_STEAL: bool = Self::is(72);
    const HANDOFF_SPIN: bool = Self::is(144);
    const READERS_PAST_WRITERS: bool = Self::is(288);
}

impl<const CHOICE: u64> Tuning for Any<CHOICE> {
    const CAS_VALUE: CasValue = match Self::of(1, 3) {
        0 => CasValue::Reread,
        1 => CasValue::Kept,
        _ => CasValue::Found,
    };
    const BACKOFF: Backoff = match Self::of(3, 3) {
        0 => Backoff::None,
        1 => Backoff::Linear,
        _ => Backoff::Exponential,
    };
    const LOCK_PRE_READ: bool = Self::is(9);
    const UNLOCK_PRE_READ: bool = Self::is(18);
    const HARD_PRE_READ: bool = Self::is(36);
    const ADAPTIVE: bool = Self::is(72);
    const FOLLOW_OWNER: FollowOwner = if Self::is(144) { FollowOwner::Any } else { FollowOwner::Same };
    const WAITER_CAS_FAIL: WaiterCasFail =
        if Self::is(288) { WaiterCasFail::RetryLocked } else { WaiterCasFail::Restart };
    const RELEASE_ORDER: ReleaseOrder =
        if Self::is(576) { ReleaseOrder::FreeFirst } else { ReleaseOrder::CollectFirst };
    const READER_WAIT: ReaderWait =
        if Self::is(1152) { ReaderWait::PausePerReader } else { ReaderWait::OnePause };
    const SPINNER_BIT: SpinnerBit = if Self::is(2304) { SpinnerBit::Kept } else { SpinnerBit::Cleared };
    const SX_PRECEDENCE: Precedence = if Self::is(4608) { Precedence::Writers } else { Precedence::Readers };
    const SX_STALE_BITS: StaleBits =
        if Self::is(9216) { StaleBits::SeenByAll } else { StaleBits::SeenByWriters };
}

const THREADS: u64 = 3;

/// For how long each combination is tried.
const TRIED_FOR: Duration = Duration::from_millis(20);

/// Whether somebody is in a section, and how often somebody else has come.
#[derive(Default)]
struct Section {
    is_busy: AtomicBool,
    intruders: AtomicU64,
}

impl Section {
    /// A section of varying length, in which the processor is given away for others to come.
    fn pass(&self, number: u64) {
        let was_busy = self.is_busy.swap(true, Relaxed);
        self.intruders.fetch_add(was_busy.into(), Relaxed);
        thread::yield_now();
        (0..number % 64).for_each(|_| spin_loop());
        self.is_busy.store(false, Relaxed);
    }

    /// What nobody passes who is in the section at the same time.
    fn look(&self) {
        self.intruders.fetch_add(self.is_busy.load(Relaxed).into(), Relaxed);
    }

    fn assert_exclusive(self, what: &str) {
        assert_eq!(self.intruders.into_inner(), 0, "{what}: came while another was in the section");
    }
}

/// Each of the threads does it over and over, and is told how often it has.
fn over_and_over(act: impl Fn(u64) + Sync) {
    let end = Instant::now() + TRIED_FOR;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let act = &act;
            scope.spawn(move || (thread..).take_while(|_| Instant::now() < end).for_each(act));
        }
    });
}

fn excludes<R: RawMutex + Sync>() {
    let (section, mutex) = (Section::default(), Mutex::<R, ()>::new(()));
    over_and_over(|number| {
        let _guard = mutex.lock();
        section.pass(number);
    });
    section.assert_exclusive(std::any::type_name::<R>());
}

fn writers_exclude<R: RawRwLock + Sync>() {
    let (section, lock) = (Section::default(), RwLock::<R, ()>::new(()));
    over_and_over(|number| {
        if number.is_multiple_of(3) {
            let _guard = lock.read();
            section.look();
            thread::yield_now();
            section.look();
        } else {
            let _guard = lock.write();
            section.pass(number);
        }
    });
    section.assert_exclusive(std::any::type_name::<R>());
}

/// Tries `$with` for each of the choices that are named.
macro_rules! each {
    ($with:ident: $($choice:literal)*) => { $($with::<$choice>();)* };
}

/// What was a hole: whether the head competes was a switch of its own, and could be set against the
/// others.
#[test]
#[cfg_attr(miri, ignore = "by the clock")]
fn all_switches_of_a_qspinlock_exclude() {
    fn exclude<const CHOICE: u64>() {
        excludes::<Nodeless<QSpinLock<Os, Fifo, Any<CHOICE>>>>();
        if CHOICE.is_multiple_of(7) {
            excludes::<Nodeless<QSpinLock<Os, Cna<Any<CHOICE>>, Any<CHOICE>>>>();
            excludes::<Nodeless<QSpinLock<Os, CnaV13<Any<CHOICE>>, Any<CHOICE>>>>();
        }
    }
    each!(exclude: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
    each!(exclude: 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59);
    each!(exclude: 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 87);
    each!(exclude: 88 89 90 91 92 93 94 95);
}

/// Choices that are all over a range of 3 * 3 * 2^11.
macro_rules! some_of_each {
    ($with:ident) => {
        each!($with: 0 18431 1 1170 2341 3511 4682 5852 7023 8193 9364 10534 11705 12875 14046 15216 16387);
        each!($with: 17 293 587 1009 2003 3001 4001 5003 6007 7001 8009 9001 10007 12007 13001 15013 17011);
    };
}

#[test]
#[cfg_attr(miri, ignore = "by the clock")]
fn the_switches_of_the_other_mutexes_exclude() {
    fn with_spinners<S: Spinners<Os>, const CHOICE: u64>() {
        excludes::<Nodeless<CounterMutex<Os, S, Any<CHOICE>, QueueLock<Os>>>>();
    }
    fn exclude<const CHOICE: u64>() {
        excludes::<Nodeless<LinuxMutex<Os, Any<CHOICE>, QueueLock<Os>>>>();
        excludes::<Nodeless<Mtx<Os, Any<CHOICE>>>>();
        excludes::<Nodeless<SpinMtx<Os, Any<CHOICE>>>>();
        match CHOICE % 4 {
            0 => with_spinners::<Crowd, CHOICE>(),
            1 => with_spinners::<Nobody, CHOICE>(),
            2 => with_spinners::<InTurns<Os>, CHOICE>(),
            _ => with_spinners::<OneSpins<Os>, CHOICE>(),
        }
    }
    some_of_each!(exclude);
}

#[test]
#[cfg_attr(miri, ignore = "by the clock")]
fn the_switches_of_a_ttas_lock_exclude() {
    fn exclude<const CHOICE: u64>() {
        excludes::<Nodeless<TtasLock<Os, Any<CHOICE>>>>();
    }
    each!(exclude: 0 1 2 3);
}

#[test]
#[cfg_attr(miri, ignore = "by the clock")]
fn the_switches_of_locks_with_readers_exclude() {
    fn exclude<const CHOICE: u64>() {
        writers_exclude::<Nodeless<Rwsem<Os, Any<CHOICE>, QueueLock<Os>>>>();
        writers_exclude::<Nodeless<Rw<Os, Any<CHOICE>>>>();
        writers_exclude::<Nodeless<Sx<Os, Any<CHOICE>>>>();
    }
    some_of_each!(exclude);
}

/// Set in a process that is to end.
const ENDS: &str = "NEARLOCK_TEST_ENDS";

/// Does what may not come to its end: in a process of its own, which must end because a waiter
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

/// Waits, by policies that panic, for a lock that is never released. If the wait unwinds, it is
/// found by `join`.
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

/// By the queue's node on the stack of one who waits.
type Queued<W> = Pooled<McsLock<Os<W>>>;
/// By the waiter's record there.
type Sleeping<W> = Nodeless<LinuxMutex<Os<W>, Any<0>, QueueLock<Os<W>>>>;

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

/// The guards of `lock_api` 0.4 unlock when they are dropped, also if the mutex could not be locked
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

/// A program may wait for a word of its own, which may have no size and be nowhere in memory. It
/// fails where the processor can watch a line (aarch64).
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
