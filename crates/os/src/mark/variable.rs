//! The word of the mark in an ordinary thread-local variable.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;
use std::thread_local;

use nearlock_core::schedule::Mark;

thread_local! {
    static MARK: AtomicU32 = const { AtomicU32::new(Mark::ANONYMOUS.word()) };
}

/// The value of the variable.
#[inline(always)]
pub fn load() -> u32 {
    with(|word| word.load(Relaxed))
}

/// Calls `f` with the variable.
#[inline(always)]
pub fn with<R>(f: impl FnOnce(&AtomicU32) -> R) -> R {
    MARK.with(f)
}
