//! The pre-reads of FreeBSD's locks order nothing. The tests show that they need not, and what
//! would have to.

use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use nearlock_collection::freebsd::lockmgr::Operation;
use nearlock_collection::freebsd::mtx::Mtx;
use nearlock_collection::freebsd::rw::Rw;
use nearlock_collection::freebsd::spin_mtx::SpinMtx;
use nearlock_collection::freebsd::sx::Sx;
use nearlock_collection::freebsd::tuning::{PreReadEverywhere, PreReadHardPath, Tuning};
use nearlock_core::events::LockEvent::{self, ChainSleep, ChainWake, MutexAfterSleep, Slowpath};
use nearlock_core::platform::{Atomic, Platform};
use nearlock_core::raw::{RawLock, RawRwLock};
use nearlock_core::tuning::Switched;
use nearlock_model::exclusion::{counting, held_at_first};
use nearlock_model::lockmgr::{self, Deed};
use nearlock_model::loom::{Loom, LoomU32};
use nearlock_model::model::Model;
use nearlock_model::mutate::Half;
use nearlock_model::readers::Act::{self, Write};
use nearlock_model::readers::written_at_first;

use crate::{Place, SECTIONS, STORES, caught, caught_without, holds};

/// Each model for both forms of the patch: once unchanged, and once with waiters that do not spin,
/// so that they reach the chain. The events `sleep` must then be reached.
fn in_both_forms_of(
    lock: &str,
    test: &str,
    models: impl Fn(&str) -> [Model; 2],
    sleep: &'static [LockEvent],
) {
    for form in ["hard-preread", "preread"] {
        let name = format!("{lock}-{form}");
        for model in models(lock) {
            holds(test, &model.of_lock(&name).reaching(&[Slowpath]));
        }
        for model in models(lock) {
            holds(test, &model.of_lock_with(&name, "adaptive", "off").reaching(sleep));
        }
    }
}

/// Runs a test with either form of the patch: its half, in which only waiters look, and all of it.
macro_rules! in_both_forms {
    ($of:ident) => {
        $of::<PreReadHardPath>();
        $of::<PreReadEverywhere>();
    };
}

/// One waiter with any number of preemptions, and two with this many. This takes some seconds.
fn held<L: RawLock>(name: &str, preemptions: usize) -> [Model; 2] {
    [held_at_first::<Loom, L>(name, 2, None), held_at_first::<Loom, L>(name, 3, Some(preemptions))]
}

#[test]
fn pre_reads_need_no_ordering_in_mtx() {
    let models = |name: &str| held::<Mtx<Loom, Switched<Loom>>>(name, 1);
    in_both_forms_of(
        "freebsd-mtx",
        "pre_reads_need_no_ordering_in_mtx",
        models,
        &[ChainSleep, ChainWake, MutexAfterSleep],
    );
}

#[test]
fn pre_reads_need_no_ordering_in_spin_mtx() {
    fn of<T: Tuning>() {
        let test = "pre_reads_need_no_ordering_in_spin_mtx";
        for model in held::<SpinMtx<Loom, T>>("freebsd-spin-mtx", 2) {
            holds(test, &model.reaching(&[Slowpath]));
        }
    }
    in_both_forms!(of);
}

/// As [`held`], with one more writer, and with two. (Readers have always looked first.)
fn written<L: RawRwLock>(name: &str) -> [Model; 2] {
    const WRITERS: &[&[Act]] = &[&[Write], &[Write]];
    [
        written_at_first::<Loom, L>(name, &WRITERS[1..], None),
        written_at_first::<Loom, L>(name, WRITERS, Some(1)),
    ]
}

#[test]
fn pre_reads_need_no_ordering_in_rw() {
    let models = |name: &str| written::<Rw<Loom, Switched<Loom>>>(name);
    in_both_forms_of("freebsd-rw", "pre_reads_need_no_ordering_in_rw", models, &[ChainSleep, ChainWake]);
}

