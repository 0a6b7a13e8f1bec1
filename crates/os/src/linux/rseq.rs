//! Each thread's restartable-sequences area: the NUMA node that the kernel keeps there, and the
//! word by which a thread asks for a longer time slice.
//!
//! The C library registers the area of every thread that it makes, and says where it lies from the
//! thread pointer.
//!
//! ```text
//! offset  0 cpu_id_start  4 cpu_id  8 rseq_cs  16 flags  20 node_id  24 mm_cid  28 slice_ctrl: request, granted  32 ...
//! ```
//! The node is relied on if all of this holds:
//! 1. The C library has registered areas: its `__rseq_size` is not 0. Whatever it is else (32 in
//!    glibc 2.35 to 2.39, 20 in 2.40 and where that was brought into older ones, later the feature
//!    size), what was registered has at least 32 bytes, or the kernel would have refused it.
//! 2. The kernel fills in that field: the feature size in the auxiliary vector is 24 or more (Linux
//!    6.3).
//! 3. It says what the system call says, here and now.
//!
//! Source: the GNU C Library manual, "Restartable Sequences"; on the mailing list linux-kernel, M.
//! Desnoyers and F. Weimer, January 2023 (which fields can be used with 32 registered bytes), and
//! M. Desnoyers, "rseq: slice ext: Ensure rseq feature size differs from original rseq size",
//! February 2026 (values of `__rseq_size`; that the fields up to and with `slice_ctrl` take 32
//! bytes). What is asked for by that word: the kernel's documentation, "Restartable Sequences".

use core::arch::asm;
use core::ffi::{c_int, c_long, c_ulong};
use core::ptr;

use super::c;
use super::nodes::ask_numa_node;

