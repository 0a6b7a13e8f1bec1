//! Narrow stores by hand.

use core::sync::atomic::AtomicU32;

pub use narrow::{release_low_byte, release_low_half};

/// The stored value.
pub const RELEASED: u16 = 7;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod narrow {
    use core::arch::asm;

    use super::{AtomicU32, RELEASED};

    /// Stores bits 0 to 7, with Release. No other thread writes these bits of the word.
    #[inline]
    pub fn release_low_byte(word: &AtomicU32) {
        let p = word.as_ptr();
        // SAFETY: the address is that of a live word, whose low byte this is (little endian).
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!("mov byte ptr [{p}], {v}", p = in(reg) p, v = in(reg_byte) RELEASED as u8, options(nostack, preserves_flags));
            #[cfg(target_arch = "aarch64")]
            asm!("stlrb {v:w}, [{p}]", p = in(reg) p, v = in(reg) RELEASED, options(nostack, preserves_flags));
        }
    }

    /// The same for bits 0 to 15.
    #[inline]
    pub fn release_low_half(word: &AtomicU32) {
        let p = word.as_ptr();
        // SAFETY: as in `release_low_byte`; this is the first half of the word.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!("mov word ptr [{p}], {v:x}", p = in(reg) p, v = in(reg) RELEASED, options(nostack, preserves_flags));
            #[cfg(target_arch = "aarch64")]
            asm!("stlrh {v:w}, [{p}]", p = in(reg) p, v = in(reg) RELEASED, options(nostack, preserves_flags));
        }
    }
}

/// For targets on which nothing is compared.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod narrow {
    use core::sync::atomic::Ordering::{Relaxed, Release};

    use super::{AtomicU32, RELEASED};

    /// Stores bits 0 to 7, with Release.
    pub fn release_low_byte(word: &AtomicU32) {
        word.update(Release, Relaxed, |old| old & !0xff | u32::from(RELEASED));
    }

    /// The same for bits 0 to 15.
    pub fn release_low_half(word: &AtomicU32) {
        word.update(Release, Relaxed, |old| old & !0xffff | u32::from(RELEASED));
    }
}
