//! Hand-over: the time from one thread's unlock to the acquisition by a waiter on another CPU.
//!
//! ```text
//! holder                                    waiter
//! waits for this message            <----   says that it is about to lock
//! works; the waiter waits by now            lock: waits
//! notes the time; unlock            ---->   lock returns; notes the time
//! waits for this message            <----   says that it has the lock
//! ```
//! Then they swap roles. Every hand-over is to a thread that is known to wait. The last holder has
//! no opportunity to take the lock again.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nearlock_core::native::Wait;
use nearlock_core::platform::{Clock, Platform};
use nearlock_core::raw::RawLock;
use nearlock_os::{Os, SpinThenYield};
use nearlock_workload::locktorture::OwnLine;
use nearlock_workload::sections::WorkLength;

use super::crew::{Crew, Members};
use super::mode::HANDOVER_THREADS;
use super::sample::Sample;
use super::statistics::Waits;
use super::{BenchError, Failure};

/// The holder's message to the next holder, written in the section. Atomic for locks that do not
/// exclude.
#[derive(Default)]
struct Message {
    /// The number of this hand-over.
    number: AtomicU64,
    released_ns: AtomicU64,
    is_last: AtomicBool,
}

/// State that both threads share, apart from the lock.
#[derive(Default)]
struct HandoverRun {
    message: OwnLine<Message>,
    /// The last hand-over that a thread is about to wait for.
    expected: OwnLine<AtomicU64>,
    /// The last hand-over that has happened.
    happened: OwnLine<AtomicU64>,
    /// Set when the run is over.
    over: OwnLine<AtomicBool>,
    outcome: Mutex<Outcome>,
    dwell: WorkLength,
}

#[derive(Default)]
struct Outcome {
    waits: Waits,
    /// Acquisitions before the holder's unlock.
    overlaps: u64,
}

/// Waits for a word that another thread is about to write. That thread has its own CPU, unless
/// another process takes it.
fn until(word: &AtomicU64, value: u64) {
    // Relaxed: the lock orders the accesses that depend on it.
    <Os<SpinThenYield>>::wait_until(word, Relaxed, |seen| seen >= value);
}

impl HandoverRun {
    /// Holds the lock with this node, hands over number `n`, and returns whether it was the last.
    ///
    /// Safety: the caller holds the lock with this node.
    unsafe fn hand_over<W: Wait, L: RawLock>(&self, lock: &L, node: &L::Node, n: u64) -> bool {
        until(&self.expected.0, n);
        self.dwell.pass::<Os<W>>();
        let is_last = self.over.0.load(Relaxed);
        let Message { number, released_ns, is_last: last } = &self.message.0;
        last.store(is_last, Relaxed);
        number.store(n, Relaxed);
        released_ns.store(<Os<W>>::now_ns(), Relaxed);
        // SAFETY: by this function's own condition.
        unsafe { lock.unlock(node) };
        is_last
    }

    /// Takes over number `n`, and returns whether it was the last.
    ///
    /// Safety: the node belongs to the caller, and is not in use.
    unsafe fn take_over<W: Wait, L: RawLock>(
        &self,
        lock: &L,
        node: &L::Node,
        n: u64,
        outcome: &mut Outcome,
    ) -> bool {
        self.expected.0.store(n, Relaxed);
        // SAFETY: by this function's own condition.
        unsafe { lock.lock(node) };
        let acquired_ns = <Os<W>>::now_ns();
        let message = &self.message.0;
        if message.number.load(Relaxed) != n {
            outcome.overlaps += 1;
            // Wait for the holder's message, which is still to come: it says whether the run ends.
            until(&message.number, n);
        } else {
            outcome.waits.record(acquired_ns.saturating_sub(message.released_ns.load(Relaxed)));
        }
        let is_last = message.is_last.load(Relaxed);
        self.happened.0.store(n, Relaxed);
        is_last
    }

    /// Thread 0 hands over the even numbers, thread 1 the odd ones.
    fn work<W: Wait, L: RawLock>(&self, lock: &L, thread: usize) {
        let node = L::Node::default();
        let mut outcome = Outcome::default();
        // Hand-overs count from 2. Number 1 is the first acquisition by thread 0.
        let mut n = 1;
        if thread == 0 {
            // SAFETY: the node is this thread's own. The other thread waits for the word below
            // before it locks.
            unsafe { lock.lock(&node) };
            self.happened.0.store(n, Relaxed);
        } else {
            until(&self.happened.0, n);
        }
        loop {
            n += 1;
            let takes = (n % 2 == 0) == (thread == 1);
            // SAFETY: the node is this thread's own. The thread holds the lock exactly when it has
            // to hand it over.
            let is_last = unsafe {
                if takes {
                    self.take_over::<W, L>(lock, &node, n, &mut outcome)
                } else {
                    self.hand_over::<W, L>(lock, &node, n)
                }
            };
            if is_last && takes {
                // SAFETY: this thread has just taken it.
                unsafe { lock.unlock(&node) };
            }
            if is_last {
                break;
            }
            if !takes {
                until(&self.happened.0, n);
            }
        }
        let mut all = self.outcome();
        all.waits.add(&outcome.waits);
        all.overlaps += outcome.overlaps;
    }

    fn outcome(&self) -> MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the threads hand over to each other for `window`.
    fn end(&self, crew: Crew, clock_ns: f64, window: Duration) -> Result<Sample, Failure> {
        crew.start();
        std::thread::sleep(window);
        self.over.0.store(true, Relaxed);
        crew.end(&|| self.happened.0.load(Relaxed))?;
        let outcome = std::mem::take(&mut *self.outcome());
        if outcome.overlaps > 0 {
            return Err(Failure::Overlaps { times: outcome.overlaps });
        }
        let ns = outcome.waits.quantile(0.5).map(|ns| ns as f64 - clock_ns).filter(|&ns| ns > 0.0);
        Ok(Sample { ns_per_op: ns, waits: Some(outcome.waits), ..Sample::default() })
    }
}

/// One run of one lock, by a thread on each of these CPUs. The holder works for `dwell` once the
/// other thread waits. The median is reduced by `clock_ns`, the cost of reading the clock.
pub fn measure<W: Wait, L: RawLock>(
    cpus: [u32; HANDOVER_THREADS],
    dwell: WorkLength,
    clock_ns: f64,
    window: Duration,
) -> Result<Result<Sample, Failure>, BenchError> {
    let run = Arc::new(HandoverRun { dwell, ..HandoverRun::default() });
    let (worked, lock) = (Arc::clone(&run), OwnLine(L::default()));
    let crew = Crew::gather(Members::On(&cpus), move |thread| worked.work::<W, L>(&lock.0, thread))?;
    Ok(run.end(crew, clock_ns, window))
}
