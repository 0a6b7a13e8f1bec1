//! The restartable-sequences area of each thread: the NUMA node that the kernel stores there, and
//! the word by which a thread asks for a longer time slice.
//!
//! The C library registers the area of every thread that it makes, and tells the offset of the
//! areas from the thread pointer.
//!
//! ```text
//! offset  0 cpu_id_start | 4 cpu_id | 8 rseq_cs | 16 flags | 20 node_id | 24 mm_cid
//!         28 slice_ctrl: request, granted | 32 ...
//! ```
//! The node is used if all of this holds:
//! 1. The C library has registered areas: its `__rseq_size` is not 0. The value is 32 in glibc 2.35
//!    to 2.39, 20 in 2.40 and in older versions with that change, and the feature size in later
//!    versions. In every case the registered area has at least 32 bytes, because the kernel would
//!    have refused a smaller one.
//! 2. The kernel fills in that field: the feature size in the auxiliary vector is 24 or more (Linux
//!    6.3).
//! 3. The field has the value that the system call returns, here and now.
//!
//! Source: the GNU C Library manual, "Restartable Sequences". On the mailing list linux-kernel: M.
//! Desnoyers and F. Weimer, January 2023 (which fields can be used with 32 registered bytes); M.
//! Desnoyers, "rseq: slice ext: Ensure rseq feature size differs from original rseq size", February
//! 2026 (values of `__rseq_size`; the fields up to and with `slice_ctrl` take 32 bytes). The
//! kernel's documentation, "Restartable Sequences" (the requests by that word).

use core::arch::asm;
use core::ffi::{c_int, c_long, c_ulong};
use core::ptr;

use super::c;
use super::nodes::ask_numa_node;

/// The C library's variables, or null where it has none. These are weak references, which the
/// loader resolves. `dlsym` is not used because it may allocate, and the caller may be inside a
/// lock that the allocator uses.
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

/// How often the two answers are compared before they count as different: the thread may be moved
/// between the two questions.
const TRIES: u32 = 16;

/// The offset of the areas from the thread pointer, and the size that the C library tells; `None`
/// if it has registered none.
fn areas() -> Option<(i32, u32)> {
    let (offset, size) = symbols();
    if offset.is_null() || size.is_null() {
        return None;
    }
    // SAFETY: constants of the C library, set before any of our code runs; each is read once.
    let (offset, size) = unsafe { (ptr::read_volatile(offset), ptr::read_volatile(size)) };
    (size != 0).then_some((i32::try_from(offset).ok()?, size))
}

/// The offset of the area from the thread pointer, if the node in the area can be relied on.
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

/// The NUMA node in the caller's area; `None` if this thread has no registered area (the C library
/// did not make the thread).
///
/// # Safety
///
/// The offset is what [`offset`] returned: the area of every thread has this offset.
#[inline(always)]
pub unsafe fn node(offset: i32) -> Option<u32> {
    let (cpu, node): (i32, u32);
    let offset = offset as isize;
    // Each value is read by one instruction, from the thread's own area. The kernel writes there
    // only while the thread does not run.
    #[cfg(target_arch = "x86_64")]
    // SAFETY: by the condition of this function every thread has the area.
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
    // -1: not registered; -2: the registration has failed.
    (cpu >= 0).then_some(node)
}

/// The offset in the area of the word for time slices.
const SLICE_CONTROL: isize = 28;
/// The size from which an area is known to have the word. A feature size of 32 does not tell,
/// because areas had that size before.
const WITH_SLICE_CONTROL: u32 = 33;
/// `prctl`'s option, the action, and the argument.
const PR_RSEQ_SLICE_EXTENSION: c_int = 79;
const PR_RSEQ_SLICE_EXTENSION_SET: c_ulong = 2;
const PR_RSEQ_SLICE_EXT_ENABLE: c_ulong = 1;
/// The same on all processors.
const SYS_RSEQ_SLICE_YIELD: c_long = 471;

/// Tells the kernel that the caller may ask for longer time slices. If the kernel agrees, returns
/// the word for the requests: the first byte is the request, and the second tells whether it was
/// granted.
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
    // SAFETY: a register that all code may read.
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

    /// The address that is computed in steps is right, for a word that each kernel has.
    #[test]
    fn areas_lie_behind_the_thread_pointer() {
        let Some((offset, _)) = areas() else {
            println!("no restartable sequences here");
            return;
        };
        let cpu = thread_pointer().wrapping_offset(offset as isize + 4).cast::<i32>();
        // SAFETY: areas are registered at this offset. The kernel writes there only while the
        // thread does not run.
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
        // SAFETY: the offset is that of `offset`.
        let told = || unsafe { node(offset) };
        // The thread may be moved in between.
        assert!((0..1000).any(|_| told() == Some(ask_numa_node())));
        // SAFETY: as above.
        std::thread::spawn(move || assert!(unsafe { node(offset) }.is_some())).join().unwrap();
    }
}
