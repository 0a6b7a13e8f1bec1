//! What a pause costs here.

use core::hint::spin_loop;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use crate::sys;

/// Pauses of one try: long against reading the clock twice (50 ns), short against a time slice.
const PAUSES: u64 = 128;

/// Tries. The least counts: whatever comes between only adds.
const TRIES: u32 = 4;

/// How long one [`spin_loop`] takes on this processor, in nanoseconds, measured once (at the first
/// call, which takes some 5 to 25 us: for a [`Mutex`](nearlock_core::near::mutex::NearMutex), the
/// first that waits): 1 to 60, depending on the processor. On a processor that changes its clock it
/// is what it was then.
pub fn pause_ns() -> f64 {
    /// The bits of the result; 0: not measured.
    static MEASURED: AtomicU64 = AtomicU64::new(0);
    let known = f64::from_bits(MEASURED.load(Relaxed));
    if known > 0.0 {
        return known;
    }
    let measured_ns = (0..TRIES).map(|_| one_try_ns()).min().unwrap_or(0).max(1) as f64 / PAUSES as f64;
    MEASURED.store(measured_ns.to_bits(), Relaxed);
    measured_ns
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
    use super::*;

    #[test]
    fn it_is_measured_once() {
        let measured_ns = pause_ns();
        assert!(measured_ns > 0.0 && measured_ns.is_finite());
        assert_eq!(pause_ns(), measured_ns);
    }
}
