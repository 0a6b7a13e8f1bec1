//! The mark of the calling thread, in thread-local memory.
//!
//! Each `lock` of a mutex reads it, in whatever crate the call is compiled. On x86-64, the compiler
//! reads a thread-local variable of another crate by a call of `__tls_get_addr`, unless the reader
//! is compiled as a part of the program itself. The linker replaces the call in a program, but not
//! what the compiler does to prepare for a call: it saves registers. That takes about as long as an
//! uncontended `lock`. Other ways cannot be chosen in stable Rust. So the variable is defined and
//! read in assembly here, by a *TLS descriptor*. This is a call too, but it only changes one
//! register. The linker replaces it by a constant in a program. In a shared library it stays, and
//! works at whatever time the library is loaded. On AArch64 the compiler does the same by itself.
//!
//! Source: Oliva and Aráoz, "Speeding up thread-local storage access in dynamic libraries", GCC
//! summit 2006.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use nearlock_core::schedule::Mark;

/// The mark of the calling thread.
#[inline(always)]
pub fn get() -> Mark {
    // SAFETY: only words of marks are stored, and the first word is one.
    unsafe { Mark::from_word_unchecked(word::load()) }
}

/// Sets the mark of the calling thread.
#[inline]
pub fn set(mark: Mark) {
    word::with(|word| word.store(mark.word(), Relaxed));
}

#[cfg(all(
    target_os = "linux",
    target_arch = "x86_64",
    target_pointer_width = "64",
    not(target_feature = "avx512f"),
    not(miri)
))]
mod word {
    use core::arch::{asm, global_asm};

    use super::{AtomicU32, Mark};

    /// The name of the variable. Each version of the crate has its own.
    macro_rules! name {
        () => {
            concat!(
                "nearlock_mark_",
                env!("CARGO_PKG_VERSION_MAJOR"),
                "_",
                env!("CARGO_PKG_VERSION_MINOR"),
                "_",
                env!("CARGO_PKG_VERSION_PATCH")
            )
        };
    }

    // Weak, so that a program may have two copies of the crate, which then share the variable.
    global_asm!(
        ".pushsection .tdata, \"awT\", @progbits",
        concat!(".weak ", name!()),
        concat!(".type ", name!(), ", @object"),
        concat!(".size ", name!(), ", 4"),
        ".p2align 2",
        concat!(name!(), ":"),
        ".4byte {anonymous}",
        ".popsection",
        anonymous = const Mark::ANONYMOUS.word(),
    );

    /// Runs these instructions with the offset of the variable to the thread pointer in `rax`, and
    /// returns `rax`.
    ///
    /// A library that is loaded late may get its thread-local memory at the first access. Before
    /// version 2.40, the GNU C library may change vector registers then
    /// (<https://sourceware.org/bugzilla/show_bug.cgi?id=31372>). With AVX-512 there would be more
    /// of them, so there the variable is an ordinary one.
    macro_rules! with_offset {
        ($instruction:literal) => {{
            let rax: u64;
            asm!(
                concat!("leaq ", name!(), "@TLSDESC(%rip), %rax"),
                concat!("call *", name!(), "@TLSCALL(%rax)"),
                $instruction,
                out("rax") rax,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                options(att_syntax, pure, readonly),
            );
            rax
        }};
    }

    /// The value of the variable.
    #[inline(always)]
    pub fn load() -> u32 {
        // SAFETY: reads a variable of the thread.
        unsafe { with_offset!("movl %fs:(%rax), %eax") as u32 }
    }

    /// Calls `f` with the variable.
    #[inline]
    pub fn with<R>(f: impl FnOnce(&AtomicU32) -> R) -> R {
        // SAFETY: the address of a variable of the thread, which lives as long as the thread. All
        // accesses are atomic, or are reads by the thread, which alone writes it.
        unsafe { f(&*core::ptr::with_exposed_provenance(with_offset!("addq %fs:0, %rax") as usize)) }
    }
}

#[cfg(not(all(
    target_os = "linux",
    target_arch = "x86_64",
    target_pointer_width = "64",
    not(target_feature = "avx512f"),
    not(miri)
)))]
mod word {
    use std::thread_local;

    use super::{AtomicU32, Mark, Relaxed};

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
