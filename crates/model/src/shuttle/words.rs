//! The words of Shuttle.
//!
//! An operation is a place where the scheduler chooses ([`point`](super::point)), and then one
//! step. Shuttle's own atomics are not used, because they cannot replace a part of a word in one
//! step.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering;

use nearlock_core::platform::{Atomic, AtomicInt, SplitWord};

use super::{fails_for_no_reason, point};
use crate::engine::assert_no_null;

macro_rules! word {
    ($(#[$doc:meta])* $name:ident, $value:ty, $zero:expr $(, $generic:ident)?) => {
        $(#[$doc])*
        pub struct $name$(<$generic>)?(Cell<$value>);

        // SAFETY: the coroutines of one model run on one thread, and a step contains no place where
        // another could run.
        unsafe impl$(<$generic>)? Sync for $name$(<$generic>)? {}
        // SAFETY: as above.
        unsafe impl$(<$generic>)? Send for $name$(<$generic>)? {}

        impl$(<$generic>)? $name$(<$generic>)? {
            /// The present value. This is no place where the scheduler chooses.
            pub fn peek(&self) -> $value {
                self.0.get()
            }

            /// The word itself, after the scheduler has chosen.
            fn step(&self) -> &Cell<$value> {
                assert_no_null(self);
                point();
                &self.0
            }
        }

        impl$(<$generic>)? Atomic<$value> for $name$(<$generic>)? {
            // A template to copy from, never borrowed.
            #[allow(clippy::declare_interior_mutable_const)]
            const ZERO: Self = Self(Cell::new($zero));

            fn new(v: $value) -> Self {
                Self(Cell::new(v))
            }
            fn load(&self, _order: Ordering) -> $value {
                self.step().get()
            }
            fn store(&self, v: $value, _order: Ordering) {
                self.step().set(v);
            }
            fn swap(&self, v: $value, _order: Ordering) -> $value {
                self.step().replace(v)
            }
            fn compare_exchange(
                &self, old: $value, new: $value, _ok: Ordering, _err: Ordering,
            ) -> Result<$value, $value> {
                let word = self.step();
                let seen = word.get();
                if seen != old {
                    return Err(seen);
                }
                word.set(new);
                Ok(seen)
            }
            fn compare_exchange_weak(
                &self, old: $value, new: $value, ok: Ordering, err: Ordering,
            ) -> Result<$value, $value> {
                if fails_for_no_reason() {
                    return Err(self.step().get());
                }
                self.compare_exchange(old, new, ok, err)
            }
        }
    };
}
word!(
    /// A 32-bit word.
    ShuttleU32, u32, 0);
word!(
    /// A 64-bit word.
    ShuttleU64, u64, 0);
word!(
    /// A pointer word.
    ShuttlePtr, *mut T, ptr::null_mut(), T);

macro_rules! int {
    ($name:ident, $value:ty) => {
        impl AtomicInt<$value> for $name {
            fn fetch_add(&self, v: $value, _order: Ordering) -> $value {
                let word = self.step();
                word.replace(word.get().wrapping_add(v))
            }
            fn fetch_sub(&self, v: $value, _order: Ordering) -> $value {
                let word = self.step();
                word.replace(word.get().wrapping_sub(v))
            }
            fn fetch_and(&self, v: $value, _order: Ordering) -> $value {
                let word = self.step();
                word.replace(word.get() & v)
            }
            fn fetch_or(&self, v: $value, _order: Ordering) -> $value {
                let word = self.step();
                word.replace(word.get() | v)
            }
        }
    };
}
int!(ShuttleU32, u32);
int!(ShuttleU64, u64);

/// The read-modify-writes that [`SplitWord`] names. The stores check their condition.
impl SplitWord for ShuttleU32 {
    fn store_low_byte(&self, v: u8, _order: Ordering) {
        self.replace_alone(0xff, v.into());
    }
    fn store_low_half(&self, v: u16, _order: Ordering) {
        self.replace_alone(0xffff, v.into());
    }
    fn swap_low_byte(&self, v: u8, _order: Ordering) -> u8 {
        self.replace(0xff, v.into()) as u8
    }
    fn swap_high_half(&self, v: u16, _order: Ordering) -> u16 {
        (self.replace(0xffff_0000, u32::from(v) << 16) >> 16) as u16
    }
}

impl ShuttleU32 {
    /// Replaces the bits of `mask` and returns the whole old value.
    fn replace(&self, mask: u32, v: u32) -> u32 {
        let word = self.step();
        word.replace(word.get() & !mask | v)
    }

    /// Replaces the bits of `mask`, and checks that no other thread has changed them just before.
    fn replace_alone(&self, mask: u32, v: u32) {
        let before = self.0.get() & mask;
        let old = self.replace(mask, v);
        assert_eq!(old & mask, before, "a part of a word was written by two at the same time");
    }
}
