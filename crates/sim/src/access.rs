//! A memory operation, independent of the word's type.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

/// What an access does to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Returns the value.
    Load,
    /// Requests ownership of the line. Neither reads nor writes a value.
    Prefetch,
    /// Requests the line, for a load that follows. Reads no value.
    PrefetchRead,
    /// Writes the operand.
    Store,
    /// Writes the operand and returns the old value.
    Swap,
    /// Writes the operand if the value is the expected one. Returns the old value.
    CompareExchange,
    /// Adds the operand and returns the old value.
    Add,
    /// ANDs the value with the operand and returns the old value.
    And,
    /// Sets the operand's bits and returns the old value.
    Or,
}

/// An operation on a word of `width` bytes at an offset in simulated memory.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub offset: u32,
    pub width: u8,
    pub operation: Operation,
    pub operand: u64,
    pub expected: u64,
}

impl Access {
    /// A placeholder for a missing access.
    pub const NONE: Self = Self { offset: 0, width: 1, operation: Operation::Load, operand: 0, expected: 0 };

    /// The cache line that the access touches.
    pub fn line(self) -> usize {
        self.offset as usize / crate::arena::LINE
    }

    pub fn is_load(self) -> bool {
        self.operation == Operation::Load
    }

    /// Whether the two accesses have a byte in common.
    pub fn overlaps(self, other: Access) -> bool {
        self.offset < other.offset + u32::from(other.width)
            && other.offset < self.offset + u32::from(self.width)
    }

    /// Whether the two accesses touch exactly the same bytes.
    pub fn covers(self, other: Access) -> bool {
        self.offset == other.offset && self.width == other.width
    }

    /// Performs the access on the word at `address` and returns the old value.
    ///
    /// # Safety
    ///
    /// `address` must point to a live word of this width, aligned to it.
    #[inline]
    pub unsafe fn apply(&self, address: *mut u8) -> u64 {
        // SAFETY: guaranteed by the caller.
        let old = unsafe { read(address, self.width) };
        let new = match self.operation {
            Operation::Load | Operation::Prefetch | Operation::PrefetchRead => return old,
            Operation::Store | Operation::Swap => self.operand,
            Operation::CompareExchange if old == self.expected => self.operand,
            Operation::CompareExchange => return old,
            Operation::Add => old.wrapping_add(self.operand),
            Operation::And => old & self.operand,
            Operation::Or => old | self.operand,
        };
        // SAFETY: guaranteed by the caller.
        unsafe { write(address, self.width, new) };
        old
    }
}

/// Reads a word. The real accesses are atomic, so that a word that is accidentally shared with
/// another thread causes no data race.
#[inline]
unsafe fn read(address: *mut u8, width: u8) -> u64 {
    // SAFETY: the caller of `apply` guarantees width and alignment.
    unsafe {
        match width {
            4 => AtomicU32::from_ptr(address.cast()).load(Relaxed).into(),
            1 => AtomicU8::from_ptr(address).load(Relaxed).into(),
            2 => AtomicU16::from_ptr(address.cast()).load(Relaxed).into(),
            _ => AtomicU64::from_ptr(address.cast()).load(Relaxed),
        }
    }
}

/// Writes the low `width` bytes of `value`.
unsafe fn write(address: *mut u8, width: u8, value: u64) {
    // SAFETY: as in `read`.
    unsafe {
        match width {
            1 => AtomicU8::from_ptr(address).store(value as u8, Relaxed),
            2 => AtomicU16::from_ptr(address.cast()).store(value as u16, Relaxed),
            4 => AtomicU32::from_ptr(address.cast()).store(value as u32, Relaxed),
            _ => AtomicU64::from_ptr(address.cast()).store(value, Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_and_wide_operations_agree_with_the_words_they_touch() {
        let mut word = 0xa1b2_c3d4_u32;
        let mut go = |operation, offset: u32, width, operand, expected| {
            let access = Access { offset, width, operation, operand, expected };
            // SAFETY: the access lies within the word and is aligned.
            let old = unsafe { access.apply((&raw mut word).cast::<u8>().add(offset as usize)) };
            (old, word)
        };
        assert_eq!(go(Operation::Store, 0, 1, 0x11, 0), (0xd4, 0xa1b2_c311));
        assert_eq!(go(Operation::Swap, 2, 2, 0x2233, 0), (0xa1b2, 0x2233_c311));
        assert_eq!(go(Operation::CompareExchange, 0, 4, 5, 6), (0x2233_c311, 0x2233_c311));
        assert_eq!(go(Operation::CompareExchange, 0, 4, 5, 0x2233_c311), (0x2233_c311, 5));
        assert_eq!(go(Operation::Add, 0, 4, u64::MAX, 0), (5, 4));
        assert_eq!(go(Operation::Or, 0, 4, 3, 0), (4, 7));
        assert_eq!(go(Operation::And, 0, 4, 6, 0), (7, 6));
        assert_eq!(go(Operation::Prefetch, 0, 4, 9, 9), (6, 6));
    }
}
