//! qspinlock.

use std::sync::Arc;

use nearlock_core::linux::qspinlock::{
    Fifo, Node, QSpinLock, QSpinTuning, QueuePolicy, StealOnce, Stealing, TAIL_MASK, Tail, WholeWord,
};
use nearlock_core::platform::{LentNode, LocalNodes, NodeId};
use nearlock_core::raw::RawLock;
use nearlock_core::tuning::Standard;
use nearlock_model::engine::{Counter, Engine, Thread};
use nearlock_model::exclusion::{Guarded, held_at_first};
use nearlock_model::loom::{Loom, LoomU32};
use nearlock_model::model::Model;
use nearlock_model::mutate::Half;
use nearlock_model::staged::{Queue, Stage, queue_at_work, queued_against_nameless, queued_against_pending};

use crate::policy::{Bug, With};
use crate::{NO_END, Place, SECTIONS, STORES, caught, caught_without, holds, source};

type Lock<T> = QSpinLock<Loom, Fifo, T>;

const FILE: &str = "linux/qspinlock.rs";

fn held<T: QSpinTuning>() -> Model {
    held_at_first::<Loom, Lock<T>>("qspinlock", 3, Some(2))
}

fn newcomers<T: QSpinTuning>(name: &str) -> Model {
    let queue = Queue { newcomers: &[1, 2], ..Queue::default() };
    queue_at_work::<Loom, Fifo, T>(name, "two newcomers behind a head", queue, Some(1), || ())
}

const TAIL_SWAP: Place = Place { file: FILE, function: "swap_tail", operation: "swap_high_half" };

#[test]
fn qspinlock_tail_swap_without_release() {
    let test = "qspinlock_tail_swap_without_release";
    caught_without(test, Half::Release, TAIL_SWAP, &newcomers::<Standard>("qspinlock"), STORES);
}

#[test]
fn qspinlock_tail_swap_without_acquire() {
    let test = "qspinlock_tail_swap_without_acquire";
    caught_without(test, Half::Acquire, TAIL_SWAP, &newcomers::<Standard>("qspinlock"), STORES);
}

#[test]
fn qspinlock_link_without_release() {
    let place = Place { file: FILE, function: "lock_queued", operation: "store" };
    let test = "qspinlock_link_without_release";
    caught_without(test, Half::Release, place, &newcomers::<Standard>("qspinlock"), STORES);
}

#[test]
fn qspinlock_set_pending_without_acquire() {
    let place = Place { file: FILE, function: "lock_pending", operation: "fetch_or" };
    let test = "qspinlock_set_pending_without_acquire";
    caught_without(test, Half::Acquire, place, &held::<Standard>(), SECTIONS);
}

/// The source says Relaxed here, and the models of both ways to write the word hold.
fn relaxed(test: &str, file: &str, lines: [&str; 2], models: [Model; 2]) {
    for line in lines {
        assert!(source(file).contains(line), "{test}: the source does not say {line}");
    }
    for model in &models {
        holds(test, model);
    }
}

#[test]
fn qspinlock_pending_to_locked_relaxed() {
    let lines = ["store_low_half(LOCKED as u16, Relaxed)", "fetch_sub(PENDING - LOCKED, Relaxed)"];
    let models = [held::<Standard>(), held::<WholeWord>()];
    relaxed("qspinlock_pending_to_locked_relaxed", FILE, lines, models);
}

#[test]
fn qspinlock_pending_undo_relaxed() {
    fn late<T: QSpinTuning>() -> Model {
        queued_against_pending::<Loom, Fifo, T>("qspinlock", Some(2))
    }
    let lines = ["if old & PENDING == 0 {", "self.word.fetch_and(!PENDING, Relaxed);"];
    let models = [late::<Standard>(), late::<WholeWord>()];
    relaxed("qspinlock_pending_undo_relaxed", FILE, lines, models);
}

