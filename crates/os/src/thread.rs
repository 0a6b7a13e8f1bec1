//! The data of the calling thread: its number, its slot, and whether it is urgent.
//!
//! ```text
//!  NUMBER  0 not needed yet | n the number by which locks know the thread, as long as it lives
//!
//!  MINE  BARRED
//!  null  false    not registered; the next slow path that needs a slot registers
//!  null  true     registering: a signal handler that runs meanwhile gets no slot
//!  slot  false    registered
//! ```
//! The flags are atomic only because signal handlers of the thread read them too.
//!
//! **The number** is the kernel's id of the thread. It needs no memory and no slot, and no other
//! living thread of the process has it. It stays the same until the thread has ended, also in the
//! destructors of its thread-local data. In a child made by `fork` the thread that has forked keeps
//! its number, since it may hold locks that name it. A later thread of the child whose id is that
//! number gets another one ([`RENAMED`]).
//!
//! **The slot** is given back by a destructor of thread-specific data (`pthread_key_create`), which
//! runs after those of thread-local data. So registering neither uses the program's allocator nor
//! takes locks of the dynamic linker, as a destructor of thread-local data would. A thread whose
//! later destructors lock has a slot again. The destructor then runs once more, up to three times.
//! After that the slot is found when its thread has ended (`slots.rs`, invariant 4).

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, compiler_fence};
use std::thread_local;

use nearlock_core::events::LockEvent;
use nearlock_core::near::rwlock::lines::ReaderLine;
use nearlock_core::platform::{LentNode, NodeId, ZeroNode};
use nearlock_core::schedule::{OwnerState, ThreadId};
use nearlock_core::shared_holds::SharedLock;

use crate::slots::{Registry, Slot};
use crate::{Os, asleep, local, readers, slots, start, sys};

/// The slots of the process.
static REGISTRY: Registry = Registry::new(NodeId::SLOTS);

/// The number of cache lines of counters for threads without a slot; the thread's number selects
/// the line. With one, all these threads would write to the same line.
const SLOTLESS: usize = 16;

/// The events counted by threads without a slot.
#[repr(align(64))]
struct Counters([AtomicU64; LockEvent::COUNT]);

static SLOTLESS_EVENTS: [Counters; SLOTLESS] =
    [const { Counters([const { AtomicU64::new(0) }; LockEvent::COUNT]) }; SLOTLESS];

/// The number that the first thread of this process has kept from before the fork; 0 if there is
/// none.
static KEPT: AtomicU32 = AtomicU32::new(0);

/// Set in the number of a thread whose id is the [`KEPT`] number of another thread. Ids of the
/// kernel are below 2^22.
pub const RENAMED: u32 = 1 << (ThreadId::BITS - 1);

/// The lines of all threads that have had one.
pub fn lines() -> impl Iterator<Item = *const ReaderLine<Os>> {
    REGISTRY.made_slots().map(|slot| ptr::from_ref(slot.readers()))
}

thread_local! {
    static NUMBER: AtomicU32 = const { AtomicU32::new(0) };
    static MINE: AtomicPtr<Slot> = const { AtomicPtr::new(ptr::null_mut()) };
    static BARRED: AtomicBool = const { AtomicBool::new(false) };
    /// Whether the thread's slot has been given back because the thread is ending.
    static ENDS: AtomicBool = const { AtomicBool::new(false) };
    static URGENT: AtomicBool = const { AtomicBool::new(false) };
    /// Indexed by kind. A signal handler leaves the counts as they were.
    static SHARED_HOLDS: [Cell<u32>; SharedLock::COUNT] = const { [const { Cell::new(0) }; SharedLock::COUNT] };
    /// A signal handler leaves the count as it was.
    static SECTIONS: Cell<u32> = const { Cell::new(0) };
}

/// Makes the key whose destructor runs at the end of a thread, before the process has many keys.
pub fn watch_ends() {
    sys::exit_key(at_exit);
}

