//! Functions that the dynamic linker, or the start-up code of a static binary, calls before `main`
//! and at the end. (Miri calls neither.)

use core::hint;

use super::begin;
use crate::sys;

/// The entry that calls [`begin`] at start-up.
#[cfg_attr(not(miri), used)]
// SAFETY: the section is an array of pointers to functions, each of which is called once. The
// number places the entry before initialisers without a number, which may start threads, and after
// those of the C library.
#[cfg_attr(not(miri), unsafe(link_section = ".init_array.00101"))]
static AT_START: extern "C" fn() = {
    extern "C" fn at_start() {
        begin();
    }
    at_start
};

/// The entry that deletes the key when the library is unloaded or the process ends. Without it,
/// threads that end later would call a function that no longer exists. (The C library itself
/// removes the handler of `fork` from its list.)
#[cfg_attr(not(miri), used)]
// SAFETY: as above, for functions that are called at the end.
#[cfg_attr(not(miri), unsafe(link_section = ".fini_array"))]
static AT_END: extern "C" fn() = {
    extern "C" fn at_end() {
        sys::delete_exit_key();
    }
    at_end
};

/// Refers to the entries. A linker takes from an archive only what is referred to, so it takes
/// them.
pub fn keep() {
    hint::black_box((&AT_START, &AT_END));
}
