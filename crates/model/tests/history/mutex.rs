//! The owner mutex, and its queue of spinners.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::{self, AcqRel, Relaxed};

use nearlock_collection::linux::mutex::{
    HANDOFF, LinuxMutex, MutexTuning, NoSpinning, PICKUP, Spinning, WAITERS,
};
use nearlock_collection::linux::osq::Osq;
use nearlock_core::parking::{GaveUp, Limit, RawTimedLock};
use nearlock_core::platform::{Atomic, AtomicInt, LentNode, LocalNodes, NodeId, Park, Platform};
use nearlock_core::raw::{RawLock, RawTryLock};
use nearlock_core::schedule::Schedule;
use nearlock_model::engine::{Engine, Thread};
use nearlock_model::exclusion::counting;
use nearlock_model::loom::{Loom, LoomU32};
use nearlock_model::model::Model;
use nearlock_model::mutate::Half;
use nearlock_model::parts::osq;
use nearlock_model::timed::Act::{InTime, Lock};
use nearlock_model::timed::First::Releases;
use nearlock_model::timed::{Act, held_at_first};

use crate::words::{Kind, Same, Words, nodes};
use crate::{NO_END, Place, SECTIONS, STORES, caught, caught_without};

type Mutex<K> = LinuxMutex<Words<K>, NoSpinning>;

const NAME: &str = "linux-mutex-no-spin";
const OWNER_SHIFT: u32 = 3;

/// The owner in a word of the mutex. Other words of these models are smaller than any word with an
/// owner.
fn owner(word: u32) -> u32 {
    word >> OWNER_SHIFT
}

#[test]
fn mutex_locked_again_by_its_holder() {
    /// There is no PICKUP: a thread to which the mutex has been handed over looks like a thread
    /// that holds it.
    struct NoPickup;
    fn without(word: u32) -> u32 {
        if owner(word) == 0 { word } else { word & !PICKUP }
    }
    fn seen(word: u32) -> u32 {
        if owner(word) == Loom::thread_id().get() { word | PICKUP } else { word }
    }
    impl Kind for NoPickup {
        fn load(word: &LoomU32, order: Ordering) -> u32 {
            seen(word.load(order))
        }
        fn store(word: &LoomU32, v: u32, order: Ordering) {
            word.store(without(v), order);
        }
        fn exchange(word: &LoomU32, old: u32, new: u32, ok: Ordering, err: Ordering) -> Result<u32, u32> {
            let new = if owner(old) == 0 { new } else { new & !PICKUP };
            word.compare_exchange(without(old), new, ok, err).map(seen).map_err(seen)
        }
    }
    fn again<K: Kind>() -> Model {
        Model::new(format!("{NAME}: locked again"), 1, None, || {
            let mutex = Mutex::<K>::default();
            // SAFETY: unlocked below, and not locked by other threads.
            let result = unsafe {
                mutex.lock(&());
                mutex.lock_within(&(), &Limit::until(1))
            };
            assert!(result == Err(GaveUp::TimedOut), "the holder gets it again");
            // SAFETY: locked above, once.
            unsafe { mutex.unlock(&()) };
        })
    }
    let test = "mutex_locked_again_by_its_holder";
    caught(test, &again::<Same>(), &again::<NoPickup>(), "the holder gets it again");
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "a debug assertion catches it")]
fn mutex_handoff_asked_of_a_free_mutex() {
    /// HANDOFF is set without a comparison, whatever the word is at that moment.
    struct SetsBit;
    impl Kind for SetsBit {
        fn exchange(word: &LoomU32, old: u32, new: u32, ok: Ordering, err: Ordering) -> Result<u32, u32> {
            if owner(old) != 0 && new == old | HANDOFF {
                word.fetch_or(HANDOFF, Relaxed);
                return Ok(old);
            }
            word.compare_exchange(old, new, ok, err)
        }
    }
    let model = |name| counting::<Loom, Mutex<Same>>(name, 2, 2, Some(3));
    let bug = |name| counting::<Loom, Mutex<SetsBit>>(name, 2, 2, Some(3));
    let how = "free, and to be handed over";
    caught("mutex_handoff_asked_of_a_free_mutex", &model(NAME), &bug(NAME), how);
}

