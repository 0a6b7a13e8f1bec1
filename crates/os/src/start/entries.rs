//! What the dynamic linker calls, or the start-up code of a static binary: before `main`, and at
//! the end. (The interpreter calls neither.)

use core::hint;

use super::begin;
use crate::sys;

/// Has the system call [`begin`] at start-up.
#[cfg_attr(not(miri), used)]
// SAFETY: the section is an array of pointers to functions that are called once each. The number
// has it come before initialisers without one, which may start threads, and after those of the C
// library.
#[cfg_attr(not(miri), unsafe(link_section = ".init_array.00101"))]
static AT_START: extern "C" fn() = {
    extern "C" fn at_start() {
        begin();
    }
    at_start
};

/// Has the system call this when the library is unloaded, or the process ends: threads that end
/// later would call what is not there any more. (The C library itself takes the handler of `fork`
/// off the list.)
#[cfg_attr(not(miri), used)]
// SAFETY: as above, of functions that are called at the end.
#[cfg_attr(not(miri), unsafe(link_section = ".fini_array"))]
static AT_END: extern "C" fn() = {
    extern "C" fn at_end() {
        sys::delete_exit_key();
    }
    at_end
};

/// Refers to the entries, so that a linker that takes from an archive what is referred to takes
/// them.
pub fn keep() {
    hint::black_box((&AT_START, &AT_END));
}
