//! The platform of the machine itself. The words *are* the types of `core::sync::atomic`, with
//! their layout and ABI.

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod watch;
#[cfg(not(all(target_arch = "aarch64", not(miri))))]
mod watch {
    //! For targets where the processor cannot sleep until a line is written, or a program may not.

    pub const AVAILABLE: bool = false;
    #[inline(always)]
    pub fn arm<T>(_address: *const T) {}
    #[inline(always)]
    pub fn sleep() {}
}

use core::hint::spin_loop;
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

use crate::lockstat::{Hooks, Unwatched};
use crate::platform::{AsymFence, Atomic, AtomicInt, Park, Platform, SplitWord};
use crate::strong_fences;
use crate::unwinding::without_unwinding;

/// The waiting policy of native code.
///
/// # Panics
///
/// Waiting threads call its functions and those of its [`Hooks`], while other threads refer to
/// their records. If one of the functions panics, the process ends.
///
/// # Deadlocks
///
/// They may be called while a queue of waiters is locked. So they must not lock, unlock or wait for
/// any lock of this library.
pub trait Wait: Send + Sync + 'static {
    /// The hooks for statistics, or [`Unwatched`].
    type Hooks: Hooks;

    /// Whether, in an unbounded wait for one word, the processor may sleep until the word's line is
    /// written (aarch64: `wfe`) instead of all turns. Such a sleep may last about 100 us although
    /// the line is not written. So a policy that must yield the processor sooner says no.
    const SLEEPS_UNTIL_WRITTEN: bool = false;

    /// Called after look number `turn` (from 0) at the word.
    fn turn(turn: u32);

    /// Called before the thread sleeps in a lock.
    #[inline(always)]
    fn before_sleep() {}
}

/// Waits by the processor's pause instruction alone. For threads that have a processor each. If
/// the next waiter of a FIFO lock has lost its processor, the lock stands still until the scheduler
/// runs that waiter again.
#[derive(Debug)]
pub struct Spin;

impl Wait for Spin {
    type Hooks = Unwatched;
    const SLEEPS_UNTIL_WRITTEN: bool = true;

    #[inline(always)]
    fn turn(_turn: u32) {
        spin_loop();
    }
}

/// The processor with a waiting policy, without an operating system. `nearlock-os` has the parts
/// that need one.
#[derive(Debug)]
pub struct Native<W: Wait = Spin>(PhantomData<W>);

impl<W: Wait> Native<W> {
    /// Called after a look without success: a turn of the policy.
    #[inline(always)]
    fn turn(turn: u32) {
        without_unwinding(|| {
            W::Hooks::turned();
            W::turn(turn);
        });
    }
}

macro_rules! native_word {
    ($atomic:ty, $value:ty, $zero:expr $(, $generic:ident)?) => {
        impl$(<$generic>)? Atomic<$value> for $atomic {
            #[allow(clippy::declare_interior_mutable_const)] // as in the trait
            const ZERO: Self = Self::new($zero);
            #[inline(always)]
            fn new(v: $value) -> Self {
                <$atomic>::new(v)
            }
            #[inline(always)]
            fn load(&self, order: Ordering) -> $value {
                self.load(order)
            }
            #[inline(always)]
            fn store(&self, v: $value, order: Ordering) {
                self.store(v, order);
            }
            #[inline(always)]
            fn swap(&self, v: $value, order: Ordering) -> $value {
                self.swap(v, order)
            }
            #[inline(always)]
            fn compare_exchange(
                &self, old: $value, new: $value, ok: Ordering, err: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(old, new, ok, err)
            }
            #[inline(always)]
            fn compare_exchange_weak(
                &self, old: $value, new: $value, ok: Ordering, err: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange_weak(old, new, ok, err)
            }
        }
    };
}
native_word!(AtomicU32, u32, 0);
native_word!(AtomicU64, u64, 0);
native_word!(AtomicPtr<T>, *mut T, core::ptr::null_mut(), T);

