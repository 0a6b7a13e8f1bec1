//! Words that other threads may write between two instructions of the only thread:
//! [`before_exchange`].

use core::ops::Deref;
use core::sync::atomic::Ordering;
use std::boxed::Box;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::thread_local;

use crate::platform::{Atomic, AtomicInt, SplitWord};

/// An act before a compare-exchange. Returns whether the exchange then fails for no reason, if it
/// is a weak one.
type Before = Box<dyn FnOnce() -> bool>;

thread_local! {
    static BEFORE: RefCell<VecDeque<Before>> = const { RefCell::new(VecDeque::new()) };
}

/// Other threads do this just before the next compare-exchange of the thread. If something is
/// already to happen before that one, they do this before the compare-exchange after it, and so on.
/// The compare-exchange of a chain's lock counts. Those of other threads do not.
pub fn before_exchange(what: impl FnOnce() + 'static) {
    let before = move || {
        what();
        false
    };
    BEFORE.with_borrow_mut(|all| all.push_back(Box::new(before)));
}

/// The next compare-exchange of the thread, in the same order, fails for no reason if it is a weak
/// one.
pub fn exchange_fails() {
    BEFORE.with_borrow_mut(|all| all.push_back(Box::new(|| true)));
}

/// Whether there have been as many compare-exchanges as the test has set acts for.
pub fn exchanges_are_over() -> bool {
    BEFORE.with_borrow(VecDeque::is_empty)
}

/// Whether a weak compare-exchange fails now.
fn fails() -> bool {
    let mut all = BEFORE.take();
    let fails = all.pop_front().is_some_and(|before| before());
    BEFORE.set(all);
    fails
}

/// A word of [`OneThread`](super::OneThread).
#[repr(transparent)]
pub struct Word<A>(A);

impl<A> Deref for Word<A> {
    type Target = A;

    fn deref(&self) -> &A {
        &self.0
    }
}

impl<V: Copy, A: Atomic<V>> Atomic<V> for Word<A> {
    const ZERO: Self = Self(A::ZERO);

    fn new(v: V) -> Self {
        Self(A::new(v))
    }
    fn load(&self, order: Ordering) -> V {
        self.0.load(order)
    }
    fn store(&self, v: V, order: Ordering) {
        self.0.store(v, order);
    }
    fn swap(&self, v: V, order: Ordering) -> V {
        self.0.swap(v, order)
    }
    fn compare_exchange(&self, old: V, new: V, ok: Ordering, err: Ordering) -> Result<V, V> {
        fails();
        self.0.compare_exchange(old, new, ok, err)
    }
    fn compare_exchange_weak(&self, old: V, new: V, ok: Ordering, err: Ordering) -> Result<V, V> {
        if fails() { Err(self.0.load(err)) } else { self.0.compare_exchange_weak(old, new, ok, err) }
    }
}

impl<V: Copy, A: AtomicInt<V>> AtomicInt<V> for Word<A> {
    fn fetch_add(&self, v: V, order: Ordering) -> V {
        self.0.fetch_add(v, order)
    }
    fn fetch_sub(&self, v: V, order: Ordering) -> V {
        self.0.fetch_sub(v, order)
    }
    fn fetch_and(&self, v: V, order: Ordering) -> V {
        self.0.fetch_and(v, order)
    }
    fn fetch_or(&self, v: V, order: Ordering) -> V {
        self.0.fetch_or(v, order)
    }
}

impl<A: SplitWord> SplitWord for Word<A> {
    fn store_low_byte(&self, v: u8, order: Ordering) {
        self.0.store_low_byte(v, order);
    }
    fn store_low_half(&self, v: u16, order: Ordering) {
        self.0.store_low_half(v, order);
    }
    fn swap_low_byte(&self, v: u8, order: Ordering) -> u8 {
        self.0.swap_low_byte(v, order)
    }
    fn swap_high_half(&self, v: u16, order: Ordering) -> u16 {
        self.0.swap_high_half(v, order)
    }
}
