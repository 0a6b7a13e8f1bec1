//! The word of the [fences](super), apart from what decides it.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

pub(super) const UNDECIDED: u32 = 0;
pub(super) const STRONG: u32 = 1;
pub(super) const MEMBARRIER: u32 = 2;

pub(super) static KIND: AtomicU32 = AtomicU32::new(UNDECIDED);

/// Writes to the page of the word. So its first decision does not wait for the kernel to map the
/// page, twice: for reading and for writing.
pub(crate) fn map() {
    // Relaxed: the word does not change. The compiler would make a load of a `fetch_or` of 0.
    _ = KIND.compare_exchange(UNDECIDED, UNDECIDED, Relaxed, Relaxed);
}
