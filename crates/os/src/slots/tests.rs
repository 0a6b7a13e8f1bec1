use super::*;
use core::sync::atomic::AtomicBool;
use nearlock_collection::linux::{cna, qspinlock};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use std::vec::Vec;

type FifoNode = qspinlock::Node<crate::Os, ()>;
type CnaNode = cna::Node<crate::Os>;

/// A slot that a thread of a test leases until this is dropped.
struct Lease(&'static Registry, &'static Slot);

impl Lease {
    fn slot(&self) -> &'static Slot {
        self.1
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // SAFETY: leased by `Registry::lease`, and used only through this.
        unsafe { self.0.give_back(self.1) };
    }
}

/// The id of a thread that counts as not ended.
const ALIVE: u32 = 1;

fn leased(registry: &'static Registry) -> Option<Lease> {
    registry.lease(ALIVE, |thread| thread != ALIVE).map(|slot| Lease(registry, slot))
}

fn enter(slot: &Slot) -> Option<Level<'_>> {
    // SAFETY: tests use slots that they have leased.
    unsafe { slot.enter() }
}

/// This test is of interest under Miri, which would report a data race.
#[test]
fn a_waiter_may_look_at_a_node_that_is_lent_again() {
    static REGISTRY: Registry = Registry::new(1);
    let lease = leased(&REGISTRY).unwrap();
    let name = enter(lease.slot()).unwrap().lend::<FifoNode>().id;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                // SAFETY: nodes live as long as their table.
                assert_eq!(unsafe { &(*REGISTRY.node::<FifoNode>(name)).granted }.load(Relaxed), 0);
                std::thread::yield_now();
            }
        });
        for _ in 0..10 {
            enter(lease.slot()).unwrap().lend::<FifoNode>();
            std::thread::yield_now();
        }
        done.store(true, Relaxed);
    });
}

#[test]
fn slots_are_distinct_until_all_are_taken_and_then_recycled() {
    static REGISTRY: Registry = Registry::new(3);
    let mut leases: Vec<_> = (0..3).map(|_| leased(&REGISTRY).unwrap()).collect();
    assert_eq!(leases.iter().map(|lease| lease.slot().id).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(REGISTRY.made(), 3);
    assert!(leased(&REGISTRY).is_none());
    leases.remove(1);
    let again = leased(&REGISTRY).unwrap();
    assert_eq!(again.slot().id, 1);
    assert!(leased(&REGISTRY).is_none());
    drop((leases, again));
    let leases: Vec<_> = core::iter::from_fn(|| leased(&REGISTRY)).collect();
    let mut ids: Vec<_> = leases.iter().map(|lease| lease.slot().id).collect();
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 2]);
}

#[test]
fn slots_of_further_chunks_are_found_by_number() {
    static REGISTRY: Registry = Registry::new(CHUNK_SLOTS as u32 + 1);
    let leases: Vec<_> = core::iter::from_fn(|| leased(&REGISTRY)).collect();
    assert_eq!(leases.len(), CHUNK_SLOTS + 1);
    for (i, lease) in leases.iter().enumerate() {
        assert_eq!(lease.slot().id as usize, i);
        assert_eq!(REGISTRY.locate(i as u32), ptr::from_ref(lease.slot()));
    }
}

#[test]
fn nodes_are_lent_level_by_level_then_no_more() {
    static REGISTRY: Registry = Registry::new(2);
    let (_other, lease) = (leased(&REGISTRY).unwrap(), leased(&REGISTRY).unwrap());
    let mut levels = Vec::new();
    for level in 0..NodeId::NESTING {
        let mut taken = enter(lease.slot()).unwrap();
        let lent = taken.lend::<FifoNode>();
        assert_eq!(lent.id, NodeId { slot: 1, level });
        assert_eq!(REGISTRY.node::<FifoNode>(lent.id), lent.node);
        assert_eq!(lent.node.addr() % LINE, 0);
        levels.push(taken);
    }
    assert!(enter(lease.slot()).is_none());
    while levels.pop().is_some() {}
    assert_eq!(enter(lease.slot()).unwrap().lend::<CnaNode>().id.level, 0);
}

#[test]
fn a_node_is_zero_whatever_it_was_before() {
    static REGISTRY: Registry = Registry::new(1);
    let lease = leased(&REGISTRY).unwrap();
    let mut level = enter(lease.slot()).unwrap();
    // SAFETY: just lent.
    let node = unsafe { &*level.lend::<CnaNode>().node };
    node.granted.store(7, Relaxed);
    node.part.numa_node.store(7, Relaxed);
    drop(level);
    let mut level = enter(lease.slot()).unwrap();
    // SAFETY: just lent.
    let node = unsafe { &*level.lend::<CnaNode>().node };
    assert_eq!((node.granted.load(Relaxed), node.part.numa_node.load(Relaxed)), (0, 0));
    assert!(node.next.load(Relaxed).is_null());
}

#[test]
fn a_panic_gives_the_node_back() {
    static REGISTRY: Registry = Registry::new(1);
    let lease = leased(&REGISTRY).unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _level = enter(lease.slot());
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(panicked.is_err());
    assert_eq!(lease.slot().depth.load(Relaxed), 0);
}

