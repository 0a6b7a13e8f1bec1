//! The cost of a pause on this machine.

use core::hint::spin_loop;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use crate::sys;

/// Pauses per try: long compared with reading the clock twice (50 ns), short compared with a time
/// slice.
const PAUSES: u64 = 128;

/// The number of tries. The smallest result counts, because interruptions only add time.
const TRIES: u32 = 4;

/// How long one [`spin_loop`] takes on this processor, in nanoseconds: 1 to 60, depending on the
/// processor.
///
/// The time is measured once, at the first call, which takes about 5 to 25 us. For a
/// [`Mutex`](nearlock_core::near::mutex::NearMutex) the first waiter makes this call. On a
/// processor that changes its clock, the result stays what it was then.
pub fn pause_ns() -> f64 {
    /// The bits of the result; 0: not measured.
    static MEASURED: AtomicU64 = AtomicU64::new(0);
    let known = f64::from_bits(MEASURED.load(Relaxed));
    if known > 0.0 {
        return known;
    }
    let mut least_ns = u64::MAX;
    for _ in 0..TRIES {
        least_ns = least_ns.min(one_try_ns());
    }
    let measured_ns = least_ns.max(1) as f64 / PAUSES as f64;
    // If several threads measure at the same time, all return the result of the first.
    match MEASURED.compare_exchange(0, measured_ns.to_bits(), Relaxed, Relaxed) {
        Ok(_) => measured_ns,
        Err(known) => f64::from_bits(known),
    }
}

fn one_try_ns() -> u64 {
    let begin_ns = sys::now_ns();
    for _ in 0..PAUSES {
        spin_loop();
    }
    sys::now_ns() - begin_ns
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    /// With eight threads, the first seldom has a result before another begins.
    #[test]
    fn threads_that_ask_at_the_same_time_have_one_result() {
        let together = Barrier::new(8);
        let asked = || {
            together.wait();
            pause_ns()
        };
        let results: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(asked)).collect();
            threads.into_iter().map(|thread| thread.join().expect("it ends")).collect()
        });
        let measured_ns = pause_ns();
        assert!(measured_ns > 0.0 && measured_ns.is_finite());
        assert_eq!(results, [measured_ns; 8]);
    }
}
