//! Common parts of the stress tests: their run time, a watchdog for tests that hang, and a check
//! for two holders.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The run time of each test. `NEARLOCK_STRESS_MS` sets another number of milliseconds: fewer on
/// slow systems, more to look for rare faults.
pub fn run_time() -> Duration {
    // Miri's clock advances with the code that it interprets: a second in two to three minutes. A
    // round takes up to 0.1 s of it.
    const USUAL_MS: u64 = if cfg!(miri) { 1000 } else { 2000 };
    let chosen = std::env::var("NEARLOCK_STRESS_MS").ok();
    let chosen = chosen.map(|text| text.parse().expect("NEARLOCK_STRESS_MS is a number of milliseconds"));
    Duration::from_millis(chosen.unwrap_or(USUAL_MS))
}

/// Ends the process if a test takes much longer than its time. A thread then waits and is never
/// woken, or spins without an end. All that a test really waits for has happened long before this,
/// however loaded the machine is.
pub struct Watchdog {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Watches until it is dropped. Prints this message if it is not dropped in time.
    pub fn new(complaint: &'static str) -> Self {
        const PATIENCE: Duration = Duration::from_secs(60);
        let is_over = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&is_over);
        let watch = move || {
            let deadline = Instant::now() + run_time() + PATIENCE;
            while !watched.load(Relaxed) {
                match deadline.checked_duration_since(Instant::now()) {
                    Some(left) if !left.is_zero() => thread::park_timeout(left),
                    _ => bark(complaint),
                }
            }
        };
        Self { is_over, thread: Some(thread::spawn(watch)) }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            thread.join().expect("a watchdog does not panic");
        }
    }
}

/// Allocates nothing, since the allocator may be the part that hangs. The message is visible
/// although the output of tests is captured.
fn bark(complaint: &str) -> ! {
    let mut stderr = io::stderr().lock();
    for part in ["a minute after its time the test is not done: ", complaint, "\n"] {
        // An error cannot be reported.
        _ = stderr.write_all(part.as_bytes());
    }
    std::process::abort()
}

/// Numbers that are the same for the same seed (xorshift64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        // Similar seeds begin far apart, and no seed begins at 0.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % limit
    }
}

/// The critical sections of one lock. The lock protects a number, which counts them.
#[derive(Default)]
pub struct Sections {
    is_occupied: AtomicBool,
    passed: AtomicU64,
    /// How often a thread entered while another was inside. Checked at the end: a thread that
    /// panics inside leaves others waiting.
    overlaps: AtomicU64,
}

impl Sections {
    pub const fn new() -> Self {
        Self { is_occupied: AtomicBool::new(false), passed: AtomicU64::new(0), overlaps: AtomicU64::new(0) }
    }

    /// A critical section of the caller, which holds the lock. It runs `inside`.
    pub fn pass(&self, count: &mut u64, inside: impl FnOnce()) {
        if self.is_occupied.swap(true, Relaxed) {
            self.overlaps.fetch_add(1, Relaxed);
        }
        // Not in one step, so that another holder's addition is lost.
        let before = *count;
        inside();
        *count = before + 1;
        self.passed.fetch_add(1, Relaxed);
        self.is_occupied.store(false, Relaxed);
    }

    /// The fault, if there was one. The lock protects `count` now, and the caller holds it.
    pub fn fault(&self, count: u64) -> Option<&'static str> {
        if self.overlaps.load(Relaxed) != 0 {
            return Some("two threads have held the lock");
        }
        (count != self.passed.load(Relaxed)).then_some("the addition of a section is lost")
    }
}