#[test]
fn a_slot_left_within_an_acquisition_is_never_leased_again() {
    static REGISTRY: Registry = Registry::new(1);
    let lease = leased(&REGISTRY).unwrap();
    core::mem::forget(enter(lease.slot()));
    drop(lease);
    assert!(leased(&REGISTRY).is_none());
}

#[test]
fn counts_of_ended_threads_stay() {
    static REGISTRY: Registry = Registry::new(2);
    let (one, other) = (leased(&REGISTRY).unwrap(), leased(&REGISTRY).unwrap());
    one.slot().count(LockEvent::Slowpath);
    other.slot().count(LockEvent::Slowpath);
    other.slot().count(LockEvent::Pending);
    drop((one, other));
    let mut sums = [0; LockEvent::COUNT];
    REGISTRY.add_events(&mut sums);
    assert_eq!((sums[LockEvent::Slowpath as usize], sums[LockEvent::Pending as usize]), (2, 1));
    assert_eq!(sums.iter().sum::<u64>(), 3);
}

#[test]
fn more_threads_than_slots_never_share_one() {
    const SLOTS: usize = 3;
    static REGISTRY: Registry = Registry::new(SLOTS as u32);
    static TAKEN: [AtomicBool; SLOTS] = [const { AtomicBool::new(false) }; SLOTS];
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 * SLOTS + 1 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    if let Some(lease) = leased(&REGISTRY) {
                        let taken = &TAKEN[lease.slot().id as usize];
                        assert!(!taken.swap(true, Relaxed), "two threads have slot {}", lease.slot().id);
                        lease.slot().count(LockEvent::NoNode);
                        sys::sched_yield();
                        taken.store(false, Relaxed);
                    }
                }
            });
        }
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(if cfg!(miri) { 2 } else { 100 }) {
            sys::sched_yield();
        }
        stop.store(true, Relaxed);
    });
    let leases: Vec<_> = core::iter::from_fn(|| leased(&REGISTRY)).collect();
    assert_eq!(leases.len(), SLOTS, "a slot is lost");
}

#[test]
fn a_slot_that_was_not_given_back_is_found_when_one_is_needed() {
    static REGISTRY: Registry = Registry::new(2);
    static ENDED: AtomicU32 = AtomicU32::new(0);
    const FIRST: u32 = 10;
    const SECOND: u32 = 20;
    const THIRD: u32 = 30;
    let lease_as = |thread| REGISTRY.lease(thread, |thread| thread == ENDED.load(Relaxed));
    let (first, second) = (lease_as(FIRST).unwrap(), lease_as(SECOND).unwrap());
    REGISTRY.is_not_watched(first);
    REGISTRY.is_not_watched(first);
    assert!(lease_as(THIRD).is_none(), "both are alive");
    ENDED.store(SECOND, Relaxed);
    assert!(lease_as(THIRD).is_none(), "that one gives its slot back by itself");
    ENDED.store(FIRST, Relaxed);
    assert!(ptr::eq(lease_as(THIRD).unwrap(), first));
    assert!(lease_as(FIRST).is_none());
    // SAFETY: each slot is given back for the thread that it is leased to.
    unsafe {
        REGISTRY.give_back(first);
        REGISTRY.is_not_watched(second);
        REGISTRY.give_back(second);
    }
    assert_eq!(REGISTRY.unwatched.load(Relaxed), 0);
    ENDED.store(0, Relaxed);
    assert!(lease_as(FIRST).is_some() && lease_as(SECOND).is_some() && lease_as(THIRD).is_none());
}

/// A thread that looks for ended threads is preempted after the kernel has answered. Meanwhile
/// another thread, to which the kernel has given the same id, leases the slot.
#[test]
fn an_answer_of_the_kernel_is_not_used_for_a_later_thread_of_that_id() {
    static REGISTRY: Registry = Registry::new(1);
    const ID: u32 = 10;
    const OTHER: u32 = 20;
    REGISTRY.is_not_watched(REGISTRY.lease(ID, |_| false).unwrap());
    let preempted = |_| {
        REGISTRY.is_not_watched(REGISTRY.lease(ID, |_| true).unwrap());
        true
    };
    assert!(REGISTRY.lease(OTHER, preempted).is_none(), "two living threads have one slot");
}

#[test]
fn a_forked_process_frees_the_slots_of_the_parents_other_threads() {
    static REGISTRY: Registry = Registry::new(4);
    let [own, other, queueing] = [(); 3].map(|()| REGISTRY.lease(ALIVE, |_| false).unwrap());
    REGISTRY.is_not_watched(own);
    REGISTRY.is_not_watched(other);
    core::mem::forget(enter(own));
    core::mem::forget(enter(queueing));
    // SAFETY: one thread uses this registry.
    unsafe { REGISTRY.after_fork(Some((own, 77))) };
    assert_eq!((own.lessee.load(Relaxed) & THREAD, REGISTRY.unwatched.load(Relaxed)), (77 | UNWATCHED, 1));
    assert_eq!(own.depth.load(Relaxed), 1, "it may have forked in a handler");
    let left: Vec<_> = core::iter::from_fn(|| REGISTRY.lease(ALIVE, |_| false)).map(|slot| slot.id).collect();
    assert_eq!(left.len(), 2, "the other one, and one that is new: {left:?}");
    assert!(left.contains(&other.id));
}
