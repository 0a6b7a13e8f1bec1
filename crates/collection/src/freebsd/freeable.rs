//! Bytes of a lock that are not atomics.

use core::cell::UnsafeCell;

/// Constant bytes of a lock that may be freed before its last `unlock` has returned.
///
/// A lock may be freed by the last thread that has locked it, while the `unlock` that let that
/// thread in still runs (see `crates/os/tests/lifetime.rs`). That `unlock` has a reference to the
/// lock. The memory behind a reference has to live while the function runs, except for the bytes
/// within an [`UnsafeCell`], of which atomics are made. So all bytes of such a lock are in one,
/// padding included. Stacked Borrows and Tree Borrows, the rules that Miri checks, agree on that.
#[repr(transparent)]
#[derive(Default)]
pub(super) struct Freeable<T>(UnsafeCell<T>);

// SAFETY: nothing writes to the value, so it is shared like a value outside a cell.
unsafe impl<T: Sync> Sync for Freeable<T> {}

impl<T: Copy> Freeable<T> {
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    pub const fn get(&self) -> T {
        // SAFETY: the reference is live, and nothing writes to the value.
        unsafe { *self.0.get() }
    }
}