/// Called at the end of a thread, with its slot.
///
/// Safety: called by the thread that has the slot.
unsafe extern "C" fn at_exit(slot: *mut c_void) {
    // SAFETY: as below.
    let slot = unsafe { &*slot.cast_const().cast::<Slot>() };
    if !slot.readers().is_empty() {
        // A later destructor may release what the thread holds shared. If none does, the next
        // thread with this slot holds it.
        return REGISTRY.is_not_watched(slot);
    }
    ENDS.with(|ends| ends.store(true, Relaxed));
    set_own_slot(None);
    // Ordering: SeqCst, for the compiler alone: signal handlers must find no slot before it is
    // given back.
    compiler_fence(SeqCst);
    // SAFETY: the argument is what `register` has passed: the slot, which lives forever, and was
    // the thread's until now.
    unsafe { REGISTRY.give_back(slot) };
}

/// To be called in a child made by `fork`.
pub fn after_fork() {
    // 0 if the thread has no number: then no lock names it.
    KEPT.store(number(), Relaxed);
    asleep::forget_all();
    readers::after_fork();
    // SAFETY: the child has one thread.
    unsafe { REGISTRY.after_fork(own_slot().map(|slot| (slot, sys::thread_id()))) };
}

/// The caller's slot; registers the caller if needed. `None` if the caller cannot have one.
#[inline]
fn mine() -> Option<&'static Slot> {
    own_slot().or_else(register)
}

#[cold]
#[inline(never)]
fn register() -> Option<&'static Slot> {
    if set_barred(true) {
        return None;
    }
    // Ordering: SeqCst, for the compiler alone: signal handlers must find BARRED before they find
    // anything half done.
    compiler_fence(SeqCst);
    start::begin();
    let slot = REGISTRY.lease(sys::thread_id(), sys::has_ended).filter(|slot| watch(slot));
    set_own_slot(slot);
    // Ordering: SeqCst, for the compiler alone, as above: BARRED must not be cleared early.
    compiler_fence(SeqCst);
    set_barred(false);
    slot
}

/// Returns the value that it replaces.
fn set_barred(barred: bool) -> bool {
    BARRED.with(|word| word.swap(barred, Relaxed))
}

/// Arranges that the caller's new slot is given back at the end of the thread. If that is
/// impossible, gives the slot back now and returns false.
fn watch(slot: &'static Slot) -> bool {
    let is_watched = sys::at_thread_exit(at_exit, ptr::from_ref(slot).cast_mut().cast());
    if !is_watched && !sys::TELLS_ENDS {
        // SAFETY: the slot is the caller's, and has not been used yet.
        unsafe { REGISTRY.give_back(slot) };
        return false;
    }
    // If the thread is ending, its destructors may be in their last round.
    if !is_watched || ENDS.with(|ends| ends.load(Relaxed)) && sys::TELLS_ENDS {
        REGISTRY.is_not_watched(slot);
    }
    true
}

/// Gives the calling thread its queue nodes now, rather than when it first waits for a lock that
/// uses them. Returns whether it has them. It has none if as many other threads as there are slots
/// ([`NodeId::SLOTS`]) have theirs. Locks work without, but such a thread waits without a place in
/// the queue.
///
/// For threads whose signal handlers lock: registering maps memory, which a handler should not do.
pub fn register_thread() -> bool {
    mine().is_some()
}

/// The number of the caller's slot, below [`NodeId::SLOTS`]; registers the caller if needed. `None`
/// if the caller cannot have one.
pub fn slot() -> Option<u32> {
    mine().map(Slot::id)
}

/// The number by which locks know the caller, as long as it lives.
#[inline]
pub fn id() -> ThreadId {
    ThreadId::new(number()).unwrap_or_else(first_id)
}

/// The same, or 0 if it was not needed yet.
#[inline(always)]
fn number() -> u32 {
    NUMBER.with(|number| number.load(Relaxed))
}

#[cold]
#[inline(never)]
fn first_id() -> ThreadId {
    // This installs the handler by which a thread keeps its number in a child made by `fork`.
    start::begin();
    let number = match sys::thread_id() {
        id if id == KEPT.load(Relaxed) => id | RENAMED,
        id => id,
    };
    NUMBER.with(|own| own.store(number, Relaxed));
    ThreadId::new(number).expect("no id is 0")
}

/// The caller's slot, if it is registered.
#[inline(always)]
fn own_slot() -> Option<&'static Slot> {
    let slot = MINE.with(|mine| mine.load(Relaxed));
    // SAFETY: set only to slots, which live for ever.
    unsafe { slot.as_ref() }
}

