//! A signal handler cancels, whatever code it interrupts. This runs without the test harness, whose
//! threads would get the signals.
//!
//! Would find:
//! * a cancellation that waits for the code that its handler has interrupted, or for the memory
//!   allocator;
//! * a waiter that is not woken because the canceller found the list of waiters locked;
//! * two holders.

// The interpreter has no signals.
#[cfg(all(target_os = "linux", not(miri)))]
#[path = "stress/support.rs"]
mod support;

#[cfg(all(target_os = "linux", not(miri)))]
mod parts {
    use std::hint::black_box;
    use std::sync::atomic::Ordering::SeqCst;
    use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};
    use std::time::{Duration, Instant};
    use std::{mem, ptr, thread};

    use nearlock::{Cancellation, Condvar, LockCancellable, Mutex, WaitCancellable};

    use crate::support::{Random, Sections, Watchdog, run_time};

    /// Cancellations of one part of the test: more than there are signals in its usual time.
    const ROUNDS: usize = 1 << 13;
    /// Waits of all threads that are cancelled in a round, before the next one begins.
    const CANCELLED_PER_ROUND: u64 = 6;

    /// The cancellations for the handler. Each is used in one part, and in one round of it.
    static FRESH: [Cancellation; 3 * ROUNDS] = [const { Cancellation::new() }; 3 * ROUNDS];
    static CURRENT: AtomicPtr<Cancellation> = AtomicPtr::new(ptr::null_mut());
    /// How often the handler has run.
    static SIGNALS: AtomicU64 = AtomicU64::new(0);

    fn current() -> &'static Cancellation {
        // SAFETY: `Timer::start` has stored a reference that is always valid. So are all that
        // follow it.
        unsafe { &*CURRENT.load(SeqCst) }
    }

    extern "C" fn cancel_current(_signal: i32) {
        current().cancel();
        SIGNALS.fetch_add(1, SeqCst);
    }

    /// Blocks or unblocks the signal in the calling thread.
    fn mask(how: i32) {
        // SAFETY: the set is initialised before it is used.
        unsafe {
            let mut set = mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGALRM);
            assert_eq!(libc::pthread_sigmask(how, &raw const set, ptr::null_mut()), 0);
        }
    }

    /// Sends the signal every 500 us, until it is dropped.
    struct Timer;

    impl Timer {
        fn start(first: &'static Cancellation) -> Self {
            CURRENT.store(ptr::from_ref(first).cast_mut(), SeqCst);
            // SAFETY: the handler makes no call except futex(2), and locks nothing.
            unsafe {
                libc::signal(libc::SIGALRM, cancel_current as extern "C" fn(i32) as libc::sighandler_t)
            };
            Self::set(500);
            Self
        }

        fn set(period_us: libc::suseconds_t) {
            let period = libc::timeval { tv_sec: 0, tv_usec: period_us };
            let timer = libc::itimerval { it_interval: period, it_value: period };
            // SAFETY: both are valid, or null.
            assert_eq!(unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) }, 0);
        }
    }

    impl Drop for Timer {
        fn drop(&mut self) {
            Self::set(0);
        }
    }

    /// The rounds of one part of the test, in which the handler interrupts threads.
    struct Rounds {
        cancellations: &'static [Cancellation],
        round: AtomicUsize,
        cancelled: AtomicU64,
        end: Instant,
        signals_before: u64,
    }

    impl Rounds {
        fn new(part: usize) -> Self {
            Self {
                cancellations: &FRESH[part * ROUNDS..][..ROUNDS],
                round: AtomicUsize::new(0),
                cancelled: AtomicU64::new(0),
                end: Instant::now() + run_time(),
                signals_before: SIGNALS.load(SeqCst),
            }
        }

        /// Whether to continue: until the time is over, and a wait has been cancelled in it.
        fn go_on(&self) -> bool {
            Instant::now() < self.end || self.cancelled.load(SeqCst) == 0
        }

        /// Counts a wait with `by` that was cancelled. After some of these, a fresh cancellation
        /// replaces the current one, while there are any. If threads have waited with the replaced
        /// one, it has been cancelled. The last one is cancelled while threads are left.
        fn count_cancelled(&self, by: &Cancellation) {
            assert!(by.is_cancelled(), "a wait was cancelled by nothing");
            let cancelled = self.cancelled.fetch_add(1, SeqCst) + 1;
            if !cancelled.is_multiple_of(CANCELLED_PER_ROUND) {
                return;
            }
            let round = self.round.load(SeqCst);
            // The caller's cancellation may be of an earlier round.
            if ptr::eq(by, &raw const self.cancellations[round]) && round + 1 < ROUNDS {
                let is_next = self.round.compare_exchange(round, round + 1, SeqCst, SeqCst).is_ok();
                if is_next {
                    CURRENT.store(ptr::from_ref(&self.cancellations[round + 1]).cast_mut(), SeqCst);
                }
            }
        }

        fn say(&self, part: &str) {
            let signals = SIGNALS.load(SeqCst) - self.signals_before;
            let (rounds, cancelled) = (self.round.load(SeqCst) + 1, self.cancelled.load(SeqCst));
            println!("{part}: {signals} signals, {rounds} cancellations, {cancelled} waits cancelled");
        }
    }

    /// The handler interrupts this thread, which cancels the same cancellation.
    pub fn interrupts_cancel() {
        let _watchdog = Watchdog::new("a handler that cancels waits for a `cancel` that it has interrupted");
        static CANCELLATION: Cancellation = Cancellation::new();
        let end = Instant::now() + run_time();
        let timer = Timer::start(&CANCELLATION);
        mask(libc::SIG_UNBLOCK);
        let mut calls = 0_u64;
        while Instant::now() < end || SIGNALS.load(SeqCst) == 0 {
            (0..1000).for_each(|_| CANCELLATION.cancel());
            calls += 1000;
        }
        mask(libc::SIG_BLOCK);
        drop(timer);
        println!("cancel: {} signals, {calls} calls", SIGNALS.load(SeqCst));
    }

    static MUTEX: Mutex<u64> = Mutex::new(0);
    static IN_MUTEX: Sections = Sections::new();
    static CHANGED: Condvar = Condvar::new();
    /// Held by the main thread, so that waits for it end if they are cancelled, and only then.
    static HELD: Mutex<()> = Mutex::new(());
    /// No thread notifies the waiters.
    static NEVER: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

    /// A wait that ends by itself, or is cancelled.
    fn wait_a_little(random: &mut Random, by: &Cancellation) -> bool {
        let Ok(mut guard) = MUTEX.lock_cancellable(by) else { return true };
        IN_MUTEX.pass(&mut guard, || (0..random.below(200)).for_each(|turn| _ = black_box(turn)));
        match random.below(4) {
            0 => CHANGED.wait_cancellable(&mut guard, by).is_err(),
            1 => {
                CHANGED.notify_all();
                false
            }
            _ => false,
        }
    }

    /// Begins and ends waits with the current cancellation.
    fn wait_again_and_again(rounds: &Rounds, thread: u64) {
        let mut random = Random::new(thread);
        while rounds.go_on() {
            let by = current();
            let is_cancelled = match random.below(16) {
                0 => HELD.lock_cancellable(by).is_err(),
                1 => NEVER.1.wait_cancellable(&mut NEVER.0.lock(), by).is_err(),
                _ => wait_a_little(&mut random, by),
            };
            if is_cancelled {
                rounds.count_cancelled(by);
            }
        }
    }

    /// The handler interrupts threads that begin and end waits with the cancellation that it
    /// cancels.
    pub fn interrupts_waits() {
        let _watchdog = Watchdog::new("a wait goes on that a handler has cancelled, or a handler waits");
        const THREADS: u64 = 4;
        let rounds = Rounds::new(1);
        let _held = HELD.lock();
        let timer = Timer::start(&rounds.cancellations[0]);
        crowd(&rounds, THREADS, |thread| wait_again_and_again(&rounds, thread));
        drop(timer);
        assert_eq!(IN_MUTEX.fault(*MUTEX.lock()), None);
        rounds.say("waits");
    }

    /// Allocates, frees, and locks the mutex for which others wait.
    fn allocate_and_lock(rounds: &Rounds, thread: u64) {
        let mut random = Random::new(thread);
        let mut kept = Vec::new();
        while rounds.go_on() {
            let block = vec![thread; 1 + random.below(2000) as usize];
            if kept.len() < 64 {
                kept.push(block);
            } else {
                let old = random.below(64) as usize;
                kept[old] = block;
            }
            IN_MUTEX.pass(&mut MUTEX.lock(), || ());
            CHANGED.notify_one();
        }
    }

    /// The handler interrupts threads that allocate, and that wait for a mutex without a
    /// cancellation.
    pub fn interrupts_others() {
        let _watchdog = Watchdog::new("a handler that cancels waits for the allocator, or for a mutex");
        const THREADS: u64 = 5;
        let rounds = Rounds::new(2);
        let _held = HELD.lock();
        let timer = Timer::start(&rounds.cancellations[0]);
        crowd(&rounds, THREADS, |thread| match thread % 2 {
            0 => allocate_and_lock(&rounds, thread),
            _ => wait_again_and_again(&rounds, thread),
        });
        drop(timer);
        assert_eq!(IN_MUTEX.fault(*MUTEX.lock()), None);
        rounds.say("others");
    }

    /// Threads that run `body` while the handler interrupts them. It never interrupts the main
    /// thread.
    fn crowd(rounds: &Rounds, threads: u64, body: impl Fn(u64) + Sync) {
        let body = &body;
        thread::scope(|scope| {
            let run = move |thread| {
                mask(libc::SIG_UNBLOCK);
                body(thread);
                mask(libc::SIG_BLOCK);
            };
            let crowd: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
            // A thread that is left may wait with the current cancellation, which nothing else
            // cancels then.
            while !crowd.iter().all(|thread| thread.is_finished()) {
                thread::sleep(Duration::from_millis(1));
                if !rounds.go_on() {
                    current().cancel();
                }
            }
        });
    }

    /// The threads of the watchdogs, and this one, block the signal unless they unblock it.
    pub fn begin() {
        mask(libc::SIG_BLOCK);
    }
}

fn main() {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        parts::begin();
        parts::interrupts_cancel();
        parts::interrupts_waits();
        parts::interrupts_others();
    }
}
