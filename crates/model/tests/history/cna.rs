//! CNA.

use std::ptr;
use std::sync::atomic::Ordering::{Relaxed, Release};

use nearlock_collection::linux::cna::{Cna, Node};
use nearlock_collection::linux::cna_v13::{self, CnaV13};
use nearlock_collection::linux::qspinlock::{LOCKED, QSpinTuning, QueuePolicy, Tail, grant};
use nearlock_core::platform::{Atomic, Clock, LocalNodes, NodeId};
use nearlock_core::tuning::Standard;
use nearlock_model::loom::{Loom, LoomU32};
use nearlock_model::model::Model;
use nearlock_model::mutate::Half;
use nearlock_model::staged::{Queue, Stage, queue_at_work, queue_of_held_lock};

use crate::order::served;
use crate::policy::{Bug, NodeOf, With, end_of_secondary, node_in, pointer};
use crate::{NO_END, NULL, Place, STORES, caught, caught_without};

/// A queue with a secondary queue of one far waiter.
fn moved() -> Queue {
    Queue { secondary: &[1], ..Queue::default() }
}

/// The final form with one of the bugs below, or without.
trait Final: Bug<Base = Cna> {}
impl<B: Bug<Base = Cna>> Final for B {}

struct Today;
impl Bug for Today {
    type Base = Cna;
}

fn at_work<B: Final>(situation: &str, queue: Queue, set: fn()) -> Model {
    queue_at_work::<Loom, With<B>, Standard>("cna", situation, queue, Some(2), set)
}

/// The head's secondary queue must replace the main one, while a near newcomer queues up.
fn near_newcomer<B: Final>() -> Model {
    at_work::<B>("one moved; a near newcomer", Queue { newcomers: &[2], ..moved() }, || ())
}

/// The node that is next now, if there is a secondary queue to be handed over with the lock.
fn handed_over(node: &Node<Loom>) -> Option<&Node<Loom>> {
    let start_ns = node.part.state.start_ns.load(Relaxed);
    // SAFETY: a linked waiter; nodes live as long as the execution.
    (start_ns > FLUSH).then(|| unsafe { &*node.next.load(Relaxed) })
}

/// The mark of a secondary queue that is to be flushed.
const FLUSH: u64 = 1;

#[test]
fn cna_null_after_the_tail_update() {
    struct NullLate;
    impl Bug for NullLate {
        type Base = Cna;
        unsafe fn try_clear_tail<L: QSpinTuning>(
            word: &LoomU32,
            val: u32,
            node: &Node<Loom>,
        ) -> Result<(), u32> {
            let Some(end) = end_of_secondary::<Cna>(node) else {
                // SAFETY: the condition of the caller.
                return unsafe { Cna::<Standard>::try_clear_tail::<L>(word, val, node) };
            };
            let first = end.next.load(Relaxed);
            // Ordering: Release, as in core; but the stores that it should publish come later.
            word.compare_exchange(val, node.granted.load(Relaxed) | LOCKED, Release, Relaxed)?;
            end.next.store(ptr::null_mut(), Relaxed);
            // SAFETY: the first of the secondary queue; nodes live as long as the execution.
            grant::<Loom, L>(unsafe { &(*first).granted }, 1);
            Ok(())
        }
    }
    let test = "cna_null_after_the_tail_update";
    caught(test, &near_newcomer::<Today>(), &near_newcomer::<NullLate>(), STORES);
}

#[test]
fn cna_tail_update_without_release() {
    let place = Place { file: "linux/cna/queues.rs", function: "try_clear_tail", operation: "exchange" };
    let test = "cna_tail_update_without_release";
    caught_without(test, Half::Release, place, &near_newcomer::<Today>(), STORES);
}

#[test]
fn cna_circle_left_open() {
    struct LeftOpen;
    impl Bug for LeftOpen {
        type Base = Cna;
        unsafe fn try_clear_tail<L: QSpinTuning>(
            word: &LoomU32,
            val: u32,
            node: &Node<Loom>,
        ) -> Result<(), u32> {
            let end = end_of_secondary::<Cna>(node);
            // SAFETY: the condition of the caller.
            let cleared = unsafe { Cna::<Standard>::try_clear_tail::<L>(word, val, node) };
            if let (Some(end), Err(_)) = (end, cleared) {
                end.next.store(ptr::null_mut(), Relaxed);
            }
            cleared
        }
    }
    let test = "cna_circle_left_open";
    caught(test, &near_newcomer::<Today>(), &near_newcomer::<LeftOpen>(), NULL);
}

