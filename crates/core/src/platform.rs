//! The operations that an algorithm may use of the machine on which it runs.
//!
//! The words copy the signatures of `core::sync::atomic`, so that a lock reads like ordinary Rust.
//! Everything beyond words is a capability: a sub-trait that a lock names in its bounds.

use core::sync::atomic::Ordering;

use crate::events::LockEvent;
use crate::settings::Setting;

/// One shared memory word.
///
/// `ZERO` is the only value that a `const` context can build, because traits have no `const fn` on
/// stable Rust. Hence the project's rule: **all bits zero is "unlocked"**. This also puts static
/// locks into `.bss`, and makes `= {0}` a valid C initialiser.
pub trait Atomic<V: Copy>: Send + Sync + Sized {
    /// The word with all bits zero. If the words of a platform cannot be built in `const`, this
    /// constant panics. A call of the lock's `const fn new` is then a compile error.
    #[allow(clippy::declare_interior_mutable_const)] // a template to copy from, never borrowed
    const ZERO: Self;
    /// A word holding `v`, built at run time.
    fn new(v: V) -> Self;
    /// As in `core`.
    fn load(&self, order: Ordering) -> V;
    /// As in `core`.
    fn store(&self, v: V, order: Ordering);
    /// Loads a hint, Relaxed. It may be out of date. Only speed and fairness may depend on it.
    #[inline(always)]
    fn load_hint(&self) -> V {
        self.load(Ordering::Relaxed)
    }
    /// Stores a hint, Relaxed. Other threads may store to the word at the same time: the last store
    /// stays.
    #[inline(always)]
    fn store_hint(&self, v: V) {
        self.store(v, Ordering::Relaxed);
    }
    /// As in `core`.
    fn swap(&self, v: V, order: Ordering) -> V;
    /// As in `core`.
    fn compare_exchange(&self, old: V, new: V, ok: Ordering, err: Ordering) -> Result<V, V>;
    /// As in `core`: may fail although the word holds `old`.
    #[inline(always)]
    #[track_caller]
    fn compare_exchange_weak(&self, old: V, new: V, ok: Ordering, err: Ordering) -> Result<V, V> {
        self.compare_exchange(old, new, ok, err)
    }
}

/// A word with arithmetic and bit operations.
pub trait AtomicInt<V: Copy>: Atomic<V> {
    /// As in `core`.
    fn fetch_add(&self, v: V, order: Ordering) -> V;
    /// As in `core`.
    fn fetch_sub(&self, v: V, order: Ordering) -> V;
    /// As in `core`.
    fn fetch_and(&self, v: V, order: Ordering) -> V;
    /// As in `core`.
    fn fetch_or(&self, v: V, order: Ordering) -> V;

    /// Adds, in two steps if that is cheaper, and returns the old value. `Relaxed`.
    ///
    /// Condition: if another thread writes the word meanwhile, what it writes may be lost.
    // In the models it is one step. Loom does not follow a thread that reads between two.
    #[inline(always)]
    fn add_alone(&self, v: V) -> V {
        self.fetch_add(v, Ordering::Relaxed)
    }
    /// As [`add_alone`](Self::add_alone), but subtracts.
    #[inline(always)]
    fn sub_alone(&self, v: V) -> V {
        self.fetch_sub(v, Ordering::Relaxed)
    }
}

/// A 32-bit word of which a part can be written alone, as the kernel writes a qspinlock.
///
/// Rust has no mixed-size atomics. So each operation is defined as the read-modify-write of the
/// whole word that it equals *under its condition*. A platform may use a narrow access.
pub trait SplitWord: AtomicInt<u32> {
    /// Replaces bits 0 to 7. Equals `word = word & !0xff | v` in one step.
    ///
    /// Condition: no other thread writes bits 0 to 7 at the same time.
    fn store_low_byte(&self, v: u8, order: Ordering);
    /// Replaces bits 0 to 15. Equals `word = word & !0xffff | v` in one step.
    ///
    /// Condition: no other thread changes bits 0 to 15 at the same time (setting a bit that is set
    /// already changes nothing).
    fn store_low_half(&self, v: u16, order: Ordering);
    /// Replaces bits 0 to 7 and returns their old value, in one step.
    fn swap_low_byte(&self, v: u8, order: Ordering) -> u8;
    /// Replaces bits 16 to 31 and returns their old value, in one step.
    fn swap_high_half(&self, v: u16, order: Ordering) -> u16;
}

