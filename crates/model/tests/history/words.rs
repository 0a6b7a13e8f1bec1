//! The platform of loom with another kind of words, for bugs in the operations on a word.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nearlock_collection::linux::osq::Node;
use nearlock_core::platform::{
    Atomic, AtomicInt, Clock, LentNode, LocalNodes, NodeId, Park, ParkTimeout, Platform, Priority, SplitWord,
};
use nearlock_core::schedule::{OwnerState, Schedule, Spin, ThreadId};
use nearlock_model::loom::{Loom, LoomPtr, LoomU32, LoomU64};

/// The operations that differ.
pub trait Kind: Send + Sync + 'static {
    fn load(word: &LoomU32, order: Ordering) -> u32 {
        word.load(order)
    }
    fn store(word: &LoomU32, v: u32, order: Ordering) {
        word.store(v, order);
    }
    fn swap(word: &LoomU32, v: u32, order: Ordering) -> u32 {
        word.swap(v, order)
    }
    fn exchange(word: &LoomU32, old: u32, new: u32, ok: Ordering, err: Ordering) -> Result<u32, u32> {
        word.compare_exchange(old, new, ok, err)
    }
    fn park(word: &LoomU32, expected: u32) {
        Loom::park(word, expected);
    }
    fn unpark_one(word: *const LoomU32) -> bool {
        Loom::unpark_one(word)
    }
    fn and(word: &LoomU32, v: u32, order: Ordering) -> u32 {
        word.fetch_and(v, order)
    }
    fn or(word: &LoomU32, v: u32, order: Ordering) -> u32 {
        word.fetch_or(v, order)
    }
    /// For words of 64 bits; also below.
    fn add_long(word: &LoomU64, v: u64, order: Ordering) -> u64 {
        word.fetch_add(v, order)
    }
    fn and_long(word: &LoomU64, v: u64, order: Ordering) -> u64 {
        word.fetch_and(v, order)
    }
}

/// No operation differs.
pub struct Same;
impl Kind for Same {}

/// The platform with these words.
pub struct Words<K>(PhantomData<K>);

/// Its word of 32 bits.
#[repr(transparent)]
pub struct Word<K>(LoomU32, PhantomData<K>);

/// Its word of 64 bits.
pub struct Long<K>(LoomU64, PhantomData<K>);

// SAFETY: none: the bug is in here.
unsafe impl<K: Kind> Platform for Words<K> {
    type U32 = Word<K>;
    type U64 = Long<K>;
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

impl<K: Kind> Park for Words<K> {
    fn park(word: &Word<K>, expected: u32) {
        K::park(&word.0, expected);
    }
    fn unpark(word: *const Word<K>, n: u32) {
        Loom::unpark(word.cast(), n);
    }
    fn unpark_one(word: *const Word<K>) -> bool {
        K::unpark_one(word.cast())
    }
}

impl<K: Kind> Clock for Words<K> {
    fn now_ns() -> u64 {
        Loom::now_ns()
    }
}

impl<K: Kind> ParkTimeout for Words<K> {
    fn park_until(word: &Word<K>, expected: u32, until_ns: u64) {
        Loom::park_until(&word.0, expected, until_ns);
    }
}

// SAFETY: forwards to `Loom`.
unsafe impl<K: Kind> Schedule for Words<K> {
    fn thread_id() -> ThreadId {
        Loom::thread_id()
    }
    fn owner_state(thread: ThreadId) -> OwnerState {
        Loom::owner_state(thread)
    }
    fn processors() -> u32 {
        Loom::processors()
    }
    fn should_give_way(spin: &mut Spin) -> bool {
        Loom::should_give_way(spin)
    }
}

impl<K: Kind> Priority for Words<K> {
    fn is_priority() -> bool {
        Loom::is_priority()
    }
    fn set_priority(urgent: bool) {
        Loom::set_priority(urgent);
    }
}

thread_local! {
    static NODES: RefCell<(*const (), u32)> = const { RefCell::new((ptr::null(), 0)) };
}

/// Nodes for threads in slots below `slots`, which are valid as long as the result is kept.
pub fn nodes<K: Kind>(slots: u32) -> Arc<[Node<Words<K>>]> {
    let nodes: Arc<[_]> = (0..slots).map(|_| Node::default()).collect();
    NODES.replace((Arc::as_ptr(&nodes).cast(), slots));
    nodes
}

// SAFETY: each slot has one node, which models use only by its name.
unsafe impl<K: Kind> LocalNodes<Node<Words<K>>> for Words<K> {
    fn with_node<R>(f: impl FnOnce(Option<LentNode<Node<Words<K>>>>) -> R) -> R {
        f(None)
    }
    fn node(id: NodeId) -> *const Node<Words<K>> {
        let (nodes, slots) = NODES.with_borrow(|nodes| *nodes);
        assert!(id.slot < slots, "a name of no node");
        // SAFETY: within the table.
        unsafe { nodes.cast::<Node<Words<K>>>().add(id.slot as usize) }
    }
}

impl<K: Kind> Atomic<u32> for Word<K> {
    const ZERO: Self = panic!("as the word inside");
    fn new(v: u32) -> Self {
        Self(LoomU32::new(v), PhantomData)
    }
    fn load(&self, order: Ordering) -> u32 {
        K::load(&self.0, order)
    }
    fn store(&self, v: u32, order: Ordering) {
        K::store(&self.0, v, order);
    }
    fn store_hint(&self, v: u32) {
        self.0.store_hint(v);
    }
    fn swap(&self, v: u32, order: Ordering) -> u32 {
        K::swap(&self.0, v, order)
    }
    fn compare_exchange(&self, old: u32, new: u32, ok: Ordering, err: Ordering) -> Result<u32, u32> {
        K::exchange(&self.0, old, new, ok, err)
    }
}

impl<K: Kind> AtomicInt<u32> for Word<K> {
    fn fetch_add(&self, v: u32, order: Ordering) -> u32 {
        self.0.fetch_add(v, order)
    }
    fn fetch_sub(&self, v: u32, order: Ordering) -> u32 {
        self.0.fetch_sub(v, order)
    }
    fn fetch_and(&self, v: u32, order: Ordering) -> u32 {
        K::and(&self.0, v, order)
    }
    fn fetch_or(&self, v: u32, order: Ordering) -> u32 {
        K::or(&self.0, v, order)
    }
}

impl<K: Kind> SplitWord for Word<K> {
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

impl<K: Kind> Atomic<u64> for Long<K> {
    const ZERO: Self = panic!("as the word inside");
    fn new(v: u64) -> Self {
        Self(LoomU64::new(v), PhantomData)
    }
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }
    fn store(&self, v: u64, order: Ordering) {
        self.0.store(v, order);
    }
    fn swap(&self, v: u64, order: Ordering) -> u64 {
        self.0.swap(v, order)
    }
    fn compare_exchange(&self, old: u64, new: u64, ok: Ordering, err: Ordering) -> Result<u64, u64> {
        self.0.compare_exchange(old, new, ok, err)
    }
}

impl<K: Kind> AtomicInt<u64> for Long<K> {
    fn fetch_add(&self, v: u64, order: Ordering) -> u64 {
        K::add_long(&self.0, v, order)
    }
    fn fetch_sub(&self, v: u64, order: Ordering) -> u64 {
        self.0.fetch_sub(v, order)
    }
    fn fetch_and(&self, v: u64, order: Ordering) -> u64 {
        K::and_long(&self.0, v, order)
    }
    fn fetch_or(&self, v: u64, order: Ordering) -> u64 {
        self.0.fetch_or(v, order)
    }
}