#[test]
fn cna_next_not_reloaded() {
    struct NotReloaded;
    impl Bug for NotReloaded {
        type Base = Cna;
        unsafe fn hand_over<L: QSpinTuning>(node: &Node<Loom>, next: *mut Node<Loom>) {
            // The node that was next before the head sorted.
            node.next.store(next, Relaxed);
            // SAFETY: the condition of the caller.
            unsafe { Cna::<Standard>::hand_over::<L>(node, next) }
        }
    }
    fn far_near<B: Final>() -> Model {
        let queue = Queue { main: &[1, 2], ..Queue::default() };
        queue_of_held_lock::<Loom, With<B>, Standard>("cna", "far, near", queue, Some(1), || ())
    }
    caught("cna_next_not_reloaded", &far_near::<Today>(), &far_near::<NotReloaded>(), NO_END);
}

#[test]
fn cna_last_waiter_moved() {
    struct LastMoved;
    impl Bug for LastMoved {
        type Base = Cna;
        /// Begins a secondary queue with the only waiter, which is far.
        unsafe fn became_head<L: QSpinTuning>(_word: &LoomU32, node: &Node<Loom>) {
            let far = node_in::<Cna>(FAR);
            if node.next.load(Relaxed) == pointer(far) {
                node.next.store(ptr::null_mut(), Relaxed);
                far.next.store(pointer(far), Relaxed);
                node.granted.store(Tail::encode(NodeId { slot: FAR, level: 0 }).bits(), Relaxed);
                node.part.state.start_ns.store(2, Relaxed);
            }
        }
    }
    const FAR: u32 = 1;
    fn far<B: Final>() -> Model {
        let queue = Queue { main: &[FAR], ..Queue::default() };
        queue_of_held_lock::<Loom, With<B>, Standard>("cna", "a far waiter", queue, Some(2), || ())
    }
    caught("cna_last_waiter_moved", &far::<Today>(), &far::<LastMoved>(), NULL);
}

#[test]
fn cna_next_without_acquire() {
    let place = Place { file: "linux/cna.rs", function: "near_comes_next", operation: "load" };
    let queue = Queue { newcomers: &[1, 2], ..Queue::default() };
    let model = queue_of_held_lock::<Loom, Cna, Standard>("cna", "two newcomers", queue, Some(1), || ());
    caught_without("cna_next_without_acquire", Half::Acquire, place, &model, STORES);
}

#[test]
fn cna_flush_without_the_main_queue() {
    struct Unlinked;
    impl Bug for Unlinked {
        type Base = Cna;
        unsafe fn hand_over<L: QSpinTuning>(node: &Node<Loom>, mut next: *mut Node<Loom>) {
            if node.part.state.start_ns.load(Relaxed) == FLUSH {
                // The waiter that now follows the secondary queue.
                next = end_of_secondary::<Cna>(node).expect("there is one").next.load(Relaxed);
            }
            // SAFETY: the condition of the caller.
            unsafe { Cna::<Standard>::hand_over::<L>(node, next) }
        }
    }
    fn late<B: Final>() -> Model {
        let late = || Loom::set_now_ns(1_000_000_000);
        at_work::<B>("threshold passed; a near waiter", Queue { main: &[2], ..moved() }, late)
    }
    caught("cna_flush_without_the_main_queue", &late::<Today>(), &late::<Unlinked>(), NO_END);
}

#[test]
fn cna_own_value_passed_on() {
    struct OwnValue;
    impl Bug for OwnValue {
        type Base = Cna;
        unsafe fn hand_over<L: QSpinTuning>(node: &Node<Loom>, next: *mut Node<Loom>) {
            match node.granted.load(Relaxed) {
                // SAFETY: the next waiter waits for `granted`.
                0 => grant::<Loom, L>(unsafe { &(*next).granted }, 0),
                // SAFETY: the condition of the caller.
                _ => unsafe { Cna::<Standard>::hand_over::<L>(node, next) },
            }
        }
    }
    fn near<B: Final>() -> Model {
        at_work::<B>("a near waiter", Queue { main: &[2], ..Queue::default() }, || ())
    }
    caught("cna_own_value_passed_on", &near::<Today>(), &near::<OwnValue>(), NO_END);
}

/// A time after the threshold.
const LATE_NS: u64 = 1_000_000_000;

/// A far waiter in front of two near ones. The second head finds that the threshold has passed.
fn far_first() -> Queue {
    Queue { main: &[1, 2, 4], ..Queue::default() }
}

