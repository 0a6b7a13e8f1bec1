//! The two sides of an [`AsymFence`](crate::platform::AsymFence) where no thread can make other
//! processors fence. Both are ordinary strong fences, and cost the same.
//!
//! ```text
//!   one side              the other side
//!   x = 1                 y = 1
//!   light: SeqCst fence   heavy: SeqCst fence
//!   read y                read x               at least one of them reads 1
//! ```
//! Source: the C++ standard, [atomics.order]. One of two sequentially consistent fences comes
//! first. A read after the other fence is not older than a write before the first.

use core::sync::atomic::Ordering::SeqCst;

use crate::platform::Platform;

/// See [`AsymFence::light`](crate::platform::AsymFence::light).
#[inline(always)]
pub fn light<P: Platform>() {
    // Ordering: SeqCst, for Dekker's pattern, as drawn above. Our store is before it, and our load
    // after it; the same holds for `heavy`. One of the two loads sees the store of the other side.
    P::fence(SeqCst);
}

/// See [`AsymFence::heavy`](crate::platform::AsymFence::heavy).
#[inline(always)]
pub fn heavy<P: Platform>() {
    // Ordering: SeqCst, the other side of the pattern in `light`.
    P::fence(SeqCst);
}
