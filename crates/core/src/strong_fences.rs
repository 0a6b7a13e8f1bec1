//! The two sides of an [`AsymFence`](crate::platform::AsymFence) where nobody can make other
//! processors fence: both are ordinary strong fences, and equally dear.
//!
//! ```text
//!   one side              the other side
//!   x = 1                 y = 1
//!   light: SeqCst fence   heavy: SeqCst fence
//!   read y                read x               at least one of them reads 1
//! ```
//! Source: the C++ standard, [atomics.order]: of two sequentially consistent fences one comes
//! first, and what is read after the other is not older than what was written before the first.

use core::sync::atomic::Ordering::SeqCst;

use crate::platform::Platform;

/// See [`AsymFence::light`](crate::platform::AsymFence::light).
#[inline(always)]
pub fn light<P: Platform>() {
    // Ordering: SeqCst, for Dekker's pattern, drawn above: our store before it, our load after it, and
    // the same in `heavy`. One of the two loads sees the other's store.
    P::fence(SeqCst);
}

/// See [`AsymFence::heavy`](crate::platform::AsymFence::heavy).
#[inline(always)]
pub fn heavy<P: Platform>() {
    // Ordering: SeqCst, the other side of the pattern in `light`.
    P::fence(SeqCst);
}
