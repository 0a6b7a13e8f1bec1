//! The words of the model checker.

use std::panic::Location;
use std::sync::atomic::Ordering::{self, Relaxed};

use ::loom::cell::UnsafeCell;
use nearlock_core::platform::{Atomic, AtomicInt, SplitWord};

use crate::engine::assert_no_null;
use crate::mutate::{Check, checking, effective, stores_are_ordered};

/// Reports two plain stores to one word that nothing orders.
///
/// On a real machine either could be the last. In the model a store is a swap (see `word!`), so the
/// model would show them only in the order of execution. Hence the rule that plain stores to one
/// word happen one after the other, the first of them being the word's creation. loom's own race
/// detector checks the rule.
struct StoreOrder(UnsafeCell<()>);

// SAFETY: there is nothing in the cell; the coroutines of one model run on one thread.
unsafe impl Sync for StoreOrder {}

impl StoreOrder {
    fn new() -> Self {
        Self(UnsafeCell::new(()))
    }

    /// Called before the store, so that its Release covers this access too.
    fn note(&self) {
        if stores_are_ordered() {
            checking(Check::Stores, || self.0.with_mut(|_| ()));
        }
    }
}

macro_rules! word {
    ($(#[$doc:meta])* $name:ident, $inner:ty, $value:ty, $zero:expr $(, $generic:ident)?) => {
        $(#[$doc])*
        pub struct $name$(<$generic>)? {
            word: $inner,
            stores: StoreOrder,
        }

        impl$(<$generic>)? $name$(<$generic>)? {
            /// The word itself.
            fn word(&self) -> &$inner {
                assert_no_null(self);
                &self.word
            }
        }

        impl$(<$generic>)? Atomic<$value> for $name$(<$generic>)? {
            const ZERO: Self = panic!("loom words cannot be const: build the lock with `default()`");

            #[track_caller]
            fn new(v: $value) -> Self {
                Self { word: <$inner>::new(v), stores: StoreOrder::new() }
            }
            #[track_caller]
            fn load(&self, order: Ordering) -> $value {
                self.word().load(effective(order, "load", Location::caller()))
            }
            #[track_caller]
            fn store(&self, v: $value, order: Ordering) {
                let order = effective(order, "store", Location::caller());
                let word = self.word();
                self.stores.note();
                // A swap, because loom 0.7 does not order a plain store after the
                // read-modify-writes that it has not seen: a waiter could read the old value
                // forever. The disadvantage: a swap prolongs the release sequence, so that a
                // Relaxed store does not hide an older Release.
                word.swap(v, order);
            }
            /// The newest value. The value hardly matters, and each stale one in addition would
            /// multiply all that follows.
            fn load_hint(&self) -> $value {
                match self.word().compare_exchange($zero, $zero, Relaxed, Relaxed) {
                    Ok(v) | Err(v) => v,
                }
            }
            /// In the order of execution, as other stores. Either may be the last in this case too.
            fn store_hint(&self, v: $value) {
                self.word().swap(v, Relaxed);
            }
            #[track_caller]
            fn swap(&self, v: $value, order: Ordering) -> $value {
                self.word().swap(v, effective(order, "swap", Location::caller()))
            }
            #[track_caller]
            fn compare_exchange(
                &self, old: $value, new: $value, ok: Ordering, err: Ordering,
            ) -> Result<$value, $value> {
                let at = Location::caller();
                let (ok, err) = (effective(ok, "exchange", at), effective(err, "failed exchange", at));
                self.word().compare_exchange(old, new, ok, err)
            }
        }
    };
}
word!(
    /// A 32-bit word.
    LoomU32, ::loom::sync::atomic::AtomicU32, u32, 0);
word!(
    /// A 64-bit word.
    LoomU64, ::loom::sync::atomic::AtomicU64, u64, 0);
word!(
    /// A pointer word.
    LoomPtr, ::loom::sync::atomic::AtomicPtr<T>, *mut T, std::ptr::null_mut(), T);

macro_rules! int {
    ($name:ident, $value:ty, $($operation:ident)*) => {
        impl AtomicInt<$value> for $name {
            $(#[track_caller]
            fn $operation(&self, v: $value, order: Ordering) -> $value {
                self.word().$operation(v, effective(order, stringify!($operation), Location::caller()))
            })*
        }
    };
}
int!(LoomU32, u32, fetch_add fetch_sub fetch_and fetch_or);
int!(LoomU64, u64, fetch_add fetch_sub fetch_and fetch_or);

/// The operations that [`SplitWord`] names, as read-modify-writes of the whole word, each under its
/// condition.
impl SplitWord for LoomU32 {
    #[track_caller]
    fn store_low_byte(&self, v: u8, order: Ordering) {
        self.replace_low(0xff, u32::from(v), effective(order, "store_low_byte", Location::caller()));
    }
    #[track_caller]
    fn store_low_half(&self, v: u16, order: Ordering) {
        self.replace_low(0xffff, u32::from(v), effective(order, "store_low_half", Location::caller()));
    }
    #[track_caller]
    fn swap_low_byte(&self, v: u8, order: Ordering) -> u8 {
        let order = effective(order, "swap_low_byte", Location::caller());
        self.replace(0xff, v.into(), order) as u8
    }
    #[track_caller]
    fn swap_high_half(&self, v: u16, order: Ordering) -> u16 {
        let order = effective(order, "swap_high_half", Location::caller());
        (self.replace(0xffff_0000, u32::from(v) << 16, order) >> 16) as u16
    }
}

impl LoomU32 {
    /// Replaces the bits of `mask` and returns the whole old value.
    fn replace(&self, mask: u32, v: u32, order: Ordering) -> u32 {
        let mut old = self.newest();
        // Relaxed on failure: the value is only tried again. The one step that succeeds is the
        // swap.
        while let Err(seen) = self.word().compare_exchange(old, old & !mask | v, order, Relaxed) {
            old = seen;
        }
        old
    }

    /// The newest value. A load would try each stale one too.
    pub(super) fn newest(&self) -> u32 {
        self.load_hint()
    }

    /// Replaces the bits of `mask`, and checks that no other thread writes them meanwhile.
    fn replace_low(&self, mask: u32, v: u32, order: Ordering) {
        if v == 0 {
            self.word().fetch_and(!mask, order);
            return;
        }
        // word ^ (low ^ v) = word & !mask | v, as long as the low bits are those seen here.
        let low = self.newest() & mask;
        let old = self.word().fetch_xor(low ^ v, order);
        assert_eq!(old & mask, low, "a part of a word was written by two at the same time");
    }
}