/// The operations that every lock needs. Locks that need more name a sub-trait in their bounds,
/// such as [`Topology`].
///
/// # Safety
///
/// Locks rely on these points for mutual exclusion:
///
/// - The words behave as those of `core::sync::atomic`, and the operations of [`SplitWord`] as
///   defined there.
/// - [`wait_until`](Self::wait_until) returns only a value that it has loaded from the word, with
///   that ordering, and for which `done` holds.
/// - [`with_record`](Self::with_record) lends a record with its default value, until `f` has
///   returned or unwound. No other reference to the record exists.
/// - The functions here do not unwind, nor do those of any capability that the type has. (A
///   waiter's record lies on its stack, where other threads write to it.) They may unwind only when
///   no thread uses a lock of the platform any more, as at the end of a simulation.
///
/// Capabilities that are not `unsafe` need no more than that: locks exclude whatever they return.
pub unsafe trait Platform: Sized + Send + Sync + 'static {
    /// 32-bit word.
    type U32: SplitWord;
    /// 64-bit word.
    type U64: AtomicInt<u64>;
    /// Pointer word.
    type Ptr<T>: Atomic<*mut T>;

    /// Waits until `done` holds for the word, and returns the value.
    ///
    /// This is an operation, and not a loop in each lock, because platforms wait in different ways.
    /// Native code pauses or yields as its waiting policy says. Model checkers bound the turns. The
    /// simulator blocks the thread until the cache line is written. The load that satisfies `done`
    /// has ordering `order`.
    fn wait_until<V: Copy>(word: &impl Atomic<V>, order: Ordering, done: impl Fn(V) -> bool) -> V;

    /// As [`wait_until`](Self::wait_until), but gives up after `turns` unsuccessful looks: the
    /// value returned may not satisfy `done`.
    fn wait_until_bounded<V: Copy>(
        word: &impl Atomic<V>,
        order: Ordering,
        turns: u32,
        done: impl Fn(V) -> bool,
    ) -> V;

    /// One turn of a loop that waits for something other than one word. `turn` counts the loop's
    /// turns from 0, so that a waiting policy can wait longer in later turns.
    fn cpu_relax(turn: u32);

    /// Waits for the time of so many pause instructions, without reading any word. `turn` counts
    /// the delays of a loop as in [`cpu_relax`](Self::cpu_relax).
    #[inline]
    fn pause(pauses: u32, turn: u32) {
        for _ in 1..pauses {
            Self::cpu_relax(0);
        }
        Self::cpu_relax(turn);
    }

    /// As in `core`.
    fn fence(order: Ordering);

    /// The same, right after a read-modify-write of the caller. Costs nothing where that is a fence
    /// already.
    #[inline(always)]
    #[track_caller]
    fn fence_after_rmw(order: Ordering) {
        Self::fence(order);
    }

    /// Lends a record of words for the length of a call: on the stack, if words may lie there.
    #[inline(always)]
    fn with_record<N: Default, R>(f: impl FnOnce(&N) -> R) -> R {
        f(&N::default())
    }

    /// Hints that the line of `target` will be read soon. Threads that read several lines need not
    /// wait for one after the other.
    #[inline(always)]
    fn prefetch_read<T>(_target: *const T) {}

    /// Hints that the line of `target` will be written soon.
    #[inline(always)]
    fn prefetch_write<T>(_target: *const T) {}

    /// Counts an event of a slow path. Costs nothing where the platform does not count.
    #[inline(always)]
    fn count(_event: LockEvent) {}

    /// Calls `f`, which is a slow path. This is only a mark for profilers. The simulator accounts
    /// for the processor time in it.
    #[inline(always)]
    fn in_slow_path<R>(f: impl FnOnce() -> R) -> R {
        f()
    }
}

/// Sleeping until a word changes: a futex.
///
/// A wait that ends by [`unpark`](Self::unpark) orders nothing by itself: the sleeper reads the
/// word again, with the ordering that it needs.
pub trait Park: Platform {
    /// Sleeps while `word` has the value `expected`, until [`unpark`](Self::unpark) wakes it.
    /// Comparing and falling asleep are one step for `unpark`. If a thread changes the word and
    /// then calls `unpark`, it wakes this sleeper, or the sleeper has seen the change. May return
    /// at any time for no reason.
    fn park(word: &Self::U32, expected: u32);

    /// Wakes at most `n` of the threads that sleep on `word`.
    ///
    /// Only the address counts. The word may have been freed, or have another use by now. Then a
    /// thread that sleeps there wakes up for no reason.
    fn unpark(word: *const Self::U32, n: u32);

    /// Wakes one of the threads that sleep on `word`, as [`unpark`](Self::unpark). Returns true
    /// only if it has woken a thread. A platform that cannot tell returns false.
    fn unpark_one(word: *const Self::U32) -> bool {
        Self::unpark(word, 1);
        false
    }
}