#[test]
fn mutex_mark_of_waiters_lost() {
    /// A thread that locks a free mutex clears the mark of the waiters.
    struct Forgets;
    impl Kind for Forgets {
        fn exchange(word: &LoomU32, old: u32, new: u32, ok: Ordering, err: Ordering) -> Result<u32, u32> {
            let takes = owner(old) == 0 && owner(new) != 0;
            word.compare_exchange(old, if takes { new & !WAITERS } else { new }, ok, err)
        }
    }
    nearlock_core::tuning! {
        /// A hand-over would hide the bug.
        struct SleepsOnly: MutexTuning {
            spinning: Spinning = Spinning::Never;
            hand_over: bool = false;
        }
    }
    fn model<K: Kind>() -> Model {
        counting::<Loom, LinuxMutex<Words<K>, SleepsOnly>>("linux-mutex, never handed over", 2, 2, Some(2))
    }
    caught("mutex_mark_of_waiters_lost", &model::<Same>(), &model::<Forgets>(), NO_END);
}

#[test]
fn umtx_signal_before_the_sleep() {
    /// A thread that has announced its sleep sleeps, whatever the word is at that moment.
    struct Sleeps;
    impl Kind for Sleeps {
        fn park(word: &LoomU32, _expected: u32) {
            Loom::park(word, word.load_hint());
        }
    }
    fn model<K: Kind>() -> Model {
        counting::<Loom, Mutex<K>>(NAME, 2, 1, Some(3))
    }
    caught("umtx_signal_before_the_sleep", &model::<Same>(), &model::<Sleeps>(), NO_END);
}

#[test]
fn mutex_handed_over_to_no_thread_without_release() {
    let place = Place { file: "linux/mutex.rs", function: "hand_over", operation: "store" };
    const ACTS: &[&[Act]] = &[&[Lock], &[InTime, Lock]];
    let model = held_at_first::<Loom, LinuxMutex<Loom, NoSpinning>>(NAME, Releases, ACTS, Some(4));
    caught_without("mutex_handed_over_to_no_thread_without_release", Half::Release, place, &model, SECTIONS);
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "a debug assertion catches it")]
fn mutex_flags_of_an_empty_queue() {
    /// The last thread to leave the queue clears WAITERS, and leaves the other flags.
    struct LeavesFlags;
    impl Kind for LeavesFlags {
        fn and(word: &LoomU32, v: u32, order: Ordering) -> u32 {
            let leaves = v == !(WAITERS | HANDOFF | PICKUP);
            word.fetch_and(if leaves { !WAITERS } else { v }, order)
        }
    }
    fn model<K: Kind>() -> Model {
        Model::new(format!("{NAME}: locked twice, one gives up"), 2, Some(2), || {
            let mutex = Arc::new(Mutex::<K>::default());
            // SAFETY: unlocked below; so in the other thread.
            unsafe { mutex.lock(&()) };
            let other = mutex.clone();
            let other = Loom::spawn(Thread { slot: Some(1), ..Thread::default() }, move || {
                // SAFETY: as above.
                unsafe {
                    if other.lock_within(&(), &Limit::until(1)).is_ok() {
                        other.unlock(&());
                    }
                }
            });
            // SAFETY: as above.
            unsafe {
                mutex.unlock(&());
                mutex.lock(&());
                // Gives the other thread time to ask for the mutex, and to give up.
                (0..2).for_each(|_| Loom::cpu_relax(0));
                mutex.unlock(&());
            }
            other.join().unwrap();
            assert!(!mutex.is_locked(), "the lock is free at last");
        })
    }
    let test = "mutex_flags_of_an_empty_queue";
    caught(test, &model::<Same>(), &model::<LeavesFlags>(), "to be handed over to no thread");
}

const OSQ: &str = "linux/osq.rs";

/// The model of the spin queue with this name.
fn osq_model(situation: &str) -> Model {
    let called = |model: &Model| model.name == format!("osq: {situation}");
    osq::models().into_iter().find(called).expect("a model of the spin queue")
}

#[test]
fn osq_node_not_initialised() {
    let place = Place { file: OSQ, function: "enter", operation: "swap" };
    let model = osq_model("2 threads, 2 visits each");
    caught_without("osq_node_not_initialised", Half::Release, place, &model, STORES);
}

#[test]
fn osq_link_before_previous() {
    let place = Place { file: OSQ, function: "enter", operation: "store" };
    let model = osq_model("one returns, one stays");
    caught_without("osq_link_before_previous", Half::Release, place, &model, STORES);
}

