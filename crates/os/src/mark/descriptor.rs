//! The word of the mark, read by a TLS descriptor. See the [module above](super).

use core::arch::{asm, global_asm};
use core::ptr;
use core::sync::atomic::AtomicU32;

use nearlock_core::schedule::Mark;

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
/// returns the register that they call `{0}`, of this type. It is not `rax`, which a
/// compare-and-exchange needs for another value.
///
/// A library that is loaded late may get its thread-local memory at the first access. Before
/// version 2.40, the GNU C library may change vector registers then
/// (<https://sourceware.org/bugzilla/show_bug.cgi?id=31372>). With AVX-512 there would be more
/// of them, so there the variable is an ordinary one.
macro_rules! with_offset {
    ($instruction:literal, $value:ty) => {{
        let value: $value;
        asm!(
            concat!("leaq ", name!(), "@TLSDESC(%rip), %rax"),
            concat!("call *", name!(), "@TLSCALL(%rax)"),
            $instruction,
            out(reg) value,
            out("rax") _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(att_syntax, pure, readonly),
        );
        value
    }};
}

/// The value of the variable.
#[inline(always)]
pub fn load() -> u32 {
    // SAFETY: reads a variable of the thread.
    unsafe { with_offset!("movl %fs:(%rax), {0:e}", u32) }
}

/// Calls `f` with the variable.
#[inline]
pub fn with<R>(f: impl FnOnce(&AtomicU32) -> R) -> R {
    // SAFETY: the address of a variable of the thread, which lives as long as the thread. All
    // accesses are atomic, or are reads by the thread, which alone writes it.
    unsafe { f(&*ptr::with_exposed_provenance(with_offset!("movq %fs:0, {0}\naddq %rax, {0}", usize))) }
}
