//! The mark of the calling thread, in thread-local memory.
//!
//! Each `lock` of a mutex reads it, in whatever crate the call is compiled. On x86-64, the compiler
//! reads a thread-local variable of another crate by a call of `__tls_get_addr`, unless the reader
//! is compiled as a part of the program itself. The linker replaces the call in a program, but not
//! what the compiler does to prepare for a call: it saves registers. Other ways cannot be chosen in
//! stable Rust. So the variable is defined and read in assembly here, by a *TLS descriptor*. This
//! is a call too, but it only changes one register. The linker replaces it by a constant in a
//! program. In a shared library it stays, and works at whatever time the library is loaded. On
//! AArch64 the compiler does the same by itself.
//!
//! Source: Oliva and Aráoz, "Speeding up thread-local storage access in dynamic libraries", GCC
//! summit 2006.

use core::sync::atomic::Ordering::Relaxed;

use nearlock_core::schedule::Mark;

/// The mark of the calling thread.
#[inline(always)]
pub fn get() -> Mark {
    // SAFETY: only words of marks are stored, and the first word is one. None is 0.
    unsafe { Mark::from_word(word::load()).unwrap_unchecked() }
}

/// Sets the mark of the calling thread.
#[inline]
pub fn set(mark: Mark) {
    word::with(|word| word.store(mark.word(), Relaxed));
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
        use descriptor as word;
    }
    _ => {
        mod variable;
        use variable as word;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_core::schedule::ThreadId;
    use std::thread;

    #[test]
    fn each_thread_has_its_own_which_is_anonymous_at_first() {
        let mark = |number| Mark::new(ThreadId::new(number).expect("not 0"), Some(number));
        set(mark(1));
        for number in 2..20 {
            thread::spawn(move || {
                assert_eq!(get(), Mark::ANONYMOUS);
                set(mark(number));
                assert_eq!(get(), mark(number));
            })
            .join()
            .expect("no failure");
            assert_eq!(get(), mark(1));
        }
    }
}
