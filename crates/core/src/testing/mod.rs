//! A platform for unit tests with one thread, which therefore must never wait without an end. A
//! test says in advance what other threads do while the thread waits ([`meanwhile`]), and what they
//! do between two of its instructions ([`before_exchange`]).

mod word;

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::boxed::Box;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread_local;
use std::vec::Vec;

use crate::events::LockEvent;
use crate::near::attention::AttentionTable;
use crate::near::rwlock::lines::{ReaderLine, ReaderLines, SLOTS};
use crate::parking::Room;
use crate::parking::chain::{Chain, Chains, Family, TABLES};
use crate::platform::{
    AsymFence, Atomic, Clock, LentNode, LocalNodes, NodeId, Park, ParkTimeout, Platform, Priority, Random,
    SWITCHES_MAX, Settings, Switches, Topology, ZeroNode,
};
use crate::schedule::{Mark, OwnerState, Schedule, Sections, Spin, ThreadId};
use crate::settings::Setting;
use crate::shared_holds::{SharedHolds, SharedLock};
use crate::tuning::Position;

use word::Word;
pub use word::{before_exchange, exchange_fails, exchanges_are_over};

pub struct OneThread(PhantomData<()>);

/// The length of the sequences that tests try. Shorter under Miri, which is a thousand times
/// slower.
pub const HAPPENINGS_MAX: usize = if cfg!(miri) { 4 } else { 8 };

/// Turns of a spin, unless a test sets another number.
pub const SPINS: u32 = 4;

/// Threads other than the thread of the test.
pub const OTHER: ThreadId = ThreadId::new(7).unwrap();
pub const THIRD: ThreadId = ThreadId::new(9).unwrap();

/// The number of processors that this platform reports.
pub const PROCESSORS: u32 = 8;
/// The number of them that the process may use.
pub const PROCESSORS_OF_PROCESS: u32 = 3;

thread_local! {
    /// The id of the only thread, until a test changes it.
    pub static THREAD_ID: Cell<ThreadId> = const { Cell::new(ThreadId::new(1).unwrap()) };
    static LINES: RefCell<BTreeMap<u32, &'static ReaderLine<OneThread>>> = const { RefCell::new(BTreeMap::new()) };
    static FULL: &'static ReaderLine<OneThread> = Box::leak(Box::new(ReaderLine::full()));
    /// Whether threads without a line get one.
    pub static LINES_LEFT: Cell<bool> = const { Cell::new(true) };
    /// Whether the light side of the fence is known to cost nothing.
    pub static LIGHT_IS_FREE: Cell<bool> = const { Cell::new(false) };
    static IDS: Cell<u64> = const { Cell::new(0) };
    static WAITING_READERS: &'static Word<AtomicU32> = Box::leak(Box::new(Word::new(0)));
    static MARKS: RefCell<BTreeMap<u32, Mark>> = const { RefCell::new(BTreeMap::new()) };
    static OWNERS: RefCell<BTreeMap<u32, OwnerState>> = const { RefCell::new(BTreeMap::new()) };
    static EVENTS: [Cell<u64>; LockEvent::COUNT] = const { [const { Cell::new(0) }; LockEvent::COUNT] };
    static SETTINGS: Cell<[u64; Setting::COUNT]> = const { Cell::new(Setting::DEFAULTS) };
    static SWITCHES: Cell<[u64; SWITCHES_MAX]> = const { Cell::new([0; SWITCHES_MAX]) };
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static NODES_LEFT: Cell<bool> = const { Cell::new(true) };
    /// By slot and level.
    static NODES: RefCell<BTreeMap<(u32, u32), OwnedNode>> = const { RefCell::new(BTreeMap::new()) };
    pub static NOW_NS: Cell<u64> = const { Cell::new(0) };
    pub static SPINS_MAX: Cell<u32> = const { Cell::new(SPINS) };
    /// Heavy fences so far.
    pub static HEAVIES: Cell<u32> = const { Cell::new(0) };
    /// The processor of the only thread, if it is known.
    pub static PROCESSOR: Cell<Option<u32>> = const { Cell::new(None) };
    /// How long a cache line takes from one processor to another, as far as is known.
    pub static TRANSFER_NS: Cell<u32> = const { Cell::new(0) };
    /// The periods in which a shortage of processors was noted.
    pub static SHORTAGES: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    /// How many groups of locks have noted one, as they are told.
    pub static SHORTAGES_SEEN: Cell<u32> = const { Cell::new(0) };
    pub static NUMA_NODE: Cell<u32> = const { Cell::new(0) };
    pub static RANDOM: Cell<u32> = const { Cell::new(0) };
    static URGENT: Cell<bool> = const { Cell::new(false) };
    static OTHERS: RefCell<VecDeque<Box<dyn FnOnce()>>> = const { RefCell::new(VecDeque::new()) };
    /// By thread and kind.
    static SHARED_HOLDS: RefCell<BTreeMap<(u32, usize), Cell<u32>>> = const { RefCell::new(BTreeMap::new()) };
    static SECTIONS: Cell<u32> = const { Cell::new(0) };
    /// The length of each pause since a test last took the list.
    pub static PAUSES: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    /// One chain for each family. All locks of a family share it, so that tests see how locks of
    /// one chain affect each other.
    static CHAINS: &'static [Room; TABLES] = Box::leak(Box::default());
    static ATTENTION: &'static Word<AtomicU32> = Box::leak(Box::new(Word::new(0)));
    /// The lock at this address has the last place in its chain, and all others the first.
    pub static LAST_IN_CHAIN: Cell<*const ()> = const { Cell::new(ptr::null()) };
    /// How often the only thread has fallen asleep.
    pub static SLEEPS: Cell<u32> = const { Cell::new(0) };
    static AFTER_LOOKS: RefCell<VecDeque<Box<dyn FnOnce()>>> = const { RefCell::new(VecDeque::new()) };
    /// How often `unpark` was called.
    pub static UNPARKS: Cell<u32> = const { Cell::new(0) };
    /// The last call of `unpark`.
    pub static UNPARKED: Cell<Option<(*const Word<AtomicU32>, u32)>> = const { Cell::new(None) };
}