/// Sleeping until a word changes, or for a while.
pub trait ParkTimeout: Park + Clock {
    /// As [`Park::park`], at most until the clock shows `until_ns`.
    fn park_until(word: &Self::U32, expected: u32, until_ns: u64);
}

/// Dekker's pattern with a cheap side and an expensive side. The cheap side is used often, the
/// other rarely.
///
/// Let one thread write `x`, call [`light`](Self::light) and read `y`. Let another thread write
/// `y`, call [`heavy`](Self::heavy) and read `x`. Then at least one of them sees the write of the
/// other, as between two `SeqCst` fences. Everything before the one is visible after the other. Two
/// calls of `light` order nothing between each other; two calls of `heavy` do.
///
/// # Safety
///
/// The implementation keeps this contract. Locks may rely on it for mutual exclusion.
///
/// ```compile_fail,E0200
/// use nearlock_core::platform::{AsymFence, Platform};
/// # use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
/// # use nearlock_core::native::Native;
/// # use nearlock_core::platform::Atomic;
/// # struct Mine;
/// # // SAFETY: is the machine's.
/// # unsafe impl Platform for Mine {
/// #     type U32 = AtomicU32;
/// #     type U64 = AtomicU64;
/// #     type Ptr<T> = AtomicPtr<T>;
/// #     fn wait_until<V: Copy>(
/// #         word: &impl Atomic<V>,
/// #         order: Ordering,
/// #         done: impl Fn(V) -> bool,
/// #     ) -> V {
/// #         <Native>::wait_until(word, order, done)
/// #     }
/// #     fn wait_until_bounded<V: Copy>(
/// #         word: &impl Atomic<V>,
/// #         order: Ordering,
/// #         turns: u32,
/// #         done: impl Fn(V) -> bool,
/// #     ) -> V {
/// #         <Native>::wait_until_bounded(word, order, turns, done)
/// #     }
/// #     fn cpu_relax(turn: u32) {
/// #         <Native>::cpu_relax(turn);
/// #     }
/// #     fn fence(order: Ordering) {
/// #         <Native>::fence(order);
/// #     }
/// # }
///
/// impl AsymFence for Mine {
///     fn light() {}
///     fn heavy() {}
/// }
/// ```
pub unsafe trait AsymFence: Platform {
    /// The side that is used often. At best it only restricts the compiler.
    fn light();
    /// Whether the light side only restricts the compiler, from now on. Once it does, it always
    /// does.
    #[inline]
    fn is_light_free() -> bool {
        false
    }
    /// The light side for callers that know that it [only restricts the
    /// compiler](Self::is_light_free).
    #[inline(always)]
    fn free_light() {
        Self::light();
    }
    /// The side that is used rarely. At worst it is a system call that interrupts every processor.
    fn heavy();
}

/// Time.
pub trait Clock: Platform {
    /// Nanoseconds since a fixed moment. It never goes back on one thread.
    fn now_ns() -> u64;
}

/// The place where the calling thread runs.
pub trait Topology: Platform {
    /// The NUMA node of the processor on which the caller runs, or ran a moment ago. Below
    /// [`NUMA_NODES_MAX`].
    fn numa_node() -> u32;
}

/// More NUMA nodes than any machine has. Locks may use values from here on as marks.
pub const NUMA_NODES_MAX: u32 = 0xffff;

/// Threads that must not be delayed for the sake of throughput. In the kernel these are interrupt,
/// NMI and real-time contexts. In user space they are threads that declare themselves urgent.
pub trait Priority: Platform {
    /// Whether the caller's acquisitions are urgent at present.
    fn is_priority() -> bool;
    /// Declares the caller's acquisitions urgent, or ordinary again.
    fn set_priority(urgent: bool);
}

/// Cheap random bits, for decisions that must not fall into step between locks.
pub trait Random: Platform {
    /// 32 bits from the caller's own generator. Not for cryptography.
    fn random_u32() -> u32;
}

/// Work other than locking: for workloads, never for locks.
pub trait Work: Clock {
    /// Keeps the processor busy for this time.
    fn busy_ns(ns: u64);
    /// Stands for instructions that the workload's original executes. Takes this time in the
    /// simulator. Natively it takes no time, since the workload executes its own instructions.
    #[inline(always)]
    fn compute_ns(ns: u64) {
        Self::compute_ps(ns.saturating_mul(1000));
    }
    /// The same in picoseconds, for a few instructions.
    fn compute_ps(ps: u64);
    /// Leaves the processor for about this time.
    fn sleep_ns(ns: u64);
    /// Leaves the processor to another thread that is ready, if there is one.
    fn preempt();
    /// Leaves the processor to other threads if it is their turn, as a kernel does when it returns
    /// to user mode. Natively the operating system does so anywhere.
    #[inline(always)]
    fn may_give_way() {}
}