macro_rules! native_int {
    ($atomic:ty, $value:ty, $($operation:ident)*) => {
        impl AtomicInt<$value> for $atomic {
            $(#[inline(always)]
            fn $operation(&self, v: $value, order: Ordering) -> $value {
                self.$operation(v, order)
            })*

            #[inline(always)]
            fn add_alone(&self, v: $value) -> $value {
                let old = self.load(Ordering::Relaxed);
                self.store(old.wrapping_add(v), Ordering::Relaxed);
                old
            }
            #[inline(always)]
            fn sub_alone(&self, v: $value) -> $value {
                let old = self.load(Ordering::Relaxed);
                self.store(old.wrapping_sub(v), Ordering::Relaxed);
                old
            }
        }
    };
}
native_int!(AtomicU32, u32, fetch_add fetch_sub fetch_and fetch_or);
native_int!(AtomicU64, u64, fetch_add fetch_sub fetch_and fetch_or);

impl SplitWord for AtomicU32 {
    #[inline(always)]
    fn store_low_byte(&self, v: u8, order: Ordering) {
        narrow::store_low_byte(self, v, order);
    }
    #[inline(always)]
    fn store_low_half(&self, v: u16, order: Ordering) {
        narrow::store_low_half(self, v, order);
    }
    #[inline(always)]
    fn swap_low_byte(&self, v: u8, order: Ordering) -> u8 {
        narrow::swap_low_byte(self, v, order)
    }
    #[inline(always)]
    fn swap_high_half(&self, v: u16, order: Ordering) -> u16 {
        narrow::swap_high_half(self, v, order)
    }
}

/// Narrow accesses in assembly. Rust defines no atomic access that overlaps another of a different
/// size. But each of these changes the word as the read-modify-write named in [`SplitWord`] would,
/// in one indivisible step of a coherent memory. The program can see no more than that.
///
/// Tools that watch a program's accesses do not see assembly. Miri refuses it. ThreadSanitizer sees
/// no access, and would report races that do not exist. So under Miri, and with
/// `RUSTFLAGS="--cfg nearlock_visible_words"` (for ThreadSanitizer, see `.ci/deep`), all narrow
/// accesses are the read-modify-writes that they stand for.
#[cfg(all(target_arch = "x86_64", not(any(miri, nearlock_visible_words))))]
mod narrow {
    use core::arch::asm;
    use core::sync::atomic::{AtomicU32, Ordering};

    #[inline(always)]
    pub fn store_low_byte(word: &AtomicU32, v: u8, order: Ordering) {
        // Ordering: a plain x86 store is a release. `asm!` without `nomem` keeps the compiler from
        // moving memory accesses across.
        debug_assert!(matches!(order, Ordering::Relaxed | Ordering::Release));
        // SAFETY:
        // * The address is that of a live word. Its bits 0 to 7 are the first byte (little endian).
        // * By the condition of `SplitWord::store_low_byte` no other thread changes them. So the
        //   store is the whole-word read-modify-write that it stands for.
        unsafe {
            if v == 0 {
                // A release writes the constant 0 where it is inlined, which needs no register.
                return asm!("mov byte ptr [{p}], 0", p = in(reg) word.as_ptr(), options(nostack, preserves_flags));
            }
            asm!("mov byte ptr [{p}], {v}", p = in(reg) word.as_ptr(), v = in(reg_byte) v, options(nostack, preserves_flags))
        };
    }

    #[inline(always)]
    pub fn store_low_half(word: &AtomicU32, v: u16, order: Ordering) {
        // Ordering: as in `store_low_byte`.
        debug_assert!(matches!(order, Ordering::Relaxed | Ordering::Release));
        // SAFETY: as in `store_low_byte`, for bits 0 to 15.
        unsafe {
            asm!("mov word ptr [{p}], {v:x}", p = in(reg) word.as_ptr(), v = in(reg) v, options(nostack, preserves_flags))
        };
    }