fn set_own_slot(slot: Option<&'static Slot>) {
    let address = slot.map_or(ptr::null(), ptr::from_ref).cast_mut();
    MINE.with(|mine| mine.store(address, Relaxed));
    local::set_line(slot.map(Slot::readers));
}

/// The state of the thread, as far as it is known: asleep in a lock, or unknown.
#[inline]
pub fn owner_state(thread: ThreadId) -> OwnerState {
    if asleep::is_asleep(thread) { OwnerState::Asleep } else { OwnerState::Unknown }
}

/// Calls `sleep`. Meanwhile the caller counts as asleep.
#[inline]
pub fn asleep<R>(sleep: impl FnOnce() -> R) -> R {
    asleep::while_asleep(id(), sleep)
}

/// See [`LocalNodes::with_node`](nearlock_core::platform::LocalNodes::with_node).
#[inline]
pub fn with_node<N: ZeroNode, R>(f: impl FnOnce(Option<LentNode<N>>) -> R) -> R {
    // SAFETY: the slot is the caller's.
    let mut level = mine().and_then(|slot| unsafe { slot.enter() });
    // The level is left when it is dropped: after `f` returns or panics.
    f(level.as_mut().map(|level| level.lend()))
}

/// See [`LocalNodes::node`](nearlock_core::platform::LocalNodes::node).
#[inline]
pub fn node<N: ZeroNode>(id: NodeId) -> *const N {
    REGISTRY.node(id)
}

/// Counts an event of a slow path.
#[inline]
pub fn count(event: LockEvent) {
    match own_slot() {
        Some(slot) => slot.count(event),
        None => count_without_slot(event),
    }
}

// Not inlined: the slow paths of all locks, which are generic, would be longer.
#[inline(never)]
fn count_without_slot(event: LockEvent) {
    // 0 as long as the thread has no number.
    let counters = &SLOTLESS_EVENTS[number() as usize % SLOTLESS];
    counters.0[event as usize].fetch_add(1, Relaxed);
}

/// The events that the slow paths of all locks of the process have counted since it began, indexed
/// by discriminant. Threads that have ended are included. Counts of running threads may be slightly
/// out of date.
pub fn events() -> [u64; LockEvent::COUNT] {
    let mut sums = [0_u64; LockEvent::COUNT];
    for counters in &SLOTLESS_EVENTS {
        slots::add(&mut sums, &counters.0);
    }
    REGISTRY.add_events(&mut sums);
    sums
}

/// The events of the caller's slot, which the caller and earlier threads with this slot have
/// counted. Registers the caller if needed; `None` if it cannot have a slot. The difference between
/// two calls of one thread is what that thread has counted in between.
pub fn events_of_slot() -> Option<[u64; LockEvent::COUNT]> {
    mine().map(Slot::events)
}

/// The number of threads for which the process keeps queue nodes. As many
/// threads have had such nodes at the same time. The nodes are kept for later threads.
pub fn thread_slots() -> u32 {
    REGISTRY.made()
}

/// Whether the caller's acquisitions are urgent.
#[inline]
pub fn is_priority() -> bool {
    URGENT.with(|word| word.load(Relaxed))
}

/// Sets whether the caller's acquisitions are urgent.
#[inline]
pub fn set_priority(urgent: bool) {
    URGENT.with(|word| word.store(urgent, Relaxed));
}

/// See [`SharedHolds`](nearlock_core::shared_holds::SharedHolds).
#[inline]
pub fn with_shared_holds<R>(of: SharedLock, f: impl FnOnce(&Cell<u32>) -> R) -> R {
    SHARED_HOLDS.with(|holds| f(&holds[of as usize]))
}

/// The caller enters a section in which it must not sleep.
#[inline]
pub fn enter_section() {
    SECTIONS.with(|depth| depth.set(depth.get() + 1));
}

/// The caller leaves the section that it entered last.
#[inline]
pub fn leave_section() {
    SECTIONS.with(|depth| depth.set(depth.get() - 1));
}

/// The number of sections that the caller is in.
#[inline]
pub fn section_depth() -> u32 {
    SECTIONS.with(Cell::get)
}

#[cfg(test)]
mod tests;
