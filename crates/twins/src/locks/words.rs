//! Narrow stores by hand.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use core::arch::asm;
use core::sync::atomic::AtomicU32;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use core::sync::atomic::Ordering::{Relaxed, Release};

/// What is stored.
pub const RELEASED: u16 = 7;

/// Stores bits 0 to 7, as a release. For a word of which nobody else writes these.
#[inline]
pub fn release_low_byte(word: &AtomicU32) {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    let p = word.as_ptr();
    // SAFETY: the address is that of a live word, of which this is the low byte (little endian).
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("mov byte ptr [{p}], {v}", p = in(reg) p, v = in(reg_byte) RELEASED as u8, options(nostack, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        asm!("stlrb {v:w}, [{p}]", p = in(reg) p, v = in(reg) RELEASED, options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    word.fetch_update(Release, Relaxed, |old| Some(old & !0xff | u32::from(RELEASED))).ok();
}

/// The same for bits 0 to 15.
#[inline]
pub fn release_low_half(word: &AtomicU32) {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    let p = word.as_ptr();
    // SAFETY: as in `release_low_byte`, of which this is the first half.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("mov word ptr [{p}], {v:x}", p = in(reg) p, v = in(reg) RELEASED, options(nostack, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        asm!("stlrh {v:w}, [{p}]", p = in(reg) p, v = in(reg) RELEASED, options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    word.fetch_update(Release, Relaxed, |old| Some(old & !0xffff | u32::from(RELEASED))).ok();
}