#[test]
fn osq_successor_read_and_not_taken_out() {
    /// A thread that removes the next node from its link only reads the link.
    struct Reads;
    impl Kind for Reads {
        fn swap(word: &LoomU32, v: u32, order: Ordering) -> u32 {
            if v == 0 { word.load(order) } else { word.swap(v, order) }
        }
    }
    let two_leave = ("osq: two leave at once", [true; 2].as_slice());
    let test = "osq_successor_read_and_not_taken_out";
    caught(test, &leaving::<Same>(two_leave), &leaving::<Reads>(two_leave), "the queue is empty at last");
}

#[test]
fn osq_store_that_an_emulated_swap_overwrites() {
    /// The processor has neither swap nor exchange. Both are a load and a store under a lock that
    /// plain stores do not take.
    struct Emulated;
    fn locked<R>(f: impl FnOnce() -> R) -> R {
        let lock = EMULATION.with_borrow(|lock| lock.clone().expect("a model has begun"));
        while lock.swap(1, AcqRel) != 0 {
            Loom::cpu_relax(0);
        }
        let r = f();
        lock.swap(0, AcqRel);
        r
    }
    /// The newest value, which the lock makes visible.
    fn load(word: &LoomU32) -> u32 {
        word.fetch_or(0, AcqRel)
    }
    /// To the models this is no plain store, because they require plain stores to be ordered.
    fn store(word: &LoomU32, v: u32) {
        word.swap(v, AcqRel);
    }
    impl Kind for Emulated {
        fn swap(word: &LoomU32, v: u32, _order: Ordering) -> u32 {
            locked(|| {
                let old = load(word);
                store(word, v);
                old
            })
        }
        fn exchange(word: &LoomU32, old: u32, new: u32, _ok: Ordering, _err: Ordering) -> Result<u32, u32> {
            locked(|| match load(word) {
                seen if seen == old => {
                    store(word, new);
                    Ok(seen)
                }
                seen => Err(seen),
            })
        }
    }
    let one_comes = ("osq: one comes and leaves", [false].as_slice());
    let test = "osq_store_that_an_emulated_swap_overwrites";
    caught(test, &leaving::<Same>(one_comes), &leaving::<Emulated>(one_comes), NO_END);
}

thread_local! {
    /// The lock under which exchanges are emulated.
    static EMULATION: RefCell<Option<Arc<LoomU32>>> = const { RefCell::new(None) };
}

/// The first thread of a queue ends its turn. Behind it are threads that leave. `are_there` says of
/// each whether it is in the queue from the start.
fn leaving<K: Kind>((name, are_there): (&str, &'static [bool])) -> Model {
    let slots = are_there.len() as u32 + 1;
    Model::new(name, slots, Some(4 - are_there.len()), move || {
        let (queue, nodes) = (Arc::new(Osq::<Words<K>>::default()), nodes::<K>(slots));
        EMULATION.set(Some(Arc::new(LoomU32::new(0))));
        let place = |slot| {
            let id = NodeId { slot, level: 0 };
            LentNode { id, node: Words::<K>::node(id) }
        };
        // SAFETY: each slot belongs to one thread, which enters once, and then leaves or ends its
        // turn; also below.
        let enter =
            move |queue: &Osq<Words<K>>, slot| unsafe { queue.enter(&place(slot), Loom::thread_id()) };
        assert!(enter(&queue, 0));
        for (slot, _) in (1..).zip(are_there).filter(|(_, is_there)| **is_there) {
            assert!(!enter(&queue, slot));
        }
        let others = (1..).zip(are_there).map(|(slot, is_there)| {
            let (queue, nodes) = (queue.clone(), nodes.clone());
            Loom::spawn(Thread { slot: Some(slot), ..Thread::default() }, move || {
                let is_first = !is_there && enter(&queue, slot);
                // SAFETY: as above.
                unsafe {
                    if is_first || queue.leave(&place(slot)) {
                        queue.release(&place(slot));
                    }
                }
                drop(nodes);
            })
        });
        let others: Vec<_> = others.collect();
        // SAFETY: as above.
        unsafe { queue.release(&place(0)) };
        others.into_iter().for_each(|other| other.join().unwrap());
        EMULATION.set(None);
        assert!(!queue.has_spinner(), "the queue is empty at last");
    })
}