/// A secondary queue begins at the time of the clock, even if that value is a mark.
struct NotClamped;
impl Bug for NotClamped {
    type Base = Cna;
    unsafe fn became_head<L: QSpinTuning>(word: &LoomU32, node: &Node<Loom>) {
        let start_ns = &node.part.state.start_ns;
        let before = start_ns.load(Relaxed);
        // SAFETY: the condition of the caller.
        unsafe { Cna::<Standard>::became_head::<L>(word, node) };
        if before == 0 && start_ns.load(Relaxed) != 0 {
            start_ns.store(Loom::now_ns(), Relaxed);
        }
    }
}

#[test]
fn cna_start_time_of_nought() {
    fn early<B: Final>() -> Model {
        served::<With<B>>("cna, begun at 0 ns", far_first(), 0, LATE_NS, &[0, 2, 1, 4])
    }
    let how = "served in the order [0, 2, 4, 1], not [0, 2, 1, 4]";
    caught("cna_start_time_of_nought", &early::<Today>(), &early::<NotClamped>(), how);
}

#[test]
fn cna_start_time_of_one() {
    fn early<B: Final>() -> Model {
        served::<With<B>>("cna, begun at 1 ns", far_first(), 1, 1, &[0, 2, 4, 1])
    }
    let how = "served in the order [0, 1, 2, 4], not [0, 2, 4, 1]";
    caught("cna_start_time_of_one", &early::<Today>(), &early::<NotClamped>(), how);
}

#[test]
fn cna_v13_start_tick_of_nought() {
    struct NotClamped;
    impl Bug for NotClamped {
        type Base = CnaV13;
        unsafe fn became_head<L: QSpinTuning>(word: &LoomU32, node: &cna_v13::Node<Loom>) {
            let start_tick = &node.part.state.start_tick;
            let before = start_tick.load(Relaxed);
            // SAFETY: the condition of the caller.
            unsafe { CnaV13::<Standard>::became_head::<L>(word, node) };
            if before == 0 && start_tick.load(Relaxed) == 1 {
                start_tick.store(0, Relaxed);
            }
        }
    }
    fn early<Q: Stage<Loom>>() -> Model
    where
        Loom: LocalNodes<NodeOf<Q>>,
    {
        served::<Q>("cna-v13, begun in tick 0", far_first(), 0, LATE_NS, &[0, 2, 1, 4])
    }
    let how = "served in the order [0, 2, 4, 1], not [0, 2, 1, 4]";
    caught("cna_v13_start_tick_of_nought", &early::<CnaV13>(), &early::<With<NotClamped>>(), how);
}

#[test]
fn cna_start_time_left_behind() {
    struct LeftBehind;
    impl Bug for LeftBehind {
        type Base = Cna;
        unsafe fn hand_over<L: QSpinTuning>(node: &Node<Loom>, next: *mut Node<Loom>) {
            if handed_over(node).is_some() {
                // The value that is copied is one that the next node already has.
                node.part.state.start_ns.store(0, Relaxed);
            }
            // SAFETY: the condition of the caller.
            unsafe { Cna::<Standard>::hand_over::<L>(node, next) }
        }
    }
    fn passed_on<B: Final>() -> Model {
        served::<With<B>>("cna, begun at 7 ns", far_first(), 7, LATE_NS, &[0, 2, 1, 4])
    }
    let how = "served in the order [0, 2, 4, 1], not [0, 2, 1, 4]";
    caught("cna_start_time_left_behind", &passed_on::<Today>(), &passed_on::<LeftBehind>(), how);
}

#[test]
fn cna_preference_left_behind() {
    struct LeftBehind;
    impl Bug for LeftBehind {
        type Base = Cna;
        unsafe fn hand_over<L: QSpinTuning>(node: &Node<Loom>, next: *mut Node<Loom>) {
            if let Some(next) = handed_over(node) {
                node.part.numa_node.store(next.part.numa_node.load(Relaxed), Relaxed);
            }
            // SAFETY: the condition of the caller.
            unsafe { Cna::<Standard>::hand_over::<L>(node, next) }
        }
    }
    /// The threads in even slots make the secondary queue. An urgent head of the other NUMA node
    /// comes between them.
    fn urgent<B: Final>() -> Model {
        let queue = Queue { main: &[3, 5, 2, 4], urgent: &[3], ..moved() };
        served::<With<B>>("cna, an urgent head", queue, 7, 7, &[0, 3, 2, 4, 1, 5])
    }
    let how = "served in the order [0, 3, 5, 4, 1, 2], not [0, 3, 2, 4, 1, 5]";
    caught("cna_preference_left_behind", &urgent::<Today>(), &urgent::<LeftBehind>(), how);
}
