//! The words of the calling thread that locks read without a call: its mark, and where its line of
//! readers is.
//!
//! Each `lock` of a mutex and each `read` of a reader-writer lock reads one of them, in whatever
//! crate the call is compiled. On x86-64, the compiler reads a thread-local variable of another
//! crate by a call of `__tls_get_addr`, unless the reader is compiled as a part of the program
//! itself. The linker replaces the call in a program, but not what the compiler does to prepare for
//! a call: it saves registers. Other ways cannot be chosen in stable Rust. So the words are defined
//! and read in assembly here, by a *TLS descriptor*. This is a call too, but it only changes one
//! register. The linker replaces it by a constant in a program. In a shared library it stays, and
//! works at whatever time the library is loaded. On AArch64 the compiler does the same by itself.
//!
//! Source: Oliva and Aráoz, "Speeding up thread-local storage access in dynamic libraries", GCC
//! summit 2006.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use nearlock_core::near::rwlock::lines::ReaderLine;
use nearlock_core::schedule::Mark;

use crate::Os;

/// The words of a thread. Other threads do not access them.
#[repr(C)]
pub(crate) struct Local {
    mark: AtomicU32,
    line: AtomicPtr<ReaderLine<Os>>,
}

/// A line of readers without a free slot, for threads that have none.
#[repr(C, align(64))]
pub(crate) struct FullLine([AtomicU64; 8]);

pub(crate) static FULL: FullLine = FullLine([const { AtomicU64::new(u64::MAX) }; 8]);

const _: () = assert!(size_of::<FullLine>() == size_of::<ReaderLine<Os>>());

fn full_line() -> *mut ReaderLine<Os> {
    FULL.0.as_ptr().cast_mut().cast()
}

/// The mark of the calling thread.
#[inline(always)]
pub fn mark() -> Mark {
    // SAFETY: only words of marks are stored, and the first word is one. None is 0.
    unsafe { Mark::from_word(words::mark()).unwrap_unchecked() }
}

/// Sets the mark of the calling thread.
#[inline]
pub fn set_mark(mark: Mark) {
    words::with(|words| words.mark.store(mark.word(), Relaxed));
}

/// The line of readers of the calling thread, or a full one.
#[inline(always)]
pub fn line() -> *const ReaderLine<Os> {
    words::line()
}

/// Sets the line of readers of the calling thread. `None`: a full one.
pub fn set_line(line: Option<&'static ReaderLine<Os>>) {
    let line = line.map_or_else(full_line, |line| core::ptr::from_ref(line).cast_mut());
    words::with(|words| words.line.store(line, Relaxed));
}

cfg_select! {
    all(
        target_os = "linux",
        target_arch = "x86_64",
        target_pointer_width = "64",
        not(target_feature = "avx512f"),
        not(miri)
    ) => {
        mod descriptor;
        use descriptor as words;
    }
    _ => {
        mod variable;
        use variable as words;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_core::schedule::ThreadId;
    use std::thread;

    #[test]
    fn each_thread_has_its_own_mark_which_is_anonymous_at_first() {
        let new = |number| Mark::new(ThreadId::new(number).expect("not 0"), Some(number));
        set_mark(new(1));
        for number in 2..20 {
            thread::spawn(move || {
                assert_eq!(mark(), Mark::ANONYMOUS);
                set_mark(new(number));
                assert_eq!(mark(), new(number));
            })
            .join()
            .expect("no failure");
            assert_eq!(mark(), new(1));
        }
    }

    #[test]
    fn each_thread_has_its_own_line_which_is_full_at_first() {
        static LINE: FullLine = FullLine([const { AtomicU64::new(0) }; 8]);
        thread::spawn(|| {
            assert_eq!(line(), full_line().cast_const());
            let other = LINE.0.as_ptr().cast::<ReaderLine<Os>>();
            // SAFETY: a line without holds, for ever.
            set_line(Some(unsafe { &*other }));
            assert_eq!(line(), other);
            thread::spawn(|| assert_eq!(line(), full_line().cast_const())).join().expect("no failure");
            set_line(None);
            assert_eq!(line(), full_line().cast_const());
        })
        .join()
        .expect("no failure");
    }
}
