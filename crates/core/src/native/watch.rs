//! Sleeping until a cache line is written, on aarch64.
//!
//! A load-exclusive makes the processor watch the line. A write to the line by another processor is
//! an event, and `wfe` sleeps until there is an event. An event before the `wfe` is not lost: the
//! processor remembers it, and the next `wfe` returns at once. So an event that is left over from
//! before costs one turn of the caller's loop. It need not be cleared first. (Loops that begin with
//! the `wfe` do that with `sevl` and another `wfe`.)
//!
//! `wfe` may return for no reason: interrupts are events, and Linux has the timer make one every
//! 100 us. Source: Arm Architecture Reference Manual for A-profile, "Wait for Event" and "Exclusive
//! access instructions".

use core::arch::asm;

/// Whether the processor can sleep until a line is written.
pub const AVAILABLE: bool = true;

/// Watches the line at `address` from now on. The caller's later loads come after this. If they do
/// not see a write to the line, that write is an event.
#[inline(always)]
pub fn arm<T>(address: *const T) {
    // Ordering: an acquire, so that the loads that follow are not done before the line is watched.
    // SAFETY: callers have a word there. The byte is read in one indivisible step and discarded.
    unsafe {
        asm!("ldaxrb {byte:w}, [{address}]", address = in(reg) address, byte = out(reg) _, options(nostack, preserves_flags, readonly))
    };
}

/// Sleeps until the watched line is written, or for no reason.
#[inline(always)]
pub fn sleep() {
    // SAFETY: has no conditions.
    unsafe { asm!("wfe", options(nostack, preserves_flags)) };
}