/// The id of the only thread.
pub fn me() -> ThreadId {
    THREAD_ID.get()
}

/// Calls `act` as another thread would.
pub fn acting<R>(thread: ThreadId, act: impl FnOnce() -> R) -> R {
    let me = THREAD_ID.replace(thread);
    let r = act();
    THREAD_ID.set(me);
    r
}

pub fn events_of(event: LockEvent) -> u64 {
    EVENTS.with(|events| events[event as usize].get())
}

pub fn set(setting: Setting, value: u64) {
    SETTINGS.with(|settings| {
        let mut values = settings.get();
        values[setting as usize] = value;
        settings.set(values);
    });
}

/// Sets these switches, and the others to their defaults, for locks that the test creates from now
/// on.
pub fn switch(positions: &[Position]) {
    let mut switches = [0; SWITCHES_MAX];
    for (index, stored) in positions.iter().map(Position::stored) {
        switches[index] = stored;
    }
    SWITCHES.set(switches);
}

/// Other threads do this as soon as the only thread waits, sleeps or makes a turn. They do one
/// thing at a time, in the order of the calls. They do nothing during bounded waits.
pub fn meanwhile(what: impl FnOnce() + 'static) {
    OTHERS.with_borrow_mut(|others| others.push_back(Box::new(what)));
}

/// Other threads do this right after the look of a bounded wait: one thing after each look.
pub fn after_look(what: impl FnOnce() + 'static) {
    AFTER_LOOKS.with_borrow_mut(|others| others.push_back(Box::new(what)));
}

/// Whether other threads have done everything that they had to do.
pub fn others_are_done() -> bool {
    OTHERS.with_borrow(VecDeque::is_empty) && AFTER_LOOKS.with_borrow(VecDeque::is_empty)
}

/// The number of things that other threads still have to do. They will not do them any more.
pub fn left_by_others() -> usize {
    OTHERS.take().len()
}

/// Lets other threads do the next thing. Returns false if there was nothing to do.
fn others_act() -> bool {
    let next = OTHERS.with_borrow_mut(VecDeque::pop_front);
    next.map(|act| act()).is_some()
}

impl OneThread {
    /// The slot of the only thread. Tests use other slots for waiters without a thread.
    pub const SLOT: u32 = 0;

    pub fn without_nodes(f: impl FnOnce()) {
        NODES_LEFT.set(false);
        f();
        NODES_LEFT.set(true);
    }
}

// SAFETY: the words behave as those of `core`.
unsafe impl Platform for OneThread {
    type U32 = Word<AtomicU32>;
    type U64 = Word<AtomicU64>;
    type Ptr<T> = Word<AtomicPtr<T>>;

    fn wait_until<V: Copy>(word: &impl Atomic<V>, order: Ordering, done: impl Fn(V) -> bool) -> V {
        loop {
            let v = word.load(order);
            if done(v) {
                return v;
            }
            assert!(others_act(), "the only thread waits for ever");
        }
    }

    fn wait_until_bounded<V: Copy>(
        word: &impl Atomic<V>,
        order: Ordering,
        _turns: u32,
        _done: impl Fn(V) -> bool,
    ) -> V {
        let seen = word.load(order);
        let next = AFTER_LOOKS.with_borrow_mut(VecDeque::pop_front);
        next.into_iter().for_each(|act| act());
        seen
    }

    fn cpu_relax(_turn: u32) {
        others_act();
    }

