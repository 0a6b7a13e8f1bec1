//! The words in an ordinary thread-local variable.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicPtr, AtomicU32};
use std::thread_local;

use nearlock_core::near::rwlock::lines::ReaderLine;
use nearlock_core::schedule::Mark;

use super::{FULL, Local};
use crate::Os;

thread_local! {
    static WORDS: Local = const { Local {
        mark: AtomicU32::new(Mark::ANONYMOUS.word()),
        line: AtomicPtr::new(FULL.0.as_ptr().cast_mut().cast()),
    } };
}

/// The word of the mark.
#[inline(always)]
pub fn mark() -> u32 {
    with(|words| words.mark.load(Relaxed))
}

/// The address of the line.
#[inline(always)]
pub fn line() -> *const ReaderLine<Os> {
    with(|words| words.line.load(Relaxed))
}

/// Calls `f` with the words.
#[inline(always)]
pub fn with<R>(f: impl FnOnce(&Local) -> R) -> R {
    WORDS.with(f)
}