#[test]
fn pre_reads_need_no_ordering_in_sx() {
    let models = |name: &str| written::<Sx<Loom, Switched<Loom>>>(name);
    in_both_forms_of("freebsd-sx", "pre_reads_need_no_ordering_in_sx", models, &[ChainSleep, ChainWake]);
}

#[test]
fn pre_reads_need_no_ordering_in_lockmgr() {
    fn of<T: Tuning>() {
        const DEEDS: &[Deed] = &[Deed::Write, Deed::Write];
        let model = |deeds, preemptions| {
            lockmgr::held_at_first::<Loom, T>("freebsd-lockmgr", Operation::Exclusive, deeds, preemptions)
        };
        let test = "pre_reads_need_no_ordering_in_lockmgr";
        let sleep = &[ChainSleep, ChainWake];
        for model in [model(&DEEDS[1..], None), model(DEEDS, Some(1))] {
            holds(test, &model.reaching(sleep));
        }
    }
    in_both_forms!(of);
}

#[test]
fn pre_read_and_an_exchange_without_acquire() {
    let place = Place { file: "freebsd/mtx.rs", function: "take", operation: "exchange" };
    let test = "pre_read_and_an_exchange_without_acquire";
    let [model, _] = held::<Mtx<Loom, Switched<Loom>>>("freebsd-mtx", 1);
    let model = model.of_lock_with("freebsd-mtx-preread", "adaptive", "off");
    caught_without(test, Half::Acquire, place, &model, SECTIONS);
}

/// How a lock of one word is locked: 0 is free, 1 is held.
trait Attempt: Send + Sync + 'static {
    fn attempt(word: &LoomU32) -> bool;
}

/// The attempt of the patch.
struct LooksAndExchanges;

impl Attempt for LooksAndExchanges {
    fn attempt(word: &LoomU32) -> bool {
        // Ordering: Acquire, pairs with the Release in `unlock`.
        word.load(Relaxed) == 0 && word.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }
}

/// The look has the ordering, and the exchange has none.
struct LooksWithOrdering;

impl Attempt for LooksWithOrdering {
    fn attempt(word: &LoomU32) -> bool {
        // Ordering: Acquire, pairs with the Release in `unlock`. It covers the section before the
        // look, but not later ones.
        word.load(Acquire) == 0 && word.compare_exchange(0, 1, Relaxed, Relaxed).is_ok()
    }
}

/// A look instead of the exchange.
struct LooksAndStores;

impl Attempt for LooksAndStores {
    fn attempt(word: &LoomU32) -> bool {
        // Ordering: Acquire, as above.
        let is_free = word.load(Acquire) == 0;
        if is_free {
            word.store(1, Relaxed);
        }
        is_free
    }
}

struct OneWord<A>(LoomU32, PhantomData<A>);

impl<A> Default for OneWord<A> {
    fn default() -> Self {
        Self(LoomU32::new(0), PhantomData)
    }
}

// SAFETY: for `LooksAndExchanges`, only an exchange from 0 locks. For the others: none.
unsafe impl<A: Attempt> RawLock for OneWord<A> {
    type Node = ();
    unsafe fn lock(&self, _node: &()) {
        while !A::attempt(&self.0) {
            Loom::wait_until(&self.0, Relaxed, |word| word == 0);
        }
    }
    unsafe fn unlock(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquire of the attempt that comes next.
        self.0.store(0, Release);
    }
}

fn one_word<A: Attempt>() -> Model {
    counting::<Loom, OneWord<A>>("one-word", 2, 1, None)
}

#[test]
fn pre_read_that_is_to_order() {
    let (today, bug) = (one_word::<LooksAndExchanges>(), one_word::<LooksWithOrdering>());
    caught("pre_read_that_is_to_order", &today, &bug, SECTIONS);
}

#[test]
fn pre_read_that_is_to_exclude() {
    let (today, bug) = (one_word::<LooksAndExchanges>(), one_word::<LooksAndStores>());
    caught("pre_read_that_is_to_exclude", &today, &bug, STORES);
}
