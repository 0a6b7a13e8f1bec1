//! The words, read by a TLS descriptor. See the [module above](super).

use core::arch::{asm, global_asm};
use core::mem::offset_of;
use core::ptr;

use nearlock_core::near::rwlock::lines::ReaderLine;
use nearlock_core::schedule::Mark;

use super::{FULL, Local};
use crate::Os;

/// Gives the words their name. Each copy of the crate in a program has other words, since it has
/// other lines of readers. So the name is that of this function, which is different in each copy,
/// and a suffix. (A function that is inlined has no name of its own.)
#[inline(never)]
fn name() {}

global_asm!(
    ".pushsection .tdata, \"awT\", @progbits",
    ".globl {name}.local",
    ".hidden {name}.local",
    ".type {name}.local, @object",
    ".size {name}.local, 16",
    ".p2align 3",
    "{name}.local:",
    ".4byte {anonymous}",
    ".4byte 0",
    ".8byte {full}",
    ".popsection",
    name = sym name,
    anonymous = const Mark::ANONYMOUS.word(),
    full = sym FULL,
);

const _: () = assert!(size_of::<Local>() == 16 && offset_of!(Local, mark) == 0 && offset_of!(Local, line) == 8);

/// Runs these instructions with the offset of the words to the thread pointer in `rax`, and returns
/// the register that they call `{0}`, of this type. It is not `rax`, which a compare-and-exchange
/// needs for another value.
///
/// A library that is loaded late may get its thread-local memory at the first access. Before
/// version 2.40, the GNU C library may change vector registers then
/// (<https://sourceware.org/bugzilla/show_bug.cgi?id=31372>). With AVX-512 there would be more
/// of them, so there the words are an ordinary variable.
macro_rules! with_offset {
    ($instruction:literal, $value:ty) => {{
        let value: $value;
        asm!(
            "leaq {name}.local@TLSDESC(%rip), %rax",
            "call *{name}.local@TLSCALL(%rax)",
            $instruction,
            value = out(reg) value,
            name = sym name,
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

/// The word of the mark.
#[inline(always)]
pub fn mark() -> u32 {
    // SAFETY: reads a word of the thread.
    unsafe { with_offset!("movl %fs:(%rax), {value:e}", u32) }
}

/// The address of the line.
#[inline(always)]
pub fn line() -> *const ReaderLine<Os> {
    // SAFETY: as above. The line has the offset 8.
    unsafe { with_offset!("movq %fs:8(%rax), {value}", *const ReaderLine<Os>) }
}

/// Calls `f` with the words.
#[inline]
pub fn with<R>(f: impl FnOnce(&Local) -> R) -> R {
    // SAFETY: the address of words of the thread, which live as long as the thread. All accesses
    // are atomic, or are reads by the thread, which alone writes them.
    unsafe { f(&*ptr::with_exposed_provenance(with_offset!("movq %fs:0, {value}\naddq %rax, {value}", usize))) }
}