    fn pause(pauses: u32, _turn: u32) {
        PAUSES.with_borrow_mut(|all| all.push(pauses));
        others_act();
    }

    fn fence(_order: Ordering) {}

    fn count(event: LockEvent) {
        EVENTS.with(|events| events[event as usize].set(events[event as usize].get() + 1));
    }
}

impl Park for OneThread {
    fn park(word: &Word<AtomicU32>, expected: u32) {
        let stays_awake = word.load(Ordering::Relaxed) != expected;
        SLEEPS.set(SLEEPS.get() + u32::from(!stays_awake));
        assert!(stays_awake || others_act(), "the only thread sleeps for ever");
    }
    fn unpark(word: *const Word<AtomicU32>, n: u32) {
        UNPARKS.set(UNPARKS.get() + 1);
        UNPARKED.set(Some((word, n)));
    }
}

impl ParkTimeout for OneThread {
    /// If other threads have nothing to do, the clock goes on to `until_ns`.
    fn park_until(word: &Word<AtomicU32>, expected: u32, until_ns: u64) {
        let stays_awake = word.load(Ordering::Relaxed) != expected;
        SLEEPS.set(SLEEPS.get() + u32::from(!stays_awake));
        if !stays_awake && !others_act() {
            NOW_NS.set(NOW_NS.get().max(until_ns));
        }
    }
}

/// Spins for [`SPINS_MAX`] turns at most.
// SAFETY: there is one thread, which acts under the id that the test sets.
unsafe impl Schedule for OneThread {
    fn thread_id() -> ThreadId {
        THREAD_ID.get()
    }
    fn mark() -> Mark {
        let known = MARKS.with_borrow(|marks| marks.get(&THREAD_ID.get().get()).copied());
        known.unwrap_or(Mark::new(THREAD_ID.get(), PROCESSOR.get()))
    }
    fn set_mark(mark: Mark) {
        MARKS.with_borrow_mut(|marks| marks.insert(THREAD_ID.get().get(), mark));
    }
    fn processor() -> Option<u32> {
        PROCESSOR.get()
    }
    fn owner_state(thread: ThreadId) -> OwnerState {
        OWNERS.with_borrow(|owners| owners.get(&thread.get()).copied()).unwrap_or(OwnerState::Running)
    }
    fn processors() -> u32 {
        PROCESSORS
    }
    fn processors_of_process() -> u32 {
        PROCESSORS_OF_PROCESS
    }
    fn transfer_ns() -> u32 {
        TRANSFER_NS.get()
    }
    fn set_transfer_ns(ns: u32) {
        TRANSFER_NS.set(ns);
    }
    fn note_shortage(period: u32) -> u32 {
        SHORTAGES.with_borrow_mut(|noted| noted.push(period));
        SHORTAGES_SEEN.get()
    }
    fn should_give_way(spin: &mut Spin) -> bool {
        spin.turns += 1;
        spin.turns > SPINS_MAX.get()
    }
}

/// Calls `act`, which is a mistake. Debug assertions, if compiled, panic with this text.
pub fn mistake(says: &str, act: impl FnOnce()) {
    if !cfg!(debug_assertions) {
        return;
    }
    let panic = catch_unwind(AssertUnwindSafe(act)).expect_err("a mistake that no assertion has found");
    let said = panic.downcast_ref::<&str>().expect("a panic with a text");
    assert!(said.contains(says), "{said}");
}

/// Sets the known state of this thread.
pub fn set_owner_state(thread: ThreadId, state: OwnerState) {
    OWNERS.with_borrow_mut(|owners| owners.insert(thread.get(), state));
}

// SAFETY: there is one chain for each family, and it lives for ever.
unsafe impl<F: Family> Chains<F> for OneThread {
    fn chain(_lock: *const ()) -> *const Chain<Self, F> {
        CHAINS.with(|chains| chains[F::TABLE].chain())
    }

    fn place_in_chain(lock: *const ()) -> u32 {
        if lock == LAST_IN_CHAIN.get() { u32::MAX } else { 0 }
    }
}

// SAFETY: there is one word, for the one chain, and it lives for ever.
unsafe impl AttentionTable for OneThread {
    fn attention(_lock: *const ()) -> *const Self::U32 {
        ATTENTION.with(|word| ptr::from_ref(*word))
    }
}

/// Empties the chains, as the child of a `fork` does.
///
/// # Safety
///
/// No waiter in a chain is used any more.
pub unsafe fn forget_chains() {
    // SAFETY: the caller's. There is one thread, which has no chain locked.
    CHAINS.with(|chains| chains.iter().for_each(|room| unsafe { room.forget() }));
    ATTENTION.with(|word| word.store(0, Ordering::Relaxed));
}

// SAFETY: each thread id has a line of its own, which lives for ever, or a full one.
unsafe impl ReaderLines for OneThread {
    type Slots = [Self::U64; SLOTS];

