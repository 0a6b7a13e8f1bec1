//! The words of the simulated machine: atomics whose accesses take simulated time.

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::Ordering;

use nearlock_core::platform::{Atomic, AtomicInt, SplitWord};

use crate::access::{Access, Operation};
use crate::machine::perform;

/// A value that fits in a simulated word.
pub trait Bits: Copy {
    /// The value whose bits are all zero.
    const ZERO: Self;
    /// The value as a number.
    fn to_bits(self) -> u64;
    /// The value of a number from [`to_bits`](Self::to_bits).
    fn from_bits(bits: u64) -> Self;
}

impl Bits for u32 {
    const ZERO: Self = 0;
    fn to_bits(self) -> u64 {
        self.into()
    }
    fn from_bits(bits: u64) -> Self {
        bits as u32
    }
}

impl Bits for u64 {
    const ZERO: Self = 0;
    fn to_bits(self) -> u64 {
        self
    }
    fn from_bits(bits: u64) -> Self {
        bits
    }
}

impl<T> Bits for *mut T {
    const ZERO: Self = ptr::null_mut();
    fn to_bits(self) -> u64 {
        self.expose_provenance() as u64
    }
    fn from_bits(bits: u64) -> Self {
        ptr::with_exposed_provenance_mut(bits as usize)
    }
}

/// A simulated word with the native size and layout.
#[repr(transparent)]
pub struct Word<V>(UnsafeCell<V>);

// SAFETY: every access is a real atomic one (`Access::apply`), or the constructor's.
unsafe impl<V> Send for Word<V> {}
// SAFETY: as above.
unsafe impl<V> Sync for Word<V> {}

impl<V: Bits> Word<V> {
    fn access(&self, operation: Operation, operand: u64, expected: u64) -> u64 {
        self.narrow(0, size_of::<V>() as u8, operation, operand, expected)
    }

    /// Performs an access to `width` bytes at `offset` within the word.
    fn narrow(&self, offset: u32, width: u8, operation: Operation, operand: u64, expected: u64) -> u64 {
        let access = Access { offset, width, operation, operand, expected };
        // SAFETY: the address is that of this word, and the access lies within it.
        unsafe { perform(self.0.get().cast::<u8>(), access) }
    }
}

/// The operation of a store. Stores wait in the store buffer unless they must be visible before
/// later loads.
fn store_operation(order: Ordering) -> Operation {
    match order {
        Ordering::SeqCst => Operation::Swap,
        _ => Operation::Store,
    }
}

impl<V: Bits> Atomic<V> for Word<V> {
    #[allow(clippy::declare_interior_mutable_const)] // as in the trait
    const ZERO: Self = Self(UnsafeCell::new(V::ZERO));

    fn new(v: V) -> Self {
        Self(UnsafeCell::new(v))
    }
    fn load(&self, _order: Ordering) -> V {
        V::from_bits(self.access(Operation::Load, 0, 0))
    }
    fn store(&self, v: V, order: Ordering) {
        self.access(store_operation(order), v.to_bits(), 0);
    }
    fn swap(&self, v: V, _order: Ordering) -> V {
        V::from_bits(self.access(Operation::Swap, v.to_bits(), 0))
    }
    fn compare_exchange(&self, old: V, new: V, _ok: Ordering, _err: Ordering) -> Result<V, V> {
        let seen = self.access(Operation::CompareExchange, new.to_bits(), old.to_bits());
        if seen == old.to_bits() { Ok(old) } else { Err(V::from_bits(seen)) }
    }
}

macro_rules! sim_int {
    ($value:ty) => {
        impl AtomicInt<$value> for Word<$value> {
            fn fetch_add(&self, v: $value, _order: Ordering) -> $value {
                self.access(Operation::Add, v.into(), 0) as $value
            }
            fn fetch_sub(&self, v: $value, _order: Ordering) -> $value {
                self.access(Operation::Add, v.wrapping_neg().into(), 0) as $value
            }
            fn fetch_and(&self, v: $value, _order: Ordering) -> $value {
                self.access(Operation::And, v.into(), 0) as $value
            }
            fn fetch_or(&self, v: $value, _order: Ordering) -> $value {
                self.access(Operation::Or, v.into(), 0) as $value
            }
        }
    };
}
sim_int!(u32);
sim_int!(u64);

impl SplitWord for Word<u32> {
    fn store_low_byte(&self, v: u8, order: Ordering) {
        self.narrow(0, 1, store_operation(order), v.into(), 0);
    }
    fn store_low_half(&self, v: u16, order: Ordering) {
        self.narrow(0, 2, store_operation(order), v.into(), 0);
    }
    fn swap_low_byte(&self, v: u8, _order: Ordering) -> u8 {
        self.narrow(0, 1, Operation::Swap, v.into(), 0) as u8
    }
    fn swap_high_half(&self, v: u16, _order: Ordering) -> u16 {
        self.narrow(2, 2, Operation::Swap, v.into(), 0) as u16
    }
}