    #[inline(always)]
    pub fn swap_low_byte(word: &AtomicU32, v: u8, _order: Ordering) -> u8 {
        let mut x = v;
        // Ordering: `xchg` is a full barrier, whatever was asked for.
        // SAFETY: as in `swap_high_half`, for bits 0 to 7.
        unsafe {
            asm!("xchg byte ptr [{p}], {x}", p = in(reg) word.as_ptr(), x = inout(reg_byte) x, options(nostack, preserves_flags))
        };
        x
    }

    #[inline(always)]
    pub fn swap_high_half(word: &AtomicU32, v: u16, _order: Ordering) -> u16 {
        let mut x = v;
        // Ordering: `xchg` is a full barrier, whatever was asked for.
        // SAFETY:
        // * The address is that of a live word. Its bits 16 to 31 are the second half.
        // * `xchg` with memory is atomic, and does not change the first half.
        unsafe {
            asm!("xchg word ptr [{p} + 2], {x:x}", p = in(reg) word.as_ptr(), x = inout(reg) x, options(nostack, preserves_flags))
        };
        x
    }
}

/// See the x86-64 form. The swaps are whole-word loops: without LSE there is no shorter way.
#[cfg(all(target_arch = "aarch64", target_endian = "little", not(any(miri, nearlock_visible_words))))]
mod narrow {
    use core::arch::asm;
    use core::sync::atomic::{AtomicU32, Ordering};

    pub use super::whole::{swap_high_half, swap_low_byte};

    #[inline(always)]
    pub fn store_low_byte(word: &AtomicU32, v: u8, order: Ordering) {
        let p = word.as_ptr();
        // SAFETY: as in the x86-64 form.
        // Ordering: `stlrb` is a release.
        unsafe {
            if order == Ordering::Relaxed {
                asm!("strb {v:w}, [{p}]", p = in(reg) p, v = in(reg) v, options(nostack, preserves_flags));
            } else if v == 0 {
                // As in the x86-64 form.
                asm!("stlrb wzr, [{p}]", p = in(reg) p, options(nostack, preserves_flags));
            } else {
                asm!("stlrb {v:w}, [{p}]", p = in(reg) p, v = in(reg) v, options(nostack, preserves_flags));
            }
        }
    }

    #[inline(always)]
    pub fn store_low_half(word: &AtomicU32, v: u16, order: Ordering) {
        let p = word.as_ptr();
        // SAFETY: as in the x86-64 form.
        // Ordering: `stlrh` is a release.
        unsafe {
            if order == Ordering::Relaxed {
                asm!("strh {v:w}, [{p}]", p = in(reg) p, v = in(reg) v, options(nostack, preserves_flags));
            } else {
                asm!("stlrh {v:w}, [{p}]", p = in(reg) p, v = in(reg) v, options(nostack, preserves_flags));
            }
        }
    }
}

#[cfg(any(
    miri,
    nearlock_visible_words,
    not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))
))]
use whole as narrow;

/// The read-modify-writes that the narrow accesses stand for.
#[cfg(any(miri, nearlock_visible_words, not(target_arch = "x86_64")))]
mod whole {
    use core::sync::atomic::{AtomicU32, Ordering};