#[test]
fn qspinlock_head_exchange_relaxed() {
    let lines = ["for Fifo {", "word.compare_exchange(val, LOCKED, Relaxed, Relaxed)"];
    let models = [newcomers::<Standard>("qspinlock"), newcomers::<WholeWord>("qspinlock")];
    relaxed("qspinlock_head_exchange_relaxed", "linux/qspinlock/queue.rs", lines, models);
}

#[test]
fn qspinlock_link_that_never_comes() {
    struct WaitsForLink;
    impl Bug for WaitsForLink {
        type Base = Fifo;
        unsafe fn try_clear_tail<L: QSpinTuning>(
            word: &LoomU32,
            val: u32,
            node: &Node<Loom, ()>,
        ) -> Result<(), u32> {
            // SAFETY: the caller's.
            let cleared = unsafe { Fifo::try_clear_tail::<L>(word, val, node) };
            // As if whatever has changed the word were a successor.
            cleared.map_err(|seen| seen & !TAIL_MASK)
        }
    }
    fn nameless<Q: Stage<Loom, Part = ()>>() -> Model {
        queued_against_nameless::<Loom, Q, Standard>("qspinlock", Some(3))
    }
    let test = "qspinlock_link_that_never_comes";
    caught(test, &nameless::<Fifo>(), &nameless::<With<WaitsForLink>>(), NO_END);
}

#[test]
fn qspinlock_steal_blind_head() {
    struct Blind;
    impl QSpinTuning for Blind {
        const STEALING: Stealing = StealOnce::STEALING;
        const COMPETES: bool = false;
    }
    let name = "qspinlock-steal-once";
    caught("qspinlock_steal_blind_head", &newcomers::<StealOnce>(name), &newcomers::<Blind>(name), SECTIONS);
}

#[test]
fn qspinlock_steal_head_without_acquire() {
    let place = Place { file: "linux/qspinlock/compete.rs", function: "take_as_head", operation: "exchange" };
    let model = newcomers::<StealOnce>("qspinlock-steal-once");
    caught_without("qspinlock_steal_head_without_acquire", Half::Acquire, place, &model, SECTIONS);
}

/// How a thread whose queue nodes are all in use takes the lock.
type Nested = unsafe fn(&Lock<Standard>);

/// It waits without one: the platform lends none.
unsafe fn without_node(lock: &Lock<Standard>) {
    Loom::with_node(|_outer: Option<LentNode<Node<Loom, ()>>>| {
        // SAFETY: the caller's.
        unsafe { lock.lock(&()) };
    });
}

/// It takes a fifth.
unsafe fn with_fifth_node(lock: &Lock<Standard>) {
    let id = NodeId { slot: 1, level: NodeId::NESTING };
    // SAFETY: lent to nobody else, for as long as it waits.
    unsafe { lock.lock_queued(&LentNode { id, node: &Node::default() }) };
}

#[test]
fn qspinlock_fifth_nesting_level() {
    fn deep(lock: Nested) -> Model {
        Model::new("qspinlock: nested too deep", 3, Some(2), move || {
            let shared = Arc::new(Guarded::<Loom, Lock<Standard>>::default());
            let nested = shared.clone();
            let thread = Thread { slot: Some(1), ..Thread::default() };
            let nested = Loom::spawn(thread, move || {
                // SAFETY: released below.
                unsafe { lock(&nested.lock) };
                nested.count.add_one();
                // SAFETY: taken above.
                unsafe { nested.lock.unlock(&()) };
            });
            let other = shared.clone();
            let other = Loom::spawn(Thread { slot: Some(2), ..thread }, move || other.section());
            shared.section();
            nested.join().unwrap();
            other.join().unwrap();
            assert_eq!(shared.count.get(), 3);
        })
    }
    // What the bits of such a name would say: the first node of another thread.
    let bits = Tail::encode(NodeId { slot: 1, level: 0 }).bits() | NodeId::NESTING << 16;
    assert_eq!(Tail::decode(bits), Some(NodeId { slot: 2, level: 0 }));
    let how = "id.level < NodeId::NESTING";
    caught("qspinlock_fifth_nesting_level", &deep(without_node), &deep(with_fifth_node), how);
}
