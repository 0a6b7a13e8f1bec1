//! What the calling thread has: its slot, and whether it is urgent.
//!
//! ```text
//!  MINE  BARRED  LEASE
//!  null  false   empty    not registered; the next slow path registers
//!  null  true    empty    registering, so that a signal handler in between does without
//!  slot  false   slot     registered
//!  null  true    gone     thread-local data is being destroyed: no slot any more
//! ```
//! The flags are atomic only because signal handlers of the thread read them too.

use core::cell::{Cell, OnceCell};
use core::ptr;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, compiler_fence};
use std::thread_local;

use nearlock_core::events::LockEvent;
use nearlock_core::freebsd::holds::SharedLock;
use nearlock_core::platform::{LentNode, NodeId, ZeroNode};
use nearlock_core::schedule::{OwnerState, ThreadId};

use crate::slots::{Lease, Registry, Slot};

/// The slots of the process.
static REGISTRY: Registry = Registry::new(NodeId::SLOTS);

/// What threads without a slot have counted.
static SLOTLESS_EVENTS: [AtomicU64; LockEvent::COUNT] = [const { AtomicU64::new(0) }; LockEvent::COUNT];

thread_local! {
    static MINE: AtomicPtr<Slot> = const { AtomicPtr::new(ptr::null_mut()) };
    static BARRED: AtomicBool = const { AtomicBool::new(false) };
    static LEASE: ThreadLease = const { ThreadLease(OnceCell::new()) };
    static URGENT: AtomicBool = const { AtomicBool::new(false) };
    /// By kind. A signal handler leaves them as they were.
    static SHARED_HOLDS: [Cell<u32>; SharedLock::COUNT] = const { [const { Cell::new(0) }; SharedLock::COUNT] };
    /// A signal handler leaves it as it was.
    static SECTIONS: Cell<u32> = const { Cell::new(0) };
}

/// Gives the slot back at the end of the thread.
struct ThreadLease(OnceCell<Lease<'static>>);

impl Drop for ThreadLease {
    fn drop(&mut self) {
        BARRED.with(|barred| barred.store(true, Relaxed));
        MINE.with(|mine| mine.store(ptr::null_mut(), Relaxed));
        // Ordering: SeqCst, for the compiler alone: signal handlers must find the slot gone before the lease,
        // which is dropped after this, gives it back.
        compiler_fence(SeqCst);
    }
}

/// The caller's slot; registers the caller if need be. `None` if it can have none.
#[inline]
fn mine() -> Option<&'static Slot> {
    own_slot().or_else(register)
}

#[cold]
#[inline(never)]
fn register() -> Option<&'static Slot> {
    if BARRED.with(|barred| barred.swap(true, Relaxed)) {
        return None;
    }
    // Ordering: SeqCst, for the compiler alone: signal handlers must find the bar before anything half done.
    compiler_fence(SeqCst);
    let slot = LEASE.try_with(|lease| {
        // Empty, or MINE would not be null.
        let new = REGISTRY.lease()?;
        Some(lease.0.get_or_init(|| new).slot())
    });
    // Destroyed data is barred for good; a thread that found all slots taken may ask again.
    let slot = slot.ok()?;
    MINE.with(|mine| {
        mine.store(slot.map_or(ptr::null_mut(), |slot| ptr::from_ref(slot).cast_mut()), Relaxed)
    });
    // Ordering: SeqCst, for the compiler alone, as above: nor may the bar be lifted early.
    compiler_fence(SeqCst);
    BARRED.with(|barred| barred.store(false, Relaxed));
    slot
}

/// Gives the calling thread its queue nodes now rather than when it first waits for a lock. Returns whether
/// it has them: not if as many threads as there are slots ([`NodeId::SLOTS`]) have theirs already, nor while
/// the thread's local data is being destroyed. Locks work without, but such a thread waits without a
/// place in the queue.
///
/// For threads whose signal handlers lock: registering allocates, which a handler must not do.
pub fn register_thread() -> bool {
    mine().is_some()
}

/// The number of the caller's slot, below [`NodeId::SLOTS`]; registers the caller if need be. `None` if it
/// can have none.
pub fn slot() -> Option<u32> {
    mine().map(Slot::id)
}