    #[cfg(any(
        miri,
        nearlock_visible_words,
        not(all(target_arch = "aarch64", target_endian = "little"))
    ))]
    pub use stores::{store_low_byte, store_low_half};

    #[cfg(any(miri, nearlock_visible_words, not(all(target_arch = "aarch64", target_endian = "little"))))]
    mod stores {
        use super::{AtomicU32, Ordering, replace};
        pub fn store_low_byte(word: &AtomicU32, v: u8, order: Ordering) {
            replace(word, 0xff, u32::from(v), order);
        }
        pub fn store_low_half(word: &AtomicU32, v: u16, order: Ordering) {
            replace(word, 0xffff, u32::from(v), order);
        }
    }

    pub fn swap_low_byte(word: &AtomicU32, v: u8, order: Ordering) -> u8 {
        replace(word, 0xff, u32::from(v), order) as u8
    }

    pub fn swap_high_half(word: &AtomicU32, v: u16, order: Ordering) -> u16 {
        (replace(word, 0xffff_0000, u32::from(v) << 16, order) >> 16) as u16
    }

    fn replace(word: &AtomicU32, mask: u32, v: u32, order: Ordering) -> u32 {
        // Ordering: the caller's on success. Relaxed on failure, where nothing is read through the
        // value.
        match word.try_update(order, Ordering::Relaxed, |old| Some(old & !mask | v)) {
            Ok(old) | Err(old) => old,
        }
    }
}

// SAFETY: the words are those of `core`. `narrow` argues for the narrow accesses.
unsafe impl<W: Wait> Platform for Native<W> {
    type U32 = AtomicU32;
    type U64 = AtomicU64;
    type Ptr<T> = AtomicPtr<T>;

    #[inline(always)]
    fn wait_until<V: Copy>(word: &impl Atomic<V>, order: Ordering, done: impl Fn(V) -> bool) -> V {
        let mut turn = 0;
        loop {
            let v = word.load(order);
            if done(v) {
                return v;
            }
            // A word of size 0 has no cache line.
            if watch::AVAILABLE && W::SLEEPS_UNTIL_WRITTEN && size_of_val(word) != 0 {
                without_unwinding(W::Hooks::turned);
                watch::arm(ptr::from_ref(word));
                // The word may have been written before the line was watched.
                let v = word.load(order);
                if done(v) {
                    return v;
                }
                watch::sleep();
                continue;
            }
            Self::turn(turn);
            turn = turn.saturating_add(1);
        }
    }

    #[inline(always)]
    fn wait_until_bounded<V: Copy>(
        word: &impl Atomic<V>,
        order: Ordering,
        turns: u32,
        done: impl Fn(V) -> bool,
    ) -> V {
        let mut turn = 0;
        loop {
            let v = word.load(order);
            if done(v) || turn == turns {
                return v;
            }
            Self::turn(turn);
            turn += 1;
        }
    }

    #[inline(always)]
    fn cpu_relax(turn: u32) {
        Self::turn(turn);
    }

    #[inline(always)]
    fn fence(order: Ordering) {
        fence(order);
    }

    #[inline(always)]
    fn fence_after_rmw(order: Ordering) {
        // On x86-64 a read-modify-write is a full fence already.
        let is_fence = cfg!(all(target_arch = "x86_64", not(miri)));
        if is_fence { compiler_fence(order) } else { fence(order) }
    }

    #[inline(always)]
    fn prefetch_read<T>(target: *const T) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a prefetch accesses nothing, whatever the address.
        unsafe {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(target.cast());
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = target;
    }

    #[inline(always)]
    fn prefetch_write<T>(target: *const T) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a prefetch accesses nothing, whatever the address.
        unsafe {
            use core::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_ET0>(target.cast());
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = target;
    }
}

/// Without an operating system no thread can sleep. A sleeper makes one turn of the waiting policy,
/// and wakes up for no reason.
impl<W: Wait> Park for Native<W> {
    fn park(_word: &AtomicU32, _expected: u32) {
        without_unwinding(|| W::turn(0));
    }

    #[inline(always)]
    fn unpark(_word: *const AtomicU32, _n: u32) {}
}

/// Without an operating system no thread can make other processors fence. So both sides fence.
// SAFETY: of two sequentially consistent fences one comes first (`strong_fences`).
unsafe impl<W: Wait> AsymFence for Native<W> {
    #[inline(always)]
    fn light() {
        strong_fences::light::<Self>();
    }
    #[inline(always)]
    fn heavy() {
        strong_fences::heavy::<Self>();
    }
}

#[cfg(test)]
mod tests;
