//! qspinlock.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use nearlock_collection::linux::qspinlock::{
    Fifo, LOCKED, Node, QSpinLock, QSpinTuning, QueuePolicy, StealOnce, TAIL_MASK, Tail, WholeWord,
};
use nearlock_core::platform::{Atomic, LentNode, LocalNodes, NodeId, Platform};
use nearlock_core::raw::RawLock;
use nearlock_core::tuning::Standard;
use nearlock_model::engine::{Counter, Engine, Thread};
use nearlock_model::exclusion::{Guarded, held_at_first};
use nearlock_model::loom::{Loom, LoomU32};
use nearlock_model::model::Model;
use nearlock_model::mutate::Half;
use nearlock_model::staged::{
    Queue, Stage, build, queue_at_work, queued_against_nameless, queued_against_pending,
};

use crate::policy::{Bug, With};
use crate::{NO_END, Place, SECTIONS, STORES, caught, caught_without, holds, source};

type Lock<T> = QSpinLock<Loom, Fifo, T>;

const FILE: &str = "linux/qspinlock.rs";

/// The word of a qspinlock.
pub fn word_of<P: Platform>(lock: &QSpinLock<P>) -> &P::U32 {
    // SAFETY: the lock is its word and nothing else (`repr(transparent)`).
    unsafe { &*ptr::from_ref(lock).cast() }
}

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

/// The source says Relaxed here, and the models of both ways of writing the word hold.
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
            // SAFETY: the condition of the caller.
            let cleared = unsafe { Fifo::try_clear_tail::<L>(word, val, node) };
            // As if a successor had changed the word, whatever changed it.
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
    /// As [`newcomers`] with [`StealOnce`], except that the head locks as with [`Standard`].
    fn blind_head(name: &str) -> Model {
        let queue = Queue { newcomers: &[1, 2], ..Queue::default() };
        let situation = format!("{name}: two newcomers behind a head");
        Model::new(situation, queue.slots(), Some(1), move || {
            // SAFETY: the queue has just been built.
            let lock = unsafe { Lock::<StealOnce>::with_word(build::<Loom, Fifo>(&queue)) };
            let shared = Arc::new(Guarded::<Loom, _> { lock, count: Default::default() });
            let others: Vec<_> = queue
                .newcomers
                .iter()
                .map(|&slot| {
                    let shared = shared.clone();
                    Loom::spawn(Thread { slot: Some(slot), ..Thread::default() }, move || shared.section())
                })
                .collect();
            let section = || {
                shared.count.add_one();
                // SAFETY: held at first, or just taken.
                unsafe { shared.lock.unlock(&()) };
            };
            section();
            // SAFETY: a lock is its word and nothing else (`repr(transparent)`), whatever its
            // switches.
            let blind: &Lock<Standard> = unsafe { &*ptr::from_ref(&shared.lock).cast() };
            let head = NodeId { slot: 0, level: 0 };
            // SAFETY: the head's node, which lives as long as the execution.
            unsafe { blind.lock_as_head(&*Loom::node(head), Tail::encode(head)) };
            section();
            others.into_iter().for_each(|other| other.join().unwrap());
            assert_eq!(shared.count.get(), 4);
        })
    }
    let name = "qspinlock-steal-once";
    caught("qspinlock_steal_blind_head", &newcomers::<StealOnce>(name), &blind_head(name), SECTIONS);
}

#[test]
fn qspinlock_steal_head_without_acquire() {
    let place = Place { file: "linux/qspinlock/compete.rs", function: "take_as_head", operation: "exchange" };
    let model = newcomers::<StealOnce>("qspinlock-steal-once");
    caught_without("qspinlock_steal_head_without_acquire", Half::Acquire, place, &model, SECTIONS);
}

/// The lock is held, and a waiter queues up, while another thread locks in this way.
fn beside_a_queue(name: &str, thread: Thread, lock: fn(&Lock<Standard>)) -> Model {
    Model::new(name, 3, Some(3), move || {
        let shared = Arc::new(Guarded::<Loom, Lock<Standard>>::default());
        // SAFETY: unlocked below.
        unsafe { shared.lock.lock(&()) };
        let section = |lock: fn(&Lock<Standard>)| {
            let shared = shared.clone();
            move || {
                lock(&shared.lock);
                shared.count.add_one();
                // SAFETY: just locked.
                unsafe { shared.lock.unlock(&()) };
            }
        };
        let queued = Loom::spawn(Thread { slot: Some(1), ..Thread::default() }, section(queue));
        let other = Loom::spawn(thread, section(lock));
        shared.count.add_one();
        // SAFETY: locked above.
        unsafe { shared.lock.unlock(&()) };
        queued.join().unwrap();
        other.join().unwrap();
        assert_eq!(shared.count.get(), 3);
    })
}

/// Locks as a thread that has found others waiting.
fn queue(lock: &Lock<Standard>) {
    Loom::with_node(|lent: Option<LentNode<Node<Loom, ()>>>| {
        // SAFETY: just lent.
        unsafe { lock.lock_queued(&lent.expect("each thread has a node")) };
    });
}

/// Locks as a thread that has no node.
fn without_node(lock: &Lock<Standard>) {
    Loom::with_node(|_outer: Option<LentNode<Node<Loom, ()>>>| {
        // SAFETY: the callers unlock it.
        unsafe { lock.lock(&()) };
    });
}

/// Locks as a thread that has a fifth node.
fn with_fifth_node(lock: &Lock<Standard>) {
    let id = NodeId { slot: 2, level: NodeId::NESTING };
    // SAFETY: lent to no other thread, as long as the thread waits.
    unsafe { lock.lock_queued(&LentNode { id, node: &Node::default() }) };
}

/// Locks as a thread without a node that ignores the queue.
fn over_the_tail(lock: &Lock<Standard>) {
    let word = word_of(lock);
    loop {
        let val = Loom::wait_until(word, Relaxed, |v| v & !TAIL_MASK == 0);
        // Ordering: Acquire, pairs with the Release in `unlock`. Relaxed on failure: the value is
        // only tried again.
        if word.compare_exchange(val, val | LOCKED, Acquire, Relaxed).is_ok() {
            return;
        }
    }
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "a debug assertion catches it")]
fn qspinlock_fifth_nesting_level() {
    fn deep(lock: fn(&Lock<Standard>)) -> Model {
        let thread = Thread { slot: Some(2), ..Thread::default() };
        beside_a_queue("qspinlock: nested too deep", thread, lock)
    }
    // The bits of such a name would name the first node of another thread.
    let bits = Tail::encode(NodeId { slot: 1, level: 0 }).bits() | NodeId::NESTING << 16;
    assert_eq!(Tail::decode(bits), Some(NodeId { slot: 2, level: 0 }));
    let how = "id.level < NodeId::NESTING";
    caught("qspinlock_fifth_nesting_level", &deep(without_node), &deep(with_fifth_node), how);
}

#[test]
fn qspinlock_taken_over_the_tail() {
    fn nameless(lock: fn(&Lock<Standard>)) -> Model {
        beside_a_queue("qspinlock: no node, and a queue", Thread::default(), lock)
    }
    let test = "qspinlock_taken_over_the_tail";
    caught(test, &nameless(without_node), &nameless(over_the_tail), SECTIONS);
}