/// What locks call the caller: the number of its slot and one, or, if it has none, a number of its own above those.
/// May change while the thread's local data is being destroyed.
pub fn id() -> ThreadId {
    let number = slot().map_or_else(slotless_number, |slot| slot + 1);
    ThreadId::new(number).expect("no number is 0")
}

/// A number that no other thread without a slot has, unless it came 2^27 numbers earlier.
fn slotless_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    const NUMBERS: u32 = 1 << (ThreadId::BITS - 1);
    thread_local! {
        static NUMBER: Cell<u32> = const { Cell::new(0) };
    }
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NodeId::SLOTS + 1 + NEXT.fetch_add(1, Relaxed) % NUMBERS);
        }
        number.get()
    })
}

/// The caller's slot, if it is registered.
#[inline(always)]
fn own_slot() -> Option<&'static Slot> {
    let slot = MINE.with(|mine| mine.load(Relaxed));
    // SAFETY: set only to slots, which live for ever.
    unsafe { slot.as_ref() }
}

/// Whether the thread sleeps in a lock. Of one without a slot that is not known.
#[inline]
pub fn owner_state(thread: ThreadId) -> OwnerState {
    if thread.get() <= NodeId::SLOTS && REGISTRY.is_asleep(thread.get() - 1) {
        OwnerState::Asleep
    } else {
        OwnerState::Unknown
    }
}

/// Does `sleep`, while the caller counts as asleep.
#[inline]
pub fn asleep<R>(sleep: impl FnOnce() -> R) -> R {
    match own_slot() {
        Some(slot) => slot.while_asleep(sleep),
        None => sleep(),
    }
}

/// See [`LocalNodes::with_node`](nearlock_core::platform::LocalNodes::with_node).
#[inline]
pub fn with_node<N: ZeroNode, R>(f: impl FnOnce(Option<LentNode<N>>) -> R) -> R {
    // SAFETY: the slot is the caller's.
    let mut level = mine().and_then(|slot| unsafe { slot.enter() });
    // The level is left when it is dropped, after `f`, also if that panics.
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
    match mine() {
        Some(slot) => slot.count(event),
        None => {
            SLOTLESS_EVENTS[event as usize].fetch_add(1, Relaxed);
        }
    }
}

/// What the slow paths of all locks of the process have counted since it began, threads that have ended
/// included; indexed by discriminant. Counts of running threads may be a moment old.
pub fn events() -> [u64; LockEvent::COUNT] {
    let mut sums = SLOTLESS_EVENTS.each_ref().map(|count| count.load(Relaxed));
    REGISTRY.add_events(&mut sums);
    sums
}

/// The same of the caller's slot: what it and those have counted who had the slot before. `None` if it can have none. Two looks by
/// one thread differ by what that has counted between them.
pub fn events_of_slot() -> Option<[u64; LockEvent::COUNT]> {
    mine().map(Slot::events)
}

/// For how many threads the process has kept queue nodes so far: as many as have waited for locks at the same time. They are kept for the
/// next threads.
pub fn thread_slots() -> u32 {
    REGISTRY.made()
}

/// Whether the caller's acquisitions are urgent.
#[inline]
pub fn is_priority() -> bool {
    URGENT.with(|word| word.load(Relaxed))
}

/// Declares them so, or not.
#[inline]
pub fn set_priority(urgent: bool) {
    URGENT.with(|word| word.store(urgent, Relaxed));
}

/// See [`SharedHolds`](nearlock_core::freebsd::holds::SharedHolds).
#[inline]
pub fn with_shared_holds<R>(of: SharedLock, f: impl FnOnce(&Cell<u32>) -> R) -> R {
    SHARED_HOLDS.with(|holds| f(&holds[of as usize]))
}

/// The caller enters a section in which it must not sleep.
#[inline]
pub fn enter_section() {
    SECTIONS.with(|depth| depth.set(depth.get() + 1));
}

/// It leaves the last one.
#[inline]
pub fn leave_section() {
    SECTIONS.with(|depth| depth.set(depth.get() - 1));
}

