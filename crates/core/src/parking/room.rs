//! Memory for chains, on a platform with the words of `core`.

use core::ptr;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use super::chain::{Chain, Family};
use crate::platform::Platform;

const BYTES: usize = 128;
const WORDS: usize = BYTES / size_of::<usize>();

/// Memory for one chain of any family. All zero: the chain is empty and unlocked.
///
/// A static table of rooms names no family, and costs nothing until it is used.
#[repr(C, align(64))]
pub struct Room([AtomicUsize; WORDS]);

impl Room {
    /// All zero, in `const`.
    pub const fn new() -> Self {
        Self([const { AtomicUsize::new(0) }; WORDS])
    }

    /// The chain in this room. A room has a chain of one family only.
    #[inline(always)]
    pub const fn chain<P: Platform, F: Family>(&self) -> *const Chain<P, F> {
        const { assert!(size_of::<Chain<P, F>>() <= size_of::<Self>()) };
        const { assert!(align_of::<Chain<P, F>>() <= align_of::<Self>()) };
        ptr::from_ref(self).cast()
    }

    /// Makes the chain empty and unlocked. Memory that is already zero is not written to.
    ///
    /// # Safety
    ///
    /// No thread waits in the chain, has locked anything in it, or accesses it at the same time.
    /// Threads that did so before do not exist any more, as in a child made by `fork`.
    pub unsafe fn forget(&self) {
        for word in &self.0 {
            if word.load(Relaxed) != 0 {
                word.store(0, Relaxed);
            }
        }
    }
}

impl Default for Room {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_that_is_forgotten_is_zero() {
        let room = Room::new();
        room.0.iter().for_each(|word| word.store(7, Relaxed));
        // SAFETY: one thread.
        unsafe { room.forget() };
        assert!(room.0.iter().all(|word| word.load(Relaxed) == 0));
    }
}
