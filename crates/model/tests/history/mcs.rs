//! MCS.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use nearlock_collection::classic::mcs::{McsLock, Node};
use nearlock_collection::linux::mcs_spinlock::SpinnerQueue;
use nearlock_core::platform::{Atomic, AtomicInt, Platform, SplitWord};
use nearlock_core::raw::RawLock;
use nearlock_model::engine::{Counter, Engine, Thread};
use nearlock_model::exclusion::counting;
use nearlock_model::loom::{Loom, LoomPtr, LoomU32, LoomU64};
use nearlock_model::model::Model;
use nearlock_model::mutate::Half;

use crate::{Place, SECTIONS, STORES, caught, caught_without};

fn two_threads<P: Platform>() -> Model {
    counting::<Loom, McsLock<P>>("mcs", 2, 1, None)
}

/// Two waiters behind a holder. Their sections are empty, so that only the queue is seen.
fn two_waiters() -> Model {
    Model::new("mcs: two waiters with empty sections", 3, Some(2), || {
        let lock = Arc::new(McsLock::<Loom>::default());
        let node = Node::default();
        // SAFETY: the node is ours until the unlock; also below.
        unsafe { lock.lock(&node) };
        let waiters = [1, 2].map(|slot| {
            let lock = lock.clone();
            Loom::spawn(Thread { slot: Some(slot), ..Thread::default() }, move || {
                let node = Node::default();
                // SAFETY: as above.
                unsafe {
                    lock.lock(&node);
                    lock.unlock(&node);
                }
            })
        });
        // SAFETY: locked above.
        unsafe { lock.unlock(&node) };
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    })
}

const TAIL_SWAP: Place = Place { file: "classic/mcs.rs", function: "lock_granted", operation: "swap" };

#[test]
fn mcs_tail_swap_without_release() {
    let test = "mcs_tail_swap_without_release";
    caught_without(test, Half::Release, TAIL_SWAP, &two_threads::<Loom>(), STORES);
}

#[test]
fn mcs_tail_swap_without_acquire() {
    let test = "mcs_tail_swap_without_acquire";
    caught_without(test, Half::Acquire, TAIL_SWAP, &two_waiters(), STORES);
}

#[test]
fn mcs_barrier_after_the_hand_over() {
    let bug = two_threads::<Displaced<HandOver>>();
    caught("mcs_barrier_after_the_hand_over", &two_threads::<Loom>(), &bug, SECTIONS);
}

#[test]
fn mcs_write_barrier_after_the_wait() {
    let bug = two_threads::<Displaced<Wait>>();
    caught("mcs_write_barrier_after_the_wait", &two_threads::<Loom>(), &bug, SECTIONS);
}

/// Two threads, each of which is the head of a queue of spinners once.
fn two_heads<P: Platform>() -> Model {
    Model::new("mcs-spinlock: 2 threads", 2, None, || {
        let shared = Arc::new((SpinnerQueue::<P>::default(), <Loom as Engine>::Counter::default()));
        // SAFETY: a section does not unwind, except where the execution fails.
        let turn =
            |shared: &(SpinnerQueue<P>, _)| unsafe { shared.0.as_head(|| Counter::add_one(&shared.1)) };
        let of_other = shared.clone();
        let other = Loom::spawn(Thread { slot: Some(1), ..Thread::default() }, move || turn(&of_other));
        turn(&shared);
        other.join().unwrap();
        assert_eq!(shared.1.get(), 2);
    })
}

#[test]
fn mcs_spinlock_barrier_after_the_hand_over() {
    let bug = two_heads::<Displaced<HandOver>>();
    caught("mcs_spinlock_barrier_after_the_hand_over", &two_heads::<Loom>(), &bug, SECTIONS);
}

#[test]
fn mcs_spinlock_write_barrier_after_the_wait() {
    let bug = two_heads::<Displaced<Wait>>();
    caught("mcs_spinlock_write_barrier_after_the_wait", &two_heads::<Loom>(), &bug, SECTIONS);
}

/// Selects the ordering of `granted`, the only 32-bit word of MCS, that is a write barrier after
/// the access.
trait Which: Send + Sync + 'static {
    const ORDER: Ordering;
}
struct HandOver;
impl Which for HandOver {
    const ORDER: Ordering = Release;
}
struct Wait;
impl Which for Wait {
    const ORDER: Ordering = Acquire;
}

/// The platform whose 32-bit words have such barriers.
struct Displaced<W>(PhantomData<W>);

struct Word<W>(LoomU32, PhantomData<W>);

/// Runs `access` with this ordering, or with none and the barrier after it.
fn displaced<W: Which, R>(order: Ordering, access: impl FnOnce(Ordering) -> R) -> R {
    if order != W::ORDER {
        return access(order);
    }
    let r = access(Relaxed);
    // Ordering: Release, and too late: it orders only what comes after it.
    Loom::fence(Release);
    r
}

// SAFETY: none: the bug is in here.
unsafe impl<W: Which> Platform for Displaced<W> {
    type U32 = Word<W>;
    type U64 = LoomU64;
    type Ptr<T> = LoomPtr<T>;

    fn wait_until<V: Copy>(word: &impl Atomic<V>, order: Ordering, done: impl Fn(V) -> bool) -> V {
        Loom::wait_until(word, order, done)
    }
    fn wait_until_bounded<V: Copy>(
        word: &impl Atomic<V>,
        order: Ordering,
        turns: u32,
        done: impl Fn(V) -> bool,
    ) -> V {
        Loom::wait_until_bounded(word, order, turns, done)
    }
    fn cpu_relax(turn: u32) {
        Loom::cpu_relax(turn);
    }
    fn fence(order: Ordering) {
        Loom::fence(order);
    }
}

impl<W: Which> Atomic<u32> for Word<W> {
    const ZERO: Self = panic!("as the word inside");
    fn new(v: u32) -> Self {
        Self(LoomU32::new(v), PhantomData)
    }
    fn load(&self, order: Ordering) -> u32 {
        displaced::<W, _>(order, |order| self.0.load(order))
    }
    fn store(&self, v: u32, order: Ordering) {
        displaced::<W, _>(order, |order| self.0.store(v, order));
    }
    fn swap(&self, v: u32, order: Ordering) -> u32 {
        self.0.swap(v, order)
    }
    fn compare_exchange(&self, old: u32, new: u32, ok: Ordering, err: Ordering) -> Result<u32, u32> {
        self.0.compare_exchange(old, new, ok, err)
    }
}

impl<W: Which> AtomicInt<u32> for Word<W> {
    fn fetch_add(&self, v: u32, order: Ordering) -> u32 {
        self.0.fetch_add(v, order)
    }
    fn fetch_sub(&self, v: u32, order: Ordering) -> u32 {
        self.0.fetch_sub(v, order)
    }
    fn fetch_and(&self, v: u32, order: Ordering) -> u32 {
        self.0.fetch_and(v, order)
    }
    fn fetch_or(&self, v: u32, order: Ordering) -> u32 {
        self.0.fetch_or(v, order)
    }
}

impl<W: Which> SplitWord for Word<W> {
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