/// How many it is in.
#[inline]
pub fn section_depth() -> u32 {
    SECTIONS.with(Cell::get)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Os;
    use nearlock_core::linux::qspinlock;
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::vec::Vec;

    type Node = qspinlock::Node<Os, ()>;

    /// Name of the node that the caller would get.
    fn next_node() -> Option<NodeId> {
        with_node(|lent: Option<LentNode<Node>>| lent.map(|lent| lent.id))
    }

    fn counted(event: LockEvent) -> u64 {
        events()[event as usize]
    }

    #[test]
    fn living_threads_have_slots_of_their_own() {
        const THREADS: usize = 8;
        let all_have_one = Barrier::new(THREADS);
        let slots: HashSet<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        assert!(register_thread());
                        let slot = next_node().unwrap().slot;
                        all_have_one.wait();
                        slot
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(slots.len(), THREADS);
    }

    #[test]
    fn slots_of_ended_threads_are_recycled() {
        // Threads of other tests may snatch some.
        const THREADS: usize = 100;
        let slots: HashSet<_> =
            (0..THREADS).map(|_| std::thread::spawn(next_node).join().unwrap().unwrap().slot).collect();
        assert!(slots.len() < THREADS, "every thread had a new slot");
    }

    #[test]
    fn nesting_takes_level_after_level_then_there_is_no_node() {
        fn nest(level: u32) {
            with_node(|lent: Option<LentNode<Node>>| match lent {
                Some(lent) => {
                    assert_eq!(lent.id.level, level);
                    assert_eq!(node::<Node>(lent.id), lent.node);
                    nest(level + 1);
                }
                None => assert_eq!(level, NodeId::NESTING),
            });
        }
        nest(0);
        nest(0);
    }

    #[test]
    fn events_of_threads_that_have_ended_stay_counted() {
        let before = counted(LockEvent::CnaTailUpdateFailed);
        std::thread::spawn(|| count(LockEvent::CnaTailUpdateFailed)).join().unwrap();
        count(LockEvent::CnaTailUpdateFailed);
        assert_eq!(counted(LockEvent::CnaTailUpdateFailed), before + 2);
    }

    #[test]
    fn a_thread_being_destroyed_does_without_a_node() {
        /// Looks for a node when it is destroyed.
        struct Probe;
        static WITHOUT: AtomicU64 = AtomicU64::new(0);
        impl Drop for Probe {
            fn drop(&mut self) {
                if next_node().is_none() {
                    count(LockEvent::NoNode);
                    WITHOUT.fetch_add(1, Relaxed);
                }
            }
        }
        thread_local! {
            static EARLY: Probe = const { Probe };
            static LATE: Probe = const { Probe };
        }
        let before = counted(LockEvent::NoNode);
        // Whichever the order of destruction, one of the probes comes after the lease.
        std::thread::spawn(|| {
            EARLY.with(|_| {});
            assert!(register_thread());
            LATE.with(|_| {});
        })
        .join()
        .unwrap();
        assert!(WITHOUT.load(Relaxed) >= 1);
        assert_eq!(counted(LockEvent::NoNode), before + WITHOUT.load(Relaxed));
    }

    #[test]
    #[cfg(all(unix, not(miri)))]
    fn a_signal_handler_gets_the_next_node() {
        static SEEN: AtomicU64 = AtomicU64::new(u64::MAX);
        extern "C" fn handler(_signal: libc::c_int) {
            SEEN.store(next_node().map_or(u64::MAX, |id| u64::from(id.level)), Relaxed);
        }
        fn raise() -> u64 {
            // SAFETY: the signal has a handler.
            assert_eq!(unsafe { libc::raise(libc::SIGUSR2) }, 0);
            SEEN.load(Relaxed)
        }
        assert!(register_thread());
        let handler: extern "C" fn(libc::c_int) = handler;
        // SAFETY: the handler touches this thread's slot and an atomic only; no other test uses the signal.
        unsafe { libc::signal(libc::SIGUSR2, handler as libc::sighandler_t) };
        assert_eq!(raise(), 0);
        with_node(|_outer: Option<LentNode<Node>>| assert_eq!(raise(), 1));
        assert_eq!(raise(), 0);
    }
}