/// Settings that may change while locks are in use. They belong to the platform instance: natively
/// the process, in the simulator the machine. They are not in a static, because simulations run in
/// parallel.
pub trait Settings: Platform {
    /// The present value.
    fn setting(which: Setting) -> u64;
}

/// The number of switches for which a platform instance has room.
pub const SWITCHES_MAX: usize = 96;

/// Switches of the locks whose tuning is [`Switched`](crate::tuning::Switched). They belong to the
/// platform instance, as settings do.
///
/// # Safety
///
/// A switch does not change as long as there is a lock with that tuning on the instance.
pub unsafe trait Switches: Platform {
    /// The stored value of the switch at this index, below [`SWITCHES_MAX`]. 0 stands for the
    /// switch's default ([`SwitchInfo::stored`](crate::tuning::SwitchInfo::stored)), so that an
    /// instance need not know the defaults.
    fn switch(index: usize) -> u64;
}

/// Names a queue node by its thread and nesting level. Lock words have it instead of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeId {
    /// The thread's slot, below [`NodeId::SLOTS`]. Slots are recycled between threads, never freed.
    pub slot: u32,
    /// The number of nodes of this thread that were already in use, below [`NodeId::NESTING`].
    pub level: u32,
}

impl NodeId {
    /// Nesting levels of a thread: ordinary code, and up to three nested signal handlers (in the
    /// kernel: task, soft interrupt, interrupt, NMI).
    pub const NESTING: u32 = 4;
    /// Slots that the 14 bits of a qspinlock's tail can name, 0 being "none".
    pub const SLOTS: u32 = (1 << 14) - 1;
}

/// A node lent by the platform for the length of one slow path.
#[derive(Debug)]
pub struct LentNode<N> {
    /// Its name.
    pub id: NodeId,
    /// The node. Valid as long as the platform instance.
    pub node: *const N,
}

/// Queue nodes of type `N` that the platform keeps: a few for each thread, found by name.
///
/// The nodes and the look-up belong to the platform instance, since a `static` cannot be generic.
///
/// # Safety
///
/// A lent node is not lent again before its closure has returned. [`node`](Self::node) finds it by
/// its name on any thread. Both stay valid as long as the platform instance. A lent node holds zero
/// bytes, or a former value of `N`.
pub unsafe trait LocalNodes<N>: Platform {
    /// Calls `f` with a node of the calling thread that no other acquisition uses. Calls it with
    /// `None` if the thread has no slot, or if all its [`NodeId::NESTING`] nodes are in use.
    fn with_node<R>(f: impl FnOnce(Option<LentNode<N>>) -> R) -> R;

    /// The node with this name. Valid as long as the platform instance.
    fn node(id: NodeId) -> *const N;
}

/// A queue node that a platform may create by zeroing its memory.
///
/// # Safety
///
/// All bits zero is a valid value wherever the words of the platform are valid when zeroed, and the
/// type needs no drop.
pub unsafe trait ZeroNode {}

// SAFETY: the type has no bits.
unsafe impl ZeroNode for () {}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;
    use core::sync::atomic::Ordering::{AcqRel, Relaxed};

    use super::*;

    /// Uses the defaults of the trait.
    struct Plain(AtomicU32);

    impl Atomic<u32> for Plain {
        #[allow(clippy::declare_interior_mutable_const)] // as in the trait
        const ZERO: Self = Self(AtomicU32::new(0));
        fn new(v: u32) -> Self {
            Self(AtomicU32::new(v))
        }
        fn load(&self, order: Ordering) -> u32 {
            self.0.load(order)
        }
        fn store(&self, v: u32, order: Ordering) {
            self.0.store(v, order);
        }
        fn swap(&self, v: u32, order: Ordering) -> u32 {
            self.0.swap(v, order)
        }
        fn compare_exchange(&self, old: u32, new: u32, ok: Ordering, err: Ordering) -> Result<u32, u32> {
            self.0.compare_exchange(old, new, ok, err)
        }
    }

    #[test]
    fn a_word_without_a_weak_exchange_does_the_strong_one() {
        let word = Plain::new(5);
        assert_eq!(word.compare_exchange_weak(4, 6, AcqRel, Relaxed), Err(5));
        assert_eq!(word.load(Relaxed), 5, "another value");
        assert_eq!(word.compare_exchange_weak(5, 6, AcqRel, Relaxed), Ok(5));
        assert_eq!(word.load(Relaxed), 6);
    }
}