/// The C library's variables, or null where it has none. By weak references, which the loader
/// resolves, and not by `dlsym`, which may allocate: whoever asks may be in the middle of a lock
/// that the allocator uses.
fn symbols() -> (*const isize, *const u32) {
    let (offset, size);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: loads the addresses that the loader has put into the global offset table.
    unsafe {
        asm!(
            ".weak __rseq_offset",
            ".weak __rseq_size",
            "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
            "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]",
            offset = out(reg) offset,
            size = out(reg) size,
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        asm!(
            ".weak __rseq_offset",
            ".weak __rseq_size",
            "adrp {offset}, :got:__rseq_offset",
            "ldr {offset}, [{offset}, :got_lo12:__rseq_offset]",
            "adrp {size}, :got:__rseq_size",
            "ldr {size}, [{size}, :got_lo12:__rseq_size]",
            offset = out(reg) offset,
            size = out(reg) size,
            options(nostack, preserves_flags, readonly)
        );
    }
    (offset, size)
}

/// The entry of the auxiliary vector that tells how many bytes of the area the kernel fills in.
const AT_RSEQ_FEATURE_SIZE: c_ulong = 27;

/// Bytes up to and including `node_id`.
const NODE_ID_END: c_ulong = 24;

/// So often may the thread be moved between two questions before the answers count as different.
const TRIES: u32 = 16;

/// Where the areas lie from the thread pointer, and how long the C library says that they are; if
/// it has registered any.
fn areas() -> Option<(i32, u32)> {
    let (offset, size) = symbols();
    if offset.is_null() || size.is_null() {
        return None;
    }
    // SAFETY: the C library's constants, set before any code of ours runs; read once each.
    let (offset, size) = unsafe { (ptr::read_volatile(offset), ptr::read_volatile(size)) };
    (size != 0).then_some((i32::try_from(offset).ok()?, size))
}

/// Where the area lies from the thread pointer, if it can be relied on for the node.
pub fn offset() -> Option<i32> {
    let (offset, _) = areas()?;
    // SAFETY: has no conditions.
    let features = unsafe { c::getauxval(AT_RSEQ_FEATURE_SIZE) };
    if features < NODE_ID_END {
        return None;
    }
    // SAFETY: areas of at least 32 bytes are registered at this offset.
    let agree = || unsafe { node(offset) } == Some(ask_numa_node());
    (0..TRIES).any(|_| agree()).then_some(offset)
}

/// The node in the caller's area; `None` if this thread has none registered (the C library did not
/// make it).
///
/// # Safety
///
/// The offset is what [`offset`] gave: the area of every thread lies there.
#[inline(always)]
pub unsafe fn node(offset: i32) -> Option<u32> {
    let (cpu, node): (i32, u32);
    let offset = offset as isize;
    // Both are read by one instruction each, from the thread's own area, which the kernel writes only
    // while the thread does not run.
    #[cfg(target_arch = "x86_64")]
    // SAFETY: by our own condition the area is there for every thread.
    unsafe {
        asm!(
            "mov {cpu:e}, dword ptr fs:[{offset} + 4]",
            "mov {node:e}, dword ptr fs:[{offset} + 20]",
            offset = in(reg) offset,
            cpu = out(reg) cpu,
            node = lateout(reg) node,
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        asm!(
            "mrs {area}, tpidr_el0",
            "add {area}, {area}, {offset}",
            "ldr {cpu:w}, [{area}, #4]",
            "ldr {node:w}, [{area}, #20]",
            offset = in(reg) offset,
            area = out(reg) _,
            cpu = out(reg) cpu,
            node = out(reg) node,
            options(nostack, preserves_flags, readonly)
        );
    }
    // -1: not registered; -2: could not be.
    (cpu >= 0).then_some(node)
}

/// Where the word for time slices is.
const SLICE_CONTROL: isize = 28;
/// Bytes of an area of which it is known to be a part: a feature size of 32 there is not, since
/// that was the size of areas before.
const WITH_SLICE_CONTROL: u32 = 33;
/// `prctl`'s option, the action, and the argument.
const PR_RSEQ_SLICE_EXTENSION: c_int = 79;
const PR_RSEQ_SLICE_EXTENSION_SET: c_ulong = 2;
const PR_RSEQ_SLICE_EXT_ENABLE: c_ulong = 1;
/// The same on all processors.
const SYS_RSEQ_SLICE_YIELD: c_long = 471;

/// Tells the kernel that the caller may ask for longer time slices. The word by which it does, if
/// the kernel agrees: the first byte is the request, the second says whether it was granted.
pub fn slice_control() -> Option<*mut u8> {
    let (offset, size) = areas()?;
    // SAFETY: areas are registered at this offset.
    if size < WITH_SLICE_CONTROL || unsafe { node(offset) }.is_none() {
        return None;
    }
    let none: c_ulong = 0;
    // SAFETY: the option takes numbers; a kernel that does not know it refuses.
    let enabled = unsafe {
        c::prctl(PR_RSEQ_SLICE_EXTENSION, PR_RSEQ_SLICE_EXTENSION_SET, PR_RSEQ_SLICE_EXT_ENABLE, none, none)
    };
    (enabled == 0).then(|| thread_pointer().wrapping_offset(offset as isize + SLICE_CONTROL))
}

fn thread_pointer() -> *mut u8 {
    let pointer;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the first word of a thread's control block is its address.
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(nostack, preserves_flags, readonly));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a register that anybody may read.
    unsafe {
        asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem));
    }
    pointer
}

/// Gives the processor back after a grant.
pub fn slice_yield() {
    // SAFETY: the call has no argument; without a grant it does nothing.
    unsafe { c::syscall(SYS_RSEQ_SLICE_YIELD) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place that is computed in parts, for a word that each kernel has.
    #[test]
    fn areas_lie_behind_the_thread_pointer() {
        let Some((offset, _)) = areas() else {
            println!("no restartable sequences here");
            return;
        };
        let cpu = thread_pointer().wrapping_offset(offset as isize + 4).cast::<i32>();
        // SAFETY: areas are registered at this offset; the kernel writes them while the thread does not
        // run.
        let registered = || unsafe { cpu.read_volatile() } >= 0;
        // SAFETY: as above.
        assert_eq!(registered(), unsafe { node(offset) }.is_some());
    }

    #[test]
    fn the_area_says_what_the_kernel_says() {
        let Some(offset) = offset() else {
            println!("no restartable sequences with a node here");
            return;
        };
        // SAFETY: the offset is what it must be.
        let told = || unsafe { node(offset) };
        // The thread may be moved in between.
        assert!((0..1000).any(|_| told() == Some(ask_numa_node())));
        // SAFETY: as above.
        std::thread::spawn(move || assert!(unsafe { node(offset) }.is_some())).join().unwrap();
    }
}