    fn slots_of(value: u64) -> Self::Slots {
        core::array::from_fn(|_| Atomic::new(value))
    }
    fn line<'a>() -> &'a ReaderLine<Self> {
        let id = Self::thread_id().get();
        LINES.with_borrow(|lines| lines.get(&id).copied()).unwrap_or_else(|| FULL.with(|line| *line))
    }
    fn register_line() {
        if LINES_LEFT.get() {
            let id = Self::thread_id().get();
            LINES.with_borrow_mut(|lines| {
                lines.entry(id).or_insert_with(|| {
                    let line: &'static ReaderLine<Self> = Box::leak(Box::new(ReaderLine::numbered(id)));
                    line
                });
            });
        }
    }
    fn lines<'a>() -> impl Iterator<Item = &'a ReaderLine<Self>> {
        LINES.with_borrow(|lines| lines.values().copied().collect::<Vec<_>>()).into_iter()
    }
    fn new_id() -> u64 {
        IDS.set(IDS.get() + 1);
        IDS.get()
    }
    fn waiting_readers<'a>(_id: u64) -> &'a Self::U32 {
        WAITING_READERS.with(|word| *word)
    }
}

impl SharedHolds for OneThread {
    fn with_shared_holds<R>(of: SharedLock, f: impl FnOnce(&Cell<u32>) -> R) -> R {
        let key = (Self::thread_id().get(), of as usize);
        SHARED_HOLDS.with_borrow_mut(|holds| f(holds.entry(key).or_default()))
    }
}

/// Other threads may do something between the last write and the next read of the thread.
// SAFETY: there is one thread.
unsafe impl AsymFence for OneThread {
    fn light() {
        others_act();
    }
    fn is_light_free() -> bool {
        LIGHT_IS_FREE.get()
    }
    fn heavy() {
        HEAVIES.set(HEAVIES.get() + 1);
        others_act();
    }
}

impl Sections for OneThread {
    fn enter_section() {
        SECTIONS.set(SECTIONS.get() + 1);
    }
    fn leave_section() {
        SECTIONS.set(SECTIONS.get() - 1);
    }
    fn section_depth() -> u32 {
        SECTIONS.get()
    }
}

impl Clock for OneThread {
    fn now_ns() -> u64 {
        NOW_NS.get()
    }
}
impl Topology for OneThread {
    fn numa_node() -> u32 {
        NUMA_NODE.get()
    }
}
impl Priority for OneThread {
    fn is_priority() -> bool {
        URGENT.get()
    }
    fn set_priority(urgent: bool) {
        URGENT.set(urgent);
    }
}
impl Random for OneThread {
    fn random_u32() -> u32 {
        RANDOM.get()
    }
}
impl Settings for OneThread {
    fn setting(which: Setting) -> u64 {
        SETTINGS.get()[which as usize]
    }
}
// SAFETY: tests change no switch while they have a lock.
unsafe impl Switches for OneThread {
    fn switch(index: usize) -> u64 {
        SWITCHES.get()[index]
    }
}
/// A node of some type, freed with its thread. It is not a `Box`: a move of a `Box` would claim
/// that no other pointer to the node exists.
struct OwnedNode {
    node: *const (),
    free: unsafe fn(*const ()),
}

impl OwnedNode {
    fn new<N: Default>() -> Self {
        // SAFETY: this is called once, in `drop`, with the pointer below.
        let free = |node: *const ()| drop(unsafe { Box::from_raw(node.cast::<N>().cast_mut()) });
        Self { node: Box::into_raw(Box::<N>::default()).cast(), free }
    }
}

impl Drop for OwnedNode {
    fn drop(&mut self) {
        // SAFETY: `new` made the function for this node. Only the thread refers to it, and ends.
        unsafe { (self.free)(self.node) };
    }
}

// SAFETY: there is one thread. Its nodes are found by name, and live as long as the thread.
unsafe impl<N: ZeroNode + Default + 'static> LocalNodes<N> for OneThread {
    fn with_node<R>(f: impl FnOnce(Option<LentNode<N>>) -> R) -> R {
        let level = DEPTH.get();
        if !NODES_LEFT.get() || level == NodeId::NESTING {
            return f(None);
        }
        DEPTH.set(level + 1);
        let id = NodeId { slot: Self::SLOT, level };
        let r = f(Some(LentNode { id, node: Self::node(id) }));
        DEPTH.set(level);
        r
    }

    /// One type of node per thread that runs a test.
    fn node(id: NodeId) -> *const N {
        NODES.with(|nodes| {
            let mut nodes = nodes.borrow_mut();
            nodes.entry((id.slot, id.level)).or_insert_with(OwnedNode::new::<N>).node.cast()
        })
    }
}
