//! The switches of the process: those of all locks whose tuning is `Switched`.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use nearlock_core::platform::SWITCHES_MAX;

/// The stored values: 0 for a default.
static STORED: [AtomicU64; SWITCHES_MAX] = [const { AtomicU64::new(0) }; SWITCHES_MAX];

/// Sets all switches, as they are stored (`nearlock_core::tuning::Position::stored`).
///
/// # Safety
///
/// No thread uses a lock over [`Os`](crate::Os) whose tuning is
/// [`Switched`](nearlock_core::tuning::Switched). No such lock that was made before is used
/// afterwards: half of an operation could be done in one way, and half in the other. Each value is
/// within the limits of its switch ([`Values`](nearlock_core::tuning::Values)): a waiter that reads
/// another value panics, and no waiter may unwind.
pub unsafe fn set(stored: [u64; SWITCHES_MAX]) {
    for (switch, value) in STORED.iter().zip(stored) {
        // Relaxed: no other thread reads at the same time.
        switch.store(value, Relaxed);
    }
}

/// The stored value of the switch with this index.
#[inline]
pub fn switch(index: usize) -> u64 {
    STORED[index].load(Relaxed)
}
